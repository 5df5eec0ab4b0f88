"""Differencing: what tables over the same records by groupings that do not nest reveal together."""

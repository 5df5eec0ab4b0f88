"""Decimals and multiples, exactly."""

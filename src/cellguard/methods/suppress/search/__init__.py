"""Searching for cheap patterns."""

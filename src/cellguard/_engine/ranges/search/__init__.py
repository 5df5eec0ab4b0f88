"""Searching for the ends of ranges."""

"""Databases and files that aggregate records."""

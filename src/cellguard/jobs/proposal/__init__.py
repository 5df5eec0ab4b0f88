"""Proposing a job for a data file or for ready tables."""

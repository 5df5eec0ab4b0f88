"""Movements that prove ranges, made exact."""

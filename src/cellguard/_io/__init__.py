"""Parsers and writers: they only parse and write, and never evaluate their input."""

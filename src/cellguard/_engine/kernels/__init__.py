"""Compiled loops (numba, cached on disk): plain arrays in and out, called only by their neighbours above."""

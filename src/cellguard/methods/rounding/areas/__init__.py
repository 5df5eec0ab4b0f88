"""Rounding of large tables area by area, by flows and relaxations of their parts."""

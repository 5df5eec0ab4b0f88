"""All tolerances in one place: name, unit, and the reason for the size.

Other limits (how long, how many, how good is good enough) are defined with the search that they steer.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = [
    "CALM_MOVEMENT", "EXACT_RELATION", "FIXED_WIDTH", "LEVEL_LOOKED_FOR", "LEVEL_SHARE", "LEVEL_TOLERANCE", "MET",
    "MET_BY_PROGRAM", "NO_DISTANCE", "NO_MOVEMENT", "NO_PRICE", "NO_ROW", "PROVEN_GAP", "RELATION", "ROUNDED_TRUTH",
    "SAME_VALUE", "WHOLE_BOUND", "WHOLE_QUOTIENT", "WHOLE_SOLUTION",
]  # fmt: skip

LEVEL_TOLERANCE = Fraction(1, 10**6)
"""Share of a level that may be missing while it counts as met: the error of programs in floating point, far
below what an attacker could learn from. Exact, because witnesses are judged by fractions."""
LEVEL_SHARE = float(LEVEL_TOLERANCE)
"""The same, for searches in floating point."""
LEVEL_LOOKED_FOR = 1.0 - LEVEL_SHARE / 2
"""Share of a level that searches aim for: half of the tolerance is left for making witnesses exact."""
FIXED_WIDTH = 1e-12
"""Share of a cell's value: a cell with a narrower interval counts as published."""
RELATION = 1e-9
"""Share of the absolute sum of a relation's terms: a smaller residual is rounding of the sum."""
SAME_VALUE = 1e-9
"""Share of a value: two values that differ by less are equal, computed in another order."""
MEANT_TO_BE_SAME = 1e-6
"""Share of a value: values in files that differ by less mean the same figure; a total may miss its parts by as much."""
ROUNDED_TRUTH = 1e-7
"""Share of a value: the largest printing error in a file of another program."""
NO_DISTANCE = 1e-9
"""Share of an objective, or a figure of order one: less counts as zero in floating point."""

WHOLE_BOUND = 1e-9
"""Units: a computed bound or level this close to a whole number is that number (2.0000000001 means 2)."""
WHOLE_QUOTIENT = 1e-9
"""Share of a quotient: a quotient this close to a whole number is whole."""
WHOLE_SOLUTION = 1e-6
"""Units: a solver's own tolerance of whole numbers, and of quotients of numbers printed with few digits."""

EXACT_RELATION = 1e-9
"""Units of a scaled problem: the largest error of interior points in bounds and relations."""
PROVEN_GAP = 1e-7
"""Share of an objective: a smaller gap between two floating-point bounds counts as closed."""
NO_PRICE = 1e-11
"""Share of the largest cost: smaller reduced costs are rounding, and would be multiplied by infinite slack."""
CALM_MOVEMENT = 1e-12
"""Share of the largest movement of a component: a smaller movement counts as none."""
NO_MOVEMENT = 1e-7
"""Share of a level: smaller movements in a program's solution are the solver's rounding."""
NO_ROW = 1e-9
"""Units of coefficients and suppressions, which are of order one: less counts as zero."""
MET = 1.0 - 1e-9
"""Share of a level that a movement computed by sums alone must reach."""
MET_BY_PROGRAM = 1.0 - NO_MOVEMENT
"""Share of a level that a movement found by a program must reach."""
SHARE_NOISE = 1e-9
"""Whole numbers: less than this above one is rounding of a share times a value."""

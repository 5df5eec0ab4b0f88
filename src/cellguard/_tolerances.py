"""Every tolerance, once: a name, its unit, and the reason why it is not smaller or larger.

What is no tolerance (how long, how many, how good is good enough) stands with the search that it steers.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = [
    "CALM_MOVEMENT", "EXACT_RELATION", "FIXED_WIDTH", "LEVEL_LOOKED_FOR", "LEVEL_SHARE", "LEVEL_TOLERANCE", "MET",
    "MET_BY_PROGRAM", "NO_DISTANCE", "NO_MOVEMENT", "NO_PRICE", "NO_ROW", "PROVEN_GAP", "RELATION", "ROUNDED_TRUTH",
    "SAME_VALUE", "WHOLE_BOUND", "WHOLE_QUOTIENT", "WHOLE_SOLUTION",
]  # fmt: skip

LEVEL_TOLERANCE = Fraction(1, 10**6)
"""Share of a level that may be missing where it counts as met: what programs in floating point leave, and far
below what anybody could learn from it. Exact, because witnesses are judged by fractions."""
LEVEL_SHARE = float(LEVEL_TOLERANCE)
"""The same, for searches in floating point."""
LEVEL_LOOKED_FOR = 1.0 - LEVEL_SHARE / 2
"""Share of a level that searches look for: half of the tolerance is left for making witnesses exact."""
FIXED_WIDTH = 1e-12
"""Share of a cell's value: a narrower interval is a published cell."""
RELATION = 1e-9
"""Share of the absolute sum of a relation's terms: a smaller residual is what adding up leaves."""
SAME_VALUE = 1e-9
"""Share of a value: two that differ by less are one, computed in another order."""
MEANT_TO_BE_SAME = 1e-6
"""Share of a value: files that differ by less mean the same figure; a total may miss its parts by as much."""
ROUNDED_TRUTH = 1e-7
"""Share of a value: how far a file of another program may miss it by printing alone."""
NO_DISTANCE = 1e-9
"""Share of an objective, or a figure of order one: less is what floating point leaves of zero."""

WHOLE_BOUND = 1e-9
"""Units: a computed bound or level so close to a whole number is that number (2.0000000001 asks for 2)."""
WHOLE_QUOTIENT = 1e-9
"""Share of a quotient: so close to a whole number it is one."""
WHOLE_SOLUTION = 1e-6
"""Units: a solver's own tolerance of whole numbers, and of quotients of what was printed with few digits."""

EXACT_RELATION = 1e-9
"""Units of a scaled problem: by so much interior points may miss bounds and relations."""
PROVEN_GAP = 1e-7
"""Share of an objective: a smaller gap between two floating-point bounds is called none."""
NO_PRICE = 1e-11
"""Share of the largest cost: smaller reduced costs are rounding, and would meet infinite rooms."""
CALM_MOVEMENT = 1e-12
"""Share of the largest movement of a component: what moves less stands still."""
NO_MOVEMENT = 1e-7
"""Share of a level: smaller movements in a program's solution are the solver's rounding."""
NO_ROW = 1e-9
"""Units of coefficients and suppressions, which are of order one: less is none."""
MET = 1.0 - 1e-9
"""Share of a level that a movement must reach which was computed by sums alone."""
MET_BY_PROGRAM = 1.0 - NO_MOVEMENT
"""Share of a level that a movement must reach which a program found."""

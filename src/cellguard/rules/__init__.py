"""Rules that decide which cells are sensitive, and how much protection each needs.

X is the total of a cell, x1 >= x2 >= ... its contributions, R the published value:

=================  ==============================================  ===================================
rule               unsafe when                                     upper level, a distance
=================  ==============================================  ===================================
Dominance          100 (x1+..+xn) / X > k                          (100/k) (x1+..+xn) - X
PPercent           (p/100) x1 + (x1+..+x_{n+1}) - X > 0            the same expression
PriorPosterior     (p/100) x1 + (q/100)((x1+..+x_{n+1}) - X) > 0   (p/q) x1 + (x1+..+x_{n+1}) - X
MinFrequency       0 < f < n                                       a percentage of R; of counts a width
Zero               R = 0 and f > 0                                 a range; the lower level is 0
Manual             marked by hand                                  a percentage of R
Request            the largest requested it and holds over p%      a percentage of R
=================  ==============================================  ===================================

Rules combine: a cell is sensitive if one of them flags it, and its level is the largest of theirs.
"""

from cellguard.rules.apply import Flags, apply
from cellguard.rules.apriori import apply_apriori
from cellguard.rules.contributions import add_contributions
from cellguard.rules.rule import (
    Custom,
    Dominance,
    Manual,
    MinFrequency,
    PPercent,
    PriorPosterior,
    Request,
    Rule,
    Verdict,
    Zero,
)
from cellguard.rules.statistics import CellStatistics

__all__ = [
    "CellStatistics",
    "Custom",
    "Dominance",
    "Flags",
    "Manual",
    "MinFrequency",
    "PPercent",
    "PriorPosterior",
    "Request",
    "Rule",
    "Verdict",
    "Zero",
    "add_contributions",
    "apply",
    "apply_apriori",
]  # fmt: skip

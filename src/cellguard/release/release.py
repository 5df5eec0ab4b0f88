"""The release: what is published, and what it reveals to an attacker about every cell.

All five kinds answer one question: which interval does the release give for cell i? (DESIGN: one idea)

============  =====================================  ==========================
kind          what is published for cell i           interval of the attacker
============  =====================================  ==========================
Suppression   the value, or nothing                  a_i, or prior knowledge
Adjustment    a changed value                        attacked by scenarios
Intervals     a lower and an upper number            [lower_i, upper_i]
Rounding      a multiple of the base                 less than step bases from v_i
Perturbation  a changed value                        v_i -/+ distance_i
============  =====================================  ==========================
"""

from __future__ import annotations

from cellguard.exceptions import InputError, suggest_names
from cellguard.release.adjustment import Adjustment
from cellguard.release.base import (
    INPUT_ORDER_WARNING,
    PRIMARY_WARNING,
    ROW_ORDERS,
    UNSAFE,
    Release,
    Status,
    build_warning_column,
    check_row_order,
    order_cells,
)
from cellguard.release.interval_table import Intervals
from cellguard.release.perturbation import Perturbation
from cellguard.release.rounding import Rounding
from cellguard.release.suppression import Suppression

__all__ = [
    "INPUT_ORDER_WARNING",
    "KINDS",
    "PRIMARY_WARNING",
    "ROW_ORDERS",
    "UNSAFE",
    "Adjustment",
    "Intervals",
    "Perturbation",
    "Release",
    "Rounding",
    "Status",
    "Suppression",
    "build_warning_column",
    "check_row_order",
    "get_kind",
    "order_cells",
]  # fmt: skip


KINDS: dict[str, type[Release]] = {
    kind.method: kind for kind in (Intervals, Suppression, Rounding, Perturbation, Adjustment)
}
"""Name of its method -> kind of release, in the order in which they are tried for a file."""


def get_kind(name: str) -> type[Release]:
    """Return the kind of release of a method; list the known ones in the error."""
    if name not in KINDS:
        known = sorted(KINDS)
        raise InputError(f"unknown method {name!r}.", hint=suggest_names(name, known) or f"known: {', '.join(known)}.")
    return KINDS[name]

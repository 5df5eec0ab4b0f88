"""Who attacks: what somebody knows about the cells before the release is published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cellguard.exceptions import InputError

__all__ = ["EXTERNAL", "Attacker"]


def _frozen(values: ArrayLike, dtype: type) -> NDArray[Any]:
    array: NDArray[Any] = np.array(values, dtype=dtype).ravel()
    array.setflags(write=False)
    return array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attacker:
    """Somebody with prior knowledge: tighter bounds on some cells (salazar2004 section 2).

    The external attacker knows the bounds of the table and nothing else. A respondent knows at
    least his own contribution; a coalition knows the sum of its members' contributions.

    >>> Attacker(name="firm 12", cells=[3], lb=[40.0], ub=[np.inf])
    Attacker('firm 12', tighter bounds on 1 cell)
    """

    name: str
    """How reports call the attacker."""
    cells: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """Indices of the cells on which the attacker has tighter bounds than the table's."""
    lb: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Lower bounds known for `cells`."""
    ub: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Upper bounds known for `cells`."""
    sensitive: NDArray[np.int64] | None = None
    """Cells to be protected against this attacker; None for the table's sensitive cells and levels."""
    lower: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Lower protection levels of `sensitive` against this attacker."""
    upper: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Upper protection levels of `sensitive` against this attacker."""
    sliding: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """Sliding protection levels of `sensitive` against this attacker."""

    def __post_init__(self) -> None:
        for name in ("lb", "ub", "lower", "upper", "sliding"):
            object.__setattr__(self, name, _frozen(getattr(self, name), np.float64))
        object.__setattr__(self, "cells", _frozen(self.cells, np.int64))
        if not (len(self.cells) == len(self.lb) == len(self.ub)):
            raise InputError(
                f"attacker {self.name!r}: cells, lb and ub have {len(self.cells)}, {len(self.lb)} "
                f"and {len(self.ub)} entries; they must be equally long."
            )
        if len(np.unique(self.cells)) != len(self.cells):
            raise InputError(f"attacker {self.name!r}: a cell is named twice.")
        if np.isnan(self.lb).any() or np.isnan(self.ub).any() or (self.lb > self.ub).any():
            raise InputError(f"attacker {self.name!r}: each lb must be a number not above its ub.")
        if self.sensitive is None:
            return
        object.__setattr__(self, "sensitive", _frozen(self.sensitive, np.int64))
        s = len(self.sensitive)
        for name in ("lower", "upper", "sliding"):
            levels = getattr(self, name)
            if len(levels) == 0 and s:
                object.__setattr__(self, name, _frozen(np.zeros(s), np.float64))
            elif len(levels) != s or not np.isfinite(levels).all() or (levels < 0).any():
                raise InputError(
                    f"attacker {self.name!r}: {name} needs one finite level of at least 0 for each "
                    f"of its {s} sensitive cells."
                )

    def __repr__(self) -> str:
        n = len(self.cells)
        return f"Attacker({self.name!r}, tighter bounds on {n} cell{'' if n == 1 else 's'})"


EXTERNAL = Attacker(name="external")
"""The intruder from outside, who knows the bounds of the table and nothing else."""

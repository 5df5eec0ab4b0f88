"""How much the result depends on the levels: Lagrange multipliers (castro2004 proposition 1, castro2012 theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import FloatArray
from cellguard.exceptions import ReleaseError
from cellguard.release.release import Adjustment

__all__ = ["Sensitivity", "compute_sensitivity"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sensitivity:
    """Multipliers of the bounds: by how much the distance grows per unit of each (confidential)."""

    lower: FloatArray
    """Multiplier of the lower bound of each cell's movement, at least 0; of its upper level where it must rise."""
    upper: FloatArray
    """Multiplier of the upper bound of each cell's movement, at least 0; of its lower level where it must fall."""

    @property
    def norm1(self) -> float:
        """One-norm of all multipliers (castro2012 table 1): near 0, small errors in the levels hardly matter.

        Multipliers need not be unique for l1 and linf; these are in the middle of the possible ones.
        """
        return float(self.lower.sum() + self.upper.sum())

    def predict(self, errors: ArrayLike) -> float:
        """Return the change of the distance when each level is off by an error (castro2004 (9)).

        Exact for small errors when the distance is linear, the first order otherwise.
        """
        return float((self.lower + self.upper) @ np.asarray(errors, dtype=np.float64))


def compute_sensitivity(release: Adjustment) -> Sensitivity:
    """Return the multipliers of an adjusted table: of the closest one, before it was rounded to the grid of the values.

    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    >>> release = cg.adjust(table, norm="l1", senses="upper", surplus=0)
    >>> round(compute_sensitivity(release).norm1, 6)  # 1/20 for the total itself and 1/12 for the cell that follows it
    0.133333
    """
    if "lower_multiplier" not in release.internal:
        raise ReleaseError(
            "this release has no multipliers.", hint="they come with adjusted tables that were made here, not read."
        )
    return Sensitivity(lower=release.internal["lower_multiplier"], upper=release.internal["upper_multiplier"])

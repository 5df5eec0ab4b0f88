"""Two patterns of withheld cells side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["PatternDifference", "compare_patterns"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PatternDifference:
    """What two releases of one table withhold differently."""

    table: Table
    only_first: IntArray
    """Cells that only the first withholds."""
    only_second: IntArray
    """Cells that only the second withholds."""
    both: IntArray
    """Cells that both withhold."""

    @property
    def costs(self) -> tuple[float, float]:
        """The weights of what only the first and only the second withholds."""
        return float(self.table.weights[self.only_first].sum()), float(self.table.weights[self.only_second].sum())

    def labels(self) -> dict[str, list[str]]:
        """Return the cells that differ, by their codes."""
        return {
            "only first": [self.table.label(int(cell)) for cell in self.only_first],
            "only second": [self.table.label(int(cell)) for cell in self.only_second],
        }

    def __repr__(self) -> str:
        return (
            f"PatternDifference({len(self.both)} withheld by both, {len(self.only_first)} by the first only, "
            f"{len(self.only_second)} by the second only)"
        )


def compare_patterns(first: Release, second: Release) -> PatternDifference:
    """Compare what two releases of the same table withhold.

    >>> import cellguard as cg
    >>> table = cg.Table.from_leaves({"region": ["N", "S", "W"], "sex": ["f", "m"]}, [[9, 8], [7, 6], [5, 4]])
    >>> table = table.apply(cg.Manual([4]))
    >>> a, b = cg.suppress(table, time_limit_s=1), cg.suppress(table, must_publish=["W,f"], time_limit_s=1)
    >>> cg.compare_patterns(a, b)
    PatternDifference(2 withheld by both, 2 by the first only, 2 by the second only)
    """
    if first.table.cell_codes() != second.table.cell_codes():
        raise InputError("the two releases are not of the same table: their cells differ.")
    one, other = first.withheld, second.withheld
    return PatternDifference(
        table=first.table,
        only_first=np.flatnonzero(one & ~other),
        only_second=np.flatnonzero(other & ~one),
        both=np.flatnonzero(one & other),
    )

"""Apply rules to a table: mark sensitive cells, with their levels and the reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._quantities import Ratio, check_ratio
from cellguard._types import IntArray
from cellguard.exceptions import InputError
from cellguard.rules.rule import Custom, Manual, Rule
from cellguard.rules.statistics import CellStatistics

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["Flags", "apply", "get_statistics"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Flags:
    """Which rule flagged which cell, and why; contains no contribution and no value."""

    names: tuple[str, ...] = ()
    """The rules with their parameters."""
    reasons: tuple[str, ...] = ()
    """Why each rule flags a cell."""
    flagged: tuple[IntArray, ...] = ()
    """The cells that each rule flagged, in ascending order."""

    def __repr__(self) -> str:
        rules = zip(self.names, self.flagged, strict=True)
        return f"Flags({', '.join(f'{name}: {len(cells)} cells' for name, cells in rules)})"

    def list_reasons(self, cell: int) -> tuple[str, ...]:
        """Return the rules that flagged a cell and why, one sentence each."""
        place = [int(np.searchsorted(cells, cell)) for cells in self.flagged]  # fast: reports query thousands of cells
        hit = [k < len(cells) and cells[k] == cell for k, cells in zip(place, self.flagged, strict=True)]
        parts = zip(self.names, self.reasons, hit, strict=True)
        return tuple(f"{name}: {reason}" for name, reason, flagged in parts if flagged)

    def count_by_rule(self) -> dict[str, int]:
        """Return how many cells each rule flagged."""
        return {name: len(cells) for name, cells in zip(self.names, self.flagged, strict=True)}

    def find_flagged_by(self, *rules: str) -> IntArray:
        """Return the cells flagged by rules whose name begins with this text: "dominance", or "dominance (1,"."""
        chosen = [cells for name, cells in zip(self.names, self.flagged, strict=True) if name.startswith(rules)]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *chosen]))

    def merge(self, other: Flags) -> Flags:
        """Return the flags of both."""
        return Flags(
            names=self.names + other.names, reasons=self.reasons + other.reasons, flagged=self.flagged + other.flagged
        )


def get_statistics(table: Table, *, by_hand: bool = False) -> CellStatistics:
    """Return the statistics of a table; without microdata, those that its counts or values imply.

    `by_hand` means that only the values are needed.
    """
    if table.statistics is not None:
        if not isinstance(table.statistics, CellStatistics):
            raise InputError("the table's statistics are not CellStatistics.")
        return replace(table.statistics, integer=table.integer)
    count = table.counts if table.counts is not None else table.values if table.integer else None
    if count is None and by_hand:
        count = np.ones(table.n_cells)
    if count is None:
        raise InputError(
            "the table does not know its contributors: rules cannot be applied.",
            hint="make it with cg.tabulate, or name the columns of counts and of the largest contributions "
            "(`count` and `top` of a job); of a table of counts, the values are the counts.",
        )
    return CellStatistics(
        value=table.values,
        total=np.abs(table.values),
        count=count,
        weight=count,
        top=np.zeros((table.n_cells, 0)),
        integer=table.integer,
    )


def apply(table: Table, *given: Rule | Callable[[CellStatistics], Any], lower_ratio: Ratio = 1.0) -> Table:
    """Return the table with the cells that the rules flag marked as sensitive, in addition to those that already are.

    The level of a cell is the largest that a rule requires. Lower and upper level are equal unless
    `lower_ratio` gives the lower one as a share of the upper one. baena2018 recommends
    0.25 (5% down, 20% up), because equal levels make the truth the midpoint of most ranges. A level
    is reduced where the known bounds leave less slack. A function of the cells' statistics is a rule of
    your own (:class:`Custom`).
    """
    rules = [_convert_to_rule(rule) for rule in given]
    if not rules:
        raise InputError("no rule was given.", hint="for example table.apply(cg.PPercent(10), cg.MinFrequency(3)).")
    check_ratio("lower_ratio", lower_ratio)
    cells = get_statistics(table, by_hand=all(isinstance(rule, Manual) for rule in rules))
    sensitive, lower, upper, sliding = (x.copy() for x in (table.sensitive, table.lower, table.upper, table.sliding))
    flagged = []
    for rule in rules:
        verdict = rule.evaluate(cells)
        hit = np.flatnonzero(verdict.unsafe & rule.find_covered_cells(table))
        up = verdict.upper[hit]
        down = lower_ratio * up if verdict.lower is None else verdict.lower[hit]
        sensitive[hit] = True
        upper[hit] = np.maximum(upper[hit], up)
        lower[hit] = np.maximum(lower[hit], down)
        sliding[hit] = np.maximum(sliding[hit], rule.compute_width(cells))
        flagged.append(hit)
    new = Flags(names=tuple(r.name for r in rules), reasons=tuple(r.reason for r in rules), flagged=tuple(flagged))
    return table.with_(
        sensitive=sensitive,
        lower=np.clip(lower, 0.0, np.maximum(table.values - table.lb, 0.0)),
        upper=np.clip(upper, 0.0, np.maximum(table.ub - table.values, 0.0)),
        sliding=np.clip(sliding, 0.0, np.maximum(table.ub - table.lb, 0.0)),
        flags=new if table.flags is None else table.flags.merge(new),
    )


def _convert_to_rule(given: Any) -> Rule:
    if isinstance(given, Rule):
        return given
    if callable(given) and not isinstance(given, type):
        return Custom(given)
    kind = given.__name__ if isinstance(given, type) else type(given).__name__
    raise InputError(f"{kind} is not a rule.", hint="give instances, such as cg.PPercent(10).")

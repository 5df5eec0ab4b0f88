"""Decisions of an office about single cells that override all rules: the a priori file of tau-ARGUS, or a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cellguard.exceptions import InputError, LevelError, UnknownCodeError, suggest_names
from cellguard.rules.apply import Flags

if TYPE_CHECKING:
    from cellguard._io.hst import Decision
    from cellguard.model.table import Table

__all__ = ["apply_apriori"]


def apply_apriori(
    table: Table, decisions: str | Path | Iterable[Decision], *, separator: str = ",", percent: float = 20.0
) -> Table:
    """Return the table with single cells decided by hand; they override the rules applied before.

    Parameters
    ----------
    decisions
        An a priori file (``.hst``), or decisions in order: a later one overrides.
    separator
        Separator of the entries in the file's lines.
    percent
        Level, as a percentage of the value, of cells marked unsafe that have none.
    """
    if isinstance(decisions, (str, Path)):
        from cellguard._io.hst import read_hst

        decisions = read_hst(decisions, len(table.dimensions), separator)
    changed = {
        name: getattr(table, name).copy() for name in ("sensitive", "lower", "upper", "sliding", "fixed", "weights")
    }
    position = {tuple(row): i for i, row in enumerate(table.coordinates.tolist())}
    index = [{code: i for i, code in enumerate(codes)} for codes in table.codes]
    marked = []
    for decision in decisions:
        cell = _find_decision_cell(table, decision, index, position)
        if decision.action == "U":
            marked.append(cell)
        _take_apriori_decision(changed, cell, decision, table, percent / 100.0)
    manual = Flags(names=("a priori",), reasons=("marked by hand",), flagged=(np.unique(np.array(marked, np.int64)),))
    flags = table.flags
    if marked:
        flags = manual if flags is None else flags.merge(manual)
    return table.with_(**changed, flags=flags)


def _find_decision_cell(
    table: Table, decision: Decision, index: Sequence[dict[str, int]], position: dict[tuple[int, ...], int]
) -> int:
    if len(decision.codes) != len(table.dimensions):
        raise InputError(
            f"{decision.place}: {len(decision.codes)} codes for {len(table.dimensions)} dimensions.",
            hint=f"the dimensions are {', '.join(table.dimensions)}.",
        )
    found = []
    for d, code in enumerate(decision.codes):
        if code not in index[d]:
            hint = suggest_names(code, table.codes[d])
            raise UnknownCodeError(f"{decision.place}: {table.dimensions[d]!r} has no code {code!r}.", hint=hint)
        found.append(index[d][code])
    if tuple(found) not in position:
        raise UnknownCodeError(f"{decision.place}: the table has no cell ({', '.join(decision.codes)}).")
    return position[tuple(found)]


def _take_apriori_decision(
    changed: dict[str, np.ndarray], cell: int, decision: Decision, table: Table, share: float
) -> None:
    action, numbers = decision.action, decision.numbers
    if action == "S":
        for name in ("sensitive", "lower", "upper", "sliding", "fixed"):
            changed[name][cell] = 0
    elif action == "U":
        value = abs(table.values[cell])
        if not changed["sensitive"][cell]:
            changed["lower"][cell] = min(share * value, table.values[cell] - table.lb[cell])
            changed["upper"][cell] = min(share * value, table.ub[cell] - table.values[cell])
        changed["sensitive"][cell] = True
        changed["fixed"][cell] = False
    elif action == "P":
        if changed["sensitive"][cell]:
            raise LevelError(
                f"{decision.place}: {table.label(cell)} is sensitive and cannot be published unchanged.",
                hint="declare it safe (S) first, if that is what is meant.",
            )
        changed["fixed"][cell] = True
    elif action == "W":
        changed["weights"][cell] = numbers[0]
    else:  # PL
        if not changed["sensitive"][cell]:
            raise LevelError(f"{decision.place}: {table.label(cell)} is not sensitive and takes no level.")
        # no range reaches below the known lower bound: that of a zero only reaches upwards
        changed["lower"][cell] = min(numbers[0], table.values[cell] - table.lb[cell])
        changed["upper"][cell] = min(numbers[1], table.ub[cell] - table.values[cell])

"""``[[priorities]]`` of a job: cells that cost more, headline figures, cells published earlier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cellguard._io.frames import convert_to_numbers, encode_frame_column, read_frame
from cellguard._types import BoolArray
from cellguard.exceptions import (
    CellguardError,
    InputError,
    PublicationError,
    UnknownCodeError,
    raise_error_of_missing,
    suggest_names,
)
from cellguard.jobs.definition.model import PrioritySection
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.definition.sections import make_code_list
from cellguard.model.linked.publication import INDICATOR
from cellguard.model.table import Table

__all__ = ["apply_priorities"]

Spelling = Mapping[str, Mapping[str, int]]
"""Dimension -> code, as spelt in any table -> its number in the joint table."""

_MOST = 20
"""Number of mistakes that are listed one by one."""


def apply_priorities(table: Table, file: JobFile) -> Table:
    """Return the table with the job's costs, and with the cells that must be published unchanged."""
    entries = file.job.priorities
    if not entries:
        return table
    spelt = _list_code_spellings(table)
    weights, fixed = table.weights.copy(), table.fixed.copy()
    wrong: list[CellguardError] = []
    for entry in entries:
        try:
            chosen = _find_section_cells(table, entry, spelt)
            if entry.published is not None:
                chosen &= _find_cells_published_before(
                    table, entry, spelt, file.resolve_path(entry.published), file.job.tolerance
                )
        except CellguardError as error:
            wrong.append(error)
            continue
        if entry.priority is not None:
            weights[chosen] *= entry.priority
        if entry.publish or entry.published is not None:
            wrong += _refuse_sensitive_cells(
                table, chosen, "was published before" if entry.published else "must be published"
            )
            fixed |= chosen
    PublicationError.refuse(wrong)
    return table.with_(weights=weights, fixed=fixed)


def _refuse_sensitive_cells(table: Table, chosen: BoolArray, what: str) -> Iterator[CellguardError]:
    bad = np.flatnonzero(chosen & table.sensitive)
    if len(bad):
        more = f", and so are {len(bad) - 1} others" if len(bad) > 1 else ""
        text = f"{table.label(int(bad[0]))} {what} and is sensitive{more}."
        yield InputError(text, hint="nothing can protect a cell that everybody sees: take it out, or change the rule.")


def _list_code_spellings(table: Table) -> dict[str, dict[str, int]]:
    """Return the known spellings of codes: in the joint table, and in each of its tables."""
    out = {d: {c: i for i, c in enumerate(codes)} for d, codes in zip(table.dimensions, table.codes, strict=True)}
    for part in table.parts or ():
        for own, name in enumerate(part.table.dimensions):
            dimension = part.dimension(name)
            there = table.coordinates[part.cells, table.dimensions.index(dimension)]
            index, first = np.unique(part.table.coordinates[:, own], return_index=True)
            for code, place in zip(index.tolist(), there[first].tolist(), strict=True):
                out[dimension].setdefault(part.table.codes[own][code], place)
    return out


def _find_section_cells(table: Table, entry: PrioritySection, spelt: Spelling) -> BoolArray:
    """Return the cells that an entry selects."""
    chosen = np.ones(table.n_cells, bool)
    if entry.tables:
        chosen[:] = False
        for part in table.parts or ():
            if part.table.name in entry.tables:
                chosen[part.cells] = True
    only = {d: make_code_list(codes) for d, codes in entry.only.items()}
    if entry.indicators and INDICATOR in table.dimensions:
        only[INDICATOR] = entry.indicators
    for dimension, codes in only.items():
        known = spelt.get(dimension, {})
        for code in codes:
            if code not in known:
                text = f"priorities: no table has the code {code!r} of {dimension!r}."
                raise UnknownCodeError(text, hint=suggest_names(code, known))
        chosen &= np.isin(table.coordinates[:, table.dimensions.index(dimension)], [known[code] for code in codes])
    return chosen


def _find_cells_published_before(
    table: Table, entry: PrioritySection, spelt: Spelling, path: Path, tolerance: float
) -> BoolArray:
    """Return the cells that a file shows with a value; cells that it withheld are not restricted."""
    frame = read_frame(path)
    raise_error_of_missing("column", [entry.value], frame, place=f"{path.name}: line 1: ")
    names = [d for d in table.dimensions if d in frame]
    if not names:
        raise InputError(f"{path.name}: line 1: no column is a dimension.", hint=f"they are {table.dimensions}.")
    values = convert_to_numbers(frame[entry.value], entry.value)
    shown = np.flatnonzero(~np.isnan(values))
    cells = np.zeros((len(shown), len(table.dimensions)), np.int32)
    wrong: list[CellguardError] = []
    for name in names:
        seen, index = encode_frame_column(frame[name])
        place = np.array([spelt[name].get(code, -1) for code in [*seen, ""]], np.int64)[index][shown]
        for row in np.flatnonzero(place < 0)[:_MOST].tolist():
            line = int(shown[row]) + 2
            code = seen[index[shown[row]]] if index[shown[row]] >= 0 else ""
            text = f"{path.name}: line {line}: no table has the code {code!r} of {name!r}."
            wrong.append(UnknownCodeError(text, hint=suggest_names(code, spelt[name])))
        cells[:, table.dimensions.index(name)] = np.maximum(place, 0)
    PublicationError.refuse(wrong)
    found = table.cells_at(cells)
    there = found >= 0  # listed cells that are in no table are ignored
    found, shown = found[there], shown[there]
    other = np.abs(values[shown] - table.values[found]) > tolerance * np.maximum(1.0, np.abs(table.values[found]))
    if other.any():
        line, label = int(shown[np.argmax(other)]) + 2, table.label(int(found[np.argmax(other)]))
        more = f", and {int(other.sum()) - 1} others with it" if other.sum() > 1 else ""
        text = f"{path.name}: line {line}: {label} was published with another value{more}."
        raise InputError(text, hint="figures that were revised are no longer what was published: leave them out.")
    out = np.zeros(table.n_cells, bool)
    out[found] = True
    return out

"""``[[priorities]]`` of a job: cells that cost more, headline figures, cells that were published before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cellguard._io.frames import column_as_numbers, encode_frame_column, read_frame
from cellguard._types import BoolArray
from cellguard.exceptions import (
    CellguardError,
    InputError,
    PublicationError,
    UnknownCodeError,
    did_you_mean,
    raise_error_of_missing,
)
from cellguard.nouns.publication import INDICATOR
from cellguard.nouns.table import Table
from cellguard.publish.model import PrioritySection
from cellguard.publish.read import JobFile
from cellguard.publish.sections import codes_listed_in_section

__all__ = ["prioritised"]

Spelling = Mapping[str, Mapping[str, int]]
"""Dimension -> code, as any table spells it -> its number in the whole system."""

_MOST = 20
"""So many mistakes are told one by one."""


def prioritised(table: Table, file: JobFile) -> Table:
    """Return the table with what the job says of single cells: costs, and what must be published as it is."""
    entries = file.job.priorities
    if not entries:
        return table
    spelt = _spellings_for_priorities(table)
    weights, fixed = table.weights.copy(), table.fixed.copy()
    wrong: list[CellguardError] = []
    for entry in entries:
        try:
            chosen = _cells_of_priority_section(table, entry, spelt)
            if entry.published is not None:
                chosen &= _published_before(table, entry, spelt, file.file(entry.published), file.job.tolerance)
        except CellguardError as error:
            wrong.append(error)
            continue
        if entry.priority is not None:
            weights[chosen] *= entry.priority
        if entry.publish or entry.published is not None:
            wrong += _sensitive_priority_cells(
                table, chosen, "was published before" if entry.published else "must be published"
            )
            fixed |= chosen
    PublicationError.refuse(wrong)
    return table.with_(weights=weights, fixed=fixed)


def _sensitive_priority_cells(table: Table, chosen: BoolArray, what: str) -> Iterator[CellguardError]:
    bad = np.flatnonzero(chosen & table.sensitive)
    if len(bad):
        more = f", and so are {len(bad) - 1} others" if len(bad) > 1 else ""
        text = f"{table.label(int(bad[0]))} {what} and is sensitive{more}."
        yield InputError(text, hint="nothing can protect a cell that everybody sees: take it out, or change the rule.")


def _spellings_for_priorities(table: Table) -> dict[str, dict[str, int]]:
    """Return how codes may be called: by the system, and by any of its tables."""
    out = {d: {c: i for i, c in enumerate(codes)} for d, codes in zip(table.dimensions, table.codes, strict=True)}
    for part in table.parts or ():
        for own, name in enumerate(part.table.dimensions):
            dimension = part.dimension(name)
            there = table.coordinates[part.cells, table.dimensions.index(dimension)]
            index, first = np.unique(part.table.coordinates[:, own], return_index=True)
            for code, place in zip(index.tolist(), there[first].tolist(), strict=True):
                out[dimension].setdefault(part.table.codes[own][code], place)
    return out


def _cells_of_priority_section(table: Table, entry: PrioritySection, spelt: Spelling) -> BoolArray:
    """Return the cells that an entry is about."""
    chosen = np.ones(table.n_cells, bool)
    if entry.tables:
        chosen[:] = False
        for part in table.parts or ():
            if part.table.name in entry.tables:
                chosen[part.cells] = True
    only = {d: codes_listed_in_section(codes) for d, codes in entry.only.items()}
    if entry.indicators and INDICATOR in table.dimensions:
        only[INDICATOR] = entry.indicators
    for dimension, codes in only.items():
        known = spelt.get(dimension, {})
        for code in codes:
            if code not in known:
                text = f"priorities: no table has the code {code!r} of {dimension!r}."
                raise UnknownCodeError(text, hint=did_you_mean(code, known))
        chosen &= np.isin(table.coordinates[:, table.dimensions.index(dimension)], [known[code] for code in codes])
    return chosen


def _published_before(table: Table, entry: PrioritySection, spelt: Spelling, path: Path, tolerance: float) -> BoolArray:
    """Return the cells that a file shows with a value; what it withheld is as free as others."""
    frame = read_frame(path)
    raise_error_of_missing("column", [entry.value], frame, place=f"{path.name}: line 1: ")
    names = [d for d in table.dimensions if d in frame]
    if not names:
        raise InputError(f"{path.name}: line 1: no column is a dimension.", hint=f"they are {table.dimensions}.")
    values = column_as_numbers(frame[entry.value], entry.value)
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
            wrong.append(UnknownCodeError(text, hint=did_you_mean(code, spelt[name])))
        cells[:, table.dimensions.index(name)] = np.maximum(place, 0)
    PublicationError.refuse(wrong)
    found = table.cells_at(cells)
    there = found >= 0  # what is listed and stands in no table says nothing about these
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

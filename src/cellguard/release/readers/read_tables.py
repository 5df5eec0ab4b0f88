"""Read a published publication: one file per table, combined as an attacker who has all of them would do.

A cell that one table withholds and another prints is printed; intervals of one cell in two tables are intersected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import InputError, ReleaseError, suggest_names
from cellguard.model.attacker import EXTERNAL
from cellguard.model.checks import CELL_ARRAYS
from cellguard.model.linked.publication import Part
from cellguard.release.formats.sheets import make_file_name
from cellguard.release.release import Release

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["list_linked_tables", "read_tables", "release_files_to_read"]

_ENDINGS = (".csv", ".parquet", ".csv.gz", ".tab", ".tsv")
FIGURES = "derived.csv"
"""File of a release that holds derived figures, not cells."""
Pair = tuple[Part, Release]
"""A table and its published columns."""


def release_files_to_read(parts: Sequence[Part], given: str | Path | Mapping[str, str | Path]) -> dict[str, list[Path]]:
    """Return the files of each table: as given, or found by name in a folder, in every format."""
    if isinstance(given, Mapping):
        known = [*(part.name for part in parts), *(part.sheet for part in parts if part.sheet)]
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            hint = suggest_names(unknown, list(dict.fromkeys(known)))
            raise InputError(f"the publication has no table {unknown!r}.", hint=hint)
        found = {part.name: [Path(given[n]) for n in (part.name, part.sheet) if n in given] for part in parts}
    else:
        found = {}
        for part in parts:
            names = [make_file_name(name) for name in (part.name, part.sheet) if name]
            paths = [Path(given) / f"{name}{end}" for name in names for end in _ENDINGS]
            found[part.name] = [path for path in paths if path.is_file()]
    missing = [part.name for part in parts if not found[part.name]]
    if missing:
        raise InputError(
            f"no file of {', '.join(map(repr, missing[:5]))}{' and others' if len(missing) > 5 else ''}.",
            hint="a file for each table is needed, named like the table; what was not published tells nothing.",
        )
    return found


def list_linked_tables(table: Table, folder: Path) -> tuple[Table, dict[str, list[Path]]]:
    """Return a linked table with the tables that a folder shows separately, and their files.

    One file, named like the table, has all cells. Every other file shows the cells at the total of those
    dimensions for which it has no column.
    """
    from cellguard._io.frames import read_frame

    ours = [path for path in sorted(folder.iterdir()) if path.name.lower().endswith(_ENDINGS) and path.name != FIGURES]
    paths = [path for path in ours if not path.name.lower().endswith(".sdmx.csv")]  # a copy of another file
    parts = []
    for path in paths:
        shown = {name.strip().lstrip("'").lower() for name in read_frame(path)}
        dims = [d for d, name in enumerate(table.dimensions) if name.lower() in shown]
        parts.append(_extract_linked_part(table, path.name, dims))
    whole = [part for part in parts if len(part.cells) == table.n_cells]
    if not whole:
        hint = "name the file; of linked tables one with all cells is needed, of a publication one for each table."
        raise InputError(f"{folder}: is a folder, and no file in it has all cells of the table.", hint=hint)
    parts = [*whole, *(part for part in parts if len(part.cells) < table.n_cells)]
    return table.with_(parts=tuple(parts)), {path.name: [path] for path in paths}


def _extract_linked_part(table: Table, name: str, dims: list[int]) -> Part:
    """Return the cells at the total of all but some dimensions, as a table of these dimensions."""
    others = [d for d in range(len(table.dimensions)) if d not in dims]
    cells = np.flatnonzero(~table.coordinates[:, others].any(axis=1))
    own: dict[str, Any] = {array: getattr(table, array)[cells] for array in CELL_ARRAYS}
    own |= {"coordinates": table.coordinates[cells][:, dims], "relations": table.relations[:0][:, cells]}
    own |= {"rhs": table.rhs[:0], "dimensions": tuple(table.dimensions[d] for d in dims)}
    own |= {"codes": tuple(table.codes[d] for d in dims), "hierarchies": (), "attackers": (EXTERNAL,)}
    own |= {"counts": None, "statistics": None, "flags": None, "insiders": False, "crosses": (), "crosses_left_out": 0}
    return Part(name=name, table=replace(table, **own), cells=cells)


def read_tables(table: Table, files: Mapping[str, Sequence[Path]], read: Any) -> Release:
    """Return the release of a publication from the files of its tables.

    Parameters
    ----------
    table
        The system of the publication.
    files
        The files of each table, by its name. A cell that one of them prints is printed.
    read
        Function that reads the release of one table from a file, or from the columns that belong to the table.
    """
    pairs: list[Pair] = []
    for part in table.parts or ():
        values = table.values[part.cells]
        own = part.table if np.array_equal(values, part.table.values) else part.table.with_(values=values)
        for path in files[part.name]:
            beside = [other for other in table.parts or () if other is not part and path in files[other.name]]
            columns = _select_indicator_columns(path, part, beside) if beside else None
            pairs.append((part, read(own, path, columns=columns)))
    kinds = {release.method for _, release in pairs}
    if len(kinds) > 1:
        raise ReleaseError(f"the tables were made by different methods: {', '.join(sorted(kinds))}.")
    first = pairs[0][1]
    if first.withholds_cells:
        hidden = {name: _find_withheld_cells(table, pairs, name) for name in first.joined_by}
        return replace(first, table=table, **hidden)
    if len(np.unique(np.concatenate([part.cells for part, _ in pairs]))) < table.n_cells:
        raise InputError("cells that no table shows cannot be read: only their producer knows them.")
    changed = {name: _join_numbers(table, pairs, name) for name in first.get_cell_arrays()}
    return replace(first, table=table, **changed)


def _select_indicator_columns(path: Path, part: Part, beside: Sequence[Part]) -> dict[str, Any]:
    """Return the columns of one indicator from a file with several; keep columns that belong to none of them."""
    from cellguard._io.frames import read_frame

    kinds = ("value", "status", "lower", "upper")
    mine = {part.name_sheet_column(kind).lower(): kind for kind in kinds}
    others = {other.name_sheet_column(kind).lower() for other in beside for kind in kinds}
    return {
        mine.get(name.strip().lower(), name): column
        for name, column in read_frame(path).items()
        if name.strip().lower() not in others
    }


def _find_withheld_cells(table: Table, pairs: Sequence[Pair], name: str) -> Any:
    """Return which cells are in no table; refuse a sensitive cell that a table prints, and name both places."""
    hidden = np.ones(table.n_cells, bool)
    hides, shows = np.full(table.n_cells, -1), np.full(table.n_cells, -1)
    for k, (part, release) in enumerate(pairs):
        suppressed = np.asarray(getattr(release, name))
        hides[part.cells[suppressed]] = k
        shows[part.cells[~suppressed]] = k
        hidden[part.cells[~suppressed]] = False
    both = np.flatnonzero(table.sensitive & (hides >= 0) & (shows >= 0))
    if len(both):
        cell = int(both[0])
        one, other = (pairs[int(k[cell])][0].name for k in (hides, shows))
        more = f", and so are {len(both) - 1} others" if len(both) > 1 else ""
        raise ReleaseError(f"{table.label(cell)} is sensitive, withheld in {one!r} and published in {other!r}{more}.")
    return hidden


def _merge_numbers(table: Table, pairs: Sequence[Pair], name: str) -> Any:
    """Return the published number of each cell; refuse two tables with different numbers."""
    out, said = np.full(table.n_cells, np.nan), np.full(table.n_cells, -1)
    for k, (part, release) in enumerate(pairs):
        new, known = np.asarray(getattr(release, name)), out[part.cells]
        other = np.flatnonzero(~np.isnan(known) & (known != new))
        if len(other):
            cell = int(part.cells[other[0]])
            places = f"{pairs[int(said[cell])][0].name!r} and {part.name!r}"
            raise ReleaseError(f"{table.label(cell)}: {places} publish different numbers for it.")
        out[part.cells], said[part.cells] = new, k
    return out


def _join_numbers(table: Table, pairs: Sequence[Pair], name: str) -> Any:
    """Combine what the tables publish about each cell: the largest or least number, or the one they agree on."""
    how = pairs[0][1].joined_by.get(name)
    if how is None:
        return _merge_numbers(table, pairs, name)
    join, start = {"largest": (np.maximum, -np.inf), "least": (np.minimum, np.inf)}[how]
    out = np.full(table.n_cells, start)
    for part, release in pairs:
        out[part.cells] = join(out[part.cells], getattr(release, name))
    return out

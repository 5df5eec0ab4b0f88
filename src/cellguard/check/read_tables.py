"""What was published of a publication: a file for each table, put together as an attacker does who has all of them.

A cell that one table withholds and another prints is printed; intervals of one cell in two tables are cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import InputError, ReleaseError, did_you_mean
from cellguard.nouns.attacker import EXTERNAL
from cellguard.nouns.checks import CELL_ARRAYS
from cellguard.nouns.publication import Part
from cellguard.nouns.release import Intervals, Release, Suppression
from cellguard.nouns.sheets import file_name_of_sheet

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = ["linked_tables_to_read", "read_tables", "release_files_to_read"]

_ENDINGS = (".csv", ".parquet", ".csv.gz", ".tab", ".tsv")
Pair = tuple[Part, Release]
"""A table and what was published of it."""


def release_files_to_read(parts: Sequence[Part], given: str | Path | Mapping[str, str | Path]) -> dict[str, list[Path]]:
    """Return the files of each table: as they are named, or as they are called in a folder, each format of them."""
    if isinstance(given, Mapping):
        known = [*(part.name for part in parts), *(part.sheet for part in parts if part.sheet)]
        unknown = next((name for name in given if name not in known), None)
        if unknown is not None:
            hint = did_you_mean(unknown, list(dict.fromkeys(known)))
            raise InputError(f"the publication has no table {unknown!r}.", hint=hint)
        found = {part.name: [Path(given[n]) for n in (part.name, part.sheet) if n in given] for part in parts}
    else:
        found = {}
        for part in parts:
            names = [file_name_of_sheet(name) for name in (part.name, part.sheet) if name]
            paths = [Path(given) / f"{name}{end}" for name in names for end in _ENDINGS]
            found[part.name] = [path for path in paths if path.is_file()]
    missing = [part.name for part in parts if not found[part.name]]
    if missing:
        raise InputError(
            f"no file of {', '.join(map(repr, missing[:5]))}{' and others' if len(missing) > 5 else ''}.",
            hint="a file for each table is needed, named like the table; what was not published tells nothing.",
        )
    return found


def linked_tables_to_read(table: Table, folder: Path) -> tuple[Table, dict[str, list[Path]]]:
    """Return a table of linked ones with those that a folder shows of it apart, and their files.

    One file, named like the table, has all cells. Every other file shows those that are at the total of the
    dimensions for which it has no column.
    """
    from cellguard._io.frames import read_frame

    ours = [path for path in sorted(folder.iterdir()) if path.name.lower().endswith(_ENDINGS)]
    paths = [path for path in ours if not path.name.lower().endswith(".sdmx.csv")]  # a copy of another file
    parts = []
    for path in paths:
        shown = {name.strip().lstrip("'").lower() for name in read_frame(path)}
        dims = [d for d, name in enumerate(table.dimensions) if name.lower() in shown]
        parts.append(_linked_part_as_read(table, path.name, dims))
    whole = [part for part in parts if len(part.cells) == table.n_cells]
    if not whole:
        hint = "name the file; of linked tables one with all cells is needed, of a publication one for each table."
        raise InputError(f"{folder}: is a folder, and no file in it has all cells of the table.", hint=hint)
    parts = [*whole, *(part for part in parts if len(part.cells) < table.n_cells)]
    return table.with_(parts=tuple(parts)), {path.name: [path] for path in paths}


def _linked_part_as_read(table: Table, name: str, dims: list[int]) -> Part:
    """Return the cells that are at the total of all but some dimensions, as a table of these."""
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
        The files of each table, by its name: what one of them prints is printed.
    read
        Reads the release of one table from a file, or from those columns of it that are the table's.
    """
    pairs: list[Pair] = []
    for part in table.parts or ():
        values = table.values[part.cells]
        own = part.table if np.array_equal(values, part.table.values) else part.table.with_(values=values)
        for path in files[part.name]:
            beside = [other for other in table.parts or () if other is not part and path in files[other.name]]
            columns = _indicator_columns_as_read(path, part, beside) if beside else None
            pairs.append((part, read(own, path, columns=columns)))
    kinds = {release.method for _, release in pairs}
    if len(kinds) > 1:
        raise ReleaseError(f"the tables were made by different methods: {', '.join(sorted(kinds))}.")
    first = pairs[0][1]
    if isinstance(first, Suppression):
        return replace(first, table=table, suppressed=_withheld_in_read_tables(table, pairs))
    if len(np.unique(np.concatenate([part.cells for part, _ in pairs]))) < table.n_cells:
        raise InputError("cells that no table shows are known to whoever made the release only: they cannot be read.")
    if isinstance(first, Intervals):
        return replace(first, table=table, **_read_intervals_in_common(table, pairs))
    changed = {name: _agreed_numbers_as_read(table, pairs, name) for name in first.cell_arrays()}
    return replace(first, table=table, **changed)


def _indicator_columns_as_read(path: Path, part: Part, beside: Sequence[Part]) -> dict[str, Any]:
    """Return a file with several indicators as one of them has it; what belongs to none of them stays."""
    from cellguard._io.frames import read_frame

    kinds = ("value", "status", "lower", "upper")
    mine = {part.column_in_sheet(kind).lower(): kind for kind in kinds}
    others = {other.column_in_sheet(kind).lower() for other in beside for kind in kinds}
    return {
        mine.get(name.strip().lower(), name): column
        for name, column in read_frame(path).items()
        if name.strip().lower() not in others
    }


def _withheld_in_read_tables(table: Table, pairs: Sequence[Pair]) -> Any:
    """Return which cells stand in no table; a sensitive one that a table prints is refused with both places."""
    hidden = np.ones(table.n_cells, bool)
    hides, shows = np.full(table.n_cells, -1), np.full(table.n_cells, -1)
    for k, (part, release) in enumerate(pairs):
        suppressed = np.asarray(getattr(release, "suppressed"))  # noqa: B009 - the pattern of one of its kind
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


def _agreed_numbers_as_read(table: Table, pairs: Sequence[Pair], name: str) -> Any:
    """Return what is published of each cell; two tables that say different things are refused."""
    out, said = np.full(table.n_cells, np.nan), np.full(table.n_cells, -1)
    for k, (part, release) in enumerate(pairs):
        new, known = np.asarray(getattr(release, name)), out[part.cells]
        other = np.flatnonzero(~np.isnan(known) & (known != new))
        if len(other):
            cell = int(part.cells[other[0]])
            places = f"{pairs[int(said[cell])][0].name!r} and {part.name!r}"
            raise ReleaseError(f"{table.label(cell)}: {places} publish different numbers of it.")
        out[part.cells], said[part.cells] = new, k
    return out


def _read_intervals_in_common(table: Table, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the ends of what the intervals of each cell have in common."""
    out = {"lower": np.full(table.n_cells, -np.inf), "upper": np.full(table.n_cells, np.inf)}
    for part, release in pairs:
        for name, join in (("lower", np.maximum), ("upper", np.minimum)):
            out[name][part.cells] = join(out[name][part.cells], getattr(release, name))
    return out

"""Tables as CSV and Parquet files with a description beside them, and as frames."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import FloatArray
from cellguard.exceptions import FormatError, InputError
from cellguard.nouns.assemble import FrameReading, relations_from_hierarchies, table_from_frame
from cellguard.nouns.attacker import EXTERNAL, Attacker
from cellguard.nouns.checks import CELL_ARRAYS
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.table import Table
from cellguard.nouns.totals import total_among

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard._io.description import Description, DimensionEntry

__all__ = ["files_of_stored_table", "read_stored_table", "store_table", "table_as_columns"]


_COLUMNS = {
    "status": "status", "lower": "lower", "upper": "upper", "sliding": "sliding",
    "weights": "weight", "lb": "lb", "ub": "ub", "counts": "count",
}  # fmt: skip
"""Field -> the usual name of its column."""
_SHORT = """\
name = "my table"
[dimensions.region]
file = "regions.hrc"
[dimensions.sex]"""


def table_as_columns(table: Table) -> dict[str, Any]:
    """Return the table as columns: codes, value, and what differs from the usual."""
    out: dict[str, Any] = dict(table.cell_codes())
    name = _columns_to_store(table)
    out[name["values"]] = table.values
    if table.sensitive.any() or table.fixed.any():
        words = np.array(["safe", "sensitive", "fixed", "sensitive fixed"], dtype=object)
        out[name["status"]] = words[table.sensitive + 2 * table.fixed].tolist()
    usual = {"weights": np.abs(table.values), "lb": 0.0, "ub": np.inf, "lower": 0.0, "upper": 0.0, "sliding": 0.0}
    for field, value in usual.items():
        column = getattr(table, field)
        if not (column == value).all():
            out[name[field]] = column
    if table.counts is not None:
        out[name["counts"]] = table.counts
    return out | _stored_contributions(table)


def _stored_contributions(table: Table) -> dict[str, Any]:
    """Return the largest contributions as columns top1, top2, ..., where they say all that rules look at."""
    cells = table.statistics
    if cells is None or not table.dimensions or cells.shadow or table.counts is None:
        return {}
    more = any(extra is not None for extra in (cells.top_weights, cells.protected, cells.request))
    if more or not np.array_equal(cells.total, np.abs(table.values)):
        return {}
    return {f"top{k + 1}": cells.top[:, k] for k in range(min(cells.units, cells.top.shape[1]))}


def _columns_to_store(table: Table) -> dict[str, str]:
    """Return the column of each field; one that is called like a dimension gives way."""
    from cellguard._io.frames import free_frame_column_name

    taken = {name.lower() for name in table.dimensions}
    return {field: free_frame_column_name(usual, taken) for field, usual in {"values": "value", **_COLUMNS}.items()}


def _is_stored_with_description(path: str | Path) -> bool:
    return str(path).lower().endswith((".csv", ".csv.gz", ".parquet"))


def _stem_and_ending_of_stored(path: Path) -> tuple[str, str]:
    """Part ``cells.csv.gz`` into ``cells`` and ``.csv.gz``."""
    packed = ".gz" if path.name.lower().endswith(".gz") else ""
    plain = Path(path.name[: len(path.name) - len(packed)])
    return plain.stem, path.name[len(plain.stem) :]


def _file_beside_stored_table(path: Path, ending: str) -> Path:
    return path.with_name(_stem_and_ending_of_stored(path)[0] + ending)


# ---------------------------------------------------------------- writing


def store_table(table: Table, path: str | Path) -> None:
    """Write a table in the format that the ending of the name says (see :meth:`Table.write`)."""
    if _is_stored_with_description(path):
        _store_with_description(table, Path(path))
        return
    from cellguard._io.jj import write_jj

    write_jj(path, {name: getattr(table, name) for name in (*CELL_ARRAYS, "relations", "rhs")})


def _store_with_description(table: Table, path: Path) -> None:
    """Write the cells (.csv or .parquet), and beside them the description and, where needed, the relations."""
    from cellguard._io.description import Description, write_description
    from cellguard._io.frames import write_csv, write_parquet

    cells, name_of = table_as_columns(table), _columns_to_store(table)
    write = write_parquet if path.suffix.lower() == ".parquet" else write_csv
    entries: dict[str, Any] = {"name": table.name, "integer": table.integer, "missing": "unpublished"}
    entries["smallest_width"] = table.smallest_width
    entries["insiders"] = False if table.insiders is False else None  # those found from the table are found again
    entries["known_zeros"] = _stored_zeros_are_known(table)
    entries["value"] = name_of.pop("values")
    entries["columns"] = {f: name for f, name in name_of.items() if name != _COLUMNS[f] and name in cells}
    entries["dimensions"] = {
        name: _stored_dimension(table.codes[d], table.hierarchies[d] if table.hierarchies else None)
        for d, name in enumerate(table.dimensions)
    }
    entries["attackers"] = [_stored_attacker(a) for a in table.attackers if a is not EXTERNAL and not a.derived]
    if not _hierarchies_imply_relations(table):
        file = _file_beside_stored_table(path, f".relations{_stem_and_ending_of_stored(path)[1]}")
        T = table.relations
        row = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
        write({"relation": row, "cell": T.indices.astype(np.int64), "coefficient": T.data}, file)
        where = np.flatnonzero(table.rhs)
        rhs = list(zip(where.tolist(), table.rhs[where].tolist(), strict=True))
        entries |= {"relations": file.name, "n_relations": T.shape[0], "rhs": rhs}
    write(cells, path)
    write_description(_file_beside_stored_table(path, ".toml"), Description(**entries), about=path.name)


def _stored_zeros_are_known(table: Table) -> bool:
    """Whether reading the table as it is usually read, with empty cells known to everybody, gives it back."""
    count = table.counts if table.counts is not None else table.values if table.integer else np.ones(table.n_cells)
    empty = (count == 0) & (table.values == 0) & ~table.sensitive
    return bool((table.fixed & (table.lb == 0) & (table.ub == 0))[empty].all())


def _hierarchies_imply_relations(table: Table) -> bool:
    """Whether the hierarchies imply exactly the table's relations."""
    if not table.hierarchies or table.rhs.any():
        return False
    T, own = relations_from_hierarchies(table.hierarchies, table.coordinates), table.relations
    return T.shape == own.shape and all(
        np.array_equal(a, b) for a, b in ((T.indptr, own.indptr), (T.indices, own.indices), (T.data, own.data))
    )


def _stored_dimension(codes: tuple[str, ...], hierarchy: Hierarchy | None) -> DimensionEntry:
    """Describe a dimension: as an outline where that reads back the same, else by its arrays."""
    from cellguard._io.description import DimensionEntry

    if hierarchy is None:
        return DimensionEntry(codes=list(codes))
    entry = DimensionEntry(outline=_stored_outline_of_hierarchy(hierarchy), total=hierarchy.total)
    try:
        if _hierarchy_of_stored_entry(entry, Path()) == hierarchy:
            return entry
    except InputError:
        pass
    labels = None if hierarchy.labels == codes else list(hierarchy.labels)
    return DimensionEntry(codes=list(codes), parents=hierarchy.parents.tolist(), labels=labels)


def _stored_outline_of_hierarchy(h: Hierarchy) -> str:
    lines = [
        "    " * (depth - 1) + (code if code == label else f"{code}  {label}")
        for code, label, depth in zip(h.codes[1:], h.labels[1:], h.depth[1:].tolist(), strict=True)
    ]
    return "\n".join([*lines, ""])


def _stored_attacker(a: Attacker) -> Any:
    from cellguard._io.description import AttackerEntry

    fields: dict[str, Any] = {name: getattr(a, name) for name in AttackerEntry.model_fields}
    return AttackerEntry(**{name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in fields.items()})


# ---------------------------------------------------------------- reading


def files_of_stored_table(path: str | Path) -> list[Path]:
    """Return what is read of a table: its file, the description beside it, and hierarchies and relations it names."""
    if not _is_stored_with_description(path):
        return [Path(path)]
    from cellguard._io.description import read_description

    about = _file_beside_stored_table(Path(path), ".toml")
    description = read_description(about)
    named = [entry.file for entry in description.dimensions.values()] + [description.relations]
    return [Path(path), about, *(about.parent / name for name in named if name is not None)]


def read_stored_table(path: str | Path) -> Table:
    """Read a table from whatever :meth:`Table.write` writes."""
    if _is_stored_with_description(path):
        return _read_stored_with_description(Path(path))
    from cellguard._io.jj import read_jj

    return Table(name=Path(path).name.removesuffix(".gz").removesuffix(".jj"), **read_jj(path))


def _read_stored_with_description(path: Path) -> Table:
    """Read a table from a file of cells and the description beside it."""
    from cellguard._io.description import read_description
    from cellguard._io.frames import read_frame

    about = _file_beside_stored_table(path, ".toml")
    if path.is_file() and not about.is_file():
        raise InputError(
            f"{path}: there is no description {about.name} beside it.", hint=f"write one, as short as:\n{_SHORT}"
        )
    given = read_frame(path)
    description = read_description(about)
    listed = [name for name, e in description.dimensions.items() if e.codes is not None and e.parents is None]
    if description.relations is None and (listed or not description.dimensions):
        raise FormatError.at(about, None, "without dimensions that add up, a file of relations is needed.")
    changes: dict[str, Any] = {"hierarchies": ()} if listed else {}
    dims: Mapping[str, Any]
    if description.dimensions:
        dims = {name: _stored_hierarchy(e, about, given.get(name)) for name, e in description.dimensions.items()}
    else:
        given, dims = _stored_cells_by_number(path, given)
        changes = {"hierarchies": (), "dimensions": (), "codes": (), "coordinates": np.zeros((0, 0), np.int32)}
    name = description.name if description.name is not None else _stem_and_ending_of_stored(path)[0]
    rows = len(next(iter(given.values()), ()))
    reading = FrameReading(
        value=description.value, missing=description.missing, repair=description.repair,
        crossings=description.crossings, columns=_stored_columns_as_described(about, description, given),
        relations=_read_stored_relations(about, description, rows), known_zeros=description.known_zeros,
    )  # fmt: skip
    attackers = (EXTERNAL, *(Attacker(**dict(entry)) for entry in description.attackers))
    table = table_from_frame(
        given, dims, reading, name=name, integer=description.integer, smallest_width=description.smallest_width,
        insiders=description.insiders, attackers=attackers, **changes,
    )  # fmt: skip
    usual = [name for name in takewhile(given.__contains__, (f"top{k}" for k in count(1))) if name not in dims]
    top = description.top or usual
    if not top or table.counts is None:
        return table
    from cellguard.data.rules import with_contributions

    return with_contributions(table, given, top=top, known_zeros=description.known_zeros)


def _stored_columns_as_described(about: Path, description: Description, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each field: as the description says, or of the usual name."""
    unknown = sorted(set(description.columns) - set(_COLUMNS))
    if unknown:
        known = ", ".join(_COLUMNS)
        raise FormatError.at(about, None, f"columns.{unknown[0]}: unknown entry.", hint=f"known are {known}.")
    usual = {f: name for f, name in _COLUMNS.items() if name in given and name not in description.dimensions}
    return usual | description.columns


def _stored_hierarchy(entry: DimensionEntry, about: Path, column: Any) -> Hierarchy | None:
    """Return the hierarchy that an entry describes; some need the codes that occur, None leaves it to the values."""
    if entry.codes is not None and entry.parents is None:
        return Hierarchy.flat(entry.codes[1:], total=entry.codes[0]) if entry.codes else Hierarchy.flat([])
    if entry.codes is not None or entry.outline is not None or entry.file is not None:
        return _hierarchy_of_stored_entry(entry, about.parent)
    from cellguard._io.frames import encode_frame_column

    listed = [] if column is None else encode_frame_column(column)[0]
    total = entry.total or "Total"
    if total not in listed and entry.digits is None and (entry.total is None or total_among(listed, letter=True)):
        return None
    if total not in listed and entry.digits is not None:
        total = total_among(listed) or total
    codes = [c for c in listed if c != total]
    return (
        Hierarchy.flat(codes, total=total)
        if entry.digits is None
        else Hierarchy.from_digits(codes, entry.digits, total=total)
    )


def _hierarchy_of_stored_entry(entry: DimensionEntry, folder: Path) -> Hierarchy:
    if entry.file is not None:
        return Hierarchy.read(folder / entry.file, total=entry.total, levels=entry.levels)
    if entry.outline is not None:
        return Hierarchy.from_text(entry.outline, total=entry.total)
    if not entry.parents or len({len(row) for row in entry.parents} | {len(entry.codes or ())}) != 1:
        raise InputError("a dimension needs a parent for each of its codes, in each tree.")
    return Hierarchy(tuple(entry.codes or ()), np.array(entry.parents), tuple(entry.labels or ()))


def _read_stored_relations(about: Path, description: Description, n: int) -> tuple[csr_array, FloatArray] | None:
    """Return the relations of the file that the description names, if any."""
    from scipy.sparse import csr_array

    from cellguard._io.frames import column_as_numbers, read_frame

    if description.relations is None:
        return None
    file = about.parent / description.relations
    given = read_frame(file)
    absent = sorted({"relation", "cell", "coefficient"} - set(given))
    if absent:
        raise FormatError.at(file, 1, f"there is no column {absent[0]!r}.")
    row, cell, coefficient = (column_as_numbers(given[name], name) for name in ("relation", "cell", "coefficient"))
    m = description.n_relations
    for index, size, what in ((row, m, "relation"), (cell, n, "cell")):
        if not ((index >= 0) & (index < size) & (index == np.floor(index))).all():
            hint = "n_relations in the description is their number." if what == "relation" else None
            raise FormatError.at(file, None, f"a {what} lies outside 0..{size - 1}.", hint=hint)
    if m > len(row) + len(description.rhs):
        raise FormatError.at(about, None, f"n_relations: {m} relations are claimed, more than the file can hold.")
    rhs = np.zeros(m)
    for i, b in description.rhs:
        if not 0 <= i < m:
            raise FormatError.at(about, None, f"rhs: relation {i} lies outside 0..{m - 1}.")
        rhs[i] = b
    return csr_array((coefficient, (row.astype(np.int64), cell.astype(np.int64))), shape=(m, n)), rhs


def _stored_cells_by_number(path: Path, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Hierarchy]]:
    """Return the columns of a table of raw equations as those of one dimension, the numbers of the cells."""
    from cellguard._io.frames import column_as_numbers

    if "cell" not in given:
        raise FormatError.at(path, 1, "there is neither a dimension in the description nor a column 'cell'.")
    index = column_as_numbers(given["cell"], "cell")
    if not np.array_equal(index, np.arange(len(index))):
        raise FormatError.at(path, None, "cells are numbered from 0 without gaps.")
    codes = [str(i) for i in range(len(index))]
    return {**given, "cell": codes}, {"cell": Hierarchy.flat(codes)}

"""Tables as CSV and Parquet files with a description beside them, and as frames."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._hooks import call_hook
from cellguard._types import FloatArray
from cellguard.exceptions import FormatError, InputError
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.checks import CELL_ARRAYS
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.sources.assemble import FrameReading, build_from_frame, build_relations
from cellguard.model.table import Table
from cellguard.model.totals import find_total
from cellguard.model.trees import sort_codes

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard._io.description import Description, DimensionEntry

__all__ = ["build_columns", "list_table_files", "read_stored_table", "store_table"]


_COLUMNS = {
    "status": "status", "lower": "lower", "upper": "upper", "sliding": "sliding",
    "weights": "weight", "lb": "lb", "ub": "ub", "counts": "count",
    "counted": "is_count",
}  # fmt: skip
"""Field -> default name of its column."""
_SHORT = """\
name = "my table"
[dimensions.region]
file = "regions.hrc"
[dimensions.sex]"""


def build_columns(table: Table) -> dict[str, Any]:
    """Return the table as columns: codes, value, and all fields that differ from their defaults."""
    out: dict[str, Any] = dict(table.cell_codes())
    name = _name_columns(table)
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
    if table.counted is not None:
        out[name["counted"]] = table.counted.astype(np.int64)
    return out | _build_contribution_columns(table)


def _build_contribution_columns(table: Table) -> dict[str, Any]:
    """Return the largest contributions as columns top1, top2, ..., if they contain all that rules need."""
    cells = table.statistics
    if cells is None or not table.dimensions or cells.shadow or table.counts is None:
        return {}
    more = any(extra is not None for extra in (cells.top_weights, cells.protected, cells.request))
    if more or not np.array_equal(cells.total, np.abs(table.values)):
        return {}
    return {f"top{k + 1}": cells.top[:, k] for k in range(min(cells.units, cells.top.shape[1]))}


def _name_columns(table: Table) -> dict[str, str]:
    """Return the column name of each field; avoid the names of dimensions."""
    from cellguard._io.frames import free_frame_column_name

    taken = {name.lower() for name in table.dimensions}
    return {field: free_frame_column_name(usual, taken) for field, usual in {"values": "value", **_COLUMNS}.items()}


def _is_stored_with_description(path: str | Path) -> bool:
    return str(path).lower().endswith((".csv", ".csv.gz", ".parquet"))


def _split_ending(path: Path) -> tuple[str, str]:
    """Split ``cells.csv.gz`` into ``cells`` and ``.csv.gz``."""
    packed = ".gz" if path.name.lower().endswith(".gz") else ""
    plain = Path(path.name[: len(path.name) - len(packed)])
    return plain.stem, path.name[len(plain.stem) :]


def _get_sibling(path: Path, ending: str) -> Path:
    return path.with_name(_split_ending(path)[0] + ending)


# ---------------------------------------------------------------- writing


def store_table(table: Table, path: str | Path) -> None:
    """Write a table in the format given by the file's extension (see :meth:`Table.write`)."""
    if _is_stored_with_description(path):
        _store_with_description(table, Path(path))
        return
    from cellguard._io.jj import write_jj

    write_jj(path, {name: getattr(table, name) for name in (*CELL_ARRAYS, "relations", "rhs")})


def _store_with_description(table: Table, path: Path) -> None:
    """Write the cells (.csv or .parquet), a description next to them and, where needed, the relations."""
    table = table.remove_public_knowledge()  # derived again when read
    from cellguard._io.description import Description, write_description
    from cellguard._io.frames import write_csv, write_parquet

    cells, name_of = build_columns(table), _name_columns(table)
    write = write_parquet if path.suffix.lower() == ".parquet" else write_csv
    entries: dict[str, Any] = {"name": table.name, "integer": table.integer, "missing": "unpublished"}
    entries["smallest_width"] = table.smallest_width
    entries["insiders"] = False if table.insiders is False else None  # those found from the table are found again
    entries["whole"] = table.whole
    entries["known_zeros"] = "counts" if table.known_zeros is None else table.known_zeros
    entries["value"] = name_of.pop("values")
    entries["columns"] = {f: name for f, name in name_of.items() if name != _COLUMNS[f] and name in cells}
    entries["dimensions"] = {
        name: _describe_dimension(table.codes[d], table.hierarchies[d] if table.hierarchies else None)
        for d, name in enumerate(table.dimensions)
    }
    entries["attackers"] = [_describe_attacker(a) for a in table.attackers if a is not EXTERNAL and not a.derived]
    if not _are_relations_implied(table):
        file = _get_sibling(path, f".relations{_split_ending(path)[1]}")
        T = table.relations
        row = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))
        write({"relation": row, "cell": T.indices.astype(np.int64), "coefficient": T.data}, file, private=True)
        where = np.flatnonzero(table.rhs)
        rhs = list(zip(where.tolist(), table.rhs[where].tolist(), strict=True))
        entries |= {"relations": file.name, "n_relations": T.shape[0], "rhs": rhs}
    write(cells, path, private=True)
    write_description(_get_sibling(path, ".toml"), Description(**entries), about=path.name)


def _are_relations_implied(table: Table) -> bool:
    """Return whether the hierarchies imply exactly the table's relations."""
    if not table.hierarchies or table.rhs.any():
        return False
    T, own = build_relations(table.hierarchies, table.coordinates), table.relations
    return T.shape == own.shape and all(
        np.array_equal(a, b) for a, b in ((T.indptr, own.indptr), (T.indices, own.indices), (T.data, own.data))
    )


def _describe_dimension(codes: tuple[str, ...], hierarchy: Hierarchy | None) -> DimensionEntry:
    """Describe a dimension by an outline if that reads back the same, otherwise by its arrays."""
    from cellguard._io.description import DimensionEntry

    if hierarchy is None:
        return DimensionEntry(codes=list(codes))
    entry = DimensionEntry(outline=_format_outline(hierarchy), total=hierarchy.total)
    try:
        if _build_hierarchy(entry, Path()) == hierarchy:
            return entry
    except InputError:
        pass
    labels = None if hierarchy.labels == codes else list(hierarchy.labels)
    return DimensionEntry(codes=list(codes), parents=hierarchy.parents.tolist(), labels=labels)


def _format_outline(h: Hierarchy) -> str:
    lines = [
        "    " * (depth - 1) + (code if code == label else f"{code}  {label}")
        for code, label, depth in zip(h.codes[1:], h.labels[1:], h.depth[1:].tolist(), strict=True)
    ]
    return "\n".join([*lines, ""])


def _describe_attacker(a: Attacker) -> Any:
    from cellguard._io.description import AttackerEntry

    fields: dict[str, Any] = {name: getattr(a, name) for name in AttackerEntry.model_fields}
    return AttackerEntry(**{name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in fields.items()})


# ---------------------------------------------------------------- reading


def list_table_files(path: str | Path) -> list[Path]:
    """Return the files of a table: its own, its description, and the hierarchies and relations that it names."""
    if not _is_stored_with_description(path):
        return [Path(path)]
    from cellguard._io.description import read_description

    about = _get_sibling(Path(path), ".toml")
    description = read_description(about)
    named = [entry.file for entry in description.dimensions.values()] + [description.relations]
    return [Path(path), about, *(about.parent / name for name in named if name is not None)]


def read_stored_table(path: str | Path) -> Table:
    """Read a table from any format that :meth:`Table.write` writes."""
    if _is_stored_with_description(path):
        return _read_stored_with_description(Path(path))
    from cellguard._io.jj import read_jj

    return Table(name=Path(path).name.removesuffix(".gz").removesuffix(".jj"), **read_jj(path))


def _read_stored_with_description(path: Path) -> Table:
    """Read a table from a file of cells and the description next to it."""
    from cellguard._io.description import read_description
    from cellguard._io.frames import read_frame

    about = _get_sibling(path, ".toml")
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
        dims = {name: _read_hierarchy(e, about, given.get(name)) for name, e in description.dimensions.items()}
    else:
        given, dims = _number_cells(path, given)
        changes = {"hierarchies": (), "dimensions": (), "codes": (), "coordinates": np.zeros((0, 0), np.int32)}
    name = description.name if description.name is not None else _split_ending(path)[0]
    rows = len(next(iter(given.values()), ()))
    zeros = None if description.known_zeros == "counts" else description.known_zeros
    reading = FrameReading(
        value=description.value, missing=description.missing, repair=description.repair,
        crossings=description.crossings, columns=_find_described_columns(about, description, given),
        relations=_read_stored_relations(about, description, rows), known_zeros=zeros,
    )  # fmt: skip
    attackers = (EXTERNAL, *(Attacker(**dict(entry)) for entry in description.attackers))
    whole = description.whole
    if whole is None:
        whole = "integer" not in description.model_fields_set
    table = build_from_frame(
        given, dims, reading, name=name, integer=description.integer, smallest_width=description.smallest_width,
        insiders=description.insiders, attackers=attackers, whole=whole, **changes,
    )  # fmt: skip
    usual = [name for name in takewhile(given.__contains__, (f"top{k}" for k in count(1))) if name not in dims]
    top = description.top or usual
    if not top or table.counts is None:
        return table
    full: Table = call_hook("add_contributions", table, given, top=top, known_zeros=zeros is not False)
    return full


def _find_described_columns(about: Path, description: Description, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the column of each field: as described, or with its default name."""
    unknown = sorted(set(description.columns) - set(_COLUMNS))
    if unknown:
        known = ", ".join(_COLUMNS)
        raise FormatError.at(about, None, f"columns.{unknown[0]}: unknown entry.", hint=f"known are {known}.")
    usual = {f: name for f, name in _COLUMNS.items() if name in given and name not in description.dimensions}
    return usual | description.columns


def _read_hierarchy(entry: DimensionEntry, about: Path, column: Any) -> Hierarchy | None:
    """Return the hierarchy described by an entry, from the codes in the data if needed; None: find it from values."""
    if entry.codes is not None and entry.parents is None:
        return Hierarchy.flat(entry.codes[1:], total=entry.codes[0]) if entry.codes else Hierarchy.flat([])
    if entry.codes is not None or entry.outline is not None or entry.file is not None:
        return _build_hierarchy(entry, about.parent)
    from cellguard._io.frames import encode_frame_column

    listed = [] if column is None else encode_frame_column(column)[0]
    total = entry.total or "Total"
    if total not in listed and entry.digits is None and (entry.total is None or find_total(listed, letter=True)):
        return None
    if total not in listed and entry.digits is not None:
        total = find_total(listed) or total
    codes = sort_codes(c for c in listed if c != total)
    return (
        Hierarchy.flat(codes, total=total)
        if entry.digits is None
        else Hierarchy.from_digits(codes, entry.digits, total=total)
    )


def _build_hierarchy(entry: DimensionEntry, folder: Path) -> Hierarchy:
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

    from cellguard._io.frames import convert_to_numbers, read_frame

    if description.relations is None:
        return None
    file = about.parent / description.relations
    given = read_frame(file)
    absent = sorted({"relation", "cell", "coefficient"} - set(given))
    if absent:
        raise FormatError.at(file, 1, f"there is no column {absent[0]!r}.")
    row, cell, coefficient = (convert_to_numbers(given[name], name) for name in ("relation", "cell", "coefficient"))
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


def _number_cells(path: Path, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Hierarchy]]:
    """Return the columns of a table of raw equations with one dimension: the numbers of the cells."""
    from cellguard._io.frames import convert_to_numbers

    if "cell" not in given:
        raise FormatError.at(path, 1, "there is neither a dimension in the description nor a column 'cell'.")
    index = convert_to_numbers(given["cell"], "cell")
    if not np.array_equal(index, np.arange(len(index))):
        raise FormatError.at(path, None, "cells are numbered from 0 without gaps.")
    codes = [str(i) for i in range(len(index))]
    return {**given, "cell": codes}, {"cell": Hierarchy.flat(codes)}

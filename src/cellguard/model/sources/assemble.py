"""Build tables from a frame of cells, from an array of leaf cells, or from tables that share cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.numbers.multiples import remove_rounding_noise
from cellguard._engine.space.cell_grid import (
    build_grid_relations,
    compute_grid_keys,
    decode_grid_keys,
    enumerate_block_keys,
    find_grid_places,
    sum_leaves,
)
from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray
from cellguard.exceptions import InputError, UnknownCodeError, raise_error_of_missing, suggest_names
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.linked.cross import add_cross
from cellguard.model.linked.reconcile import reconcile_additively
from cellguard.model.table import Table
from cellguard.model.totals import find_flat_total, find_total, refuse_doubled_totals

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "Crossings",
    "build_coordinates",
    "build_from_frame",
    "build_from_leaves",
    "build_relations",
    "format_cell_name",
]  # fmt: skip

Crossings = Iterable[str | Iterable[str] | Mapping[str, int]]

_STATUS = {
    "s": "safe", "safe": "safe", "published": "safe", "": "safe",
    "u": "sensitive", "m": "sensitive", "unsafe": "sensitive", "sensitive": "sensitive", "primary": "sensitive",
    "manual": "sensitive", "z": "fixed", "fixed": "fixed", "protected": "fixed", "sensitive fixed": "sensitive fixed",
    "a": "sensitive", "b": "sensitive", "c": "sensitive", "d": "safe", "v": "safe",
}  # fmt: skip
"""Status word or letter -> status. D (business statistics) is a secondary suppression, so the cell itself is safe."""


def build_coordinates(hierarchies: Mapping[str, Hierarchy], crossings: Crossings | None = None) -> Coordinates:
    """Return the cells of a table: all combinations of codes, or those of the crossings only.

    A crossing names the dimensions that are not at their total; a mapping also says how deep:
    ``{"region": 2, "sex": 1}``. Cells come in the order of the grid of codes.
    """
    sizes = [len(h) for h in hierarchies.values()]
    if crossings is None:
        blocks = [[np.arange(size) for size in sizes]]
    else:
        blocks = [_list_crossing_codes(hierarchies, crossing) for crossing in crossings]
    return decode_grid_keys(enumerate_block_keys(sizes, blocks), sizes)


def _list_crossing_codes(
    hierarchies: Mapping[str, Hierarchy], crossing: str | Iterable[str] | Mapping[str, int]
) -> list[IntArray]:
    named = [crossing] if isinstance(crossing, str) else list(crossing)
    raise_error_of_missing("dimension", named, hierarchies, place=f"crossing {tuple(named)}: ")
    deepest = crossing if isinstance(crossing, Mapping) else {}
    block = []
    for name, h in hierarchies.items():
        depth = np.where(np.arange(len(h)) > 0, np.maximum(h.depth, 1), 0)
        most = int(deepest.get(name, h.n_levels)) if name in named else 0
        block.append(np.flatnonzero((depth <= most) & (depth > 0)) if name in named else np.zeros(1, np.int64))
    return block


def build_relations(hierarchies: Sequence[Hierarchy], cells: Coordinates, *, absent_is_zero: bool = False) -> csr_array:
    """Return every relation that the hierarchies imply between the cells."""
    sizes, families = [len(h) for h in hierarchies], [h.relations() for h in hierarchies]
    return build_grid_relations(cells, sizes, families, absent_is_zero=absent_is_zero)[0]


def _describe_cells(hierarchies: Mapping[str, Hierarchy], cells: Coordinates) -> dict[str, Any]:
    """Return the fields of a table that say what its cells mean."""
    return {
        "dimensions": tuple(hierarchies),
        "codes": tuple(h.codes for h in hierarchies.values()),
        "hierarchies": tuple(hierarchies.values()),
        "coordinates": cells,
    }


# ---------------------------------------------------------------- from leaf cells


def build_from_leaves(
    dims: Mapping[str, Any], leaves: ArrayLike, *, crossings: Crossings | None = None, **fields: Any
) -> Table:
    """Make a table from the values of its leaf cells (see :meth:`Table.from_leaves`)."""
    hierarchies = {name: Hierarchy.of(given) for name, given in dims.items()}
    array = np.asarray(leaves, dtype=np.float64)
    shape = tuple(len(h.leaves) for h in hierarchies.values())
    if array.shape != shape:
        raise InputError(f"leaves have shape {array.shape}; the dimensions have {shape} leaf codes.")
    cells = build_coordinates(hierarchies, crossings)
    sums = [h.build_matrix() for h in hierarchies.values()]
    values = sum_leaves(array, sums, cells, [len(h) for h in hierarchies.values()])
    T = build_relations(tuple(hierarchies.values()), cells)
    table = Table.from_equations(values, T, **_describe_cells(hierarchies, cells), **fields)
    refuse_doubled_totals(table)
    return table


# ---------------------------------------------------------------- from a frame of cells


@dataclass(frozen=True, kw_only=True)
class FrameReading:
    """What the rows and columns of a frame of cells mean (see :meth:`Table.from_frame`)."""

    value: str
    """Column of the values."""
    columns: Mapping[str, Any]
    """Field of the table -> its column."""
    crossings: Crossings | None = None
    """What is published, when some margins are not."""
    missing: str = "error"
    """How to treat cells without a row."""
    repair: str | None = None
    """Which values to recompute."""
    total: str = "Total"
    """Code of the total, where the hierarchy does not name it."""
    relations: tuple[csr_array, FloatArray] | None = None
    """Relations and right-hand sides that replace those implied by the hierarchies."""
    known_zeros: bool | None = True
    """Whether every attacker knows which cells have no contributor; None: for counts only, decided elsewhere."""
    tolerance: float = 0.0
    """Totals may differ from the sum of their parts by this share."""


def build_from_frame(
    frame: Any, dims: Mapping[str, Any] | Sequence[str], reading: FrameReading, **description: Any
) -> Table:
    """Make a table from a frame with one row per cell (see :meth:`Table.from_frame`)."""
    from cellguard._io.frames import detect_frame_library, read_frame_columns

    missing, repair = reading.missing, reading.repair
    _check_option_of_assembly("missing", missing, ("zero", "error", "unpublished"))
    _check_option_of_assembly("repair", repair, (None, "leaves"))
    given = read_frame_columns(frame)
    named = dims if isinstance(dims, Mapping) else dict.fromkeys(dims)
    hierarchies, rows = _read_hierarchies(given, named, reading)
    codes = {name: h.codes for name, h in hierarchies.items()}
    sizes = [len(own) for own in codes.values()]
    keys = compute_grid_keys(rows, sizes)
    listed, first = np.unique(keys, return_index=True)
    if len(listed) != len(keys):
        again = np.setdiff1d(np.arange(len(keys)), first)[0]
        raise InputError(f"{format_cell_name(codes, rows[again])} is listed twice.", hint="each cell has one row.")
    cells = rows if missing == "unpublished" else build_coordinates(hierarchies, reading.crossings)
    place = find_grid_places(compute_grid_keys(cells, sizes), keys, sizes)
    if (place < 0).any():
        raise InputError(
            f"{format_cell_name(codes, rows[np.argmax(place < 0)])} belongs to no crossing of the table.",
            hint="leave the row out, or publish its crossing.",
        )
    T, rhs = reading.relations or (build_relations(tuple(hierarchies.values()), cells), None)
    if T.shape[1] != len(cells):
        raise InputError(f"the relations are between {T.shape[1]} cells; the frame has {len(cells)}.")
    read = _FrameReader(given, codes, cells, place)
    given_values = read.read_required(reading.value)
    values = read.fill_values(given_values, T, missing=missing, recompute=repair == "leaves")
    rhs = np.zeros(T.shape[0]) if rhs is None else rhs
    values = remove_rounding_noise(values)  # e.g. 36355.989499999996 for 36355.9895
    if reading.tolerance > 0:
        values = reconcile_additively(values, T, rhs, reading.tolerance)
    described = {"library": detect_frame_library(frame)} | _describe_cells(hierarchies, cells) | description
    table = Table(values=values, relations=T, rhs=rhs, **(read.read_fields(values, T, reading.columns) | described))
    if reading.relations is None:
        refuse_doubled_totals(table)
    if reading.known_zeros:
        table = table.with_known_zeros(read.find_empty(table, given_values))
    elif reading.known_zeros is not None:
        table = table.with_(known_zeros=False)
    return add_cross(table) if missing == "unpublished" else table


def _check_option_of_assembly(option: str, given: object, allowed: tuple[object, ...]) -> None:
    if given not in allowed:
        raise InputError(f"{option}={given!r}: one of {', '.join(map(repr, allowed))} is needed.")


def format_cell_name(codes: Mapping[str, Sequence[str]], row: Iterable[int]) -> str:
    """Return the name of a cell for messages, from the codes of each dimension and the cell's code indices."""
    return "(" + ", ".join(f"{d}={own[i]}" for (d, own), i in zip(codes.items(), row, strict=True)) + ")"


def _get_column(given: Mapping[str, Any], name: str) -> Any:
    raise_error_of_missing("column", [name], given)
    return given[name]


def _read_hierarchies(
    given: Mapping[str, Any], dims: Mapping[str, Any], reading: FrameReading
) -> tuple[dict[str, Hierarchy], Coordinates]:
    """Return the hierarchy of each dimension and the code indices of each row."""
    from cellguard._io.frames import encode_frame_column

    if not dims:
        raise InputError("no dimensions are named.", hint="dims={'region': hierarchy, 'sex': None}")
    hierarchies: dict[str, Hierarchy] = {}
    columns, indices = {}, []
    for name in dims:
        columns[name] = encode_frame_column(_get_column(given, name))
        index = columns[name][1]
        if len(index) and index.min() < 0:
            raise InputError(
                f"column {name!r}: row {int(np.argmin(index))} has no code.",
                hint="write the code of the total in full.",
            )
    for name, description in dims.items():
        seen, index = columns[name]
        total = _find_flat_total(given, columns, name, reading) if description is None else None
        h = hierarchies[name] = Hierarchy.of(description, codes=seen, total=total)
        try:
            indices.append(h.index(seen)[index])
        except UnknownCodeError as error:
            raise UnknownCodeError(f"dimension {name!r}: {error.message}", hint=error.hint) from None
    return hierarchies, np.column_stack(indices).astype(np.int32)


def _find_flat_total(
    given: Mapping[str, Any], columns: Mapping[str, tuple[list[str], IntArray]], name: str, reading: FrameReading
) -> str:
    """Return the code of the total of a dimension whose codes simply add up."""
    from cellguard._io.frames import convert_to_numbers

    codes, declared = columns[name][0], reading.total
    word = find_total(codes, letter=True)
    maybe = word is not None or any(code.lower().startswith("total") for code in codes)
    if declared in codes or not maybe or reading.relations is not None:
        return declared
    if reading.missing == "unpublished":  # some rows may be absent, so sums of the listed ones prove nothing
        return find_total(codes) or declared
    values = convert_to_numbers(_get_column(given, reading.value), reading.value)
    others = [index for other, (_, index) in columns.items() if other != name]
    try:
        return find_flat_total(columns[name], others, values, declared=declared, tolerance=reading.tolerance)
    except InputError as error:
        raise InputError(f"dimension {name!r}: {error.message}", hint=error.hint) from None


class _FrameReader:
    """Columns of a frame, brought into the order of the table's cells."""

    def __init__(
        self, given: Mapping[str, Any], codes: Mapping[str, Sequence[str]], cells: Coordinates, place: IntArray
    ) -> None:
        self.given, self.codes, self.cells, self.place = given, codes, cells, place

    def read_numbers(self, name: str, default: float | FloatArray) -> FloatArray:
        """Return a column of numbers; cells without one have the default."""
        from cellguard._io.frames import convert_to_numbers

        column = convert_to_numbers(_get_column(self.given, name), name)
        out = np.array(np.broadcast_to(np.asarray(default, np.float64), len(self.cells)))
        known = ~np.isnan(column)
        out[self.place[known]] = column[known]
        return out

    def read_required(self, name: str) -> FloatArray:
        """Return the values, NaN for cells without a row; raise an error for a row without a value."""
        out = self.read_numbers(name, np.nan)
        self._refuse(self.place[~np.isfinite(out[self.place])], f"column {name!r} has no finite number.")
        return out

    def _refuse(self, cells: IntArray, what: str, hint: str | None = None) -> None:
        if len(cells):
            more = f" (and {len(cells) - 1} more)" if len(cells) > 1 else ""
            raise InputError(f"{format_cell_name(self.codes, self.cells[cells[0]])}{more}: {what}", hint=hint)

    def fill_values(self, values: FloatArray, T: csr_array, *, missing: str, recompute: bool = False) -> FloatArray:
        """Fill in missing values: zero for inner cells, the sum of their parts for totals."""
        total, rows = _find_totals(T)
        inner = np.ones(len(values), bool)
        inner[total] = False
        values = np.where(inner | (not recompute), values, np.nan)
        absent = inner & np.isnan(values)
        if missing != "zero":
            self._refuse(
                np.flatnonzero(absent), "there is no row for this cell.", "missing='zero' takes it for a zero."
            )
        values[absent] = 0.0
        parts = T[rows]
        parts.data = np.maximum(parts.data, 0.0)
        while (unknown := np.isnan(values)).any():
            ready = unknown[total] & (parts @ unknown.astype(np.float64) == 0)
            if not ready.any():  # only relations with several totals are left, and they define no cell
                self._refuse(np.flatnonzero(unknown), "there is no row for this cell, and nothing adds up to it.")
            values[total[ready]] = (parts @ np.where(unknown, 0.0, values))[ready]
        return values

    def read_fields(self, values: FloatArray, T: csr_array, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return all other fields of the table, from columns or single numbers."""
        n = len(values)

        def read(option: str, default: float | FloatArray) -> FloatArray:
            given = columns.get(option)
            if isinstance(given, str):
                return self.read_numbers(given, default)
            return np.array(np.broadcast_to(np.asarray(default if given is None else given, np.float64), n))

        levels = {name: read(name, 0.0) for name in ("lower", "upper", "sliding")}
        sensitive = np.logical_or.reduce([level > 0 for level in levels.values()])
        fixed = np.zeros(n, bool)
        if columns.get("status") is not None:
            sensitive, fixed = self._read_status(columns["status"])
        counts = None
        if columns.get("counts") is not None:
            counts = self.fill_values(self.read_numbers(columns["counts"], np.nan), T, missing="zero")
        bounds = {"lb": read("lb", 0.0), "ub": read("ub", np.inf)}
        weights = read("weights", np.abs(values))
        counted = None if columns.get("counted") is None else self.read_numbers(columns["counted"], 0.0) != 0
        more = {"counts": counts, "weights": weights, "counted": counted}
        return {"sensitive": sensitive, "fixed": fixed, **more, **bounds, **levels}

    def find_empty(self, table: Table, given: FloatArray) -> BoolArray:
        """Return the cells without contributors: with a count of 0 or, where counts are unknown, without a row."""
        if table.counts is not None:
            contributors = table.counts
        elif table.integer:
            contributors = table.values
        else:
            rows = np.where(np.isnan(given), np.nan, 1.0)
            contributors = self.fill_values(rows, table.relations, missing="zero")
        return np.asarray(contributors == 0)

    def _read_status(self, name: str) -> tuple[BoolArray, BoolArray]:
        from cellguard._io.frames import encode_frame_column

        words, index = encode_frame_column(_get_column(self.given, name))
        known = [word.strip().lower() for word in words]
        unknown = next((k for k, word in enumerate(known) if word not in _STATUS), None)
        if unknown is not None:
            raise UnknownCodeError(
                f"column {name!r}: unknown status {words[unknown][:20]!r}.",
                hint=suggest_names(words[unknown].lower(), _STATUS) or "use safe, sensitive or fixed.",
            )
        masks = np.zeros((2, len(self.cells)), bool)
        for mask, mark in zip(masks, ("sensitive", "fixed"), strict=True):
            member = np.array([mark in _STATUS[word] for word in known] + [False])  # the last entry is for null
            mask[self.place] = member[index]
        return masks[0], masks[1]


def _find_totals(T: csr_array) -> tuple[IntArray, IntArray]:
    """Return the cell that each relation with one total defines, and the indices of those relations."""
    negative = T.data < 0
    row = np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))[negative]
    count = np.bincount(row, minlength=T.shape[0])
    single = count[row] == 1
    return T.indices[negative][single].astype(np.int64), row[single]

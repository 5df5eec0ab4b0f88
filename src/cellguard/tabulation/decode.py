"""Convert columns of codes to indices in hierarchies, and report codes that do not fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from cellguard._engine.space.cell_grid import compute_grid_keys
from cellguard._io.frames import encode_frame_column
from cellguard._types import Coordinates, FloatArray, IntArray
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.trees import ABSENT, match_leading_zeros, sort_codes, suggest_code
from cellguard.tabulation.holdings import Shared
from cellguard.tabulation.people import People
from cellguard.tabulation.request import Finest, Roles
from cellguard.tabulation.rollup import Cells, Items

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Decoded",
    "build_hierarchies",
    "decode",
    "is_digits_of_record_codes",
    "number_contributors_in_records",
]  # fmt: skip

_SHOWN = 5


# ---------------------------------------------------------------- hierarchies


def build_hierarchies(
    by: Mapping[str, Any],
    seen: Mapping[str, Iterable[str]],
    missing: Mapping[str, Sequence[str]],
    total: str | Mapping[str, str] | None,
) -> dict[str, Hierarchy]:
    """Make the hierarchy of each dimension; place codes that mean "missing" directly below the total."""

    def get_total(name: str) -> str | None:
        return total if total is None or isinstance(total, str) else total.get(name)

    out = {}
    for name, given in by.items():
        absent = [code for code in missing.get(name, ()) if code]
        if isinstance(given, tuple) and given and all(isinstance(h, Hierarchy) for h in given):
            h = Hierarchy.join(*given)
        else:
            h = _read_given_hierarchy(given, sort_codes(set(seen[name]) - set(absent)), get_total(name))
        out[name] = _add_record_codes(h, [code for code in absent if code not in h.codes])
    return out


def is_digits_of_record_codes(given: Any) -> bool:
    """Return whether a hierarchy is given as the digits of each level of its codes."""
    return isinstance(given, (list, tuple)) and bool(given) and all(type(n) is int for n in given)


def _read_given_hierarchy(given: Any, codes: Sequence[str], total: str | None) -> Hierarchy:
    if is_digits_of_record_codes(given):
        return Hierarchy.from_digits(codes, given, total=total or "Total")
    return Hierarchy.of(given, codes=codes if given is None else (), total=total)


def _add_record_codes(h: Hierarchy, codes: Sequence[str]) -> Hierarchy:
    if not codes:
        return h
    below = np.zeros((len(h.parents), len(codes)), np.int64)
    below[h.parents[:, 0] == ABSENT] = ABSENT
    labels = (*h.labels, *codes) if h.labels != h.codes else ()
    return Hierarchy((*h.codes, *codes), np.hstack([h.parents, below]), labels)


# ---------------------------------------------------------------- codes


class _Codes:
    """Converts columns of codes to coordinates."""

    def __init__(self, roles: Roles, hierarchies: Sequence[Hierarchy], missing: Mapping[str, Sequence[str]]) -> None:
        self.names, self.hierarchies, self.missing = roles.dimensions, hierarchies, missing
        self.restored = roles.leading_zeros
        self.position = [{code: i for i, code in enumerate(h.codes)} for h in hierarchies]
        self.is_leaf = [np.isin(np.arange(len(h)), h.leaves) for h in hierarchies]

    def encode_rows(self, table: pa.Table, records: IntArray | None = None) -> Coordinates:
        """Return one row of code indices per row of the table; refuse codes that do not fit."""
        columns = [self._decode_column(d, table.column(f"d{d}"), records) for d in range(len(self.names))]
        return np.column_stack(columns).astype(np.int32)

    def _decode_column(self, d: int, column: Any, records: IntArray | None) -> IntArray:
        name = self.names[d]
        codes, index = encode_frame_column(column)
        null = next(iter(self.missing.get(name, ())), "")
        position = self.position[d]
        unknown_codes = [code for code in codes if code not in position] if name in self.restored else []
        full = match_leading_zeros(unknown_codes, self.hierarchies[d].codes)
        place = np.array([position.get(full.get(code, code), -1) for code in [*codes, null]], dtype=np.int64)[index]
        if records is None:
            return place
        nothing = place[(index < 0)] < 0
        if nothing.any():
            raise InputError(
                f"dimension {name!r}: {int(records[index < 0].sum())} records have no code.",
                hint=f"missing gives them a code of their own: {{{name!r}: 'unknown'}}, or in a job "
                'missing = ["unknown"] in the section of the dimension.',
            )
        unknown, inner = place < 0, (place >= 0) & ~self.is_leaf[d][place]
        for wrong, what in ((unknown, "that the hierarchy does not have"), (inner, "that are totals of other codes")):
            if wrong.any():
                self._refuse(d, sorted({codes[i] for i in index[wrong].tolist()}), int(records[wrong].sum()), what)
        return place

    def _refuse(self, d: int, bad: Sequence[str], records: int, what: str) -> None:
        name, h = self.names[d], self.hierarchies[d]
        shown = ", ".join(repr(code) for code in bad[:_SHOWN]) + (", ..." if len(bad) > _SHOWN else "")
        hint = suggest_code(bad[0], h.codes) if "not have" in what else "code records at the finest level."
        raise UnknownCodeError(
            f"dimension {name!r}: {records} records have {len(bad)} codes {what}: {shown}.",
            hint=hint or f"add the codes to the hierarchy, or say missing={{{name!r}: ...}}.",
        )


# ---------------------------------------------------------------- the finest cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """The finest cells with their coordinates, sorted."""

    cells: Cells
    items: Items
    shared: Shared | None
    measures: tuple[str, ...]
    """Names of the columns of ``cells.sums``."""


def decode(
    finest: Finest, roles: Roles, hierarchies: Sequence[Hierarchy], missing: Mapping[str, Sequence[str]], people: People
) -> Decoded:
    """Convert the result of a database to arrays; refuse codes that the hierarchies do not have."""
    codes = _Codes(roles, hierarchies, missing)
    sizes = [len(h) for h in hierarchies]
    table = finest.cells
    coordinates = codes.encode_rows(table, _read_floats(table, "records").astype(np.int64))
    keys = compute_grid_keys(coordinates, sizes)
    others = (*(f"d{d}" for d in range(len(sizes))), "protected", "top")
    measures = tuple(c for c in table.column_names if c not in others)
    sums = np.column_stack([_read_floats(table, name) for name in measures])
    largest = np.full(len(keys), -1.0)
    if roles.waiver:
        largest = np.nan_to_num(_read_floats(table, "protected"), nan=-1.0)
    who_top, who_shared = _number_contributors(finest, people)
    large = _read_large_contributions(finest, codes, keys, sizes)
    order = np.argsort(keys, kind="stable")
    if len(keys) > 1 and (np.diff(keys[order]) == 0).any():  # two spellings of one code
        order, keys, coordinates, sums, largest = _merge_equal_rows(keys, coordinates, sums, largest)
    items, ptr = _sort_contributions(large, keys[order], who_top)
    cells = Cells(
        coordinates=coordinates[order],
        sums=sums[order],
        largest=largest[order],
        ptr=ptr,
        items=np.arange(len(items.value), dtype=np.int64),
    )
    shared = (
        None
        if finest.shared is None or not len(finest.shared)
        else _order_shared_holdings(finest.shared, codes, who_shared)
    )
    return Decoded(cells=cells, items=items, shared=shared, measures=measures)


def _merge_equal_rows(
    keys: IntArray, coordinates: Coordinates, sums: FloatArray, largest: FloatArray
) -> tuple[IntArray, IntArray, Coordinates, FloatArray, FloatArray]:
    """Add up rows of the same cell, which occur when null and a missing code are the same."""
    distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
    place = place.ravel()
    added = np.column_stack([np.bincount(place, weights=column) for column in sums.T]).astype(np.float64)
    most = np.full(len(distinct), -1.0)
    np.maximum.at(most, place, largest)
    return np.arange(len(distinct)), distinct, coordinates[first], added, most


def _read_floats(table: pa.Table, name: str) -> FloatArray:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def number_contributors_in_records(answers: Sequence[Finest], people: People) -> None:
    """Number the contributors in the results; each has the same number in all crossings."""
    people.add_names([column for finest in answers for column in _name_contributors(finest) if column is not None])


def _name_contributors(finest: Finest) -> tuple[pa.ChunkedArray | None, pa.ChunkedArray | None]:
    """Return the contributors of the largest contributions, and the holdings in several cells; None if unknown."""
    if finest.shared is not None:
        shared = finest.shared.column("h")
        return shared.slice(0, 0) if finest.top is None else finest.top.column("h"), shared
    if finest.top is not None:
        return finest.top.column("i") if "i" in finest.top.column_names else None, None
    if "top" not in finest.cells.column_names:
        return None, None
    kind = finest.cells.schema.field("top").type.value_type
    return (_flatten_contributions(finest, "i") if kind.num_fields else None), None


def _flatten_contributions(finest: Finest, name: str | None) -> pa.ChunkedArray:
    """Return one field of the lists of large contributions, concatenated."""
    import pyarrow as pa

    flat = finest.cells.column("top").combine_chunks().flatten()
    return pa.chunked_array([flat if name is None else flat.field(name)])


def _number_contributors(finest: Finest, people: People) -> tuple[IntArray | None, IntArray | None]:
    """Return the numbers of the contributors of the largest contributions, and of holdings in several cells."""
    one, other = (None if column is None else people.get_numbers(column) for column in _name_contributors(finest))
    return one, other


class _Large(NamedTuple):
    """Large contributions and the keys of their cells, in any order."""

    key: IntArray
    value: FloatArray
    weight: FloatArray
    request: FloatArray
    most: int | None = None
    """Number kept per cell, if each counts once; a cell that was merged from several has more."""


def _read_large_contributions(finest: Finest, codes: _Codes, keys: IntArray, sizes: Sequence[int]) -> _Large:
    """Return the large contributions, from one list per cell or from a table of them."""
    if "top" in finest.cells.column_names:
        lists = finest.cells.column("top").combine_chunks()
        length = lists.value_lengths().to_numpy(zero_copy_only=False)
        key = np.repeat(keys, length)
        value = np.asarray(
            _flatten_contributions(finest, "x" if lists.type.value_type.num_fields else None).to_numpy(),
            np.float64,
        )
        return _Large(key, value, np.ones(len(key)), np.zeros(len(key)), int(length.max(initial=0)))
    table = finest.top
    if table is None:
        return _Large(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
    n, names = len(table), table.column_names
    return _Large(
        compute_grid_keys(codes.encode_rows(table), sizes) if n else np.zeros(0, np.int64),
        _read_floats(table, "x"),
        _read_floats(table, "w") if "w" in names else np.ones(n),
        _read_floats(table, "r") if "r" in names else np.zeros(n),
    )


def _sort_contributions(large: _Large, keys: IntArray, who: IntArray | None) -> tuple[Items, IntArray]:
    """Sort large contributions by cell and size, and return where each cell begins."""
    cell = np.searchsorted(keys, large.key)
    number = np.zeros(len(cell), np.int64) if who is None else who
    order = np.lexsort((number, large.weight, -large.request, -large.value, cell))
    if large.most is not None:
        place = np.arange(len(order)) - np.searchsorted(cell[order], cell[order])
        order = order[place < large.most]
    items = Items(
        value=large.value[order],
        weight=large.weight[order],
        request=large.request[order].astype(np.int8),
        who=np.arange(len(order)) if who is None else number[order],
        whole=large.value[order],
    )
    return items, np.concatenate([[0], np.cumsum(np.bincount(cell[order], minlength=len(keys)))]).astype(np.int64)


def _order_shared_holdings(table: pa.Table, codes: _Codes, who: IntArray | None) -> Shared:
    """Sort the rows of shared holdings, so that their sums are the same in every run."""
    names = table.column_names
    coordinates, number = codes.encode_rows(table), cast("IntArray", who)
    order = np.lexsort((number, *coordinates.T))

    def read_column(name: str, otherwise: FloatArray) -> FloatArray:
        return _read_floats(table, name) if name in names else otherwise

    x, n = _read_floats(table, "sx"), _read_floats(table, "n")
    nothing = np.zeros(len(x))
    return Shared(
        coordinates=coordinates[order],
        who=number[order],
        x=x[order],
        ax=read_column("ax", np.abs(x))[order],
        wax=read_column("wax", np.abs(x))[order],
        w=read_column("sw", n)[order],
        n=n[order],
        waived=read_column("q", nothing)[order].astype(bool),
        request=read_column("r", nothing)[order].astype(np.int8),
    )

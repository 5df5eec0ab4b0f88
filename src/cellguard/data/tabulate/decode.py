"""From columns of codes to places in hierarchies, and what to say when a code does not fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from cellguard._engine.space.cell_grid import keys_on_cell_grid
from cellguard._io.frames import encode_frame_column
from cellguard._types import Coordinates, FloatArray, IntArray
from cellguard.data.tabulate.holdings import Shared
from cellguard.data.tabulate.people import People
from cellguard.data.tabulate.request import Finest, Roles
from cellguard.data.tabulate.rollup import Cells, Items
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.trees import ABSENT, nearest_codes_of_tree

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Decoded", "decode", "hierarchies_of_records", "is_digits_of_record_codes", "number_contributors_in_records",
    "record_codes_in_order",
]  # fmt: skip

_SHOWN = 5


# ---------------------------------------------------------------- hierarchies


def hierarchies_of_records(
    by: Mapping[str, Any],
    seen: Mapping[str, Iterable[str]],
    missing: Mapping[str, Sequence[str]],
    total: str | Mapping[str, str] | None,
) -> dict[str, Hierarchy]:
    """Make the hierarchy of each dimension; codes that stand for "missing" lie right below the total."""

    def total_of(name: str) -> str | None:
        return total if total is None or isinstance(total, str) else total.get(name)

    out = {}
    for name, given in by.items():
        absent = [code for code in missing.get(name, ()) if code]
        if isinstance(given, tuple) and given and all(isinstance(h, Hierarchy) for h in given):
            h = Hierarchy.join(*given)
        else:
            h = _hierarchy_given_for_records(
                given, record_codes_in_order(set(seen[name]) - set(absent)), total_of(name)
            )
        out[name] = _hierarchy_with_record_codes(h, [code for code in absent if code not in h.codes])
    return out


def is_digits_of_record_codes(given: Any) -> bool:
    """Whether a hierarchy is given as the digits of each level of its codes."""
    return isinstance(given, (list, tuple)) and bool(given) and all(type(n) is int for n in given)


def _hierarchy_given_for_records(given: Any, codes: Sequence[str], total: str | None) -> Hierarchy:
    if is_digits_of_record_codes(given):
        return Hierarchy.from_digits(codes, given, total=total or "Total")
    return Hierarchy.of(given, codes=codes if given is None else (), total=total)


def record_codes_in_order(codes: Iterable[str]) -> list[str]:
    """Sort codes as people do: by the number they all begin with (50-249 before 250+), otherwise as text."""
    listed = sorted(codes)
    first = {code: found[0] for code in listed if (found := re.match("[0-9]+", code))}
    return sorted(listed, key=lambda code: int(first[code])) if len(first) == len(listed) else listed


def _hierarchy_with_record_codes(h: Hierarchy, codes: Sequence[str]) -> Hierarchy:
    if not codes:
        return h
    below = np.zeros((len(h.parents), len(codes)), np.int64)
    below[h.parents[:, 0] == ABSENT] = ABSENT
    labels = (*h.labels, *codes) if h.labels != h.codes else ()
    return Hierarchy((*h.codes, *codes), np.hstack([h.parents, below]), labels)


# ---------------------------------------------------------------- codes


class _Codes:
    """Turns columns of codes into coordinates."""

    def __init__(
        self, names: Sequence[str], hierarchies: Sequence[Hierarchy], missing: Mapping[str, Sequence[str]]
    ) -> None:
        self.names, self.hierarchies, self.missing = names, hierarchies, missing
        self.position = [{code: i for i, code in enumerate(h.codes)} for h in hierarchies]
        self.is_leaf = [np.isin(np.arange(len(h)), h.leaves) for h in hierarchies]

    def coordinates(self, table: pa.Table, records: IntArray | None = None) -> Coordinates:
        """Return a row of code indices per row of the table; codes that do not fit are refused."""
        columns = [self._column(d, table.column(f"d{d}"), records) for d in range(len(self.names))]
        return np.column_stack(columns).astype(np.int32)

    def _column(self, d: int, column: Any, records: IntArray | None) -> IntArray:
        name = self.names[d]
        codes, index = encode_frame_column(column)
        null = next(iter(self.missing.get(name, ())), "")
        place = np.array([self.position[d].get(code, -1) for code in [*codes, null]], dtype=np.int64)[index]
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
        hint = nearest_codes_of_tree(bad[0], h.codes) if "not have" in what else "code records at the finest level."
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
    """Turn what a database answered into arrays; codes that the hierarchies do not have are refused."""
    codes = _Codes(roles.dimensions, hierarchies, missing)
    sizes = [len(h) for h in hierarchies]
    table = finest.cells
    coordinates = codes.coordinates(table, _decoded_float_column(table, "records").astype(np.int64))
    keys = keys_on_cell_grid(coordinates, sizes)
    others = (*(f"d{d}" for d in range(len(sizes))), "protected", "top")
    measures = tuple(c for c in table.column_names if c not in others)
    sums = np.column_stack([_decoded_float_column(table, name) for name in measures])
    largest = np.full(len(keys), -1.0)
    if roles.waiver:
        largest = np.nan_to_num(_decoded_float_column(table, "protected"), nan=-1.0)
    who_top, who_shared = _numbers_of_contributors(finest, people)
    large = _tabulated_large_contributions(finest, codes, keys, sizes)
    order = np.argsort(keys, kind="stable")
    if len(keys) > 1 and (np.diff(keys[order]) == 0).any():  # two spellings of one code
        order, keys, coordinates, sums, largest = _decoded_rows_joined(keys, coordinates, sums, largest)
    items, ptr = _tabulated_contributions_sorted(large, keys[order], who_top)
    cells = Cells(
        coordinates=coordinates[order],
        sums=sums[order],
        largest=largest[order],
        ptr=ptr,
        items=np.arange(len(items.value), dtype=np.int64),
    )
    shared = (
        None if finest.shared is None or not len(finest.shared) else _shared_holdings(finest.shared, codes, who_shared)
    )
    return Decoded(cells=cells, items=items, shared=shared, measures=measures)


def _decoded_rows_joined(
    keys: IntArray, coordinates: Coordinates, sums: FloatArray, largest: FloatArray
) -> tuple[IntArray, IntArray, Coordinates, FloatArray, FloatArray]:
    """Add up rows of one cell; happens when null and a missing code are one."""
    distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
    place = place.ravel()
    added = np.column_stack([np.bincount(place, weights=column) for column in sums.T]).astype(np.float64)
    most = np.full(len(distinct), -1.0)
    np.maximum.at(most, place, largest)
    return np.arange(len(distinct)), distinct, coordinates[first], added, most


def _decoded_float_column(table: pa.Table, name: str) -> FloatArray:
    return np.asarray(table.column(name).to_numpy(), dtype=np.float64)


def number_contributors_in_records(answers: Sequence[Finest], people: People) -> None:
    """Number the contributors that answers name: each has one number, whatever is crossed."""
    people.meet([column for finest in answers for column in _named_contributors(finest) if column is not None])


def _named_contributors(finest: Finest) -> tuple[pa.ChunkedArray | None, pa.ChunkedArray | None]:
    """Return who gave the largest contributions, and the holdings in several cells; None where nobody says so."""
    if finest.shared is not None:
        shared = finest.shared.column("h")
        return shared.slice(0, 0) if finest.top is None else finest.top.column("h"), shared
    if finest.top is not None:
        return finest.top.column("i") if "i" in finest.top.column_names else None, None
    if "top" not in finest.cells.column_names:
        return None, None
    kind = finest.cells.schema.field("top").type.value_type
    return (_tabulated_lists_of_contributions(finest, "i") if kind.num_fields else None), None


def _tabulated_lists_of_contributions(finest: Finest, name: str | None) -> pa.ChunkedArray:
    """Return the lists of large contributions, one after the other; of each what is called so."""
    import pyarrow as pa

    flat = finest.cells.column("top").combine_chunks().flatten()
    return pa.chunked_array([flat if name is None else flat.field(name)])


def _numbers_of_contributors(finest: Finest, people: People) -> tuple[IntArray | None, IntArray | None]:
    """Return the numbers of those who gave the largest contributions, and of holdings in several cells."""
    one, other = (None if column is None else people.numbers(column) for column in _named_contributors(finest))
    return one, other


class _Large(NamedTuple):
    """Large contributions and the keys of their cells, in any order."""

    key: IntArray
    value: FloatArray
    weight: FloatArray
    request: FloatArray
    most: int | None = None
    """A cell keeps so many of them, where each counts once; it has more when it was put together from several."""


def _tabulated_large_contributions(finest: Finest, codes: _Codes, keys: IntArray, sizes: Sequence[int]) -> _Large:
    """Return the large contributions, from a list per cell or from a table of them."""
    if "top" in finest.cells.column_names:
        lists = finest.cells.column("top").combine_chunks()
        length = lists.value_lengths().to_numpy(zero_copy_only=False)
        key = np.repeat(keys, length)
        value = np.asarray(
            _tabulated_lists_of_contributions(finest, "x" if lists.type.value_type.num_fields else None).to_numpy(),
            np.float64,
        )
        return _Large(key, value, np.ones(len(key)), np.zeros(len(key)), int(length.max(initial=0)))
    table = finest.top
    if table is None:
        return _Large(np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0))
    n, names = len(table), table.column_names
    return _Large(
        keys_on_cell_grid(codes.coordinates(table), sizes) if n else np.zeros(0, np.int64),
        _decoded_float_column(table, "x"),
        _decoded_float_column(table, "w") if "w" in names else np.ones(n),
        _decoded_float_column(table, "r") if "r" in names else np.zeros(n),
    )


def _tabulated_contributions_sorted(large: _Large, keys: IntArray, who: IntArray | None) -> tuple[Items, IntArray]:
    """Sort large contributions by cell and size, and return where each cell's begin."""
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
    )
    return items, np.concatenate([[0], np.cumsum(np.bincount(cell[order], minlength=len(keys)))]).astype(np.int64)


def _shared_holdings(table: pa.Table, codes: _Codes, who: IntArray | None) -> Shared:
    """Bring the rows of shared holdings into a fixed order, so that their sums are the same in every run."""
    names = table.column_names
    coordinates, number = codes.coordinates(table), cast("IntArray", who)
    order = np.lexsort((number, *coordinates.T))

    def column(name: str, otherwise: FloatArray) -> FloatArray:
        return _decoded_float_column(table, name) if name in names else otherwise

    x, n = _decoded_float_column(table, "sx"), _decoded_float_column(table, "n")
    nothing = np.zeros(len(x))
    return Shared(
        coordinates=coordinates[order],
        who=number[order],
        x=x[order],
        ax=column("ax", np.abs(x))[order],
        wax=column("wax", np.abs(x))[order],
        w=column("sw", n)[order],
        n=n[order],
        waived=column("q", nothing)[order].astype(bool),
        request=column("r", nothing)[order].astype(np.int8),
    )

"""Read a published table: values where they are printed, nothing where they are withheld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._io.release_columns import BLANKS, STATUS_NAMES, WITHHELD_MARKS
from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray
from cellguard.exceptions import FormatError, InputError, UnknownCodeError, raise_error_of_missing, raise_if_unknown
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.sources.assemble import build_coordinates, build_relations, format_cell_name
from cellguard.model.totals import find_total

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["PublishedCells", "PublishedReading", "read_published"]

_VALUES = ("value", "values", "published", "obs_value", "response", "val", "freq", "count", "n")
"""Names of the column of values, the most likely first."""
_ABSENT = ("unpublished", "zero", "withheld")


@dataclass(frozen=True, kw_only=True)
class PublishedReading:
    """What the columns of a published file mean."""

    dims: Mapping[str, Any] | Sequence[str] | None = None
    """Columns of codes with their hierarchies; by default all columns that have no other role."""
    value: str | None = None
    """Column of the values."""
    status: str | None = None
    """Column of the marks: a marked cell is withheld, whatever is printed as its value."""
    marks: Sequence[str] = ()
    """Marks of withheld cells, instead of the usual ones."""
    count: str | None = None
    """Column with the number of contributors."""
    lower: str | None = None
    """Column with what is known to be the least value."""
    upper: str | None = None
    """Column with what is known to be the greatest value."""
    ratios: Mapping[str, str] | None = None
    """Column of a published ratio -> column of its denominator."""
    ignore: Sequence[str] = ()
    """Columns that are none of these."""
    missing: str = "unpublished"
    """What cells without a row are: unpublished (sums that need them are not used), zero, or withheld."""
    total: str | None = None
    """Code of the totals, where a hierarchy does not name it."""
    rounded_to: float = 0.0
    """Printed values are rounded to multiples of this."""
    negative: bool = False
    """Values may be negative."""

    @property
    def named(self) -> list[str]:
        """The columns that were named."""
        some = (self.value, self.status, self.count, self.lower, self.upper)
        ratios = self.ratios or {}
        return [name for name in (*some, *ratios, *ratios.values()) if name is not None]


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedCells:
    """A published table: its cells, how they add up, and what is known about each."""

    place: str
    """The file, for messages; empty for a frame."""
    hierarchies: Mapping[str, Hierarchy]
    cells: Coordinates
    lines: IntArray
    """Line of each cell in the file; 0 for a cell without a row."""
    relations: csr_array
    lo: FloatArray
    hi: FloatArray
    withheld: BoolArray
    counts: FloatArray | None
    """Number of contributors; NaN where it is not published."""

    def label(self, cell: int) -> str:
        """Return the name of a cell, with its line."""
        name = format_cell_name({d: h.codes for d, h in self.hierarchies.items()}, self.cells[cell])
        return f"{name} (line {self.lines[cell]})" if self.place and self.lines[cell] else name

    def get_codes(self, cells: IntArray) -> dict[str, list[str]]:
        """Return the codes of some cells, dimension by dimension."""
        out = {}
        for d, (name, h) in enumerate(self.hierarchies.items()):
            out[name] = [h.codes[i] for i in self.cells[cells, d].tolist()]
        return out


def read_published(frame: Any, reading: PublishedReading) -> PublishedCells:
    """Read a published table from a file or a frame."""
    from cellguard._io.frames import read_frame, read_frame_columns

    raise_if_unknown("missing", reading.missing, _ABSENT)
    if reading.rounded_to < 0:
        raise InputError("rounded_to: a number of at least 0 is needed.")
    from_file = isinstance(frame, (str, Path))
    columns = read_frame(frame) if from_file else read_frame_columns(frame)
    reader = _PublishedReader(columns, reading, str(frame) if from_file else "")
    return reader.read()


class _PublishedReader:
    def __init__(self, columns: Mapping[str, Any], reading: PublishedReading, place: str) -> None:
        self.columns, self.reading, self.place = columns, reading, place
        before = f"{place}: " if place else ""
        raise_error_of_missing("column", reading.named, columns, place=before)
        raise_error_of_missing("column", reading.ignore, columns, place=before)
        self.value = reading.value or self._find_column(_VALUES)
        self.status = reading.status or self._find_column(STATUS_NAMES)
        if self.value is None:
            raise self._refuse(1, "no column of values.", "name it: value='turnover', --value turnover.")

    def _find_column(self, names: Sequence[str]) -> str | None:
        taken = {*self.reading.named, *self.reading.ignore, *(self.reading.dims or ())}
        spelt = {name.strip().lower(): name for name in self.columns if name not in taken}
        return next((spelt[name] for name in names if name in spelt), None)

    def _refuse(self, line: int | None, what: str, hint: str | None = None) -> InputError:
        return FormatError.at(self.place, line, what, hint=hint) if self.place else InputError(what, hint=hint)

    def read(self) -> PublishedCells:
        hierarchies, rows = self._read_codes()
        cells, place, lines = self._place_rows(hierarchies, rows)
        n = len(cells)
        value, withheld = np.full(n, np.nan), np.ones(n, bool)
        number = self._read_numbers(self.value or "")
        hidden = self._find_marked() | np.isnan(number)
        value[place], withheld[place] = np.where(hidden, np.nan, number), hidden
        counts = None
        if self.reading.count is not None:
            counts = np.full(n, np.nan)
            counts[place] = self._read_numbers(self.reading.count)
        lo, hi = self._read_bounds(place, n)
        half = self.reading.rounded_to / 2
        lo, hi = np.where(withheld, lo, value - half), np.where(withheld, hi, value + half)
        if counts is not None:
            empty = withheld & (counts == 0)
            lo, hi = np.where(empty, 0.0, lo), np.where(empty, 0.0, hi)
        crossed = np.flatnonzero(lo > hi)
        if len(crossed):
            line = int(lines[crossed[0]]) or None
            raise self._refuse(line, "the least value that is known lies above the greatest.", "see its columns.")
        zero = self.reading.missing == "zero"
        T = build_relations(tuple(hierarchies.values()), cells, absent_is_zero=zero)
        return PublishedCells(
            place=self.place, hierarchies=hierarchies, cells=cells, lines=lines, relations=T,
            lo=lo, hi=hi, withheld=withheld, counts=counts,
        )  # fmt: skip

    # ------------------------------------------------------------------ codes

    def _read_codes(self) -> tuple[dict[str, Hierarchy], Coordinates]:
        from cellguard._io.frames import encode_frame_column

        r = self.reading
        others = {self.value, self.status, *r.named, *r.ignore}
        dims = r.dims or [name for name in self.columns if name not in others]
        named: dict[str, Any] = dict(dims) if isinstance(dims, Mapping) else dict.fromkeys(dims)
        raise_error_of_missing("column", named, self.columns, place=f"{self.place}: " if self.place else "")
        if not named:
            raise self._refuse(1, "no column of codes.", "name the dimensions.")
        hierarchies, indices = {}, []
        for name, given in named.items():
            seen, index = encode_frame_column(self.columns[name])
            if (index < 0).any():
                line = int(np.argmin(index)) + 2
                raise self._refuse(line, f"column {name!r} has no code.", "write the code of the total in full.")
            total = r.total or (find_total(seen, letter=True) if given is None else None)
            h = hierarchies[name] = Hierarchy.of(given, codes=seen, total=total)
            try:
                indices.append(h.index(seen)[index])
            except UnknownCodeError as error:
                unknown = next(i for i, code in enumerate(seen) if code not in set(h.codes))
                line = int(np.argmax(index == unknown)) + 2
                raise self._refuse(line, f"column {name!r}: {error.message}", error.hint) from None
        return hierarchies, np.column_stack(indices).astype(np.int32)

    def _place_rows(
        self, hierarchies: Mapping[str, Hierarchy], rows: Coordinates
    ) -> tuple[Coordinates, IntArray, IntArray]:
        """Return the cells, the cell of each row, and the line of each cell."""
        from cellguard._engine.space.cell_grid import compute_grid_keys, find_grid_places

        sizes = [len(h) for h in hierarchies.values()]
        keys = compute_grid_keys(rows, sizes)
        listed, first = np.unique(keys, return_index=True)
        if len(listed) < len(keys):
            again = int(np.setdiff1d(np.arange(len(keys)), first)[0])
            name = format_cell_name({d: h.codes for d, h in hierarchies.items()}, rows[again])
            raise self._refuse(again + 2, f"{name} is listed twice.", "each cell has one row.")
        cells = build_coordinates(hierarchies) if self.reading.missing == "withheld" else rows
        place = find_grid_places(compute_grid_keys(cells, sizes), keys, sizes)
        lines = np.zeros(len(cells), np.int64)
        lines[place] = np.arange(len(rows)) + 2
        return cells, place, lines

    # ------------------------------------------------------------------ numbers

    def _read_numbers(self, name: str) -> FloatArray:
        """Return a column of numbers; marks of withheld cells become NaN."""
        import pyarrow as pa

        from cellguard._io.frames import convert_to_numbers, encode_frame_column

        column = self.columns[name]
        if not pa.types.is_string(column.type):
            return convert_to_numbers(column, name)
        words, index = encode_frame_column(column)
        blank = [word.strip().lower() in BLANKS for word in words]
        distinct = [None if hidden else word for word, hidden in zip(words, blank, strict=True)]
        try:
            numbers = convert_to_numbers(pa.array(distinct, pa.string()), name)
        except InputError as error:
            at = next(i for i, word in enumerate(distinct) if word is not None and not _is_number(word))
            line = int(np.argmax(index == at)) + 2
            raise self._refuse(line, f"column {name!r} holds something that is not a number.", error.hint) from None
        return np.where(index >= 0, np.append(numbers, np.nan)[index], np.nan)

    def _find_marked(self) -> BoolArray:
        """Return the rows that the status column marks as withheld."""
        from cellguard._io.frames import encode_frame_column

        if self.status is None:
            return np.zeros(len(self.columns[self.value or ""]), bool)
        words, index = encode_frame_column(self.columns[self.status])
        marks = {mark.strip().lower() for mark in self.reading.marks} or WITHHELD_MARKS
        return np.array([*(word.strip().lower() in marks for word in words), False], bool)[index]

    def _read_bounds(self, place: IntArray, n: int) -> tuple[FloatArray, FloatArray]:
        """Return what is known about withheld cells before anything is added up."""
        lo, hi = np.full(n, -np.inf if self.reading.negative else 0.0), np.full(n, np.inf)
        r = self.reading
        for name, bound, narrow in ((r.lower, lo, np.fmax), (r.upper, hi, np.fmin)):
            if name is not None:
                bound[place] = narrow(bound[place], self._read_numbers(name))
        for ratio, denominator in (r.ratios or {}).items():
            least, most = _bound_by_ratio(
                self.columns[ratio], self._read_numbers(ratio), self._read_numbers(denominator)
            )
            lo[place], hi[place] = np.fmax(lo[place], least), np.fmin(hi[place], most)
        return lo, hi


def _is_number(word: str) -> bool:
    try:
        float(word.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _bound_by_ratio(column: Any, ratio: FloatArray, denominator: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the least and greatest numerators of a printed ratio, which is rounded to its decimals."""
    from cellguard._io.frames import convert_to_texts

    texts = [text.strip().replace(",", ".") for text in convert_to_texts(column)]
    half = np.array([0.5 * 10.0 ** -len(text.partition(".")[2]) for text in texts])
    ends = (ratio - half) * denominator, (ratio + half) * denominator
    return np.minimum(*ends), np.maximum(*ends)

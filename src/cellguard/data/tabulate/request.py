"""What is asked of the records, in words that every database understands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log2, log10
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cellguard.data.tabulate.people import People
from cellguard.exceptions import InputError, raise_error_of_missing

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Facts", "Finest", "NoRecordsError", "Records", "Roles", "Scale", "check_columns_to_tabulate",
    "check_records_to_tabulate", "tabulation_facts_of_records",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which column plays which part; None where nothing does."""

    dimensions: tuple[str, ...]
    value: str | None = None
    shadow: str | None = None
    weight: str | None = None
    holding: str | None = None
    waiver: str | None = None
    request: str | None = None
    request_codes: tuple[str, ...] = ("1", "2")
    cost: str | None = None
    decimal: str = "."
    """Decimal sign of numbers that are text."""
    decimals: int | None = None
    """Decimals that values are rounded to before they are added up; None leaves them."""
    skip_missing: bool = False
    """Leave out records without a value instead of refusing them."""
    standalone: bool = False
    """Records without a holding stand alone instead of being refused."""

    @property
    def numeric(self) -> dict[str, str]:
        """The columns that must hold numbers, by their part."""
        parts = {"value": self.value, "shadow": self.shadow, "weight": self.weight, "cost": self.cost}
        return {part: column for part, column in parts.items() if column is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        rest = (self.holding, self.waiver, self.request)
        wanted = [*self.dimensions, *self.numeric.values(), *(c for c in rest if c is not None)]
        return tuple(dict.fromkeys(wanted))

    def present(self, **columns: str) -> list[str]:
        """Return those columns whose part is played: ``present(weight="w")`` is ``["w"]`` if there are weights."""
        return [column for part, column in columns.items() if getattr(self, part) is not None]


_LARGEST = 1e280
"""Sums beyond this leave the range of floating point sooner or later."""


class Facts(NamedTuple):
    """What one pass over the records tells before they are added up."""

    records: int
    missing: Mapping[str, int]
    """Records without a usable entry, by part (value, shadow, weight, cost, holding)."""
    not_numbers: Mapping[str, int]
    """Entries that are there and are no finite numbers, by part."""
    negative: Mapping[str, int]
    """Negative numbers, by part."""
    absolute: Mapping[str, float]
    """Sum of the absolute weighted numbers, by part; of the weights themselves under ``weight``."""
    scales: Mapping[str, Scale] = MappingProxyType({})
    """How numbers are added up exactly, by part, where that was decided already: for several tables at once."""


def tabulation_facts_of_records(row: Mapping[str, Any]) -> Facts:
    """Sort the columns of the first look into what they say."""

    def named(prefix: str) -> dict[str, Any]:
        return {k.removeprefix(prefix): v or 0 for k, v in row.items() if k.startswith(prefix)}

    absolute = {part: float(total) for part, total in named("absolute_").items()}
    for part, total in named("plain_").items():  # holdings add up contributions without their weights
        absolute[part] = max(absolute[part], float(total))
    if "value" not in absolute:
        absolute["value"] = absolute.get("weight", float(row["records"]))
    missing = {k: int(v) for k, v in named("missing_").items()}
    bad = {k: int(v) for k, v in named("bad_").items()}
    negative = {k: int(v) for k, v in named("negative_").items()}
    return Facts(int(row["records"]), missing, bad, negative, absolute)


class Scale(NamedTuple):
    """Makes sums exact, whatever the order in which a database adds: ``x = whole / a + part / (a b)``.

    `a` is a power of ten such that the sum of all ``round(a x)`` stays below 2^53, and `b` a power of
    two such that the sum of the remainders does: sums of whole numbers below 2^53 are exact in
    floating point. Amounts with few decimals have no remainder at all, so their totals come out as
    the nearest number to the true sum.
    """

    whole: float
    part: float

    @classmethod
    def of(cls, absolute: float, records: int) -> Scale:
        """Return the scale for numbers whose absolute values add up to `absolute`."""
        exponent = floor(log10(2.0**52 / max(absolute, 1e-250)))
        return cls(10.0 ** max(-22, min(22, exponent)), 2.0 ** floor(log2(2.0**52 / max(records, 1))))


class Finest(NamedTuple):
    """The records, added up by every combination of codes that occurs.

    Columns of codes are called d0, d1, ... Sums come in pairs, ``y0, y1`` being whole and part.
    """

    cells: pa.Table
    """records, n (contributors in one cell only), y (value), w (weights), x (total of contributions), c (cost),
    protected (largest contribution without a waiver), top (a list of the largest ones, instead of the next table;
    where records are numbered, each with its own)."""
    top: pa.Table | None
    """The largest contributions of each cell, a row for each: x, w, r (request), h (holding) or i (record)."""
    shared: pa.Table | None
    """Holdings in several cells, a row for each: h, sx (signed), ax, wax (absolute), sw, n, q (waived), r."""


class Records(Protocol):
    """Somewhere records are, and can be added up."""

    people: People
    """Who contributed, as far as somebody asks."""

    @property
    def numbered(self) -> bool:
        """Whether a record is the same person in every question."""

    def number(self, columns: Sequence[str]) -> None:
        """Let every record be one person in all questions that follow; `columns` are all that they look at."""

    def columns(self) -> Sequence[str]:
        """Return the names of the columns."""

    def facts(self, roles: Roles) -> Facts:
        """Look at the records once."""

    def finest(self, roles: Roles, scales: Mapping[str, Scale], units: int) -> Finest:
        """Add up the records, and keep enough of the largest contributions to fill `units` units."""

    def first_line(self, column: str, decimal: str, *, missing: bool) -> int | None:
        """Return the first line of a text file with no entry in a column, or one that is no number."""

    def only(self, where: Mapping[str, str | Sequence[str]]) -> None:
        """Leave out records with other codes."""

    def close(self) -> None:
        """Give back what was needed for the work."""


def check_columns_to_tabulate(known: Sequence[str], roles: Roles) -> None:
    """Refuse columns that do not exist."""
    raise_error_of_missing("column", roles.columns, known, place="the records: ")
    for part, column in roles.numeric.items():
        if column in roles.dimensions:
            raise InputError(f"column {column!r} cannot be a dimension and the {part} at once.")


class NoRecordsError(InputError):
    """There is nobody to add up."""


def check_records_to_tabulate(facts: Facts, roles: Roles, records: Records) -> None:
    """Refuse records that cannot be added up; says how many, which column and where first, never what they hold."""
    if facts.records == 0:
        raise NoRecordsError("there are no records.")
    for message, hint in _wrong_records(facts, roles, records):
        raise InputError(message, hint=hint)


def _tabulated_records_in_words(count: int, column: str, roles: Roles, records: Records, *, missing: bool) -> str:
    """Say how many records it is about, and which line of a text file is the first."""
    line = records.first_line(column, roles.decimal, missing=missing)
    word = "record" if count == 1 else "records"
    return f"{count:,} {word}" + ("" if line is None else f" ({'' if count == 1 else 'the first in '}line {line})")


def _wrong_records(facts: Facts, roles: Roles, records: Records) -> Iterator[tuple[str, str]]:
    for part, absolute in facts.absolute.items():
        if not absolute < _LARGEST:
            yield (
                f"column {roles.numeric.get(part)!r} ({part}): the numbers are too large to add up.",
                "use a larger unit.",
            )
    for part, column in roles.numeric.items():
        count = facts.not_numbers.get(part, 0)
        if count:
            yield (
                (
                    f"column {column!r} ({part}): "
                    f"{_tabulated_records_in_words(count, column, roles, records, missing=False)} "
                    f"{'holds' if count == 1 else 'hold'} something that is not a finite number."
                ),
                "is the decimal sign a comma? then say decimal = ','."
                if roles.decimal == "."
                else "correct the data; numbers must not have signs between thousands.",
            )
        count = facts.missing.get(part, 0)
        if count and not (part == "value" and roles.skip_missing):
            yield (
                (
                    f"column {column!r} ({part}): "
                    f"{_tabulated_records_in_words(count, column, roles, records, missing=True)} "
                    f"{'has' if count == 1 else 'have'} no number."
                ),
                "skip_missing leaves out records without a value." if part == "value" else "correct the data.",
            )
    if facts.negative.get("weight", 0):
        yield f"column {roles.weight!r} (weight): {facts.negative['weight']} records are negative.", "weights are >= 0."
    if facts.negative.get("cost", 0):
        yield f"column {roles.cost!r} (cost): {facts.negative['cost']} records are negative.", "costs are >= 0."
    if facts.missing.get("holding", 0) and not roles.standalone:
        yield (
            f"column {roles.holding!r} (holding): {facts.missing['holding']} records belong to no holding.",
            "standalone says that such a record stands alone: it is its own holding.",
        )

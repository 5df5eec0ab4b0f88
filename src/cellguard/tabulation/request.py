"""Queries to the records, in terms that every database supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log2, log10
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from cellguard.exceptions import InputError, raise_error_of_missing
from cellguard.tabulation.people import People

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "KEPT_CONTRIBUTIONS", "Facts", "Finest", "NoRecordsError", "Records", "Roles", "Scale", "check_columns_to_tabulate",
    "check_records_to_tabulate", "sort_first_look",
]  # fmt: skip


KEPT_CONTRIBUTIONS = 5
"""Number of largest contributions of a cell to keep, for rules and for contributors as attackers.

No omitted contribution exceeds a fifth of its cell, or the rest of it after the kept ones: attackers are assumed to
have that much (:mod:`cellguard.attackers.respondents`). In a survey of 20,000 records with 1,525 cells, 28 cells were
open to some contributor with 3, 5 or 8 kept (one of them only because of this bound), and 32 with 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The role of each column; None for roles without a column."""

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
    """Number of decimals to which values are rounded before they are added up; None leaves them unchanged."""
    skip_missing: bool = False
    """Leave out records without a value instead of refusing them."""
    standalone: bool = False
    """Treat records without a holding as their own instead of refusing them."""
    leading_zeros: tuple[str, ...] = ()
    """Dimensions whose codes may have lost leading zeros: the hierarchy's codes are meant."""

    @property
    def numeric(self) -> dict[str, str]:
        """The columns that must hold numbers, by role."""
        parts = {"value": self.value, "shadow": self.shadow, "weight": self.weight, "cost": self.cost}
        return {part: column for part, column in parts.items() if column is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that is read, each once."""
        rest = (self.holding, self.waiver, self.request)
        wanted = [*self.dimensions, *self.numeric.values(), *(c for c in rest if c is not None)]
        return tuple(dict.fromkeys(wanted))

    def select_present(self, **columns: str) -> list[str]:
        """Return the items whose role has a column: ``select_present(weight="w")`` is ``["w"]`` with weights."""
        return [column for part, column in columns.items() if getattr(self, part) is not None]


_LARGEST = 1e280
"""Maximum of a sum: larger ones may exceed the range of floating point."""


class Facts(NamedTuple):
    """Facts from one pass over the records before they are added up."""

    records: int
    missing: Mapping[str, int]
    """Records without a usable entry, by role (value, shadow, weight, cost, holding)."""
    not_numbers: Mapping[str, int]
    """Entries that are not finite numbers, by role."""
    negative: Mapping[str, int]
    """Negative numbers, by role."""
    absolute: Mapping[str, float]
    """Sum of the absolute weighted numbers, by role; of the weights themselves under ``weight``."""
    scales: Mapping[str, Scale] = MappingProxyType({})
    """Scales of exact sums, by role, if already decided for several tables at once."""


def sort_first_look(row: Mapping[str, Any]) -> Facts:
    """Sort the columns of the first look by their meaning."""

    def select_by_prefix(prefix: str) -> dict[str, Any]:
        return {k.removeprefix(prefix): v or 0 for k, v in row.items() if k.startswith(prefix)}

    absolute = {part: float(total) for part, total in select_by_prefix("absolute_").items()}
    for part, total in select_by_prefix("plain_").items():  # holdings add up contributions without their weights
        absolute[part] = max(absolute[part], float(total))
    if "value" not in absolute:
        absolute["value"] = absolute.get("weight", float(row["records"]))
    missing = {k: int(v) for k, v in select_by_prefix("missing_").items()}
    bad = {k: int(v) for k, v in select_by_prefix("bad_").items()}
    negative = {k: int(v) for k, v in select_by_prefix("negative_").items()}
    return Facts(int(row["records"]), missing, bad, negative, absolute)


class Scale(NamedTuple):
    """Scale that makes sums exact, regardless of the order of addition: ``x = whole / a + part / (a b)``.

    `a` is a power of ten such that the sum of all ``round(a x)`` stays below 2^53, and `b` a power of
    two such that the sum of the remainders does: sums of whole numbers below 2^53 are exact in
    floating point. Amounts with few decimals have no remainder, so their totals are
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

    Columns of codes are called d0, d1, ... Sums come in pairs: ``y0, y1`` are whole and part.
    """

    cells: pa.Table
    """records, n (contributors in one cell only), y (value), w (weights), x (total of contributions), c (cost),
    protected (largest contribution without a waiver), top (a list of the largest ones, instead of the next table;
    where records are numbered, each with its own)."""
    top: pa.Table | None
    """The largest contributions of each cell, one row each: x, w, r (request), h (holding) or i (record)."""
    shared: pa.Table | None
    """Holdings in several cells, one row each: h, sx (signed), ax, wax (absolute), sw, n, q (waived), r."""


class Records(Protocol):
    """A source of records that can add them up."""

    people: People
    """The contributors, if they are needed."""

    @property
    def numbered(self) -> bool:
        """Whether a record is identified as the same person in every query."""

    def number(self, columns: Sequence[str]) -> None:
        """Identify every record as one person in all later queries; `columns` are all that the queries use."""

    def list_columns(self) -> Sequence[str]:
        """Return the names of the columns."""

    def collect_facts(self, roles: Roles) -> Facts:
        """Inspect the records in one pass."""

    def aggregate_finest(self, roles: Roles, scales: Mapping[str, Scale], units: int) -> Finest:
        """Add up the records, and keep enough of the largest contributions to fill `units` units."""

    def find_first_line(self, column: str, decimal: str, *, missing: bool) -> int | None:
        """Return the first line of a text file without an entry in a column, or with one that is not a number."""

    def restrict_to(self, where: Mapping[str, str | Sequence[str]]) -> None:
        """Leave out records with other codes."""

    def close(self) -> None:
        """Release the resources."""


def check_columns_to_tabulate(known: Sequence[str], roles: Roles) -> None:
    """Refuse columns that do not exist."""
    raise_error_of_missing("column", roles.columns, known, place="the records: ")
    for part, column in roles.numeric.items():
        if column in roles.dimensions:
            raise InputError(f"column {column!r} cannot be a dimension and the {part} at once.")


class NoRecordsError(InputError):
    """There are no records to add up."""


def check_records_to_tabulate(facts: Facts, roles: Roles, records: Records) -> None:
    """Refuse records that cannot be added up; report how many, the column and the first line, never their content."""
    if facts.records == 0:
        raise NoRecordsError("there are no records.")
    for message, hint in _find_wrong_records(facts, roles, records):
        raise InputError(message, hint=hint)


def _describe_records(count: int, column: str, roles: Roles, records: Records, *, missing: bool) -> str:
    """Describe how many records are affected, and the first line of a text file."""
    line = records.find_first_line(column, roles.decimal, missing=missing)
    word = "record" if count == 1 else "records"
    return f"{count:,} {word}" + ("" if line is None else f" ({'' if count == 1 else 'the first in '}line {line})")


def _explain_numbers(roles: Roles) -> str:
    """Say what makes an entry no number: the decimal sign, signs between thousands, or a mark for missing data."""
    sign = "is the decimal sign a comma? then say decimal = ','. " if roles.decimal == "." else ""
    return (
        f"{sign}Numbers must not have signs between thousands; marks such as NA, x or - are no numbers: leave such "
        "entries empty, and skip_missing leaves out these records."
    )


def _find_wrong_records(facts: Facts, roles: Roles, records: Records) -> Iterator[tuple[str, str]]:
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
                    f"{_describe_records(count, column, roles, records, missing=False)} "
                    f"{'holds' if count == 1 else 'hold'} something that is not a finite number."
                ),
                _explain_numbers(roles),
            )
        count = facts.missing.get(part, 0)
        if count and not (part == "value" and roles.skip_missing):
            yield (
                (
                    f"column {column!r} ({part}): "
                    f"{_describe_records(count, column, roles, records, missing=True)} "
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

"""Reference periods: what their names mean, and which of them add up to which."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = [
    "Period", "find_linked_periods", "find_previous", "find_sums", "get_previous", "normalize_period", "parse_period",
]  # fmt: skip

_YEAR = r"(?P<year>\d{4})"
_NAMES = {
    re.compile(_YEAR): 12,
    re.compile(_YEAR + r"-?[HS](?P<number>[12])"): 6,
    re.compile(_YEAR + r"-?Q(?P<number>[1-4])"): 3,
    re.compile(_YEAR + r"(?:-M?|M)(?P<number>0[1-9]|1[0-2])"): 1,
}
"""Patterns of names -> months of the period."""
_SPAN = re.compile(r"(.+?)\s*(?:\.\.|/)\s*(.+)")
"""A span from the beginning of one period to the end of another: ``2025-01..2025-06``."""


@dataclass(frozen=True, order=True)
class Period:
    """A span of whole months."""

    first: int
    """Its first month, counted from the year 0."""
    months: int
    """How many months it has."""

    @property
    def end(self) -> int:
        """The first month after it."""
        return self.first + self.months


def parse_period(name: str) -> Period | None:
    """Return the months that a name means; None for a name that is not a year, half-year, quarter, month or span.

    >>> parse_period("2025Q2"), parse_period("2025-01..2025-06").months, parse_period("spring")
    (Period(first=24303, months=3), 6, None)
    """
    text = name.strip().upper()
    for pattern, months in _NAMES.items():
        found = pattern.fullmatch(text)
        if found is not None:
            number = int(found.groupdict().get("number") or 1)
            return Period(12 * int(found["year"]) + months * (number - 1), months)
    span = _SPAN.fullmatch(text)
    if span is None:
        return None
    first, last = parse_period(span[1]), parse_period(span[2])
    return (
        None
        if first is None or last is None or last.end <= first.first
        else Period(first.first, last.end - first.first)
    )


def normalize_period(name: str) -> str:
    """Return the name of a period in one spelling, so that 2025-Q1 and 2025q1 are the same period.

    >>> normalize_period("2025-Q1"), normalize_period("2025m03"), normalize_period("spring")
    ('2025Q1', '2025-03', 'spring')
    """
    own = parse_period(name)
    return name.strip() if own is None else _name_period(own)


def _name_period(own: Period) -> str:
    year, month = divmod(own.first, 12)
    if own.months in (12, 6, 3, 1) and month % own.months == 0:
        number = month // own.months + 1
        return {12: f"{year}", 6: f"{year}H{number}", 3: f"{year}Q{number}", 1: f"{year}-{number:02}"}[own.months]
    last_year, last = divmod(own.end - 1, 12)
    return f"{year}-{month + 1:02}..{last_year}-{last + 1:02}"


def get_previous(name: str) -> str:
    """Return the name of the period of the same length that ends where another begins; "" if it is not known.

    >>> get_previous("2025Q1"), get_previous("spring")
    ('2024Q4', '')
    """
    own = parse_period(name)
    return "" if own is None else _name_period(Period(own.first - own.months, own.months))


def find_previous(name: str, known: Iterable[str]) -> str | None:
    """Return the name of the period of the same length that ends where another begins, if it is among the known.

    >>> find_previous("2025Q1", ["2024Q4", "2024"])
    '2024Q4'
    """
    own = parse_period(name)
    if own is None:
        return None
    before = Period(own.first - own.months, own.months)
    return next((other for other in known if parse_period(other) == before), None)


def find_sums(names: Sequence[str]) -> dict[tuple[str, tuple[str, ...]], bool]:
    """Return which periods are sums of others: (total, parts) -> whether the parts cover the total completely.

    >>> find_sums(["2025", "2025Q1", "2025Q2", "2025-01..2025-06"])
    {('2025', ('2025Q1', '2025Q2')): False, ('2025', ('2025-01..2025-06',)): False,
     ('2025-01..2025-06', ('2025Q1', '2025Q2')): True}
    """
    periods = {name: period for name in dict.fromkeys(names) if (period := parse_period(name)) is not None}
    out: dict[tuple[str, tuple[str, ...]], bool] = {}
    for total, whole in periods.items():
        inside = {
            name: p for name, p in periods.items() if p != whole and whole.first <= p.first and p.end <= whole.end
        }
        for parts in _list_partitions(whole, inside):
            out[total, parts] = _cover(whole, [periods[name] for name in parts])
    return out


def _list_partitions(whole: Period, inside: Mapping[str, Period]) -> list[tuple[str, ...]]:
    """Return the partitions of a period: into periods of one length, and into a beginning and what follows it."""
    found: list[tuple[str, ...]] = []
    for months in sorted({p.months for p in inside.values()}):
        steps = {(p.first - whole.first) % months for p in inside.values() if p.months == months}
        if whole.months % months == 0 and steps == {0}:
            found.append(tuple(name for name, p in inside.items() if p.months == months))
    for name, beginning in inside.items():
        if beginning.first != whole.first or beginning.months * 2 < whole.months:
            continue
        for months in sorted({p.months for p in inside.values() if p.first >= beginning.end}):
            later = [other for other, p in inside.items() if p.first >= beginning.end and p.months == months]
            if _cover(whole, [beginning, *(inside[other] for other in later)]):
                found.append((name, *later))
    return list(dict.fromkeys(found))


def _cover(whole: Period, parts: Sequence[Period]) -> bool:
    """Return whether parts follow each other without a gap from the beginning of a period to its end."""
    ordered = sorted(parts)
    joined = all(one.end == other.first for one, other in pairwise(ordered))
    return joined and ordered[0].first == whole.first and ordered[-1].end == whole.end


def find_linked_periods(period: str, known: Iterable[str], *, additive: bool, neighbours: bool) -> set[str]:
    """Return the known periods that are linked with a period, directly or through others.

    Periods that overlap are linked if values add up; neighbouring ones if the preceding value is prior knowledge.

    >>> sorted(find_linked_periods("2025Q2", ["2025", "2025Q1", "2024Q4", "2024"], additive=True, neighbours=False))
    ['2025', '2025Q1']
    """
    left = {name: parse_period(name) for name in known}
    found: set[str] = set()
    asked = [period]
    while asked:
        name = asked.pop()
        own = parse_period(name)
        near = [
            other
            for other, p in left.items()
            if other == name or (own is not None and p is not None and _touch(own, p, additive, neighbours))
        ]
        for other in near:
            del left[other]
            found.add(other)
            asked.append(other)
    return found


def _touch(one: Period, other: Period, additive: bool, neighbours: bool) -> bool:
    """Return whether two periods are linked directly."""
    overlap = one.first < other.end and other.first < one.end
    beside = one.months == other.months and one.first in (other.end, 2 * other.first - other.end)
    return (additive and overlap) or (neighbours and beside) or one == other

"""Links between periods and versions: sums of periods, revisions, and the preceding period as prior knowledge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cellguard._tolerances import MEANT_TO_BE_SAME
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.history.cells import JointCells
from cellguard.history.earlier import History
from cellguard.history.periods import find_previous, find_sums, normalize_period
from cellguard.history.rows import Rows, convert_to_fraction

__all__ = ["add_links"]


def add_links(rows: Rows, cells: JointCells, history: History, values: FloatArray, known: BoolArray) -> None:
    """Add the declared links between versions.

    `values` are the true values, NaN where they are not known; `known` are the cells that readers know. A link
    between known cells only says nothing new and is left out.
    """
    for link in _find_period_sums(cells, history):
        _add_sum(rows, cells, history, values, known, link)
    for later, before, percent, kind in _find_period_bounds(cells, history):
        here = np.flatnonzero(cells.coordinates[:, 0] == later)
        there = cells.find(here, before)
        both = there >= 0
        _add_bound(rows, np.column_stack([here[both], there[both]]), percent, values, known, kind)


@dataclass(frozen=True)
class _Sum:
    """A period that is the sum of others, in certain versions."""

    total: int
    """Version of the total."""
    parts: tuple[int, ...]
    """Versions of the parts."""
    covered: bool
    """Whether the parts are the whole total."""
    certain: bool
    """Whether it must hold; otherwise it is used where it does, because revisions may have come between."""
    stale: bool = False
    """Whether a part was revised after the total: readers use the sum only if it still holds everywhere."""


def _find_period_sums(cells: JointCells, history: History) -> Iterator[_Sum]:
    """Yield the sums of periods: in their newest versions, and in older ones as they were out at the same time."""
    newest = dict.fromkeys(_list_sums(cells, history, None))
    for total, parts, covered in newest:
        stale = any(_is_revised_after(cells, part, total) for part in parts)
        yield _Sum(total, parts, covered, certain=history.revision_percent is None, stale=stale)
    if len(set(cells.periods)) == len(cells.periods):
        return
    older: dict[tuple[int, tuple[int, ...], bool], None] = {}
    for until in range(1, len(history.releases) + 1):
        older |= dict.fromkeys(_list_sums(cells, history, until))
    for total, parts, covered in older:
        replaced = any(cells.get_newest_version(cells.periods[k]) != k for k in (total, *parts))
        if replaced:  # all others follow from the newest ones
            stale = any(_is_revised_after(cells, part, total) for part in parts)
            yield _Sum(total, parts, covered, certain=False, stale=stale)


def _is_revised_after(cells: JointCells, part: int, total: int) -> bool:
    """Return whether a version is a revision that came out after the version of a total."""
    order = list(dict.fromkeys([*cells.version_of, 0]))  # version 0 may have been out before
    before = [k for k in order[: order.index(part)] if cells.periods[k] == cells.periods[part]]
    return bool(before) and order.index(part) > order.index(total)


def _list_sums(cells: JointCells, history: History, until: int | None) -> Iterator[tuple[int, tuple[int, ...], bool]]:
    """Yield the versions of each total period and of its parts, and whether they cover it, among the first releases."""
    out = [cells.periods[k] for k in cells.version_of[:until]]
    periods = list(dict.fromkeys([cells.periods[0], *out] if until is None else out))
    sums = dict(find_sums(periods)) if history.additive else {}
    for total, parts in history.sums.items():
        names = [normalize_period(part) for part in parts]
        there = tuple(name for name in names if name in periods)
        if normalize_period(total) in periods and there:
            sums[normalize_period(total), there] = len(there) == len(parts)
    for (total, known), covered in sums.items():
        found = [cells.get_newest_version(name, until) for name in (total, *known)]
        first, *others = (version for version in found if version is not None)
        yield first, tuple(others), covered


def _find_period_bounds(cells: JointCells, history: History) -> Iterator[tuple[int, int, float, str]]:
    """Yield pairs of versions whose values are close: later, before, per cent, kind of link."""
    for period in dict.fromkeys(cells.periods):
        mine = [k for k, name in enumerate(cells.periods) if name == period]
        if mine[0] == 0:  # the new release is the newest version of its period
            mine = [*mine[1:], 0]
        if history.revision_percent is not None:
            for before, later in pairwise(mine):
                yield later, before, history.revision_percent, "revision"
        earlier = find_previous(period, cells.periods)
        if history.prior_percent is not None and earlier is not None:
            yield mine[-1], cells.get_newest_version(earlier), history.prior_percent, "preceding period"  # type: ignore[misc]


def _add_sum(
    rows: Rows, cells: JointCells, history: History, values: FloatArray, known: BoolArray, link: _Sum
) -> None:  # fmt: skip
    """Add the rows of one sum of periods; parts that are missing leave a rest of at least 0."""
    here = np.flatnonzero(cells.coordinates[:, 0] == link.total)
    there = np.column_stack([cells.find(here, part) for part in link.parts])
    some = (there >= 0).any(axis=1)
    table = np.column_stack([here, there])[some]
    unknown = np.where(table >= 0, ~known[table], False).any(axis=1)
    table = table[unknown]
    whole: BoolArray = np.asarray((table >= 0).all(axis=1)) & np.full(len(table), link.covered)
    signs = np.array([1.0, *([-1.0] * len(link.parts))])
    truth = np.where(table >= 0, values[table], 0.0) @ signs
    slack = history.tolerance + MEANT_TO_BE_SAME * np.maximum(
        1.0, np.abs(np.where(table >= 0, values[table], 0.0)).sum(axis=1)
    )
    wrong = whole & (np.abs(truth) > slack)
    if wrong.any() and link.certain:
        raise InputError(
            f"{int(wrong.sum())} cells of {cells.periods[link.total]!r} are not the sum of "
            f"{', '.join(repr(cells.periods[k]) for k in link.parts)}.",
            hint="say additive = false for stocks, revision_percent if values were revised, or a tolerance for rounded "
            "figures.",
        )
    if wrong.any() and link.stale:
        return
    negative = ~whole & (truth < -slack)
    if negative.any() and link.certain:  # values may be negative: what is missing says nothing
        negative = ~whole
    table, whole = table[~wrong & ~negative], whole[~wrong & ~negative]
    if history.tolerance:
        allowed = float(np.floor(history.tolerance)) if rows.whole else history.tolerance
        rows.add("sum of periods", table, signs, rhs=-allowed, surplus=0.0)
        rows.add("sum of periods", table[whole], -signs, rhs=-allowed, surplus=0.0)
        return
    rows.add("sum of periods", table[whole], signs)
    rows.add("sum of periods", table[~whole], signs, surplus=0.0)


def _add_bound(rows: Rows, pairs: IntArray, percent: float, values: FloatArray, known: BoolArray, kind: str) -> None:
    """Add rows: the first cell of each pair is within a percentage of the second, which is not negative."""
    share = convert_to_fraction(percent) / 100
    now, before = values[pairs[:, 0]], values[pairs[:, 1]]
    # what does not hold would mislead an attacker: it says nothing about the truth
    holds = ~(np.abs(now - before) > float(share) * before) & ~(before < 0)
    pairs = pairs[holds & ~known[pairs].all(axis=1)]
    up, down = 1 + share, 1 - share
    rows.add(kind, pairs, np.array([-up.denominator, up.numerator], np.float64), surplus=0.0)
    rows.add(kind, pairs, np.array([down.denominator, -down.numerator], np.float64), surplus=0.0)

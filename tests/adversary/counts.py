"""Two-way tables of counts, and the attacker who excludes tables for which another pattern would have been chosen.

Everything by enumeration: all tables of counts that agree with what is published, and of these the
ones for which the published pattern is one that could have been drawn (it is safe for them and no
cell of it could be left out). Over them a sensitive cell must keep its width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import cellguard as cg
from adversary.cases import Case
from adversary.checker import Interval, Violation
from adversary.meaning import find_bounds, find_least

MANY = 4000
"""Tables to enumerate, at most."""


def frequency(rng: np.random.Generator) -> tuple[cg.Table, int]:
    """Draw a small two-way table of counts with published margins; return it and its threshold."""
    threshold = int(rng.integers(2, 6))
    rows, columns = (int(rng.integers(2, 5)) for _ in range(2))
    width = float(rng.integers(2, 8))
    seed = int(rng.integers(2**31))
    return cg.generate.frequency(seed, rows=rows, columns=columns, threshold=threshold, width=width), threshold


def matching(release: Any, hidden: list[bool], threshold: int) -> Iterable[Violation]:
    """Check that the pattern withstands who knows how it was drawn."""
    table = release.table
    open_cells = [i for i in range(table.n_cells) if hidden[i]]
    possible = _tables(table, open_cells)
    if possible is None:
        return
    width = float(table.sliding.max())
    small = possible < threshold

    def safe(rows: np.ndarray, sensitive: np.ndarray) -> bool:
        spread = rows.max(axis=0) - rows.min(axis=0)
        return bool((spread[sensitive] >= width).all())

    could = []
    for t, sensitive in zip(possible, small, strict=True):
        left_out = (possible[possible[:, c] == t[c]] for c in range(len(open_cells)) if not sensitive[c])
        if safe(possible, sensitive) and not any(safe(rows, sensitive) for rows in left_out):
            could.append(t)
    kept = np.array(could)
    truth = table.values[open_cells]
    for c, cell in enumerate(open_cells):
        if truth[c] < threshold and (not len(kept) or kept[:, c].max() - kept[:, c].min() < width):
            yield Violation("matching", f"{table.label(cell)}: narrower than its width for who knows the algorithm")


def _tables(table: cg.Table, open_cells: list[int]) -> np.ndarray | None:
    """Return all tables of counts with the published cells, one row each; None when they are too many."""
    least = find_least(table)
    low = [float(least[i]) if i in open_cells else float(table.values[i]) for i in range(table.n_cells)]
    high = [np.inf if i in open_cells else float(table.values[i]) for i in range(table.n_cells)]
    found = list_whole_tables(table, np.array(low), np.array(high))
    return None if found is None else found[:, open_cells]


def list_whole_tables(table: cg.Table, low: np.ndarray, high: np.ndarray, most: int = MANY) -> np.ndarray | None:
    """Return every table of whole numbers between two ends that keeps the relations; None when they are too many."""
    T, rhs = table.relations.toarray(), np.asarray(table.rhs, float)
    low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
    for _ in range(8):  # what the relations alone say of each end
        low, high = _tighten(T, rhs, low, high)
    if not np.isfinite(low).all() or not np.isfinite(high).all():
        return None
    open_cells = np.flatnonzero(high > low)
    rest = rhs - T @ np.where(high > low, 0.0, low)
    found, left = np.zeros((1, 0)), rest[None, :]
    for k, cell in enumerate(open_cells):
        later = open_cells[k + 1 :]
        ends = (T[:, later] * low[later], T[:, later] * high[later])
        smallest, largest = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
        first, last = np.full(len(found), low[cell]), np.full(len(found), high[cell])
        for r in np.flatnonzero(T[:, cell]):
            sides = np.sort(np.column_stack([left[:, r] - largest[r], left[:, r] - smallest[r]]) / T[r, cell], axis=1)
            first, last = np.maximum(first, np.ceil(sides[:, 0] - 1e-9)), np.minimum(last, np.floor(sides[:, 1] + 1e-9))
        many = np.maximum(last - first + 1, 0).astype(int)
        if many.sum() > most:
            return None
        row = np.repeat(np.arange(len(found)), many)
        value = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        found = np.column_stack([found[row], value])
        left = left[row] - value[:, None] * T[:, cell]
    out = np.tile(low, (len(found), 1))
    out[:, open_cells] = found
    return out[np.abs(out @ T.T - rhs).max(axis=1, initial=0.0) < 1e-6]


def _tighten(T: np.ndarray, rhs: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Narrow every end by what each relation leaves when the other cells are at theirs."""
    low, high = low.copy(), high.copy()
    for row, b in zip(T, rhs, strict=True):
        cells = np.flatnonzero(row)
        c = row[cells]
        smallest, largest = (
            np.where(c > 0, c * low[cells], c * high[cells]),
            np.where(c > 0, c * high[cells], c * low[cells]),
        )
        for k, cell in enumerate(cells):
            others = np.arange(len(cells)) != k
            sides = sorted([(b - largest[others].sum()) / c[k], (b - smallest[others].sum()) / c[k]])
            low[cell], high[cell] = max(low[cell], np.ceil(sides[0] - 1e-9)), min(high[cell], np.floor(sides[1] + 1e-9))
    return low, high


# ---------------------------------------------------------------------- how many numbers stay possible


def count_numbers(
    made: Case, intervals: Sequence[Interval], people: Iterable[cg.Attacker], figures: Counter[str], method: str
) -> Iterator[Violation]:
    """Enumerate the whole tables that agree with a release: every sensitive count keeps its numbers, to everybody."""
    table = made.table
    if not table.integer or made.least_numbers is None or method == "adjust":
        return
    low = np.array([-np.inf if lo is None else float(lo) for lo, _ in intervals])
    high = np.array([np.inf if hi is None else float(hi) for _, hi in intervals])
    possible: np.ndarray | None = None
    for who in people:
        known_low, known_high = (
            np.array([far if end is None else float(end) for end in ends])
            for far, ends in zip((-np.inf, np.inf), find_bounds(table, who), strict=True)
        )
        if possible is None:  # the first knows the least
            possible = list_whole_tables(table, np.maximum(low, known_low), np.minimum(high, known_high))
            if possible is None or not len(possible):
                return
            figures["whole tables enumerated"] += len(possible)
        left = possible[((possible >= known_low) & (possible <= known_high)).all(axis=1)]
        wanted = np.flatnonzero(table.sensitive) if who.sensitive is None else who.sensitive
        for cell in wanted.tolist():
            numbers, need = len(np.unique(left[:, cell])), _count_needed(made, cell, known_low[cell], known_high[cell])
            if numbers < need:
                text = f"{method}, {who.name!r}: {table.label(cell)} has {numbers} possible numbers of {need}"
                yield Violation("exact" if numbers == 1 else "numbers", text)


def _count_needed(made: Case, cell: int, low: float, high: float) -> float:
    """Return how many numbers of a cell must stay possible: as many as the threshold says, and two of any other."""
    least = 2 if made.least_numbers is None else max(2, int(made.least_numbers[cell]))
    return min(least, high - low + 1)

"""Two-way tables of counts, and the attacker who excludes tables for which another pattern would have been chosen.

Everything by enumeration: all tables of counts that agree with what is published, and of these the
ones for which the published pattern is one that could have been drawn (it is safe for them and no
cell of it could be left out). Over them a sensitive cell must keep its width.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import cellguard as cg
from adversary.checker import Violation

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
    place = {cell: k for k, cell in enumerate(open_cells)}
    T = table.relations.toarray()
    rows = []
    for row, b in zip(T, table.rhs, strict=True):
        mine = {place[i]: row[i] for i in np.flatnonzero(row).tolist() if i in place}
        rest = b - sum(row[i] * table.values[i] for i in np.flatnonzero(row).tolist() if i not in place)
        if mine:
            rows.append((mine, rest))
    found: list[list[float]] = []

    def extend(done: list[float]) -> bool:
        k = len(done)
        if k == len(open_cells):
            found.append(done)
            return len(found) <= MANY
        low, high = 0.0, np.inf
        for mine, rest in rows:
            if k in mine:
                sign = mine[k]
                left = (rest - sum(c * done[j] for j, c in mine.items() if j < k)) / sign
                # the other open cells of the relation are counts, too
                high = min(high, left) if all(c * sign > 0 for c in mine.values()) else high
                if max(mine) == k:
                    low, high = max(low, left), min(high, left)
        if not np.isfinite(high):
            return False
        return all(extend([*done, v]) for v in np.arange(np.ceil(low), np.floor(high) + 1))

    return np.array(found) if extend([]) else None

"""Movements that were shown before: used where they hold, of no effect where they do not."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.ranges.many import Views, compute_ranges_for_views
from cellguard._engine.ranges.ranges import compute_ranges
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.ranges.witnesses.shown import ShownMovements, scale_movements


def rows_of_three(n: int) -> tuple[csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """Many totals of three parts each, the totals published: what one part gains another loses."""
    T = np.zeros((n, 4 * n))
    for i in range(n):
        T[i, 4 * i : 4 * i + 4] = [-1, 1, 1, 1]
    a = np.tile([30.0, 10.0, 10.0, 10.0], n)
    lo, hi = np.zeros(4 * n), np.full(4 * n, 40.0)
    lo[::4] = hi[::4] = 30.0
    return csr_array(T), lo, hi, a


def linked(n: int) -> tuple[csr_array, np.ndarray, np.ndarray, np.ndarray]:
    """The same, in one component: the sum of all first parts is published as well."""
    T, lo, hi, a = rows_of_three(n)
    more = np.zeros((1, 4 * n + 1))
    more[0, 1 : 4 * n : 4] = 1.0
    more[0, -1] = -1.0
    whole = csr_array(np.vstack([np.hstack([T.toarray(), np.zeros((n, 1))]), more]))
    total = 10.0 * n
    return whole, np.append(lo, total), np.append(hi, total), np.append(a, total)


def test_known_movements_spare_programs(monkeypatch):
    for place in ("search.range_search", "parts"):
        monkeypatch.setattr(f"cellguard._engine.ranges.{place}.LARGE", 5)
    T, lo, hi, a = linked(6)
    cells = np.flatnonzero(hi > lo)
    level = np.full(len(cells), 4.0)
    sight, asked = Sight(T, lo, hi, a), AskedRanges(cells, level, level)
    first = compute_ranges(sight, asked)
    assert first.safe.all()
    shown = ShownMovements()
    shown.remember(first.witnesses)
    again = compute_ranges(replace(sight, shown=shown), asked)
    assert again.safe.all()
    assert again.programs == 0
    assert compute_ranges(sight, asked).programs == first.programs  # forgotten


def test_wrong_movements_show_nothing(monkeypatch):
    for place in ("search.range_search", "parts", "many"):
        monkeypatch.setattr(f"cellguard._engine.ranges.{place}.LARGE", 5)
    T, lo, hi, a = linked(6)
    cells = np.flatnonzero(hi > lo)
    hi = np.where(lo < hi, 12.0, hi)  # nothing can rise by 4 any more, nor fall
    lo = np.where(lo < hi, 8.0, lo)
    level = np.full(len(cells), 4.0)
    views = Views(
        known_ptr=np.array([0, 0, 1]), known_cell=np.array([1]), known_lo=np.array([9.0]), known_hi=np.array([11.0]),
        view=np.repeat([0, 1], len(cells)), cell=np.tile(cells, 2),
        lower=np.tile(level, 2), upper=np.tile(level, 2), sliding=np.zeros(2 * len(cells)),
    )  # fmt: skip
    lies = np.zeros((3, len(a)))
    lies[0, cells] = 5.0  # breaks every relation
    lies[1, 1], lies[1, 2] = 5.0, -5.0  # breaks the sum of first parts
    lies[2, [1, 2, 5, 6]] = [5.0, -5.0, -5.0, 5.0]  # keeps the relations, and leaves the bounds
    shown = ShownMovements([csr_array(lies)])
    assert not compute_ranges(Sight(T, lo, hi, a, shown=shown), AskedRanges(cells, level, level)).safe.any()
    assert not compute_ranges_for_views(Sight(T, lo, hi, a, shown=shown), views, certify=True).safe.any()


def test_movements_are_stretched_as_far_as_the_room_allows():
    v = csr_array(np.array([[1.0, -1.0, 0.0, 2.0, -2.0]]))
    down, up = np.array([3.0, 9, 9, 9, 9]), np.array([4.0, 9, 9, 8, 9])
    forth, back = (scale_movements(way, (down, up), np.array([0, 0, 0, 1, 1]), 2).toarray()[0] for way in (v, -v))
    assert forth.tolist() == [4.0, -4.0, 0.0, 8.0, -8.0]
    assert back.tolist() == [-3.0, 3.0, 0.0, -9.0, 9.0]

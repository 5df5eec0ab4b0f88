"""Which candidates reproduce the pattern, in compiled code (minami2019 definition 5).

Every candidate shares the margins, the published cells and the pattern P. A better safe pattern Q
excludes it. What Q leaves open depends on the candidate only through the cells of P that Q publishes
(the rest of Q's margins is public), so a Q found for one candidate excludes whole branches of the
depth-first search as soon as those few cells are decided.

Arguments that travel together:

* ``law = (smallest, minimum, cap, base, slope)``: a count is sensitive from `smallest` to below
  `minimum`, its range must have width `cap`, suppressing cell (i, j) costs ``base[i, j] + slope x[i, j]``;
* ``scene = (p_rows, risky, weak)``: the pattern, its cells that some candidate makes sensitive, and
  those of them that the pattern leaves too narrow (there a sensitive count contradicts the pattern);
* ``pool = (rows, columns, level, count)``: better patterns found so far, and where in the tree they
  can be tried;
* ``scratch = (work, space, mask)``: of the flows, of the search, and two masks by row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.twoway_candidates import basis, decided, plant, settle, step
from cellguard._engine.kernels.twoway_flow import DOWN, ONE, UP, augment, columns_of, copy, lowest, width
from cellguard._engine.kernels.twoway_search import LIMIT, NOTHING, before, better_pattern

SURVIVOR, EXCLUDED = np.int64(1), np.int64(0)


@njit(cache=True)
def make_scene(rows, low, high, law):
    """Return the pattern with its risky and weak cells."""
    smallest, minimum, cap, _, _ = law
    risky, weak = np.zeros_like(rows), np.zeros_like(rows)
    for i in range(len(rows)):
        m = rows[i]
        while m:
            j = lowest(m)
            m &= m - 1
            if low[i, j] < minimum and high[i, j] >= smallest:
                risky[i] |= ONE << j
                if high[i, j] - low[i, j] < cap:
                    weak[i] |= ONE << j
    return rows, risky, weak


@njit(cache=True)
def make_pool(rows, n_columns, size):
    """Return a pool that holds the pattern less one cell, for each of its cells."""
    pool_rows = np.zeros((size, len(rows)), np.int64)
    pool_columns = np.zeros((size, n_columns), np.int64)
    n = 0
    for i in range(len(rows)):
        m = rows[i]
        while m:
            bit = m & -m
            m &= m - 1
            copy(pool_rows[n], rows)
            pool_rows[n, i] &= ~bit
            copy(pool_columns[n], columns_of(pool_rows[n], n_columns))
            n += 1
    return pool_rows, pool_columns, np.full(size, -1, np.int64), np.array([n, 0])


@njit(cache=True)
def _look(x, known, scene, law, mask):
    """Note which cells are sensitive in x, and which may be in what agrees with x on the `known` cells.

    Masks by row: ``mask[0]`` and ``mask[1]``. False when a known cell contradicts the pattern.
    """
    _, risky, weak = scene
    smallest, minimum = law[0], law[1]
    for i in range(x.shape[0]):
        m = risky[i]
        sensitive = np.int64(0)
        while m:
            j = lowest(m)
            m &= m - 1
            if smallest <= x[i, j] < minimum:
                sensitive |= ONE << j
        mask[0, i] = sensitive
        mask[1, i] = (sensitive & known[i]) | (risky[i] & ~known[i])
        if sensitive & known[i] & weak[i]:
            return False
    return True


@njit(cache=True)
def _price(q_rows, p_rows, x, law):
    """Cost of Q less the cost of P: what only one of them suppresses."""
    base, slope = law[3], law[4]
    out = np.int64(0)
    for i in range(len(q_rows)):
        m = q_rows[i] ^ p_rows[i]
        while m:
            j = lowest(m)
            m &= m - 1
            cost = base[i, j] + slope * x[i, j]
            out += cost if (q_rows[i] >> j) & 1 else -cost
    return out


@njit(cache=True)
def _excludes(x, q_rows, q_columns, mask, scene, law, work):
    """Whether Q is better than P for x, and for whatever else `mask` was noted for."""
    p_rows = scene[0]
    for i in range(x.shape[0]):
        if mask[0, i] & p_rows[i] & ~q_rows[i]:
            return False
    price = _price(q_rows, p_rows, x, law)
    if price > 0 or (price == 0 and not before(q_rows, p_rows)):
        return False
    for i in range(x.shape[0]):
        m = mask[1, i] & q_rows[i]
        while m:
            j = lowest(m)
            m &= m - 1
            if width(x, q_rows, q_columns, i, j, law[2], work) < law[2]:
                return False
    return True


@njit(cache=True)
def _to_front(pool, k):
    """Try a pattern that excluded a candidate earlier next time: it tends to exclude the neighbours."""
    rows, columns, level, count = pool
    if k < count[1]:
        return
    to = (k + count[1]) // 2
    for a in range(rows.shape[1]):
        rows[k, a], rows[to, a] = rows[to, a], rows[k, a]
    for b in range(columns.shape[1]):
        columns[k, b], columns[to, b] = columns[to, b], columns[k, b]
    level[k], level[to] = level[to], level[k]


@njit(cache=True)
def survives(x, scene, law, hunt, limit, pool, scratch):
    """Whether the algorithm gives P for candidate x; and the work that took.

    Without `hunt` only the patterns of the pool are tried: subset-minimality, when the pool is new.
    """
    p_rows = scene[0]
    pool_rows, pool_columns, level, count = pool
    work, space, mask = scratch
    if not _look(x, p_rows, scene, law, mask):
        return EXCLUDED, 0
    for k in range(count[0]):
        if _excludes(x, pool_rows[k], pool_columns[k], mask, scene, law, work):
            _to_front(pool, k)
            return EXCLUDED, 1
    if not hunt:
        return SURVIVOR, 1
    _, _, cap, base, slope = law
    n_rows, n_columns = x.shape
    need = np.empty((n_rows * n_columns, 2), np.int64)
    cost = base + slope * x
    n_need, paid = np.int64(0), np.int64(0)
    for i in range(n_rows):
        m = p_rows[i]
        while m:
            j = lowest(m)
            m &= m - 1
            paid += cost[i, j]
            if (mask[0, i] >> j) & 1:
                need[n_need, 0], need[n_need, 1] = i, j
                n_need += 1
    rows = p_rows.copy()
    found, nodes = better_pattern(x, need, n_need, cap, cost, rows, paid, ONE, limit, work, space)
    if found == NOTHING:
        return SURVIVOR, nodes
    if found == LIMIT:
        return LIMIT, nodes
    k = count[0]
    if k < len(pool_rows):
        copy(pool_rows[k], rows)
        copy(pool_columns[k], columns_of(rows, n_columns))
        level[k] = -1
        count[0] += 1
    return EXCLUDED, nodes


@njit(cache=True)
def _level_of(q_rows, p_rows, known):
    """The level of the tree at which every cell of P that Q publishes is decided."""
    for l in range(len(known)):
        inside = True
        for a in range(len(p_rows)):
            inside &= (p_rows[a] & ~q_rows[a] & ~known[l, a]) == 0
        if inside:
            return l
    return len(known)


@njit(cache=True)
def _branch_excluded(x, l, known, scene, law, pool, scratch):
    """Whether a pattern of the pool excludes every candidate below this node."""
    pool_rows, pool_columns, level, count = pool
    work, _, mask = scratch
    if not _look(x, known[l], scene, law, mask):
        return True
    for k in range(count[0]):
        if level[k] < 0:
            level[k] = _level_of(pool_rows[k], scene[0], known)
        if level[k] == l and _excludes(x, pool_rows[k], pool_columns[k], mask, scene, law, work):
            return True
    return False


@njit(cache=True)
def first_survivor(x, value, order, known, scene, law, hunt, limit, pool, scratch):
    """Search a candidate that survives among those whose cell order[0] has the value given.

    Returns SURVIVOR, EXCLUDED (there is none) or LIMIT, the work, and the survivor.
    """
    work = scratch[0]
    n, n_columns = len(order), x.shape[1]
    tree = plant(x, order, scene[0])
    y, free, free_c = tree
    for k in range(pool[3][0]):
        pool[2][k] = -1  # the order of the cells has changed
    i, j = order[0] // n_columns, order[0] % n_columns
    while y[0, i, j] != value:
        way = UP if y[0, i, j] < value else DOWN
        if augment(y[0], free[0], free_c[0], i, j, way, abs(value - y[0, i, j]), work[1], work[2]) == 0:
            return EXCLUDED, np.int64(0), y[0]
    spent = np.int64(0)
    l = np.int64(0)
    while True:
        spent += 1
        if spent > limit:
            return LIMIT, spent, y[0]
        if l == n - 1:
            status, more = survives(y[l], scene, law, hunt, limit - spent, pool, scratch)
            spent += more
            if status != EXCLUDED:
                return status, spent, y[l]
        elif not _branch_excluded(y[l], l, known, scene, law, pool, scratch):
            l += 1
            settle(tree, order, l, work)
            continue
        while l > 0 and not step(tree, order, l, work):
            l -= 1
        if l == 0:
            return EXCLUDED, spent, y[0]


@njit(cache=True)
def _widen(hull_low, hull_high, y):
    for a in range(y.shape[0]):
        for b in range(y.shape[1]):
            hull_low[a, b] = min(hull_low[a, b], y[a, b])
            hull_high[a, b] = max(hull_high[a, b], y[a, b])


@njit(cache=True)
def scan(x, cell, way, stop, ends, scene, law, hunt, limit, pool, scratch):
    """Scan the values of a cell from one end, and stop at the first that survives.

    Returns the status (NOTHING when no value survives) and the work. ``ends = (low, high, hull_low,
    hull_high)``: the outer ends move inward as values are excluded, the hull of the survivors grows.
    The scan also ends at `stop`.
    """
    low, high, hull_low, hull_high = ends
    i, j = cell // x.shape[1], cell % x.shape[1]
    order = basis(scene[0], x.shape[1], cell, high - low)
    known = decided(order, scene[0], x.shape[1])
    spent = np.int64(0)
    while True:
        v = low[i, j] if way == DOWN else high[i, j]
        inside = v >= hull_low[i, j] if way == DOWN else v <= hull_high[i, j]
        if inside:
            return SURVIVOR, spent
        if low[i, j] > high[i, j]:
            return NOTHING, spent
        if v >= stop if way == DOWN else v <= stop:
            return EXCLUDED, spent
        status, more, y = first_survivor(x, v, order, known, scene, law, hunt, limit - spent, pool, scratch)
        spent += more
        if status == SURVIVOR:
            _widen(hull_low, hull_high, y)
            return SURVIVOR, spent
        if status == LIMIT:
            return LIMIT, spent
        if way == DOWN:
            low[i, j] += 1
        else:
            high[i, j] -= 1


@njit(cache=True)
def surviving_draws(tables, scene, law, costs, hunt, limit, pool, scratch):
    """Return for each candidate how many of the drawn costs it survives."""
    smallest, minimum, cap, _, slope = law
    hits = np.zeros(len(tables), np.int64)
    for t in range(len(tables)):
        for d in range(len(costs)):
            drawn = (smallest, minimum, cap, costs[d], slope)
            hits[t] += survives(tables[t], scene, drawn, hunt, limit, pool, scratch)[0] == SURVIVOR
    return hits

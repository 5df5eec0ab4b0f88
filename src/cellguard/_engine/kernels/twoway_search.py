"""The cheapest safe pattern of a two-way count table, in compiled code (minami2019 definition 4).

Depth-first: branch on the cells of which at least one must be added (include one, publish the earlier
ones), bounded by the lines that still need a cell.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.twoway_flow import DOWN, ONE, UP, bits, copy, lowest, shift

HUGE = ONE << 61
NOTHING, LIMIT = np.int64(-1), np.int64(-2)


@njit(cache=True)
def before(a, b):
    """Whether pattern `a` comes before `b` in the fixed order that decides between equal costs."""
    for i in range(len(a)):
        if a[i] != b[i]:
            return a[i] < b[i]
    return False


@njit(cache=True)
def _free(row, shut, n_columns):
    """Cells of a row that may still be suppressed."""
    return ((ONE << n_columns) - 1) & ~(row | shut)


@njit(cache=True)
def _augmented(r, wants, owner):
    """One step of bipartite matching: give row `r` one of the columns it wants, moving others if needed."""
    path = np.empty(len(wants) + 1, np.int64)
    taken = np.empty(len(wants) + 1, np.int64)
    seen = np.int64(0)
    depth = 0
    path[0] = r
    while depth >= 0:
        m = wants[path[depth]] & ~seen
        if m == 0:
            depth -= 1
            continue
        b = lowest(m)
        seen |= ONE << b
        taken[depth] = b
        if owner[b] < 0:
            for d in range(depth + 1):
                owner[taken[d]] = path[d]
            return True
        path[depth + 1] = owner[b]
        depth += 1
    return False


@njit(cache=True)
def _short_lines(x, rows, columns, must, cap):
    """Rows and columns that need one more suppressed cell whatever else is done.

    A line with one suppressed cell gives it away (and the cell is of no use); a line with a sensitive
    cell and a suppressed sum below the width leaves it too little room.
    """
    short_r = short_c = np.int64(0)
    for i in range(len(rows)):
        m = rows[i]
        total = np.int64(0)
        while m:
            total += x[i, lowest(m)]
            m &= m - 1
        m = rows[i]
        if m and (m & (m - 1) == 0 or (must[i] and total < cap)):
            short_r |= ONE << i
    for j in range(len(columns)):
        m = columns[j]
        total = np.int64(0)
        sensitive = False
        while m:
            i = lowest(m)
            total += x[i, j]
            sensitive |= ((must[i] >> j) & 1) != 0
            m &= m - 1
        m = columns[j]
        if m and (m & (m - 1) == 0 or (sensitive and total < cap)):
            short_c |= ONE << j
    return short_r, short_c


@njit(cache=True)
def _cells_needed(rows, shut, short_r, short_c, n_columns):
    """Lower bound of the cells still to add; -1 when a short row has none left.

    A new cell helps one short row and one short column at most: rows + columns - a maximum matching
    of the two over the cells that may still be suppressed.
    """
    wants = np.zeros(len(rows), np.int64)
    owner = np.full(n_columns, -1, np.int64)
    needed = bits(short_r) + bits(short_c)
    m = short_r
    while m:
        i = lowest(m)
        m &= m - 1
        free = _free(rows[i], shut[i], n_columns)
        if free == 0:
            return -1
        wants[i] = free & short_c
    m = short_r
    while m:
        i = lowest(m)
        m &= m - 1
        if wants[i] and _augmented(i, wants, owner):
            needed -= 1
    return needed


@njit(cache=True)
def _branch_on_line(rows, shut, short_r, short_c, n_columns, out):
    """List the cells of the short line with the fewest choices; return how many."""
    n_rows = len(rows)
    best, line, by_row = n_rows + n_columns, -1, True
    m = short_r
    while m:
        i = lowest(m)
        m &= m - 1
        count = bits(_free(rows[i], shut[i], n_columns))
        if count < best:
            best, line, by_row = count, i, True
    m = short_c
    while m:
        j = lowest(m)
        m &= m - 1
        count = 0
        for i in range(n_rows):
            count += ((rows[i] | shut[i]) >> j) & 1 == 0
        if count < best:
            best, line, by_row = count, j, False
    n = 0
    for i in range(n_rows):
        if by_row and i != line:
            continue
        free = _free(rows[i], shut[i], n_columns)
        if not by_row:
            free &= ONE << line
        while free:
            out[n] = i * n_columns + lowest(free)
            free &= free - 1
            n += 1
    return n


@njit(cache=True)
def _mark_cut(x, rows, shut, reach_r, reach_c, marked):
    """Mark the cells that would let more flow over the cut; return how many are new."""
    added = 0
    for i in range(x.shape[0]):
        free = _free(rows[i], shut[i], x.shape[1]) & ~marked[i]
        if (reach_r >> i) & 1:  # to an unreached column: only a cell that can be lowered helps
            m = free & ~reach_c
            free = np.int64(0)
            while m:
                j = lowest(m)
                m &= m - 1
                if x[i, j] > 0:
                    free |= ONE << j
        else:
            free &= reach_c
        marked[i] |= free
        added += bits(free)
    return added


@njit(cache=True)
def _branch_on_cut(x, rows, columns, shut, need, n_need, cap, out, work):
    """List the cells of which one must be added, for the violated cell with the fewest; -1 when all are safe."""
    n_rows, n_columns = x.shape
    reach = work[2]
    best = -1
    for k in range(n_need):
        i, j = need[k, 0], need[k, 1]
        up = shift(x, rows, columns, i, j, UP, cap, work)
        if up >= cap:
            continue
        room = min(x[i, j], cap - up)
        down = shift(x, rows, columns, i, j, DOWN, room, work)
        if up + down >= cap:
            continue
        marked = np.zeros(n_rows, np.int64)
        count = _mark_cut(x, rows, shut, reach[UP, 0], reach[UP, 1], marked)
        if down < room and up + x[i, j] >= cap:  # going further down could do as well
            count += _mark_cut(x, rows, shut, reach[DOWN, 0], reach[DOWN, 1], marked)
        if best < 0 or count < best:
            best = count
            n = 0
            for a in range(n_rows):
                m = marked[a]
                while m:
                    out[n] = a * n_columns + lowest(m)
                    m &= m - 1
                    n += 1
            if best <= 1:
                break
    return best


@njit(cache=True)
def _open_node(x, need, n_need, must, cap, cheapest, rows, columns, shut, spent, best_cost, out, work):
    """Return how many branches a node has; 0 when it is bounded, -1 when its pattern is safe."""
    short_r, short_c = _short_lines(x, rows, columns, must, cap)
    if short_r | short_c:
        needed = _cells_needed(rows, shut, short_r, short_c, x.shape[1])
        if needed < 0 or spent + needed * cheapest > best_cost:
            return 0
        return _branch_on_line(rows, shut, short_r, short_c, x.shape[1], out)
    n = _branch_on_cut(x, rows, columns, shut, need, n_need, cap, out, work)
    return 0 if n > 0 and spent + cheapest > best_cost else n


@njit(cache=True)
def better_pattern(x, need, n_need, cap, cost, best_rows, best_cost, first, limit, work, space):
    """Search a safe pattern that is cheaper than `best_rows`, or as cheap and before it.

    `need` lists the sensitive cells; `cost` has the price of each cell, whole numbers above 0.
    `best_rows` is overwritten by what is found. With `first` (not 0) the first improvement ends the
    search, otherwise the optimum does. Returns the cost of what was found, NOTHING or LIMIT (`limit` nodes
    came first; `best_rows` may have improved), and the number of nodes.
    """
    q_rows, q_columns, shut, branch, head = space
    n_columns = x.shape[1]
    cheapest = cost[0, 0]
    for i in range(x.shape[0]):
        for j in range(n_columns):
            cheapest = min(cheapest, cost[i, j])
    must = np.zeros(x.shape[0], np.int64)
    copy(q_rows[0], must)
    copy(shut[0], must)
    copy(q_columns[0], np.zeros(n_columns, np.int64))
    head[0, 2] = 0
    for k in range(n_need):
        i, j = need[k, 0], need[k, 1]
        must[i] |= ONE << j
        q_rows[0, i] |= ONE << j
        q_columns[0, j] |= ONE << i
        head[0, 2] += cost[i, j]
    found = NOTHING
    nodes = np.int64(0)
    depth = 0
    fresh = head[0, 2] <= best_cost
    head[0, 0] = head[0, 1] = 0
    while depth >= 0:
        if fresh:
            nodes += 1
            if nodes > limit:
                return LIMIT, nodes
            spent = head[depth, 2]
            n = _open_node(
                x, need, n_need, must, cap, cheapest, q_rows[depth], q_columns[depth], shut[depth], spent, best_cost,
                branch[depth], work,
            )  # fmt: skip
            head[depth, 0], head[depth, 1] = max(n, 0), 0
            if n < 0 and (spent < best_cost or before(q_rows[depth], best_rows)):
                found = best_cost = spent
                copy(best_rows, q_rows[depth])
                if first:
                    return found, nodes
        if head[depth, 1] == head[depth, 0]:
            depth -= 1
            fresh = False
            continue
        # The next cell is added; those before it stay published in this branch and the later ones.
        c = branch[depth, head[depth, 1]]
        i, j = c // n_columns, c % n_columns
        head[depth, 1] += 1
        head[depth + 1, 2] = head[depth, 2] + cost[i, j]
        fresh = head[depth + 1, 2] <= best_cost
        if fresh:
            copy(q_rows[depth + 1], q_rows[depth])
            copy(q_columns[depth + 1], q_columns[depth])
            copy(shut[depth + 1], shut[depth])
            q_rows[depth + 1, i] |= ONE << j
            q_columns[depth + 1, j] |= ONE << i
        shut[depth, i] |= ONE << j
        depth += fresh
    return found, nodes

"""Compiled loops over areas: deciding sums by halves, and moving units between areas.

Arrays are areas by columns. A cell costs ``-outer`` per step below its kink, `slope` for the step from
the kink, ``outer`` per step above; steps outside `low` .. `high` cost a penalty. Inner columns never
leave their bounds; soft ones (totals) may for the time being.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.flows import FAR, cheapest_flow, negative_cycle

__all__ = ["PENALTY", "cancel_pairs", "decide_one", "decide_parts", "halve"]

PENALTY = 1e4
"""Price of a step outside the bounds; prices inside are at most 1."""
SLACK = 6
"""How far outside its bounds a total may be sent for the time being."""


@njit(cache=True)
def _step(low, high, kink, slope, outer, k):
    """Price of going from k to k + 1."""
    if k < low:
        return -PENALTY
    if k >= high:
        return PENALTY
    if k < kink:
        return -outer
    return slope if k == kink else outer


@njit(cache=True)
def _sorted_steps(items, j, low, high, kink, slope, outer, steps):
    """Prices of all steps of column j in some areas, cheapest first; returns how many."""
    n = 0
    for i in items:
        for k in range(low[i, j], high[i, j]):
            steps[n] = _step(low[i, j], high[i, j], kink[i, j], slope[i, j], outer[i, j], k)
            n += 1
    steps[:n].sort()
    return n


@njit(cache=True)
def _summed_step(steps, n, low, k):
    if k < low:
        return -PENALTY
    return PENALTY if k >= low + n else steps[k - low]


@njit(cache=True)
def halve(net, first, second, target, low, high, kink, slope, outer, need, soft, answer):
    """Decide what the first of two sets of areas adds up to, the second getting the rest of the target.

    The k-th unit of a set costs what the k-th cheapest step in it costs. Returns unmet balance.
    """
    tail, head, ptr, arcs = net
    m = len(tail)
    la, ua = np.zeros(m, np.int64), np.zeros(m, np.int64)
    lb, ub = np.zeros(m, np.int64), np.zeros(m, np.int64)
    for i in first:
        la += low[i]
        ua += high[i]
    for i in second:
        lb += low[i]
        ub += high[i]
    begin, start = np.empty(m, np.int64), np.zeros(m + 1, np.int64)
    for j in range(m):
        lowest, highest = max(la[j], target[j] - ub[j]), min(ua[j], target[j] - lb[j])
        if lowest > highest:
            lowest, highest = highest, lowest
        if soft[j]:
            lowest -= SLACK
            highest += SLACK
        begin[j] = lowest
        start[j + 1] = start[j] + highest - lowest
    prices = np.empty(start[m])
    steps_a, steps_b = np.empty(max(1, (ua - la).max())), np.empty(max(1, (ub - lb).max()))
    for j in range(m):
        if start[j + 1] == start[j]:
            continue
        na = _sorted_steps(first, j, low, high, kink, slope, outer, steps_a)
        nb = _sorted_steps(second, j, low, high, kink, slope, outer, steps_b)
        for t in range(start[j + 1] - start[j]):
            k = begin[j] + t
            prices[start[j] + t] = _summed_step(steps_a, na, la[j], k) - _summed_step(
                steps_b, nb, lb[j], target[j] - k - 1
            )
    left = cheapest_flow(tail, head, ptr, arcs, need, begin, start, prices, answer)
    answer += begin
    return left


@njit(cache=True)
def decide_one(net, low, high, kink, slope, outer, need, soft, answer):
    """Decide a single area at the least price. Returns unmet balance."""
    tail, head, ptr, arcs = net
    m = len(tail)
    begin, start = np.empty(m, np.int64), np.zeros(m + 1, np.int64)
    for j in range(m):
        slack = SLACK if soft[j] else 0
        begin[j] = low[j] - slack
        start[j + 1] = start[j] + high[j] - low[j] + 2 * slack
    prices = np.empty(start[m])
    for j in range(m):
        for t in range(start[j + 1] - start[j]):
            prices[start[j] + t] = _step(low[j], high[j], kink[j], slope[j], outer[j], begin[j] + t)
    left = cheapest_flow(tail, head, ptr, arcs, need, begin, start, prices, answer)
    answer += begin
    return left


@njit(cache=True)
def decide_parts(net, items, target, low, high, kink, slope, outer, need, soft, x):
    """Decide areas that must add up to the target: halve them, decide what the halves add up to, go on.

    Returns unmet balance.
    """
    left = 0
    answer = np.empty(len(target), np.int64)
    spans = [(0, len(items))]
    targets = [target]
    while len(spans) > 0:
        a, b = spans.pop()
        total = targets.pop()
        if b - a == 1:
            x[items[a]] = total
            continue
        mid = (a + b) // 2
        balance = np.zeros(need.shape[1], np.int64)
        for i in items[a:mid]:
            balance += need[i]
        left += halve(net, items[a:mid], items[mid:b], total, low, high, kink, slope, outer, balance, soft, answer)
        spans.append((a, mid))
        targets.append(answer.copy())
        spans.append((mid, b))
        targets.append(total - answer)
    return left


@njit(cache=True)
def _add_prices(g, forward, low, high, kink, slope, outer, soft, x, up, down):
    """Add what one step of each column of area g costs, upward and downward (or the reverse)."""
    for j in range(len(up)):
        k = x[g, j]
        room = SLACK if soft[j] else 0
        rise = _step(low[g, j], high[g, j], kink[g, j], slope[g, j], outer[g, j], k)
        fall = -_step(low[g, j], high[g, j], kink[g, j], slope[g, j], outer[g, j], k - 1)
        if k >= high[g, j] + room:
            rise = FAR
        if k <= low[g, j] - room:
            fall = FAR
        up[j] += rise if forward else fall
        down[j] += fall if forward else rise


@njit(cache=True)
def _inside(area, outer_area, parent):
    """Whether an area is another one or a part of it, at any depth."""
    while area >= 0 and area != outer_area:
        area = parent[area]
    return area == outer_area


@njit(cache=True)
def cancel_pairs(net, pairs, parent, low, high, kink, slope, outer, soft, x):
    """Move units around cycles from one area of a pair to the other while that lowers the price.

    Sums of which only one of both is a part move along. A second area of -1 stands for none: then
    all sums of the first one move. Returns the gain.
    """
    tail, head, _, _ = net
    n, m = max(tail.max(), head.max()) + 1, len(tail)
    up, down = np.empty(m), np.empty(m)
    distance, before, seen = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    cycle = np.empty(n + 1, np.int64)
    gain = 0.0
    for r in range(len(pairs)):
        p, q = pairs[r, 0], pairs[r, 1]
        while True:
            up[:] = 0.0
            down[:] = 0.0
            g = p
            while g >= 0 and not (q >= 0 and _inside(q, g, parent)):
                _add_prices(g, True, low, high, kink, slope, outer, soft, x, up, down)
                g = parent[g]
            g = q
            while g >= 0 and not _inside(p, g, parent):
                _add_prices(g, False, low, high, kink, slope, outer, soft, x, up, down)
                g = parent[g]
            length = negative_cycle(tail, head, up, down, n, distance, before, seen, cycle)
            if length == 0:
                break
            for t in range(length):
                j, step = (cycle[t], 1) if cycle[t] >= 0 else (~cycle[t], -1)
                gain -= up[j] if step > 0 else down[j]
                g = p
                while g >= 0 and not (q >= 0 and _inside(q, g, parent)):
                    x[g, j] += step
                    g = parent[g]
                g = q
                while g >= 0 and not _inside(p, g, parent):
                    x[g, j] -= step
                    g = parent[g]
    return gain

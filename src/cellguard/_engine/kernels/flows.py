"""Compiled loops of rounding by flows: cheapest flows with convex prices, and negative cycles.

The network is that of one area: column j is an arc from ``tail[j]`` to ``head[j]``. A price is given
for every step of an arc, never falling from one step to the next.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["adjacency", "cheapest_flow", "negative_cycle"]

FAR = 1e30
"""Stands for an infinite price."""


@njit(cache=True)
def adjacency(tail, head, n_nodes):
    """Return for every node its arcs: ``ptr``, and arc numbers, ``~j`` where arc j enters."""
    count = np.zeros(n_nodes + 1, np.int64)
    for j in range(len(tail)):
        count[tail[j] + 1] += 1
        count[head[j] + 1] += 1
    for i in range(n_nodes):
        count[i + 1] += count[i]
    arcs = np.empty(2 * len(tail), np.int64)
    fill = count[:-1].copy()
    for j in range(len(tail)):
        arcs[fill[tail[j]]] = j
        fill[tail[j]] += 1
        arcs[fill[head[j]]] = ~j
        fill[head[j]] += 1
    return count, arcs


@njit(cache=True)
def cheapest_flow(tail, head, ptr, arcs, need, low, first, prices, flow):
    """Find the cheapest flow by successive shortest paths; returns how much balance is left over (0: done).

    Arc j carries ``low[j] + 0 .. first[j+1] - first[j]`` units; the price of its k-th step is
    ``prices[first[j] + k]``. Node i must receive ``need[i]`` more than it sends. The flow is written
    to `flow`, as units above `low`.
    """
    n, m = len(need), len(tail)
    excess = np.zeros(n, np.int64)
    for i in range(n):
        excess[i] = -need[i]
    for j in range(m):
        k, size = 0, first[j + 1] - first[j]
        while k < size and prices[first[j] + k] < 0:  # each arc where it is cheapest: no price is negative then
            k += 1
        flow[j] = k
        excess[head[j]] += low[j] + k
        excess[tail[j]] -= low[j] + k
    excess[n - 1] = 0  # the outside takes and gives whatever is left
    level = np.zeros(n)
    distance = np.empty(n)
    before = np.empty(n, np.int64)
    done = np.empty(n, np.bool_)
    left = 0
    for i in range(n - 1):
        left += abs(excess[i])
    while left > 0:
        target = _shortest(tail, head, ptr, arcs, first, prices, flow, excess, level, distance, before, done, n)
        if target < 0:
            break
        reach = distance[target]
        for i in range(n):
            level[i] += min(distance[i], reach)
        node = target
        while before[node] != 1 << 60:
            j = before[node]
            if j >= 0:
                flow[j] += 1
                node = tail[j]
            else:
                flow[~j] -= 1
                node = head[~j]
        if node != n - 1:
            excess[node] -= 1
            left -= 1
        if target != n - 1:
            excess[target] += 1
            left -= 1
    return left


@njit(cache=True)
def _shortest(tail, head, ptr, arcs, first, prices, flow, excess, level, distance, before, done, n):
    """Dijkstra from all nodes with too much to the nearest with too little."""
    surplus, deficit = False, False
    for i in range(n - 1):
        surplus |= excess[i] > 0
        deficit |= excess[i] < 0
    for i in range(n):
        done[i] = False
        distance[i] = FAR
        before[i] = 1 << 60
        source = excess[i] > 0 if surplus else i == n - 1  # nothing too much: the outside gives
        if source:
            distance[i] = 0.0
    while True:
        node, near = -1, FAR
        for i in range(n):
            if not done[i] and distance[i] < near:
                node, near = i, distance[i]
        if node < 0:
            return -1
        done[node] = True
        if excess[node] < 0 or (node == n - 1 and surplus):
            return node
        for t in range(ptr[node], ptr[node + 1]):
            j = arcs[t]
            if j >= 0:
                if flow[j] >= first[j + 1] - first[j]:
                    continue
                other, price = head[j], prices[first[j] + flow[j]]
            else:
                if flow[~j] <= 0:
                    continue
                other, price = tail[~j], -prices[first[~j] + flow[~j] - 1]
            if done[other]:
                continue
            d = near + max(0.0, price + level[node] - level[other])
            if d < distance[other]:
                distance[other] = d
                before[other] = j


@njit(cache=True)
def negative_cycle(tail, head, up, down, n, distance, before, seen, cycle):
    """Find a cycle of negative price; returns its length and fills `cycle` with arcs (``~j``: one step down).

    ``up[j]`` and ``down[j]`` are the prices of one step of arc j, FAR where there is none.
    """
    m = len(tail)
    for i in range(n):
        distance[i] = 0.0
        before[i] = 1 << 60
    for sweep in range(n + 1):
        changed = False
        for j in range(m):
            if up[j] < FAR / 2 and distance[tail[j]] + up[j] < distance[head[j]] - 1e-9:
                if tail[j] == head[j]:
                    cycle[0] = j
                    return 1
                distance[head[j]] = distance[tail[j]] + up[j]
                before[head[j]] = j
                changed = True
            if down[j] < FAR / 2 and distance[head[j]] + down[j] < distance[tail[j]] - 1e-9:
                if tail[j] == head[j]:
                    cycle[0] = ~j
                    return 1
                distance[tail[j]] = distance[head[j]] + down[j]
                before[tail[j]] = ~j
                changed = True
        if not changed:
            return 0
        if sweep % 2 == 1:
            length = _closed_walk(tail, head, before, n, seen, cycle)
            if length > 0:
                return length
    return _closed_walk(tail, head, before, n, seen, cycle)


@njit(cache=True)
def _closed_walk(tail, head, before, n, seen, cycle):
    """Follow the arcs by which nodes were reached; a closed walk among them is a negative cycle."""
    for i in range(n):
        seen[i] = -1
    for start in range(n):
        if seen[start] >= 0:
            continue
        node = start
        while seen[node] < 0 and before[node] != 1 << 60:
            seen[node] = start
            j = before[node]
            node = tail[j] if j >= 0 else head[~j]
        if seen[node] == start and before[node] != 1 << 60:
            length, end = 0, node
            while True:
                j = before[node]
                cycle[length] = j
                length += 1
                node = tail[j] if j >= 0 else head[~j]
                if node == end:
                    return length
        if seen[node] < 0:
            seen[node] = start
    return 0

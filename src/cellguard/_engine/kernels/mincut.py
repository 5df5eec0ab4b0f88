"""Compiled loops of networks: how much flows around an arc, and the cuts that let no more through."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["narrow"]

NOISE = 1e-9
"""Room below this is none."""


@njit(cache=True)
def narrow(ptr, arcs, tail, head, cell, upward, level, upper, lower):
    """Push each request's flow through the rest of the network; see `Network.narrow`."""
    n = len(ptr) - 1
    flow = np.zeros(len(tail))
    reached = np.zeros(len(cell))
    sides = np.zeros((16, n), np.int8)
    found = 0
    depth, link = np.empty(n, np.int64), np.empty(n, np.int64)
    place, queue = np.empty(n, np.int64), np.empty(n, np.int64)
    amount = np.empty(n)
    touched = np.empty(len(tail), np.int64)
    for k in range(len(cell)):
        j = cell[k]
        # what the arc carries has to come back to its tail by other ways
        source, target = (head[j], tail[j]) if upward[k] else (tail[j], head[j])
        if source == target:  # the arc is a circuit by itself
            reached[k] = level[k]
            continue
        n_touched = 0
        total = 0.0
        while total < level[k] * (1.0 - NOISE):
            if not spread(ptr, arcs, tail, head, j, source, target, True, upper, lower, flow, depth, queue):
                break
            for i in range(n):
                place[i] = ptr[i]
            while total < level[k] * (1.0 - NOISE):
                more = path(
                    ptr, arcs, tail, head, j, source, target, level[k] - total,
                    upper, lower, flow, depth, place, link, amount,
                )  # fmt: skip
                if more == 0.0:
                    break
                total += more
                i = target
                while i != source:
                    a = link[i]
                    if a >= 0:
                        flow[a] += more
                        i = tail[a]
                    else:
                        a = ~a
                        flow[a] -= more
                        i = head[a]
                    if n_touched < len(touched):
                        touched[n_touched] = a
                        n_touched += 1
        reached[k] = min(total, level[k])
        if total < level[k] * (1.0 - 1e-7):
            if found == len(sides):
                larger = np.zeros((2 * len(sides), n), np.int8)
                larger[:found] = sides
                sides = larger
            for i in range(n):  # the last search for a way has seen all that can be reached
                sides[found, i] = 1 if depth[i] >= 0 else 0
            spread(ptr, arcs, tail, head, j, target, -1, False, upper, lower, flow, depth, queue)
            for i in range(n):
                if depth[i] >= 0:
                    sides[found, i] = 2
            found += 1
        if n_touched == len(touched):
            flow[:] = 0.0
        for i in range(n_touched):
            flow[touched[i]] = 0.0
    return reached, sides[:found]


@njit(cache=True)
def spread(ptr, arcs, tail, head, closed, start, stop, forward, upper, lower, flow, depth, queue):
    """Number the nodes by their distance from where flow starts, or, backward, to where it ends; -1 beyond.

    Only arcs with room left count, and the closed one does not. Returns if `stop` was reached, and ends there.
    """
    depth[:] = -1
    depth[start] = 0
    queue[0] = start
    first, last = 0, 1
    while first < last:
        i = queue[first]
        first += 1
        for p in range(ptr[i], ptr[i + 1]):
            a = arcs[p]
            leaves = a >= 0
            if not leaves:
                a = ~a
            to = head[a] if leaves else tail[a]
            room = upper[a] - flow[a] if leaves == forward else lower[a] + flow[a]
            if room > NOISE and depth[to] < 0 and a != closed:
                depth[to] = depth[i] + 1
                if to == stop:
                    return True
                queue[last] = to
                last += 1
    return False


@njit(cache=True)
def path(
    ptr, arcs, tail, head, closed, source, target, most, upper, lower, flow, depth, place, link, amount
):  # fmt: skip
    """Find a way through the layers; returns how much it carries, 0 if there is none. Its arcs are in `link`."""
    i = source
    amount[source] = most
    while i != target:
        advanced = False
        while place[i] < ptr[i + 1]:
            signed = arcs[place[i]]
            if signed >= 0:
                a = signed
                room, to = upper[a] - flow[a], head[a]
            else:
                a = ~signed
                room, to = lower[a] + flow[a], tail[a]
            if room > NOISE and depth[to] == depth[i] + 1 and a != closed:
                link[to] = signed
                amount[to] = min(amount[i], room)
                i = to
                advanced = True
                break
            place[i] += 1
        if not advanced:
            if i == source:
                return 0.0
            back = link[i]
            i = tail[back] if back >= 0 else head[~back]
            place[i] += 1
    return amount[target]

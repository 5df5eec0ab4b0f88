"""Minimum degree ordering of a symmetric pattern, compiled.

The approximate minimum degree algorithm of P. R. Amestoy, T. A. Davis and I. S. Duff (SIAM J.
Matrix Anal. Appl. 17, 1996), written from the paper: a quotient graph in which eliminated nodes
become elements, degrees are bounded instead of counted, and nodes with equal neighbours are one.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _unlink(i, degree, head, following, previous):
    """Take node i out of the list of its degree."""
    if previous[i] >= 0:
        following[previous[i]] = following[i]
    else:
        head[degree[i]] = following[i]
    if following[i] >= 0:
        previous[following[i]] = previous[i]


@njit(cache=True)
def _link(i, d, degree, head, following, previous):
    """Put node i first in the list of degree d."""
    degree[i] = d
    following[i] = head[d]
    previous[i] = -1
    if head[d] >= 0:
        previous[head[d]] = i
    head[d] = i


@njit(cache=True)
def _compact(store, start, length, alive, n):
    """Move the lists that are alive to the front of the store; return where the free space begins."""
    order = np.argsort(start[:n])
    free = 0
    for i in order:
        if alive[i]:
            begin = start[i]
            start[i] = free
            for k in range(length[i]):
                store[free] = store[begin + k]
                free += 1
    return free


@njit(cache=True)
def minimum_degree(indptr, indices):
    """Elimination order of a symmetric pattern (both triangles, without the diagonal)."""
    n = len(indptr) - 1
    nnz = indptr[n]
    store = np.empty(nnz + nnz // 4 + 4 * n + 64, np.int64)
    store[:nnz] = indices[:nnz]
    free = nnz
    start, length, n_elements = indptr[:n].copy(), np.diff(indptr), np.zeros(n, np.int64)
    size = np.ones(n, np.int64)  # how many nodes a node stands for; 0 once it is absorbed, eliminated ones keep theirs
    is_element, alive = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    degree = length.copy()
    head = np.full(n + 1, -1, np.int64)
    following, previous = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for i in range(n - 1, -1, -1):
        _link(i, degree[i], degree, head, following, previous)
    leader = np.arange(n)  # representative a node was merged into
    pivots = np.empty(n, np.int64)
    weight_of = np.zeros(n, np.int64)  # how many nodes an element holds: constant while it is alive
    outside = np.zeros(n, np.int64)  # stamp + how many of them lie outside the new element
    stamp = 1
    bucket, chain, hash_of = np.full(n, -1, np.int64), np.full(n, -1, np.int64), np.zeros(n, np.int64)
    marked = np.zeros(n, np.int64)
    in_new = np.zeros(n, np.bool_)
    n_pivots, eliminated, least = 0, 0, 0
    while eliminated < n:
        while head[least] < 0:
            least += 1
        p = head[least]
        _unlink(p, degree, head, following, previous)
        # ---- the new element: all neighbours of p, directly or through its elements
        need = length[p] - n_elements[p]
        for k in range(start[p], start[p] + n_elements[p]):
            need += length[store[k]]
        if free + need > len(store):
            free = _compact(store, start, length, alive, n)
            if free + need > len(store):
                bigger = np.empty(2 * (free + need), np.int64)
                bigger[:free] = store[:free]
                store = bigger
        first = free
        in_new[p] = True
        new_size = 0
        for part in range(n_elements[p] + 1):
            if part < n_elements[p]:
                e = store[start[p] + part]
                begin, end = start[e], start[e] + length[e]
                alive[e] = False
            else:
                begin, end = start[p] + n_elements[p], start[p] + length[p]
            for k in range(begin, end):
                i = store[k]
                if size[i] > 0 and not is_element[i] and not in_new[i]:
                    in_new[i] = True
                    new_size += size[i]
                    store[free] = i
                    free += 1
                    _unlink(i, degree, head, following, previous)
        in_new[p] = False
        is_element[p] = True
        start[p], length[p], n_elements[p] = first, free - first, 0
        weight = size[p]
        # ---- how much of every other element lies outside the new one
        stamp += n + 1
        for q in range(first, free):
            i = store[q]
            for k in range(start[i], start[i] + n_elements[i]):
                e = store[k]
                if alive[e]:
                    if outside[e] < stamp:
                        outside[e] = stamp + weight_of[e]
                    outside[e] -= size[i]
        # ---- new lists and degrees of the neighbours
        for q in range(first, free):
            i = store[q]
            write = start[i]
            d, h, kept = 0, p, 1
            n_old, old_end = n_elements[i], start[i] + length[i]
            moved = p  # the new element comes first; everything else moves up by one
            for k in range(start[i], start[i] + n_old):
                e = store[k]
                if alive[e] and outside[e] - stamp > 0:
                    store[write], moved = moved, e
                    write += 1
                    kept += 1
                    d += outside[e] - stamp
                    h += e
                elif alive[e]:
                    alive[e] = False  # it lies inside the new one
            n_elements[i] = kept
            held = moved
            for k in range(start[i] + n_old, old_end):
                j = store[k]
                if size[j] > 0 and not is_element[j] and not in_new[j]:
                    store[write], held = held, j
                    write += 1
                    d += size[j]
                    h += j
            store[write] = held
            write += 1
            length[i] = write - start[i]
            if d == 0 and kept == 1:
                leader[i] = p  # nothing else touches it: eliminate it with p
                weight += size[i]
                new_size -= size[i]
                size[i] = 0
                alive[i] = False
                in_new[i] = False
            else:
                degree[i] = min(degree[i], d)
                hash_of[i] = h % n
                chain[i] = bucket[h % n]
                bucket[h % n] = i
        # ---- neighbours that became indistinguishable are merged
        for q in range(first, free):
            i = store[q]
            if size[i] == 0:
                continue
            h = hash_of[i]
            i = bucket[h]
            bucket[h] = -1
            while i >= 0 and chain[i] >= 0:
                stamp_i = stamp + i + 1
                for k in range(start[i], start[i] + length[i]):
                    marked[store[k]] = stamp_i
                last, j = i, chain[i]
                while j >= 0:
                    same = length[j] == length[i] and n_elements[j] == n_elements[i]
                    k = start[j]
                    while same and k < start[j] + length[j]:
                        same = marked[store[k]] == stamp_i
                        k += 1
                    if same:
                        leader[j] = i
                        size[i] += size[j]
                        size[j] = 0
                        alive[j] = False
                        in_new[j] = False
                        j = chain[j]
                        chain[last] = j
                    else:
                        last, j = j, chain[j]
                i = chain[i]
        # ---- back into the lists of degrees
        eliminated += weight
        write = first
        for q in range(first, free):
            i = store[q]
            if size[i] > 0:
                in_new[i] = False
                d = min(degree[i] + new_size - size[i], n - eliminated - size[i])
                d = max(d, 0)
                _link(i, d, degree, head, following, previous)
                least = min(least, d)
                store[write] = i
                write += 1
        length[p] = write - first
        weight_of[p] = new_size
        free = write
        size[p] = 0
        alive[p] = length[p] > 0
        pivots[n_pivots] = p
        n_pivots += 1
    # ---- nodes follow their representative
    position = np.full(n, -1, np.int64)
    for k in range(n_pivots):
        position[pivots[k]] = k
    count = np.zeros(n_pivots + 1, np.int64)
    root = np.empty(n, np.int64)
    for i in range(n):
        r = i
        while leader[r] != r:
            r = leader[r]
        root[i] = position[r]
        count[root[i] + 1] += 1
    for k in range(n_pivots):
        count[k + 1] += count[k]
    order = np.empty(n, np.int64)
    for i in range(n):
        order[count[root[i]]] = i
        count[root[i]] += 1
    return order

"""Compiled kernels of the reduction: exact elimination over a prime field beside floating point.

Whether a number is zero is decided modulo the prime, exactly; how large it is comes from the
floating-point value carried beside it. A zero test is wrong only if the prime divides a number that
is not zero, for entries drawn at random: about one in 10^9 per test, and tests that matter use two
independent draws.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import njit

_LEAST_PIVOT = 0.1  # share of the largest coefficient of its row
PRIME = 2147483647  # 2^31 - 1: the product of two residues fits into 63 bits


@njit(cache=True)
def _inverse(x):
    """Inverse modulo PRIME, by Fermat: x^(p-2)."""
    result, power, e = 1, x % PRIME, PRIME - 2
    while e:
        if e & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        e >>= 1
    return result


@njit(cache=True)
def choose_definitions(indptr, indices, data, free):
    """Choose, without cycles, a relation that defines each total by its parts.

    A total is the cell of odd sign in a relation; it is defined by the shortest relation it is the
    total of. Returns the defining relation of each cell (-1 for a leaf) and the totals in an order
    in which parts come before their total.
    """
    m, n = len(indptr) - 1, len(free)
    definition = np.full(n, -1, np.int64)
    length = np.full(n, 1 << 60, np.int64)
    for r in range(m):
        positive, negative, up, down = 0, 0, -1, -1
        for k in range(indptr[r], indptr[r + 1]):
            c = indices[k]
            if free[c] and data[k] != 0:
                if data[k] > 0:
                    positive, up = positive + 1, c
                else:
                    negative, down = negative + 1, c
        if negative == 1:
            total = down
        elif positive == 1:
            total = up
        else:
            continue
        if positive + negative < length[total]:
            length[total] = positive + negative
            definition[total] = r
    # Kahn's order: a total waits for those of its parts that are totals themselves
    waiting = np.zeros(n, np.int64)
    users = np.zeros(n + 1, np.int64)
    for c in range(n):
        r = definition[c]
        if r >= 0:
            for k in range(indptr[r], indptr[r + 1]):
                part = indices[k]
                if part != c and free[part] and definition[part] >= 0:
                    waiting[c] += 1
                    users[part + 1] += 1
    for c in range(n):
        users[c + 1] += users[c]
    used_by = np.empty(users[n], np.int64)
    fill = users[:-1].copy()
    for c in range(n):
        r = definition[c]
        if r >= 0:
            for k in range(indptr[r], indptr[r + 1]):
                part = indices[k]
                if part != c and free[part] and definition[part] >= 0:
                    used_by[fill[part]] = c
                    fill[part] += 1
    order = np.empty(n, np.int64)
    tail = 0
    for c in range(n):
        if definition[c] >= 0 and waiting[c] == 0:
            order[tail] = c
            tail += 1
    head, scan, done = 0, 0, np.zeros(n, np.bool_)
    dropped = np.zeros(n, np.bool_)
    while True:
        while head < tail:
            c = order[head]
            head += 1
            done[c] = True
            for k in range(users[c], users[c + 1]):
                user = used_by[k]
                waiting[user] -= 1
                if waiting[user] == 0 and not dropped[user]:
                    order[tail] = user
                    tail += 1
        # what still waits lies on a cycle of definitions: make one cell of it a leaf and go on
        while scan < n and (definition[scan] < 0 or done[scan] or dropped[scan]):
            scan += 1
        if scan == n:
            break
        dropped[scan] = True
        for k in range(users[scan], users[scan + 1]):
            user = used_by[k]
            waiting[user] -= 1
            if waiting[user] == 0 and not dropped[user]:
                order[tail] = user
                tail += 1
    for c in range(n):
        if dropped[c]:
            definition[c] = -1
    return definition, order[:tail].copy()


@njit(cache=True)
def propagate(indptr, indices, data, residue, free, definition, order, exact, value):
    """Complete values of the leaves to all cells, in place: exact modulo PRIME, and floating."""
    for c in order:
        r = definition[c]
        s, f, own, own_f = 0, 0.0, 0, 0.0
        for k in range(indptr[r], indptr[r + 1]):
            part = indices[k]
            if part == c:
                own, own_f = residue[k], data[k]
            elif free[part]:
                s = (s + residue[k] * exact[part]) % PRIME
                f += data[k] * value[part]
        exact[c] = (PRIME - s) * _inverse(own) % PRIME
        value[c] = -f / own_f


@njit(cache=True)
def leftover_relations(indptr, indices, residue, free, first, second):
    """Relations that define nothing and that two random vectors show to be independent of those that do."""
    m = len(indptr) - 1
    keep = np.zeros(m, np.bool_)
    for r in range(m):
        s, t = 0, 0
        for k in range(indptr[r], indptr[r + 1]):
            c = indices[k]
            if free[c]:
                s = (s + residue[k] * first[c]) % PRIME
                t = (t + residue[k] * second[c]) % PRIME
        keep[r] = s != 0 or t != 0
    return np.flatnonzero(keep)


@njit(cache=True)
def expand(indptr, indices, data, residue, free, definition, order, rows):
    """Write relations as relations between leaves: totals are replaced by their definitions."""
    n = len(free)
    position = np.full(n, -1, np.int64)
    for i in range(len(order)):
        position[order[i]] = i
    exact, value = np.zeros(n, np.int64), np.zeros(n)
    seen = np.zeros(n, np.bool_)
    out_ptr = np.zeros(len(rows) + 1, np.int64)
    cap = 1024
    out_cell, out_exact, out_value = np.empty(cap, np.int64), np.empty(cap, np.int64), np.empty(cap)
    touched = np.empty(n, np.int64)
    for i in range(len(rows)):
        count = 0
        heap = [-1]
        heap.pop()
        for k in range(indptr[rows[i]], indptr[rows[i] + 1]):
            c = indices[k]
            if free[c]:
                if not seen[c]:
                    seen[c] = True
                    touched[count] = c
                    count += 1
                    if position[c] >= 0:
                        heappush(heap, -position[c])
                exact[c] = (exact[c] + residue[k]) % PRIME
                value[c] += data[k]
        while len(heap) > 0:  # the last in the order first: its parts come before it
            c = order[-heappop(heap)]
            e, f = exact[c], value[c]
            exact[c], value[c] = 0, 0.0
            if e == 0:
                continue
            r = definition[c]
            own, own_f = 1, 1.0
            for k in range(indptr[r], indptr[r + 1]):
                if indices[k] == c:
                    own, own_f = residue[k], data[k]
            e = e * _inverse(own) % PRIME
            f = f / own_f
            for k in range(indptr[r], indptr[r + 1]):
                part = indices[k]
                if part != c and free[part]:
                    if not seen[part]:
                        seen[part] = True
                        touched[count] = part
                        count += 1
                        if position[part] >= 0:
                            heappush(heap, -position[part])
                    exact[part] = (exact[part] + (PRIME - e) * residue[k]) % PRIME
                    value[part] -= f * data[k]
        size = out_ptr[i]
        for j in range(count):
            c = touched[j]
            if exact[c] != 0:
                if size == cap:
                    cap *= 2
                    out_cell = np.append(out_cell, np.empty(cap - size, np.int64))
                    out_exact = np.append(out_exact, np.empty(cap - size, np.int64))
                    out_value = np.append(out_value, np.empty(cap - size))
                out_cell[size], out_exact[size], out_value[size] = c, exact[c], value[c]
                size += 1
            exact[c], value[c], seen[c] = 0, 0.0, False
        out_ptr[i + 1] = size
    size = out_ptr[len(rows)]
    return out_ptr, out_cell[:size].copy(), out_exact[:size].copy(), out_value[:size].copy()


@njit(cache=True)
def eliminate(ptr, cell, exact, value, sequence, n):
    """Reduced echelon form of relations between leaves, taken in the given sequence.

    The pivot of a row is the leaf that stands in the fewest rows. Returns the used rows, the pivot
    leaf of each, and each pivot as a combination of leaves that are no pivots.
    """
    use = np.zeros(n, np.int64)
    for k in range(len(cell)):
        use[cell[k]] += 1
    pivot_row = np.full(n, -1, np.int64)  # leaf -> number of its pivot
    acc, accf = np.zeros(n, np.int64), np.zeros(n)
    seen = np.zeros(n, np.bool_)
    touched = np.empty(n, np.int64)
    m = len(ptr) - 1
    used, pivots = np.empty(m, np.int64), np.empty(m, np.int64)
    begin, end = np.zeros(m, np.int64), np.zeros(m, np.int64)
    cap = max(1024, 2 * len(cell))
    rc, re, rf = np.empty(cap, np.int64), np.empty(cap, np.int64), np.empty(cap)
    size, rank = 0, 0
    for row in sequence:
        count = 0
        heap = [np.int64(0)]
        heap.pop()
        for k in range(ptr[row], ptr[row + 1]):
            c = cell[k]
            seen[c] = True
            touched[count] = c
            count += 1
            acc[c], accf[c] = exact[k], value[k]
            if pivot_row[c] >= 0:
                heappush(heap, pivot_row[c])
        while len(heap) > 0:
            j = heappop(heap)
            e, f = acc[pivots[j]], accf[pivots[j]]
            acc[pivots[j]], accf[pivots[j]] = 0, 0.0
            if e == 0:
                continue
            for k in range(begin[j], end[j]):  # the pivot equals the sum of re * leaf
                c = rc[k]
                if not seen[c]:
                    seen[c] = True
                    touched[count] = c
                    count += 1
                    if pivot_row[c] >= 0:
                        heappush(heap, pivot_row[c])
                acc[c] = (acc[c] + e * re[k]) % PRIME
                accf[c] += f * rf[k]
        best, best_use, largest = -1, 1 << 60, 1e-10
        for j in range(count):
            if acc[touched[j]] != 0:
                largest = max(largest, abs(accf[touched[j]]))
        for j in range(count):
            c = touched[j]
            # a smaller one would let the others grow, or is a fraction that is not binary, cancelled
            if acc[c] != 0 and abs(accf[c]) > _LEAST_PIVOT * largest:
                rank_use = 2 * use[c] + (0 if abs(abs(accf[c]) - 1.0) < 1e-9 else 1)  # unit pivots keep integers
                if rank_use < best_use or (rank_use == best_use and c < best):
                    best, best_use = c, rank_use
        if best >= 0:
            if size + count > cap:
                cap = 2 * (size + count)
                rc = np.append(rc, np.empty(cap - len(rc), np.int64))
                re = np.append(re, np.empty(cap - len(re), np.int64))
                rf = np.append(rf, np.empty(cap - len(rf)))
            scale, scale_f = PRIME - _inverse(acc[best]), -1.0 / accf[best]
            used[rank], pivots[rank], begin[rank] = row, best, size
            for j in range(count):
                c = touched[j]
                if acc[c] != 0 and c != best:
                    rc[size], re[size], rf[size] = c, acc[c] * scale % PRIME, accf[c] * scale_f
                    size += 1
            end[rank] = size
            pivot_row[best] = rank
            rank += 1
        for j in range(count):
            c = touched[j]
            acc[c], accf[c], seen[c] = 0, 0.0, False
    # back substitution, last pivot first: later pivots leave the earlier rows
    fc, fe, ff = np.empty(cap, np.int64), np.empty(cap, np.int64), np.empty(cap)
    start, stop = np.zeros(rank, np.int64), np.zeros(rank, np.int64)
    size = 0
    for i in range(rank - 1, -1, -1):
        count = 0
        for k in range(begin[i], end[i]):
            c = rc[k]
            j = pivot_row[c]
            if j < 0:
                if not seen[c]:
                    seen[c] = True
                    touched[count] = c
                    count += 1
                acc[c] = (acc[c] + re[k]) % PRIME
                accf[c] += rf[k]
            else:
                for q in range(start[j], stop[j]):
                    d = fc[q]
                    if not seen[d]:
                        seen[d] = True
                        touched[count] = d
                        count += 1
                    acc[d] = (acc[d] + re[k] * fe[q]) % PRIME
                    accf[d] += rf[k] * ff[q]
        if size + count > len(fc):
            grow = 2 * (size + count) - len(fc)
            fc = np.append(fc, np.empty(grow, np.int64))
            fe = np.append(fe, np.empty(grow, np.int64))
            ff = np.append(ff, np.empty(grow))
        start[i] = size
        for j in range(count):
            c = touched[j]
            if acc[c] != 0:
                fc[size], fe[size], ff[size] = c, acc[c], accf[c]
                size += 1
            acc[c], accf[c], seen[c] = 0, 0.0, False
        stop[i] = size
    return used[:rank].copy(), pivots[:rank].copy(), start, stop, fc[:size].copy(), fe[:size].copy(), ff[:size].copy()


@njit(cache=True)
def combine(pivots, start, stop, cell, coefficient, coefficient_f, exact, value):
    """Set the pivot leaves from the other leaves, in place."""
    for i in range(len(pivots)):
        s, f = 0, 0.0
        for k in range(start[i], stop[i]):
            s = (s + coefficient[k] * exact[cell[k]]) % PRIME
            f += coefficient_f[k] * value[cell[k]]
        exact[pivots[i]] = s
        value[pivots[i]] = f


@njit(cache=True)
def null_space(indptr, indices, data, free, definition, order, parameters, pivots, start, stop, cell, coefficient):
    """Rows of the basis in which the parameters are the identity: CSR arrays, one row per cell."""
    n, d = len(free), len(parameters)
    first, last = np.zeros(n, np.int64), np.zeros(n, np.int64)
    number = np.full(n, -1, np.int64)
    cap = max(1024, 4 * n)
    col, val = np.empty(cap, np.int64), np.empty(cap)
    size = 0
    for j in range(d):
        number[parameters[j]] = j
        col[size], val[size] = j, 1.0
        first[parameters[j]], last[parameters[j]] = size, size + 1
        size += 1
    for i in range(len(pivots)):
        need = stop[i] - start[i]
        if size + need > cap:
            cap = 2 * (size + need)
            col = np.append(col, np.empty(cap - len(col), np.int64))
            val = np.append(val, np.empty(cap - len(val)))
        first[pivots[i]] = size
        for k in range(start[i], stop[i]):
            col[size], val[size] = number[cell[k]], coefficient[k]
            size += 1
        last[pivots[i]] = size
    acc, seen, touched = np.zeros(d), np.zeros(d, np.bool_), np.empty(d, np.int64)
    for c in order:
        r = definition[c]
        count, own = 0, 1.0
        for k in range(indptr[r], indptr[r + 1]):
            part = indices[k]
            if part == c:
                own = data[k]
            elif free[part]:
                for q in range(first[part], last[part]):
                    j = col[q]
                    if not seen[j]:
                        seen[j] = True
                        touched[count] = j
                        count += 1
                    acc[j] += data[k] * val[q]
        if size + count > cap:
            cap = 2 * (size + count)
            col = np.append(col, np.empty(cap - len(col), np.int64))
            val = np.append(val, np.empty(cap - len(val)))
        first[c] = size
        for q in range(count):
            j = touched[q]
            if abs(acc[j]) > 1e-9:
                col[size], val[size] = j, -acc[j] / own
                size += 1
            acc[j], seen[j] = 0.0, False
        last[c] = size
    ptr = np.zeros(n + 1, np.int64)
    for c in range(n):
        ptr[c + 1] = ptr[c] + last[c] - first[c]
    out_col, out_val = np.empty(ptr[n], np.int64), np.empty(ptr[n])
    for c in range(n):
        out_col[ptr[c] : ptr[c + 1]] = col[first[c] : last[c]]
        out_val[ptr[c] : ptr[c + 1]] = val[first[c] : last[c]]
    return ptr, out_col, out_val


@njit(cache=True)
def quotients(first, second, third):
    """Directions of three fingerprints: equal for cells whose movements are proportional."""
    n = len(first)
    out = np.zeros((n, 2), np.int64)
    for i in range(n):
        if first[i] != 0:
            inverse = _inverse(first[i])
            out[i, 0] = second[i] * inverse % PRIME
            out[i, 1] = third[i] * inverse % PRIME
    return out


@njit(cache=True)
def join(indptr, indices, rows, moving):
    """Union-find over relations: the root of each moving cell, -1 for the others."""
    n = len(moving)
    parent = np.arange(n)
    for r in rows:
        root = -1
        for k in range(indptr[r], indptr[r + 1]):
            c = indices[k]
            if not moving[c]:
                continue
            while parent[c] != c:
                parent[c] = parent[parent[c]]
                c = parent[c]
            if root < 0:
                root = c
            elif c < root:
                parent[root] = c
                root = c
            else:
                parent[c] = root
    out = np.full(n, -1, np.int64)
    for c in range(n):
        if moving[c]:
            x = c
            while parent[x] != x:
                x = parent[x]
            out[c] = x
    return out

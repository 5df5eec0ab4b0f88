"""Sparse Cholesky factors, compiled: symbolic analysis, supernodal factorisation, solves.

Columns with (nearly) the same pattern form a supernode, a dense block of rows by columns, so that
nearly all work is matrix products. Left-looking: a supernode collects what all earlier ones
subtract from it, then it is factored (T. A. Davis, Direct Methods for Sparse Linear Systems, SIAM
2006, chapter 4; Y. Chen et al., Algorithm 887: CHOLMOD, 2008).
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def elimination_tree(indptr, indices):
    """Parent of each column of the factor; the pattern is the strictly lower triangle by rows."""
    n = len(indptr) - 1
    parent, ancestor = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while j != -1 and j < i:
                above = ancestor[j]
                ancestor[j] = i
                if above == -1:
                    parent[j] = i
                j = above
    return parent


@njit(cache=True)
def postorder(parent):
    """Order in which every subtree is contiguous, children before parents."""
    n = len(parent)
    first, following = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for j in range(n - 1, -1, -1):
        if parent[j] >= 0:
            following[j] = first[parent[j]]
            first[parent[j]] = j
    order, stack = np.empty(n, np.int64), np.empty(n, np.int64)
    done = 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        top = 0
        stack[0] = root
        while top >= 0:
            j = stack[top]
            if first[j] >= 0:
                child = first[j]
                first[j] = following[child]
                top += 1
                stack[top] = child
            else:
                order[done] = j
                done += 1
                top -= 1
    return order


@njit(cache=True)
def column_counts(indptr, indices, parent):
    """Entries below the diagonal in each column of the factor, by walking every row's subtree."""
    n = len(parent)
    counts, seen = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    for i in range(n):
        seen[i] = i
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            while j != -1 and seen[j] != i:
                seen[j] = i
                counts[j] += 1
                j = parent[j]
    return counts


@njit(cache=True)
def supernodes(parent, counts, widest):
    """First column of each supernode, after merging chains of children into their parents.

    A child is merged with the parent that follows it when this stores few zeros: always when the
    patterns agree, and when the merged block stays small or mostly full.
    """
    n = len(parent)
    starts = np.empty(n + 1, np.int64)
    zeros = np.zeros(n, np.int64)  # stored zeros of the supernode on top
    top = 0
    starts[0] = 0
    for j in range(1, n):
        begin = starts[top]
        width = j - begin
        joins = False
        if parent[j - 1] == j and width < widest:
            # rows of the block when column j is added: those of j, and all columns of the block
            height = counts[j] + 1 + width
            stored = 0
            for c in range(begin, j):
                stored += height - (c - begin) - (counts[c] + 1)
            share = stored / max(1.0, float(height) * (width + 1))
            joins = counts[j - 1] == counts[j] + 1 and zeros[top] == 0
            joins = joins or (width < 8 and share < 0.5) or (width < 32 and share < 0.2) or share < 0.05
            if joins:
                zeros[top] = stored
        if not joins:
            top += 1
            starts[top] = j
            zeros[top] = 0
    starts[top + 1] = n
    return starts[: top + 2].copy()


@njit(cache=True)
def patterns(indptr, indices, parent, starts):
    """Rows of each supernode, its own columns first: pointers and row numbers."""
    n, m = len(parent), len(starts) - 1
    owner = np.empty(n, np.int64)
    for s in range(m):
        for j in range(starts[s], starts[s + 1]):
            owner[j] = s
    # column lists of the strictly lower triangle
    begin = np.zeros(n + 1, np.int64)
    for k in range(len(indices)):
        begin[indices[k] + 1] += 1
    for j in range(n):
        begin[j + 1] += begin[j]
    below, fill = np.empty(len(indices), np.int64), begin[:-1].copy()
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            below[fill[indices[k]]] = i
            fill[indices[k]] += 1
    child, sibling = np.full(m, -1, np.int64), np.full(m, -1, np.int64)
    ptr = np.zeros(m + 1, np.int64)
    cap = 4 * n + 64
    rows = np.empty(cap, np.int64)
    seen, collected = np.full(n, -1, np.int64), np.empty(n, np.int64)
    for s in range(m):
        a, b = starts[s], starts[s + 1]
        count = 0
        for j in range(a, b):
            seen[j] = s
        for j in range(a, b):
            for k in range(begin[j], begin[j + 1]):
                i = below[k]
                if seen[i] != s:
                    seen[i] = s
                    collected[count] = i
                    count += 1
        c = child[s]
        while c >= 0:
            for k in range(ptr[c], ptr[c + 1]):
                i = rows[k]
                if i >= a and seen[i] != s:
                    seen[i] = s
                    collected[count] = i
                    count += 1
            c = sibling[c]
        found = np.sort(collected[:count])
        size = ptr[s] + (b - a) + count
        if size > cap:
            cap = 2 * size
            rows = np.append(rows, np.empty(cap - len(rows), np.int64))
        at = ptr[s]
        for j in range(a, b):
            rows[at] = j
            at += 1
        for k in range(count):
            rows[at] = found[k]
            at += 1
        ptr[s + 1] = at
        if count > 0:  # the supernode of the first row below is the parent
            up = owner[found[0]]
            sibling[s] = child[up]
            child[up] = s
    return ptr, rows[: ptr[m]].copy(), owner


@njit(cache=True, fastmath=True)
def _factor_top(block, width, floor):
    """Factor the square top of a block; return how many pivots had to be raised."""
    raised = 0
    for j in range(width):
        d = block[j, j]
        for k in range(j):
            d -= block[j, k] * block[j, k]
        if not d > floor[j]:
            d = 1e128  # a relation that nothing moves: its multiplier stays 0
            raised += 1
        root = np.sqrt(d)
        block[j, j] = root
        for i in range(j + 1, width):
            x = block[i, j]
            for k in range(j):
                x -= block[i, k] * block[j, k]
            block[i, j] = x / root
    return raised


@njit(cache=True, fastmath=True)
def _divide_rows(block, width):
    """Divide the rows below the square top by it."""
    for i in range(width, block.shape[0]):
        for j in range(width):
            x = block[i, j]
            for k in range(j):
                x -= block[i, k] * block[j, k]
            block[i, j] = x / block[j, j]


@njit(cache=True, fastmath=True)
def _inverse_top(block, width):
    """Inverse of the square top, transposed, so that rows are divided by a matrix product."""
    out = np.zeros((width, width))
    for j in range(width):
        out[j, j] = 1.0 / block[j, j]
        for i in range(j + 1, width):
            x = 0.0
            for k in range(j, i):
                x -= block[i, k] * out[j, k]
            out[j, i] = x / block[i, i]
    return out


@njit(cache=True)
def factorize(indptr, indices, data, starts, ptr, rows, owner, at, values, tiny):
    """Factor a matrix given by the rows of its lower triangle (diagonal last); return the number of raised pivots.

    `values[at[s]:at[s + 1]]` is the block of supernode s, row by row.
    """
    m, n = len(starts) - 1, len(owner)
    values[:] = 0.0
    place = np.empty(n, np.int64)  # position of a row in the current block
    # transpose of the lower triangle: entries of a column
    begin = np.zeros(n + 1, np.int64)
    for k in range(len(indices)):
        begin[indices[k] + 1] += 1
    for j in range(n):
        begin[j + 1] += begin[j]
    row_of, value_of, fill = np.empty(len(indices), np.int64), np.empty(len(indices)), begin[:-1].copy()
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            row_of[fill[j]], value_of[fill[j]] = i, data[k]
            fill[j] += 1
    waiting, chain = np.full(m, -1, np.int64), np.full(m, -1, np.int64)  # who updates a supernode next
    reached = np.zeros(m, np.int64)  # first row of a supernode that has not been used yet
    widest, tallest = 0, 0
    for s in range(m):
        widest = max(widest, starts[s + 1] - starts[s])
        tallest = max(tallest, ptr[s + 1] - ptr[s])
    update = np.empty(tallest * widest)
    raised = 0
    for s in range(m):
        a, b = starts[s], starts[s + 1]
        width, height = b - a, ptr[s + 1] - ptr[s]
        block = values[at[s] : at[s + 1]].reshape((height, width))
        for k in range(height):
            place[rows[ptr[s] + k]] = k
        floor = np.empty(width)
        for j in range(a, b):
            for k in range(begin[j], begin[j + 1]):
                block[place[row_of[k]], j - a] = value_of[k]
            floor[j - a] = tiny * block[j - a, j - a]
        d = waiting[s]
        while d >= 0:
            following = chain[d]
            d_width, d_height = starts[d + 1] - starts[d], ptr[d + 1] - ptr[d]
            source = values[at[d] : at[d + 1]].reshape((d_height, d_width))
            low = reached[d]
            high = low
            while high < d_height and rows[ptr[d] + high] < b:
                high += 1
            if d_width < 4 or high - low == 1:
                for i in range(low, d_height):
                    x = place[rows[ptr[d] + i]]
                    for j in range(low, min(high, i + 1)):
                        total = 0.0
                        for k in range(d_width):
                            total += source[i, k] * source[j, k]
                        block[x, rows[ptr[d] + j] - a] -= total
            else:
                part = update[: (d_height - low) * (high - low)].reshape((d_height - low, high - low))
                np.dot(source[low:], source[low:high].T, part)
                for i in range(low, d_height):
                    x = place[rows[ptr[d] + i]]
                    for j in range(low, high):
                        block[x, rows[ptr[d] + j] - a] -= part[i - low, j - low]
            reached[d] = high
            if high < d_height:
                up = owner[rows[ptr[d] + high]]
                chain[d] = waiting[up]
                waiting[up] = d
            d = following
        found = _factor_top(block, width, floor)
        raised += found
        if width < 16 or height < 3 * width or found > 0:
            _divide_rows(block, width)
        else:
            below = update[: (height - width) * width].reshape((height - width, width))
            np.dot(block[width:], _inverse_top(block, width), below)
            block[width:] = below
        reached[s] = width
        if width < height:
            up = owner[rows[ptr[s] + width]]
            chain[s] = waiting[up]
            waiting[up] = s
    return raised


@njit(cache=True, fastmath=True)
def solve(starts, ptr, rows, at, values, x):
    """Solve with the factor and its transpose, in place."""
    m = len(starts) - 1
    for s in range(m):
        a = starts[s]
        width, height = starts[s + 1] - a, ptr[s + 1] - ptr[s]
        block = values[at[s] : at[s + 1]].reshape((height, width))
        for j in range(width):
            total = x[a + j]
            for k in range(j):
                total -= block[j, k] * x[a + k]
            x[a + j] = total / block[j, j]
        for i in range(width, height):
            total = 0.0
            for k in range(width):
                total += block[i, k] * x[a + k]
            x[rows[ptr[s] + i]] -= total
    for s in range(m - 1, -1, -1):
        a = starts[s]
        width, height = starts[s + 1] - a, ptr[s + 1] - ptr[s]
        block = values[at[s] : at[s + 1]].reshape((height, width))
        for i in range(width, height):
            y = x[rows[ptr[s] + i]]
            for k in range(width):
                x[a + k] -= block[i, k] * y
        for j in range(width - 1, -1, -1):
            y = x[a + j] / block[j, j]
            x[a + j] = y
            for k in range(j):
                x[a + k] -= block[j, k] * y

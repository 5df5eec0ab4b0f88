"""Compiled kernel of the clean-up: publish classes of cells while every request keeps a witness."""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.echelon import eliminate, push

_ZERO = 1e-7  # coefficients of the echelon form below this are rounding
_NEAR = 1.0 - 1e-10
_ROUNDING = 1e-13


@njit(cache=True)
def bounds_of(k, low, high, known_ptr, known_row, known_low, known_high):
    """Bounds of attacker k: the common ones, tightened by what he knows."""
    lo, hi = low.copy(), high.copy()
    for q in range(known_ptr[k], known_ptr[k + 1]):
        i = known_row[q]
        lo[i] = max(lo[i], known_low[q])
        hi[i] = min(hi[i], known_high[q])
    return lo, hi


@njit(cache=True)
def _take(z, row, sign, need, lo, hi):
    """Stretch z so that ``sign * z[row]`` reaches `need` inside the bounds; empty when it cannot."""
    if z[row] == 0.0:
        return np.zeros(0)
    direction = 1.0 if sign * z[row] > 0 else -1.0
    t = need / abs(z[row])
    for i in range(len(z)):
        v = t * direction * z[i]
        if v > hi[i] * (1.0 + 1e-12) or v < lo[i] * (1.0 + 1e-12):
            return np.zeros(0)
    return z * (t * direction)


@njit(cache=True)
def meet(W, basis, row, down, up, slide, lo, hi, first, second, others, n_others):
    """Find witnesses for one request: movements up and down. Both empty when there are none.

    `first` and `second` are movements to be tried first (stretched), then the others' witnesses,
    then the simplex method.
    """
    none = np.zeros(0)
    need_up = max(up, slide - down)
    z_up = none
    if need_up > 0:
        z_up = _take(first, row, 1.0, need_up, lo, hi)
        if len(z_up) == 0:
            z_up = _take(second, row, 1.0, need_up, lo, hi)
        q = 0
        while len(z_up) == 0 and q < n_others:
            z_up = _take(others[q], row, 1.0, need_up, lo, hi)
            q += 1
        if len(z_up) == 0:
            z_up = np.zeros(len(lo))
            reached = push(W, basis, z_up, lo, hi, row, 1.0, need_up)
            if reached < up * _NEAR:
                return none, none
            need_up = min(need_up, reached)
    else:
        z_up = np.zeros(len(lo))
    need_down = max(down, slide - need_up)
    z_down = none
    if need_down > 0:
        z_down = _take(z_up, row, -1.0, need_down, lo, hi)
        if len(z_down) == 0:
            z_down = _take(second, row, -1.0, need_down, lo, hi)
        q = 0
        while len(z_down) == 0 and q < n_others:
            z_down = _take(others[q], row, -1.0, need_down, lo, hi)
            q += 1
        if len(z_down) == 0:
            z_down = np.zeros(len(lo))
            if push(W, basis, z_down, lo, hi, row, -1.0, need_down) < need_down * _NEAR:
                return none, none
    else:
        z_down = np.zeros(len(lo))
    return z_up, z_down


@njit(cache=True)
def classes(W, weight, state, noise):
    """Parallel rows of W: each row's class, the weight of each class, and whether it may be published.

    `state` of a row: 0 open, 1 must stay open, 2 published. Two random combinations of the columns
    are proportional for parallel rows; it takes a coincidence of 1e-9 to confuse two that are not.
    """
    m, d = W.shape
    # numbers without a pattern: multiples of the golden ratio and of the square root of 2, modulo 1
    first, second = np.empty(d), np.empty(d)
    for k in range(d):
        first[k] = 0.5 + (k + 1) * 0.6180339887498949 % 1.0
        second[k] = 0.5 + (k + 1) * 0.4142135623730951 % 1.0
    key = np.full(m, np.inf)
    for i in range(m):
        f, g, size = 0.0, 0.0, 0.0
        for k in range(d):
            f += W[i, k] * first[k]
            g += W[i, k] * second[k]
            size = max(size, abs(W[i, k]))
        if size > _ZERO:
            key[i] = np.arctan2(f, g) if g > 0 or (g == 0 and f > 0) else np.arctan2(-f, -g)
    order = np.argsort(key)
    label = np.full(m, -1, np.int64)
    total, may = np.zeros(m), np.ones(m, np.bool_)
    c, last = -1, -np.inf
    for i in order:
        if key[i] == np.inf:
            break
        if key[i] - last > 1e-11:
            c += 1
        last = key[i]
        label[i] = c
        total[c] += weight[i] * noise[i]
        if state[i] == 1:
            may[c] = False
    return label, total[: c + 1], may[: c + 1]


@njit(cache=True)
def clean(
    W, basis, weight, low, high, keep, noise,
    known_ptr, known_row, known_low, known_high,
    attacker, row, down, up, slide, ups, downs,
):  # fmt: skip
    """Publish the heaviest class that can be spared, until none can.

    `ups` and `downs` hold a witness for each request and are updated in place. Returns the published
    rows, and the echelon form that is left.
    """
    m, R = len(weight), len(row)
    state = np.zeros(m, np.int64)
    for i in range(m):
        if keep[i]:
            state[i] = 1
    lows, highs = np.empty((len(known_ptr) - 1, m)), np.empty((len(known_ptr) - 1, m))
    for k in range(len(known_ptr) - 1):
        lows[k], highs[k] = bounds_of(k, low, high, known_ptr, known_row, known_low, known_high)
    new_up, new_down = np.empty_like(ups), np.empty_like(downs)
    while W.shape[1] > 0:
        label, total, may = classes(W, weight, state, noise)
        done = True
        for c in np.argsort(-total, kind="mergesort"):
            if not may[c] or total[c] <= 0:
                continue
            rows = np.flatnonzero(label == c)
            V, b = eliminate(W, basis, rows[0])
            alive = True
            for r in range(R):
                size = 0.0
                for k in range(V.shape[1]):
                    size = max(size, abs(V[row[r], k]))
                if size < _ZERO:
                    alive = False
                    break
            if alive:
                alive = _rescue(
                    W, V, b, rows[0], attacker, row, down, up, slide, ups, downs, new_up, new_down, lows, highs
                )
            if not alive:
                for i in rows:
                    state[i] = 1
                may[c] = False
                continue
            W, basis = V, b
            ups[:], downs[:] = new_up, new_down
            for i in range(m):
                size = 0.0
                for k in range(W.shape[1]):
                    size = max(size, abs(W[i, k]))
                if size < _ZERO:
                    state[i] = 2
                    for r in range(R):
                        ups[r, i], downs[r, i] = 0.0, 0.0
            done = False
            break
        if done:
            break
    return state == 2, W, basis


@njit(cache=True)
def _rescue(W, V, b, c, attacker, row, down, up, slide, ups, downs, new_up, new_down, lows, highs):
    """Give every request whose witness moves the variable c another one that does not."""
    R, m = len(row), W.shape[0]
    best = 0
    for k in range(1, W.shape[1]):
        if abs(W[c, k]) > abs(W[c, best]) + 1e-9:
            best = k
    others = np.empty((2 * R, m))
    n_others = 0
    hit = np.zeros(R, np.bool_)
    for r in range(R):
        hit[r] = ups[r, c] != 0.0 or downs[r, c] != 0.0
        if not hit[r]:
            new_up[r], new_down[r] = ups[r], downs[r]
            others[n_others] = ups[r] if up[r] > 0 else downs[r]
            n_others += 1
    for r in range(R):
        if not hit[r]:
            continue
        k = attacker[r]
        first = ups[r] - W[:, best] * (ups[r, c] / W[c, best])
        second = downs[r] - W[:, best] * (downs[r, c] / W[c, best])
        first[np.abs(first) < _ROUNDING * np.abs(ups[r]).max()] = 0.0
        second[np.abs(second) < _ROUNDING * np.abs(downs[r]).max()] = 0.0
        z_up, z_down = meet(V, b, row[r], down[r], up[r], slide[r], lows[k], highs[k], first, second, others, n_others)
        if len(z_up) == 0:
            return False
        new_up[r], new_down[r] = z_up, z_down
        others[n_others] = z_up if up[r] > 0 else z_down
        n_others += 1
    return True


@njit(cache=True)
def first_witnesses(
    W, basis, low, high, known_ptr, known_row, known_low, known_high, attacker, row, down, up, slide, ups, downs, seeds
):
    """Fill `ups` and `downs` for all requests; movements in `seeds` are tried first. Returns which failed."""
    R, m = len(row), len(low)
    failed = np.zeros(R, np.bool_)
    others = np.empty((len(seeds) + 2 * R, m))
    n_others = len(seeds)
    others[:n_others] = seeds
    empty = np.zeros(m)
    for r in range(R):
        lo, hi = bounds_of(attacker[r], low, high, known_ptr, known_row, known_low, known_high)
        z_up, z_down = meet(W, basis, row[r], down[r], up[r], slide[r], lo, hi, empty, empty, others, n_others)
        if len(z_up) == 0:
            failed[r] = True
            ups[r], downs[r] = empty, empty
            continue
        ups[r], downs[r] = z_up, z_down
        others[n_others] = z_up if up[r] > 0 else z_down
        n_others += 1
    return failed

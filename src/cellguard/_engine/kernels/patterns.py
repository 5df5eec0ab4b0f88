"""Compiled search over patterns: publish classes of cells while every request keeps its witnesses.

Variables are classes of cells that can only move together; a pattern is a space of movements, in
echelon form. A request asks that a variable can be moved down, up, and in all by so much, inside
the bounds of an attacker. A few movements (the bank), each stretched as far as the bounds allow,
serve as witnesses of most requests; the simplex method finds the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.echelon import echelon, eliminate, push, strongest

_ZERO = 1e-7  # coefficients of an echelon form below this are rounding
_NEAR = 1.0 - 1e-7
_ROUNDING = 1e-13
_CANCELLED = 1e-6  # a difference that is so much smaller than its terms is rounding, which stretching would blow up


@njit(cache=True, error_model="numpy")
def _bounds_of(k, low, high, known_ptr, known_row, known_low, known_high):
    """Bounds of attacker k: the common ones, tightened by what he knows."""
    lo, hi = low.copy(), high.copy()
    for q in range(known_ptr[k], known_ptr[k + 1]):
        i = known_row[q]
        lo[i] = max(lo[i], known_low[q])
        hi[i] = min(hi[i], known_high[q])
    return lo, hi


@njit(cache=True, error_model="numpy")
def _stretch(z, low, high):
    """Return the largest s and t with ``low <= -s z`` and ``t z <= high``, and so on for every variable."""
    backward, forward = np.inf, np.inf
    for i in range(len(z)):
        v = z[i]
        if v > 0.0:
            forward = min(forward, high[i] / v)
            backward = min(backward, -low[i] / v)
        elif v < 0.0:
            forward = min(forward, low[i] / v)
            backward = min(backward, -high[i] / v)
    return backward, forward


@njit(cache=True, error_model="numpy")
def is_met(r, requests, got_down, got_up):
    """Whether what is reached meets request r."""
    _, _, down, up, slide = requests
    return got_up[r] >= up[r] * _NEAR and got_down[r] >= down[r] * _NEAR and got_up[r] + got_down[r] >= slide[r] * _NEAR


@njit(cache=True, error_model="numpy")
def count(z, low, high, known, requests, got_down, got_up):
    """Raise what is reached for every request by the movement z, stretched.

    Returns whether it raised a request that was not met before.
    """
    known_ptr, known_row, known_low, known_high = known
    attacker, row = requests[0], requests[1]
    backward, forward = _stretch(z, low, high)
    last, back, forth, helped = -1, backward, forward, False
    for r in range(len(row)):
        v = z[row[r]]
        if v == 0.0:
            continue
        k = attacker[r]
        if k != last:
            back, forth, last = backward, forward, k
            for q in range(known_ptr[k], known_ptr[k + 1]):
                c = z[known_row[q]]
                if c > 0.0:
                    forth = min(forth, known_high[q] / c)
                    back = min(back, -known_low[q] / c)
                elif c < 0.0:
                    forth = min(forth, known_low[q] / c)
                    back = min(back, -known_high[q] / c)
        up, down = (forth * v, back * v) if v > 0.0 else (back * -v, forth * -v)
        if up > got_up[r] or down > got_down[r]:
            helped = helped or not is_met(r, requests, got_down, got_up)
            got_up[r], got_down[r] = max(up, got_up[r]), max(down, got_down[r])
    return helped


@njit(cache=True, error_model="numpy")
def _without(bank, n, used, i):
    """The movements of the bank without their part in variable i."""
    out = np.empty((n + 8, bank.shape[1]))
    for q in range(n):
        factor = bank[q, i] / used[i]
        if factor == 0.0:
            out[q] = bank[q]
            continue
        size = 0.0
        for k in range(bank.shape[1]):
            size = max(size, abs(bank[q, k]), abs(factor * used[k]))
        left = 0.0
        for k in range(bank.shape[1]):
            v = bank[q, k] - factor * used[k]
            out[q, k] = v if abs(v) > size * _ROUNDING else 0.0
            left = max(left, abs(v))
        out[q, i] = 0.0
        if left < size * _CANCELLED:
            out[q] = 0.0
    return out


@njit(cache=True, error_model="numpy")
def _try(z, i, sign, lo, hi, best, start):
    """Stretch z in the direction in which variable i goes; keep it in `start` if i gets further than `best`."""
    if z[i] == 0.0:
        return best
    backward, forward = _stretch(z, lo, hi)
    t = forward if sign * z[i] > 0 else -backward
    if abs(t * z[i]) > best:
        for k in range(len(z)):
            start[k] = t * z[k]
        return abs(t * z[i])
    return best


@njit(cache=True, error_model="numpy")
def _aim(Z, parameter, i, sign, need, lo, hi, bank, n):
    """Move variable i by `need` in the direction of `sign`.

    The movement of the bank that gets furthest is the start; the simplex method goes on from there.
    """
    z = np.zeros(Z.shape[1])
    best = 0.0
    for q in range(n):
        best = _try(bank[q], i, sign, lo, hi, best, z)
        if best >= need:
            break
    if best > need:
        for k in range(len(z)):
            z[k] *= need / best
    if best < need * _NEAR:
        push(Z, parameter, z, lo, hi, i, sign, need)
    return z


@njit(cache=True, error_model="numpy")
def _append(bank, n, z):
    if n == len(bank):
        larger = np.empty((2 * n + 8, bank.shape[1]))
        larger[:n] = bank
        bank = larger
    bank[n] = z
    return bank, n + 1


@njit(cache=True, error_model="numpy")
def prove(Z, parameter, low, high, known, requests, bank, n, order, patience):
    """Meet every request with the movements of the bank, adding to it what is missing.

    Requests are looked at in the given order; the search ends when so many as `patience` cannot be
    met. Returns the bank and which requests failed.
    """
    known_ptr, known_row, known_low, known_high = known
    attacker, row, down, up, slide = requests
    R = len(row)
    got_down, got_up, failed = np.zeros(R), np.zeros(R), np.zeros(R, np.bool_)
    for q in range(n):
        count(bank[q], low, high, known, requests, got_down, got_up)
    for r in order:
        if is_met(r, requests, got_down, got_up):
            continue
        lo, hi = _bounds_of(attacker[r], low, high, known_ptr, known_row, known_low, known_high)
        for sign in (1.0, -1.0):
            short = got_up[r] + got_down[r] < slide[r] * _NEAR
            if sign > 0:
                need, got = max(up[r], slide[r] - down[r] if short else 0.0), got_up[r]
            else:
                need, got = max(down[r], slide[r] - got_up[r] if short else 0.0), got_down[r]
            if got >= need * _NEAR:
                continue
            z = _aim(Z, parameter, row[r], sign, need, lo, hi, bank, n)
            bank, n = _append(bank, n, z)
            count(z, low, high, known, requests, got_down, got_up)
        if not is_met(r, requests, got_down, got_up):
            failed[r] = True
            patience -= 1
            if patience == 0:
                break
    return bank, n, failed


@njit(cache=True, error_model="numpy")
def classes(Z, weight, state):
    """Parallel variables: each one's class, the weight of each class, and whether it may be published.

    `state` of a variable: 0 open, 1 must stay open, 2 published. Two combinations of the movements
    are proportional for parallel variables; it takes a coincidence of 1e-11 to confuse others.
    """
    d, m = Z.shape
    # numbers without a pattern: multiples of the golden ratio and of the square root of 2, modulo 1
    f, g, size = np.zeros(m), np.zeros(m), np.zeros(m)
    for k in range(d):
        first = 0.5 + (k + 1) * 0.6180339887498949 % 1.0
        second = 0.5 + (k + 1) * 0.4142135623730951 % 1.0
        for i in range(m):
            f[i] += first * Z[k, i]
            g[i] += second * Z[k, i]
            size[i] = max(size[i], abs(Z[k, i]))
    key = np.full(m, np.inf)
    for i in range(m):
        if size[i] > _ZERO:
            key[i] = np.arctan2(f[i], g[i]) if g[i] > 0 or (g[i] == 0 and f[i] > 0) else np.arctan2(-f[i], -g[i])
    order = np.argsort(key, kind="mergesort")
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
        total[c] += weight[i]
        if state[i] == 1:
            may[c] = False
    return label, total[: c + 1], may[: c + 1]


@njit(cache=True, error_model="numpy")
def _largest(Z, i):
    """The largest coefficient of variable i: 0 when it cannot move."""
    size = 0.0
    for k in range(Z.shape[0]):
        size = max(size, abs(Z[k, i]))
    return size


@njit(cache=True, error_model="numpy")
def _all_move(Z, row):
    """Whether every requested variable can still move."""
    least = np.inf
    for i in row:
        least = min(least, _largest(Z, i))
    return least > _ZERO


@njit(cache=True, error_model="numpy")
def _useful(bank, n, low, high, known, requests):
    """Drop the movements of the bank that reach nothing further than those before them, latest first."""
    R = len(requests[1])
    got_down, got_up = np.zeros(R), np.zeros(R)
    kept, k = np.empty_like(bank), 0
    for q in range(n - 1, -1, -1):
        if count(bank[q], low, high, known, requests, got_down, got_up):
            kept[k] = bank[q]
            k += 1
    return kept, k


@njit(cache=True, error_model="numpy")
def clean(Z, parameter, weight, keep, low, high, known, requests, bank, n, stop_above):
    """Publish the heaviest class that can be spared, until none can.

    Parameters
    ----------
    Z, parameter
        The space of movements in echelon form.
    weight
        Order in which classes are tried; classes of weight 0 are left alone.
    keep
        Variables that stay suppressed.
    low, high, known
        Bounds of the movements, and what attackers know besides.
    requests
        Attacker, variable, and how far down, up, and in all it must move.
    bank, n
        Movements that meet all requests.
    stop_above
        Give up once the weight that must stay is larger than this.

    Returns the published variables, the echelon form that is left, and its bank.
    """
    m, row = len(weight), requests[1]
    state = keep.astype(np.int64)
    trouble = np.zeros(len(row))
    stuck, one = 0.0, 1
    while Z.shape[0] > 0 and stuck <= stop_above:
        label, total, may = classes(Z, weight, state)
        done = True
        for c in np.argsort(-total, kind="mergesort"):
            if not may[c] or total[c] <= 0:
                continue
            i = 0
            while label[i] != c:
                i += 1
            j = strongest(Z, i)
            V, p = eliminate(Z, parameter, i, j)
            if _all_move(V, row):
                new = _without(bank, n, Z[j], i)
                order = np.argsort(-trouble, kind="mergesort")  # the likeliest to fail first
                new, k, failed = prove(V, p, low, high, known, requests, new, n, order, one)
                if not failed.any():
                    done = False
                    break
                trouble[np.argmax(failed)] += 1.0
            stuck += total[c]
            for q in range(m):
                if label[q] == c:
                    state[q] = 1
            if stuck > stop_above:
                break
        if done:
            break
        Z, parameter = V, p
        for q in range(m):
            if state[q] != 2 and _largest(Z, q) <= _ZERO:
                state[q] = 2
                new[:k, q] = 0.0
        bank, n = _useful(new, k, low, high, known, requests)
    return state == 2, Z, parameter, bank, n


@njit(cache=True, error_model="numpy")
def recombine(vectors, weight, noisy, keep, low, high, known, requests, bank, n, stop_above):
    """Clean the space that some movements span; all arrays are those of the whole table.

    Only the variables that move are looked at. Returns the cost of what is left, its movements and
    its bank; an infinite cost when the requests cannot be met or the cost is above `stop_above`.
    """
    m = vectors.shape[1]
    active = np.zeros(m, np.bool_)
    for k in range(len(vectors)):
        for i in range(m):
            if vectors[k, i] != 0.0:
                active[i] = True
    here = np.flatnonzero(active)
    number = np.full(m, -1, np.int64)
    number[here] = np.arange(len(here))
    attacker, row, down, up, slide = requests
    for i in row:
        if number[i] < 0:
            return np.inf, vectors[:0], bank[:0]
    inside = (attacker, number[row], down, up, slide)
    ptr, known_row, known_low, known_high = known
    small_ptr, which = np.zeros_like(ptr), np.zeros(len(known_row), np.bool_)
    for k in range(len(ptr) - 1):
        small_ptr[k + 1] = small_ptr[k]
        for q in range(ptr[k], ptr[k + 1]):
            if number[known_row[q]] >= 0:
                which[q] = True
                small_ptr[k + 1] += 1
    small = (small_ptr, number[known_row[which]], known_low[which], known_high[which])
    lo, hi = low[here], high[here]
    Z, parameter = echelon(np.ascontiguousarray(vectors[:, here]))
    start = np.empty((n + 8, len(here)))
    for q in range(n):
        start[q] = bank[q][here]
    start, k, failed = prove(Z, parameter, lo, hi, small, inside, start, n, np.arange(len(row)), 1)
    if failed.any():
        return np.inf, vectors[:0], bank[:0]
    published, Z, parameter, start, k = clean(
        Z, parameter, noisy[here], keep[here], lo, hi, small, inside, start, k, stop_above
    )
    cost = 0.0
    for q in range(len(here)):
        if not published[q]:
            cost += weight[here[q]]
    left, proof = np.zeros((len(Z), m)), np.zeros((k, m))
    for q in range(len(here)):
        left[:, here[q]] = Z[:, q]
        proof[:, here[q]] = start[:k, q]
    return cost, left, proof

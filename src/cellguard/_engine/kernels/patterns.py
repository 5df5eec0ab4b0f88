"""Compiled search over patterns: publish classes of cells while every request keeps its witnesses.

Variables are classes of cells that can only move together; a pattern is a space of movements, in
echelon form. A request asks that a variable can be moved down, up, and in all by so much, inside
the bounds of an attacker. A few movements (the bank), each stretched as far as the bounds allow,
serve as witnesses of most requests; the simplex method finds the others.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from cellguard._engine.kernels.echelon import echelon, eliminate, push, restore, strongest

_ZERO = 1e-7  # coefficients of an echelon form below this are rounding
_NEAR = 1.0 - 1e-7
_ROUNDING = 1e-13
_FREE = 40  # movements beyond which classes are spared by the dozen
_TOGETHER, _MOST_TOGETHER = 8, 64
_SMALL = 200_000  # numbers in a bank that are moved at no cost worth a thought
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
def stretch(z, low, high):
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
    backward, forward = stretch(z, low, high)
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
        helped = _raise(r, down, up, requests, got_down, got_up) or helped
    return helped


@njit(cache=True, error_model="numpy")
def _raise(r, down, up, requests, got_down, got_up):
    """Raise what is reached for request r; returns whether that helped, for it was not met before."""
    if up <= got_up[r] and down <= got_down[r]:
        return False
    helped = not is_met(r, requests, got_down, got_up)
    got_up[r], got_down[r] = max(up, got_up[r]), max(down, got_down[r])
    return helped


@njit(cache=True, error_model="numpy")
def _without(bank, n, used, i):
    """Take their part in variable i from the movements of the bank; returns which changed, and what they were."""
    changed = np.flatnonzero(bank[:n, i])
    before = np.empty((len(changed), bank.shape[1]))
    for at, q in enumerate(changed):
        before[at] = bank[q]
        factor = bank[q, i] / used[i]
        size = 0.0
        for k in range(bank.shape[1]):
            size = max(size, abs(bank[q, k]), abs(factor * used[k]))
        left = 0.0
        for k in range(bank.shape[1]):
            v = bank[q, k] - factor * used[k]
            bank[q, k] = v if abs(v) > size * _ROUNDING else 0.0
            left = max(left, abs(v))
        bank[q, i] = 0.0
        if left < size * _CANCELLED:
            bank[q] = 0.0
    return changed, before


@njit(cache=True, error_model="numpy")
def _try(z, i, sign, lo, hi, best, start):
    """Stretch z in the direction in which variable i goes; keep it in `start` if i gets further than `best`."""
    if z[i] == 0.0:
        return best
    backward, forward = stretch(z, lo, hi)
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
    got_down, got_up = np.zeros(len(requests[1])), np.zeros(len(requests[1]))
    for q in range(n):
        count(bank[q], low, high, known, requests, got_down, got_up)
    return _meet(Z, parameter, low, high, known, requests, bank, n, order, patience, got_down, got_up)


@njit(cache=True, error_model="numpy")
def _meet(Z, parameter, low, high, known, requests, bank, n, order, patience, got_down, got_up):
    """Like :func:`prove`, when it is known what the bank reaches."""
    known_ptr, known_row, known_low, known_high = known
    attacker, row, down, up, slide = requests
    failed = np.zeros(len(row), np.bool_)
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
def _write_hits(bank, which, low, high, known, requests, hits):
    """Write down which requests some movements of the bank serve, and how far."""
    n_hits, hit, hit_down, hit_up = hits
    down, up = np.zeros(hit.shape[1]), np.zeros(hit.shape[1])
    for q in which:
        count(bank[q], low, high, known, requests, down, up)
        k = 0
        for r in range(len(down)):
            if down[r] > 0.0 or up[r] > 0.0:
                hit[q, k], hit_down[q, k], hit_up[q, k] = r, down[r], up[r]
                down[r] = up[r] = 0.0
                k += 1
        n_hits[q] = k


@njit(cache=True, error_model="numpy")
def _reached(bank, n, changed, hits, low, high, known, requests):
    """What the bank reaches for every request, down and up, when what is written of some movements no longer holds."""
    n_hits, hit, hit_down, hit_up = hits
    down, up = np.zeros(hit.shape[1]), np.zeros(hit.shape[1])
    holds = np.ones(n, np.bool_)
    holds[changed] = False
    for q in range(n):
        if holds[q]:
            for h in range(n_hits[q]):
                r = hit[q, h]
                down[r], up[r] = max(down[r], hit_down[q, h]), max(up[r], hit_up[q, h])
        else:
            count(bank[q], low, high, known, requests, down, up)
    return down, up


@njit(cache=True, error_model="numpy")
def _useful(n, hits, requests):
    """Return the movements of the bank that reach further than those before them, latest first."""
    n_hits, hit, hit_down, hit_up = hits
    R = len(requests[1])
    got_down, got_up = np.zeros(R), np.zeros(R)
    kept, k = np.empty(n, np.int64), 0
    for q in range(n - 1, -1, -1):
        helped = False
        for h in range(n_hits[q]):
            helped = _raise(hit[q, h], hit_down[q, h], hit_up[q, h], requests, got_down, got_up) or helped
        if helped:
            kept[k] = q
            k += 1
    return kept[:k]


@njit(cache=True, error_model="numpy")
def _room_for(k, hits):
    """Arrays for what k movements serve, with what the given ones hold."""
    n_hits, hit, hit_down, hit_up = hits
    if k <= len(n_hits):
        return hits
    size, R = 2 * k + 8, hit.shape[1]
    larger = np.zeros(size, np.int64), np.empty((size, R), np.int64), np.empty((size, R)), np.empty((size, R))
    for q in range(len(n_hits)):
        larger[0][q] = n_hits[q]
        for h in range(n_hits[q]):
            larger[1][q, h], larger[2][q, h], larger[3][q, h] = hit[q, h], hit_down[q, h], hit_up[q, h]
    return larger


@njit(cache=True, error_model="numpy")
def _without_all(Z, parameter, bank, n, label, some):
    """Hold the variables of some classes fast, in place; returns how many movements are left."""
    left = len(Z)
    for c in some:
        i = 0
        while label[i] != c:
            i += 1
        if left > 0 and _largest(Z[:left], i) > _ZERO:
            eliminate(Z[:left], parameter[:left], i, strongest(Z[:left], i))
            left -= 1
            _without(bank, n, Z[left], i)
    return left


@njit(cache=True, error_model="numpy")
def clean(Z, parameter, weight, state, low, high, known, requests, bank, n, stop_above, tries, trouble):
    """Publish the heaviest class that can be spared, until none can.

    Parameters
    ----------
    Z, parameter
        The space of movements in echelon form.
    weight
        Order in which classes are tried; classes of weight 0 are left alone.
    state
        Of each variable: 0 open, 1 must stay open, 2 published.
    low, high, known
        Bounds of the movements, and what attackers know besides.
    requests
        Attacker, variable, and how far down, up, and in all it must move.
    bank, n
        Movements that meet all requests.
    stop_above
        Give up once the weight that must stay is larger than this.
    tries
        Stop after so many classes; another call goes on.
    trouble
        How often each request was in the way so far; counted on in place.

    Returns the new state, the echelon form that is left, its bank, and whether all classes were tried.
    """
    m, row = len(weight), requests[1]
    R = len(row)
    Z, parameter, bank = Z.copy(), parameter.copy(), bank[:n].copy()  # they are changed in place
    state = state.copy()
    stuck, one = 0.0, 1
    hits = np.zeros(0, np.int64), np.empty((0, R), np.int64), np.empty((0, R)), np.empty((0, R))
    hits = _room_for(n, hits)
    _write_hits(bank, np.arange(n), low, high, known, requests, hits)
    most = n + n // 4 + 16
    together = _TOGETHER
    while Z.shape[0] > 0 and stuck <= stop_above and tries > 0:
        label, total, may = classes(Z, weight, state)
        for i in row:  # what is parallel to a request cannot be published
            if label[i] >= 0:
                may[label[i]] = False
        if together > 1 and len(Z) > _FREE:  # in a large space most classes can be spared: many at once
            some = np.argsort(-np.where(may, total, 0.0), kind="mergesort")[:together]
            some = some[may[some] & (total[some] > 0)]
            if len(some) == 0:
                break
            tries -= 1
            fewer, theirs, new = Z.copy(), parameter.copy(), bank[:n].copy()
            left = _without_all(fewer, theirs, new, n, label, some)
            got_down, got_up = np.zeros(R), np.zeros(R)
            for q in range(n):
                count(new[q], low, high, known, requests, got_down, got_up)
            order = np.argsort(-trouble, kind="mergesort")
            new, k, failed = _meet(
                fewer[:left], theirs[:left], low, high, known, requests, new, n, order, one, got_down, got_up
            )
            if failed.any():
                trouble[np.argmax(failed)] += 1.0
                together //= 2
                continue
            together = min(2 * together, _MOST_TOGETHER)
            Z, parameter, bank, n = fewer[:left].copy(), theirs[:left].copy(), new, k
            for q in range(m):
                if state[q] == 0 and _largest(Z, q) <= _ZERO:
                    state[q] = 2
                    bank[:n, q] = 0.0
            hits = _room_for(n, hits)
            _write_hits(bank, np.arange(n), low, high, known, requests, hits)
            kept = _useful(n, hits, requests)
            bank, hits = bank[kept], (hits[0][kept], hits[1][kept], hits[2][kept], hits[3][kept])
            n = len(kept)
            most = n + n // 4 + 16
            continue
        last = len(Z) - 1
        done, c, k = True, -1, n
        for c in np.argsort(-total, kind="mergesort"):
            if not may[c] or total[c] <= 0:
                continue
            tries -= 1
            i = 0
            while label[i] != c:
                i += 1
            rows, old_rows = eliminate(Z, parameter, i, strongest(Z, i))
            changed, old_bank = _without(bank, n, Z[last], i)
            got_down, got_up = _reached(bank, n, changed, hits, low, high, known, requests)
            order = np.argsort(-trouble, kind="mergesort")  # the likeliest to fail first
            new, k, failed = _meet(
                Z[:last], parameter[:last], low, high, known, requests, bank, n, order, one, got_down, got_up
            )
            if not failed.any():
                done, bank = False, new
                break
            restore(Z, rows, old_rows)
            restore(bank, changed, old_bank)
            trouble[np.argmax(failed)] += 1.0
            stuck += total[c]
            for q in range(m):
                if label[q] == c:
                    state[q] = 1
            if stuck > stop_above or tries == 0:
                break
        if done:
            break
        Z, parameter, together = Z[:last], parameter[:last], 2
        for q in range(m):
            if label[q] == c and _largest(Z, q) <= _ZERO:
                state[q] = 2
                bank[:k, q] = 0.0
        hits = _room_for(k, hits)
        _write_hits(bank, changed, low, high, known, requests, hits)
        _write_hits(bank, np.arange(n, k), low, high, known, requests, hits)
        n = k
        if n > most or n * m < _SMALL:
            kept = _useful(n, hits, requests)
            bank, hits = bank[kept], (hits[0][kept], hits[1][kept], hits[2][kept], hits[3][kept])
            n = len(kept)
            most = n + n // 4 + 16
    for q in range(m):
        if state[q] != 2 and _largest(Z, q) <= _ZERO:
            state[q] = 2
            bank[:n, q] = 0.0
    kept = _useful(n, hits, requests)
    return state, Z.copy(), parameter.copy(), bank[kept], len(kept), tries > 0


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
    state, Z, parameter, start, k, _ = clean(
        Z,
        parameter,
        noisy[here],
        keep[here].astype(np.int64),
        lo,
        hi,
        small,
        inside,
        start,
        k,
        stop_above,
        1 << 40,
        np.zeros(len(row)),
    )
    cost = 0.0
    for q in range(len(here)):
        if state[q] != 2:
            cost += weight[here[q]]
    left, proof = np.zeros((len(Z), m)), np.zeros((k, m))
    for q in range(len(here)):
        left[:, here[q]] = Z[:, q]
        proof[:, here[q]] = start[:k, q]
    return cost, left, proof

"""Unbiased rounding: steer by a random table near the truth (salazar2004 section 6).

Rounding to the nearest feasible table rounds a residue of 1 up far less often than in one of five
cases, and a residue of 4 far more often. So a cell of residue k is drawn towards a random residue j
instead, and the same algorithm rounds towards the drawn table (13). If ``q[k, j]`` is how often such a
cell is rounded up, j is drawn with probabilities that make the mean of ``q[k, j]`` what it should be,
k / base, with j as close to k as possible.

The paper takes q as the share of residue j in a plain first run. In tables with many margins a cell
drawn to j is rounded up less often than a cell that is j, because the margins still follow the truth;
so q is measured here for pairs, in a first run whose draws explore them. The paper's own q is
:func:`estimate_plain_shares`.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from cellguard._types import FloatArray, IntArray

__all__ = [
    "MOST_RESIDUES",
    "build_first_draws",
    "compute_transitions",
    "draw_target_table",
    "estimate_plain_shares",
    "estimate_shares_up",
    "round_by_coin",
]


MOST_RESIDUES = 500
"""Larger bases have more pairs of residues than any table has cells to tell them by."""
_PRIOR_WEIGHT = 5.0
"""So many imagined cells of each pair keep the estimate sensible where the table has few."""


def _compute_residues(values: FloatArray, base: float) -> IntArray:
    return np.asarray(np.rint(values) % base, np.int64)


def build_first_draws(base: int) -> FloatArray:
    """Return the draws of the first run: half of the cells unchanged, half anywhere between their multiples."""
    P = 0.5 * np.eye(base) + 0.5 / (base - 1)
    P[:, 0] = 0.0
    P[0] = np.eye(base)[0]
    P[1:] /= P[1:].sum(axis=1, keepdims=True)
    return P


def estimate_shares_up(values: FloatArray, target: FloatArray, published: FloatArray, base: int) -> FloatArray:
    """Return how often a cell of residue k that was drawn to residue j was rounded up."""
    k = np.arange(base) / base
    prior = 0.5 * np.clip(0.5 + 1.7 * (k - 0.5), 0.02, 0.98)[None, :] + 0.5 * k[:, None]
    pair = base * _compute_residues(values, base) + _compute_residues(target, base)
    n = np.bincount(pair, minlength=base * base).reshape(base, base) + _PRIOR_WEIGHT
    up = np.bincount(pair, weights=published > values, minlength=base * base).reshape(base, base)
    share = (up + _PRIOR_WEIGHT * prior) / n
    share[:, 0] = 0.0
    return np.asarray(np.maximum.accumulate(share, axis=1))  # a larger residue is not rounded up less often


def estimate_plain_shares(values: FloatArray, published: FloatArray, base: int) -> FloatArray:
    """Return how often each residue was rounded up: the paper's q, from a plain first run.

    >>> estimate_plain_shares(np.array([6.0, 6, 7, 9]), np.array([5.0, 5, 10, 10]), 5).round(2).tolist()
    [0.0, 0.01, 0.44, 0.67, 0.98]
    """
    k = np.arange(base) / base
    prior = np.clip(0.5 + 1.7 * (k - 0.5), 0.02, 0.98)
    residue = _compute_residues(values, base)
    n = np.bincount(residue, minlength=base)
    up = np.bincount(residue, weights=published > values, minlength=base)
    share = (up + _PRIOR_WEIGHT * prior) / (n + _PRIOR_WEIGHT)
    share[0] = 0.0
    return np.asarray(np.maximum.accumulate(share))


def compute_transitions(share: FloatArray) -> FloatArray:
    """Return the probabilities of drawing residue j for residue k, from the shares of pairs (or of j alone).

    Each row mixes the two residues that give the right mean with the least expected change.

    >>> compute_transitions(np.array([0.0, 0.0, 0.5, 1.0])).round(2).tolist()
    [[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.25, 0.0, 0.75]]
    """
    base = share.shape[-1]
    rows = np.broadcast_to(share, (base, base))
    P = np.zeros((base, base))
    P[0, 0] = 1.0
    for k in range(1, base):
        low, high, part = _mix_residues(rows[k], k)
        P[k, low] += 1.0 - part
        P[k, high] += part
    return P


def _mix_residues(share: FloatArray, k: int) -> tuple[int, int, float]:
    """Two residues and the part of the second, whose shares have the mean k / base."""
    base = len(share)
    wanted = k / base
    residue = np.arange(1, base)
    low, high = residue[share[1:] <= wanted], residue[share[1:] >= wanted]
    if not len(low) or not len(high):  # all are rounded up too often, or too rarely: the farthest comes closest
        end = 1 if share[1] > wanted else base - 1
        return end, end, 0.0
    span = share[high][None, :] - share[low][:, None]
    part = np.divide(wanted - share[low][:, None], span, out=np.zeros_like(span), where=span > 0)
    cost = (1 - part) * np.abs(low - k)[:, None] + part * np.abs(high - k)[None, :]
    i, j = np.unravel_index(int(np.argmax(cost <= cost.min() + 1e-12)), cost.shape)
    return int(low[i]), int(high[j]), float(part[i, j])


def draw_target_table(values: FloatArray, probabilities: FloatArray, rng: Generator) -> FloatArray:
    """Return the random table xi(a) towards which to round: every cell stays between its multiples."""
    base = len(probabilities)
    residue = _compute_residues(values, base)
    drawn = (rng.random(len(values))[:, None] > np.cumsum(probabilities, axis=1)[residue]).sum(axis=1)
    return np.asarray(values - residue + np.minimum(drawn, base - 1), np.float64)


def round_by_coin(values: FloatArray, base: FloatArray, rng: Generator) -> FloatArray:
    """Return phi(a) of section 6: every cell by its own coin to a multiple next to it, unbiased and not additive.

    >>> round_by_coin(np.array([10.0, 4.0, 4.0, 4.0, 4.0]), np.full(5, 5.0), np.random.default_rng(1)).tolist()
    [10.0, 0.0, 5.0, 0.0, 5.0]
    """
    floor = np.floor(values / base + 1e-12) * base
    up = rng.random(len(values)) < (values - floor) / base - 1e-12
    return np.asarray(floor + np.where(up, base, 0.0))

"""Exact witnesses for many views: one exact movement serves all of them, each by the share that it allows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.implied import expand_rows
from cellguard._engine.ranges.ranges import compute_ranges
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.ranges.system import find_unknown_cells
from cellguard._engine.ranges.verdicts import FoundMovements, Verdicts
from cellguard._engine.ranges.views import Views
from cellguard._engine.ranges.witnesses.sparse_witnesses import find_sparse_witnesses
from cellguard._engine.ranges.witnesses.witness import ExactMovements, Inexact, make_witnesses_exact, refine_witnesses
from cellguard._types import FloatArray, IntArray

__all__ = ["certify_verdicts"]


_MARGIN = 1e-10
"""Margin of a share inside what a view allows: then floating point can confirm it."""
_DIGITS = 1e12
"""Number of decimals of shares."""
_MOST_PAIRS = 50_000_000
"""Number of pairs of a view and a movement that fit into one array; sorting the pairs takes longer."""


def certify_verdicts(found: FoundMovements, sight: Sight, deadline: Deadline) -> Verdicts:
    """Judge by exact movements.

    Parameters
    ----------
    found
        Results in floating point.
    sight
        What everybody knows; decimal numbers, taken exactly as printed.
    deadline
        After this, no more movements are made exact: the rest is unknown.
    """
    views, reduction = found.views, found.system.reduction
    lo, hi, point = sight.lo, sight.hi, sight.point
    component = reduction.component
    held = np.zeros(len(point), bool)
    held[views.known_cell[~find_unknown_cells(views.known_lo, views.known_hi, point[views.known_cell])]] = True
    outside = np.flatnonzero((point < lo) | (point > hi))
    given = Inexact(
        reduction=reduction, movements=found.movements, lo=lo, hi=hi, point=point, component=component, held=held
    )
    proof = make_witnesses_exact(given, deadline)
    fitting = fit_to_views(found, proof, point, outside)
    out = fitting.decide(point, proof)
    open_ = np.flatnonzero(~out.safe & ~out.unsafe)
    if len(open_) and not deadline.passed:
        rows, cells = found.rows[:, open_].ravel(), np.tile(component[views.cell[open_]], 2)
        pairs = {(row, c) for row, c in zip(rows.tolist(), cells.tolist(), strict=True) if row >= 0}
        proof = refine_witnesses(proof, given, pairs, deadline)
        fitting = fit_to_views(found, proof, point, outside)
        out = fitting.decide(point, proof)
    return _certify_each_view(fitting, out, proof, sight, deadline)


def fit_to_views(found: FoundMovements, proof: ExactMovements, point: FloatArray, outside: IntArray) -> FoundMovements:
    """Return the share of each exact movement inside the bounds of each view that uses it; 0 if there is none.

    `outside` are cells whose true value lies outside its interval, by rounding.
    """
    views, movements = found.views, proof.convert_to_floats()
    pairs, limit = _limit_by_views(views, movements, point)
    shares = found.shares.copy()
    for side in (0, 1):
        used = found.rows[side] >= 0
        pair = views.view[used] * movements.shape[0] + found.rows[side][used]
        place = np.minimum(np.searchsorted(pairs, pair), max(len(pairs) - 1, 0))
        if len(pairs):
            shares[side][used] = np.minimum(shares[side][used], np.where(pairs[place] == pair, limit[place], np.inf))
    shares = np.where(shares < 1.0, np.floor(shares * _DIGITS) / _DIGITS, shares)
    if len(outside):  # no point between a table and a truth just outside its interval is certain
        strays = np.append(np.diff(csr_array(movements[:, outside]).indptr) > 0, False)
        shares[(shares < 1.0) & strays[found.rows]] = 0.0
    return replace(found, shares=shares)


def _limit_by_views(views: Views, movements: csr_array, point: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return ``view * movements + movement`` where a view knows a cell that moves, and the share that it allows.

    A view has millions of questions, but few movements move a cell that it knows: all others fit unchanged.
    """
    by_cell = csc_array(movements)
    entry, place = expand_rows(by_cell.indptr, views.known_cell, np.arange(len(views.known_cell)))
    z, row = by_cell.data[place], by_cell.indices[place].astype(np.int64)
    end = np.where(z > 0, views.known_hi[entry], views.known_lo[entry])
    narrow = np.abs(end - point[views.known_cell[entry]]) < np.abs(z) * (1 + 1e-6)  # elsewhere all of it fits
    narrow &= z != 0
    z, row, entry, end = z[narrow], row[narrow], entry[narrow], end[narrow]
    cell = views.known_cell[entry]
    slack = np.abs(end - point[cell])
    limit = slack * (1 - _MARGIN) / np.abs(z)
    # a difference of large numbers may be off by more than the margin; one of equal numbers is not
    digits = 8 * np.spacing(np.maximum(np.abs(end), np.abs(point[cell])))
    blurred = (slack > 0) & np.isfinite(end) & (slack * _MARGIN < digits)
    for i in np.flatnonzero(blurred).tolist():
        exactly = _convert_to_fraction(end[i]) - _convert_to_fraction(point[cell[i]])
        limit[i] = float(abs(exactly / Fraction(float(z[i])))) * (1 - _MARGIN)
    pair = views.known_view[entry] * movements.shape[0] + row
    if len(views) * movements.shape[0] <= _MOST_PAIRS:
        least = np.full(len(views) * movements.shape[0], np.inf)
        np.minimum.at(least, pair, limit)
        pairs = np.flatnonzero(least < np.inf)
        return pairs, least[pairs]
    pairs, at = np.unique(pair, return_inverse=True)
    least = np.full(len(pairs), np.inf)
    np.minimum.at(least, at, limit)
    return pairs, least


def _convert_to_fraction(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _certify_each_view(
    found: FoundMovements, out: Verdicts, proof: ExactMovements, sight: Sight, deadline: Deadline
) -> Verdicts:
    """Search again, for single views, what shared exact movements do not show."""
    point, views = sight.point, found.views
    open_ = np.flatnonzero(~out.safe & ~out.unsafe)
    rows, shares, bounds, programs = found.rows.copy(), found.shares.copy(), found.bounds.copy(), found.programs
    for view in np.unique(views.view[open_]).tolist():
        if deadline.passed:
            break
        mine = open_[views.view[open_] == view]
        own_sight = Sight(
            found.system.reduction.relations, *views.get_bounds(view, sight.lo, sight.hi), point, shown=sight.shown
        )
        asked = AskedRanges(views.cell[mine], views.lower[mine], views.upper[mine], views.sliding[mine])
        sparse = find_sparse_witnesses(own_sight, asked, deadline)
        first = proof.numerators.shape[0]
        proof = proof.append_movements(sparse.movements)
        rows[:, mine] = np.where(sparse.rows >= 0, sparse.rows + first, -1)
        shares[:, mine], programs = 1.0, programs + sparse.programs
        mine = mine[~sparse.met]
        if not len(mine) or deadline.passed:
            continue
        own = compute_ranges(
            own_sight,
            AskedRanges(views.cell[mine], views.lower[mine], views.upper[mine], views.sliding[mine]),
            certify=True,
            time_limit_s=deadline.left,
        )
        if own.exact_witnesses is None:
            continue
        first = proof.numerators.shape[0]
        proof = proof.append_movements(own.exact_witnesses)
        rows[:, mine] = [np.where(r >= 0, r + first, -1) for r in (own.low_witness, own.high_witness)]
        shares[:, mine] = 1.0
        bounds[0, mine] = np.minimum(bounds[0, mine], point[views.cell[mine]] - own.low_bound)
        bounds[1, mine] = np.minimum(bounds[1, mine], own.high_bound - point[views.cell[mine]])
        programs += own.programs
    if programs == found.programs:
        return out
    return replace(found, rows=rows, shares=shares, bounds=bounds, programs=programs).decide(point, proof)

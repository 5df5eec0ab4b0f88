"""Witnesses for many views made exact: one exact movement serves all of them, each by the share that it allows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.implied import expanded_for_views
from cellguard._engine.ranges.ranges import ranges
from cellguard._engine.ranges.sight import AskedRanges, Sight
from cellguard._engine.ranges.sparse_witnesses import sparse_witnesses
from cellguard._engine.ranges.system import cells_in_range_system
from cellguard._engine.ranges.verdicts import FoundMovements, Verdicts
from cellguard._engine.ranges.views import Views
from cellguard._engine.ranges.witness import ExactMovements, Inexact, refine_witnesses, witnesses_made_exact
from cellguard._types import FloatArray, IntArray

__all__ = ["certified"]


_MARGIN = 1e-10
"""A share stays so far inside what a view allows: then floating point shows that it does."""
_DIGITS = 1e12
"""Shares are decimals of so many digits."""


def certified(found: FoundMovements, sight: Sight, deadline: Deadline) -> Verdicts:
    """Judge by exact movements.

    Parameters
    ----------
    found
        What was found in floating point.
    sight
        What everybody knows; decimal numbers, taken as they are printed.
    deadline
        After this nothing more is made exact: what is left is unknown.
    """
    views, reduction = found.views, found.system.reduction
    lo, hi, point = sight.lo, sight.hi, sight.point
    component = reduction.component
    held = np.zeros(len(point), bool)
    held[views.known_cell[~cells_in_range_system(views.known_lo, views.known_hi, point[views.known_cell])]] = True
    outside = np.flatnonzero((point < lo) | (point > hi))
    given = Inexact(
        reduction=reduction, movements=found.movements, lo=lo, hi=hi, point=point, component=component, held=held
    )
    proof = witnesses_made_exact(given, deadline)
    fitting = fitted_to_views(found, proof, point, outside)
    out = fitting.verdicts(point, proof)
    open_ = np.flatnonzero(~out.safe & ~out.unsafe)
    if len(open_) and not deadline.passed:
        rows, cells = found.rows[:, open_].ravel(), np.tile(component[views.cell[open_]], 2)
        pairs = {(row, c) for row, c in zip(rows.tolist(), cells.tolist(), strict=True) if row >= 0}
        proof = refine_witnesses(proof, given, pairs, deadline)
        fitting = fitted_to_views(found, proof, point, outside)
        out = fitting.verdicts(point, proof)
    return _certified_view_by_view(fitting, out, proof, sight, deadline)


def fitted_to_views(
    found: FoundMovements, proof: ExactMovements, point: FloatArray, outside: IntArray
) -> FoundMovements:
    """Return how much of each exact movement lies inside the bounds of each view that uses it; 0 when none does.

    `outside` are cells whose true value lies beyond its interval, by rounding.
    """
    views, movements = found.views, proof.as_floats()
    pairs, limit = _limits_of_views(views, movements, point)
    shares = found.shares.copy()
    for side in (0, 1):
        used = found.rows[side] >= 0
        pair = views.view[used] * movements.shape[0] + found.rows[side][used]
        place = np.minimum(np.searchsorted(pairs, pair), max(len(pairs) - 1, 0))
        if len(pairs):
            shares[side][used] = np.minimum(shares[side][used], np.where(pairs[place] == pair, limit[place], np.inf))
    shares = np.where(shares < 1.0, np.floor(shares * _DIGITS) / _DIGITS, shares)
    if len(outside):  # between a table and a truth beyond its interval by a hair lies nothing that is certain
        strays = np.append(np.diff(csr_array(movements[:, outside]).indptr) > 0, False)
        shares[(shares < 1.0) & strays[found.rows]] = 0.0
    return replace(found, shares=shares)


def _limits_of_views(views: Views, movements: csr_array, point: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return ``view * movements + movement`` where a view knows of a cell that moves, and how much of it he allows.

    A view has millions of questions and few movements move a cell that it knows: all others fit it as they are.
    """
    by_cell = csc_array(movements)
    entry, place = expanded_for_views(by_cell.indptr, views.known_cell, np.arange(len(views.known_cell)))
    z, row = by_cell.data[place], by_cell.indices[place].astype(np.int64)
    moving = z != 0
    z, row, entry = z[moving], row[moving], entry[moving]
    cell = views.known_cell[entry]
    end = np.where(z > 0, views.known_hi[entry], views.known_lo[entry])
    room = np.maximum(np.abs(end - point[cell]), 0.0)
    limit = room * (1 - _MARGIN) / np.abs(z)
    # a difference of large numbers may be off by more than the margin; one of equal numbers is not
    digits = 8 * np.spacing(np.maximum(np.abs(end), np.abs(point[cell])))
    blurred = (room > 0) & np.isfinite(end) & (room * _MARGIN < digits)
    for i in np.flatnonzero(blurred).tolist():
        exactly = _exact_end_of_view(end[i]) - _exact_end_of_view(point[cell[i]])
        limit[i] = float(abs(exactly / Fraction(float(z[i])))) * (1 - _MARGIN)
    pairs, at = np.unique(views.known_view[entry] * movements.shape[0] + row, return_inverse=True)
    least = np.full(len(pairs), np.inf)
    np.minimum.at(least, at, limit)
    return pairs, least


def _exact_end_of_view(number: float) -> Fraction:
    return Fraction(repr(float(number)))


def _certified_view_by_view(
    found: FoundMovements, out: Verdicts, proof: ExactMovements, sight: Sight, deadline: Deadline
) -> Verdicts:
    """Ask again for single views what exact movements that many share do not show."""
    point, views = sight.point, found.views
    open_ = np.flatnonzero(~out.safe & ~out.unsafe)
    rows, shares, bounds, programs = found.rows.copy(), found.shares.copy(), found.bounds.copy(), found.programs
    for view in np.unique(views.view[open_]).tolist():
        if deadline.passed:
            break
        mine = open_[views.view[open_] == view]
        own_sight = Sight(found.system.reduction.relations, *views.bounds(view, sight.lo, sight.hi), point)
        asked = AskedRanges(views.cell[mine], views.lower[mine], views.upper[mine], views.sliding[mine])
        sparse = sparse_witnesses(own_sight, asked, deadline)
        first = proof.numerators.shape[0]
        proof = proof.with_more(sparse.movements)
        rows[:, mine] = np.where(sparse.rows >= 0, sparse.rows + first, -1)
        shares[:, mine], programs = 1.0, programs + sparse.programs
        mine = mine[~sparse.met]
        if not len(mine) or deadline.passed:
            continue
        own = ranges(
            own_sight,
            AskedRanges(views.cell[mine], views.lower[mine], views.upper[mine], views.sliding[mine]),
            certify=True,
            time_limit_s=deadline.left,
        )
        if own.exact_witnesses is None:
            continue
        first = proof.numerators.shape[0]
        proof = proof.with_more(own.exact_witnesses)
        rows[:, mine] = [np.where(r >= 0, r + first, -1) for r in (own.low_witness, own.high_witness)]
        shares[:, mine] = 1.0
        bounds[0, mine] = np.minimum(bounds[0, mine], point[views.cell[mine]] - own.low_bound)
        bounds[1, mine] = np.minimum(bounds[1, mine], own.high_bound - point[views.cell[mine]])
        programs += own.programs
    if programs == found.programs:
        return out
    return replace(found, rows=rows, shares=shares, bounds=bounds, programs=programs).verdicts(point, proof)

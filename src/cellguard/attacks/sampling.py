"""The matching attack on any table and any algorithm: try all candidates if they are few, otherwise some.

The hull of the survivors found bounds the effective intervals from inside. From outside there are only the
feasibility intervals. What lies between is unknown.

If candidates are few, they are listed (minami2019 section 3.2, lines 6 to 9 of algorithm 1). A candidate is the
true table plus a whole-number combination of the null space of the relations between the suppressed cells. The
parameters of that space are cells. They are set one after the other, for all partial tables at once, and a partial
table is dropped when no values of the remaining parameters keep a cell within its range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.space.lattice import CandidateLattice
from cellguard._engine.space.reduce import reduce
from cellguard._tolerances import WHOLE_SOLUTION
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.attackers.public import add_public_knowledge
from cellguard.attacks.counts import CountRule
from cellguard.model.table import Table
from cellguard.release.release import Suppression

__all__ = ["Sampled", "sample_matching_candidates"]

_TRIES = 3
"""Candidates that are tried on the way to a cell's extreme value."""
_STEPS = 20
"""Random moves between two candidates."""
_PARTIAL = 50
"""Partial tables per candidate: with more, the list is abandoned."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampled:
    """Intervals of the suppressed cells from outside and inside, and how many candidates were tried."""

    low: FloatArray
    high: FloatArray
    inner_low: FloatArray
    inner_high: FloatArray
    tried: int
    survived: int
    complete: bool
    """Whether all candidates were tried: then the intervals are exact."""


def _build_candidate_table(table: Table, rule: CountRule, counts: FloatArray) -> Table:
    """Return the table with other counts: cells are sensitive by the rule, and must keep its width."""
    sensitive = table.inner & rule.sensitive(counts) & ~table.fixed
    none = np.zeros(table.n_cells)
    return table.with_(
        values=counts,
        sensitive=sensitive,
        lower=none,
        upper=none,
        sliding=np.where(sensitive, float(rule.width), 0.0),
        weights=counts if np.array_equal(table.weights, table.values) else table.weights,
        counts=None if table.counts is None else counts,
        statistics=None,
    )


def sample_matching_candidates(
    suppression: Suppression,
    rule: CountRule,
    knows: str,
    algorithm: Callable[[Table], BoolArray] | None,
    *,
    samples: int,
    seed: int,
) -> Sampled:
    """Try all candidates if there are at most `samples`; else half by random walks, half at extreme values of cells.

    The true table is the first: it must survive, or the pattern was not made this way.
    """
    table, hidden = suppression.table, suppression.suppressed
    cells = np.flatnonzero(hidden)
    lo, hi = suppression.published_bounds()
    found = compute_ranges(Sight(table.relations, lo, hi, table.values), AskedRanges(cells), exact=True)
    low, high = np.ceil(found.low_bound - 1e-6), np.floor(found.high_bound + 1e-6)
    test = _Test(suppression, rule, cells[high - low < rule.width], knows, algorithm)
    hunt = _Hunt(CandidateLattice.of(table.relations, hidden, lo, hi), test.is_possible, cells, samples)
    rng = np.random.default_rng(seed)
    truth = np.rint(table.values).astype(np.int64)
    listed = _list_matching_candidates(suppression, low, high, samples)
    if not hunt.try_one(truth):
        listed = None
    elif listed is not None:
        for x in listed:
            hunt.try_one(x)
    else:
        hunt.walk_around(truth, samples // 2, rng)
        wanted = [c for c in cells.tolist() if table.sensitive[c]]
        for turn in range(samples if wanted else 0):
            hunt.walk_towards(truth, wanted[turn // 2 % len(wanted)], 1 if turn % 2 else -1, rng)
    return Sampled(
        low=low, high=high, inner_low=hunt.low, inner_high=hunt.high, tried=hunt.tried, survived=hunt.survived,
        complete=listed is not None,
    )  # fmt: skip


class _Test(NamedTuple):
    """Tests whether a candidate leads to the published pattern."""

    suppression: Suppression
    rule: CountRule
    weak: IntArray
    """Cells whose range is too narrow for a sensitive one."""
    knows: str
    algorithm: Callable[[Table], BoolArray] | None

    def is_possible(self, x: IntArray) -> bool:
        """Judge a candidate by what the attacker knows."""
        hidden = self.suppression.suppressed
        counts = x.astype(np.float64)
        candidate = add_public_knowledge(_build_candidate_table(self.suppression.table, self.rule, counts))
        if candidate.sensitive[self.weak].any() or (candidate.sensitive & ~hidden).any():
            return False
        if self.knows == "algorithm":
            return self.algorithm is not None and np.array_equal(self.algorithm(candidate), hidden)
        return self.knows == "rule" or not any(
            self._is_safe_without(candidate, i) for i in np.flatnonzero(hidden).tolist()
        )

    def _is_safe_without(self, candidate: Table, cell: int) -> bool:
        """Return whether the pattern would be safe without the cell."""
        if candidate.sensitive[cell]:
            return False
        hidden = self.suppression.suppressed.copy()
        hidden[cell] = False
        sensitive = candidate.sensitive_cells
        T = candidate.relations
        if reduce(T, hidden).determined[sensitive].any():  # visible without a linear program
            return False
        lo, hi = (np.where(hidden, bound, candidate.values) for bound in candidate.bounds())
        width = candidate.sliding[sensitive]
        return bool(
            compute_ranges(Sight(T, lo, hi, candidate.values), AskedRanges(sensitive, sliding=width)).safe.all()
        )


class _Hunt:
    """The survivors so far."""

    def __init__(
        self, lattice: CandidateLattice, survives: Callable[[IntArray], bool], cells: IntArray, samples: int
    ) -> None:
        self.lattice, self.survives, self.cells, self.samples = lattice, survives, cells, samples
        self.low, self.high = np.full(len(cells), np.nan), np.full(len(cells), np.nan)
        self.tried = self.survived = 0

    def try_one(self, x: IntArray) -> bool:
        """Try a candidate; a survivor widens the hull."""
        self.tried += 1
        if not self.survives(x):
            return False
        self.survived += 1
        here = x[self.cells].astype(np.float64)
        self.low, self.high = np.fmin(self.low, here), np.fmax(self.high, here)
        return True

    def walk_around(self, x: IntArray, tries: int, rng: np.random.Generator) -> None:
        """Walk randomly; each walk starts from the last survivor."""
        while self.tried < tries:
            y = self.lattice.walk(x, int(rng.integers(1, _STEPS)), rng)
            if self.try_one(y):
                x = y

    def walk_towards(self, x: IntArray, cell: int, sign: int, rng: np.random.Generator) -> None:
        """Try a cell's extreme value, then candidates on the way to it, until one survives."""
        path = self.lattice.walk_candidates(x, cell, sign, _STEPS, rng)
        for k in range(_TRIES, 0, -1):
            if self.tried >= self.samples:
                return
            if path and self.try_one(path[(len(path) * k - 1) // _TRIES]):
                return
            if not path:
                self.tried += 1
                return


def _list_matching_candidates(
    suppression: Suppression, low: FloatArray, high: FloatArray, limit: int
) -> IntArray | None:
    """Return all candidates, one row of all cells each; None if there are more than `limit`, or too many partial ones.

    Parameters
    ----------
    suppression
        What is published.
    low, high
        Whole-number ranges of the suppressed cells, in their order.
    limit
        Maximum number of candidates to list.
    """
    table, hidden = suppression.table, suppression.suppressed
    cells = np.flatnonzero(hidden)
    if not np.isfinite(high).all() or not np.isfinite(low).all():
        return None
    reduction = reduce(table.relations, hidden)
    order = np.argsort((high - low)[np.searchsorted(cells, reduction.parameters)], kind="stable")
    basis = reduction.basis[cells][:, order].toarray()
    at = np.searchsorted(cells, reduction.parameters[order])
    start = np.rint(table.values[cells])
    steps = [np.arange(low[k] - start[k], high[k] - start[k] + 1) for k in at.tolist()]
    # how far the remaining parameters can still move each cell
    least, most = np.zeros((len(steps) + 1, len(cells))), np.zeros((len(steps) + 1, len(cells)))
    for k in range(len(steps) - 1, -1, -1):
        ends = np.outer([steps[k][0], steps[k][-1]], basis[:, k])
        least[k], most[k] = least[k + 1] + ends.min(axis=0), most[k + 1] + ends.max(axis=0)
    partial = start[None, :]
    for k, moves in enumerate(steps):
        if len(partial) * len(moves) > _PARTIAL * max(limit, 1) * 10:
            return None
        partial = (partial[:, None, :] + np.outer(moves, basis[:, k])[None]).reshape(-1, len(cells))
        possible = (partial + least[k + 1] <= high + WHOLE_SOLUTION) & (partial + most[k + 1] >= low - WHOLE_SOLUTION)
        partial = partial[possible.all(axis=1)]
        if len(partial) > _PARTIAL * limit:
            return None
    whole = partial[(np.abs(partial - np.rint(partial)) <= WHOLE_SOLUTION).all(axis=1)]
    if len(whole) > limit:
        return None
    out = np.tile(np.rint(table.values).astype(np.int64), (len(whole), 1))
    out[:, cells] = np.rint(whole).astype(np.int64)
    return out

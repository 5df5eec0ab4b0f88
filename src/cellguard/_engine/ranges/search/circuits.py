"""Circuits for many views: movements of few variables, as wide as possible, thousands from one elimination.

Variables with the largest slack follow the others (:mod:`cellguard._core.widest`), so that each circuit goes about as
far as its narrowest variable can. It is a witness for every attacker who knows none of its variables; the circuits of
one basis answer nearly all of a million questions. For attackers who do know one, the next basis keeps the variables
they know from following others: such a variable moves in a single circuit. Where no circuit alone goes far enough,
several are added up.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.ranges.witnesses.shown import scale_movements, select_valid_movements
from cellguard._types import FloatArray

__all__ = ["settle_by_circuits"]

_BASES = 5
"""Number of bases tried; the first answers most questions."""
_BASIS_NOISE = 0.7
"""Noise by which bases differ."""
_KNOWN_SLACK_FACTOR = 1e-3
"""Factor on the slack of variables that waiting attackers know."""
_MOST = 2_000_000
"""Entries of an elimination beyond which circuits are long: they would conflict with most views."""
_ADDED = 200
"""Number of circuits tried for one variable."""


def settle_by_circuits(tally: Tally, deadline: Deadline) -> None:
    """Answer questions by circuits, alone or added up."""
    s = tally.system
    # without bounds the slack is limited by the largest level
    most = 2 * tally.questions.get_both_distances().max(initial=0.0)
    slack = np.minimum(s.down, most), np.minimum(s.up, most)
    rng = np.random.default_rng(0)
    found = csr_array((0, len(s.up)))
    for number in range(_BASES):
        wide = np.minimum(*slack) * np.exp(rng.normal(0.0, _BASIS_NOISE if number else 0.0, len(s.up)))
        if number % 2:
            wide[tally.count_knowing_views(np.unique(tally.questions.view[tally.open])) > 0] *= _KNOWN_SLACK_FACTOR
        circuits = _build_circuits(s.space.relations, wide, deadline)
        both = [scale_movements(z, slack, s.component, s.n_components) for z in (circuits, -circuits)]
        tally.record_each(csr_array(vstack(both)))
        found = csr_array(vstack([found, circuits]))
        tally.record_each(_combine_circuits(tally, found, np.minimum(*slack), deadline))
        if not circuits.shape[0] or not len(tally.list_waiting()) or deadline.passed:
            break


def _build_circuits(relations: csr_array, wide: FloatArray, deadline: Deadline) -> csr_array:
    """Return the circuits of the basis of the widest variables, a row each."""
    from cellguard._core.widest import widest

    order = np.argsort(-wide, kind="stable")
    A = relations.indptr.astype(np.int64), relations.indices.astype(np.int64), relations.data
    start, index, value = widest(*A, order, _MOST, deadline.left)
    return select_valid_movements(csr_array((value, index, start), shape=(len(start) - 1, len(wide))), relations)


def _combine_circuits(tally: Tally, circuits: csr_array, slack: FloatArray, deadline: Deadline) -> csr_array:
    """Return sums of circuits for each variable with many open questions, the shortest first, and the same reversed."""
    from cellguard._core.widest import added

    by_variable, size = csc_array(circuits), np.diff(circuits.indptr)
    Z = circuits.indptr.astype(np.int64), circuits.indices.astype(np.int64), circuits.data
    sums = [csr_array((0, len(slack)))]
    for variable in tally.list_waiting().tolist():
        if deadline.passed:
            break
        need = float(tally.questions.get_both_distances(tally.find_open_questions(variable)).max())
        mine = by_variable.indices[by_variable.indptr[variable] : by_variable.indptr[variable + 1]]
        order = mine[np.argsort(size[mine], kind="stable")[:_ADDED]].astype(np.int64)
        z = added(*Z, order, variable, need, slack)
        if len(z):
            sums.append(csr_array(np.clip(z, -slack, slack)[None]))
    both = csr_array(vstack(sums))
    return csr_array(vstack([both, -both]))

"""Circuits for many views: movements of few variables, as wide as can be, thousands from one elimination.

Variables with the widest rooms follow the others (:mod:`cellguard._core.widest`), so that each circuit goes about as
far as its narrowest variable can. It is a witness for whoever knows none of its variables; nearly all of
a million questions are answered by the circuits of one basis. For those who do know one, the next basis keeps what
they know from following anything: such a variable moves in a single circuit. What no circuit takes far enough alone is
moved by several, added up.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.shown import range_witnesses_that_hold, stretched_witnesses
from cellguard._engine.ranges.tally import Tally
from cellguard._types import FloatArray

__all__ = ["settle_by_circuits"]

_BASES = 5
"""So many bases are tried; the first answers most questions."""
_SPREAD, _KNOWN = 0.7, 1e-3
"""Bases differ by this much noise, and by how much narrower what is known of those who wait counts as."""
_MOST = 2_000_000
"""Entries of an elimination beyond which circuits are long: they would stand in the way of most views."""
_ADDED = 200
"""Circuits that are tried for one variable."""


def settle_by_circuits(tally: Tally, deadline: Deadline) -> None:
    """Answer what circuits can answer, alone or added up."""
    s = tally.system
    # a table without bounds has rooms as large as anybody asks for
    most = 2 * tally.questions.both_ways().max(initial=0.0)
    room = np.minimum(s.down, most), np.minimum(s.up, most)
    rng = np.random.default_rng(0)
    found = csr_array((0, len(s.up)))
    for number in range(_BASES):
        wide = np.minimum(*room) * np.exp(rng.normal(0.0, _SPREAD if number else 0.0, len(s.up)))
        if number % 2:
            wide[tally.known_by(np.unique(tally.questions.view[tally.open])) > 0] *= _KNOWN
        circuits = _circuits(s.space.relations, wide, deadline)
        both = [stretched_witnesses(z, room, s.component, s.n_components) for z in (circuits, -circuits)]
        tally.learn_each(csr_array(vstack(both)))
        found = csr_array(vstack([found, circuits]))
        tally.learn_each(_circuits_added_up(tally, found, np.minimum(*room), deadline))
        if not circuits.shape[0] or not len(tally.waiting()) or deadline.passed:
            break


def _circuits(relations: csr_array, wide: FloatArray, deadline: Deadline) -> csr_array:
    """Return the circuits of the basis of the widest variables, a row each."""
    from cellguard._core.widest import widest

    order = np.argsort(-wide, kind="stable")
    A = relations.indptr.astype(np.int64), relations.indices.astype(np.int64), relations.data
    start, index, value = widest(*A, order, _MOST, deadline.left)
    return range_witnesses_that_hold(csr_array((value, index, start), shape=(len(start) - 1, len(wide))), relations)


def _circuits_added_up(tally: Tally, circuits: csr_array, room: FloatArray, deadline: Deadline) -> csr_array:
    """Return for each variable that many wait for circuits added up, the shortest first, and the same turned around."""
    from cellguard._core.widest import added

    by_variable, size = csc_array(circuits), np.diff(circuits.indptr)
    Z = circuits.indptr.astype(np.int64), circuits.indices.astype(np.int64), circuits.data
    sums = [csr_array((0, len(room)))]
    for variable in tally.waiting().tolist():
        if deadline.passed:
            break
        need = float(tally.questions.both_ways(tally.waiting_for(variable)).max())
        mine = by_variable.indices[by_variable.indptr[variable] : by_variable.indptr[variable + 1]]
        order = mine[np.argsort(size[mine], kind="stable")[:_ADDED]].astype(np.int64)
        z = added(*Z, order, variable, need, room)
        if len(z):
            sums.append(csr_array(np.clip(z, -room, room)[None]))
    both = csr_array(vstack(sums))
    return csr_array(vstack([both, -both]))

"""What many attackers can compute from one release, with everything shared that can be shared.

An attacker with inside knowledge sees the release like everybody, with tighter bounds on a few cells. So the
relations are reduced once, everybody's programs are solved once, and their movements are witnesses for whoever
they fit. Circuits answer nearly all of a million questions without a program. What relations alone rule out needs
none either. What is left is asked by coalitions, and at last view by view.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.certified import certified
from cellguard._engine.ranges.circuits import settle_by_circuits
from cellguard._engine.ranges.coalitions import Coalitions
from cellguard._engine.ranges.implied import Tightened, expanded_for_views, room_tightened_by_views
from cellguard._engine.ranges.parts import RangeRequest, range_part_of, search_range_parts
from cellguard._engine.ranges.range_search import search_ranges
from cellguard._engine.ranges.shown import (
    LARGE,
    range_witnesses_that_hold,
    remember_shown,
    shown_movements,
    stretched_witnesses,
)
from cellguard._engine.ranges.sight import Sight
from cellguard._engine.ranges.sparse import settle_by_sparse
from cellguard._engine.ranges.system import cells_in_range_system
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.ranges.verdicts import FoundMovements, Verdicts
from cellguard._engine.ranges.views import Questions, Views
from cellguard._engine.ranges.whole import tally_in_whole_numbers, whole_witnesses
from cellguard._types import FloatArray, IntArray

__all__ = ["Sight", "Verdicts", "Views", "ranges_for"]

_MANY = 1_000
"""With more open questions movements of a few variables come first: each answers hundreds."""


def ranges_for(
    sight: Sight,
    views: Views,
    *,
    certify: bool = False,
    time_limit_s: float = float("inf"),
    jobs: int | None = None,
) -> Verdicts:
    """Say for each of many attackers which levels he can break.

    Parameters
    ----------
    sight
        What everybody knows. Where only whole numbers are possible, only those show that a level is kept.
    views
        What each attacker knows besides, and what is asked. One who knows nothing besides is a view too.
    certify
        Make the witnesses exact, and call safe only what those prove.
    time_limit_s
        For everything; what it leaves open is neither safe nor unsafe.
    jobs
        Parts of the table to search at the same time (see :func:`ranges`).

    Examples
    --------
    >>> T = csr_array(np.array([[-1.0, 1, 1, 1]]))
    >>> lo, hi, a = np.array([9.0, 0, 0, 0]), np.array([9.0, 9, 9, 9]), np.array([9.0, 4, 3, 2])
    >>> levels = {"lower": np.ones(2), "upper": np.ones(2), "sliding": np.zeros(2)}
    >>> knows = {"known_cell": np.array([2, 3]), "known_lo": np.array([3.0, 2.0]), "known_hi": np.array([3.0, 2.0])}
    >>> views = Views(known_ptr=np.array([0, 0, 2]), **knows, view=np.array([0, 1]), cell=np.array([1, 1]), **levels)
    >>> ranges_for(Sight(T, lo, hi, a), views).safe.tolist()
    [True, False]
    """
    deadline = Deadline.after(time_limit_s)
    system, point = sight.system(), sight.point
    if sight.integer:
        views = views.in_whole_numbers()
    questions = Questions.of(system, views, point)
    tally = Tally(system, questions)
    _settle_by_shown(tally)
    many = len(tally.open) > _MANY
    if many:
        settle_by_circuits(tally, deadline)
    asked = views.hardest(questions.number[tally.not_shown()])
    programs = _range_search_for_everybody(tally, RangeRequest.of(system, *asked), deadline, jobs)
    if many:
        programs += settle_by_sparse(tally, deadline)
    disclosed = _disclosed_to_views(tally, views, point)
    coalitions = Coalitions(tally, deadline)
    coalitions.run()
    programs += coalitions.programs + _settle_view_by_view(tally, deadline)
    if sight.integer:
        tally, more = tally_in_whole_numbers(tally, sight, views, deadline)
        programs += more
    movements = csr_array(tally.movements() @ system.space.lift.T)
    remember_shown(movements)
    found = FoundMovements.of(system, views, tally, movements, disclosed, programs)
    if sight.integer:
        return found.verdicts(point, whole_witnesses(movements) if certify else None)
    return certified(found, sight, deadline) if certify else found.verdicts(point)


def _range_search_for_everybody(tally: Tally, request: RangeRequest, deadline: Deadline, jobs: int | None) -> int:
    """Search for what everybody must hold possible: no view holds more possible."""
    reach, pool = search_range_parts(tally.system, request, exact=False, deadline=deadline, jobs=jobs)
    variable = tally.questions.variable
    tally.bound(np.arange(len(variable)), -reach.low_bound[variable], reach.high_bound[variable])
    # what moves few variables is in few views' way: after it, little is left for what moves thousands
    for row in np.argsort(np.diff(pool.indptr), kind="stable").tolist():
        if deadline.passed or not len(tally.open):
            break
        tally.learn(pool[[row]].toarray()[0])
    return reach.programs


def _settle_by_shown(tally: Tally) -> None:
    """Tick off what movements prove that were found before: views of large systems take a program each otherwise."""
    s = tally.system
    known = shown_movements(len(s.free), s.space.cells) if len(s.up) > LARGE or len(tally.open) > _MANY else None
    if known is not None:
        V = range_witnesses_that_hold(known, s.space.relations)
        forth = stretched_witnesses(V, (s.down, s.up), s.component, s.n_components)
        back = stretched_witnesses(-V, (s.down, s.up), s.component, s.n_components)
        tally.learn_each(csr_array(vstack([forth, back])))


def _disclosed_to_views(tally: Tally, views: Views, point: FloatArray) -> tuple[IntArray, IntArray]:
    """Prove what the relations with known cells prove alone; return (views, cells) that they disclose."""
    s, q = tally.system, tally.questions
    known = q.known
    variable = known.key % known.n_variables
    tight = room_tightened_by_views(
        s.space.relations,
        s.implied_down,
        s.implied_up,
        Tightened(
            n_variables=known.n_variables,
            key=known.key,
            down=np.minimum(known.down, s.implied_down[variable]),
            up=np.minimum(known.up, s.implied_up[variable]),
        ),
    )
    tally.bound(np.arange(len(q)), *tight.of(q.view, q.variable, tally.low_bound, tally.high_bound))
    stuck = np.flatnonzero((tight.down == 0) & (tight.up == 0))
    by_variable = csr_array(s.space.lift.T)
    view, place = expanded_for_views(
        by_variable.indptr, tight.key[stuck] % tight.n_variables, tight.key[stuck] // tight.n_variables
    )
    n = len(point)
    told = view * n + by_variable.indices[place]
    own = views.known_view * n + views.known_cell
    own = own[~cells_in_range_system(views.known_lo, views.known_hi, point[views.known_cell])]
    told = np.setdiff1d(told, own)
    return told // n, told % n


def _settle_view_by_view(tally: Tally, deadline: Deadline) -> int:
    """Ask for each view alone what is still open: bounds are proven as well."""
    s, q, known = tally.system, tally.questions, tally.questions.known
    programs = 0
    if not len(tally.open):
        return 0
    order = tally.open[np.argsort(q.view[tally.open], kind="stable")]
    views, first = np.unique(q.view[order], return_index=True)
    for view, asked in zip(views.tolist(), np.split(order, first[1:]), strict=True):
        if deadline.passed:
            break
        some = tally.still_open(asked)
        if not len(some):
            continue
        down, up = s.down.copy(), s.up.copy()
        mine = tally.known_view == view
        down[tally.known_variable[mine]], up[tally.known_variable[mine]] = known.down[mine], known.up[mine]
        variables = np.flatnonzero(np.isin(s.component, s.component[q.variable[some]]))
        needs = (q.need_high[some], q.need_low[some], q.need_width[some])
        room = (down[variables], up[variables])
        part = range_part_of(s, variables, q.variable[some], needs, deadline, room)
        reach = search_ranges(part)
        programs += reach.programs
        for v in reach.pool:
            whole = np.zeros(len(s.up))
            whole[variables] = v
            tally.learn(whole)
        at = np.searchsorted(variables, q.variable[some])
        tally.bound(some, -reach.low_bound[at], reach.high_bound[at])
    return programs

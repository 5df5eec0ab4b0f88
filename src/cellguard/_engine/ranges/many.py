"""What many attackers can compute from one release, sharing as much work as possible.

An attacker with inside knowledge sees the release like everybody, with tighter bounds on a few cells. So the
relations are reduced once, the public programs are solved once, and their movements are witnesses for every attacker
whose bounds they fit. Circuits answer nearly all of a million questions without a program, and relations alone settle
others. Coalitions of views answer the rest, and finally single views.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, vstack

from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.coalitions import Coalitions
from cellguard._engine.ranges.implied import Tightened, expand_rows, tighten_slack_of_views
from cellguard._engine.ranges.parts import RangeRequest, extract_part, search_range_parts
from cellguard._engine.ranges.search.circuits import settle_by_circuits
from cellguard._engine.ranges.search.range_search import search_ranges
from cellguard._engine.ranges.search.unit_walks import get_needs, walk_in_units
from cellguard._engine.ranges.search.whole import convert_whole_movements, decide_in_whole_numbers
from cellguard._engine.ranges.sight import Sight
from cellguard._engine.ranges.sparse import settle_by_sparse
from cellguard._engine.ranges.system import find_unknown_cells
from cellguard._engine.ranges.tally import Tally
from cellguard._engine.ranges.verdicts import FoundMovements, Verdicts
from cellguard._engine.ranges.views import Questions, Views
from cellguard._engine.ranges.witnesses.certified import certify_verdicts
from cellguard._engine.ranges.witnesses.shown import (
    LARGE,
    ShownMovements,
    scale_movements,
    select_valid_movements,
)
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["Sight", "Verdicts", "Views", "compute_ranges_for_views", "find_unshown_requests"]

_MANY = 1_000
"""Number of open questions above which movements of a few variables come first: each answers hundreds."""

OWN_WALKS = 2
"""Walks in units to each side of a cell within the slack of all views; a view may block one walk and suit another."""


def compute_ranges_for_views(
    sight: Sight,
    views: Views,
    *,
    certify: bool = False,
    time_limit_s: float = float("inf"),
    jobs: int | None = None,
) -> Verdicts:
    """Compute which levels each of many attackers can break.

    Parameters
    ----------
    sight
        What everybody knows. If only whole numbers are possible, only those show that a level is kept.
    views
        What each attacker knows besides, and the requests. An attacker without further knowledge is a view too.
    certify
        Make the witnesses exact, and call safe only what they prove.
    time_limit_s
        For the whole search; what stays open is neither safe nor unsafe.
    jobs
        Parts of the table to search at the same time (see :func:`compute_ranges`).

    Examples
    --------
    >>> T = csr_array(np.array([[-1.0, 1, 1, 1]]))
    >>> lo, hi, a = np.array([9.0, 0, 0, 0]), np.array([9.0, 9, 9, 9]), np.array([9.0, 4, 3, 2])
    >>> levels = {"lower": np.ones(2), "upper": np.ones(2), "sliding": np.zeros(2)}
    >>> knows = {"known_cell": np.array([2, 3]), "known_lo": np.array([3.0, 2.0]), "known_hi": np.array([3.0, 2.0])}
    >>> views = Views(known_ptr=np.array([0, 0, 2]), **knows, view=np.array([0, 1]), cell=np.array([1, 1]), **levels)
    >>> compute_ranges_for_views(Sight(T, lo, hi, a), views).safe.tolist()
    [True, False]
    """
    deadline = Deadline.from_limit(time_limit_s)
    system, point = sight.build_system(), sight.point
    if sight.integer:
        views = views.round_to_whole()
    questions = Questions.of(system, views, point)
    tally = Tally(system, questions)
    _settle_by_shown(tally, sight.shown)
    walked = csr_array((0, len(system.up)))
    if sight.integer:
        walked = _walk_to_levels(tally, RangeRequest.of(system, *views.select_hardest(questions.number)), deadline)
        tally.record_each(walked)
    many = len(tally.open) > _MANY
    if many:
        settle_by_circuits(tally, deadline)
    asked = views.select_hardest(questions.number[tally.find_unshown_questions()])
    programs = _search_shared_ranges(tally, RangeRequest.of(system, *asked), deadline, jobs, sight.shown)
    if many:
        programs += settle_by_sparse(tally, deadline)
    disclosed = _find_disclosed_by_relations(tally, views, point)
    coalitions = Coalitions(tally, deadline)
    coalitions.run()
    programs += coalitions.programs + _settle_view_by_view(tally, deadline)
    if sight.integer:
        tally, more = decide_in_whole_numbers(tally, sight, views, walked, deadline)
        programs += more
    movements = csr_array(tally.list_movements() @ system.space.lift.T)
    if sight.shown is not None:
        sight.shown.remember(movements)
    found = FoundMovements.of(system, views, tally, movements, disclosed, programs)
    if sight.integer:
        return found.decide(point, convert_whole_movements(movements) if certify else None)
    return certify_verdicts(found, sight, deadline) if certify else found.decide(point)


def find_unshown_requests(sight: Sight, views: Views, *, time_limit_s: float = float("inf")) -> BoolArray:
    """Return which requests no movement shows, of those that are known or found without a program per attacker.

    Nothing is proven: a request that is returned may be met. Movements that were found are remembered in `sight.shown`.
    """
    deadline = Deadline.from_limit(time_limit_s)
    system = sight.build_system()
    questions = Questions.of(system, views, sight.point)
    tally = Tally(system, questions)
    _settle_by_shown(tally, sight.shown)
    if len(tally.open) > _MANY:
        settle_by_circuits(tally, deadline)
    if sight.shown is not None:
        sight.shown.remember(csr_array(tally.list_movements() @ system.space.lift.T))
    unshown = np.ones(len(views.cell), bool)
    unshown[questions.number] = tally.find_unmet()
    return unshown


def _search_shared_ranges(
    tally: Tally, request: RangeRequest, deadline: Deadline, jobs: int | None, shown: ShownMovements | None
) -> int:
    """Search for what no attacker without further knowledge can exclude: no view has a wider range."""
    reach, pool = search_range_parts(tally.system, request, exact=False, deadline=deadline, jobs=jobs, shown=shown)
    variable = tally.questions.variable
    tally.bound(np.arange(len(variable)), -reach.low_bound[variable], reach.high_bound[variable])
    # movements of few variables conflict with few views: after them, little is left for those of thousands
    for row in np.argsort(np.diff(pool.indptr), kind="stable").tolist():
        if deadline.passed or not len(tally.open):
            break
        tally.note_movement(pool[[row]].toarray()[0])
    return reach.programs


def _settle_by_shown(tally: Tally, shown: ShownMovements | None) -> None:
    """Mark what known movements show: otherwise views of large systems take a program each."""
    s = tally.system
    worthwhile = len(s.up) > LARGE or len(tally.open) > _MANY
    known = shown.select_cells(len(s.free), s.space.cells) if worthwhile and shown is not None else None
    if known is not None:
        V = select_valid_movements(known, s.space.relations)
        forth = scale_movements(V, (s.down, s.up), s.component, s.n_components)
        back = scale_movements(-V, (s.down, s.up), s.component, s.n_components)
        tally.record_each(csr_array(vstack([forth, back])))


def _walk_to_levels(tally: Tally, request: RangeRequest, deadline: Deadline) -> csr_array:
    """Return movements of walks in units to the levels of every cell: they are whole, and each cell has several.

    The first walk avoids what any view knows, so that its movements suit every view.
    """
    s = tally.system
    low, high, width = get_needs(s, request)
    slacks = [tally.get_slack(np.ones(tally.n_views, bool))] if len(tally.known_view) else []
    slacks += [(s.down, s.up)] * OWN_WALKS
    return walk_in_units(s, np.maximum(low, width), np.maximum(high, width), deadline=deadline, slacks=slacks)


def _find_disclosed_by_relations(tally: Tally, views: Views, point: FloatArray) -> tuple[IntArray, IntArray]:
    """Prove what the relations with known cells imply; return (views, cells) that they disclose."""
    s, q = tally.system, tally.questions
    known = q.known
    variable = known.key % known.n_variables
    tight = tighten_slack_of_views(
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
    tally.bound(np.arange(len(q)), *tight.get_slack(q.view, q.variable, tally.low_bound, tally.high_bound))
    stuck = np.flatnonzero((tight.down == 0) & (tight.up == 0))
    by_variable = csr_array(s.space.lift.T)
    view, place = expand_rows(
        by_variable.indptr, tight.key[stuck] % tight.n_variables, tight.key[stuck] // tight.n_variables
    )
    n = len(point)
    told = view * n + by_variable.indices[place]
    own = views.known_view * n + views.known_cell
    own = own[~find_unknown_cells(views.known_lo, views.known_hi, point[views.known_cell])]
    told = np.setdiff1d(told, own)
    return told // n, told % n


def _settle_view_by_view(tally: Tally, deadline: Deadline) -> int:
    """Solve for each view alone what is still open: this proves bounds as well."""
    s, q, known = tally.system, tally.questions, tally.questions.known
    programs = 0
    if not len(tally.open):
        return 0
    order = tally.open[np.argsort(q.view[tally.open], kind="stable")]
    views, first = np.unique(q.view[order], return_index=True)
    for view, asked in zip(views.tolist(), np.split(order, first[1:]), strict=True):
        if deadline.passed:
            break
        some = tally.filter_open(asked)
        if not len(some):
            continue
        down, up = s.down.copy(), s.up.copy()
        mine = tally.known_view == view
        down[tally.known_variable[mine]], up[tally.known_variable[mine]] = known.down[mine], known.up[mine]
        variables = np.flatnonzero(np.isin(s.component, s.component[q.variable[some]]))
        needs = (q.need_high[some], q.need_low[some], q.need_width[some])
        slack = (down[variables], up[variables])
        part = extract_part(s, variables, q.variable[some], needs, deadline, slack)
        reach = search_ranges(part)
        programs += reach.programs
        for moving, v in reach.pool:
            whole = np.zeros(len(s.up))
            whole[variables[moving]] = v
            tally.note_movement(whole)
        at = np.searchsorted(variables, q.variable[some])
        tally.bound(some, -reach.low_bound[at], reach.high_bound[at])
    return programs

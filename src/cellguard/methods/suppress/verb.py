"""Cell suppression: the cheapest set of cells to withhold so that no attacker learns too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine import clock
from cellguard._engine.clock import Deadline
from cellguard._engine.threads import on_one_blas_thread
from cellguard._types import BoolArray
from cellguard.exceptions import InputError
from cellguard.methods.method import DEFAULT_TIME_LIMIT_S, checked_time_limit
from cellguard.methods.respondents import against_respondents
from cellguard.nouns.publication import takes_publications
from cellguard.nouns.release import Status, Suppression
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.methods.suppress.exact import Exact
    from cellguard.methods.suppress.improve import Search
    from cellguard.methods.suppress.neighbourhoods import LargeSearch
    from cellguard.methods.suppress.problem import SuppressionProblem

__all__ = ["suppress"]

_METHODS = ("auto", "heuristic", "exact")


@takes_publications
@against_respondents(near=True)
@on_one_blas_thread
def suppress(
    table: Table,
    *,
    method: str = "auto",
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 0.0,
    seed: int = 0,
    weights: str | ArrayLike | None = None,
    power: float = 0.5,
    prefer: ArrayLike = (),
    must_publish: ArrayLike = (),
    already_suppressed: ArrayLike = (),
    resist: str | None = None,
    rounds: int | None = None,
    threads: int = 1,
    progress: Callable[[float, float], None] | None = None,
) -> Suppression:
    """Choose which cells to withhold, at the least cost.

    Parameters
    ----------
    table
        The table; its sensitive cells are always withheld (primary), others where needed (secondary).
    method
        ``"heuristic"``: safe, as cheap as the time allows, any size. ``"exact"``: branch-and-cut with a
        proof. ``"auto"``: the heuristic, then the exact method for what is left of the time.
    time_limit_s
        Seconds after which the best safe pattern so far is returned; 60 unless given.
    gap
        Relative distance to the proven bound that is good enough.
    seed
        Decides ties and the random choices of the search.
    weights
        Cost of withholding each cell: the table's, one number per cell, or a kind: ``"unit"``, ``"value"``,
        ``"log"``, ``"sqrt"``, ``"inverse"``, ``"frequency"`` (contributors) or ``"power"``.
    power
        Exponent of the value for ``weights="power"``; 0 is the logarithm.
    prefer
        Cells that are welcome as secondaries: they count a thousandth of their cost.
    must_publish
        Cells that are published in every pattern, for instance because they are published elsewhere.
    already_suppressed
        Cells that stay withheld, because an earlier release withheld them.
    resist
        ``"matching"``: withstand an attacker who knows the algorithm, for two-way frequency tables
        (`resist_matching`). The seed must then be secret: 0 stands for one drawn
        from the operating system.
    rounds
        Rounds of improvement by the heuristic. The same number gives the same pattern on any machine, however
        fast, as long as the time limit is not reached; without it the time alone decides.
    threads
        Cores to use. How many there are changes the time, not the pattern of a number of rounds.
    progress
        Called with the cost and its proven bound whenever a cheaper safe pattern is found.

    Returns
    -------
    Suppression
        The pattern with its cost and the proven bound; status ``infeasible`` with an explanation when
        no pattern is safe.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations(
    ...     [20, 50, 10, 80, 8, 19, 22, 49, 17, 32, 12, 61, 45, 101, 44, 190],
    ...     [[3, 0, 1, 2], [7, 4, 5, 6], [11, 8, 9, 10], [15, 12, 13, 14],
    ...      [12, 0, 4, 8], [13, 1, 5, 9], [14, 2, 6, 10], [15, 3, 7, 11]],
    ...     sensitive=[6], lower=[4], upper=[4],
    ... )
    >>> release = cg.suppress(table, method="heuristic", time_limit_s=1)
    >>> release.cost, int(release.secondary.sum())
    (37.0, 3)
    """
    begin = clock.now()
    if method not in _METHODS:
        raise InputError(f"method {method!r} is not known.", hint=f"one of {', '.join(_METHODS)}.")
    limit = checked_time_limit(time_limit_s)
    if resist not in (None, "matching"):
        raise InputError(f"resist {resist!r} is not known.", hint="matching is.")
    table = _prepared(table, weights, power, prefer, must_publish)
    forced = table.sensitive | _cells(table, already_suppressed, "already_suppressed")
    if resist is not None or method != "heuristic":
        counted = _count_table(table, forced, seed, resist=resist is not None)
        if counted is not None:
            return counted
    options = {"method": method, "time_limit_s": limit, "gap": gap, "seed": seed, "rounds": rounds}
    return _run(table, forced, method, begin, begin + limit, gap, seed, options, rounds, threads, progress)


def _run(
    table: Table,
    forced: BoolArray,
    method: str,
    begin: float,
    deadline: float,
    gap: float,
    seed: int,
    options: dict[str, Any],
    rounds: int | None,
    threads: int,
    progress: Callable[[float, float], None] | None,
) -> Suppression:
    from cellguard.methods.suppress.confirm import judge
    from cellguard.methods.suppress.improve import Search
    from cellguard.methods.suppress.neighbourhoods import LargeSearch
    from cellguard.methods.suppress.problem import SuppressionProblem

    problem = SuppressionProblem.of(table, forced=forced)
    kind = Search if int(problem.usable.sum()) <= _LARGE else LargeSearch
    search = kind(problem=problem, rng=np.random.default_rng(seed), threads=threads)
    heavy = int(problem.usable.sum()) * (1 + len(table.attackers)) > _QUICK
    ends = Deadline(deadline).part(1.0 - _CONFIRM if heavy else 1.0)
    search.limit = Deadline(deadline)
    proof = _Proof()
    reduced = clock.now()
    if progress is not None:
        search.on_better = lambda cost: progress(cost, proof.bound)
    try:
        if search.start(ends.at):
            _search_and_prove(search, proof, method, ends.at, gap, seed, rounds)
    except KeyboardInterrupt:  # whoever is tired of waiting gets the best safe pattern so far
        if search.best is None:
            raise
    seconds = {"reduce": reduced - begin, "solve": clock.now() - reduced, "total": clock.now() - begin}
    if search.best is None:
        # programs in floating point lose small cells beside large ones: only the audit may say that nothing is safe
        everything = problem.usable | problem.forced
        last = judge(table, everything, _last_word(begin, deadline))
        if not last.safe:
            status = Status.INFEASIBLE if last.proven else Status.TIME_LIMIT
            why = _why(table, problem, search.unmet) if last.proven else _NOT_DECIDED
            return Suppression(
                table=table, status=status, objective=float("nan"), seconds=seconds, options=options,
                explanation=why, suppressed=problem.forced,
            )  # fmt: skip
        search.best, search.cost = everything, problem.cost(everything)
    verdict = judge(table, search.best, _last_word(begin, deadline))
    seconds |= {"audit": clock.now() - begin - seconds["total"], "total": clock.now() - begin}
    if not verdict.safe:
        return Suppression(
            table=table, status=Status.TIME_LIMIT, objective=float("nan"), seconds=seconds, options=options,
            explanation=_NOT_CONFIRMED, suppressed=problem.forced,
        )  # fmt: skip
    objective = float(table.weights[search.best & ~table.sensitive].sum())
    bound = _bound(proof, objective, search.cost)
    proven = objective - bound <= max(gap, 1e-9) * abs(objective)  # never of NaN
    status = Status.OPTIMAL if proven else Status.TIME_LIMIT if ends.passed else Status.FEASIBLE
    return Suppression(
        table=table, status=status, objective=objective, bound=bound, seconds=seconds, options=options,
        suppressed=search.best, details={"cuts": proof.cuts, "nodes": proof.nodes, "rounds": search.rounds},
    )  # fmt: skip


_GRACE_S, _GRACE = 1.0, 0.04
"""The audit of the last pattern may take so much longer than the limit: seconds, and a share of the limit."""
_QUICK, _CONFIRM = 2_000, 0.15
"""With more cells, counted once for each attacker, this share of the time is left for confirming the last pattern."""
_AFTER = 0.1
"""Of a limit that a search has overrun so much is left for the confirmation: no release is worse than a late one."""
_NOT_DECIDED = (
    "no pattern was shown safe within the limit, nor proven that none is: "
    "the time was too short, or the values are of too different a size."
)
_NOT_CONFIRMED = "a pattern was found, but the audit did not confirm it within the limit."


def _last_word(begin: float, deadline: float) -> float:
    """Return when the audit of the last pattern must end."""
    limit = deadline - begin
    return max(deadline + _GRACE_S + _GRACE * limit, clock.now() + _AFTER * limit)


def _why(table: Table, problem: SuppressionProblem, unmet: list[int]) -> str:
    from cellguard.methods.suppress.explain import explain

    return explain(table, problem, unmet) if unmet else _NOT_DECIDED


def _bound(proof: _Proof, objective: float, cost: float) -> float:
    """What is proven of the objective; NaN when nothing is."""
    # what forced and aliased cells cost is in every pattern, and not in the costs of the search
    bound = min(max(proof.bound, 0.0) + objective - cost, objective)
    return bound if bound > 0 or objective <= 0 else float("nan")


@dataclass
class _Proof:
    """What is proven so far."""

    bound: float = 0.0
    cuts: int = 0
    nodes: int = 0


_NEAR = 0.02
"""Gap at the root that a small tree closes without a better pattern."""
_WIDE = 0.1
"""Gap that no tree is likely to close: a better pattern is worth more than nodes."""
_FEW, _MANY, _LONG = 300, 5000, 50_000
"""Rounds of improvement before the tree: counted, so that what is solved to the end is the same on every machine."""
_SMALL, _SMALL_TREE = 2000, 200
"""Of tables with so many free cells, or nearly closed, so many nodes are tried before a long search."""
_LARGE = 20_000
"""Cells beyond which no program over the whole table is solved, and no bound is proven."""


def _search_and_prove(
    search: Search | LargeSearch, proof: _Proof, method: str, deadline: float, gap: float, seed: int, rounds: int | None
) -> None:
    """Share the time: a quick search, the bound at the root, more search, and the tree for the rest."""
    from cellguard.methods.suppress.exact import Exact
    from cellguard.methods.suppress.improve import Search

    if not isinstance(search, Search) or (search.heavy and method != "exact"):
        search.improve(deadline, rounds)
        return
    if method == "heuristic":
        search.improve(clock.until(0.85, deadline), rounds)
        if _done(search, proof, gap, deadline) or rounds is not None:
            return  # whoever counts rounds asks for the same work on every machine, not for a bound
    exact = Exact(search.space)
    exact.on_bound = lambda bound: setattr(proof, "bound", max(proof.bound, min(bound, search.cost)))
    if method == "heuristic":
        exact.root(deadline, search.cost)
    else:
        exact.root(clock.until(0.3, deadline), search.cost)
        _close(search, exact, proof, method, deadline, gap, seed, rounds)
    proof.cuts, proof.nodes = exact.cuts, exact.nodes


def _done(search: Search, proof: _Proof, gap: float, deadline: float) -> bool:
    return search.cost - proof.bound <= max(gap, 1e-9) * search.cost or clock.now() >= deadline


def _close(
    search: Search, exact: Exact, proof: _Proof, method: str, deadline: float, gap: float, seed: int, rounds: int | None
) -> None:
    """Close the gap that the root has left: by better patterns, and by a tree."""
    if not _done(search, proof, gap, deadline) and exact.y is not None:
        search.follow(exact.y, clock.until(0.1, deadline))
    if search.cost - proof.bound > max(gap, _NEAR) * search.cost:
        search.improve(clock.until(0.1, deadline), _FEW if rounds is None else rounds)
    if _done(search, proof, gap, deadline):
        return
    if rounds is None and (len(search.space) <= _SMALL or search.cost - proof.bound <= _WIDE * search.cost):
        _branch(search, exact, clock.until(0.3, deadline), gap, seed, _SMALL_TREE)
        if _done(search, proof, gap, deadline):
            return
    if method == "auto":
        search.improve(clock.until(0.2, deadline), _MANY if rounds is None else rounds)
    if rounds is None and search.cost - proof.bound > _WIDE * search.cost:
        _branch(search, exact, clock.until(0.05, deadline), gap, seed)  # a small tree may still close it
        if not _done(search, proof, gap, deadline):
            search.improve(clock.until(0.25, deadline), _LONG)
    if not _done(search, proof, gap, deadline):
        _branch(search, exact, deadline, gap, seed)


def _branch(search: Search, exact: Exact, deadline: float, gap: float, seed: int, nodes: int = -1) -> None:
    """Branch and cut from the best pattern; take what is better."""
    cells, row, _ = search.space.members
    incumbent = np.zeros(len(search.space), bool)
    incumbent[row[search.best[cells]]] = True  # type: ignore[index]
    found = exact.solve(incumbent, search.cost, deadline, gap, seed, nodes)
    if found.y is not None:
        search.adopt(found.y > 0.5)


def _count_table(table: Table, forced: BoolArray, seed: int, *, resist: bool) -> Suppression | None:
    """Suppress a two-way frequency table by enumeration: the optimum in milliseconds, or one that resists."""
    from cellguard.methods.suppress.resist import optimal_counts, resist_matching, rule_applies

    if resist:
        if (forced & ~table.sensitive).any():
            raise InputError("resist: cells that are already suppressed cannot be taken into account.")
        return resist_matching(table, seed=seed or None)
    if not rule_applies(table) or (forced & ~table.sensitive).any():
        return None
    release = optimal_counts(table, limit=200_000)
    return release if release.status is Status.OPTIMAL else None


def _prepared(
    table: Table, weights: str | ArrayLike | None, power: float, prefer: ArrayLike, must_publish: ArrayLike
) -> Table:
    from cellguard.methods.suppress.costs import costs

    fixed = _cells(table, must_publish, "must_publish")
    bad = fixed & table.sensitive
    if bad.any():
        raise InputError(
            f"{table.label(int(np.argmax(bad)))}: must be published and is sensitive.",
            hint="take it out of the cells that must be published.",
        )
    if fixed.any():
        table = table.with_(fixed=table.fixed | fixed)
    welcome = _cells(table, prefer, "prefer")
    if weights is None and not welcome.any():
        return table
    return table.with_(weights=costs(table, weights, power, welcome))


def _cells(table: Table, given: ArrayLike, name: str) -> BoolArray:
    array = np.asarray(given)
    out = np.zeros(table.n_cells, bool)
    if array.dtype == bool:
        if array.shape != out.shape:
            raise InputError(f"{name}: {array.size} truth values given for {table.n_cells} cells.")
        return array.copy()
    index = array.ravel().astype(np.int64)
    if len(index) and (index.min() < 0 or index.max() >= table.n_cells):
        raise InputError(f"{name}: a cell index lies outside 0..{table.n_cells - 1}.")
    out[index] = True
    return out

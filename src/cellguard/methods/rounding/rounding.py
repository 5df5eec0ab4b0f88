"""Controlled rounding: every cell becomes a multiple of its base, and the table still adds up.

What is published: the rounded values, the base of each cell, and the step s. A reader knows that no
cell moved by s bases or more, so an attacker finds each cell less than ``s r`` from what is published
(the interval of salazar2004 section 3 without its ends: for whole numbers ``v - s r + 1`` to ``v + s r - 1``),
intersected with what he knew before; he is **not** told which cells were multiples of the base already.
The paper sets r = 0 for those and publishes r, which would tell everybody that they are exact, and could
never protect a sensitive one; here the nominal base is published for every cell. Only cells that must
be published as they are (``table.fixed``) count as known exactly.

A sensitive cell is never published as it is: if it is a multiple of the base it moves to another one,
which takes a step of 2 at least. ``keep_multiples=True`` lets it stay, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.numbers.multiples import Multiples, count_decimals, split_into_multiples
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.methods.attempt import list_missed_cells, raise_levels
from cellguard.methods.demands import build_demands, find_demanded_cells, list_required_levels, refuse_wide_demands
from cellguard.methods.keys import draw_for_table, refuse_seed_as_secret, take_key
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.procedure import Candidate, Problem, Procedure
from cellguard.methods.protection import Protection
from cellguard.methods.rounding import METHOD, unbiased
from cellguard.methods.rounding.choose import round_by_method
from cellguard.methods.rounding.exact import RoundingOutcome
from cellguard.methods.rounding.plain import KnownRounding
from cellguard.methods.rounding.problem import Bases, RoundingProblem, compute_reach, make_rounding_problem
from cellguard.model.checks import refuse_cells
from cellguard.model.kept import Keep, add_kept_knowledge, find_kept_cells, normalize_kept_entries
from cellguard.model.key import Key, KeyGiven
from cellguard.model.levels import Levels
from cellguard.model.table import Table
from cellguard.model.units import get_unit
from cellguard.release.release import Rounding, Status

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit
    from cellguard.methods.method import Method
    from cellguard.model.linked.clusters import Keeper
    from cellguard.model.linked.publication import Publication

__all__ = ["RoundProcedure", "round"]


def round(  # noqa: A001 - the verb of the methodology; the builtin is not used in this module
    table: Table | Publication,
    base: ArrayLike = 5.0,
    *,
    objective: str = "distance",
    method: str = "auto",
    shares_up: ArrayLike | None = None,
    step: int | None = None,
    max_step: int = 5,
    keep_multiples: bool = False,
    keep: Iterable[Keep] = (),
    weights: str | ArrayLike = "table",
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    gap: float = 0.0,
    seed: int = 0,
    key: KeyGiven | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
    insiders: bool | None = None,
) -> Rounding:
    """Round every cell to a multiple of its base, as close to the table as relations and levels allow.

    Parameters
    ----------
    table
        What to round. Without sensitive cells this is plain controlled rounding.
    base
        One number, or one per cell (larger ones on upper levels, say).
    objective
        ``"distance"`` rounds to the nearest safe table (2). ``"unbiased"`` rounds towards a random table near
        the truth, so that a residue of k is rounded up in about k of base cases (13): counts with
        one whole base only, and each key gives another table. ``"unbiased-plain"`` does so with the paper's own
        estimate, the share of each residue that a plain first run rounds up. ``"coins"`` rounds towards each cell's own
        unbiased coin, phi(a), which the paper found worse.
    method
        ``"exact"`` is branch-and-bound with a proof; ``"areas"`` is for large tables over areas (or slices) and two
        more dimensions, with a bound; ``"auto"`` takes what fits, or one after the other, and ends within 1% of the
        bound where the proof of a large table would take longer than the rounding itself.
    shares_up
        How often each residue 0 .. base - 1 is rounded up, if known from like tables (or each residue when
        drawn to another, base x base); estimated by a first run unless given.
    step
        Cells move by less than this number of bases; 1 is zero-restricted rounding. Unless given,
        the least step with a solution is searched for, and published with the release.
    max_step
        Where that search ends.
    keep_multiples
        Let a sensitive cell stay that is a multiple of its base, as salazar2004 does. Otherwise it moves
        to another multiple, because a sensitive cell is never published unchanged; with step 1 it cannot.
    keep
        Totals and margins that go to the multiple nearest to them, as in conventional rounding: ``"total"``, a
        dimension or several, codes of a cell. Everybody knows it, so an attacker finds them within half a base.
        Sensitive cells of a margin are rounded like others.
    weights
        Price of a unit of distance: the table's weights, ``"unit"``, ``"inverse"``, ``"value"``, ..., or
        one number per cell. Distance (2) of salazar2004 has unit weights.
    time_limit_s, gap
        When to stop: after this many seconds, or as soon as the distance is proven to be within this
        share of the least possible.
    seed
        Decides between equals in the search for the nearest table. Refused for ``"unbiased"`` and ``"coins"``, which
        draw the table to round towards: a seed is not a secret.
    key
        The secret of what is drawn: a :class:`cellguard.Key`, at least 16 bytes, or the file that holds
        them. Drawn from the operating system unless given; ``options["key"]`` has it. The same key gives the same
        release.
    threads
        Processor cores for the solver.
    progress
        Called with the objective and its proven bound whenever a closer rounding is found.
    keeper
        Stores the release of each cluster of a publication when it is finished
        (:class:`cellguard.model.linked.clusters.Keeper`).
    insiders
        Whether respondents are attackers too: True, False, or as the table says (`Table.insiders`).

    Returns
    -------
    Rounding
        Its objective is the weighted distance (salazar2004 (2)), its bound what no rounding beats.

    Examples
    --------
    >>> table = Table.from_equations([3, 4, 6, 13], [[3, 0, 1, 2]], weights=1.0)
    >>> release = round(table, base=5)
    >>> release.values, release.objective, str(release.status)
    (array([ 5.,  5.,  5., 15.]), 6.0, 'optimal')
    """
    procedure = RoundProcedure(
        base=base, objective=METHOD.match_choice("objective", objective), how=METHOD.match_choice("method", method),
        shares_up=shares_up, step=step, max_step=max_step, keep_multiples=keep_multiples, keep=tuple(keep),
        weights=weights, key=take_key(key),
    )  # fmt: skip
    refuse_seed_as_secret(METHOD, {"seed": seed, "objective": procedure.objective})
    limits = Limits(time_limit_s=time_limit_s, gap=gap, seed=seed, threads=threads, progress=progress)
    release = Protection(procedure=procedure, limits=limits, keeper=keeper, insiders=insiders).run(table)
    return cast("Rounding", release)


@dataclass(frozen=True, kw_only=True, eq=False)
class RoundProcedure(Procedure):
    """Round a table; where the audit finds a level missed, require it again with a margin."""

    method: ClassVar[Method] = METHOD
    not_confirmed: ClassVar[str] = "no rounding was found that the audit accepts."

    base: ArrayLike = 5.0
    objective: str = "distance"
    how: str = "auto"
    """The option `method` of the verb."""
    shares_up: ArrayLike | None = None
    step: int | None = None
    max_step: int = 5
    keep_multiples: bool = False
    keep: tuple[Keep, ...] = ()
    weights: str | ArrayLike = "table"
    key: Key = field(default_factory=Key.draw)
    """The secret of what is drawn; the same for all clusters of a publication."""

    def prepare(self, table: Table) -> Table:
        """Return the table in which everybody knows how far the kept cells are from their multiples."""
        _check_rounding_steps(step=self.step, max_step=self.max_step)
        METHOD.require_choices(objective=self.objective, method=self.how)
        bases = _read_bases(table, self.base)
        return add_kept_knowledge(table, bases, find_kept_cells(table, self.keep) & ~table.fixed)

    def solve(self, problem: Problem, limits: Limits) -> Candidate:
        """Round with the least step that has a solution."""
        table = problem.table
        bases = _read_bases(table, self.base)
        needs = list_required_levels(table)
        _check_rounding_levels(table, bases, needs, self.step or 1)
        run = _RoundingRun(
            problem=problem, base=bases, lattice=_split_values(table, bases, self.step or self.max_step),
            needs=needs, keep_multiples=self.keep_multiples, weights=_read_weights(table, self.weights),
            limits=limits, how=self.how, options=self._collect_options(limits), key=self.key,
        )  # fmt: skip
        if METHOD.is_randomised({"objective": self.objective}) or run.has_holes:
            run = replace(run, options={**run.options, "key": self.key})
        steps = (self.step,) if self.step is not None else tuple(range(1, self.max_step + 1))
        if self.objective in ("unbiased", "unbiased-plain"):
            return _round_unbiased(run, steps, self.shares_up, plain=self.objective == "unbiased-plain")
        if self.objective == "coins":
            coins = unbiased.round_by_coin(table.values, bases, draw_for_table(self.key, "round coins", table))
            run = replace(run, target=np.where(table.fixed, table.values, coins))
        return run.round_with_least_step(steps)

    def repair(self, candidate: Candidate, findings: Audit, limits: Limits) -> Candidate | None:
        """Ask for a little more where the audit missed a level, and round again."""
        if findings.with_cross:  # a wider step of the published numbers does not change what the cross tells
            return None
        state: _RoundingState = candidate.state
        missed = list_missed_cells(candidate.release.table, findings)
        needs = raise_levels(state.raised.needs, missed, integer=bool(candidate.release.table.whole_cells.any()))
        known = replace(state.raised.problem, last=candidate.release)
        raised = replace(state.raised, needs=needs, limits=limits, problem=known)
        _, outcome = raised.search(state.step)
        if outcome.x is None:
            return None
        outcome = replace(outcome, bound=min(state.bound, outcome.bound))  # more is asked than was proven
        return state.asked.get_candidate(state.step, state.problem, outcome, raised)

    def _collect_options(self, limits: Limits) -> dict[str, Any]:
        """Return the options that make the release again."""
        return {
            "base": np.asarray(self.base).tolist(), "step": self.step, "max_step": self.max_step,
            "keep_multiples": self.keep_multiples, "keep": normalize_kept_entries(self.keep), "weights": self.weights,
            "time_limit_s": limits.time_limit_s, "gap": limits.gap, "seed": limits.seed,
            "objective": self.objective, "method": self.how,
        }  # fmt: skip


def _round_unbiased(
    run: _RoundingRun, steps: tuple[int, ...], shares_up: ArrayLike | None, *, plain: bool
) -> Candidate:
    """Round towards the random table of salazar2004 (13), with shares from a first run unless given."""
    base, values = int(run.base[0]), run.table.values
    if not (run.base == base).all() or base < 2 or (values != np.rint(values)).any():
        raise InputError("the unbiased objective is for counts and one whole base of at least 2.")
    if base > unbiased.MOST_RESIDUES:
        raise InputError(
            f"the unbiased objective knows bases up to {unbiased.MOST_RESIDUES}: it looks at every pair of residues.",
            hint="round to the nearest, or by coins (objective='coins'), with a base as large as this.",
        )
    rng = draw_for_table(run.key, "round unbiased", run.table)
    if shares_up is not None:
        share = np.asarray(shares_up, np.float64)
        if share.shape not in ((base,), (base, base)) or not ((share >= 0) & (share <= 1)).all():
            raise InputError(
                f"shares_up: {base} shares between 0 and 1 are needed, one per residue 0 .. {base - 1}, "
                f"or {base} x {base} of them."
            )
    else:
        draws = np.eye(base) if plain else unbiased.build_first_draws(base)
        target = _draw_steered_target(run, draws, rng)
        first = replace(run, target=target, limits=run.limits.take_share(0.5)).round_with_least_step(steps)
        if not first.release.published:
            return first
        found = first.release.get_point_values()
        share = (
            unbiased.estimate_plain_shares(values, found, base)
            if plain
            else unbiased.estimate_shares_up(values, target, found, base)
        )
    return replace(
        run, target=_draw_steered_target(run, unbiased.compute_transitions(share), rng)
    ).round_with_least_step(steps)


def _draw_steered_target(run: _RoundingRun, probabilities: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the table to round towards; cells that must be published unchanged stay.

    A sensitive multiple, which must move, is drawn a unit to one side: both sides would be equally near.
    """
    t = run.table
    drawn = unbiased.draw_target_table(t.values, probabilities, rng)
    side = np.where(rng.random(t.n_cells) < 0.5, -1.0, 1.0)
    return np.where(t.fixed, t.values, np.where(run.moved & run.lattice.is_multiple, t.values + side, drawn))


@dataclass(frozen=True, kw_only=True, eq=False)
class _RoundingRun:
    """One search for a rounding: the table and all requirements."""

    problem: Problem
    base: FloatArray
    lattice: Multiples
    needs: tuple[Levels, ...]
    """What is asked against each attacker of the table."""
    keep_multiples: bool
    weights: FloatArray
    limits: Limits
    how: str
    options: Mapping[str, Any]
    key: Key
    """The secret of what is drawn."""
    target: FloatArray | None = None

    @property
    def table(self) -> Table:
        """The table to round."""
        return self.problem.table

    @property
    def has_holes(self) -> bool:
        """Whether a multiple must not stay: coins may decide where it goes."""
        return bool((self.moved & self.lattice.is_multiple & ~self.table.fixed).any())

    def round_with_least_step(self, steps: tuple[int, ...]) -> Candidate:
        """Round with the least step that has a solution."""
        why = ""
        for step in steps:
            problem, outcome = self.search(step)
            if outcome.x is not None:
                return self.get_candidate(step, problem, outcome, self)
            if not outcome.infeasible:
                why = "the limit was reached before a rounding was found."
                if not (outcome.timed_out or self.limits.deadline.passed):
                    why = "the method ended without a rounding; that there is none is not proven."
                return self.build_empty_release(step, Status.TIME_LIMIT, why, outcome.bound)
            why = self.explain_step(step, problem)
        return self.build_empty_release(steps[-1], Status.INFEASIBLE, why)

    def explain_step(self, step: int, problem: RoundingProblem) -> str:
        """Say why there is no rounding with a step, by label."""
        t = self.table
        if not len(problem.impossible):
            reach = "its base" if step == 1 else f"{step} bases"
            return f"no additive table with every cell moved by less than {reach} meets every level."
        cell = int(problem.impossible[0])
        more = f" (and {len(problem.impossible) - 1} more)" if len(problem.impossible) > 1 else ""
        if self.moved[cell] and self.lattice.is_multiple[cell]:
            return (
                f"{t.label(cell)}{more}: the cell is sensitive, so it must change, and no other multiple of "
                f"its base less than {step} bases away leaves its levels open; a larger step, or keep_multiples, does."
            )
        return f"{t.label(cell)}{more}: no multiple of its base less than {step} bases away leaves its levels open."

    def search(self, step: int) -> tuple[RoundingProblem, RoundingOutcome]:
        """Set up the problem for a step, with what each attacker knows and must not learn, and solve it."""
        t = self.table
        bases = Bases(base=self.base, lattice=self.lattice, step=step, unit=get_unit(t))
        demands = build_demands(t, self.needs)
        problem = make_rounding_problem(t, bases, self.weights, demands, self.moved, self.target)
        known = self._get_known(step, problem)
        return problem, round_by_method(problem, demands, self.limits, self.key, method=self.how, known=known)

    def _get_known(self, step: int, problem: RoundingProblem) -> KnownRounding | None:
        """Return the rounding of the last search with the same step and target, if there is one."""
        last = cast("Rounding | None", self.problem.last)
        if last is None or not last.published or last.step != step or self.target is not None:
            return None
        x = np.rint((last.values - problem.floor) / problem.base).astype(np.int64)
        return KnownRounding(x=x, bound=last.bound)

    @property
    def moved(self) -> BoolArray:
        """Cells that must not be published unchanged."""
        return find_demanded_cells(self.table.n_cells, () if self.keep_multiples else self.needs)

    def get_candidate(
        self, step: int, problem: RoundingProblem, outcome: RoundingOutcome, raised: _RoundingRun
    ) -> Candidate:
        """Return the release of what was found, and what a repair goes on from."""
        assert outcome.x is not None  # noqa: S101 - for the type checker: the caller has looked
        state = _RoundingState(step=step, problem=problem, asked=self, raised=raised, bound=outcome.bound)
        return Candidate(release=self.release(step, problem, outcome, outcome.x), problem=self.problem, state=state)

    def release(self, step: int, problem: RoundingProblem, outcome: RoundingOutcome, x: IntArray) -> Rounding:
        values = problem.compute_published(x)
        status = Status.FEASIBLE  # within the requested gap, or what the method leaves
        if outcome.objective - outcome.bound <= 1e-9 * abs(outcome.objective) + 2e-6:
            status = Status.OPTIMAL
        elif outcome.limit and (outcome.timed_out or self.limits.deadline.passed):
            status = Status.TIME_LIMIT
        moved = float(np.abs(values - self.table.values).sum())
        details = {
            "distance": moved, "fractional": outcome.fractional, "cuts": outcome.cuts,
            "plain_rounds": outcome.plain_rounds,
        }  # fmt: skip
        cost, bound = outcome.objective, outcome.bound
        return self._build_release(step, status=status, objective=cost, bound=bound, values=values, details=details)

    def build_empty_release(self, step: int, status: Status, why: str, bound: float = float("nan")) -> Candidate:
        values = np.full(self.table.n_cells, np.nan)
        empty = self._build_release(
            step, status=status, objective=float("nan"), bound=bound, values=values, explanation=why
        )
        return Candidate(release=empty, problem=self.problem)

    def _build_release(self, step: int, **known: Any) -> Rounding:
        return Rounding(
            table=self.table, base=self.base, step=step, keep_multiples=self.keep_multiples,
            seconds={"solve": self.limits.spent_s}, options=self.options, **known,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class _RoundingState:
    """What a repair goes on from."""

    step: int
    problem: RoundingProblem
    asked: _RoundingRun
    """The search as the user asked for it."""
    raised: _RoundingRun
    """The same with the levels of the last repair."""
    bound: float
    """No rounding that meets the requirements is cheaper."""


# ---------------------------------------------------------------------- what the user gave


def _check_rounding_steps(*, step: int | None, max_step: int) -> None:
    for name, value in (("step", step), ("max_step", max_step)):
        if value is not None and (int(value) != value or value < 1):
            raise InputError(f"{name} {value!r}: a whole number of at least 1 is needed.")


def _read_weights(table: Table, weights: str | ArrayLike) -> FloatArray:
    if isinstance(weights, str):
        return table.with_weights(weights).weights
    return table.with_(weights=np.asarray(weights, np.float64)).weights


def _read_bases(table: Table, base: ArrayLike) -> FloatArray:
    """Return a base per cell; refuse what cannot be one."""
    given = np.asarray(base, dtype=np.float64)
    if given.ndim and given.shape != (table.n_cells,):
        raise InputError(
            f"{given.size} bases were given for {table.n_cells} cells.", hint="give one base, or one per cell."
        )
    bases = np.broadcast_to(given, table.n_cells).copy()
    bad = ~(np.isfinite(bases) & (bases > 0))
    if bad.any():
        which = "the base" if given.ndim == 0 else f"the base of {table.label(int(np.argmax(bad)))}"
        shown = float(bases[np.argmax(bad)])
        raise InputError(f"{which} is {shown:g}; a positive number is needed.")
    of_base, of_values = count_decimals(bases), count_decimals(table.values, noise=True)
    if of_base is None:
        raise InputError(
            "a base has more than nine decimals.", hint="multiples are decimals, and must be distinguishable."
        )
    if of_values is not None and of_base > of_values:
        raise InputError(
            "the base has more decimals than the values.",
            hint="every value then is a multiple, or next to one; take a base with as many decimals at most.",
        )
    return bases


def _split_values(table: Table, bases: FloatArray, steps: int) -> Multiples:
    """Write the values as multiples of their bases; refuse what whole numbers cannot hold."""
    found, large = split_into_multiples(table.values, bases, slack=steps)
    what = "the value is too large: multiples are exact up to 2^53 units only."
    refuse_cells(table, large, what, "give the table in a larger unit, such as thousands.")
    what = "the cell must be published unchanged, but is no multiple of its base."
    refuse_cells(table, table.fixed & ~found.is_multiple, what, "let it be rounded, or give it a base of its own.")
    return found


def _check_rounding_levels(table: Table, base: FloatArray, needs: tuple[Levels, ...], step: int) -> None:
    """Refuse levels that no rounding with this base can meet."""
    what = (
        f"rounding can leave: max(sliding, lower + upper) must be at most 2 x base{'' if step == 1 else f' x {step}'}"
    )
    hint = "take a larger base for it, or lower its levels; a job without a base takes the least usual one that fits."
    distance = compute_reach(base, step, get_unit(table))
    refuse_wide_demands(table, needs, distance, f"{what}, less a unit on both sides.", hint)

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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.numbers.multiples import Multiples, decimals_of_numbers, multiples_of_bases
from cellguard._engine.threads import on_one_blas_thread
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.methods.confirm import ATTEMPTS, cells_not_confirmed, levels_raised_to_confirm
from cellguard.methods.cross import against_the_cross
from cellguard.methods.demands import demanded_cells, demanded_levels, demands_of, refuse_wide_demands
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.method import method_options_in_any_case
from cellguard.methods.respondents import against_respondents
from cellguard.methods.round import METHOD, unbiased
from cellguard.methods.round.choose import round_by_method
from cellguard.methods.round.exact import RoundingOutcome
from cellguard.methods.round.problem import Bases, RoundingProblem, make_rounding_problem, reach_of_rounding_steps
from cellguard.nouns.checks import refuse_cells
from cellguard.nouns.kept import Keep, kept_cells, plain_kept_entries, table_with_kept_known
from cellguard.nouns.levels import Levels, table_with_respondent_attackers
from cellguard.nouns.publication import table_or_publication
from cellguard.nouns.release import Rounding, Status, unit_of_table
from cellguard.nouns.table import Table

__all__ = ["round"]


@method_options_in_any_case(METHOD)
@table_or_publication
@against_the_cross()
@against_respondents(near=False)
@on_one_blas_thread
def round(  # noqa: A001 - the verb of the methodology; the builtin is not used in this module
    table: Table,
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
    threads: int = 1,
    progress: Progress | None = None,
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
        one whole base only, and each seed gives another table. ``"coins"`` rounds towards each cell's own
        unbiased coin, phi(a), which the paper found worse.
    method
        ``"exact"`` is branch-and-bound with a proof; ``"areas"`` is for large tables over areas (or slices) and two
        more dimensions, with a bound; ``"auto"`` takes what fits, or one after the other.
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
        to another multiple, because a sensitive cell is never published as it is; with step 1 it cannot.
    keep
        Totals and margins that go to the multiple nearest to them, as who rounds by himself would: ``"total"``, a
        dimension or several, codes of a cell. Everybody knows it, so an attacker finds them within half a base.
        Sensitive cells of a margin are rounded like others.
    weights
        Price of a unit of distance: the table's weights, ``"unit"``, ``"inverse"``, ``"value"``, ..., or
        one number per cell. Distance (2) of salazar2004 has unit weights.
    time_limit_s, gap
        When to stop: after so many seconds, or as soon as the distance is proven to be within this
        share of the least possible.
    seed
        Decides between equals.
    threads
        Processor cores for the solver.
    progress
        Called with the objective and its proven bound whenever a closer rounding is found.

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
    limits = Limits(time_limit_s=time_limit_s, gap=gap, seed=seed, threads=threads, progress=progress)
    _check_rounding_steps(step=step, max_step=max_step)
    METHOD.require_choices(objective=objective, method=method)
    bases = _rounding_bases(table, base)
    kept = table_with_kept_known(table, bases, kept_cells(table, keep) & ~table.fixed)
    table = table_with_respondent_attackers(kept)  # what changed may drop them
    needs = demanded_levels(table)
    _check_rounding_levels(table, bases, needs, step or 1)
    options = {
        "base": np.asarray(base).tolist(), "step": step, "max_step": max_step, "keep_multiples": keep_multiples,
        "keep": plain_kept_entries(keep), "weights": weights, "time_limit_s": time_limit_s, "gap": gap, "seed": seed,
        "objective": objective, "method": method,
    }  # fmt: skip
    run = _RoundingRun(
        table=table, base=bases, lattice=_multiples_to_round_to(table, bases, step or max_step), needs=needs,
        keep_multiples=keep_multiples, weights=_rounding_weights_given(table, weights), limits=limits, method=method,
        options=options,
    )  # fmt: skip
    steps = (step,) if step is not None else tuple(range(1, max_step + 1))
    if objective == "unbiased":
        return _rounded_unbiased(run, steps, shares_up)
    if objective == "coins":
        run = replace(
            run, target=np.where(table.fixed, table.values, unbiased.rounded_by_coin(table.values, bases, seed))
        )
    return run.first_of(steps)


def _rounded_unbiased(run: _RoundingRun, steps: tuple[int, ...], shares_up: ArrayLike | None) -> Rounding:
    """Round towards the random table of salazar2004 (13), with shares from a first run unless given."""
    base, values = int(run.base[0]), run.table.values
    if not (run.base == base).all() or base < 2 or (values != np.rint(values)).any():
        raise InputError("the unbiased objective is for counts and one whole base of at least 2.")
    if base > unbiased.MOST_RESIDUES:
        raise InputError(
            f"the unbiased objective knows bases up to {unbiased.MOST_RESIDUES}: it looks at every pair of residues.",
            hint="round to the nearest, or by coins (objective='coins'), with a base as large as this.",
        )
    rng = np.random.default_rng(run.limits.seed)
    if shares_up is not None:
        share = np.asarray(shares_up, np.float64)
        if share.shape not in ((base,), (base, base)) or not ((share >= 0) & (share <= 1)).all():
            raise InputError(
                f"shares_up: {base} shares between 0 and 1 are needed, one per residue 0 .. {base - 1}, "
                f"or {base} x {base} of them."
            )
    else:
        target = _steered_rounding(run, unbiased.first_residues_to_round(base), rng)
        first = replace(run, target=target, limits=run.limits.part(0.5)).first_of(steps)
        if not first.published:
            return first
        share = unbiased.rounding_shares_of_residues(values, target, first.values, base)
    return replace(run, target=_steered_rounding(run, unbiased.transition_of_residues(share), rng)).first_of(steps)


def _steered_rounding(run: _RoundingRun, probabilities: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the table to round towards; cells that must be published as they are stay.

    A sensitive multiple, which must move, is drawn a unit to one side: both sides would be equally near.
    """
    t = run.table
    drawn = unbiased.steered_to_round(t.values, probabilities, rng)
    side = np.where(rng.random(t.n_cells) < 0.5, -1.0, 1.0)
    return np.where(t.fixed, t.values, np.where(run.moved & run.lattice.is_multiple, t.values + side, drawn))


@dataclass(frozen=True, kw_only=True, eq=False)
class _RoundingRun:
    """One call of the verb: the table, and everything that was asked for."""

    table: Table
    base: FloatArray
    lattice: Multiples
    needs: tuple[Levels, ...]
    """What is asked against each attacker of the table."""
    keep_multiples: bool
    weights: FloatArray
    limits: Limits
    method: str
    options: Mapping[str, Any]
    target: FloatArray | None = None

    def first_of(self, steps: tuple[int, ...]) -> Rounding:
        """Round with the least step that has a solution."""
        why = ""
        for step in steps:
            problem, outcome = self.search(step)
            if outcome.x is not None:
                return self.confirmed(step, problem, outcome)
            if not outcome.infeasible:
                why = "the limit was reached before a rounding was found."
                if not self.limits.deadline.passed:
                    why = "the method ended without a rounding; that there is none is not proven."
                return self.nothing(step, Status.TIME_LIMIT, why, outcome.bound)
            why = self.why_not(step, problem)
        return self.nothing(steps[-1], Status.INFEASIBLE, why)

    def why_not(self, step: int, problem: RoundingProblem) -> str:
        """Say why there is no rounding with a step, by label."""
        t = self.table
        if not len(problem.impossible):
            reach = "its base" if step == 1 else f"{step} bases"
            return f"no additive table with every cell moved by less than {reach} meets every level."
        cell = int(problem.impossible[0])
        more = f" (and {len(problem.impossible) - 1} more)" if len(problem.impossible) > 1 else ""
        if self.moved[cell] and self.lattice.is_multiple[cell]:
            return (
                f"{t.label(cell)}{more}: the cell is sensitive, so it must not stay as it is, and no other multiple of "
                f"its base less than {step} bases away leaves its levels open; a larger step, or keep_multiples, does."
            )
        return f"{t.label(cell)}{more}: no multiple of its base less than {step} bases away leaves its levels open."

    def search(self, step: int) -> tuple[RoundingProblem, RoundingOutcome]:
        """Set up the problem for a step, with what each attacker knows and must not learn, and solve it."""
        t = self.table
        bases = Bases(base=self.base, lattice=self.lattice, step=step, unit=unit_of_table(t))
        demands = demands_of(t, self.needs)
        problem = make_rounding_problem(t, bases, self.weights, demands, self.moved, self.target)
        return problem, round_by_method(problem, demands, self.limits, method=self.method)

    @property
    def moved(self) -> BoolArray:
        """Cells that must not be published as they are."""
        return demanded_cells(self.table.n_cells, () if self.keep_multiples else self.needs)

    def confirmed(self, step: int, problem: RoundingProblem, outcome: RoundingOutcome) -> Rounding:
        """Return the rounding once the audit accepts it; what it misses is asked for again, with a margin."""
        run = self
        for _ in range(ATTEMPTS):
            if outcome.x is None:
                break
            release = self.release(step, problem, outcome, outcome.x)
            left = cells_not_confirmed(release, self.limits)
            if not left:
                return release
            if self.limits.deadline.passed:
                break
            run = replace(run, needs=levels_raised_to_confirm(run.needs, left, integer=self.table.integer))
            proven = outcome.bound  # of what was asked for; more was asked of what follows
            _, outcome = run.search(step)
            outcome = replace(outcome, bound=min(proven, outcome.bound))
        return self.nothing(step, Status.TIME_LIMIT, "no rounding was found that the audit accepts.")

    def release(self, step: int, problem: RoundingProblem, outcome: RoundingOutcome, x: IntArray) -> Rounding:
        values = problem.published(x)
        status = Status.FEASIBLE  # within the gap that was asked for, or what the method leaves
        if outcome.objective - outcome.bound <= 1e-9 * abs(outcome.objective) + 2e-6:
            status = Status.OPTIMAL
        elif outcome.limit and self.limits.deadline.passed:
            status = Status.TIME_LIMIT
        moved = float(np.abs(values - self.table.values).sum())
        details = {"distance": moved, "fractional": outcome.fractional, "cuts": outcome.cuts}
        cost, bound = outcome.objective, outcome.bound
        return self._made(step, status=status, objective=cost, bound=bound, values=values, details=details)

    def nothing(self, step: int, status: Status, why: str, bound: float = float("nan")) -> Rounding:
        values = np.full(self.table.n_cells, np.nan)
        return self._made(step, status=status, objective=float("nan"), bound=bound, values=values, explanation=why)

    def _made(self, step: int, **known: Any) -> Rounding:
        return Rounding(
            table=self.table, base=self.base, step=step, keep_multiples=self.keep_multiples,
            seconds={"solve": self.limits.spent_s}, options=self.options, **known,
        )  # fmt: skip


# ---------------------------------------------------------------------- what the user gave


def _check_rounding_steps(*, step: int | None, max_step: int) -> None:
    for name, value in (("step", step), ("max_step", max_step)):
        if value is not None and (int(value) != value or value < 1):
            raise InputError(f"{name} {value!r}: a whole number of at least 1 is needed.")


def _rounding_weights_given(table: Table, weights: str | ArrayLike) -> FloatArray:
    if isinstance(weights, str):
        return table.with_weights(weights).weights
    return table.with_(weights=np.asarray(weights, np.float64)).weights


def _rounding_bases(table: Table, base: ArrayLike) -> FloatArray:
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
    of_base, of_values = decimals_of_numbers(bases), decimals_of_numbers(table.values, noise=True)
    if of_base is None:
        raise InputError("a base has more than nine decimals.", hint="multiples are decimals, and must be told apart.")
    if of_values is not None and of_base > of_values:
        raise InputError(
            "the base has more decimals than the values.",
            hint="every value then is a multiple, or next to one; take a base with as many decimals at most.",
        )
    return bases


def _multiples_to_round_to(table: Table, bases: FloatArray, steps: int) -> Multiples:
    """Write the values as multiples of their bases; refuse what whole numbers cannot hold."""
    found, large = multiples_of_bases(table.values, bases, room=steps)
    what = "the value is too large: multiples are told exactly up to 2^53 units only."
    refuse_cells(table, large, what, "give the table in a larger unit, such as thousands.")
    what = "the cell must be published as it is, but is no multiple of its base."
    refuse_cells(table, table.fixed & ~found.is_multiple, what, "let it be rounded, or give it a base of its own.")
    return found


def _check_rounding_levels(table: Table, base: FloatArray, needs: tuple[Levels, ...], step: int) -> None:
    """Refuse levels that no rounding with this base can meet."""
    what = (
        f"rounding can leave: max(sliding, lower + upper) must be at most 2 x base{'' if step == 1 else f' x {step}'}"
    )
    hint = "take a larger base for it, or lower its levels; a job without a base takes the least usual one that fits."
    distance = reach_of_rounding_steps(base, step, unit_of_table(table))
    refuse_wide_demands(table, needs, distance, f"{what}, less a unit on both sides.", hint)

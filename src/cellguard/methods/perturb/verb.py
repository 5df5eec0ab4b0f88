"""Cell perturbation: every cell moves a little and the table stays additive (salazar2004 section 4).

What is published: the values, and the distance of each cell (the base, where one was given). The rule is
that no cell moves farther than its distance, and nothing else: an attacker finds each cell within
``v -/+ r``, intersected with what he knew before. Where a cell is drawn to is decided by coins whose
seed is secret, so that what is published does not tell on which side of it the truth lies, nor how near.
A sensitive cell is never published as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.numbers.multiples import decimals_of_numbers, residuals_of_decimal_numbers
from cellguard._engine.space.reduce import reduce
from cellguard._engine.threads import on_one_blas_thread
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError
from cellguard.methods.confirm import ATTEMPTS, cells_not_confirmed, levels_raised_to_confirm
from cellguard.methods.cross import against_the_cross
from cellguard.methods.demands import Demand, demanded_cells, demanded_levels, demands_of, refuse_wide_demands
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.method import method_options_in_any_case
from cellguard.methods.perturb import METHOD, cell_limits
from cellguard.methods.perturb.cell_limits import CellLimits
from cellguard.methods.perturb.cutting import PerturbationOutcome, perturb_by_cuts
from cellguard.methods.respondents import against_respondents
from cellguard.nouns.checks import additivity_residuals
from cellguard.nouns.levels import Levels
from cellguard.nouns.publication import table_or_publication
from cellguard.nouns.release import Perturbation, Status, unit_of_table
from cellguard.nouns.table import Table

__all__ = ["perturb"]


@method_options_in_any_case(METHOD)
@table_or_publication
@against_the_cross()
@against_respondents(near=False)
@on_one_blas_thread
def perturb(
    table: Table,
    base: ArrayLike | None = None,
    *,
    distance: ArrayLike | None = None,
    draw: str = "random",
    round_sensitive: bool = False,
    given: Mapping[Any, float] | Sequence[tuple[Any, float]] | None = None,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    seed: int = 0,
    threads: int = 1,
    progress: Progress | None = None,
) -> Perturbation:
    """Publish an additive table near the truth; what is published of each cell leaves its levels open.

    No cell moves farther than its base, or its distance, which is published. With a base it is drawn to one
    of the multiples next to it, by coins that make the mean movement 0; with a distance to anything
    within it. A sensitive cell is never published as it is, and cells of a table of counts are published
    as whole numbers.

    Parameters
    ----------
    table
        The table; its weights are the loss per unit of distance from where a cell is drawn to.
    base
        One base or one per cell (5 unless `distance` is given).
    distance
        One distance or one per cell, instead of a base.
    draw
        ``"random"``; or as in salazar2004 section 4: ``"nearest"``, to the nearest multiple; ``"relaxation"``, the
        rounding problem without whole numbers, which never costs more than rounding; ``"truth"``, every cell
        as near to itself as it may be. Who knows that guesses well: a multiple is mostly half a base from the
        truth, or the truth is what is published.
    round_sensitive
        Sensitive cells take one of their two multiples (constraints (1) of the paper, for them only).
    given
        Values that are prescribed: a cell's index, or its codes in the order of the dimensions, and its value; or
        pairs of them.
    time_limit_s
        Stop after this.
    seed
        Of the coins: keep it secret.
    threads
        Taken by every verb; the work of this one is not shared.
    progress
        Called with the loss and its proven bound when there is a perturbation.

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([21, 52, 73], [[2, 0, 1]], sensitive=[0], lower=[1], upper=[3])
    >>> release = cg.perturb(table, base=5)
    >>> bool(abs(release.values[0] + release.values[1] - release.values[2]) < 1e-9)
    True
    >>> bool(release.values[0] != 21)
    True
    """
    limits = Limits(time_limit_s=time_limit_s, seed=seed, threads=threads, progress=progress)
    if base is not None and distance is not None:
        raise InputError("base and distance are two ways to say the same.", hint="give one of them.")
    METHOD.require_choices(draw=draw)
    if distance is not None and (round_sensitive or draw in ("nearest", "relaxation")):
        raise InputError("cells are rounded to multiples of a base, and there is none.", hint="give a base.")
    bases = (
        None
        if distance is not None
        else _numbers_per_perturbed_cell(5.0 if base is None else base, table, "base", positive=True)
    )
    room = bases if bases is not None else _numbers_per_perturbed_cell(distance, table, "distance", positive=False)
    options = {"draw": draw, "round_sensitive": round_sensitive, "time_limit_s": time_limit_s, "seed": seed}
    name = "distance" if bases is None else "base"
    options[name] = float(room[0]) if len(room) and np.ptp(room) == 0 else room.tolist()
    prescribed = cell_limits.prescribed_perturbation(table, given or {})
    if given:
        which = np.flatnonzero(np.isfinite(prescribed))
        options["given"] = [[int(i), float(table.values[i] + prescribed[i])] for i in which]
    run = _PerturbationRun(
        table=table,
        needs=demanded_levels(table),
        distance=room,
        base=bases,
        draw=draw,
        given=prescribed,
        round_sensitive=round_sensitive,
        limits=limits,
        options=options,
    )
    what = "twice the distance that is published, so no perturbation can meet them."
    hint = "raise the base or distance of this cell to at least half of max(sliding, lower + upper)."
    refuse_wide_demands(table, run.needs, np.where(table.fixed, 0.0, run.reach), what, hint)
    cell_limits.refuse_prescribed_perturbation(table, run.given, run.reach, run.moved)
    return run.confirmed()


def _numbers_per_perturbed_cell(given: ArrayLike | None, table: Table, name: str, *, positive: bool) -> FloatArray:
    array = np.asarray(given, np.float64)
    if array.ndim and array.shape != (table.n_cells,):
        raise InputError(
            f"{name}: {array.size} numbers given for {table.n_cells} cells.", hint="give one number, or one per cell."
        )
    out = np.broadcast_to(array, table.n_cells).copy()
    bad = ~np.isfinite(out) | (out <= 0 if positive else out < 0)
    if bad.any():
        least = "above 0" if positive else "of at least 0"
        raise InputError(f"{name} of {table.label(int(np.argmax(bad)))}: a finite number {least} is needed.")
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class _PerturbationRun:
    """One call of the verb: the table, and everything that was asked for."""

    table: Table
    needs: tuple[Levels, ...]
    """What is asked against each attacker of the table."""
    distance: FloatArray
    """As it is published."""
    base: FloatArray | None
    draw: str
    given: FloatArray
    """Movements that are prescribed, NaN for the other cells."""
    round_sensitive: bool
    limits: Limits
    options: dict[str, object]

    @property
    def reach(self) -> FloatArray:
        """How far the truth may lie from what is published: the distance, of counts its whole part."""
        return np.floor(self.distance + 1e-9) if self.table.integer else self.distance

    @property
    def moved(self) -> BoolArray:
        """Cells that must not be published as they are."""
        return demanded_cells(self.table.n_cells, self.needs)

    def drawn_limits(self, demands: list[Demand]) -> CellLimits:
        """Draw where every cell should go."""
        t, unit = self.table, unit_of_table(self.table)
        rng = np.random.default_rng(self.limits.seed)
        other = None
        if self.draw == "truth":
            target = np.zeros(t.n_cells)
        elif self.draw == "relaxation" and self.base is not None:
            target, other = cell_limits.both_perturbed_multiples(t.values, self.base)
        elif self.base is None:
            target = cell_limits.perturb_within_distance(np.where(t.fixed, 0.0, self.reach), unit, rng)
        else:
            nearest = self.draw == "nearest"
            target = cell_limits.perturb_to_multiples(t.values, self.base, self.moved, rng, nearest=nearest)
            target = np.rint(target / unit) * unit if unit else target
        drawn = cell_limits.Drawn(distance=self.reach, target=target, unit=unit, other=other, given=self.given)
        return cell_limits.limits_of_perturbation(t, demands, drawn, rng)

    def loss(self, limits: CellLimits, movement: FloatArray) -> float:
        """What movements cost: their distance from where cells are drawn, or that of rounding, relaxed."""
        if self.draw != "relaxation" or self.base is None:
            return float(self.table.weights @ np.abs(movement - limits.target))
        both = cell_limits.both_perturbed_multiples(self.table.values, self.base)
        return float(self.table.weights @ cell_limits.relaxed_perturbation_distance(movement, *both))

    def rounded(self) -> FloatArray | None:
        """Return the two multiples that sensitive cells may take, as movements; None if they need not."""
        if not self.round_sensitive or self.base is None:
            return None
        a, r = self.table.values, self.base
        rest = a - np.floor(a / r + 1e-12) * r
        down = np.where(rest <= 1e-9 * r, r, rest)
        both = np.stack([-down, r - rest])
        return np.where(self.moved & ~self.table.fixed, both, np.nan)

    # ------------------------------------------------------------------ results

    def confirmed(self) -> Perturbation:
        """Return the perturbation once the audit accepts it; what it misses is asked for with a margin."""
        run, t = self, self.table
        proven = float("inf")
        for _ in range(ATTEMPTS):
            demands = demands_of(t, run.needs)
            limits = run.drawn_limits(demands)
            outcome = perturb_by_cuts(t, limits, demands, self.limits.deadline, rounded=run.rounded())
            if outcome.movement is None:
                status = Status.INFEASIBLE if outcome.infeasible and run is self else Status.TIME_LIMIT
                return self.nothing(status, self.explain(limits, outcome), outcome)
            release = self.release(limits, outcome, outcome.movement, proven)
            left = cells_not_confirmed(release, self.limits)
            if not left:
                self.limits.tell(release.objective, release.bound)
                return release
            if self.limits.deadline.passed:
                break
            proven = release.bound  # of what was asked for; more is asked of what follows
            run = replace(run, needs=levels_raised_to_confirm(run.needs, left, integer=t.integer))
        return self.nothing(Status.TIME_LIMIT, "no perturbation was found that the audit accepts.", outcome)

    def release(
        self, limits: CellLimits, outcome: PerturbationOutcome, movement: FloatArray, proven: float
    ) -> Perturbation:
        """Return what the search found; no perturbation that was asked for is cheaper than what is proven."""
        t = self.table
        values = _additive_perturbation(t, limits, movement)
        objective = self.loss(limits, values - t.values)
        bound = min(self.loss(limits, outcome.start) + outcome.bound, proven)
        optimal = objective - bound <= 1e-6 * max(1.0, abs(bound))
        status = Status.OPTIMAL if optimal else Status.FEASIBLE
        return self._made(outcome, status=status, objective=objective, bound=min(bound, objective), values=values)

    def nothing(self, status: Status, why: str, outcome: PerturbationOutcome) -> Perturbation:
        values = np.full(self.table.n_cells, np.nan)
        return self._made(outcome, status=status, objective=float("nan"), values=values, explanation=why)

    def _made(self, outcome: PerturbationOutcome, **known: Any) -> Perturbation:
        """Return a release: the published distance of each cell is 0 for those that had to stay."""
        return Perturbation(
            table=self.table, seconds={"solve": self.limits.spent_s}, options=self.options,
            details={"cuts": outcome.cuts, "rounds": outcome.rounds}, base=self.base,
            distance=np.where(self.table.fixed, 0.0, self.distance), **known,
        )  # fmt: skip

    def explain(self, limits: CellLimits, outcome: PerturbationOutcome) -> str:
        """Name what stands against a perturbation."""
        t = self.table
        if not outcome.infeasible:
            if not self.limits.deadline.passed:
                return "no perturbation in whole numbers was found; that there is none is not proven."
            return "the limit was reached before a perturbation was found."
        empty = np.flatnonzero(limits.impossible | limits.sided().impossible)
        if len(empty):
            return (
                f"{t.label(int(empty[0]))}: its levels cannot be met within its limits by a value that is not its own."
            )
        if len(outcome.cells):
            cells = ", ".join(t.label(int(c)) for c in outcome.cells[:5])
            return f"no additive table within the limits meets the levels of {cells} together; raise the base there."
        return "no additive table lies within the limits; raise the base."


def _additive_perturbation(table: Table, limits: CellLimits, z: FloatArray) -> FloatArray:
    """Values of the published table: on the grid of the true ones where they are, and additive."""
    values = table.values + z
    digits = 0 if table.integer else decimals_of_numbers(table.values, noise=True)
    if digits is not None:  # decimals of the published values tell no more than those of the true ones
        snapped = np.rint(values * 10.0**digits) / 10.0**digits
        exact = residuals_of_decimal_numbers(table.relations, table.rhs, snapped, digits)
        noise = 1e-6 * np.maximum(10.0**-digits, 1e-6 * np.abs(values))
        if exact is not None and not exact.any() and (np.abs(snapped - values) <= noise).all():
            return snapped
    residual, allowed = additivity_residuals(table.relations, table.rhs, values)
    if (np.abs(residual) <= allowed * 0.1).all():
        return values
    # what rounding left in the relations is moved out of the parameters' cells
    reduction = reduce(table.relations, limits.moving)
    return np.asarray(table.values + reduction.basis @ z[reduction.parameters])

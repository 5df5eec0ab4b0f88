"""Cell perturbation: every cell moves a little and the table stays additive (salazar2004 section 4).

The release publishes the values and the distance of each cell (the base, if one was given). The only rule is
that no cell moves farther than its distance: an attacker finds each cell within ``v -/+ r``, intersected with what they
knew before. Coins with a secret key decide where a cell is drawn to, so that what is published does not reveal on
which side of it the truth lies, nor how near. A sensitive cell is never published unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.numbers.multiples import compute_exact_residuals, count_decimals
from cellguard._engine.space.reduce import reduce
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError
from cellguard.methods.attempt import list_missed_cells, raise_levels
from cellguard.methods.demands import (
    Demand,
    build_demands,
    find_demanded_cells,
    list_required_levels,
    refuse_wide_demands,
)
from cellguard.methods.keys import draw_for_table, refuse_seed_as_secret, take_key
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, Limits, Progress
from cellguard.methods.perturb import METHOD, cell_limits
from cellguard.methods.perturb.by_areas import perturb_by_areas
from cellguard.methods.perturb.cell_limits import CellLimits
from cellguard.methods.perturb.cutting import PerturbationOutcome, perturb_by_cuts
from cellguard.methods.procedure import Candidate, Problem, Procedure
from cellguard.methods.protection import Protection
from cellguard.model.areas import Areas, split_into_areas
from cellguard.model.checks import compute_residuals_and_noise
from cellguard.model.key import Key, KeyGiven
from cellguard.model.levels import Levels
from cellguard.model.table import Table
from cellguard.model.units import get_unit
from cellguard.release.base import SMALL_BESIDE_BASE
from cellguard.release.release import Perturbation, Status

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit
    from cellguard.methods.method import Method
    from cellguard.model.linked.clusters import Keeper
    from cellguard.model.linked.publication import Publication

__all__ = ["PerturbProcedure", "perturb"]


def perturb(
    table: Table | Publication,
    base: ArrayLike | None = None,
    *,
    distance: ArrayLike | None = None,
    draw: str = "random",
    between: bool = False,
    round_sensitive: bool = False,
    given: Mapping[Any, float] | Sequence[tuple[Any, float]] | None = None,
    areas: str | None = None,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    seed: int = 0,
    key: KeyGiven | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
    insiders: bool | None = None,
) -> Perturbation:
    """Publish an additive table near the truth that leaves the levels of each cell open.

    No cell moves farther than its base, or its distance, which is published. With a base, a cell is drawn to one
    of the adjacent multiples, by coins that make the mean movement 0; with a distance, to anything
    within it. A sensitive cell is never published unchanged, and cells of a table of counts are published
    as whole numbers.

    Parameters
    ----------
    table
        The table; its weights are the loss per unit of distance from the point to which a cell is drawn.
    base
        One base or one per cell (by default 5, unless `distance` is given).
    distance
        One distance or one per cell, instead of a base.
    draw
        ``"random"``; or as in salazar2004 section 4: ``"nearest"``, to the nearest multiple; ``"relaxation"``, the
        rounding problem without whole numbers, which never costs more than rounding; ``"truth"``, every cell
        as near to itself as allowed. An attacker who knows that guesses well: a multiple is mostly half a base from
        the truth, or the truth is what is published.
    between
        Every cell stays between the adjacent multiples, salazar2004 (12). Attackers who know the rule find each cell
        between two multiples, half of the published range. The audit uses this, so most tables need a larger base.
    round_sensitive
        Sensitive cells take one of their two multiples (constraints (1) of the paper, for them only).
    given
        Values that are prescribed: a cell's index, or its codes in the order of the dimensions, and its value; or
        pairs of them.
    areas
        A dimension: perturb each of its finest codes separately and add them up, for tables too large for one
        program (salazar2004 section 5). The distance of a sum is the sum of the distances of its parts.
    time_limit_s
        Stop after this.
    seed
        Refused: a seed is not a secret, and this method draws only secrets.
    key
        The secret of the coins: a :class:`cellguard.Key`, at least 16 bytes, or the file that holds
        them. By default drawn from the operating system; ``options["key"]`` has it. The same key gives the same
        release.
    threads
        Accepted by every method; this one uses one thread.
    progress
        Called with the loss and its proven bound when there is a perturbation.
    keeper
        Keeps the release of each cluster of a publication when it is finished
        (:class:`cellguard.model.linked.clusters.Keeper`).
    insiders
        Whether respondents are attackers too: True, False, or as the table says (`Table.insiders`).

    Examples
    --------
    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([21, 52, 73], [[2, 0, 1]], sensitive=[0], lower=[1], upper=[3])
    >>> release = cg.perturb(table, base=5)  # a key is drawn
    >>> bool(abs(release.values[0] + release.values[1] - release.values[2]) < 1e-9)
    True
    >>> bool(release.values[0] != 21)
    True
    """
    procedure = PerturbProcedure(
        base=base, distance=distance, draw=METHOD.match_choice("draw", draw), between=between,
        round_sensitive=round_sensitive, given=given, areas=areas, key=take_key(key),
    )  # fmt: skip
    refuse_seed_as_secret(METHOD, {"seed": seed})
    limits = Limits(time_limit_s=time_limit_s, seed=seed, threads=threads, progress=progress)
    release = Protection(procedure=procedure, limits=limits, keeper=keeper, insiders=insiders).run(table)
    return cast("Perturbation", release)


@dataclass(frozen=True, kw_only=True, eq=False)
class PerturbProcedure(Procedure):
    """Perturb a table; where the audit finds a missed level, require more and perturb again."""

    method: ClassVar[Method] = METHOD
    not_confirmed: ClassVar[str] = "no perturbation was found that the audit accepts."

    base: ArrayLike | None = None
    distance: ArrayLike | None = None
    draw: str = "random"
    between: bool = False
    round_sensitive: bool = False
    given: Mapping[Any, float] | Sequence[tuple[Any, float]] | None = None
    areas: str | None = None
    key: Key = field(default_factory=Key.draw)
    """The secret of the draws; the same for all clusters of a publication."""

    def prepare(self, table: Table) -> Table:
        """Refuse options that contradict each other; return the table unchanged."""
        if self.base is not None and self.distance is not None:
            raise InputError("base and distance cannot be combined.", hint="give one of them.")
        METHOD.require_choices(draw=self.draw)
        rounds = self.between or self.round_sensitive or self.draw in ("nearest", "relaxation")
        if self.distance is not None and rounds:
            raise InputError("cells are rounded to multiples of a base, and there is none.", hint="give a base.")
        if self.areas is not None and (self.between or self.round_sensitive):
            raise InputError(
                "areas: sums of areas are not rounded, so between and round_sensitive cannot hold for them.",
                hint="leave them out, or perturb the whole table.",
            )
        return table

    def solve(self, problem: Problem, limits: Limits) -> Candidate:
        """Return the additive table nearest to where the cells were drawn."""
        table = problem.table
        bases = None
        if self.distance is None:
            base = 5.0 if self.base is None else self.base
            bases = _read_numbers_per_cell(base, table, "base", positive=True)
        far = _read_numbers_per_cell(self.distance, table, "distance", positive=False) if bases is None else bases
        prescribed = cell_limits.read_prescribed_movements(table, self.given or {})
        options = self._collect_options(table, limits, far, prescribed)
        areas = None if self.areas is None else split_into_areas(table, self.areas)
        if areas is not None:
            _refuse_prescribed_sums(table, areas, prescribed)
            far = areas.add_up(np.floor(far + 1e-9) if table.integer else far)
        run = _PerturbationRun(
            problem=problem, needs=list_required_levels(table), distance=far, base=bases, draw=self.draw,
            between=self.between, given=prescribed, round_sensitive=self.round_sensitive, limits=limits, key=self.key,
            options=options, areas=areas,
        )  # fmt: skip
        what = "twice the distance that is published, so no perturbation can meet them."
        hint = "raise the base or distance of this cell to at least half of max(sliding, lower + upper)."
        refuse_wide_demands(table, run.needs, np.where(table.fixed, 0.0, run.reach), what, hint)
        cell_limits.refuse_prescribed_perturbation(table, run.given, run.reach, run.moved)
        return run.search(run)

    def repair(self, candidate: Candidate, findings: Audit, limits: Limits) -> Candidate | None:
        """Require slightly more where the audit missed a level, and perturb again."""
        if findings.with_cross:  # more slack in the published numbers does not change what the cross reveals
            return None
        asked, raised = candidate.state
        missed = list_missed_cells(candidate.release.table, findings)
        needs = raise_levels(raised.needs, missed, integer=bool(candidate.release.table.whole_cells.any()))
        again = asked.search(replace(raised, needs=needs, limits=limits), candidate.release.bound)
        return again if again.release.published else None

    def _collect_options(self, table: Table, limits: Limits, far: FloatArray, prescribed: FloatArray) -> dict[str, Any]:
        """Return the options that make the release again."""
        options: dict[str, Any] = {
            "draw": self.draw, "round_sensitive": self.round_sensitive, "time_limit_s": limits.time_limit_s,
            "key": self.key,
        }  # fmt: skip
        if self.between:
            options["between"] = True
        if self.areas is not None:
            options["areas"] = self.areas
        name = "base" if self.distance is None else "distance"
        options[name] = float(far[0]) if len(far) and np.ptp(far) == 0 else far.tolist()
        if self.given:
            which = np.flatnonzero(np.isfinite(prescribed))
            options["given"] = [[int(i), float(table.values[i] + prescribed[i])] for i in which]
        return options


def _refuse_prescribed_sums(table: Table, areas: Areas, prescribed: FloatArray) -> None:
    """Refuse a sum of areas whose value is prescribed or must stay: its areas are drawn without it."""
    movable = areas.add_up(np.where(table.fixed, 0.0, 1.0)) > 0
    bad = ~areas.finest & movable & (table.fixed | np.isfinite(prescribed))
    if bad.any():
        raise InputError(
            f"areas: {table.label(int(np.argmax(bad)))} is a sum of areas, and its value is prescribed.",
            hint="perturb the whole table, or leave the sum free.",
        )


def _read_numbers_per_cell(given: ArrayLike | None, table: Table, name: str, *, positive: bool) -> FloatArray:
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
    """One search for a perturbation: the table, and all its requirements."""

    problem: Problem
    needs: tuple[Levels, ...]
    """What must be protected against each attacker of the table."""
    distance: FloatArray
    """The published distance."""
    base: FloatArray | None
    draw: str
    between: bool
    """Whether cells stay between the adjacent multiples."""
    given: FloatArray
    """Movements that are prescribed, NaN for the other cells."""
    round_sensitive: bool
    limits: Limits
    key: Key
    """The secret of the coins."""
    options: dict[str, object]
    areas: Areas | None = None
    """The areas that are perturbed one by one; None: the table as a whole."""

    @property
    def table(self) -> Table:
        """The table to perturb."""
        return self.problem.table

    @property
    def reach(self) -> FloatArray:
        """How far the truth may lie from what is published: the distance; for counts, its whole part."""
        return np.floor(self.distance + 1e-9) if self.table.integer else self.distance

    @property
    def moved(self) -> BoolArray:
        """Cells that must not be published unchanged."""
        return find_demanded_cells(self.table.n_cells, self.needs)

    def draw_limits(self, demands: list[Demand], attempt: int = 0) -> CellLimits:
        """Draw where every cell should go; each attempt draws again."""
        t, unit = self.table, get_unit(self.table)
        rng = draw_for_table(self.key, f"perturb {attempt}" if attempt else "perturb", t)
        other = None
        if self.draw == "truth":
            target = np.zeros(t.n_cells)
        elif self.draw == "relaxation" and self.base is not None:
            target, other = cell_limits.compute_both_multiples(t.values, self.base)
        elif self.base is None:
            target = cell_limits.perturb_within_distance(np.where(t.fixed, 0.0, self.reach), unit, rng)
        else:
            nearest = self.draw == "nearest"
            target = cell_limits.perturb_to_multiples(t.values, self.base, self.moved, rng, nearest=nearest)
            target = np.rint(target / unit) * unit if unit else target
        drawn = cell_limits.Drawn(
            distance=self.reach, target=target, unit=unit, other=other, given=self.given,
            between=self.base if self.between else None,
        )  # fmt: skip
        return cell_limits.compute_cell_limits(t, demands, drawn, rng)

    def compute_loss(self, limits: CellLimits, movement: FloatArray) -> float:
        """Return the cost of movements: their distance from where cells are drawn, or that of rounding, relaxed.

        Sums of areas are not drawn anywhere, and cost nothing.
        """
        weights = self.table.weights if self.areas is None else np.where(self.areas.finest, self.table.weights, 0.0)
        if self.draw != "relaxation" or self.base is None:
            return float(weights @ np.abs(movement - limits.target))
        both = cell_limits.compute_both_multiples(self.table.values, self.base)
        return float(weights @ cell_limits.relax_distance(movement, *both))

    def compute_multiples(self) -> FloatArray | None:
        """Return the two multiples that sensitive cells may take, as movements; None if they need not."""
        if not self.round_sensitive or self.base is None:
            return None
        a, r = self.table.values, self.base
        rest = a - np.floor(a / r + 1e-12) * r
        down = np.where(rest <= 1e-9 * r, r, rest)
        both = np.stack([-down, r - rest])
        return np.where(self.moved & ~self.table.fixed, both, np.nan)

    # ------------------------------------------------------------------ results

    def search(self, raised: _PerturbationRun, proven: float = float("inf")) -> Candidate:
        """Return the perturbation that meets the levels of `raised`, and a proven bound on its cost."""
        demands = build_demands(self.table, raised.needs)
        deadline = raised.limits.deadline
        if self.areas is not None:
            draw = partial(raised.draw_limits, demands)
            outcome, limits = perturb_by_areas(self.table, self.areas, demands, deadline, draw)
        else:
            limits = raised.draw_limits(demands)
            outcome = perturb_by_cuts(self.table, limits, demands, deadline, rounded=raised.compute_multiples())
        if outcome.movement is None:
            status = Status.INFEASIBLE if outcome.infeasible and raised is self else Status.TIME_LIMIT
            empty = self.build_empty_release(status, self.explain(limits, outcome), outcome)
            return Candidate(release=empty, problem=self.problem)
        release = self.release(limits, outcome, outcome.movement, proven)
        self.limits.tell(release.objective, release.bound)
        return Candidate(release=release, problem=self.problem, state=(self, raised))

    def release(
        self, limits: CellLimits, outcome: PerturbationOutcome, movement: FloatArray, proven: float
    ) -> Perturbation:
        """Return the release of what the search found, with its proven bound."""
        t = self.table
        values = _build_additive_values(t, limits, movement, self.distance if self.base is None else self.base)
        objective = self.compute_loss(limits, values - t.values)
        bound = min(self.compute_loss(limits, outcome.start) + outcome.bound, proven)
        optimal = objective - bound <= 1e-6 * max(1.0, abs(bound))
        status = Status.OPTIMAL if optimal else Status.FEASIBLE
        return self._build_release(
            outcome, status=status, objective=objective, bound=min(bound, objective), values=values
        )

    def build_empty_release(self, status: Status, why: str, outcome: PerturbationOutcome) -> Perturbation:
        values = np.full(self.table.n_cells, np.nan)
        return self._build_release(outcome, status=status, objective=float("nan"), values=values, explanation=why)

    def _build_release(self, outcome: PerturbationOutcome, **known: Any) -> Perturbation:
        """Return a release: the published distance of each cell is 0 for those that had to stay."""
        return Perturbation(
            table=self.table, seconds={"solve": self.limits.spent_s}, options=self.options,
            details={"cuts": outcome.cuts, "rounds": outcome.rounds}, base=None if self.areas else self.base,
            areas=self.areas.dimension if self.areas else None,
            distance=np.where(self.table.fixed, 0.0, self.distance), between=self.between, **known,
        )  # fmt: skip

    def explain(self, limits: CellLimits, outcome: PerturbationOutcome) -> str:
        """Explain why there is no perturbation."""
        t = self.table
        if not outcome.infeasible:
            if not self.limits.deadline.passed:
                return "no perturbation in whole numbers was found; that there is none is not proven."
            return "the limit was reached before a perturbation was found."
        empty = np.flatnonzero(limits.impossible | limits.fix_sides().impossible)
        if len(empty):
            return (
                f"{t.label(int(empty[0]))}: its levels cannot be met within its limits by a value that is not its own."
            )
        if len(outcome.cells):
            cells = ", ".join(t.label(int(c)) for c in outcome.cells[:5])
            return f"no additive table within the limits meets the levels of {cells} together; raise the base there."
        return "no additive table lies within the limits; raise the base."


def _round_to_multiples(table: Table, values: FloatArray, step: FloatArray) -> FloatArray:
    """Return values without what a solver left beside multiples of the base or distance, zero among them.

    A value of -1e-15 lies between other multiples than 0 does, and sums of nothing but such remainders do not add up.
    """
    unit = np.where(step > 0, step, 1.0)
    multiple = np.rint(values / unit) * unit
    snapped = np.where((np.abs(values - multiple) <= SMALL_BESIDE_BASE * unit) & ~table.fixed, multiple, values)
    residual, allowed = compute_residuals_and_noise(table.relations, table.rhs, snapped)
    return snapped if (np.abs(residual) <= 0.1 * allowed).all() else values


def _build_additive_values(table: Table, limits: CellLimits, z: FloatArray, step: FloatArray) -> FloatArray:
    """Return the values of the published table: additive, and on the grid of the true ones if possible."""
    values = _round_to_multiples(table, table.values + z, step)
    digits = 0 if table.integer else count_decimals(table.values, noise=True)
    if digits is not None:  # published values have no more decimals than the true ones
        snapped = np.rint(values * 10.0**digits) / 10.0**digits
        exact = compute_exact_residuals(table.relations, table.rhs, snapped, digits)
        noise = 1e-6 * np.maximum(10.0**-digits, 1e-6 * np.abs(values))
        if exact is not None and not exact.any() and (np.abs(snapped - values) <= noise).all():
            return snapped
    residual, allowed = compute_residuals_and_noise(table.relations, table.rhs, values)
    if (np.abs(residual) <= allowed * 0.1).all():
        return values
    # move rounding residuals of the relations out of the parameters' cells
    reduction = reduce(table.relations, limits.moving)
    return np.asarray(table.values + reduction.basis @ z[reduction.parameters])

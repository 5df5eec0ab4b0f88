"""The least widths of a table's intervals: which cells to open, and how far."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.closest.joint_movement import JointRequest, find_joint_movement, find_joint_movement_by_lp
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard._engine.space.network import Network
from cellguard._engine.space.reduce import Reduction, reduce
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.intervals.narrowest.interior import (
    FoundWidths,
    estimate_bytes,
    estimate_operations,
    minimize_widths,
)
from cellguard.methods.intervals.narrowest.network_widths import NetworkWidths
from cellguard.methods.intervals.narrowest.newton import WidthProgram
from cellguard.methods.intervals.repair import Widener
from cellguard.methods.intervals.requests import Variables, needs_of_intervals
from cellguard.methods.limits import Limits
from cellguard.model.attacker import Attacker
from cellguard.model.levels import compute_required_levels, list_attackers
from cellguard.model.table import Table

__all__ = [
    "SEARCHED",
    "Ends",
    "IntervalProblem",
    "compute_positive_weights",
    "find_hiding_widths",
    "may_become_intervals",
]  # fmt: skip

Ends = tuple[FloatArray, FloatArray]

_STRETCH = 0.6
"""Share of the remaining gap by which all widths grow before single ones do."""
_MENDED = 100_000
"""Maximum movements times relations to repair one by one after closing tiny widths; beyond it, fewer are closed."""
_GRID = 1e-4
"""The last decimal place of an interval's ends is at most this share of the median level."""
_MEMORY = 1.5e9
"""Maximum bytes that the interior point may take."""
_PER_SECOND = 2e9
"""Floating-point operations of a slow machine."""
_LEAST_S = 5.0
"""Seconds of a step that is tried in any case: most machines are faster."""
_JOINT = 5
"""Below this number, cells are moved one after the other, through what is already open."""
SEARCHED = 0.8
"""Share of the gap for the search; the rest is reserved for publishing small widths exactly."""
_SLACK = 1.0 + 1e-9
"""What floating point may have lost of a width."""
_DROP = (3e-2, 3e-3, 3e-4, 3e-5)
"""Widths below these shares of the median level are tried as exactly published, the largest first."""


def compute_positive_weights(table: Table) -> FloatArray:
    """Return the weights, all above 0: a weight of 0 would not limit the width of an interval."""
    positive = table.weights[table.weights > 0]
    return np.maximum(table.weights, 1e-6 * float(np.median(positive)) if len(positive) else 1.0)


def may_become_intervals(table: Table) -> BoolArray:
    """Return which cells may be published as intervals."""
    return np.asarray(~table.fixed & (table.ub > table.lb))


class IntervalProblem:
    """The relations between the cells that may be opened, and what must be hidden from which attacker."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.may_open = may_become_intervals(table)
        self.weight = compute_positive_weights(table)
        self.least = {1.0: np.zeros(table.n_cells), -1.0: np.zeros(table.n_cells)}
        """Largest level of each cell, upward (1) and downward (-1): its own width must be that large."""
        self.needs = needs_of_intervals(table)
        total = np.zeros(table.n_cells)
        for need in self.needs:
            np.maximum.at(total, need.cell, need.total)
            for direction, most in self.least.items():
                at = need.sign == direction
                np.maximum.at(most, need.cell[at], need.level[at])
        self.own_bound = float(self.weight @ total)
        """Minimum cost of the intervals of the hidden cells themselves."""

    def compute_cost(self, found: FoundWidths) -> float:
        """Weighted width."""
        return float(self.weight @ (found.lower + found.upper))

    def find_hopeless(self, deadline: Deadline) -> str:
        """Name the cells that stay exposed even if no other cell were published, if there are any."""
        t = self.table
        lines: list[str] = []
        for attacker in list_attackers(t):
            lo, hi = t.bounds(attacker)
            need = compute_required_levels(t, attacker)
            lo, hi = np.where(self.may_open, lo, t.values), np.where(self.may_open, hi, t.values)
            found = compute_ranges(
                Sight(t.relations, lo, hi, t.values),
                AskedRanges(need.cells, need.lower, need.upper, need.sliding),
                time_limit_s=deadline.get_seconds_at_least(),
            )
            lines += [
                f"{t.label(int(cell))} cannot be protected against attacker {attacker.name!r}: fixed cells and "
                "known bounds disclose it even if every other cell were withheld"
                for cell in need.cells[found.unsafe][:5]
            ]
        return "; ".join(lines)

    # ------------------------------------------------------------------ solve

    def solve(self, limits: Limits) -> FoundWidths:
        """Find the least widths, with one width for both sides if that is exact."""
        reduction = reduce(self.table.relations, self.may_open)
        variables = Variables(self.table, self.weight, reduction.space)
        if not len(variables):
            nothing = np.zeros(self.table.n_cells)
            return FoundWidths(lower=nothing, upper=nothing, bound=0.0, iterations=0, requests=0)
        network = Network.of(reduction)
        if network is not None and not variables.stuck:
            return self._solve_on_network(network, variables, reduction, limits)
        fallback = self.find_quickly(reduction, limits.deadline)  # returned if the limit comes before anything better
        for tied in (True, False) if variables.symmetric else (False,):
            if not _has_memory_and_time(reduction, variables, tied, limits.deadline):
                continue
            found = self._solve_by_interior_point(variables, reduction, tied, limits)
            if found is not None:
                return self.choose_better(found, fallback)
        return fallback or self.withhold_everything(len(variables))

    def _solve_on_network(
        self, network: Network, variables: Variables, reduction: Reduction, limits: Limits
    ) -> FoundWidths:
        """Solve by cuts, with one width for both sides if the levels are symmetric and no known bound is exceeded."""
        t, cells = self.table, network.cells
        most = t.ub[cells] - t.values[cells], t.values[cells] - t.lb[cells]
        bound, rounds = 0.0, 0
        for tied in (True, False) if variables.symmetric else (False,):
            solver = NetworkWidths(
                network=network, weight=self.weight[cells], asked=list(variables.translate_to_network(network)),
                most_upper=most[0], most_lower=most[1], tied=tied,
            )  # fmt: skip
            widths = solver.solve(limits)
            bound, rounds = max(bound, solver.bound), rounds + solver.rounds
            if widths is None or (tied and (widths[0] > np.minimum(*most) * _SLACK).any()):
                continue  # without limits it is still a bound
            lower, upper = np.zeros(t.n_cells), np.zeros(t.n_cells)
            upper[cells], lower[cells] = _SLACK * widths[0], _SLACK * widths[1]
            return FoundWidths(
                lower=lower, upper=upper, bound=bound, iterations=rounds, requests=len(variables),
                tied=tied, vertex=True,
            )  # fmt: skip
        found = self.find_quickly(reduction, limits.deadline) or self.withhold_everything(len(variables))
        return replace(found, bound=max(bound, found.bound))

    def choose_better(self, one: FoundWidths, other: FoundWidths | None) -> FoundWidths:
        """Return the cheaper of two, with the larger bound."""
        if other is None:
            return one
        cheaper = one if self.compute_cost(one) <= self.compute_cost(other) else other
        return replace(cheaper, bound=max(one.bound, other.bound))

    def is_proven(self, found: FoundWidths, gap: float) -> bool:
        """Whether the cost is within the gap."""
        return self.compute_cost(found) - found.bound <= gap * self.compute_cost(found)

    def find_quickly(self, reduction: Reduction, deadline: Deadline, start: Ends | None = None) -> FoundWidths | None:
        """Return intervals that contain joint movements of each attacker's cells: safe and quick, but not narrow.

        If starting widths (above, below) are given, add one movement after the other instead.
        """
        t = self.table
        rows = t.relations[reduction.rows]
        joint = _JOINT if start is None else np.inf
        widths = start or (np.zeros(t.n_cells), np.zeros(t.n_cells))
        for need in self.needs:
            limits = self._compute_limits(reduction, t.bounds(need.attacker))
            for sign in (1.0, -1.0):
                at = (need.sign == sign) & (need.level > 0)
                if not at.any():
                    continue
                asked = need.cell[at], sign * need.level[at]
                moved = self._solve_jointly(rows, limits, asked, deadline) if at.sum() >= joint else None
                wider = self._solve_one_by_one(rows, limits, widths, asked, deadline) if moved is None else moved
                if wider is None:
                    return None
                widths = np.maximum(widths[0], wider[0]), np.maximum(widths[1], wider[1])
        count = sum(len(need) for need in self.needs)
        upper, lower = _SLACK * widths[0], _SLACK * widths[1]
        return FoundWidths(lower=lower, upper=upper, bound=self.own_bound, iterations=0, requests=count)

    def _compute_limits(self, reduction: Reduction, bounds: Ends) -> Ends:
        """Return how far above and below its value each cell may go within bounds; 0 if it cannot move."""
        values, stuck = self.table.values, reduction.determined
        return np.where(stuck, 0.0, bounds[1] - values), np.where(stuck, 0.0, values - bounds[0])

    def _solve_jointly(
        self, rows: csr_array, limits: Ends, asked: tuple[IntArray, FloatArray], deadline: Deadline
    ) -> Ends | None:
        """Return widths (above, below) in which all cells can move as required at once; None if they cannot."""
        cells, movements = asked
        sign = np.sign(movements[0])
        need = np.zeros(self.table.n_cells)
        np.maximum.at(need, cells, np.abs(movements))
        down, up = (limits[1], limits[0]) if sign > 0 else limits
        request = JointRequest(relations=rows, weight=self.weight, need=need, down=down, up=up)
        found = find_joint_movement(request, deadline, solver=find_joint_movement_by_lp)
        return None if found is None else (np.maximum(sign * found, 0.0), np.maximum(-sign * found, 0.0))

    def _solve_one_by_one(
        self, rows: csr_array, limits: Ends, widths: Ends, asked: tuple[IntArray, FloatArray], deadline: Deadline
    ) -> Ends | None:
        """Widen (above, below) until each cell can make the required movement; None if one cannot."""
        cells, movements = asked
        up = bool(movements[0] > 0)
        widener = Widener(rows, self.weight, limits, self._compute_median_level())
        for cell, movement in zip(cells.tolist(), movements.tolist(), strict=True):
            own = np.minimum(widths[0], limits[0]), np.minimum(widths[1], limits[1])
            own[0 if up else 1][cell] = max(own[0 if up else 1][cell], abs(movement))
            wider = widener.widen(*own, cell, movement, deadline.get_seconds_at_least())
            if wider is None:
                return None
            widths = np.maximum(widths[0], wider[0]), np.maximum(widths[1], wider[1])
        return widths

    def _solve_by_interior_point(
        self, variables: Variables, reduction: Reduction, tied: bool, limits: Limits
    ) -> FoundWidths | None:
        """Solve by the interior point; None if that is impossible, or one width is not exact."""
        known, gap = np.minimum(variables.most_lower, variables.most_upper), limits.gap

        def is_beyond(width: FloatArray) -> bool:
            excess = np.maximum(width - known * _SLACK, 0.0)
            return bool(variables.weight @ excess > gap * (variables.weight @ width))

        widths = minimize_widths(_build_width_program(variables, reduction, tied), limits, is_beyond if tied else None)
        if widths is None:
            return None
        clipped = tied and bool((widths.upper > known * _SLACK).any())  # beyond a known bound: clip it
        if clipped and is_beyond(widths.upper):
            return None
        ends = [np.minimum(side, known) if clipped else side for side in (widths.lower, widths.upper)]
        lower, upper = variables.space.spread(*ends)
        found = replace(widths, lower=lower * _SLACK, upper=upper * _SLACK, requests=len(variables))
        if not clipped:
            return found
        return self.repair_widths(
            self._widen_all(found, gap), gap / SEARCHED, limits.deadline
        )  # if every level is reached

    def withhold_everything(self, requests: int) -> FoundWidths:
        """Return a safe result without any search: cells that may be opened show only their known bounds."""
        t = self.table
        with np.errstate(invalid="ignore"):
            lower = np.where(self.may_open, t.values - t.lb, 0.0)
            upper = np.where(self.may_open, t.ub - t.values, 0.0)
        return FoundWidths(lower=lower, upper=upper, bound=0.0, iterations=0, requests=requests)

    def publish_narrow_cells(self, found: FoundWidths, gap: float, deadline: Deadline) -> FoundWidths:
        """Publish cells exactly that the interior point left with tiny widths, if the gap allows.

        The bound of the whole problem stays valid; closing cells can only raise the cost.
        """
        unit, least = self._compute_median_level(), self.least  # cells with small levels stay open
        for share in _DROP:
            if deadline.passed or found.iterations == 0 or found.vertex:
                break
            upper = np.where(found.upper > np.maximum(share * unit, least[1.0]), found.upper, least[1.0])
            lower = np.where(found.lower > np.maximum(share * unit, least[-1.0]), found.lower, least[-1.0])
            closed = self._widen_all(replace(found, upper=upper, lower=lower), gap)
            tried = self.repair_widths(closed, gap, deadline, most=_MENDED // max(1, self.table.n_relations))
            if tried is not None:
                return tried
        return found

    def _widen_all(self, found: FoundWidths, gap: float) -> FoundWidths:
        """Widen everything by a part of what the gap allows: cheaper than repairing movement by movement."""
        t, cost = self.table, self.compute_cost(found)
        stretch = 1.0 + _STRETCH * max(0.0, gap - (cost - found.bound) / cost)
        upper, lower = t.ub - t.values, t.values - t.lb
        if found.tied:
            upper = lower = np.minimum(upper, lower)
        upper, lower = np.minimum(stretch * found.upper, upper), np.minimum(stretch * found.lower, lower)
        return replace(found, upper=np.maximum(upper, found.upper), lower=np.maximum(lower, found.lower))

    def find_exposed(self, found: FoundWidths, deadline: Deadline) -> list[tuple[int, float]]:
        """Return cells and (signed) movements that must be possible and are not; only for the table's own bounds."""
        t = self.table
        lo, hi = np.maximum(t.values - found.lower, t.lb), np.minimum(t.values + found.upper, t.ub)
        out = []
        for need in self.needs:
            for direction in (1.0,) if found.tied else (1.0, -1.0):  # with one width, downward movements mirror these
                at = need.sign == direction
                level = need.level[at]
                zero = np.zeros(len(level))
                sides = (zero, level) if direction > 0 else (level, zero)
                seen = compute_ranges(
                    Sight(t.relations, lo, hi, t.values),
                    AskedRanges(need.cell[at], sides[0], sides[1]),
                    time_limit_s=deadline.get_seconds_at_least(),
                )
                missed = np.flatnonzero(~seen.safe)
                out += [(int(need.cell[at][i]), direction * float(level[i])) for i in missed]
        return out

    def repair_widths(
        self, found: FoundWidths, gap: float, deadline: Deadline, most: int | None = None
    ) -> FoundWidths | None:
        """Widen until every level can be reached; None if more than `most` cannot, or it costs more than the gap."""
        from cellguard._engine.space.reduce import reduce

        t = self.table
        if any(len(attacker.cells) for attacker in list_attackers(t)):
            return None
        widener = None
        for _ in range(3):
            exposed = self.find_exposed(found, deadline)
            if not exposed:
                return found
            if most is not None and len(exposed) > most:
                return None
            if widener is None:
                reduction = reduce(t.relations, self.may_open)
                limits = self._compute_limits(reduction, (t.lb, t.ub))
                widener = Widener(t.relations[reduction.rows], self.weight, limits, self._compute_median_level())
            for cell, movement in sorted(exposed, key=lambda each: -abs(each[1])):
                wider = widener.widen(found.upper, found.lower, cell, movement, deadline.get_seconds_at_least())
                if wider is None or deadline.passed:
                    return None
                if found.tied:
                    wider = (np.maximum(*wider), np.maximum(*wider))
                found = replace(found, upper=wider[0], lower=wider[1])
                if not self.is_proven(found, gap):
                    return None
        return None

    def _compute_median_level(self) -> float:
        """Return the median level."""
        levels = np.concatenate([np.zeros(0), *(need.level for need in self.needs)])
        return float(np.median(levels[levels > 0])) if (levels > 0).any() else 1.0

    def compute_ends(self, found: FoundWidths, gap: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the intervals, rounded outward to decimal numbers as far as the gap allows.

        More digits serve no reader, and a side of almost no width cannot be checked.
        """
        t, nearly = self.table, 1.0 - 2e-9  # a rounding error must not turn a level of 4 into 4.0001
        if t.integer:  # for counts, fractional ends reveal only what whole ones do
            low, high = np.ceil(nearly * found.lower - 1e-9), np.ceil(nearly * found.upper - 1e-9)
            return np.maximum(t.values - low, t.lb), np.minimum(t.values + high, t.ub)
        # the proven bound stays valid
        dearest = found.bound / (1.0 - gap) if self.is_proven(found, gap) else self.compute_cost(found) * (1.0 + gap)
        place = int(np.floor(np.log10(_GRID * self._compute_median_level())))
        for digits in range(-place, -place + 6):
            step = 10.0**-digits
            lower = np.where(found.lower > 0, np.floor((t.values - nearly * found.lower) / step), 0.0)
            upper = np.where(found.upper > 0, np.ceil((t.values + nearly * found.upper) / step), 0.0)
            # dividing by a whole power of ten gives the nearest number to the decimal
            lower, upper = (end / 10.0**digits if digits >= 0 else end * step for end in (lower, upper))
            lower = np.maximum(np.where(found.lower > 0, lower, t.values), t.lb)
            upper = np.minimum(np.where(found.upper > 0, upper, t.values), t.ub)
            cost = float(self.weight @ (upper - lower))
            if cost <= dearest:
                return lower, upper
        return np.maximum(t.values - found.lower, t.lb), np.minimum(t.values + found.upper, t.ub)


def _has_memory_and_time(reduction: Reduction, variables: Variables, tied: bool, deadline: Deadline) -> bool:
    """Return whether the interior point has enough memory, and time for some steps."""
    requests = variables.list_requests(tied)
    size = (reduction.space.relations.shape[0], reduction.degrees_of_freedom, len(variables.weight), len(requests))
    seconds = estimate_operations(*size, tied=tied) / _PER_SECOND
    return estimate_bytes(*size, tied=tied) < _MEMORY and seconds < max(_LEAST_S, deadline.get_seconds_at_least())


def _build_width_program(variables: Variables, reduction: Reduction, tied: bool) -> WidthProgram:
    """Return the program of the interior point; limits of the widths apply unless one width serves both sides."""
    unlimited = np.full(len(variables.weight), np.inf)
    own_lower, own_upper = variables.compute_own_limits()
    return WidthProgram(
        relations=reduction.space.relations,
        basis=reduction.space.basis,
        weight=variables.weight,
        requests=variables.list_requests(tied),
        tied=tied,
        most_upper=unlimited if tied else variables.most_upper,
        most_lower=unlimited if tied else variables.most_lower,
        hard_upper=own_upper,
        hard_lower=own_lower,
    )


def find_hiding_widths(
    table: Table, cells: IntArray, deadline: Deadline, start: Ends | None = None
) -> FoundWidths | None:
    """Return widths that hide some cells of a table, found quickly; see :meth:`IntervalProblem.find_quickly`."""
    alone = IntervalProblem(_restrict_to_cells(table, cells))
    return alone.find_quickly(reduce(table.relations, alone.may_open), deadline, start)


def _restrict_to_cells(table: Table, cells: IntArray) -> Table:
    """Return the table with only some of its cells to be hidden, from the same attackers."""
    chosen = np.zeros(table.n_cells, np.bool_)
    chosen[cells] = True

    def restrict(attacker: Attacker) -> Attacker:
        if attacker.sensitive is None:
            return attacker
        at = chosen[attacker.sensitive]
        levels = {name: getattr(attacker, name)[at] for name in ("sensitive", "lower", "upper", "sliding")}
        return replace(attacker, **levels)

    sensitive = table.sensitive & chosen
    levels = {name: np.where(sensitive, getattr(table, name), 0.0) for name in ("lower", "upper", "sliding")}
    return table.with_(sensitive=sensitive, attackers=tuple(restrict(a) for a in table.attackers), **levels)

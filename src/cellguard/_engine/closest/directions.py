"""The choice of the sense (up or down) of each sensitive cell that makes the closest table closest (baena2018 (6)).

A mover that must leave (-down, up) goes up or down: one binary per mover, far fewer than sensitive
cells where cells move together (27 for the 112 of hier13). A dive over convex envelopes finds a first
choice; flips and small exact programs over blocks of movers improve it. A mixed-integer program
(for linear distances) or branch and bound over envelopes (for others) improves it further and proves
how good it is.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_array

from cellguard._engine.clock import Deadline
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.closest_problem import ClosestProblem, ClosestRequest
from cellguard._engine.closest.directions_mixed import FAR, MixedSenses
from cellguard._engine.closest.directions_near import NearSenses
from cellguard._engine.closest.directions_totals import SensesOfTotals, build_totals_directions
from cellguard._engine.closest.distance import Distance, Target
from cellguard._engine.closest.interior import InteriorPoint
from cellguard._engine.solvers.lp import SolveStatus
from cellguard._engine.space.space import convert_slack_to_variables
from cellguard._engine.standing import Standing
from cellguard._engine.threads import limit_blas_threads
from cellguard._types import BoolArray, ByteArray, FloatArray, IntArray

__all__ = ["Choice", "Senses", "choose_directions"]

_ROUGH = 1e-7
"""Tolerance of the convex programs of the search."""
_NEAR_FIRST = (10.0, 1000.0, FAR)
"""How far movers may go when any choice will do, in levels: near bounds make the programs exact and fast."""
_FEW = 60
"""Largest number of movers for which the least number of flips is computed exactly."""
_BLOCK = 24
"""Number of movers whose senses are decided together while the others keep theirs."""
_MAX_LEVEL_RATIO = 1e6
"""Ratio of the largest level to the typical one from which a mixed-integer solver's tolerances are too coarse."""
_MAX_REFUTING_NODES = 2000
"""Convex programs after which the search stops trying to prove that no senses are possible."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The best senses found."""

    up: BoolArray
    """Which cells rise; meaningful only for the cells that must move."""
    objective: float
    """Approximate distance with these senses; infinite when none was found."""
    bound: float
    """No choice of senses is closer."""
    nodes: int
    """Convex programs solved."""
    in_time: bool
    """Whether the search finished before its limits."""


@dataclass(order=True)
class _Node:
    bound: float
    number: int
    senses: ByteArray = field(compare=False)
    v: FloatArray = field(compare=False)


class Senses:
    """The search for senses in one table.

    Parameters
    ----------
    adjuster
        Of the table's relations and fixed cells.
    slack
        Lower and upper bounds of the movements before any sense is chosen.
    down, up
        How far each cell must go when it goes that way; 0 for cells that need not move, infinite where
        they cannot go that way.
    distance
        What is minimised.
    seed
        Of the blocks.
    """

    def __init__(
        self,
        adjuster: Adjuster,
        slack: tuple[FloatArray, FloatArray],
        down: FloatArray,
        up: FloatArray,
        distance: Distance,
        *,
        seed: int = 0,
    ) -> None:
        self.k, self.slack, self.d = adjuster, slack, distance
        self.cell_down, self.cell_up = down, up
        m = adjuster.movers
        self.rng = np.random.default_rng(seed)
        self.nodes = 0
        sink, rise = convert_slack_to_variables(m.ratio, down[m.cell], up[m.cell])
        all_up, all_down = m.compute_extremes(rise, np.maximum)[0], m.compute_extremes(sink, np.maximum)[0]
        self.mover = np.flatnonzero((all_up > 0) | (all_down > 0))
        up, down = all_up[self.mover], all_down[self.mover]
        low, _, high, _ = m.compute_bounds(*slack)
        self.low, self.high = low, high
        self.may_rise = np.isfinite(up) & (self.high[self.mover] >= up)
        self.may_sink = np.isfinite(down) & (-self.low[self.mover] >= down)
        self.up, self.down = np.where(self.may_rise, up, 0.0), np.where(self.may_sink, down, 0.0)
        level = np.maximum(self.up, self.down)
        far_apart = bool(len(level)) and float(level.max()) > _MAX_LEVEL_RATIO * float(np.median(level))
        self.linear = not distance.square.any() and not far_apart

    @property
    def request(self) -> ClosestRequest:
        """Levels of all movers that must choose."""
        return ClosestRequest(mover=self.mover, down=self.down, up=self.up)

    @property
    def hopeless(self) -> BoolArray:
        """Movers that must move and cannot go either way."""
        return ~self.may_rise & ~self.may_sink

    # ------------------------------------------------------------------ convex programs

    def start(self) -> ByteArray:
        """Return senses before any choice (0), except where only one is possible."""
        s = np.zeros(len(self.mover), np.int8)
        s[~self.may_rise] = -1
        s[~self.may_sink] = 1
        return s

    def find_rising_cells(self, s: ByteArray) -> BoolArray:
        """Return which cells rise."""
        m = self.k.movers
        out = np.zeros(m.n_cells, bool)
        out[m.cell] = self._expand_to_movers(s)[m.mover] * np.sign(m.ratio) > 0
        return out

    def _expand_to_movers(self, s: ByteArray) -> ByteArray:
        """Return the senses of all movers; 0 for those that need none."""
        out = np.zeros(self.k.movers.n, np.int8)
        out[self.mover] = s
        return out

    def solve(self, s: ByteArray, *, tolerance: float = _ROUGH) -> tuple[float, float, FloatArray]:
        """Return distance, bound and movers with the senses chosen so far; envelopes replace the undecided ones."""
        m, rises = self.k.movers, self.find_rising_cells(s)
        decided = np.zeros(m.n_cells, bool)
        decided[m.cell] = self._expand_to_movers(s)[m.mover] != 0
        lower = np.where(decided & rises & (self.cell_up > 0), self.cell_up, self.slack[0])
        upper = np.where(decided & ~rises & (self.cell_down > 0), -self.cell_down, self.slack[1])
        free = s == 0
        request = ClosestRequest(mover=self.mover[free], down=self.down[free], up=self.up[free]) if free.any() else None
        problem = ClosestProblem(m, Target(lower, upper, self.d), request)
        self.nodes += 1
        nowhere = np.full(m.n, np.nan)
        if (problem.lower > problem.upper).any():
            return np.inf, np.inf, nowhere
        with limit_blas_threads():
            point = InteriorPoint(problem.build_program(), self.k.projection).run(
                tolerance=tolerance, max_iterations=60
            )
        # where moving costs nothing, no gap is small relative to the objective
        if point.converged or (point.violation < 1e-7 and point.gap < 1e-4 * abs(point.objective)):
            return point.objective, point.objective - point.gap, point.v * problem.unit
        if request is None:  # levels of very different sizes: the adjuster finds and certifies what one run lost
            found = self.k.solve(Target(lower, upper, self.d))
            if not found.feasible:
                return np.inf, np.inf, nowhere
            if not found.outside:
                v = np.zeros(m.n)
                v[m.mover] = found.z[m.cell] / m.ratio
                return found.objective, found.bound, v
        none = problem.solve_by_simplex()[0] is SolveStatus.INFEASIBLE
        return np.inf, np.inf if none else -np.inf, nowhere

    # ------------------------------------------------------------------ heuristics

    def round_greedily(self, deadline: Deadline) -> ByteArray:
        """Choose senses by the side to which the envelopes lean, the clearest first, until all are chosen."""
        s = self.start()
        while (s == 0).any():
            if deadline.passed:
                s[s == 0] = 1
                break
            _, _, v = self.solve(s)
            free = np.flatnonzero(s == 0)
            if np.isnan(v).any():
                s[free] = 1
                break
            lean = self.measure_lean(v)[free]
            if np.abs(lean).max() < 1e-3:  # nothing leans: the heaviest decides first
                weight = self._estimate_weights()[free]
                chosen = np.array([int(np.argmax(weight))])
                lean[chosen] = np.where(self.up[free][chosen] <= self.down[free][chosen], 1.0, -1.0)
            else:
                enough = max(1, len(free) // 8)
                chosen = np.argsort(-np.abs(lean), kind="stable")[:enough]
                chosen = np.union1d(chosen, np.flatnonzero(np.abs(lean) >= 1))
            s[free[chosen]] = np.where(lean[chosen] >= 0, 1, -1)
        return s

    def _estimate_weights(self) -> FloatArray:
        """Return the cost of moving each requested mover to its level."""
        m, d = self.k.movers, self.d
        cost = m.sum_by_mover((d.absolute + d.largest)[m.cell] * m.size)[self.mover] * (self.up + self.down)
        return cost + m.sum_by_mover(d.square[m.cell] * m.size**2)[self.mover] * (self.up + self.down) ** 2

    def improve(self, s: ByteArray, value: float, deadline: Deadline) -> tuple[ByteArray, float]:
        """Decide blocks of movers exactly while the others keep their senses, until no block improves or time is up.

        Blocks alternate between neighbours (movers that share relations) and random movers.
        """
        choice = np.flatnonzero(self.may_rise & self.may_sink)
        if len(choice) < 2:
            return s, value
        A = abs(self.k.movers.relations[:, self.mover[choice]])
        near = csr_array(A.T @ A)
        idle = 0
        while idle < 2 * max(1, len(choice) // _BLOCK) + 2 and not deadline.passed:
            block = self._choose_neighbours(near, choice) if idle % 2 == 0 else self.rng.permutation(choice)[:_BLOCK]
            trial, found = self._decide_block(s, block, value, deadline.choose_earlier(10.0))
            idle = 0 if found < value * (1 - 1e-6) else idle + 1
            if found < value:
                s, value = trial, found
        return s, value

    def _choose_neighbours(self, near: csr_array, choice: IntArray) -> IntArray:
        """Return a random mover and those that share relations with it, directly or through others."""
        block: list[int] = []
        queue, seen = [int(self.rng.integers(len(choice)))], set()
        while queue and len(block) < _BLOCK:
            i = queue.pop(0)
            if i not in seen:
                seen.add(i)
                block.append(int(choice[i]))
                queue += self.rng.permutation(near.indices[near.indptr[i] : near.indptr[i + 1]]).tolist()
        return np.array(block)

    def _decide_block(self, s: ByteArray, block: IntArray, value: float, deadline: Deadline) -> tuple[ByteArray, float]:
        """Return the best senses of a block; the others keep theirs."""
        trial = s.copy()
        trial[block] = 0
        if self.linear:
            trial, _ = self.decide_by_program(trial, s, deadline, gap=1e-4)
        else:
            trial, _ = self.branch(trial, s, value, deadline, gap=1e-4, node_limit=200)
        return trial, (value if (trial == s).all() else self.solve(trial)[0])

    # ------------------------------------------------------------------ proofs

    def branch(
        self, s: ByteArray, best: ByteArray, value: float, deadline: Deadline, *, gap: float, node_limit: int = 1 << 30
    ) -> tuple[ByteArray, float]:
        """Branch and bound over envelopes, best bound first; return the best senses and the bound."""
        _, bound, v = self.solve(s)
        if bound == np.inf:
            return best, bound
        heap = [_Node(bound, 0, s, v)]
        weight, count, closed = self._estimate_weights(), 0, np.inf
        while heap and heap[0].bound < value * (1 - gap):
            if deadline.passed or count > node_limit:
                break
            node = heapq.heappop(heap)
            inside = self._measure_violations(node, weight)
            whole = not inside.any()  # every undecided mover is outside its interval: nothing was relaxed
            if whole or count % 8 == 0:
                lean = self.measure_lean(node.v)
                rises = lean > 0 if whole else lean >= 0
                s = np.where(node.senses == 0, np.where(rises, 1, -1), node.senses).astype(np.int8)
                objective = self.solve(s)[0]
                best, value = (s, objective) if objective < value else (best, value)
            if whole:
                closed = min(closed, node.bound)
                continue
            j = int(np.argmax(inside))
            for sense in (1, -1):
                s = node.senses.copy()
                s[j] = sense
                _, bound, v = self.solve(s)
                count += 1
                bound = max(bound, node.bound)
                if bound < value * (1 - gap):
                    heapq.heappush(heap, _Node(bound, count, s, v))
                else:
                    closed = min(closed, bound)
        return best, min(value, closed, *(node.bound for node in heap[:1]))

    def measure_lean(self, v: FloatArray) -> FloatArray:
        """Return where movers are between the middles of their intervals and the ends, -1 to 1 and beyond."""
        lean = (v[self.mover] - (self.up - self.down) / 2) / ((self.up + self.down) / 2)
        return np.nan_to_num(lean)

    def _measure_violations(self, node: _Node, weight: FloatArray) -> FloatArray:
        """Return how much each undecided mover violates its request."""
        depth = np.where(node.senses == 0, 1.0 - np.abs(self.measure_lean(node.v)), 0.0)
        return np.where(depth > 1e-6, depth * weight, 0.0)

    def decide_by_program(
        self, s: ByteArray, best: ByteArray, deadline: Deadline, *, gap: float
    ) -> tuple[ByteArray, float]:
        """Decide the undecided movers by a mixed-integer program; return the senses and the bound."""
        known, _, start = self.solve(best)
        program, free = self._build_program(s, known=known)
        rises, bound = program.solve(start, deadline.left, gap)
        self.nodes += 1
        if rises is None and bound == np.inf and (np.isfinite(known) or program.capped):
            bound = -np.inf  # the solver's claim may contradict the best known senses, or a table further out
        out = s.copy()
        out[free] = np.where(rises, 1, -1) if rises is not None else best[free]
        return out, bound

    def _build_program(self, s: ByteArray, far: float = FAR, known: float = np.inf) -> tuple[MixedSenses, IntArray]:
        program, free = MixedSenses(self.k.movers, self.d, self.low, self.high), np.flatnonzero(s == 0)
        for sense, level in ((1, self.up), (-1, self.down)):
            program.hold(self.mover[s == sense], sense, level[s == sense])
        program.ask(self.mover[free], self.down[free], self.up[free], far, known)
        return program, free

    def build_totals_program(self) -> SensesOfTotals | None:
        """Return the program in the senses alone, if only levels and totals have to move."""
        if not self.linear or self.d.largest.any() or not (self.may_rise & self.may_sink).all():
            return None
        m = self.k.movers
        cost = m.sum_by_mover(self.d.absolute[m.cell] * m.size)
        return build_totals_directions(self.k.reduction.space, cost, (self.low, self.high), self.request)

    def propose_near(self, up: BoolArray, deadline: Deadline) -> Iterator[BoolArray]:
        """Yield senses that may admit a table, mostly as given; the last ones do unless time was short."""
        m = self.k.movers
        votes = m.sum_by_mover(
            np.where(up[m.cell], 1.0, -1.0) * np.sign(m.ratio) * (self.cell_up + self.cell_down > 0)[m.cell]
        )
        if self.hopeless.any():
            return
        undecided = self.start()
        search = NearSenses(
            movers=m,
            projection=self.k.projection,
            slack=(self.low, self.high),
            request=self.request,
            choice=undecided == 0,
            weight=self._estimate_square_costs(),
        )
        s = np.where(undecided == 0, np.where(votes[self.mover] >= 0, 1, -1), undecided).astype(np.int8)
        for found in search.propose_senses(s, deadline):
            yield self.find_rising_cells(found)
        last = self.find_possible(votes, deadline.get_seconds_at_least())
        if last is not None:
            yield self.find_rising_cells(last)

    def _estimate_square_costs(self) -> FloatArray:
        """Return the approximate cost of the square of each mover, for any distance."""
        m, d = self.k.movers, self.d
        size = np.maximum(np.median(self.up + self.down), 1e-300)
        linear = (d.absolute + d.largest)[m.cell] * m.size / size
        return m.sum_by_mover(linear + d.square[m.cell] * m.size**2)

    def find_possible(self, votes: FloatArray, time_limit_s: float) -> ByteArray | None:
        """Return senses that some table satisfies, near the votes of the movers; None if none were found."""
        s = self.start()
        if self.hopeless.any():
            return None
        deadline = Deadline.from_limit(time_limit_s)
        for far in _NEAR_FIRST:
            program, free = self._build_program(s, far)
            gap = 0.0 if len(free) <= _FEW else 0.01
            prefer = np.where(votes[self.mover[free]] >= 0, 1.0, -1.0)
            rises, _ = program.solve(None, deadline.get_seconds_at_least(), gap, prefer=prefer)
            if rises is not None:
                s[free] = np.where(rises, 1, -1)
                return s
        return None


def choose_directions(search: Senses, *, time_limit_s: float, gap: float) -> Choice:
    """Search for the best senses within a time limit, until they are proven within the gap of the best.

    If a user interrupts the search, it returns the best senses so far.
    """
    hunt = _SenseSearch(search, time_limit_s)
    if not search.hopeless.any():
        try:
            hunt.run(gap)
        except KeyboardInterrupt:
            if not np.isfinite(hunt.cost):
                raise
            hunt.in_time = False
    return hunt.get_choice()


class _SenseSearch(Standing[ByteArray]):
    """The best senses so far, and the bound proven for all others."""

    def __init__(self, search: Senses, time_limit_s: float) -> None:
        super().__init__(bound=np.inf if search.hopeless.any() else 0.0)
        self.search, self.deadline, self.in_time = search, Deadline.from_limit(time_limit_s), True

    @property
    def senses(self) -> ByteArray:
        """The best senses; all undecided before there are any."""
        return self.search.start() if self.best is None else self.best

    def _offer(self, s: ByteArray, value: float | None = None) -> None:
        self.take(s, self.search.solve(s)[0] if value is None else value)

    def run(self, gap: float) -> None:
        """Search the senses alone where only totals respond; else dive, decide blocks, then prove the whole."""
        search, deadline = self.search, self.deadline
        totals = search.build_totals_program()
        if totals is not None:
            rises, value, bound = totals.search(gap, deadline, int(search.rng.integers(1 << 62)))
            self._offer(np.where(rises, 1, -1).astype(np.int8), value)
            self.prove(bound)
            self.in_time = not deadline.passed
            return
        for s in (np.where(search.may_rise, 1, -1), np.where(search.may_sink, -1, 1)):
            self._offer(s.astype(np.int8))
        self._offer(search.round_greedily(deadline.take_share(0.3)))
        undecided = int((search.start() == 0).sum())
        if undecided > _BLOCK and np.isfinite(self.cost):
            self._offer(*search.improve(self.senses, self.cost, deadline.take_share(0.45)))
        if search.linear:
            found, bound = search.decide_by_program(search.start(), self.senses, deadline, gap=gap)
        else:
            found, bound = search.branch(search.start(), self.senses, self.cost, deadline, gap=gap)
        if search.linear and not np.isfinite(self.cost) and not (found != 0).all():
            # "nothing found" is a claim of the solver; costs of very different sizes can spoil it
            other = search.find_possible(np.zeros(search.k.movers.n), deadline.get_seconds_at_least())
            if other is None:
                limit = _MAX_REFUTING_NODES
                found, refuted = search.branch(search.start(), found, np.inf, deadline, gap=gap, node_limit=limit)
                bound = max(bound, refuted)
            else:
                found, bound = other, 0.0
        self.prove(bound)
        if (found != self.senses).any():
            self._offer(found)
        self.in_time = not deadline.passed

    def get_choice(self) -> Choice:
        """Return the best choice found."""
        return Choice(
            up=self.search.find_rising_cells(self.senses),
            objective=self.cost,
            bound=self.bound if self.bound == np.inf else min(self.bound, self.cost),
            nodes=self.search.nodes,
            in_time=self.in_time,
        )

"""Inequalities that every safe pattern satisfies, and how to find those that a point violates.

The variables are rows of a space: classes of cells that are suppressed together. A row with a
request is always suppressed. For any combination r of the relations with ``z_p = sum r_j z_j`` for
every movement z, a witness of the level of p gives ``level <= sum |r_j| room_j y_j``: a capacity
inequality, whose coefficients may be cut at the level (salazar2004 section 3.1). The relation of p
itself gives the bridge inequalities. Of a row without a request only this much is known: in a
pattern without useless cells it can move, hence so can another of any combination (`partners`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array, csr_array

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.search.attacker_program import MovementProgram
from cellguard._engine.solvers.lp import SolveStatus
from cellguard._engine.solvers.rows import Pool, Row
from cellguard._tolerances import MET_BY_PROGRAM, NO_ROW
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.suppress.search.narrow_program import NarrowProgram
from cellguard.methods.suppress.search.space import PatternSpace

__all__ = ["PatternInequalities"]

_LIMIT_S = 20.0
_FAR = 1e9
_BANK = 300
"""Movements remembered for each attacker."""

Target = tuple[int, int, int, float]
"""An attack: request, row, direction and level."""


Movement = tuple[IntArray, FloatArray]
"""Rows that move, and how far."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _AskedTargets:
    """All attacks, by columns."""

    attacker: IntArray
    row: IntArray
    way: FloatArray
    """1 upward, -1 downward."""
    level: FloatArray


class PatternInequalities:
    """Separation for the rows of a space."""

    def __init__(self, space: PatternSpace) -> None:
        self.space = space
        self.forced: BoolArray = space.keep
        self.relations = _drop_multiples(csr_array(space.problem.relations @ space.variables.lift))
        self._incidence = csr_array(
            (np.ones(self.relations.nnz), self.relations.indices, self.relations.indptr), shape=self.relations.shape
        )
        self._narrow: NarrowProgram | None = None
        self.low, self.high = space.bounds
        self.pool = Pool(len(space))
        self.programs = 0
        self._targets = self._list_targets()
        self._aimed = self.forced.copy()
        self._aimed[[target[1] for target in self._targets]] = True
        self._last: dict[int, FloatArray] = {}
        self._bank: dict[int, list[Movement]] = {}
        self._of_row: dict[int, list[Target]] = {}
        for target in self._targets:
            self._of_row.setdefault(target[1], []).append(target)
        columns = np.array(self._targets, np.float64).reshape(-1, 4).T
        self._asked = _AskedTargets(
            attacker=space.requests[0][columns[0].astype(np.int64)],
            row=columns[1].astype(np.int64),
            way=columns[2],
            level=columns[3],
        )
        d = space.reduction.degrees_of_freedom
        self.few_movements = d * d * len(space) < 2e10 and 2 * d < len(space)
        """Whether an echelon form of the whole space is worth keeping."""
        self.until = NEVER
        """When to stop looking for more inequalities."""
        if self.few_movements:
            self.movements, parameter = space.variables.compute_echelon()
            self._form = self.movements.copy(), parameter.copy()

    @property
    def n_attacks(self) -> int:
        """Number of attacks: each request upward and downward, unless both are mirror images."""
        return len(self._targets)

    @cached_property
    def program(self) -> MovementProgram:
        """The attacker's program over all rows."""
        one = np.ones(len(self.space))
        return MovementProgram(self.space.variables.relations, self.space.variables.basis, one, one)

    @cached_property
    def _columns(self) -> csc_array:
        return csc_array(self.space.variables.relations)

    def _look_at(self, y: FloatArray) -> None:
        """Attack at the point y from now on."""
        self._moving = np.flatnonzero((y > 0) | self._aimed)

    @property
    def _attack(self) -> MovementProgram | NarrowProgram:
        """The program of the attacks at the latest point; only over the rows that can move, if these are few."""
        if 2 * len(self._moving) >= len(self.space):
            return self.program
        if self._narrow is None or not np.array_equal(self._moving, self._narrow.rows):
            self._narrow = NarrowProgram(self._columns, self._moving)
        return self._narrow

    def _list_targets(self) -> list[Target]:
        """Request, row, direction and level of every attack, largest level first."""
        attacker, row, down, up, _ = self.space.requests
        targets = []
        for q in range(len(row)):
            low, high = self.space.get_bounds(int(attacker[q]))
            if np.array_equal(low, -high):  # up and down are mirror images
                targets.append((q, int(row[q]), 1, max(float(down[q]), float(up[q]))))
                continue
            targets.append((q, int(row[q]), 1, float(up[q])))
            targets.append((q, int(row[q]), -1, float(down[q])))
        return sorted((t for t in targets if t[3] > 0), key=lambda t: (-t[3], t[1], t[2]))

    # ------------------------------------------------------------------ bridges

    def find_bridges(self, y: FloatArray, violation: float = 1e-3) -> list[Row]:
        """Relations in which one row moves and the others hardly do."""
        T = self.relations
        total = self._incidence @ y
        largest = np.maximum.reduceat(y[T.indices], T.indptr[:-1]) if T.nnz else np.zeros(0)
        found = []
        for r in np.flatnonzero(2 * largest - total > violation):
            span = slice(T.indptr[r], T.indptr[r + 1])
            columns = T.indices[span].astype(np.int64)
            found.append(self._build_bridge(columns, T.data[span], int(np.argmax(y[columns]))))
        return found

    def list_first_bridges(self) -> list[Row]:
        """All bridges of the rows with a request."""
        T = self.relations
        found = []
        for r in range(T.shape[0]):
            span = slice(T.indptr[r], T.indptr[r + 1])
            columns = T.indices[span].astype(np.int64)
            found += [self._build_bridge(columns, T.data[span], int(k)) for k in np.flatnonzero(self.forced[columns])]
        return [row for row in found if row.rhs > 0]

    def _build_bridge(self, columns: IntArray, coefficients: FloatArray, k: int) -> Row:
        p = int(columns[k])
        others = np.delete(columns, k)
        if not self.forced[p]:
            return self._build_partner_row(others, p)
        r = np.zeros(len(self.forced))
        r[others] = -np.delete(coefficients, k) / coefficients[k]
        return self._build_strongest_capacity(r, p)

    def _build_strongest_capacity(self, r: FloatArray, p: int) -> Row:
        """The capacity inequality of ``z_p = sum r_j z_j`` for the highest level of row p."""
        for q, _, direction, level in self._of_row.get(p, ()):
            cut = self._build_capacity(r * direction, q, p, level)
            if cut is not None:
                return cut
        return Row(np.zeros(0, np.int64), np.zeros(0), 0.0)

    def _build_partner_row(self, others: IntArray, i: int) -> Row:
        """``y_i <= sum of the others``: row i can only move if one of them does."""
        if self.forced[others].any():  # always satisfied
            return Row(others, np.ones(len(others)), 0.0)
        return Row(np.append(others, i), np.append(np.ones(len(others)), -1.0), 0.0)

    # ------------------------------------------------------------------ circuits

    def find_circuits(self, y: FloatArray, *, order: FloatArray, violation: float = 1e-2, most: int = 200) -> list[Row]:
        """Combinations of the lightest rows, one for each other row: many cuts for the price of one elimination."""
        from cellguard._core.circuits import excess, lightest

        Z, parameter = self._form
        if np.abs(Z).max(initial=0.0) > 1e4:  # rounding has piled up
            Z[:], parameter[:] = self.space.variables.compute_echelon()
        lightest(Z, parameter, np.lexsort((-self.space.weight, order)))
        over = excess(Z, parameter, np.where(self.forced, 1.0, y))
        over[self.forced] = 1.0  # capacities decide
        found: list[Row] = []
        for i in np.argsort(-over, kind="stable")[: most + int(self.forced.sum())]:
            if over[i] <= violation or len(found) >= most:
                break
            members = np.flatnonzero(np.abs(Z[:, i]) > NO_ROW)
            if not len(members) or (len(members) == 1 and parameter[members[0]] == i):
                continue
            if self.forced[i]:
                r = np.zeros(len(y))
                r[parameter[members]] = Z[members, i]
                row = self._build_strongest_capacity(r, int(i))
            else:
                row = self._build_partner_row(parameter[members], int(i))
            if row.measure_violation(y) > violation:
                found.append(row)
        return found

    def _build_minimal_capacity(self, r: FloatArray, p: int, y: FloatArray) -> FloatArray:
        """The same row by fewer others: those of the combination that suffice, lightest first."""
        from cellguard._core.circuits import express

        used = np.flatnonzero(np.abs(r) > NO_ROW)
        used = used[used != p]
        used = used[np.lexsort((-self.space.weight[used], y[used]))]
        coefficients = express(self.movements, p, used)
        if not coefficients.any():
            return r
        out = np.zeros_like(r)
        out[used] = np.where(np.abs(coefficients) > NO_ROW, coefficients, 0.0)
        return out

    # ------------------------------------------------------------------ capacity

    def _build_capacity(self, r: FloatArray, q: int, p: int, level: float) -> Row | None:
        """``sum min(|r_j| room_j, level) y_j >= level`` over the rows that are free to decide."""
        low, high = self.space.get_bounds(int(self.space.requests[0][q]))
        used = np.flatnonzero(np.abs(r) > NO_ROW)
        used = used[used != p]
        return self._clip_row(used, np.where(r[used] > 0, r[used] * high[used], r[used] * low[used]) / level)

    def _build_sliding_capacity(self, r: FloatArray, q: int, level: float) -> Row | None:
        """The same for the width: r is the sum of both attacks' combinations, upward and downward."""
        low, high = self.space.get_bounds(int(self.space.requests[0][q]))
        positive, negative = np.maximum(r[0], 0) + np.maximum(r[1], 0), np.maximum(-r[0], 0) + np.maximum(-r[1], 0)
        used = np.flatnonzero(positive + negative > NO_ROW)
        return self._clip_row(
            used,
            (_scale_pattern_slack(high[used], positive[used]) + _scale_pattern_slack(-low[used], negative[used]))
            / level,
        )

    def _clip_row(self, used: IntArray, reach: FloatArray) -> Row | None:
        """``sum reach_j y_j >= 1``, less what is always there, cut at the right-hand side; None if that suffices."""
        forced = self.forced[used]
        rhs = 1.0 - float(reach[forced].sum())
        if rhs <= NO_ROW:
            return None
        used, reach = used[~forced], reach[~forced]
        return Row(used, np.minimum(reach / rhs, 1.0), 1.0)

    def find_capacities(
        self, y: FloatArray, *, clipped: bool, violation: float = 1e-3, most: int = 1 << 30
    ) -> list[Row]:
        """Attack every request at the point y; each attack that falls short gives an inequality.

        With `clipped`, no slack counts for more than the level: the multipliers then suit the
        coefficients, which are cut at the level too. Without it the attack is the true one, and
        finding nothing at a 0/1 point proves the pattern safe.
        """
        found: list[Row] = []
        self._look_at(y)
        shown = np.zeros(len(self._targets), bool) if clipped else self._find_shown(y)
        for k, target in enumerate(self._targets):
            if len(found) >= most or self.until.passed:
                break
            if shown[k]:
                continue
            down, up = self._compute_slack(target, y, clipped=clipped)
            if clipped and self._is_still_possible(k, down, up):
                continue
            q, p, direction, level = target
            r, value, z = self._push(p, direction, down, up)
            if r is None or z is None:
                continue
            if clipped:
                self._last[k] = z
            else:
                attacker = int(self._asked.attacker[k])
                kept = self._keep(attacker, z * level)
                shown |= self._find_met_targets(attacker, kept, y)
            if value < 1.0 - violation:
                short = self._build_minimal_capacity(r, p, y) * direction if clipped and self.few_movements else r
                cuts = (self._build_capacity(c, q, p, level) for c in (short, r))
                found += [c for c in cuts if c is not None and c.measure_violation(y) > violation][:1]
        if not clipped:
            found += self._find_width_rows(y, violation, most - len(found))
        return found

    def _compute_slack(self, target: Target, y: FloatArray, *, clipped: bool) -> tuple[FloatArray, FloatArray]:
        """How far each row can move at the point y, in levels of the target; the target itself by one level."""
        q, p, _, level = target
        low, high = self.space.get_bounds(int(self.space.requests[0][q]))
        down, up = -low / level, high / level
        if clipped:
            down, up = np.minimum(down, 1.0), np.minimum(up, 1.0)
        down, up = _scale_pattern_slack(down, y), _scale_pattern_slack(up, y)
        down[p], up[p] = min(1.0, -low[p] / level), min(1.0, high[p] / level)
        if not self.forced[p]:
            down[p], up[p] = down[p] * y[p], up[p] * y[p]
        return down, up

    def _is_still_possible(self, k: int, down: FloatArray, up: FloatArray) -> bool:
        """Whether the movement that met a target last time is still possible."""
        z = self._last.get(k)
        if z is None or self._asked.way[k] * z[self._asked.row[k]] < MET_BY_PROGRAM:
            return False
        return bool((z <= up + NO_ROW).all() and (z >= -down - NO_ROW).all())

    def _keep(self, attacker: int, z: FloatArray) -> list[Movement]:
        """Remember a true movement, which may meet requests at other points too; return it as stored."""
        size = np.abs(z)
        rows = np.flatnonzero(size > NO_ROW * size.max(initial=0.0))
        if not len(rows):
            return []
        bank = self._bank.setdefault(attacker, [])
        bank.append((rows, z[rows]))
        del bank[:-_BANK]
        return bank[-1:]

    def _find_shown(self, y: FloatArray) -> BoolArray:
        """Targets that remembered movements meet at the point y."""
        met = np.zeros(len(self._targets), bool)
        for attacker, bank in self._bank.items():
            met |= self._find_met_targets(attacker, bank, y)
        return met

    def _find_met_targets(self, attacker: int, movements: list[Movement], y: FloatArray) -> BoolArray:
        """Targets of an attacker that some of their movements meet at the point y."""
        if not movements:
            return np.zeros(len(self._targets), bool)
        reached, a = self._measure_reach(attacker, movements, y), self._asked
        far = np.where(a.way > 0, reached[0][a.row], reached[1][a.row])
        return (a.attacker == attacker) & (far >= a.level * MET_BY_PROGRAM)

    def _measure_reach(self, attacker: int, movements: list[Movement], y: FloatArray) -> FloatArray:
        """Return how far up and down each row moves by an attacker's movements at the point y, there or back."""
        low, high = self.space.get_bounds(attacker)
        rows, moved = (np.concatenate(part) for part in zip(*movements, strict=True))
        each = np.array([len(part) for part, _ in movements])
        begin = np.concatenate([[0], np.cumsum(each)[:-1]])
        down, up = _scale_pattern_slack(-low[rows], y[rows]), _scale_pattern_slack(high[rows], y[rows])
        size, rises = np.abs(moved), moved > 0
        forth, back = (
            np.repeat(np.minimum(np.minimum.reduceat(slack / size, begin), _FAR), each)  # slacks may be infinite
            for slack in (np.where(rises, up, down), np.where(rises, down, up))
        )
        reached = np.zeros((2, len(y)))
        for way, reach in zip((1, -1), reached, strict=True):
            np.maximum.at(reach, rows, np.maximum(way * moved * forth, -way * moved * back))
        return reached

    def _find_width_rows(self, y: FloatArray, violation: float, most: int = 1 << 30) -> list[Row]:
        """Attack the widths at the point y; those that remembered movements show need no program."""
        attacker, row, down, up, slide = self.space.requests
        asked = np.flatnonzero(slide > (down + up) * (1 + 1e-9))
        reached = {
            who: self._measure_reach(who, bank, y)
            for who in np.unique(attacker[asked]).tolist()
            if (bank := self._bank.get(who))
        }
        found: list[Row] = []
        for q in asked.tolist():
            if len(found) >= most or self.until.passed:
                break
            who, level, p = int(attacker[q]), float(slide[q]), int(row[q])
            if who in reached and reached[who][:, p].sum() >= level * MET_BY_PROGRAM:
                continue
            width, combinations = self._measure_width(q, y, reached)
            if len(combinations) == 2 and width < 1.0 - violation:
                cut = self._build_sliding_capacity(np.array(combinations), q, level)
                if cut is not None and cut.measure_violation(y) > violation:
                    found.append(cut)
        return found

    def _measure_width(self, q: int, y: FloatArray, reached: dict[int, FloatArray]) -> tuple[float, list[FloatArray]]:
        """Push a row both ways; return the width in levels and the combinations that prove it."""
        attacker, row, _, _, slide = self.space.requests
        who, level, p = int(attacker[q]), float(slide[q]), int(row[q])
        low, high = self.space.get_bounds(who)
        slack = _scale_pattern_slack(-low / level, y), _scale_pattern_slack(high / level, y)
        width, combinations = 0.0, []
        for direction in (1, -1):
            r, value, z = self._push(p, direction, *slack, own=True)
            if r is None or z is None:
                break
            width += value
            combinations.append(r)
            kept = self._keep(who, z * level)
            if kept:
                more = self._measure_reach(who, kept, y)
                reached[who] = np.maximum(reached[who], more) if who in reached else more
        return width, combinations

    def _push(
        self, p: int, direction: int, down: FloatArray, up: FloatArray, *, own: bool = False
    ) -> tuple[FloatArray | None, float, FloatArray | None]:
        """Push row p; the combination of the relations that proves how far, that value, the movement."""
        self.programs += 1
        program = self._attack
        program.set_room(down, up)
        push = program.push(np.array([p]), np.array([float(direction)]), time_limit_s=_LIMIT_S)
        if push.status is not SolveStatus.OPTIMAL or push.movement is None:
            return None, 0.0, None
        r = np.where(np.abs(push.prices) < NO_ROW, 0.0, push.prices)
        if not own:
            r[p] = 0.0
        return r, float(direction * push.movement[p]), push.movement

    # ------------------------------------------------------------------ partners

    def find_partners(self, y: FloatArray, *, least: float = 0.02, violation: float = 1e-2) -> list[Row]:
        """Rows without a request that are suppressed more than any combination of the others lets them move."""
        candidates = np.flatnonzero(~self.forced & (y > least))
        candidates = candidates[np.argsort(-y[candidates] * (1 + self.space.weight[candidates]), kind="stable")]
        self._look_at(y)
        program = self._attack
        program.set_room(y, y)
        covered = np.zeros(len(y))
        found = []
        late = Deadline.from_limit(_LIMIT_S)
        for i in candidates:
            if covered[i] >= y[i] - NO_ROW:
                continue
            if late.passed or self.until.passed:
                break
            self.programs += 1
            push = program.push(np.array([i]), np.array([1.0]), time_limit_s=_LIMIT_S)
            if push.status is not SolveStatus.OPTIMAL or push.movement is None:
                continue
            np.maximum(covered, np.abs(push.movement), out=covered)
            if push.movement[i] < y[i] - violation:  # then its own bound does not bind
                r = push.prices.copy()
                r[i] = 0.0
                short = self._build_minimal_capacity(r, int(i), y) if self.few_movements else r
                row = self._build_partner_row(np.flatnonzero(np.abs(short) > NO_ROW), int(i))
                if row.measure_violation(y) > violation:
                    found.append(row)
        return found


def _scale_pattern_slack(slack: FloatArray, share: FloatArray) -> FloatArray:
    """Return the share of a slack that may be infinite; a share of none is 0."""
    return np.where(share > 0, slack * np.where(share > 0, share, 1.0), 0.0)


def _drop_multiples(T: csr_array) -> csr_array:
    """Relations between rows that are not multiples of one another."""
    T.data[np.abs(T.data) < NO_ROW] = 0.0
    T.eliminate_zeros()
    T.sort_indices()
    seen: set[tuple[bytes, bytes]] = set()
    keep = []
    for r in range(T.shape[0]):
        span = slice(T.indptr[r], T.indptr[r + 1])
        if span.start == span.stop:
            continue
        key = T.indices[span].tobytes(), np.round(T.data[span] / T.data[span.start], 9).tobytes()
        if key not in seen:
            seen.add(key)
            keep.append(r)
    return T[keep]

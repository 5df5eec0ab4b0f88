"""Plain linear and integer programs: how far can a cell move in what an attacker holds possible?

Nothing here comes from cellguard. A table is written as its movement ``z = x - a`` from the truth:
``T z = 0`` and ``down <= z <= up``, in fractions. A float program answers first, in units of the
distance asked for. When it falls short, its multipliers are rounded to simple fractions and must
prove it exactly; where they do not, a simplex in fractions decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import highspy
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

Number = Fraction | None
"""None stands for a bound that is not there."""
FAR = 1e7
"""In units of the distance asked for: no cell needs to move farther than this for another one."""
MISSING = 2e-6
"""Share of a level that may be missing: the millionth of the manual, and what a float program leaves."""

MANY_TABLES = 8
"""Tables that are remembered."""
MANY_STEPS = 1000
"""Whole numbers from which on a fraction more or less does not matter."""


def exact(number: Any) -> Fraction:
    """Return a float as it is printed."""
    return Fraction(repr(float(number)))


_MEMOS: dict[int, tuple[Any, dict[str, Any]]] = {}
"""Of the last few tables: what was computed once for all their attackers."""


def remember(table: Any, name: str, compute: Callable[[], Any]) -> Any:
    """Return something that follows from a table alone, computed once."""
    kept = _MEMOS.get(id(table))
    if kept is None or kept[0] is not table:
        if len(_MEMOS) >= MANY_TABLES:
            _MEMOS.clear()
        kept = _MEMOS[id(table)] = (table, {})
    if name not in kept[1]:
        kept[1][name] = compute()
    return kept[1][name]


@dataclass(frozen=True, eq=False)
class Possible:
    """What one attacker holds possible: relations as rows of cell -> coefficient, and limits of the movements."""

    rows: Sequence[Mapping[int, Fraction]]
    down: Sequence[Number]
    up: Sequence[Number]
    whole: Sequence[bool] | bool = False
    """Which cells are whole numbers; one word for all of them."""
    _cache: dict[str, Any] = field(default_factory=dict)

    def free(self) -> list[int]:
        """Cells that may move at all, by their own limits."""
        if "free" not in self._cache:
            self._cache["free"] = [
                j for j, (d, u) in enumerate(zip(self.down, self.up, strict=True)) if d is None or u is None or d < u
            ]
        return self._cache["free"]

    def matrix(self) -> csr_array:
        """Relations over the free cells."""
        if "matrix" not in self._cache:
            place = self.place()
            kept = [[(place[j], float(c)) for j, c in row.items() if j in place] for row in self.rows]
            kept = [row for row in kept if row]
            i = [r for r, row in enumerate(kept) for _ in row]
            j = [k for row in kept for k, _ in row]
            c = [x for row in kept for _, x in row]
            self._cache["matrix"] = csr_array(coo_array((c, (i, j)), shape=(len(kept), len(place))))
        return self._cache["matrix"]

    def counted(self) -> np.ndarray:
        """Which of the free cells are whole numbers."""
        if "counted" not in self._cache:
            every = np.broadcast_to(np.asarray(self.whole, bool), len(self.down))
            self._cache["counted"] = every[self.free()]
        return self._cache["counted"]

    def place(self) -> dict[int, int]:
        """Column of each free cell."""
        if "place" not in self._cache:
            self._cache["place"] = {j: k for k, j in enumerate(self.free())}
        return self._cache["place"]

    def floats(self, name: str) -> np.ndarray:
        """Limits of the free cells' movements as floats."""
        if name not in self._cache:
            far = np.inf if name == "up" else -np.inf
            self._cache[name] = np.array(
                [far if (b := getattr(self, name)[j]) is None else float(b) for j in self.free()]
            )
        return self._cache[name]

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Limits of all cells' movements as floats."""
        if "limits" not in self._cache:
            low = np.array([-np.inf if b is None else float(b) for b in self.down])
            self._cache["limits"] = low, np.array([np.inf if b is None else float(b) for b in self.up])
        return self._cache["limits"]

    def solver(self) -> Any:
        """Return a solver that holds the relations; limits and cost are set for each question."""
        if "solver" not in self._cache:
            T = self.matrix()
            model = highspy.HighsLp()
            model.num_col_, model.num_row_ = T.shape[1], T.shape[0]
            model.col_cost_ = np.zeros(T.shape[1])
            model.col_lower_, model.col_upper_ = np.zeros(T.shape[1]), np.zeros(T.shape[1])
            model.row_lower_ = model.row_upper_ = np.zeros(T.shape[0])
            model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
            model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = T.indptr, T.indices, T.data
            solver = highspy.Highs()
            for option, value in (("output_flag", False), ("threads", 1), ("primal_feasibility_tolerance", 1e-10),
                                  ("dual_feasibility_tolerance", 1e-10)):  # fmt: skip
                solver.setOptionValue(option, value)
            solver.passModel(model)
            self._cache["solver"] = solver
        return self._cache["solver"]

    def exact_rows(self) -> list[dict[int, Fraction]]:
        """Return the rows of the matrix, in its order, as fractions."""
        if "rows" not in self._cache:
            free = set(self.free())
            kept = [{j: c for j, c in row.items() if j in free} for row in self.rows]
            self._cache["rows"] = [row for row in kept if row]
        return self._cache["rows"]


@dataclass(frozen=True)
class Reach:
    """How far a cell gets in one direction."""

    share: float
    """Of the distance asked for; 1 is enough."""
    proven: Fraction | None = None
    """Where it falls short: what it cannot exceed, proven by fractions."""
    movement: np.ndarray | None = None
    """Where it gets there: how all free cells move, which proves it."""


def reach(possible: Possible, cell: int, sign: int, distance: Fraction) -> Reach:
    """Say how much of a distance the cell can move, upwards (1) or downwards (-1)."""
    if distance <= 0:
        return Reach(1.0)
    own = possible.up[cell] if sign > 0 else possible.down[cell]
    if own is not None and abs(own) < distance * (1 - Fraction(1, 10**9)):
        limit = min(distance, max(Fraction(0), sign * own))
    else:
        limit = distance
    if limit == 0 or cell not in possible.place():
        return Reach(0.0, Fraction(0))
    share, z, multipliers = _float_program(possible, cell, sign, float(distance), float(limit))
    if share < 1 - MISSING / 4:
        if possible.counted()[possible.place()[cell]] and distance < MANY_STEPS:  # fewer whole numbers than fractions
            return _whole_reach(possible, cell, sign, distance)
        return _proven_short(possible, cell, sign, distance, share, multipliers)
    if not _is_whole(z[possible.counted()] * float(distance)):
        return _whole_reach(possible, cell, sign, distance)
    return Reach(min(share, 1.0), movement=z * float(distance))


def _float_program(
    possible: Possible, cell: int, sign: int, unit: float, limit: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Maximise ``sign * z[cell]`` in units of `unit`, up to `limit`; return it, the movement and the multipliers."""
    free = possible.free()
    at = possible.place()[cell]
    low = np.clip(possible.floats("down") / unit, -FAR, FAR)
    high = np.clip(possible.floats("up") / unit, -FAR, FAR)
    if sign > 0:
        high[at] = min(high[at], limit / unit)
    else:
        low[at] = max(low[at], -limit / unit)
    solver = possible.solver()
    every = np.arange(len(free), dtype=np.int32)
    cost = np.zeros(len(free))
    cost[at] = -sign
    solver.changeColsBounds(len(free), every, low, high)
    solver.changeColsCost(len(free), every, cost)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return 0.0, np.zeros(len(free)), np.zeros(len(possible.exact_rows()))
    found = solver.getSolution()
    z = np.array(found.col_value)
    return float(sign * z[at]), z, -np.array(found.row_dual)


def _is_whole(z: np.ndarray) -> bool:
    return bool((np.abs(z - np.rint(z)) < 1e-6).all())


def _proven_short(
    possible: Possible, cell: int, sign: int, distance: Fraction, share: float, multipliers: np.ndarray
) -> Reach:
    """Turn what a float program says into a proof, or find out that it was wrong."""
    for limit in (1, 12, 1000):
        y = [Fraction(float(v)).limit_denominator(limit) for v in multipliers]
        bound = upper_bound(possible, cell, sign, y)
        if bound is not None and bound <= distance * Fraction(share + 1e-7):
            return Reach(share, bound)
    true = exact_reach(possible, cell, sign, distance)
    return Reach(float(true / distance), None if true >= distance else true)


def upper_bound(possible: Possible, cell: int, sign: int, y: Sequence[Fraction]) -> Number:
    """Return what multipliers prove of ``sign * z[cell]``: weak duality in fractions; None if nothing."""
    reduced: dict[int, Fraction] = {cell: Fraction(sign)}
    for row, factor in zip(possible.exact_rows(), y, strict=True):
        if factor:
            for j, c in row.items():
                reduced[j] = reduced.get(j, Fraction(0)) - factor * c
    total = Fraction(0)
    for j, r in reduced.items():
        end = possible.up[j] if r > 0 else possible.down[j]
        if r and end is None:
            return None
        if r:
            total += r * end  # type: ignore[operator]
    return total


def exact_reach(possible: Possible, cell: int, sign: int, cap: Fraction) -> Fraction:
    """Return how far the cell gets, at most `cap`, by a simplex in fractions that starts at the truth."""
    if cell not in possible.place():
        return Fraction(0)
    rows = echelon([dict(r) for r in possible.exact_rows()], avoid=cell)
    goal = {cell: Fraction(sign)}
    if cell in rows:  # the cell as a combination of the others
        goal = {j: -sign * c for j, c in rows[cell].items() if j != cell}
    down, up = list(possible.down), list(possible.up)
    if sign > 0 and (up[cell] is None or up[cell] > cap):
        up[cell] = cap
    if sign < 0 and (down[cell] is None or down[cell] < -cap):
        down[cell] = -cap
    z = {j: Fraction(0) for j in possible.free()}
    while True:
        entering = next(
            (
                j
                for j in sorted(goal)
                if (goal[j] > 0 and _above(up[j], z[j])) or (goal[j] < 0 and _below(down[j], z[j]))
            ),
            None,
        )
        if entering is None:
            return sign * z[cell]
        direction = 1 if goal[entering] > 0 else -1
        _move(rows, goal, z, down, up, entering, direction)


def _above(bound: Number, value: Fraction) -> bool:
    return bound is None or value < bound


def _below(bound: Number, value: Fraction) -> bool:
    return bound is None or value > bound


def _move(rows, goal, z, down, up, entering: int, direction: int) -> None:
    """Move one cell as far as the others allow; who stops it leaves the basis (Bland: the first of them)."""
    end = up[entering] if direction > 0 else down[entering]
    step: Number = None if end is None else abs(end - z[entering])
    leaving = None
    for basic in sorted(rows):
        rate = -rows[basic].get(entering, Fraction(0)) * direction
        if not rate:
            continue
        end = up[basic] if rate > 0 else down[basic]
        if end is None:
            continue
        room = (end - z[basic]) / rate
        if step is None or room < step:
            step, leaving = room, basic
    assert step is not None, "the cap stops every movement"
    z[entering] += direction * step
    for basic, row in rows.items():
        if entering in row:
            z[basic] -= row[entering] * direction * step
    if leaving is None:
        return
    row = rows.pop(leaving)
    pivot = row[entering]
    row = {j: c / pivot for j, c in row.items()}
    rows[entering] = row
    for other in rows:
        if other != entering and rows[other].get(entering):
            _subtract(rows[other], row, rows[other][entering])
    if goal.get(entering):
        factor = goal[entering]
        _subtract(goal, row, factor)


def _subtract(target: dict[int, Fraction], row: Mapping[int, Fraction], factor: Fraction) -> None:
    for j, c in row.items():
        value = target.get(j, Fraction(0)) - factor * c
        if value:
            target[j] = value
        else:
            target.pop(j, None)


def echelon(rows: list[dict[int, Fraction]], avoid: int) -> dict[int, dict[int, Fraction]]:
    """Return basic cell -> row with coefficient 1 there; each basic cell is in its own row only."""
    out: dict[int, dict[int, Fraction]] = {}
    for row in rows:
        for basic in [j for j in row if j in out]:
            _subtract(row, out[basic], row[basic])
        if not row:
            continue
        pivot = next((j for j in row if j != avoid), avoid)
        row = {j: c / row[pivot] for j, c in row.items()}  # noqa: PLW2901 - the same relation, another scale
        for other in out.values():
            if other.get(pivot):
                _subtract(other, row, other[pivot])
        out[pivot] = row
    return out


def _whole_reach(possible: Possible, cell: int, sign: int, distance: Fraction) -> Reach:
    """Move in whole numbers only, as far as possible."""
    free = possible.free()
    at = possible.place()[cell]
    far = 1000 * float(distance) + 1000
    down = np.array([-far if (d := possible.down[j]) is None else max(-far, float(d)) for j in free])
    up = np.array([far if (u := possible.up[j]) is None else min(far, float(u)) for j in free])
    counted = possible.counted()
    down = np.where(counted, np.ceil(down - 1e-9), down)
    up = np.where(counted, np.floor(up + 1e-9), up)
    cost = np.zeros(len(free))
    cost[at] = -sign  # no cap: in whole numbers a cell may jump over the distance
    T = possible.matrix()
    zero = np.zeros(T.shape[0])
    rows = [LinearConstraint(T, zero, zero)] if T.shape[0] else []
    found = milp(cost, integrality=counted.astype(int), bounds=Bounds(down, up), constraints=rows)
    if found.x is None:
        return Reach(0.0, Fraction(0))
    moved = int(np.rint(sign * found.x[at])) if counted[at] else Fraction(float(sign * found.x[at]))
    if moved >= distance * (1 - Fraction(MISSING) / 4):
        return Reach(1.0, movement=found.x)
    return Reach(float(moved / distance), Fraction(moved))

"""Check a new table: shapes, numbers, bounds, levels and additivity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cellguard._tolerances import RELATION
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import AdditivityError, InputError, LevelError, ReleaseError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.model.table import Table

__all__ = ["CELL_ARRAYS", "check_sums", "check_table", "compute_residuals_and_noise", "refuse_cells"]

CELL_ARRAYS: Mapping[str, type] = {
    "values": np.float64, "lb": np.float64, "ub": np.float64, "weights": np.float64, "fixed": np.bool_,
    "sensitive": np.bool_, "lower": np.float64, "upper": np.float64, "sliding": np.float64,
}  # fmt: skip
"""Field with one entry per cell -> type of an entry."""
_LARGEST = 1e100
"""Sums of larger values could overflow, and every relation would then seem to hold."""


def check_table(table: Table) -> None:
    """Raise an error for the first fault found in a new table; make its arrays read-only."""
    _freeze_table_arrays(table)
    _check_codes_in_hierarchies(table)
    _check_values_of_table(table)
    _check_table_adds_up(table)
    _check_levels(table)


def refuse_cells(
    table: Table, bad: BoolArray, what: str, hint: str | None = None, kind: type[InputError] = InputError
) -> None:
    """Raise an error if any cell is marked; name the first by its label, never its value, and count the others."""
    if bad.any():
        more = int(bad.sum()) - 1
        also = f" (and {more} more)" if more else ""
        raise kind(f"{table.label(int(np.argmax(bad)))}{also}: {what}", hint=hint)


def check_sums(table: Table, published: FloatArray, digits: int | None = None) -> None:
    """Refuse published numbers that do not add up; compare exactly if they have `digits` decimals and fit integers."""
    if digits is not None:
        from cellguard._engine.numbers.multiples import compute_exact_residuals

        exact = compute_exact_residuals(table.relations, table.rhs, published, digits)
        if exact is not None:
            if (bad := exact != 0).any():
                _refuse_sums(table, bad, int(np.argmax(bad)))
            return
    residual, allowed = compute_residuals_and_noise(table.relations, table.rhs, published)
    bad = np.abs(residual) > 100 * allowed
    if bad.any():
        _refuse_sums(table, bad, int(np.argmax(np.abs(residual) - allowed)))


def _refuse_sums(table: Table, bad: BoolArray, worst: int) -> None:
    raise ReleaseError(
        f"{int(bad.sum())} of {table.n_relations} relations do not hold in what is published; "
        f"the worst is {table.describe_relation(worst)}.",
        hint="was the release made from this table, and were all its cells read?",
    )


def _freeze_table_arrays(t: Table) -> None:
    n = np.asarray(t.values).size
    known: dict[str, type] = {"counts": np.float64} if t.counts is not None else {}
    known |= {"counted": np.bool_} if t.counted is not None else {}
    for name, dtype in {**CELL_ARRAYS, **known}.items():
        array: NDArray[Any] = np.ascontiguousarray(getattr(t, name), dtype=dtype)
        if array.shape != (n,):
            raise InputError(f"{name} has {array.size} entries; the table has {n} cells.")
        if array is getattr(t, name) and array.flags.writeable:
            array = array.copy()  # the caller's own array stays writeable
        array.setflags(write=False)
        object.__setattr__(t, name, array)
    rhs = np.array(t.rhs, dtype=np.float64).ravel()
    rhs.setflags(write=False)
    object.__setattr__(t, "rhs", rhs)
    if t.relations.shape != (len(rhs), n):
        raise InputError(f"relations have shape {t.relations.shape}; {(len(rhs), n)} is needed.")
    if not t.relations.has_sorted_indices:
        t.relations.sort_indices()


def _check_codes_in_hierarchies(t: Table) -> None:
    n = t.n_cells
    if len(t.codes) != len(t.dimensions):
        raise InputError(f"codes of {len(t.codes)} dimensions are given; the table has {len(t.dimensions)}.")
    if t.hierarchies and tuple(h.codes for h in t.hierarchies) != t.codes:
        raise InputError("the codes of the dimensions are not those of their hierarchies.")
    if t.dimensions and t.coordinates.shape != (n, len(t.dimensions)):
        raise InputError(f"coordinates have shape {t.coordinates.shape}; {(n, len(t.dimensions))} is needed.")
    for d, dimension in enumerate(t.dimensions):
        place = t.coordinates[:, d]
        if n and not (place.min() >= 0 and place.max() < len(t.codes[d])):
            raise InputError(f"dimension {dimension!r}: a cell's code lies outside 0..{len(t.codes[d]) - 1}.")


def _check_values_of_table(t: Table) -> None:
    refuse_cells(t, ~(np.abs(t.values) < _LARGEST), "the value is not a finite number of sensible size.")
    if not np.isfinite(t.rhs).all() or not np.isfinite(t.relations.data).all():
        raise InputError("relations: a coefficient or right-hand side is not a finite number.")
    refuse_cells(t, np.isnan(t.lb) | np.isnan(t.ub), "a bound is not a number.")
    slack = RELATION * np.maximum(1.0, np.abs(t.values))
    truth = "bounds must contain the truth."
    refuse_cells(t, t.lb > t.values + slack, "the lower bound lies above the value.", truth)
    refuse_cells(t, t.ub < t.values - slack, "the upper bound lies below the value.", truth)
    refuse_cells(t, ~(np.isfinite(t.weights) & (t.weights >= 0)), "the weight is not a finite number of at least 0.")
    broken = t.count_cells & (t.values != np.rint(t.values))
    refuse_cells(t, broken, "a count that is not a whole number.", "leave `integer` out: the values are not counts.")
    if t.counts is not None:  # counts decide which contributors are alone in a cell, and which cells are empty
        refuse_cells(t, ~(t.counts >= 0), "the number of contributors is missing or negative.")
        hint = "give their number, or leave the column of numbers out."
        refuse_cells(t, (t.counts == 0) & (t.values != 0), "has a value, and no contributors.", hint)
    for attacker in t.attackers:
        for index in (attacker.cells, attacker.sensitive):
            if index is not None and len(index) and (index.min() < 0 or index.max() >= t.n_cells):
                raise InputError(f"attacker {attacker.name!r} names a cell outside 0..{t.n_cells - 1}.")


def _check_table_adds_up(t: Table) -> None:
    residual, allowed = compute_residuals_and_noise(t.relations, t.rhs, t.values)
    bad = np.abs(residual) > allowed
    if bad.any():
        order = np.argsort(allowed - np.abs(residual), kind="stable")[: int(bad.sum())]
        worst = int(order[0])
        error = AdditivityError(
            f"{int(bad.sum())} of {t.n_relations} relations do not hold; the worst is {t.describe_relation(worst)}.",
            hint="totals must equal the sum of their parts; correct the input, or ask for totals to be recomputed.",
            # if a part is missing, the difference is its value
            internal=f"the worst is off by {abs(residual[worst]):.6g}.",
        )
        error.totals = tuple(_get_total_codes(t, relation) for relation in order.tolist())
        raise error


def _get_total_codes(t: Table, relation: int) -> tuple[str, ...]:
    """Return the codes of a relation's only total; empty if it has several, or if cells have no codes."""
    cells, signs = t.get_relation_cells(relation)
    total = cells[signs < 0]
    return tuple(t.cell_codes(int(total[0])).values()) if len(total) == 1 and t.dimensions else ()


def _check_levels(t: Table) -> None:
    for name in ("lower", "upper", "sliding"):
        level = getattr(t, name)
        wrong = f"the {name} level is not a finite number of at least 0."
        refuse_cells(t, ~(np.isfinite(level) & (level >= 0)), wrong, kind=LevelError)
        wrong = f"a {name} level on a cell that is not sensitive."
        refuse_cells(t, (level > 0) & ~t.sensitive, wrong, kind=LevelError)
    refuse_cells(
        t,
        t.sensitive & t.fixed,
        "a sensitive cell cannot be fixed.",
        "no release can protect a cell that must be published unchanged: make it one or the other.",
        LevelError,
    )
    least = t.smallest_width
    if least is not None and not (np.isfinite(least) and least >= (2 if t.integer else 0) and least > 0):
        asked = "at least 2 whole numbers" if t.integer else "a share of the value above 0"
        raise LevelError(f"smallest_width {least!r}: {asked} is needed.")
    for attacker in t.attackers:
        need = t.levels(attacker)
        a, (lo, hi) = t.values[need.cells], (bound[need.cells] for bound in t.bounds(attacker))
        slack = 1e-7 * np.maximum(1.0, np.abs(a))
        for name, width in (("lower", a - lo), ("upper", hi - a), ("sliding", hi - lo)):
            bad = np.zeros(t.n_cells, bool)
            bad[need.cells[getattr(need, name) > width + slack]] = True
            refuse_cells(
                t,
                bad,
                f"the {name} level is wider than what attacker {attacker.name!r} already knows leaves open.",
                "lower the level, or widen the known bounds: no release can meet it.",
                LevelError,
            )


def compute_residuals_and_noise(T: csr_array, rhs: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``T x - b`` for each relation, and the part of it that rounding alone can explain."""
    residual = T @ values - rhs
    size = abs(T) @ np.abs(values) + np.abs(rhs)
    return residual, RELATION * np.maximum(size, 1e-3)

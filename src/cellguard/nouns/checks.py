"""What a new table must satisfy: shapes, numbers, bounds, levels, additivity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cellguard._tolerances import RELATION
from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import AdditivityError, InputError, LevelError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.nouns.table import Table

__all__ = ["CELL_ARRAYS", "additivity_residuals", "check_table", "refuse_cells"]

CELL_ARRAYS: Mapping[str, type] = {
    "values": np.float64, "lb": np.float64, "ub": np.float64, "weights": np.float64, "fixed": np.bool_,
    "sensitive": np.bool_, "lower": np.float64, "upper": np.float64, "sliding": np.float64,
}  # fmt: skip
"""Fields of a table that have an entry for every cell -> what an entry is."""
_LARGEST = 1e100
"""Sums of larger values could overflow, and then every relation would seem to hold."""


def check_table(table: Table) -> None:
    """Raise the error of the first thing that is wrong with a new table; its arrays are made read-only on the way."""
    _freeze_table_arrays(table)
    _check_codes_in_hierarchies(table)
    _check_values_of_table(table)
    _check_table_adds_up(table)
    _check_levels(table)


def refuse_cells(
    table: Table, bad: BoolArray, what: str, hint: str | None = None, kind: type[InputError] = InputError
) -> None:
    """Refuse cells, if there are any: the first by its label, never by its value, and how many more there are."""
    if bad.any():
        more = int(bad.sum()) - 1
        also = f" (and {more} more)" if more else ""
        raise kind(f"{table.label(int(np.argmax(bad)))}{also}: {what}", hint=hint)


def _freeze_table_arrays(t: Table) -> None:
    n = np.asarray(t.values).size
    known = {"counts": np.float64} if t.counts is not None else {}
    for name, dtype in {**CELL_ARRAYS, **known}.items():
        array: NDArray[Any] = np.ascontiguousarray(getattr(t, name), dtype=dtype)
        if array.shape != (n,):
            raise InputError(f"{name} has {array.size} entries; the table has {n} cells.")
        if array is getattr(t, name) and array.flags.writeable:
            array = array.copy()  # the caller keeps his array writeable
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
    if t.counts is not None:  # who is alone in a cell, and which are empty, is read from them
        refuse_cells(t, ~(t.counts >= 0), "the number of contributors is missing or negative.")
        hint = "give their number, or leave the column of numbers out."
        refuse_cells(t, (t.counts == 0) & (t.values != 0), "has a value, and no contributors.", hint)
    for attacker in t.attackers:
        for index in (attacker.cells, attacker.sensitive):
            if index is not None and len(index) and (index.min() < 0 or index.max() >= t.n_cells):
                raise InputError(f"attacker {attacker.name!r} names a cell outside 0..{t.n_cells - 1}.")


def _check_table_adds_up(t: Table) -> None:
    residual, allowed = additivity_residuals(t.relations, t.rhs, t.values)
    bad = np.abs(residual) > allowed
    if bad.any():
        order = np.argsort(allowed - np.abs(residual), kind="stable")[: int(bad.sum())]
        worst = int(order[0])
        error = AdditivityError(
            f"{int(bad.sum())} of {t.n_relations} relations do not hold; the worst is {t.relation_label(worst)}.",
            hint="totals must equal the sum of their parts; correct the input, or ask for totals to be recomputed.",
            # where a part is missing, the difference is its value
            internal=f"the worst is off by {abs(residual[worst]):.6g}.",
        )
        error.totals = tuple(_codes_of_total(t, relation) for relation in order.tolist())
        raise error


def _codes_of_total(t: Table, relation: int) -> tuple[str, ...]:
    """Return the codes of the one total of a relation; none where it has several, or cells have no codes."""
    cells, signs = t.cells_of_relation(relation)
    total = cells[signs < 0]
    return tuple(t.codes_of(int(total[0])).values()) if len(total) == 1 and t.dimensions else ()


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
        "no release can protect a cell that must be published as it is: make it one or the other.",
        LevelError,
    )
    least = t.smallest_width
    if least is not None and not (np.isfinite(least) and least >= 2 if t.integer else 0 < least < np.inf):
        asked = "at least 2 whole numbers" if t.integer else "a share of the value above 0"
        raise LevelError(f"smallest_width {least!r}: {asked} is needed.")
    for attacker in t.attackers:
        need = t.levels(attacker)
        a, (lo, hi) = t.values[need.cells], (bound[need.cells] for bound in t.bounds(attacker))
        slack = 1e-7 * np.maximum(1.0, np.abs(a))
        for name, room in (("lower", a - lo), ("upper", hi - a), ("sliding", hi - lo)):
            bad = np.zeros(t.n_cells, bool)
            bad[need.cells[getattr(need, name) > room + slack]] = True
            refuse_cells(
                t,
                bad,
                f"the {name} level is wider than what attacker {attacker.name!r} already knows leaves open.",
                "lower the level, or widen the known bounds: no release can meet it.",
                LevelError,
            )


def additivity_residuals(T: csr_array, rhs: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``T x - b`` and what rounding alone may leave of it, relation by relation."""
    residual = T @ values - rhs
    size = abs(T) @ np.abs(values) + np.abs(rhs)
    return residual, RELATION * np.maximum(size, 1e-3)

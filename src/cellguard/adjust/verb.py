"""The verb: options in, an :class:`~cellguard.release.Adjustment` out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._engine.adjuster import Closest, adjuster_of
from cellguard._engine.distance import Distance
from cellguard._engine.weights import weights_by_value
from cellguard.adjust.senses import Need, fixed_senses, needs
from cellguard.exceptions import InputError, UnknownCodeError, did_you_mean
from cellguard.release import Adjustment, Status
from cellguard.table import FloatArray, Table

__all__ = ["NORMS", "adjust"]

NORMS = ("l1", "l2", "linf", "l12")
"""castro2004 (4), (5), (6) and (10)."""


def adjust(
    table: Table,
    *,
    norm: str = "l2",
    weights: str | ArrayLike = "inverse",
    senses: str | ArrayLike = "upper",
    omega: float = 0.99,
    squares: ArrayLike | None = None,
    square_weights: str | ArrayLike | None = None,
    seed: int = 0,
) -> Adjustment:
    """Find the closest additive table in which every sensitive cell is at least its level away from the truth.

    Parameters
    ----------
    table
        What is to be protected.
    norm
        How distance is measured: ``l1`` the sum of weighted changes, ``l2`` of weighted squares,
        ``linf`` the largest weighted change of the sensitive cells plus that of the others, ``l12``
        a mixture of the first two (castro2004 (4), (5), (6), (10)).
    weights
        One number per cell, or a kind: ``inverse`` (1/value; 1 where it is 0), ``inverse_square``,
        ``inverse_sqrt``, ``unit``, ``value``, ``table`` (the table's own), ...
    senses
        Which way sensitive cells go: ``upper``, ``lower``, ``key`` (by a hash of the cell's
        contributors or coordinates and `seed`, the same in every table), or an array: positive
        numbers for up, negative for down, one per sensitive cell or one per cell.
    omega
        Share of the absolute changes in ``l12``; the squares get the rest.
    squares
        Cells whose squares count in ``l12`` (indices or truth values); all unless given.
    square_weights
        Weights of the squares in ``l12``; as `weights` unless given.
    seed
        The secret of ``senses="key"``.

    Returns
    -------
    Adjustment
        Its status is optimal when an independent check has proven it.

    Examples
    --------
    Figure 3 of castro2004: a total of two cells must rise by four.

    >>> import cellguard as cg
    >>> table = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    >>> cg.adjust(table, norm="l2").values.round(6).tolist()
    [14.4, 9.6, 24.0]
    """
    begin = time.perf_counter()
    distance = _distance(table, norm, weights, omega, squares, square_weights)
    need = needs(table)
    adjuster = adjuster_of(table.relations, table.fixed)
    reduced = time.perf_counter()
    options = {"norm": norm, "weights": _named(weights), "senses": _named(senses), "seed": seed}
    if norm == "l12":
        options |= {"omega": omega, "squares": _named(squares), "square_weights": _named(square_weights)}
    up = fixed_senses(table, need, senses, seed)
    found = adjuster.solve(*need.bounds(table, up), distance)
    solved = time.perf_counter()
    return _release(
        table,
        need,
        found,
        details={"norm": norm, "iterations": found.iterations},
        options=options,
        seconds={"reduce": reduced - begin, "solve": solved - reduced},
    )


def _named(option: Any) -> Any:
    """Return an option as a release keeps it: arrays decide the result but are confidential."""
    return option if option is None or isinstance(option, str) else "given"


def _weights(table: Table, given: str | ArrayLike, name: str) -> FloatArray:
    if isinstance(given, str):
        return table.weights if given == "table" else weights_by_value(given, table.values)
    array = np.asarray(given, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(table.n_cells, float(array))
    if array.shape != (table.n_cells,):
        raise InputError(f"{name}: {array.size} numbers given for {table.n_cells} cells.")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        which = f"{table.label(int(np.argmax(bad)))} (and {int(bad.sum()) - 1} more)"
        raise InputError(
            f"{name}: {which}: no finite number of at least 0.",
            hint="a weight is the loss per unit of change; 0 means that the cell may move freely.",
        )
    return array


def _distance(table: Table, norm: str, weights: Any, omega: float, squares: Any, square_weights: Any) -> Distance:
    if norm not in NORMS:
        raise UnknownCodeError(
            f"norm {norm!r} is not known; known are {', '.join(NORMS)}.", hint=did_you_mean(str(norm), NORMS)
        )
    w, n = _weights(table, weights, "weights"), table.n_cells
    if norm == "l1":
        return Distance.of(n, absolute=w)
    if norm == "l2":
        return Distance.of(n, square=w)
    if norm == "linf":
        return Distance.of(n, largest=w, group=np.where(table.sensitive, 0, 1))
    if not 0.0 <= omega <= 1.0:
        raise InputError(f"omega {omega!r}: a share between 0 and 1 is needed.")
    w2 = w if square_weights is None else _weights(table, square_weights, "square_weights")
    if squares is not None:
        chosen = np.zeros(n, bool)
        chosen[np.asarray(squares)] = True
        w2 = np.where(chosen, w2, 0.0)
    return Distance.of(n, absolute=omega * w, square=(1.0 - omega) * w2)


def _release(table: Table, need: Need, found: Closest, **fields: Any) -> Adjustment:
    """Turn what was found into a release; only what is proven is called optimal."""
    proof = found.certificate
    if proof is None:
        nothing = np.full(table.n_cells, np.nan)
        return Adjustment(
            table=table,
            status=Status.INFEASIBLE,
            objective=float("nan"),
            values=nothing,
            explanation="no table with these senses satisfies the relations and the bounds.",
            **fields,
        )
    return Adjustment(
        table=table,
        status=Status.OPTIMAL if found.proven else Status.FEASIBLE,
        objective=proof.objective,
        bound=proof.bound,
        values=table.values + found.z,
        explanation="" if need.cells.any() else "no cell needs protection: the table itself.",
        **fields,
    )

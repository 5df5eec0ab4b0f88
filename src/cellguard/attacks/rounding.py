"""The informed attacker of rounded and perturbed tables: their beliefs, what these narrow, how often they hold.

The audit takes from a release what is certain: no cell moved farther than it says. An attacker who has
read the manual can believe more.

========  ==========================================================================================
levels    certain, for an attacker who knows that a cell is sensitive and its levels as shares: a
          published value that leaves ``a - p a`` and ``a + q a`` possible shows that a is no nearer to
          the ends of ``v -/+ d`` than that
nearest   probable, and false where values were drawn: cells go to the nearest multiple as far as
          the relations allow
========  ==========================================================================================

**nearest** is exact for rounding by the plain distance: v is a nearest rounding of a when some prices of
the relations explain it. With ``e = a - v``, bases r, weights w and a vector ``h = T' y`` of prices, a step
of one base up costs ``w (r - 2 e) - r h >= 0`` and one down ``w (r + 2 e) + r h >= 0``, hence

    | e + r h / (2 w) | <= r / 2,        T e = 0,

which is a linear program: with one base and unit weights the errors that are possible are the projection
of a cube of half the size on the tables that add up to 0. (Levels, larger steps and proofs that stopped at
a gap only add to what is possible; whether the truth is in it is counted, not assumed.) A perturbed value
that is a multiple is taken for half a base from the truth, any other for a whole one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, hstack, vstack

from cellguard._attack_options import METHOD_KNOWLEDGE
from cellguard._engine.numbers.multiples import find_off_base
from cellguard._engine.solvers.lp import ONCE, LinearModel, LinearProgram
from cellguard._tolerances import LEVEL_TOLERANCE
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.attacks.asked import Asked, MethodKnowledge, choose_cells
from cellguard.model.levels import Levels
from cellguard.release.release import Perturbation, Rounding

__all__ = ["MethodAttack", "attack_method"]

_FAR = 1e-6
"""Noise of a program, relative to the distance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodAttack(MethodKnowledge):
    """What an informed attacker, or one with the levels, believes about the sensitive cells."""

    method: str
    """round or perturb."""
    held: BoolArray = field(repr=False)
    """Cells whose true value lies in between."""
    missed: BoolArray = field(repr=False)
    """Cells whose true value lies in between, closer than their levels."""
    exact: BoolArray = field(repr=False)
    """Cells of which only the true value is left."""
    width: float
    """Mean width of the remaining range, as a share of what the release says."""
    within_half: float
    """Share of the sensitive cells that moved by at most half of what the release says."""

    @property
    def fits(self) -> bool:
        """Whether any table fits the attacker's beliefs."""
        return bool(np.isfinite(self.low).all())

    @property
    def verdict(self) -> str:
        """Return the meaning of the result in words."""
        if not len(self.cells):
            return "nothing to attack: no cell is sensitive."
        if not self.fits:
            return "withstood: no table fits the attacker's beliefs: the release was made in another way."
        n, close = len(self.cells), int(self.missed.sum())
        if self.exact.any():
            return f"disclosed: {int(self.exact.sum())} of {n} sensitive cells are left one value, the true one."
        if close:
            return f"weak: {close} of {n} sensitive cells are narrowed below their levels, and the truth is there."
        return f"withstood: every one of {n} sensitive cells keeps its levels, or the attacker is wrong about it."

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return {
            "method": self.method,
            "knowledge": self.knowledge,
            "cells": len(self.cells),
            "fits": self.fits,
            "held_pct": self.share(self.held),
            "missed_pct": self.share(self.missed),
            "exact": int(self.exact.sum()),
            "width_pct": 100.0 * self.width,
            "within_half_pct": 100.0 * self.within_half,
            "verdict": self.verdict,
            "seconds": {"total": self.seconds},
        }


def attack_method(
    release: Rounding | Perturbation, knowledge: str = "nearest", *, cells: int = 200, seed: int = 0
) -> MethodAttack:
    """Attack a rounded or perturbed table with knowledge of the method.

    Parameters
    ----------
    release
        A rounding or a perturbation.
    knowledge
        What the attacker knows beyond the release: ``"nearest"`` or ``"levels"``.
    cells
        Maximum number of sensitive cells to attack.
    seed
        Chooses them.

    Examples
    --------
    The first of three cells and a total is published as 20: the base leaves 16 to 24, the nearest multiple less.

    >>> import cellguard as cg
    >>> row = cg.Table.from_equations([21, 52, 34, 107], [[3, 0, 1, 2]], sensitive=[0], sliding=2, weights=1.0)
    >>> found = attack_method(cg.round(row, base=5))
    >>> found.low.tolist(), found.high.tolist(), found.held.tolist()
    ([16.25], [23.75], [True])
    """
    asked = choose_cells(release, knowledge, METHOD_KNOWLEDGE, most=cells, seed=seed)
    low, high = _Belief(release, asked.need, knowledge).compute_ranges(asked.attacked.cells)
    return _evaluate_attack(release, asked, low, high)


def _evaluate_attack(release: Rounding | Perturbation, of: Asked, low: FloatArray, high: FloatArray) -> MethodAttack:
    t, need = release.table, of.attacked
    s, a = need.cells, t.values[need.cells]
    lo, hi = (x[s] for x in release.published_bounds())
    noise = _FAR * np.maximum(1.0, hi - lo)
    keep = 1 - float(LEVEL_TOLERANCE)
    fits = bool(len(s)) and bool(np.isfinite(low).all())
    with np.errstate(invalid="ignore"):
        held = (low <= a + noise) & (a <= high + noise)
        kept = ((a - low, need.lower), (high - a, need.upper), (high - low, need.sliding))
        narrow = np.logical_or.reduce([distance < level * keep - noise for distance, level in kept])
        exact = held & (high - low <= 2 * noise)
        width = float(np.mean((high - low) / np.maximum(hi - lo, noise))) if fits else np.nan
    moved = np.abs(release.values - t.values)[of.need.cells]
    half = release.distance[of.need.cells] / 2
    return MethodAttack(
        method=release.method, knowledge=of.knowledge, cells=s, low=low, high=high, held=held, missed=held & narrow,
        exact=exact, width=width, within_half=float(np.mean(moved <= half + 1e-9)) if len(moved) else float("nan"),
        seconds=of.seconds,
    )  # fmt: skip


class _Belief:
    """A linear program over the errors ``e = a - v`` that fit what the attacker believes."""

    def __init__(self, release: Rounding | Perturbation, need: Levels, knowledge: str) -> None:
        t, v = release.table, release.values
        self.v = v
        lo, hi = release.published_bounds()
        low, high = lo - v, hi - v
        T = t.relations
        if knowledge == "levels":
            low, high = _narrow_errors(t.values, v, need, low, high)
        elif not release.priced_by_weights:
            near = ~find_off_base(v, release.base) & ~t.fixed if release.base is not None else np.zeros(t.n_cells, bool)
            half = release.distance / 2
            low, high = np.where(near, np.maximum(low, -half), low), np.where(near, np.minimum(high, half), high)
        if knowledge == "nearest" and release.priced_by_weights and release.base is not None:
            moving, priced = ~t.fixed, t.weights > 0  # a cell that costs nothing has no price
            prices = csr_array(diags_array(release.base / np.where(priced, 2 * t.weights, 2)) @ T.T)[moving]
            errors = csr_array(diags_array(priced.astype(np.float64)))[moving]
            half = np.where(priced, release.base, 0.0)[moving] / 2
            A = csr_array(vstack([hstack([T, csr_array((T.shape[0], T.shape[0]))]), hstack([errors, prices])]))
            below, above = (np.concatenate([t.rhs - T @ v, side]) for side in (-half, half))
            free = np.full(T.shape[0], np.inf)
            low, high = np.concatenate([low, -free]), np.concatenate([high, free])
        else:
            A, below, above = T, t.rhs - T @ v, t.rhs - T @ v
        self.program = LinearProgram(LinearModel(A, below, above, low, high), ONCE)

    def compute_ranges(self, cells: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and greatest value of some cells; NaN where no table fits."""
        ends = np.full((2, len(cells)), np.nan)
        for k, cell in enumerate(cells.tolist()):
            one = np.array([cell])
            self.program.set_costs(one, np.ones(1))
            for side, maximize in enumerate((False, True)):
                found = self.program.solve(maximize=maximize)
                if found.optimal:
                    ends[side, k] = self.v[cell] + found.objective
            self.program.set_costs(one, np.zeros(1))
            if k == 0 and np.isnan(ends[:, 0]).all():
                break  # nothing fits, for any cell
            self.program.set_options(presolve="off")  # the last vertex is a better start
        return ends[0], ends[1]


def _narrow_errors(
    values: FloatArray, v: FloatArray, need: Levels, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Narrow the errors of sensitive cells by their levels, as shares of the value that the attacker knows.

    The method leaves ``a - p a >= v - d`` and ``a + q a <= v + d``, so a lies between ``(v - d) / (1 - p)`` and
    ``(v + d) / (1 + q)``.
    """
    s = need.cells
    a = np.maximum(np.abs(values[s]), 1e-300)
    p, q = np.minimum(need.lower / a, 0.999), need.upper / a
    low, high = low.copy(), high.copy()
    least, most = v[s] + low[s], v[s] + high[s]
    low[s] = np.where(least > 0, least / (1 - p), least) - v[s]
    high[s] = np.where(most > 0, most / (1 + q), most) - v[s]
    return low, high

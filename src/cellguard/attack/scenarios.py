"""The informed intruder against an adjusted table (castro2012 sections 3 and 5).

The intruder knows the published table x, the relations and the norm, and solves the protector's own
problem backwards: which deviation z would have led from ``x - z`` to x? (castro2012 (12)-(14)). What
else he knows is the scenario:

========  ==========================================================================================
B1        which cells are sensitive, and the bounds of all cells
B2        B1, and in which sense each sensitive cell was moved
B3        B2, and the protection levels
C         the protector's own bounds on the deviations; only the weights are guessed
========  ==========================================================================================

Each replication guesses values x~ around x, within the largest relative deviation (which could have
been published), and weights, bounds and levels from them. Guesses that fit no table are soft.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator

from cellguard.exceptions import InputError, ReleaseError, UnknownCodeError, did_you_mean
from cellguard.release import Adjustment, Release
from cellguard.table import FloatArray, IntArray, Table

if TYPE_CHECKING:
    from cellguard._engine.adjuster import Adjuster

__all__ = ["CLASSES", "SCENARIOS", "Attack", "attack", "check_attack"]

SCENARIOS = ("B1", "B2", "B3", "C")
"""What the intruder knows, from little to nearly everything."""
CLASSES = ("0", "(0,5]", "(5,10]", "(10,20]", "(20,30]", "(30,50]", "(50,100]", "over 100")
"""Distance of an estimate from the truth in per cent of it (castro2012 tables 2 to 9)."""

_EDGES = np.array([5.0, 10.0, 20.0, 30.0, 50.0, 100.0])
_HIT = 1e-3
"""An estimate closer than this, in per cent, has found the true value."""
_AROUND = ("guess", "published")
_PENALTY = 100.0
_DELTA = 1e-6
"""Stands for a value of 0 where a level is divided by it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Attack:
    """What the intruder estimated for the sensitive cells, replication by replication."""

    scenario: str
    """What he knew."""
    norm: str
    """The norm of the adjustment, known to him."""
    cells: IntArray = field(repr=False)
    """The sensitive cells with a positive value."""
    estimates: FloatArray = field(repr=False)
    """Replications by cells: his estimates (confidential: some may be right)."""
    distances: FloatArray = field(repr=False)
    """Replications by cells: how far he was, in per cent of the truth."""
    beta: float
    """The largest relative deviation of a sensitive cell."""
    infeasible: int
    """Replications whose guesses fitted no table and were softened."""
    seconds: float = 0.0
    """How long it took."""

    @property
    def distribution(self) -> dict[str, float]:
        """Share of all estimates in each class, in per cent."""
        return _distribution(self.distances.ravel())

    def per_cell(self) -> dict[int, dict[str, float]]:
        """Return the distribution of each cell's estimates."""
        return {int(c): _distribution(self.distances[:, k]) for k, c in enumerate(self.cells)}

    @property
    def hits(self) -> int:
        """Number of cells whose true value was found in some replication."""
        return int((self.distances <= _HIT).any(axis=0).sum())

    @property
    def verdict(self) -> str:
        """What that means, in words."""
        shares = self.distribution
        close = shares["0"] + shares["(0,5]"]
        if shares["0"] >= 50.0:
            return "disclosed: the intruder recomputes most sensitive cells exactly."
        if shares["0"] > 0.0:
            return f"at risk: {self.hits} of {len(self.cells)} sensitive cells were recomputed exactly at least once."
        if close >= 50.0:
            return "weak: no cell was recomputed exactly, but most estimates are within 5% of the truth."
        return (
            f"withstood: no cell was recomputed exactly, and {close:.1f}% of the estimates are within 5% of the truth."
        )

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return {
            "scenario": self.scenario,
            "norm": self.norm,
            "replications": len(self.distances),
            "cells": len(self.cells),
            "beta": self.beta,
            "distribution": self.distribution,
            "hits": self.hits,
            "infeasible_draws": self.infeasible,
            "verdict": self.verdict,
            "seconds": {"total": self.seconds},
        }


def _distribution(distance: FloatArray) -> dict[str, float]:
    count = np.zeros(len(CLASSES), np.int64)
    hit = distance <= _HIT
    count[0] = hit.sum()
    np.add.at(count, 1 + np.searchsorted(_EDGES, distance[~hit], side="left"), 1)
    return dict(zip(CLASSES, (100.0 * count / max(1, len(distance))).tolist(), strict=True))


def attack(
    release: Release,
    scenario: str = "B2",
    *,
    replications: int = 10,
    seed: int = 0,
    level_error: float = 0.2,
    beta: float | None = None,
    levels_around: str = "guess",
    soft: bool | None = None,
    n_jobs: int = 1,
) -> Attack:
    """Attack an adjusted table the way an informed intruder would.

    Parameters
    ----------
    release
        An adjusted table (:func:`cellguard.adjust`) with norm l1 or l2.
    scenario
        What the intruder knows: B1, B2, B3 or C.
    replications
        How many guesses he makes.
    seed
        Of his guesses.
    level_error
        Delta: how far his guess of a level, relative to the cell, may be off (B1 and B2; 0.2 in the paper).
    beta
        How far his guesses may be from the published values, relative to them; unless given, the largest
        deviation of a sensitive cell relative to its true value, which an office may have published.
    levels_around
        What a drawn level is a share of: the ``"guess"``, or the ``"published"`` value as the paper prints.
    soft
        Whether all bounds are soft from the start; unless given, in B1 and B2 only. Elsewhere a
        draw that fits no table is solved again with soft bounds.
    n_jobs
        Replications in parallel, through joblib.

    Examples
    --------
    >>> import cellguard as cg
    >>> from cellguard.adjust import PLAIN
    >>> plain = cg.adjust(cg.examples.castro2004_figure3(), norm="l1", **PLAIN)
    >>> found = cg.attack(plain, scenario="C", replications=2)
    >>> found.distribution["0"]
    100.0
    """
    import time

    begin = time.perf_counter()
    check_attack(scenario, replications)
    soft = scenario in ("B1", "B2") if soft is None else soft
    intruder = _Intruder(release, scenario, level_error, beta, levels_around, soft)
    seeds = np.random.SeedSequence(seed).spawn(replications)
    if n_jobs == 1:
        found = [intruder.guess(s) for s in seeds]
    else:
        from joblib import Parallel, delayed

        found = Parallel(n_jobs=n_jobs)(delayed(intruder.guess)(s) for s in seeds)
    estimates = np.array([estimate for estimate, _ in found])
    truth = release.table.values[intruder.cells]
    return Attack(
        scenario=scenario,
        norm=intruder.norm,
        cells=intruder.cells,
        estimates=estimates,
        distances=100.0 * np.abs(estimates - truth) / truth,
        beta=intruder.beta,
        infeasible=sum(softened for _, softened in found),
        seconds=time.perf_counter() - begin,
    )


def check_attack(scenario: str, replications: int) -> None:
    """Refuse a scenario that does not exist, and fewer than one replication."""
    if scenario not in SCENARIOS:
        near = did_you_mean(str(scenario).upper(), SCENARIOS)
        raise UnknownCodeError(
            f"scenario {scenario!r} is not known.", hint=near or f"known are {', '.join(SCENARIOS)}."
        )
    if replications < 1:
        raise InputError(f"replications {replications}: at least 1 is needed.")


class _Intruder:
    """What does not change between replications: the structure, the published table, the knowledge."""

    def __init__(
        self, release: Release, scenario: str, level_error: float, beta: float | None, levels_around: str, soft: bool
    ) -> None:
        if not isinstance(release, Adjustment):
            raise ReleaseError(
                f"a release by {release.method!r} is not attacked by scenarios.",
                hint="scenarios are for adjusted tables; cellguard.audit and matching_attack are for the others.",
            )
        if not (np.isfinite(level_error) and level_error >= 0):
            raise InputError(f"level_error {level_error!r}: a finite number of at least 0 is needed.")
        if beta is not None and not (np.isfinite(beta) and beta >= 0):
            raise InputError(f"beta {beta!r}: a finite number of at least 0 is needed.")
        if levels_around not in _AROUND:
            raise InputError(f"levels_around {levels_around!r} is not known.", hint=f"one of {', '.join(_AROUND)}.")
        self.norm = str(release.options.get("norm", "l1"))
        if self.norm not in ("l1", "l2"):
            raise ReleaseError(f"scenarios are defined for the norms l1 and l2, not {self.norm!r} (castro2012).")
        self.table: Table = release.table
        self.x = release.values
        self.scenario, self.level_error, self.levels_around, self.soft = scenario, level_error, levels_around, soft
        t, s = self.table, self.table.sensitive_cells
        self.sensitive = s
        self.cells = s[t.values[s] > 0]
        if not len(self.cells):
            raise ReleaseError("no sensitive cell with a positive value: there is nothing to attack.")
        largest = float((np.abs(self.x - t.values)[self.cells] / t.values[self.cells]).max())
        self.beta = largest if beta is None else float(beta)
        self.senses = self.x[s] >= t.values[s]

    @property
    def adjuster(self) -> Adjuster:
        """The reduced structure: one per process, because its factors cannot travel to another."""
        from cellguard._engine.adjuster import adjuster_of

        return adjuster_of(self.table.relations, self.table.fixed)

    def guess(self, seed: np.random.SeedSequence) -> tuple[FloatArray, bool]:
        """Guess once, solve the problem backwards, and return the estimates and whether bounds had to be soft."""
        from cellguard._engine.distance import Distance
        from cellguard._engine.soft import closest_soft

        rng = np.random.default_rng(seed)
        guess = self.x * rng.uniform(1 - self.beta, 1 + self.beta, len(self.x))
        lower, upper = self._bounds(guess, rng)
        size = np.maximum(np.abs(guess), 1.0)  # a cell of 0 weighs 1; no cell weighs more
        weight = 1.0 / size if self.norm == "l1" else 1.0 / size**2
        absolute, square = (weight, None) if self.norm == "l1" else (None, weight)
        z = None
        if not self.soft:
            distance = Distance.of(len(size), absolute=absolute, square=square)
            found = self.adjuster.solve(lower, upper, distance, tolerance=1e-10)
            z = found.z if found.feasible and found.certificate is not None else None
        softened = z is None
        if z is None:
            penalty = self._penalty(weight)
            z = closest_soft(self.adjuster, lower, upper, absolute=absolute, square=square, penalty=penalty)
        return (self.x - z)[self.cells], softened

    def _penalty(self, weight: FloatArray) -> FloatArray:
        """One large price per unit for all cells: no guess is trusted more than another.

        Large is measured by the dearest cell and the typical deviation.
        """
        typical = float(weight.max())
        if self.norm == "l2":
            typical *= float(np.median(np.abs(self.x - self.table.values)[self.sensitive]))
        return np.full(len(weight), _PENALTY * typical)

    def _bounds(self, guess: FloatArray, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """Bounds of the deviations as the intruder sees them: (5) in scenario C, (11) with his guesses otherwise."""
        t, s = self.table, self.sensitive
        if self.scenario == "C":
            lower, upper = t.lb - t.values, t.ub - t.values
        else:
            lower, upper = guess - t.ub, guess - t.lb
        up = self.senses if self.scenario != "B1" else rng.random(len(s)) < 0.5
        raise_by, lower_by = self._levels((self.x if self.levels_around == "published" else guess)[s], rng)
        lower, upper = lower.copy(), upper.copy()
        lower[s] = np.where(up, raise_by, lower[s])
        upper[s] = np.where(up, np.maximum(upper[s], raise_by), -lower_by)
        lower[s] = np.where(up, lower[s], np.minimum(lower[s], -lower_by))
        return lower, upper

    def _levels(self, reference: FloatArray, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """Levels: known in B3 and C; otherwise the same share of the guess as of the truth, with an error."""
        t, s = self.table, self.sensitive
        if self.scenario in ("B3", "C"):
            return t.upper[s], t.lower[s]
        out = []
        for level in (t.upper[s], t.lower[s]):
            share = level / (t.values[s] + _DELTA)
            low = np.maximum(0.0, share - self.level_error)
            out.append(reference * rng.uniform(low, share + self.level_error))
        return out[0], out[1]

"""The informed attacker against an adjusted table (castro2012 sections 3 and 5).

The attacker (intruder) knows the published table x, the relations and the norm, and solves the protector's own
problem backwards: which deviation z would have led from ``x - z`` to x? (castro2012 (12)-(14)). The scenario says
what else the attacker knows:

========  ==========================================================================================
B1        which cells are sensitive, and the bounds of all cells
B2        B1, and in which sense each sensitive cell was moved
B3        B2, and the protection levels
C         the protector's own bounds on the deviations; only the weights are guessed
decimals  the percentage of the levels and the unit of the values: which of x / (1 + p) and x / (1 - p)
          could have been a value of the table? No program is solved (:mod:`cellguard.attacks.decimals`)
========  ==========================================================================================

Each replication guesses values x~ around x, within the largest relative deviation (which could have
been published), and weights, bounds and levels from them. Guesses that fit no table are soft.
:class:`~cellguard.attacks.intruder.Knowledge` lists what else the attacker may know.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.attacks.decimals import DecimalIntruder
from cellguard.attacks.intruder import Knowledge, ProgramIntruder
from cellguard.exceptions import InputError, UnknownCodeError, raise_if_unknown, suggest_names
from cellguard.release.release import Release

__all__ = ["CLASSES", "SCENARIOS", "Attack", "attack", "check_attack", "read_knowledge"]

SCENARIOS = ("B1", "B2", "B3", "C", "decimals")
"""What the attacker knows: the scenarios of castro2012, from little to nearly everything, and the percentage alone."""
CLASSES = ("0", "(0,5]", "(5,10]", "(10,20]", "(20,30]", "(30,50]", "(50,100]", "over 100")
"""Distance of an estimate from the truth in per cent of it (castro2012 tables 2 to 9)."""

_EDGES = np.array([5.0, 10.0, 20.0, 30.0, 50.0, 100.0])
_HIT = 1e-3
"""An estimate closer than this, in per cent, has found the true value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Attack:
    """What the attacker estimated for the sensitive cells, replication by replication."""

    scenario: str
    """What the attacker knew."""
    norm: str
    """The norm of the adjustment, which the attacker knows."""
    cells: IntArray = field(repr=False)
    """The sensitive cells with a positive value."""
    estimates: FloatArray = field(repr=False)
    """Replications by cells: the attacker's estimates (confidential: some may be right)."""
    distances: FloatArray = field(repr=False)
    """Replications by cells: the error of each estimate, in per cent of the truth."""
    beta: float
    """The largest relative deviation of a sensitive cell, such that a is in [x (1 - beta), x (1 + beta)]."""
    infeasible: int
    """Replications whose guesses fitted no table and were softened."""
    candidates: FloatArray | None = field(repr=False, default=None)
    """Scenario decimals: how many values each cell could have had; infinite if they are not counted."""
    seconds: float = 0.0
    """How long it took."""

    @property
    def distribution(self) -> dict[str, float]:
        """Share of all estimates in each class, in per cent."""
        return _summarize_errors(self.distances.ravel())

    def per_cell(self) -> dict[int, dict[str, float]]:
        """Return the distribution of each cell's estimates."""
        return {int(c): _summarize_errors(self.distances[:, k]) for k, c in enumerate(self.cells)}

    @property
    def hits(self) -> int:
        """Number of cells whose true value was found in some replication."""
        return int((self.distances <= _HIT).any(axis=0).sum())

    @property
    def verdict(self) -> str:
        """Return the meaning of the result in words."""
        shares = self.distribution
        close = shares["0"] + shares["(0,5]"]
        if shares["0"] >= 50.0:
            return "disclosed: the intruder recomputes most sensitive cells exactly."
        if shares["0"] > 0.0:
            return f"at risk: {self.hits} of {len(self.cells)} sensitive cells were recomputed exactly at least once."
        if close >= 50.0:
            return "weak: no cell was recomputed exactly, but most estimates are within 5% of the truth."
        near = f"{close:.1f}% of the estimates are within 5% of the truth."
        return f"withstood: no cell was recomputed exactly, and {near}"

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        counted: dict[str, Any] = {}
        if self.candidates is not None:
            counted = {"candidates": float(np.median(self.candidates)), "alone": int((self.candidates == 1).sum())}
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
        } | counted


def _summarize_errors(distance: FloatArray) -> dict[str, float]:
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
    shares: tuple[float, float] | None = None,
    n_jobs: int = 1,
    **knows: Any,
) -> Attack:
    """Attack an adjusted table as an informed attacker would.

    Parameters
    ----------
    release
        An adjusted table (:func:`cellguard.methods.adjust`).
    scenario
        What the attacker knows: B1, B2, B3 or C, for the norms l1 and l2, or decimals.
    replications
        Number of guesses.
    seed
        Seed of the guesses.
    shares
        Scenario decimals: lower and upper level as shares of the value; by default their usual shares in the
        table.
    n_jobs
        Replications in parallel, through joblib.
    knows
        What else the attacker knows or believes, for the scenarios B and C: any field of
        :class:`~cellguard.attacks.intruder.Knowledge` (`weights`, `norm`, `bounds`, `sensitive`, `senses`,
        `may_stay`, `level_error`, `beta`, `levels_around`, `soft`).

    Examples
    --------
    >>> import cellguard as cg
    >>> from cellguard.methods.adjust.adjust import PLAIN
    >>> plain = cg.adjust(cg.examples.castro2004_figure3(), norm="l1", **PLAIN)
    >>> found = cg.attack(plain, scenario="C", replications=2)
    >>> found.distribution["0"]
    100.0
    """
    begin = time.perf_counter()
    check_attack(scenario, replications)
    intruder: DecimalIntruder | ProgramIntruder
    if scenario == "decimals":
        if knows:
            raise InputError(f"scenario decimals has no option {next(iter(knows))!r}.")
        intruder = DecimalIntruder(release, shares)
    else:
        intruder = ProgramIntruder(release, scenario, read_knowledge(knows))
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
        candidates=intruder.candidates if isinstance(intruder, DecimalIntruder) else None,
        seconds=time.perf_counter() - begin,
    )


def read_knowledge(options: Mapping[str, Any]) -> Knowledge:
    """Return the knowledge that the options describe; refuse unknown options."""
    known = [f.name for f in fields(Knowledge)]
    for name in options:
        if name not in known:
            raise UnknownCodeError(f"attack has no option {name!r}.", hint=suggest_names(name, known))
    return Knowledge(**options)


def check_attack(scenario: str, replications: int) -> None:
    """Refuse a scenario that does not exist, and fewer than one replication."""
    raise_if_unknown("scenario", scenario, SCENARIOS, UnknownCodeError)
    if replications < 1:
        raise InputError(f"replications {replications}: at least 1 is needed.")

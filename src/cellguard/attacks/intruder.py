"""The attacker who solves the protector's problem backwards: what they know, draw and estimate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from cellguard._attack_options import LEVELS_AROUND, NORMS, SENSES
from cellguard._engine.numbers.decimals import find_decimal_unit
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError, ReleaseError
from cellguard.model.levels import compute_movement_levels, scale_rising_surplus
from cellguard.model.weights import compute_weights
from cellguard.release.release import Release

if TYPE_CHECKING:
    from cellguard._engine.closest.adjuster import Adjuster
    from cellguard._engine.closest.distance import Distance

__all__ = ["Knowledge", "ProgramIntruder", "compute_smallest_beta", "find_attacked_cells"]

_PAPER = {"l1": "inverse", "l2": "inverse_square"}
"""Weights of castro2012 section 5: the attacker assumes them if a release does not say how it was made."""
_PENALTY = 100.0
_DELTA = 1e-6
"""Replaces a value of 0 where a level is divided by it."""
_SOLVED = 1e-4
"""A program with a larger proven gap was not solved: its bounds are made soft."""
_FARTHEST = 10.0
"""Without known bounds, the attacker assumes that no cell moved by more than this many times the largest value."""
_CHOICE_S = 10.0
"""Seconds to choose senses in one replication, if the attacker leaves them free."""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What an attacker knows about how an adjusted table was made; the defaults are those of castro2012."""

    weights: str = "release"
    """The weight function that the attacker applies to their guesses: the release's own, or a kind."""
    norm: str | None = None
    """The norm that the attacker assumes; by default the release's own."""
    bounds: bool = True
    """Whether the attacker knows the bounds of the cells."""
    sensitive: bool = True
    """Whether the attacker knows which cells are sensitive; otherwise they draw as many non-zero cells."""
    senses: str | None = None
    """``"known"``, ``"drawn"`` by a coin, or ``"free"`` in the attacker's program (9); by default by scenario."""
    may_stay: bool = False
    """Whether every cell that need not move may stay, regardless of the guesses of its bounds, as in (13)."""
    levels_around: str = "guess"
    """What a drawn level is a share of: the ``"guess"``, or the ``"published"`` value as the paper prints."""
    level_error: float = 0.2
    """Delta: how far the guess of a level, relative to the cell, may be off (B1 and B2)."""
    beta: float | None = None
    """How far guesses may be from the published values, as a share; by default far enough that every true value can be
    guessed."""
    soft: bool | None = None
    """Whether all bounds are soft from the start; by default in B1 and B2."""

    def __post_init__(self) -> None:
        for name in ("level_error", "beta"):
            number = getattr(self, name)
            if number is not None and not (np.isfinite(number) and number >= 0):
                raise InputError(f"{name} {number!r}: a finite number of at least 0 is needed.")
        for name, known in (("levels_around", LEVELS_AROUND), ("senses", (None, *SENSES)), ("norm", (None, *NORMS))):
            if getattr(self, name) not in known:
                names = ", ".join(str(k) for k in known if k)
                raise InputError(f"{name} {getattr(self, name)!r} is not known.", hint=f"one of {names}.")
        if self.weights != "release":
            compute_weights(self.weights, np.ones(1))


def find_attacked_cells(release: Release) -> IntArray:
    """Return the sensitive cells with a positive value: those whose estimates can be measured in per cent."""
    if release.by_ranges:
        raise ReleaseError(
            f"a release by {release.method!r} is not attacked by scenarios.",
            hint="scenarios are for adjusted tables; cellguard.auditing.audit and matching_attack are for the others.",
        )
    if not release.published:
        raise ReleaseError(f"there is no release: {release.status}. {release.explanation}".strip())
    sensitive = release.table.sensitive_cells
    cells = sensitive[release.table.values[sensitive] > 0]
    if not len(cells):
        raise ReleaseError("no sensitive cell with a positive value: there is nothing to attack.")
    return cells


def compute_smallest_beta(x: FloatArray, a: FloatArray) -> float:
    """Return beta (castro2012 section 5): the largest relative deviation, so that a is in [x (1 - beta), x (1 + beta)].

    It is relative to the smaller of the two values: a cell that fell by 20% is found from its published value only with
    25%. A cell published as 0 is guessed to be 0, regardless of beta.

    >>> compute_smallest_beta(np.array([80.0, 110.0]), np.array([100.0, 100.0]))
    0.25
    """
    moved = x != 0
    sizes = np.minimum(np.abs(x), np.abs(a))[moved]
    return float((np.abs(x - a)[moved] / sizes).max(initial=0.0))


class _Guess(NamedTuple):
    """Cells that the attacker assumes sensitive, the slack of all cells, and how far those rose or fell at least."""

    chosen: IntArray
    slack: tuple[FloatArray, FloatArray]
    raise_by: FloatArray
    lower_by: FloatArray


class ProgramIntruder:
    """What does not change between replications: the structure, the published table, the knowledge."""

    def __init__(self, release: Release, scenario: str, knowledge: Knowledge) -> None:
        self.cells = find_attacked_cells(release)
        self.k, self.scenario, self.table, self.x = knowledge, scenario, release.table, release.get_point_values()
        self.norm = knowledge.norm or str(release.options.get("norm", "l1"))
        if self.norm not in NORMS:
            raise ReleaseError(
                f"scenarios are defined for the norms l1 and l2, not {self.norm!r} (castro2012).",
                hint='norm="l1" or "l2" is what an intruder would believe in instead.',
            )
        t, s = self.table, self.table.sensitive_cells
        self.sensitive = s
        need = compute_movement_levels(t)
        self.raise_by, self.lower_by = np.zeros(t.n_cells), np.zeros(t.n_cells)
        self.raise_by[need.cells] = np.where(np.isfinite(need.upper), need.upper, 0.0)
        self.lower_by[need.cells] = np.where(np.isfinite(need.lower), need.lower, 0.0)
        self.senses = self.x[s] >= t.values[s]
        self.way = knowledge.senses or ("drawn" if scenario == "B1" else "known")
        self.soft = scenario in ("B1", "B2") if knowledge.soft is None else knowledge.soft
        widest = compute_smallest_beta(self.x[self.cells], t.values[self.cells])
        self.beta = widest if knowledge.beta is None else float(knowledge.beta)
        self.surplus = float(release.options.get("surplus", 0.0) or 0.0)
        self.by_key = release.options.get("senses") == "key"
        """Whether a key drew the senses among those that keep the table close."""
        known = getattr(release, "internal", {}).get("public_sense")
        self.secret = np.full(t.n_cells, self.by_key) & (~known if known is not None else True)
        """Cells whose surplus lies on both sides, because the table alone does not decide their sense."""
        self.kind = str(release.options.get("weights", _PAPER[self.norm]))
        internal = getattr(release, "internal", {})
        self.own_weight = internal.get("absolute_weight" if self.norm == "l1" else "square_weight")
        self.smallest = self._guess_smallest()

    def _guess_smallest(self) -> float:
        """Return a guess of the smallest value that is not 0: the unit of the values is no secret.

        Any smaller published value was 0, and its weight is limited accordingly.
        """
        unit = find_decimal_unit(self.table.values, self.table.relations, self.table.rhs)
        positive = np.abs(self.x[self.x != 0])
        return min(1.0, unit or float(positive.min())) if len(positive) else 1.0

    @cached_property
    def adjuster(self) -> Adjuster:
        """The reduced structure."""
        from cellguard._engine.closest.adjuster import Adjuster

        return Adjuster(self.table.relations, self.table.fixed)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the structure: its factors cannot be sent to another process."""
        return {name: value for name, value in vars(self).items() if name != "adjuster"}

    # ------------------------------------------------------------------ one replication

    def guess(self, seed: np.random.SeedSequence) -> tuple[FloatArray, bool]:
        """Guess once, solve the problem backwards, and return the estimates and whether bounds had to be soft."""
        from cellguard._engine.closest.distance import Distance, Target

        rng = np.random.default_rng(seed)
        guess = self.x * rng.uniform(1 - self.beta, 1 + self.beta, len(self.x))
        chosen = self._choose_cells(rng)
        believed = _Guess(chosen, self._compute_slack(guess), *self._guess_levels(chosen, guess, rng))
        weight = self._compute_weights(guess)
        absolute, square = (weight, None) if self.norm == "l1" else (None, weight)
        distance = Distance.of(len(weight), absolute=absolute, square=square)
        up = self._draw_senses(believed, distance, rng)
        target, z = Target(*self._compute_bounds(believed, up), distance), None
        if not self.soft:
            found = self.adjuster.solve(target, tolerance=1e-10)
            solved = found.feasible and found.certificate is not None and found.certificate.gap <= _SOLVED
            z = found.z if solved else None
        softened = z is None
        if z is None:
            z = self.adjuster.solve(replace(target, soft=self._compute_penalty(weight)), tolerance=1e-9).z
        return (self.x - z)[self.cells], softened

    def _choose_cells(self, rng: Generator) -> IntArray:
        """Return which cells the attacker assumes to be sensitive."""
        if self.k.sensitive:
            return self.sensitive
        some = np.flatnonzero((self.x != 0) & ~self.table.fixed)
        return np.sort(rng.choice(some, min(len(self.sensitive), len(some)), replace=False))

    def _compute_weights(self, guess: FloatArray) -> FloatArray:
        """Apply the weight function to the guesses; a cell of 0 gets the weight that the release allows."""
        kind = self.kind if self.k.weights == "release" else self.k.weights
        if kind == "table":
            return np.maximum(self.table.weights, 0.0)
        # no guess makes a cell heavier than the smallest value would: a draw near 0 means nothing
        size = np.maximum(np.abs(guess), self.smallest)
        if kind == "given" and self.own_weight is not None:
            return np.asarray(self.own_weight)
        if kind == "given":
            return compute_weights(_PAPER[self.norm], size)
        return compute_weights(kind, np.where(guess == 0, 0.0, size))

    def _compute_penalty(self, weight: FloatArray) -> FloatArray:
        """Return one large price per unit for all cells: no guess is trusted more than another.

        Large is relative to the most expensive cell and the typical deviation.
        """
        typical = float(weight.max())
        if self.norm == "l2":
            typical *= float(np.median(np.abs(self.x - self.table.values)[self.sensitive]))
        return np.full(len(weight), _PENALTY * typical)

    def _compute_slack(self, guess: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of the deviations before any level: (5) in scenario C, else (11) or (13) with guesses."""
        t = self.table
        if self.scenario == "C":
            return t.lb - t.values, t.ub - t.values
        if not self.k.bounds:
            most = np.full(len(guess), _FARTHEST * float(np.abs(self.x).max(initial=1.0)))
            return -most, most
        lower, upper = guess - t.ub, guess - t.lb
        return (np.minimum(lower, 0.0), np.maximum(upper, 0.0)) if self.k.may_stay else (lower, upper)

    def _draw_senses(self, guess: _Guess, distance: Distance, rng: Generator) -> np.ndarray:
        """Return which of the chosen cells the attacker assumes to have risen."""
        drawn = rng.random(len(guess.chosen)) < 0.5
        if self.way == "known" and self.k.sensitive:
            return self.senses
        if self.way == "free" or (self.by_key and self.way == "drawn"):
            return self._choose_senses(guess, distance, drawn, rng)
        return drawn

    def _choose_senses(self, guess: _Guess, distance: Distance, drawn: np.ndarray, rng: Generator) -> np.ndarray:
        """Return the senses that minimise the attacker's own program (9), or that the protector's procedure draws.

        If they leave no table, return those that were drawn one by one.
        """
        from cellguard._engine.clock import Deadline
        from cellguard._engine.closest.directions import Senses, choose_directions
        from cellguard._engine.closest.directions_drawn import draw_close_senses

        chosen, (below, above) = guess.chosen, guess.slack
        low, high = np.minimum(below, 0.0), np.maximum(above, 0.0)
        down, up = np.zeros(len(low)), np.zeros(len(low))
        can = ~self.adjuster.reduction.determined[chosen]
        down[chosen], up[chosen] = np.where(can, guess.lower_by, 0.0), np.where(can, guess.raise_by, 0.0)
        search = Senses(self.adjuster, (low, high), down, up, distance)
        if self.way == "drawn":
            n = len(search.mover)
            found = draw_close_senses(search, rng.random(n) < 0.5, rng.permutation(n), Deadline.from_limit(_CHOICE_S))
            return drawn if found is None else np.asarray(search.find_rising_cells(found.senses)[chosen])
        choice = choose_directions(search, time_limit_s=_CHOICE_S, gap=1e-2)
        return np.asarray(choice.up[chosen]) if np.isfinite(choice.objective) else drawn

    def _compute_bounds(self, guess: _Guess, up: np.ndarray) -> tuple[FloatArray, FloatArray]:
        s, raise_by, lower_by = guess.chosen, guess.raise_by, guess.lower_by
        lower, upper = (side.copy() for side in guess.slack)
        lower[s] = np.where(up, raise_by, lower[s])
        upper[s] = np.where(up, np.maximum(upper[s], raise_by), -lower_by)
        lower[s] = np.where(up, lower[s], np.minimum(lower[s], -lower_by))
        return lower, upper

    def _guess_levels(self, chosen: IntArray, guess: FloatArray, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """Return the levels: known in B3 and C; else the same share of the guess as of the truth, with an error."""
        t, s, both = self.table, chosen, (self.raise_by, self.lower_by)
        if not self.k.sensitive:  # use the median share for each of the drawn cells
            of = self.sensitive
            size = np.abs(t.values[of]) + _DELTA
            levels = [float(np.median(level[of] / size)) * np.abs(guess[s]) for level in both]
        elif self.scenario in ("B3", "C"):
            levels = [level[s] for level in both]
        else:
            reference = (self.x if self.k.levels_around == "published" else guess)[s]
            levels = []
            for level in both:
                share = level[s] / (t.values[s] + _DELTA)
                low = np.maximum(0.0, share - self.k.level_error)
                levels.append(reference * rng.uniform(low, share + self.k.level_error))
        return self._add_drawn_surplus(levels, guess[s], self.secret[s], rng)

    def _add_drawn_surplus(
        self, levels: list[FloatArray], guess: FloatArray, secret: BoolArray, rng: Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Draw a surplus for the attacker: how it is drawn is public, its value is not."""
        if not self.surplus:
            return levels[0], levels[1]
        fall = self.surplus * (levels[0] + levels[1]) / np.where(secret, 2.0, 1.0)
        rise = np.where(secret, fall, fall * scale_rising_surplus(guess, levels[0], fall))
        first, second = (
            level + rng.random(len(level)) * most for level, most in zip(levels, (rise, fall), strict=True)
        )
        return first, second

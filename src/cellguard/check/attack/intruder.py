"""The intruder who solves the protector's problem backwards: what he knows, what he draws, what he estimates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import Generator

from cellguard._engine.numbers.decimals import decimal_unit
from cellguard._types import FloatArray, IntArray
from cellguard.exceptions import InputError, ReleaseError
from cellguard.nouns.levels import movement_levels
from cellguard.nouns.release import Adjustment, Release
from cellguard.nouns.weights import weights_by_value

if TYPE_CHECKING:
    from cellguard._engine.closest.adjuster import Adjuster
    from cellguard._engine.closest.distance import Distance

__all__ = ["Knowledge", "ProgramIntruder", "attacked_cells"]

_AROUND = ("guess", "published")
_SENSES = ("known", "drawn", "free")
_NORMS = ("l1", "l2")
_PAPER = {"l1": "inverse", "l2": "inverse_square"}
"""Weights of castro2012 section 5: what he takes for those of a release that does not say how it was made."""
_PENALTY = 100.0
_DELTA = 1e-6
"""Stands for a value of 0 where a level is divided by it."""
_SOLVED = 1e-4
"""A program whose proven gap is larger was not solved: its bounds are made soft."""
_FARTHEST = 10.0
"""Who knows no bounds takes it that no cell moved by more than so many times the largest published value."""
_CHOICE_S = 10.0
"""Seconds for the choice of senses in one replication, when he leaves them free."""


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What an intruder knows of how an adjusted table was made; the defaults are castro2012's."""

    weights: str = "release"
    """The weight function that he applies to his guesses: the release's own, or a kind."""
    norm: str | None = None
    """The norm that he believes in; the release's own unless given."""
    bounds: bool = True
    """Whether he knows the bounds of the cells."""
    sensitive: bool = True
    """Whether he knows which cells are sensitive; otherwise he draws as many among the cells that are not 0."""
    senses: str | None = None
    """``"known"``, ``"drawn"`` by a coin, or ``"free"`` in his own program, (9); as the scenario says unless given."""
    may_stay: bool = False
    """Whether every cell that need not move may stay, whatever he guesses of its bounds, as in (13)."""
    levels_around: str = "guess"
    """What a drawn level is a share of: the ``"guess"``, or the ``"published"`` value as the paper prints."""
    level_error: float = 0.2
    """Delta: how far his guess of a level, relative to the cell, may be off (B1 and B2)."""
    beta: float | None = None
    """How far his guesses may be from the published values; the largest deviation of a sensitive cell unless given."""
    soft: bool | None = None
    """Whether all bounds are soft from the start; in B1 and B2 unless given."""

    def __post_init__(self) -> None:
        for name in ("level_error", "beta"):
            number = getattr(self, name)
            if number is not None and not (np.isfinite(number) and number >= 0):
                raise InputError(f"{name} {number!r}: a finite number of at least 0 is needed.")
        for name, known in (("levels_around", _AROUND), ("senses", (None, *_SENSES)), ("norm", (None, *_NORMS))):
            if getattr(self, name) not in known:
                names = ", ".join(str(k) for k in known if k)
                raise InputError(f"{name} {getattr(self, name)!r} is not known.", hint=f"one of {names}.")
        if self.weights != "release":
            weights_by_value(self.weights, np.ones(1))


def attacked_cells(release: Release) -> IntArray:
    """Return the sensitive cells with a positive value: those whose estimates can be measured in per cent."""
    if not isinstance(release, Adjustment):
        raise ReleaseError(
            f"a release by {release.method!r} is not attacked by scenarios.",
            hint="scenarios are for adjusted tables; cellguard.check.audit and matching_attack are for the others.",
        )
    if not release.published:
        raise ReleaseError(f"there is no release: {release.status}. {release.explanation}".strip())
    sensitive = release.table.sensitive_cells
    cells = sensitive[release.table.values[sensitive] > 0]
    if not len(cells):
        raise ReleaseError("no sensitive cell with a positive value: there is nothing to attack.")
    return cells


class _Guess(NamedTuple):
    """Cells that he takes for sensitive, the room of all cells, and how far those rose or sank at least."""

    chosen: IntArray
    room: tuple[FloatArray, FloatArray]
    raise_by: FloatArray
    lower_by: FloatArray


class ProgramIntruder:
    """What does not change between replications: the structure, the published table, the knowledge."""

    def __init__(self, release: Release, scenario: str, knowledge: Knowledge) -> None:
        self.cells = attacked_cells(release)
        assert isinstance(release, Adjustment)  # noqa: S101 - the line above refused the others
        self.k, self.scenario, self.table, self.x = knowledge, scenario, release.table, release.values
        self.norm = knowledge.norm or str(release.options.get("norm", "l1"))
        if self.norm not in _NORMS:
            raise ReleaseError(
                f"scenarios are defined for the norms l1 and l2, not {self.norm!r} (castro2012).",
                hint='norm="l1" or "l2" is what an intruder would believe in instead.',
            )
        t, s = self.table, self.table.sensitive_cells
        self.sensitive = s
        need = movement_levels(t)
        self.raise_by, self.lower_by = np.zeros(t.n_cells), np.zeros(t.n_cells)
        self.raise_by[need.cells] = np.where(np.isfinite(need.upper), need.upper, 0.0)
        self.lower_by[need.cells] = np.where(np.isfinite(need.lower), need.lower, 0.0)
        self.senses = self.x[s] >= t.values[s]
        self.way = knowledge.senses or ("drawn" if scenario == "B1" else "known")
        self.soft = scenario in ("B1", "B2") if knowledge.soft is None else knowledge.soft
        largest = float((np.abs(self.x - t.values)[self.cells] / t.values[self.cells]).max())
        self.beta = largest if knowledge.beta is None else float(knowledge.beta)
        self.surplus = float(release.options.get("surplus", 0.0) or 0.0)
        self.secret_senses = release.options.get("senses") == "key"
        self.kind = str(release.options.get("weights", _PAPER[self.norm]))
        self.own_weight = release.internal.get("absolute_weight" if self.norm == "l1" else "square_weight")
        self.smallest = self._smallest()

    def _smallest(self) -> float:
        """Return what the smallest value that is not 0 may have been: the unit of the values is no secret.

        Whatever smaller is published was 0, and weighs no more than that lets it.
        """
        unit = decimal_unit(self.table.values, self.table.relations, self.table.rhs)
        positive = np.abs(self.x[self.x != 0])
        return min(1.0, unit or float(positive.min())) if len(positive) else 1.0

    @cached_property
    def adjuster(self) -> Adjuster:
        """The reduced structure."""
        from cellguard._engine.closest.adjuster import Adjuster

        return Adjuster(self.table.relations, self.table.fixed)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the structure behind: its factors cannot travel to another process."""
        return {name: value for name, value in vars(self).items() if name != "adjuster"}

    # ------------------------------------------------------------------ one replication

    def guess(self, seed: np.random.SeedSequence) -> tuple[FloatArray, bool]:
        """Guess once, solve the problem backwards, and return the estimates and whether bounds had to be soft."""
        from cellguard._engine.closest.distance import Distance, Target

        rng = np.random.default_rng(seed)
        guess = self.x * rng.uniform(1 - self.beta, 1 + self.beta, len(self.x))
        chosen = self._chosen(rng)
        believed = _Guess(chosen, self._room(guess), *self._levels(chosen, guess, rng))
        weight = self._weights(guess)
        absolute, square = (weight, None) if self.norm == "l1" else (None, weight)
        distance = Distance.of(len(weight), absolute=absolute, square=square)
        up = self._senses(believed, distance, rng)
        target, z = Target(*self._bounds(believed, up), distance), None
        if not self.soft:
            found = self.adjuster.solve(target, tolerance=1e-10)
            solved = found.feasible and found.certificate is not None and found.certificate.gap <= _SOLVED
            z = found.z if solved else None
        softened = z is None
        if z is None:
            z = self.adjuster.solve(replace(target, soft=self._penalty(weight)), tolerance=1e-9).z
        return (self.x - z)[self.cells], softened

    def _chosen(self, rng: Generator) -> IntArray:
        """Which cells he takes for sensitive."""
        if self.k.sensitive:
            return self.sensitive
        some = np.flatnonzero((self.x != 0) & ~self.table.fixed)
        return np.sort(rng.choice(some, min(len(self.sensitive), len(some)), replace=False))

    def _weights(self, guess: FloatArray) -> FloatArray:
        """Apply the weight function to the guesses; a cell of 0 weighs what the release lets it weigh."""
        kind = self.kind if self.k.weights == "release" else self.k.weights
        if kind == "table":
            return np.maximum(self.table.weights, 0.0)
        # no guess makes a cell heavier than the smallest value: a draw near 0 means nothing
        size = np.maximum(np.abs(guess), self.smallest)
        if kind == "given" and self.own_weight is not None:
            return np.asarray(self.own_weight)
        if kind == "given":
            return weights_by_value(_PAPER[self.norm], size)
        return weights_by_value(kind, np.where(guess == 0, 0.0, size))

    def _penalty(self, weight: FloatArray) -> FloatArray:
        """One large price per unit for all cells: no guess is trusted more than another.

        Large is measured by the dearest cell and the typical deviation.
        """
        typical = float(weight.max())
        if self.norm == "l2":
            typical *= float(np.median(np.abs(self.x - self.table.values)[self.sensitive]))
        return np.full(len(weight), _PENALTY * typical)

    def _room(self, guess: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of the deviations before any level: (5) in scenario C, (11) or (13) with his guesses otherwise."""
        t = self.table
        if self.scenario == "C":
            return t.lb - t.values, t.ub - t.values
        if not self.k.bounds:
            most = np.full(len(guess), _FARTHEST * float(np.abs(self.x).max(initial=1.0)))
            return -most, most
        lower, upper = guess - t.ub, guess - t.lb
        return (np.minimum(lower, 0.0), np.maximum(upper, 0.0)) if self.k.may_stay else (lower, upper)

    def _senses(self, guess: _Guess, distance: Distance, rng: Generator) -> np.ndarray:
        """Which of the chosen cells he takes to have risen."""
        drawn = rng.random(len(guess.chosen)) < 0.5
        if self.way == "known" and self.k.sensitive:
            return self.senses
        return self._free_senses(guess, distance, drawn) if self.way == "free" else drawn

    def _free_senses(self, guess: _Guess, distance: Distance, drawn: np.ndarray) -> np.ndarray:
        """The senses that make his own program (9) least; a coin where they leave no table."""
        from cellguard._engine.closest.directions import Senses, choose_directions

        chosen, (below, above) = guess.chosen, guess.room
        low, high = np.minimum(below, 0.0), np.maximum(above, 0.0)
        down, up = np.zeros(len(low)), np.zeros(len(low))
        can = ~self.adjuster.reduction.determined[chosen]
        down[chosen], up[chosen] = np.where(can, guess.lower_by, 0.0), np.where(can, guess.raise_by, 0.0)
        search = Senses(self.adjuster, (low, high), down, up, distance)
        choice = choose_directions(search, time_limit_s=_CHOICE_S, gap=1e-2)
        return np.asarray(choice.up[chosen]) if np.isfinite(choice.objective) else drawn

    def _bounds(self, guess: _Guess, up: np.ndarray) -> tuple[FloatArray, FloatArray]:
        s, raise_by, lower_by = guess.chosen, guess.raise_by, guess.lower_by
        lower, upper = (side.copy() for side in guess.room)
        lower[s] = np.where(up, raise_by, lower[s])
        upper[s] = np.where(up, np.maximum(upper[s], raise_by), -lower_by)
        lower[s] = np.where(up, lower[s], np.minimum(lower[s], -lower_by))
        return lower, upper

    def _levels(self, chosen: IntArray, guess: FloatArray, rng: Generator) -> tuple[FloatArray, FloatArray]:
        """Levels: known in B3 and C; otherwise the same share of the guess as of the truth, with an error."""
        t, s, both = self.table, chosen, (self.raise_by, self.lower_by)
        if not self.k.sensitive:  # he takes the middle share of all for each of the cells that he drew
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
        return self._with_surplus(levels, rng)

    def _with_surplus(self, levels: list[FloatArray], rng: Generator) -> tuple[FloatArray, FloatArray]:
        """He knows how a surplus is drawn, not what was drawn: he draws his own."""
        if not self.surplus:
            return levels[0], levels[1]
        widest = self.surplus * (levels[0] + levels[1]) / (2.0 if self.secret_senses else 1.0)
        first, second = (level + rng.random(len(level)) * widest for level in levels)
        return first, second

"""The attacker who only divides: a published x was a (1 + p) or a (1 - p), and a was a number of the table's kind.

Laws and handbooks print the percentage p that determines the levels, and the closest table leaves most sensitive cells
exactly at their level. Usually only one of x / (1 + p) and x / (1 - p) has two decimals, or is whole. When released
values lie on the grid of the original ones, the attacker counts the multiples that could have led to x. When a surplus
was drawn, the attacker knows how: all multiples from which some surplus would have led to x are candidates.
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.numbers.decimals import convert_from_units, convert_to_units, find_decimal_unit
from cellguard._tolerances import WHOLE_SOLUTION
from cellguard._types import FloatArray
from cellguard.attacks.intruder import compute_smallest_beta, find_attacked_cells
from cellguard.exceptions import InputError
from cellguard.model.levels import scale_rising_surplus
from cellguard.model.table import Table
from cellguard.release.release import Release

__all__ = ["DecimalIntruder", "infer_level_shares"]


def infer_level_shares(table: Table) -> tuple[float, float]:
    """Return the usual lower and upper levels as shares of the value: what a handbook would print."""
    s = table.sensitive_cells[table.values[table.sensitive_cells] > 0]
    lower, upper = (float(np.median(level[s] / table.values[s])) for level in (table.lower, table.upper))
    return min(lower, 0.99), upper


class DecimalIntruder:
    """What each published value could have been."""

    norm = "any"

    def __init__(self, release: Release, shares: tuple[float, float] | None = None) -> None:
        self.cells = find_attacked_cells(release)
        table = release.table
        self.lower, self.upper = infer_level_shares(table) if shares is None else shares
        if not (0 <= self.lower < 1 and 0 <= self.upper < np.inf):
            raise InputError(f"shares {shares!r}: a lower share below 1 and an upper share of at least 0 are needed.")
        self.unit = find_decimal_unit(table.values, table.relations, table.rhs)
        self.x = release.get_point_values()[self.cells]
        senses = release.options.get("senses", "key")
        n = len(self.cells)
        secret = np.full(n, senses == "key")
        up, down = np.full(n, str(senses) != "lower"), np.full(n, str(senses) != "upper")
        public = getattr(release, "internal", {}).get("public_sense")
        if public is not None:  # the table alone decides these senses: the attacker is assumed to know them
            known = public[self.cells]
            rose = self.x >= table.values[self.cells]
            secret, up, down = secret & ~known, up & (~known | rose), down & (~known | ~rose)
        self.ways = np.stack([up, down])
        surplus = float(release.options.get("surplus", 0.0) or 0.0)
        self.extra: FloatArray = surplus * (self.lower + self.upper) / np.where(secret, 2.0, 1.0)
        more = scale_rising_surplus(np.ones(n), np.full(n, self.upper), self.extra)
        self.extra_up: FloatArray = self.extra * np.where(secret, 1.0, more)
        self.on_grid = self._is_on_grid(self.x)
        a = table.values[self.cells]
        self.beta = compute_smallest_beta(self.x, a)
        self.first, self.last = self._compute_candidates()
        self.count = np.maximum(self.last - self.first + 1.0, 0.0)

    @property
    def candidates(self) -> FloatArray:
        """Number of values that each cell could have had."""
        return np.asarray(self.count.sum(axis=0)) if self.unit else np.full(len(self.cells), np.inf)

    def _is_on_grid(self, x: FloatArray) -> bool:
        scaled = convert_to_units(x, self.unit) if self.unit else x + 0.5
        return bool((np.abs(scaled - np.rint(scaled)) < WHOLE_SOLUTION * np.maximum(1.0, 1e-9 * np.abs(scaled))).all())

    def _compute_candidates(self) -> tuple[FloatArray, FloatArray]:
        """Return each cell's first and last candidate, in units, if it rose and if it fell; none if first > last."""
        unit = self.unit or 1.0
        x, extra = convert_to_units(self.x, unit), self.extra
        # a level rounded up to the grid leads to x from slightly below the quotient
        slack = 1.0 if self.on_grid else 0.0
        near = WHOLE_SOLUTION if self.unit else 0.0
        rose = np.ceil((x - slack) / (1.0 + self.upper + self.extra_up) - near), np.floor(x / (1.0 + self.upper) + near)
        most = np.maximum(1.0 - self.lower - extra, 1e-9)
        fell = np.ceil(x / (1.0 - self.lower) - near), np.floor((x + slack) / most + near)
        first, last = np.stack([rose[0], fell[0]]), np.stack([rose[1], fell[1]])
        if self.on_grid and not extra.any():
            first, last = self._trim_candidates(x, first, last)
        none = ~self.ways
        first[none], last[none] = 1.0, 0.0
        return first, last

    def _trim_candidates(self, x: FloatArray, first: FloatArray, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leave out ends from which a level, rounded up to the grid, does not lead to x."""
        for side, share, sign in ((0, self.upper, 1.0), (1, self.lower, -1.0)):
            for _ in range(3):
                for end, step in ((first, 1.0), (last, -1.0)):
                    a = end[side]
                    wrong = a + sign * np.ceil(share * a - 1e-7) != x
                    end[side] = np.where(wrong & (first[side] <= last[side]), a + step, a)
        return first, last

    def guess(self, seed: np.random.SeedSequence) -> tuple[FloatArray, bool]:
        """Choose one of the candidates uniformly; if there is none, one of the quotients."""
        rng = np.random.default_rng(seed)
        total = self.count.sum(axis=0)
        place = np.floor(rng.random(len(total)) * total)
        rose = place < self.count[0]
        chosen = np.where(rose, self.first[0] + place, self.first[1] + place - self.count[0])
        middle_up = 1.0 + self.upper + self.extra_up / 2.0
        middle_down = np.maximum(1.0 - self.lower - self.extra / 2.0, 1e-9)
        coin = np.where(self.ways.all(axis=0), rng.random(len(total)) < 0.5, self.ways[0])
        quotient = np.where(coin, self.x / middle_up, self.x / middle_down)
        known = (total > 0) & (self.unit > 0)
        return np.where(known, convert_from_units(chosen, self.unit or 1.0), quotient), False

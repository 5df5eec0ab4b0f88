"""The intruder who only divides: a published x was a (1 + p) or a (1 - p), and a was a number of the table's kind.

Laws and handbooks print the percentage p of which levels are made, and the closest table leaves most sensitive cells
exactly at their level. Of x / (1 + p) and x / (1 - p) usually only one has two decimals, or is whole. When released
values lie on the grid of the original ones he counts the multiples that could have led to x; when a surplus was drawn
he knows how, and all multiples that some surplus would have led to x are candidates.
"""

from __future__ import annotations

import numpy as np

from cellguard._engine.numbers.decimals import decimal_unit, from_decimal_units, in_decimal_units
from cellguard._tolerances import WHOLE_SOLUTION
from cellguard._types import FloatArray
from cellguard.check.attack.intruder import attacked_cells
from cellguard.exceptions import InputError
from cellguard.nouns.release import Adjustment, Release
from cellguard.nouns.table import Table

__all__ = ["DecimalIntruder", "shares_intruder_expects"]


def shares_intruder_expects(table: Table) -> tuple[float, float]:
    """Return the shares of the value that the lower and upper levels usually are: what a handbook would print."""
    s = table.sensitive_cells[table.values[table.sensitive_cells] > 0]
    lower, upper = (float(np.median(level[s] / table.values[s])) for level in (table.lower, table.upper))
    return min(lower, 0.99), upper


class DecimalIntruder:
    """What each published value could have been."""

    norm = "any"

    def __init__(self, release: Release, shares: tuple[float, float] | None = None) -> None:
        self.cells = attacked_cells(release)
        assert isinstance(release, Adjustment)  # noqa: S101 - the line above refused the others
        table = release.table
        self.lower, self.upper = shares_intruder_expects(table) if shares is None else shares
        if not (0 <= self.lower < 1 and 0 <= self.upper < np.inf):
            raise InputError(f"shares {shares!r}: a lower share below 1 and an upper share of at least 0 are needed.")
        self.unit = decimal_unit(table.values, table.relations, table.rhs)
        self.x = release.values[self.cells]
        senses = release.options.get("senses", "key")
        self.ways = {"upper": (True, False), "lower": (False, True)}.get(str(senses), (True, True))
        surplus = float(release.options.get("surplus", 0.0) or 0.0)
        both, ways = self.lower + self.upper, 2.0 if senses == "key" else 1.0
        self.extra = surplus * both / ways
        self.on_grid = self._lies_on_grid(self.x)
        a = table.values[self.cells]
        self.beta = float((np.abs(self.x - a) / a).max())
        self.first, self.last = self._candidates()
        self.count = np.maximum(self.last - self.first + 1.0, 0.0)

    @property
    def candidates(self) -> FloatArray:
        """How many values each cell could have had."""
        return np.asarray(self.count.sum(axis=0)) if self.unit else np.full(len(self.cells), np.inf)

    def _lies_on_grid(self, x: FloatArray) -> bool:
        scaled = in_decimal_units(x, self.unit) if self.unit else x + 0.5
        return bool((np.abs(scaled - np.rint(scaled)) < WHOLE_SOLUTION * np.maximum(1.0, 1e-9 * np.abs(scaled))).all())

    def _candidates(self) -> tuple[FloatArray, FloatArray]:
        """First and last candidate of each cell, in units, when it rose and when it fell; none where first > last."""
        unit = self.unit or 1.0
        x, extra = in_decimal_units(self.x, unit), self.extra
        # a level that was rounded up to the grid leads to x from a little below the quotient
        slack = 1.0 if self.on_grid else 0.0
        near = WHOLE_SOLUTION if self.unit else 0.0
        rose = np.ceil((x - slack) / (1.0 + self.upper + extra) - near), np.floor(x / (1.0 + self.upper) + near)
        most = np.maximum(1.0 - self.lower - extra, 1e-9)
        fell = np.ceil(x / (1.0 - self.lower) - near), np.floor((x + slack) / most + near)
        first, last = np.stack([rose[0], fell[0]]), np.stack([rose[1], fell[1]])
        if self.on_grid and not extra:
            first, last = self._exact_candidates(x, first, last)
        none = ~np.array(self.ways)
        first[none], last[none] = 1.0, 0.0
        return first, last

    def _exact_candidates(self, x: FloatArray, first: FloatArray, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Leave out ends from which a level, rounded up to the grid, does not lead to x."""
        for side, share, sign in ((0, self.upper, 1.0), (1, self.lower, -1.0)):
            for _ in range(3):
                for end, step in ((first, 1.0), (last, -1.0)):
                    a = end[side]
                    wrong = a + sign * np.ceil(share * a - 1e-7) != x
                    end[side] = np.where(wrong & (first[side] <= last[side]), a + step, a)
        return first, last

    def guess(self, seed: np.random.SeedSequence) -> tuple[FloatArray, bool]:
        """Choose one of the candidates, all alike; where there is none, one of the quotients."""
        rng = np.random.default_rng(seed)
        total = self.count.sum(axis=0)
        place = np.floor(rng.random(len(total)) * total)
        rose = place < self.count[0]
        chosen = np.where(rose, self.first[0] + place, self.first[1] + place - self.count[0])
        middle_up, middle_down = 1.0 + self.upper + self.extra / 2.0, max(1.0 - self.lower - self.extra / 2.0, 1e-9)
        coin = rng.random(len(total)) < 0.5 if all(self.ways) else np.full(len(total), self.ways[0])
        quotient = np.where(coin, self.x / middle_up, self.x / middle_down)
        known = (total > 0) & (self.unit > 0)
        return np.where(known, from_decimal_units(chosen, self.unit or 1.0), quotient), False

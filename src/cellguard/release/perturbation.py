"""Perturbed tables: every cell is at most a known distance from its true value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellguard._tolerances import SAME_VALUE
from cellguard._types import BoolArray, FloatArray
from cellguard.model.areas import split_into_areas
from cellguard.model.checks import check_sums
from cellguard.model.units import get_unit
from cellguard.release.base import SMALL_BESIDE_BASE, Release, collect_distinct

if TYPE_CHECKING:
    from cellguard.release.readers.manifest_facts import PublishedFacts
    from cellguard.release.readers.read_release import PublishedFile

__all__ = ["Perturbation"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Perturbation(Release):
    """Every cell is published with a value at most a known distance from the truth (CPP)."""

    method: ClassVar[str] = "perturb"
    priced_by_weights: ClassVar[bool] = False
    values: FloatArray = field(repr=False)
    """The published values: additive."""
    distance: FloatArray = field(repr=False)
    """Largest distance of the true value from the published one (published)."""
    base: FloatArray | None = field(default=None, repr=False)
    """The base to whose multiples cells were drawn, if any; it is then the distance."""
    between: bool = False
    """Whether every cell stayed between the multiples next to it (published)."""
    areas: str | None = None
    """The dimension whose finest codes were perturbed one by one; distances of the others are sums (published)."""

    def _get_published_interval(self) -> tuple[FloatArray, FloatArray]:
        d = np.where(self.table.fixed, 0.0, self.distance)  # every attacker knows which cells are fixed
        lo, hi = self.values - d, self.values + d
        if self.between:
            lo, hi = self._narrow_to_multiples(lo, hi)
        if self.table.integer:
            noise = 1e-9 * np.maximum(1.0, np.abs(self.values))
            return np.ceil(lo - noise), np.floor(hi + noise)
        return lo, hi

    def _narrow_to_multiples(self, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what an attacker knows if no cell went past the multiples next to it.

        The truth lies between the same two multiples as the published value; if that is a multiple itself, between the
        multiples on both sides of it. A true multiple did not move.
        """
        step, unit = np.where(self.table.fixed, 1.0, self.distance), get_unit(self.table)
        quotient = self.values / step
        near = np.rint(quotient)
        quotient = np.where(np.abs(quotient - near) <= SMALL_BESIDE_BASE, near, quotient)
        below, above = (np.ceil(quotient) - 1) * step + unit, (np.floor(quotient) + 1) * step - unit
        free = ~self.table.fixed
        return np.where(free, np.maximum(lo, below), lo), np.where(free, np.minimum(hi, above), hi)

    def find_unchanged(self) -> BoolArray:
        a = self.table.values
        return np.asarray(np.abs(self.values - a) <= SAME_VALUE * np.maximum(1.0, np.abs(a)))

    def get_point_values(self) -> FloatArray:
        return self.values

    @classmethod
    def matches_file(cls, file: PublishedFile, facts: PublishedFacts) -> bool:
        return facts.distance is not None

    @classmethod
    def read(cls, file: PublishedFile, facts: PublishedFacts) -> Release:
        values = file.read_all_values(cls.method)
        distance = facts.distance if facts.distance is not None else facts.base
        what = "a perturbed table needs the distance that was published with it"
        distances = facts.number_per_cell(file.table, distance, what)
        return cls.from_file(file.table, values=values, distance=distances, between=facts.between)

    def add_facts(self, facts: PublishedFacts) -> Release:
        """Return the release with the distances of sums, if it was made area by area; the file may be a part."""
        if facts.areas is None:
            return self
        distance = split_into_areas(self.table, facts.areas).add_up(self.distance)
        return replace(self, distance=distance, areas=facts.areas)

    def _check_numbers(self) -> None:
        self._refuse(np.isnan(self.values), "there is no value.")
        self._check_truth_inside(SMALL_BESIDE_BASE)
        check_sums(self.table, self.values)

    def get_published_parameters(self) -> dict[str, Any]:
        said: dict[str, Any] = {"between": True} if self.between else {}
        if self.areas is None:
            return {"distance": collect_distinct(self.distance[~self.table.fixed]), **said}
        finest = split_into_areas(self.table, self.areas).finest
        moved = self.distance[finest & ~self.table.fixed]
        return {"distance": collect_distinct(moved), "areas": self.areas, **said}

    def _collect_own_figures(self) -> dict[str, Any]:
        return {"base": None if self.base is None else collect_distinct(self.base), "step": 1}

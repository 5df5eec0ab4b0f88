"""Rounded tables: every cell is a multiple of its base."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import InputError, ReleaseError
from cellguard.model.checks import check_sums
from cellguard.model.units import get_unit
from cellguard.release.base import SMALL_BESIDE_BASE, Release, collect_distinct

if TYPE_CHECKING:
    from cellguard.release.readers.manifest_facts import PublishedFacts
    from cellguard.release.readers.read_release import PublishedFile

__all__ = ["Rounding"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rounding(Release):
    """Every cell is published as a multiple of its base (CRP)."""

    method: ClassVar[str] = "round"
    priced_by_weights: ClassVar[bool] = True
    """Whether the method minimised the weighted distance to the true values, which an attacker can use."""
    values: FloatArray = field(repr=False)
    """The published multiples: additive."""
    base: FloatArray = field(repr=False)
    """The base of each cell (published, even for cells that were already multiples of it)."""
    step: int = 1
    """Published: a cell moved by less than `step` bases; 1 is zero-restricted rounding."""
    keep_multiples: bool = False
    """Whether a sensitive multiple of the base may stay, as in salazar2004; otherwise the audit requires a move."""

    @cached_property
    def unit(self) -> float:
        """The unit of the values' last decimal, known to attackers who know the kind of data: 1 for whole numbers."""
        return get_unit(self.table)

    @property
    def distance(self) -> FloatArray:
        """Return the largest distance of the true value from the published one; 0 for fixed cells.

        It is less than `step` bases: a unit less if the values have a last decimal, otherwise arbitrarily
        close to it. A multiple of the base is not marked as such: publishing its distance
        as 0, as salazar2004 section 3 does, would disclose it.
        """
        from cellguard._engine.numbers.multiples import compute_rounding_interval

        return np.where(
            self.table.fixed,
            0.0,
            compute_rounding_interval(np.zeros_like(self.base), self.base, self.step, self.unit)[1],
        )

    @cached_property
    def _interval(self) -> tuple[FloatArray, FloatArray]:
        from cellguard._engine.numbers.multiples import compute_rounding_interval

        lo, hi = compute_rounding_interval(self.values, self.base, self.step, self.unit)
        return np.where(self.table.fixed, self.values, lo), np.where(self.table.fixed, self.values, hi)

    def _get_published_interval(self) -> tuple[FloatArray, FloatArray]:
        return self._interval

    def find_unchanged(self) -> BoolArray:
        a = self.table.values
        same = np.asarray(np.abs(self.values - a) <= np.maximum(self.unit / 2, 1e-15 * np.abs(a)))
        # multiples may stay if others moved; if no cell moved, the table was not rounded and shows the true values
        return super().find_unchanged() if self.keep_multiples and not same.all() else same

    def get_point_values(self) -> FloatArray:
        return self.values

    def describe_safety(self) -> str:
        if not self.keep_multiples:
            return super().describe_safety()
        kept = "multiples of the base may stay unchanged, as the office has chosen."
        return f"No sensitive cell is known exactly, or known more precisely than its levels allow; {kept}"

    @classmethod
    def matches_file(cls, file: PublishedFile, facts: PublishedFacts) -> bool:
        return facts.base is not None

    @classmethod
    def read(cls, file: PublishedFile, facts: PublishedFacts) -> Release:
        values = file.read_all_values(cls.method)
        base = facts.number_per_cell(file.table, facts.base, "a rounded table needs its base")
        step = 1 if facts.step is None else facts.step
        if step < 1:
            raise InputError(f"step {step!r}: a whole number of at least 1 is needed.")
        return cls.from_file(file.table, values=values, base=base, step=step, keep_multiples=facts.keep_multiples)

    def add_facts(self, facts: PublishedFacts) -> Release:
        """Return the rounding for which every attacker knows which cells went to their nearest multiple."""
        from cellguard.model.kept import add_kept_knowledge, find_kept_cells, normalize_kept_entries

        t = self.table
        kept = find_kept_cells(t, facts.keep) & ~t.fixed
        near = np.floor(t.values / self.base + 0.5) * self.base
        off = np.abs(self.values - near) > self.base / 4
        self._refuse(kept & off, "is declared as kept, but is not the multiple nearest to it.")
        options = {**self.options, "keep": normalize_kept_entries(facts.keep)}
        return replace(self, table=add_kept_knowledge(t, self.base, kept), options=options)

    def _check_numbers(self) -> None:
        from cellguard._engine.numbers.multiples import count_decimals, find_off_base

        self._refuse(np.isnan(self.values), "there is no value.")
        self._check_truth_inside(SMALL_BESIDE_BASE)
        digits = count_decimals(self.base)
        if digits is None:
            raise ReleaseError("a base has more than nine decimals.")
        off = find_off_base(self.values, self.base)
        hint = "is this the base with which the table was rounded?"
        self._refuse(off, "the published value is not a multiple of the base.", hint)
        check_sums(self.table, self.values, digits)

    def _describe_counts(self) -> str:
        return f", base {collect_distinct(self.base)}, step {self.step}"

    def get_published_parameters(self) -> dict[str, Any]:
        facts = {"base": collect_distinct(self.base), "step": self.step}
        said = {"keep": self.options.get("keep"), "keep_multiples": self.keep_multiples}
        return facts | {name: value for name, value in said.items() if value}

    def _collect_own_figures(self) -> dict[str, Any]:
        return self.get_published_parameters()

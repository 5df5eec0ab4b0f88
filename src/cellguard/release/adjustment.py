"""Adjusted tables: every cell has a changed value, the sensitive ones at least their level away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cellguard._tolerances import ROUNDED_TRUTH
from cellguard._types import FloatArray
from cellguard.model.checks import check_sums
from cellguard.release.base import Release

if TYPE_CHECKING:
    from cellguard.release.readers.manifest_facts import PublishedFacts

__all__ = ["Adjustment"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Adjustment(Release):
    """Every cell is published with a changed value; sensitive ones at least their level away (CTA)."""

    method: ClassVar[str] = "adjust"
    by_ranges: ClassVar[bool] = False
    values: FloatArray = field(repr=False)
    """The published values: additive, and safe by their distance from the true values."""
    internal: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """How they were made, cell by cell: weights, senses, multipliers (confidential, never written by :meth:`save`)."""

    def save_internal(self, path: str | Path) -> None:
        """Write the internal file: true and published values, and how they were made. Only its owner may read it."""
        from cellguard._io.frames import merge_codes_and_columns
        from cellguard.release.formats.sheets import write_sheet_of_release

        self._require_published()
        truth = {"original": self.table.values, "value": self.values}
        write_sheet_of_release(
            merge_codes_and_columns(self.table.cell_codes(), {**truth, **self.internal}), path, private=True
        )

    def _collect_own_figures(self) -> dict[str, Any]:
        if "lower_multiplier" not in self.internal:
            return {}
        multipliers = self.internal["lower_multiplier"], self.internal["upper_multiplier"]
        return {"multipliers_norm1": float(sum(each.sum() for each in multipliers))}

    def add_facts(self, facts: PublishedFacts) -> Release:
        """Return the release for which every attacker knows that the kept cells did not change."""
        from cellguard.model.kept import find_kept_cells

        kept = find_kept_cells(self.table, facts.keep)
        return replace(self, table=self.table.with_(fixed=self.table.fixed | kept)) if kept.any() else self

    def describe_safety(self) -> str:
        return "No sensitive cell is published unchanged, and each is published at least its protection level away."

    def _check_numbers(self) -> None:
        t, x = self.table, self.values
        self._refuse(np.isnan(x), "there is no value.")
        slack = ROUNDED_TRUTH * np.maximum(1.0, np.abs(t.values))
        # a cell that is not empty may be published as 0: nothing is said about its distance from the truth
        outside = (x < t.given_lb - slack) | (x > t.ub + slack)
        self._refuse(outside, "the published value lies outside the known bounds.")
        check_sums(t, x)

    def _get_published_interval(self) -> tuple[FloatArray, FloatArray]:
        return np.full_like(self.values, -np.inf), np.full_like(self.values, np.inf)

    def get_point_values(self) -> FloatArray:
        return self.values

"""Suppressed tables: some cells are withheld, all others have their true value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cellguard._tolerances import ROUNDED_TRUTH
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.release.base import AS_PUBLISHED, Release

if TYPE_CHECKING:
    from cellguard.release.readers.manifest_facts import PublishedFacts
    from cellguard.release.readers.read_release import PublishedFile

__all__ = ["Suppression"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Suppression(Release):
    """Some cells are not published: the sensitive ones (primary) and others that protect them (secondary)."""

    method: ClassVar[str] = "suppress"
    withholds_cells: ClassVar[bool] = True
    joined_by: ClassVar[Mapping[str, str]] = {"suppressed": "any"}
    suppressed: BoolArray = field(repr=False)
    """Which cells are not published."""
    conceal: bool = False
    """Whether it stays secret which suppressed cells are primary, even if a user requests the marks."""

    @property
    def primary(self) -> BoolArray:
        """Suppressed because they are sensitive."""
        return self.suppressed & self.table.sensitive

    @property
    def secondary(self) -> BoolArray:
        """Suppressed to protect others."""
        return self.suppressed & ~self.table.sensitive

    @property
    def cost(self) -> float:
        """Sum of the weights of the secondary suppressions."""
        return float(self.table.weights[self.secondary].sum())

    def _get_published_interval(self) -> tuple[FloatArray, FloatArray]:
        a = self.table.values
        return np.where(self.suppressed, -np.inf, a), np.where(self.suppressed, np.inf, a)

    def get_point_values(self) -> FloatArray:
        return np.where(self.suppressed, np.nan, self.table.values)

    @property
    def withheld(self) -> BoolArray:
        """Cells without any published number."""
        return self.suppressed

    def filter_disclosed(self, cells: IntArray) -> IntArray:
        return cells[self.suppressed[cells]]

    def describe_result(self) -> dict[str, str]:
        lost = 100 * self.cost / max(float(self.table.weights.sum()), 1e-300)
        counts = {"primary": f"{int(self.primary.sum()):,}", "secondary": f"{int(self.secondary.sum()):,}"}
        return {**counts, "information lost": f"{lost:.2f}% of the weights"}

    def count_cells(self, cells: Any = slice(None), *, mark_primary: bool) -> dict[str, int]:
        if not mark_primary:
            return {"withheld": int(self.suppressed[cells].sum())}
        return {"primary": int(self.primary[cells].sum()), "secondary": int(self.secondary[cells].sum())}

    def get_texts(self, *, mark_primary: bool) -> tuple[list[str], NDArray[Any]]:
        marks = ["primary", "secondary"] if mark_primary else ["withheld", "withheld"]
        status = np.select([self.primary, self.secondary], marks, "published")
        return self.get_texts_of_columns(self.table, {"status": status, "value": self.get_point_values()})

    @classmethod
    def matches_file(cls, file: PublishedFile, facts: PublishedFacts) -> bool:
        return file.status is not None or bool(file.blank.any())

    @classmethod
    def read(cls, file: PublishedFile, facts: PublishedFacts) -> Release:
        hidden = file.blank if file.status is None else file.read_marks(file.status)
        release = cls.from_file(file.table, suppressed=hidden)
        if file.status is not None:
            release._refuse(file.blank & ~hidden, "the status says published, and there is no value.")
            if file.value is not None and not file.marks_only:
                beside = "is marked as withheld, but has a value next to the mark."
                release._refuse(hidden & ~file.blank, beside, f"{AS_PUBLISHED}; say marks_only of an internal file.")
        if file.value is not None:
            shown = ["nan" if h else v for h, v in zip(hidden.tolist(), file.value, strict=True)]
            a, published = file.table.values, file.read_numbers(shown, np.nan)
            wrong = ~hidden & ~(np.abs(published - a) <= ROUNDED_TRUTH * np.maximum(1.0, np.abs(a)))
            release._refuse(wrong, "the published value is not the table's.", "was the release made from this table?")
        return release

    def _check_numbers(self) -> None:
        t = self.table
        protected = np.maximum(t.lower, np.maximum(t.upper, t.sliding)) > 0
        self._refuse(
            t.sensitive & ~self.suppressed & (protected | ~t.fixed),
            "the cell is sensitive, but published.",
            "suppress every sensitive cell, or take it off the list of sensitive ones.",
        )

    def _describe_counts(self) -> str:
        withheld = int(self.suppressed.sum())
        return f": {self.table.n_cells - withheld} published, {withheld} withheld"

    def columns(self, *, mark_primary: bool = False) -> dict[str, NDArray[Any]]:
        names = ["primary", "secondary"] if mark_primary and not self.conceal else ["withheld", "withheld"]
        status = np.select([self.primary, self.secondary], names, "published")
        return {"status": status, "value": self.get_point_values()}

    def _collect_own_figures(self) -> dict[str, Any]:
        return {"primary": int(self.primary.sum()), "secondary": int(self.secondary.sum()), "cost": self.cost}

"""Tables of intervals: some cells are published as an interval that contains the true value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cellguard._tolerances import ROUNDED_TRUTH
from cellguard._types import BoolArray, FloatArray
from cellguard.release.base import AS_PUBLISHED, Release

if TYPE_CHECKING:
    from cellguard.release.readers.manifest_facts import PublishedFacts
    from cellguard.release.readers.read_release import PublishedFile

__all__ = ["Intervals"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Intervals(Release):
    """Some cells are published as an interval that contains the true value (IP)."""

    method: ClassVar[str] = "intervals"
    one_number: ClassVar[bool] = False
    joined_by: ClassVar[Mapping[str, str]] = {"lower": "largest", "upper": "least"}
    lower: FloatArray = field(repr=False)
    """Published lower ends."""
    upper: FloatArray = field(repr=False)
    """Published upper ends."""
    internal: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    """The sets of values that stay possible for an informed attacker, by their ends (confidential, never written)."""

    def _get_published_interval(self) -> tuple[FloatArray, FloatArray]:
        return self.lower, self.upper

    def get_point_values(self) -> FloatArray:
        return (self.lower + self.upper) / 2.0

    def find_exact_cells(self) -> BoolArray:
        lo, hi = self.published_bounds()
        return np.asarray(hi - lo <= 1e-9 * np.maximum(1.0, np.abs(self.table.values)))

    def count_cells(self, cells: Any = slice(None), *, mark_primary: bool) -> dict[str, int]:
        del mark_primary
        return {"intervals": int(np.count_nonzero((self.upper > self.lower)[cells]))}

    @classmethod
    def matches_file(cls, file: PublishedFile, facts: PublishedFacts) -> bool:
        return file.lower is not None or file.upper is not None

    @classmethod
    def read(cls, file: PublishedFile, facts: PublishedFacts) -> Release:
        if file.lower is None or file.upper is None:
            raise file.build_ends_error()
        low, high = file.read_numbers(file.lower, -np.inf), file.read_numbers(file.upper, np.inf)
        release = cls.from_file(file.table, lower=low, upper=high)
        if file.value is not None:
            both = ~file.blank & (low != high)
            release._refuse(both, "has an interval, and a value beside it.", f"{AS_PUBLISHED}.")
        return release

    def _check_numbers(self) -> None:
        open_ = np.isinf(self.lower) & np.isinf(self.upper)  # cells published as (-inf, inf) have no midpoint
        self._refuse(np.isnan(self.get_point_values()) & ~open_, "there is no value.")
        self._check_truth_inside(ROUNDED_TRUTH)
        self._refuse(self.lower > self.upper, "the lower end of its interval lies above the upper end.")

    def _describe_counts(self) -> str:
        return f": {int(np.count_nonzero(self.upper > self.lower))} as intervals"

    def columns(self, *, mark_primary: bool = False) -> dict[str, NDArray[Any]]:
        del mark_primary
        return {"lower": self.lower, "upper": self.upper}

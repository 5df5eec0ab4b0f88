"""The methods side by side on one table: the question every office asks first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.clock import now
from cellguard._types import FloatArray
from cellguard.exceptions import CellguardError
from cellguard.methods.method import Method
from cellguard.methods.registry import METHODS, method_called
from cellguard.nouns.publication import Publication, table_given_to_verb
from cellguard.nouns.release import Intervals, Release
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.check.audit import Audit

__all__ = ["HEADINGS", "Comparison", "compare", "measured_for_comparison"]

HEADINGS = {
    "status": "status",
    "safe": "safe",
    "gap": "proven gap %",
    "untouched_pct": "cells untouched %",
    "hidden_pct": "cells hidden %",
    "deviation_pct": "mean deviation %",
    "interval_pct": "published width %",
    "range_pct": "attacker's range %",
    "range_to_level": "range / levels",
    "seconds": "seconds",
    "note": "note",
}
"""Figures of a row -> how they are called where people read them."""

_GAP = 1e-3
"""How close to its best each method goes: nobody chooses a method by less."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """One row per method, and the releases themselves."""

    table: Table = field(repr=False)
    """The table that was protected."""
    rows: tuple[dict[str, Any], ...]
    """One dict per method; see :func:`compare` for its columns."""
    releases: dict[str, Release] = field(repr=False)
    """The releases that were found, by method."""

    def frame(self, like: Any = None) -> Any:
        """Return the rows as a frame of the same kind as `like` (pyarrow unless given)."""
        from cellguard._io.frames import frame_of_columns

        return frame_of_columns({name: [row[name] for row in self.rows] for name in self.rows[0]}, like)


def compare(
    table: Table | Publication,
    methods: Iterable[str] | None = None,
    *,
    base: float | None = None,
    norm: str = "l1",
    time_limit_s: float = 60.0,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Protect one table by several methods and measure all of them alike.

    The columns: `method`, `status`, `safe` (the audit's verdict), `gap` (proven), `untouched_pct` (cells
    published with their true value), `hidden_pct` (cells without any number), `deviation_pct` (mean
    distance of the published number from the truth, over cells with a positive value and a number),
    `interval_pct` (mean width of what is published of a cell, relative to its value; what is known of
    a suppressed cell is its range), `range_pct` (mean width of the attacker's range of a sensitive cell,
    relative to its value), `range_to_level` (the least ratio of that range to what the levels ask), `seconds`
    and `note`. What does not apply to a method is NaN: an adjusted table is attacked by scenarios.

    Parameters
    ----------
    table
        The table, or the publication.
    methods
        Which methods; all of them unless given.
    base
        Of rounding and perturbation; unless given, the least of 5, 10, 50, 100, ... that leaves room
        for every level.
    norm
        Of the adjustment.
    time_limit_s
        For each method.
    seed
        For each method.
    progress
        Called with the name of each method when it starts.
    """
    table = table_given_to_verb(table, "compare")
    wanted = [method_called(name) for name in (METHODS if methods is None else methods)]
    rows, releases = [], {}
    for method in wanted:
        name = method.name
        options = _options_to_compare(method, table, base=base, norm=norm)
        if progress is not None:
            progress(name)
        begin = now()
        try:
            release = method.verb(table, **options, time_limit_s=time_limit_s, seed=seed)
        except CellguardError as error:  # levels that this method cannot meet are a result here, not a mistake
            rows.append(_comparison_row(name, "refused", note=error.message))
            continue
        if not release.published:
            rows.append(_comparison_row(name, str(release.status), note=release.explanation))
            continue
        seconds = now() - begin
        releases[name] = release
        rows.append(measured_for_comparison(method, release, release.audit(exact=True), seconds, options))
    return Comparison(table=table, rows=tuple(rows), releases=releases)


def _options_to_compare(method: Method, table: Table, **asked: Any) -> dict[str, Any]:
    """Return what a comparison asks of a method: a gap of a thousandth, and of what is asked for what it has."""
    options = {name: value for name, value in asked.items() if method.option(name) is not None}
    if method.option("gap") is not None:
        options["gap"] = _GAP
    return method.filled(options, table)


def _comparison_row(method: str, status: str, **known: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(HEADINGS, float("nan"))
    return {"method": method} | unknown | {"status": status, "safe": False, "note": ""} | known


def measured_for_comparison(
    method: Method, release: Release, audit: Audit, seconds: float, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the row of a release in a comparison; see :func:`compare` for its columns."""
    t, a = release.table, release.table.values
    point = release.point_values()
    lo, hi = release.published_bounds()
    positive = a > 0
    exact = np.isclose(point, a, rtol=1e-9, atol=1e-9)
    if isinstance(release, Intervals):
        exact = hi - lo <= 1e-9 * np.maximum(1.0, np.abs(a))
    shown = np.isfinite(point)
    deviation = np.abs(point - a)[positive & shown] / a[positive & shown]
    reach = t.ub - t.lb  # what is known of a cell when nothing is published; twice its value where bounds are open
    width = np.minimum(hi - lo, np.where(np.isfinite(reach), reach, 2.0 * np.abs(a)))
    ranges = {}
    if method.by_ranges:
        ranges = _widths_of_compared_method(audit)
        ranges["interval_pct"] = 100.0 * _method_figure_or_nan(np.mean, width[positive] / a[positive])
    return _comparison_row(
        method.name,
        str(release.status),
        safe=audit.safe,
        gap=release.gap,
        untouched_pct=100.0 * float((exact & shown).mean()),
        hidden_pct=100.0 * float((~shown).mean()),
        deviation_pct=100.0 * float(deviation.mean()) if len(deviation) else 0.0,
        seconds=seconds,
        note="" if method.note is None else method.note(release, options),
        **ranges,
    )


def _method_figure_or_nan(figure: Callable[[FloatArray], Any], numbers: FloatArray) -> float:
    return float(figure(numbers)) if len(numbers) else float("nan")


def _widths_of_compared_method(audit: Audit) -> dict[str, float]:
    """Mean width of the sensitive cells' ranges in per cent of their values, and the least ratio to their levels."""
    shares, ratios = [np.zeros(0)], [np.zeros(0)]
    for found in audit.findings:
        if found.attacker.derived:
            continue
        a = audit.release.table.values[found.cells]
        width, asked = found.high - found.low, found.levels.width
        counts = (a > 0) & np.isfinite(width)
        shares.append(width[counts] / a[counts])
        ratios.append(width[asked > 0] / asked[asked > 0])
    share, ratio = np.concatenate(shares), np.concatenate(ratios)
    return {
        "range_pct": 100.0 * _method_figure_or_nan(np.mean, share),
        "range_to_level": _method_figure_or_nan(np.min, ratio),
    }

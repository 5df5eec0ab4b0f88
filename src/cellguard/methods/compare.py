"""Compare the methods on one table: the first question of every statistical office."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.clock import now
from cellguard._types import FloatArray
from cellguard.exceptions import CellguardError
from cellguard.methods.keys import take_key
from cellguard.methods.method import Method
from cellguard.methods.options import refuse_coarse_base
from cellguard.methods.registry import METHODS, get_method
from cellguard.model.key import KeyGiven
from cellguard.model.linked.publication import Publication, require_table
from cellguard.model.table import Table
from cellguard.release.release import Release, Status

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit

__all__ = ["HEADINGS", "VERDICTS", "Comparison", "compare", "measure_release"]

HEADINGS = {
    "status": "status",
    "verdict": "verdict",
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
"""Figures of a row -> their display names."""

VERDICTS = ("safe", "safe by distance", "not safe", "not finished", "refused")
"""What a row says about its method: only the first is a choice without a warning.

A method whose sensitive cells are merely away from the truth is attacked by scenarios, and an informed attacker may
compute values back: it is never the best of a comparison."""

_GAP = 1e-3
"""Gap at which each method may stop: smaller differences do not decide between methods."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison:
    """One row per method, and the releases themselves."""

    table: Table = field(repr=False)
    """The table that was protected."""
    rows: tuple[dict[str, Any], ...]
    """One dict per method; see :func:`compare` for its columns."""
    releases: dict[str, Release] = field(repr=False)
    """The releases that were found, by method."""

    def __repr__(self) -> str:
        shown = ", ".join(f"{row['method']} {row['status']}" for row in self.rows)
        return f"Comparison({shown})"

    def frame(self, like: Any = None) -> Any:
        """Return the rows as a frame of the same kind as `like` (pyarrow unless given)."""
        from cellguard._io.frames import build_frame

        return build_frame({name: [row[name] for row in self.rows] for name in self.rows[0]}, like)


def compare(
    table: Table | Publication,
    methods: Iterable[str] | None = None,
    *,
    base: float | None = None,
    norm: str | None = None,
    time_limit_s: float = 60.0,
    seed: int = 0,
    key: KeyGiven | None = None,
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Protect one table by several methods and measure all of them in the same way.

    The columns: `method`, `status`, `verdict` (one of :data:`VERDICTS`), `safe` (whether the audit accepts the release;
    None if there is none), `gap` (proven), `untouched_pct` (cells
    published with their true value), `hidden_pct` (cells without any number), `deviation_pct` (mean
    distance of the published number from the truth, over cells with a positive value and a number),
    `interval_pct` (mean width of what is published of a cell, relative to its value; what is known of
    a suppressed cell is its range), `range_pct` (mean width of the attacker's range of a sensitive cell,
    relative to its value), `range_to_level` (the least ratio of that range to what the levels require), `seconds`
    and `note`. What does not apply to a method is NaN: an adjusted table is attacked by scenarios.

    Parameters
    ----------
    table
        The table, or the publication.
    methods
        Which methods; by default all.
    base
        For rounding and perturbation; by default the least of 5, 10, 50, 100, ... that leaves enough slack
        for every level.
        Where that is more than twice as large as most cells, these methods are refused: nearly every number
        would be lost.
    norm
        Norm of the adjustment; by default that of :func:`cellguard.adjust`.
    time_limit_s
        For each method.
    seed
        Steers the search of each method that hides nothing by chance.
    key
        The secret of the other methods; by default drawn from the operating system.
    progress
        Called with the name of each method when it starts.
    """
    table = require_table(table, "compare")
    wanted = [get_method(name) for name in (METHODS if methods is None else methods)]
    rows, releases = [], {}
    secret = take_key(key)
    for method in wanted:
        name = method.name
        options = _choose_options(method, table, base=base, norm=norm)
        drawn: dict[str, Any] = {} if method.is_randomised(options) else {"seed": seed}
        drawn |= {"key": secret} if method.takes_key else {}
        if progress is not None:
            progress(name)
        begin = now()
        try:
            if base is None and "base" in options:
                refuse_coarse_base(table, options["base"])
            release = method.verb(table, **options, time_limit_s=time_limit_s, **drawn)
        except CellguardError as error:  # levels that this method cannot meet are a result here, not an error
            rows.append(_build_row(name, "refused", note=error.message))
            continue
        if not release.published:
            late = release.status is Status.TIME_LIMIT
            verdict = "not finished" if late else "refused"
            rows.append(_build_row(name, str(release.status), verdict=verdict, note=release.explanation))
            continue
        seconds = now() - begin
        releases[name] = release
        rows.append(measure_release(method, release, release.audit(exact=True), seconds, options))
    return Comparison(table=table, rows=tuple(rows), releases=releases)


def _choose_options(method: Method, table: Table, **asked: Any) -> dict[str, Any]:
    """Return the options of a method in a comparison: a gap of a thousandth, and the given options that it has."""
    options = {name: value for name, value in asked.items() if method.get_option(name) is not None}
    if options.get("norm", "") is None:  # the method's own
        del options["norm"]
    if method.get_option("gap") is not None:
        options["gap"] = _GAP
    return method.fill_options(options, table)


def _build_row(method: str, status: str, **known: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(HEADINGS, float("nan"))
    return {"method": method} | unknown | {"status": status, "safe": None, "verdict": "refused", "note": ""} | known


def measure_release(
    method: Method, release: Release, audit: Audit, seconds: float, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the row of a release in a comparison; see :func:`compare` for its columns."""
    t, a = release.table, release.table.values
    point = release.get_point_values()
    lo, hi = release.published_bounds()
    positive = a > 0
    shown = np.isfinite(point)
    deviation = np.abs(point - a)[positive & shown] / a[positive & shown]
    reach = t.ub - t.lb  # publicly known width of a cell; twice its value if it is unbounded
    width = np.minimum(hi - lo, np.where(np.isfinite(reach), reach, 2.0 * np.abs(a)))
    ranges = {}
    if method.by_ranges:
        ranges = _measure_widths(audit)
        ranges["interval_pct"] = 100.0 * _get_figure_or_nan(np.mean, width[positive] / a[positive])
    return _build_row(
        method.name,
        str(release.status),
        safe=audit.safe,
        verdict="not safe" if not audit.safe else "safe" if method.by_ranges else "safe by distance",
        gap=release.gap,
        untouched_pct=100.0 * float((release.find_exact_cells() & shown).mean()),
        hidden_pct=100.0 * float((~shown).mean()),
        deviation_pct=100.0 * float(deviation.mean()) if len(deviation) else 0.0,
        seconds=seconds,
        note="" if method.note is None else method.note(release, options),
        **ranges,
    )


def _get_figure_or_nan(figure: Callable[[FloatArray], Any], numbers: FloatArray) -> float:
    return float(figure(numbers)) if len(numbers) else float("nan")


def _measure_widths(audit: Audit) -> dict[str, float]:
    """Return the mean width of sensitive cells' ranges in per cent of values, and the least ratio to their levels."""
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
        "range_pct": 100.0 * _get_figure_or_nan(np.mean, share),
        "range_to_level": _get_figure_or_nan(np.min, ratio),
    }

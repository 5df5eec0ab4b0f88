"""The five methods side by side on one table: the question every office asks first."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import CellguardError, UnknownCodeError, did_you_mean
from cellguard.nouns.levels import attackers_of, required_levels
from cellguard.nouns.release import Adjustment, Intervals, Release, Suppression
from cellguard.nouns.table import FloatArray, Table

if TYPE_CHECKING:
    from cellguard.check.audit import Audit

__all__ = ["METHODS", "Comparison", "compare", "measured", "suggested_base"]

METHODS = ("suppress", "adjust", "intervals", "round", "perturb")
"""The methods, in the order of the comparison."""


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
        from cellguard._io.frames import to_frame

        return to_frame({name: [row[name] for row in self.rows] for name in self.rows[0]}, like)


def compare(
    table: Table,
    methods: Iterable[str] = METHODS,
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
        The table.
    methods
        Which methods; all five unless given.
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
    base = suggested_base(table) if base is None else base
    rows, releases = [], {}
    for name in methods:
        if name not in METHODS:
            raise UnknownCodeError(f"method {name!r} is not known.", hint=did_you_mean(name, METHODS))
        if progress is not None:
            progress(name)
        begin = time.perf_counter()
        try:
            release = _protect(name, table, base, norm, time_limit_s, seed)
        except CellguardError as error:  # levels that this method cannot meet are a result here, not a mistake
            rows.append(_row(name, "refused", note=error.message))
            continue
        if not release.published:
            rows.append(_row(name, str(release.status), note=release.explanation))
            continue
        seconds = time.perf_counter() - begin
        releases[name] = release
        rows.append(measured(name, release, release.audit(exact=True), seconds, base))
    return Comparison(table=table, rows=tuple(rows), releases=releases)


def suggested_base(table: Table) -> float:
    """Return the least of 5, 10, 50, 100, ... that is no smaller than any cell's lower and upper level together."""
    need = 5.0
    for attacker in attackers_of(table):
        level = required_levels(table, attacker)
        need = max(need, float(np.maximum(level.sliding, level.lower + level.upper).max(initial=0.0)))
    base = 5.0
    while base < need:
        base *= 2.0 if f"{base:e}".startswith("5") else 5.0
    return base


def _protect(name: str, table: Table, base: float, norm: str, time_limit_s: float, seed: int) -> Release:
    common: dict[str, Any] = {"time_limit_s": time_limit_s, "seed": seed}
    if name == "suppress":
        from cellguard.methods.suppress import suppress

        return suppress(table, **common)
    if name == "adjust":
        from cellguard.methods.adjust import adjust

        return adjust(table, norm=norm, **common)
    if name == "intervals":
        from cellguard.methods.intervals import intervals

        return intervals(table, **common)
    if name == "round":
        from cellguard.methods.round import round as round_table

        return round_table(table, base, gap=1e-3, **common)
    from cellguard.methods.perturb import perturb

    return perturb(table, base, **common)


def _row(method: str, status: str, **known: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(
        (
            "gap",
            "untouched_pct",
            "hidden_pct",
            "deviation_pct",
            "interval_pct",
            "range_pct",
            "range_to_level",
            "seconds",
        ),
        float("nan"),
    )
    return {"method": method, "status": status, "safe": False, **unknown, "note": "", **known}


def measured(method: str, release: Release, audit: Audit, seconds: float, base: float) -> dict[str, Any]:
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
    width = np.minimum(hi - lo, _finite_reach(t))
    ranged = not isinstance(release, Adjustment)
    range_pct, to_level = _ranges(audit) if ranged else (float("nan"), float("nan"))
    notes = {"round": f"base {base:g}", "perturb": f"base {base:g}", "adjust": "attacked by scenarios, not by ranges"}
    if isinstance(release, Suppression):
        notes["suppress"] = f"{int(release.primary.sum())} primary, {int(release.secondary.sum())} secondary"
    return _row(
        method,
        str(release.status),
        safe=audit.safe,
        gap=release.gap,
        untouched_pct=100.0 * float((exact & shown).mean()),
        hidden_pct=100.0 * float((~shown).mean()),
        deviation_pct=100.0 * float(deviation.mean()) if len(deviation) else 0.0,
        interval_pct=100.0 * float((width[positive] / a[positive]).mean())
        if ranged and positive.any()
        else float("nan"),
        range_pct=range_pct,
        range_to_level=to_level,
        seconds=seconds,
        note=notes.get(method, ""),
    )


def _finite_reach(table: Table) -> FloatArray:
    """What is known of a cell when nothing is published: its bounds, or twice its value where they are open."""
    reach = table.ub - table.lb
    return np.where(np.isfinite(reach), reach, 2.0 * np.abs(table.values))


def _ranges(audit: Audit) -> tuple[float, float]:
    """Mean width of the sensitive cells' ranges in per cent of their values, and the least ratio to their levels."""
    shares, ratios = [np.zeros(0)], [np.zeros(0)]
    for found in audit.findings:
        if found.attacker.derived:
            continue
        a = audit.release.table.values[found.cells]
        width = found.high - found.low
        asked = np.maximum(found.levels.sliding, found.levels.lower + found.levels.upper)
        shares.append(width[(a > 0) & np.isfinite(width)] / a[(a > 0) & np.isfinite(width)])
        ratios.append(width[asked > 0] / asked[asked > 0])
    share, ratio = np.concatenate(shares), np.concatenate(ratios)
    return (
        100.0 * float(share.mean()) if len(share) else float("nan"),
        float(ratio.min()) if len(ratio) else float("nan"),
    )

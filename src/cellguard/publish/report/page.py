"""From content to a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import write_text
from cellguard.check.coverage import coverage
from cellguard.methods.compare import HEADINGS
from cellguard.methods.registry import METHODS
from cellguard.nouns.figures import NO_BOUND, figure, figure_in_per_cent, figure_with_decimals
from cellguard.nouns.release import Intervals, Suppression
from cellguard.nouns.table import Table
from cellguard.publish.report import pictures
from cellguard.publish.report.content import Content
from cellguard.publish.report.grid import grids_of_report
from cellguard.publish.report.linked import anchor_in_report, linked_tables_in_report

__all__ = ["render_report", "write_report"]

_KINDS = {
    "published": "published as it is",
    "primary": "withheld: sensitive (primary)",
    "secondary": "withheld: protects others (secondary)",
    "withheld": "withheld",
    "interval": "published as an interval",
    "changed": "published with a changed value",
    "empty": "no contributors",
}
_COLUMNS = {"method": "method"} | {name: heading for name, heading in HEADINGS.items() if name != "gap"}


def write_report(path: str | Path, content: Content, *, public: bool) -> None:
    """Write a report, atomically."""
    write_text(path, render_report(content, public=public))


@cache
def _report_template() -> Any:
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("cellguard.publish.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = figure_with_decimals
    environment.filters["anchor"] = anchor_in_report
    return environment.get_template("report.html")


def render_report(content: Content, *, public: bool) -> str:
    """Return the report as one page of HTML.

    Parameters
    ----------
    public
        The version for everybody: what it does not show, nobody can compute from it.
    """
    release, table = content.release, content.release.table
    method, audit = METHODS[content.method or release.method], content.audit
    grids = list(grids_of_report(content, public=public))
    used = {cell.kind for grid in grids for _, line in grid.rows for cell in line}
    facts: dict[str, Any] = {
        "title": content.title,
        "public": public,
        "unsafe": content.unsafe,
        "method": method.title,
        "sentence": method.publishes,
        "cells": table.n_cells,
        "relations": table.n_relations,
        "attackers": max(len(table.attackers), 1),
        "parts": pictures.drawing_of_shares(_reported_shares_of_cells(content, public=public)),
        "grids": grids,
        "legend": {kind: text for kind, text in _KINDS.items() if kind in used},
        "versions": dict(content.versions) if not public else {"cellguard": content.versions.get("cellguard", "")},
        "published_extra": _method_facts_in_report(content),
        "checked": None if audit is None else audit.checked,
        "ranged": method.by_ranges,
        "covers": None if audit is None else coverage(audit),
        "verdict": None if audit is None else audit.verdict,
    }
    facts |= linked_tables_in_report(content, public=public)
    if not public:
        facts |= _facts_of_internal_report(content)
    return str(_report_template().render(facts))


def _method_facts_in_report(content: Content) -> dict[str, str]:
    """Return what is published about the method itself: the base and the step of rounding."""
    base, told = content.release.summary().get("base"), content.release.published_with()
    if base is None:
        return {}
    out = {"base": figure(base, 6) if isinstance(base, float) else ", ".join(figure(b, 6) for b in base)}
    out |= {"step": str(told["step"])} if "step" in told else {}
    return out | ({"at its nearest multiple": _reported_keep(told["keep"])} if "keep" in told else {})


def _reported_keep(keep: Sequence[Any]) -> str:
    """Say what was kept in words: the total, margins by their dimensions, cells by their codes."""
    names = []
    for entry in keep:
        if isinstance(entry, Mapping):
            names.append(", ".join(f"{dimension} {code}" for dimension, code in entry.items()))
        else:
            names.append(str(entry) if isinstance(entry, str | int) else " x ".join(entry) or "total")
    return "; ".join(names)


def _reported_shares_of_cells(content: Content, *, public: bool) -> list[tuple[str, int, str]]:
    """Say how the cells divide into published, withheld and changed ones."""
    release, n = content.release, content.release.table.n_cells
    if isinstance(release, Suppression):
        primary, secondary = int(release.primary.sum()), int(release.secondary.sum())
        rest = ("published", n - primary - secondary, pictures.SAFE)
        if public and not content.primaries_shown:
            return [rest, ("withheld", primary + secondary, pictures.SECONDARY)]
        return [rest, ("primary", primary, pictures.PRIMARY), ("secondary", secondary, pictures.SECONDARY)]
    if isinstance(release, Intervals):
        wide = int(np.count_nonzero(release.upper > release.lower))
        return [("published", n - wide, pictures.SAFE), ("intervals", wide, pictures.CHANGED)]
    return [("published with a changed value", n, pictures.CHANGED)]


# ---------------------------------------------------------------- internal


def _facts_of_internal_report(content: Content) -> dict[str, Any]:
    table, audit, flags = content.release.table, content.audit, content.release.table.flags
    rules = [] if flags is None else zip(flags.names, flags.reasons, flags.counts().values(), strict=True)
    out: dict[str, Any] = {
        "asked": dict(content.asked),
        "rules": list(rules),
        "sensitive": int(table.sensitive.sum()),
        "by_dimension": list(_sensitive_bars_in_report(table)),
        "result": _reported_result(content),
        "loss": _reported_loss(content),
        "seconds": {name: f"{s:.2f}" for name, s in content.seconds.items()},
        "comparison": None if content.comparison is None else _reported_comparison(content.comparison),
        "columns": _COLUMNS,
        "attack": {} if content.attack is None else _reported_attack(content.attack),
        "attack_picture": _drawing_of_reported_attack(content.attack),
    }
    if audit is not None:
        out["audit"] = {**audit.summary(), "seconds": f"{audit.seconds:.2f}"}
        bounded = any(np.isfinite(f.high - f.low).any() for f in pictures.reported_findings(audit))
        if bounded and audit.checked and audit.ranges_exact:
            out["ranges"] = pictures.drawing_of_ranges(table, audit)
            out["positions"] = pictures.drawing_of_positions(table, audit)
            out["judged"] = len(audit.findings) - len(pictures.reported_findings(audit))
    return out


def _sensitive_bars_in_report(table: Table) -> Iterator[tuple[str, str]]:
    """Draw how many sensitive cells each code of each dimension has; totals are left out."""
    cells = table.sensitive_cells
    for d, name in enumerate(table.dimensions if len(cells) else ()):
        counts = np.bincount(table.coordinates[cells, d], minlength=len(table.codes[d]))
        order = [i for i in np.argsort(-counts, kind="stable").tolist() if i and counts[i]][:15]
        if order:
            yield (
                name,
                pictures.drawing_of_bars({table.codes[d][i]: float(counts[i]) for i in order}, "sensitive cells"),
            )


def _reported_result(content: Content) -> dict[str, str]:
    release = content.release
    proven = isfinite(release.gap)
    out = {"status": str(release.status).replace("_", " "), "objective": figure(release.objective)}
    out["proven bound"] = f"{figure(release.bound)} (gap {figure_in_per_cent(release.gap, 2)})" if proven else NO_BOUND
    if isinstance(release, Suppression):
        out |= {"primary": f"{int(release.primary.sum()):,}", "secondary": f"{int(release.secondary.sum()):,}"}
        out["information lost"] = (
            f"{100 * release.cost / max(float(release.table.weights.sum()), 1e-300):.2f}% of the weights"
        )
    return out | ({"remark": release.explanation} if release.explanation else {})


def _reported_loss(content: Content) -> dict[str, dict[str, str]]:
    names = {"abs_mean": "mean", "abs_max": "largest", "pct_mean": "mean, %", "pct_max": "largest, %"}
    return {
        group: {shown: figure(figures[key]) for key, shown in names.items()}
        for group, figures in content.release.loss().items()
        if not isinstance(content.release, Suppression)
    }


def _reported_comparison(comparison: Any) -> list[dict[str, str]]:
    """Return the figures of each method: those that stand below others have one decimal."""
    rows = [{name: row.get(name, "") for name in _COLUMNS} for row in comparison.rows]
    return [
        {name: f"{x:,.1f}" if isinstance(x, float) and isfinite(x) else figure(x) for name, x in row.items()}
        for row in rows
    ]


def _reported_attack(attack: Any) -> dict[str, str]:
    told = {key: value for key, value in attack.summary().items() if isinstance(value, bool | int | float | str)}
    return {str(key).replace("_", " "): figure(value) for key, value in told.items()}


def _drawing_of_reported_attack(attack: Any) -> str:
    """Draw how far the intruder's estimates were from the truth, class by class."""
    shares = getattr(attack, "distribution", None)
    if not isinstance(shares, Mapping):
        return ""
    return pictures.drawing_of_bars({f"{name} %": float(v) for name, v in shares.items()}, "per cent of the estimates")

"""Render the content of a report as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import write_text
from cellguard.auditing.coverage import summarize_coverage
from cellguard.jobs.report import pictures
from cellguard.jobs.report.content import Content
from cellguard.jobs.report.grid import build_report_grids
from cellguard.jobs.report.linked import describe_linked_tables, make_anchor
from cellguard.methods.compare import HEADINGS
from cellguard.methods.registry import METHODS
from cellguard.model.table import Table
from cellguard.release.figures import NO_BOUND, format_figure, format_percentage, format_short_figure

__all__ = ["render_report", "write_report"]

_KINDS = {
    "published": "published unchanged",
    "primary": "withheld: sensitive (primary)",
    "secondary": "withheld: protects others (secondary)",
    "withheld": "withheld",
    "interval": "published as an interval",
    "changed": "published with a changed value",
    "empty": "no contributors",
}
_COLOURS = {"primary": pictures.PRIMARY, "secondary": pictures.SECONDARY, "withheld": pictures.SECONDARY}
_COLUMNS = {"method": "method"} | {name: heading for name, heading in HEADINGS.items() if name != "gap"}


def write_report(path: str | Path, content: Content, *, public: bool) -> None:
    """Write a report, atomically."""
    write_text(path, render_report(content, public=public))


@cache
def _report_template() -> Any:
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("cellguard.jobs.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = format_figure
    environment.filters["anchor"] = make_anchor
    return environment.get_template("report.html")


def render_report(content: Content, *, public: bool) -> str:
    """Return the report as one page of HTML.

    Parameters
    ----------
    public
        Return the public version, from which no attacker can infer what it does not show.
    """
    release, table = content.release, content.release.table
    method, audit = METHODS[content.method or release.method], content.audit
    grids = list(build_report_grids(content, public=public))
    used = {cell.kind for grid in grids for _, line in grid.rows for cell in line}
    facts: dict[str, Any] = {
        "title": content.title,
        "public": public,
        "unsafe": content.unsafe,
        "accepted": content.release.accepted,
        "method": method.title,
        "sentence": method.publishes,
        "cells": table.n_cells,
        "relations": table.n_relations,
        "attackers": max(len(table.attackers), 1),
        "parts": pictures.draw_shares(_draw_cell_shares(content, public=public)),
        "grids": grids,
        "legend": {kind: text for kind, text in _KINDS.items() if kind in used},
        "versions": dict(content.versions) if not public else {"cellguard": content.versions.get("cellguard", "")},
        "published_extra": _describe_method(content),
        "checked": None if audit is None else audit.checked,
        "ranged": method.by_ranges,
        "covers": None if audit is None else summarize_coverage(audit),
        "verdict": None if audit is None else audit.verdict,
    }
    facts |= describe_linked_tables(content, public=public)
    if not public:
        facts |= _collect_internal_facts(content)
    return str(_report_template().render(facts))


def _describe_method(content: Content) -> dict[str, str]:
    """Return the published parameters of the method: the base and the step of rounding, or the distance."""
    told = content.release.get_published_parameters()
    name = next((name for name in ("base", "distance") if told.get(name) is not None), None)
    if name is None:
        return {}
    base = told[name]
    out = {
        name: format_short_figure(base, 6)
        if isinstance(base, float)
        else ", ".join(format_short_figure(b, 6) for b in base)
    }
    out |= {"step": str(told["step"])} if "step" in told else {}
    return out | ({"at its nearest multiple": _describe_kept(told["keep"])} if "keep" in told else {})


def _describe_kept(keep: Sequence[Any]) -> str:
    """Describe what was kept: the total, margins by their dimensions, cells by their codes."""
    names = []
    for entry in keep:
        if isinstance(entry, Mapping):
            names.append(", ".join(f"{dimension} {code}" for dimension, code in entry.items()))
        else:
            names.append(str(entry) if isinstance(entry, str | int) else " x ".join(entry) or "total")
    return "; ".join(names)


def _draw_cell_shares(content: Content, *, public: bool) -> list[tuple[str, int, str]]:
    """Return the numbers of published, withheld and changed cells."""
    release, n = content.release, content.release.table.n_cells
    counts = release.count_cells(mark_primary=content.primaries_shown or not public)
    if not counts:
        return [("published with a changed value", n, pictures.CHANGED)]
    parts = [(name, count, _COLOURS.get(name, pictures.CHANGED)) for name, count in counts.items()]
    return [("published", n - sum(counts.values()), pictures.SAFE), *parts]


# ---------------------------------------------------------------- internal


def _collect_internal_facts(content: Content) -> dict[str, Any]:
    table, audit, flags = content.release.table, content.audit, content.release.table.flags
    rules = [] if flags is None else zip(flags.names, flags.reasons, flags.count_by_rule().values(), strict=True)
    out: dict[str, Any] = {
        "asked": dict(content.asked),
        "rules": list(rules),
        "sensitive": int(table.sensitive.sum()),
        "by_dimension": list(_draw_sensitive_bars(table)),
        "result": _describe_result(content),
        "loss": _describe_loss(content),
        "seconds": {name: f"{s:.2f}" for name, s in content.seconds.items()},
        "comparison": None if content.comparison is None else _describe_comparison(content.comparison),
        "columns": _COLUMNS,
        "attack": {} if content.attack is None else _describe_attack(content.attack),
        "attack_picture": _draw_attack(content.attack),
    }
    if audit is not None:
        out["audit"] = {**audit.summary(), "seconds": f"{audit.seconds:.2f}"}
        bounded = any(np.isfinite(f.high - f.low).any() for f in pictures.select_exact_findings(audit))
        if bounded and audit.checked and audit.ranges_exact:
            out["ranges"] = pictures.draw_ranges(table, audit)
            out["positions"] = pictures.draw_positions(table, audit)
            out["judged"] = len(audit.findings) - len(pictures.select_exact_findings(audit))
    return out


def _draw_sensitive_bars(table: Table) -> Iterator[tuple[str, str]]:
    """Draw the number of sensitive cells of each code of each dimension, without totals."""
    cells = table.sensitive_cells
    for d, name in enumerate(table.dimensions if len(cells) else ()):
        counts = np.bincount(table.coordinates[cells, d], minlength=len(table.codes[d]))
        order = [i for i in np.argsort(-counts, kind="stable").tolist() if i and counts[i]][:15]
        if order:
            yield (
                name,
                pictures.draw_bars({table.codes[d][i]: float(counts[i]) for i in order}, "sensitive cells"),
            )


def _describe_result(content: Content) -> dict[str, str]:
    release = content.release
    proven = isfinite(release.gap)
    out = {"status": str(release.status).replace("_", " "), "objective": format_short_figure(release.objective)}
    out["proven bound"] = (
        f"{format_short_figure(release.bound)} (gap {format_percentage(release.gap, 2)})" if proven else NO_BOUND
    )
    out |= release.describe_result()
    return out | ({"remark": release.explanation} if release.explanation else {})


def _describe_loss(content: Content) -> dict[str, dict[str, str]]:
    names = {"abs_mean": "mean", "abs_max": "largest", "pct_mean": "mean, %", "pct_max": "largest, %"}
    return {
        group: {shown: format_short_figure(figures[key]) for key, shown in names.items()}
        for group, figures in content.release.loss().items()
        if not content.release.withholds_cells
    }


def _describe_comparison(comparison: Any) -> list[dict[str, str]]:
    """Return the figures of each method; figures compared in a column have one decimal."""
    rows = [{name: row.get(name, "") for name in _COLUMNS} for row in comparison.rows]
    return [
        {
            name: f"{x:,.1f}" if isinstance(x, float) and isfinite(x) else format_short_figure("-" if x is None else x)
            for name, x in row.items()
        }
        for row in rows
    ]


def _describe_attack(attack: Any) -> dict[str, str]:
    told = {key: value for key, value in attack.summary().items() if isinstance(value, bool | int | float | str)}
    return {str(key).replace("_", " "): format_short_figure(value) for key, value in told.items()}


def _draw_attack(attack: Any) -> str:
    """Draw how far the attacker's estimates were from the true values, class by class."""
    shares = getattr(attack, "distribution", None)
    if not isinstance(shares, Mapping):
        return ""
    return pictures.draw_bars({f"{name} %": float(v) for name, v in shares.items()}, "per cent of the estimates")

"""The pictures of a report, as SVG that is the same for the same figures."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._types import FloatArray
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.check.audit import Audit, Finding

__all__ = ["bars", "histogram", "positions", "ranges", "shares"]

INK, MUTED, PRIMARY, SECONDARY, CHANGED, SAFE = "#1f2933", "#8a94a0", "#c8553d", "#e0a526", "#3a7ca5", "#5b8c5a"
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "cellguard",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_LIMIT = 150.0
"""Ranges are shown up to this percentage of the value on either side."""


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Any) -> str:
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    stream = io.StringIO()
    FigureCanvasSVG(figure)
    figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r"font: ([^;\"]*)'DejaVu Sans'[^;\"]*", r"font: \1'DejaVu Sans', Verdana, sans-serif", text)


def _drawn(draw: Any, width: float, height: float) -> str:
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        figure, axes = _figure(width, height)
        draw(axes)
        return _svg(figure)


def short_label(table: Table, cell: int) -> str:
    """Name a cell by its codes alone, totals left out."""
    if not table.dimensions:
        return f"cell {cell}"
    codes = [(name[0], table.codes[d][0]) for d, name in enumerate(table.cell_codes([cell]).values())]
    told = [code for code, total in codes if code != total]
    text = " · ".join(told) or "Total"
    return text if len(text) <= 44 else text[:43] + "…"


def ranges(table: Table, audit: Audit, *, most: int = 30) -> str:
    """Draw what attackers can compute of the sensitive cells, against what they must not: the tightest cells first."""
    rows = sorted((row for found in audit.findings for row in _tightest(table, found, most)), key=lambda row: row[:2])
    rows = rows[:most]

    def draw(axes: Any) -> None:
        for y, (_, _, lo, hi, down, up) in enumerate(rows):
            left, right = max(lo, -_LIMIT), min(hi, _LIMIT)
            axes.plot([left, right], [y, y], color=CHANGED, linewidth=2, solid_capstyle="butt", zorder=2)
            axes.plot(
                [max(down, -_LIMIT), min(up, _LIMIT)],
                [y, y],
                color=SECONDARY,
                linewidth=7,
                solid_capstyle="butt",
                zorder=1,
            )
            if hi > _LIMIT:
                axes.plot([_LIMIT], [y], marker=">", color=CHANGED, markersize=5, zorder=3)
            if lo < -_LIMIT:
                axes.plot([-_LIMIT], [y], marker="<", color=CHANGED, markersize=5, zorder=3)
        axes.axvline(0, color=PRIMARY, linewidth=1, zorder=3)
        axes.set_yticks(range(len(rows)), [row[1] for row in rows])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("per cent of the true value (red line: the truth)")
        axes.plot([], [], color=CHANGED, linewidth=2, label="what an attacker can compute")
        axes.plot([], [], color=SECONDARY, linewidth=7, label="must stay possible")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)

    return _drawn(draw, 9.5, 1.2 + 0.26 * len(rows))


def _tightest(table: Table, found: Finding, most: int) -> list[tuple[float, str, float, float, float, float]]:
    """Return the cells of one attacker with the least to spare: slack, label, range and levels in per cent."""
    a = table.values[found.cells]
    size = np.where(a != 0, np.abs(a), np.maximum(found.levels.sliding, 1e-100))  # a zero is measured by its width
    low, high = 100 * (found.low - a) / size, 100 * (found.high - a) / size
    down, up = -100 * found.levels.lower / size, 100 * found.levels.upper / size
    slack = np.minimum(np.abs(low) - np.abs(down), high - up)
    chosen = np.argsort(slack, kind="stable")[:most]
    columns = (x[chosen].tolist() for x in (slack, low, high, down, up))
    labels = [short_label(table, int(c)) for c in found.cells[chosen]]
    return [(s, label, lo, hi, d, u) for label, s, lo, hi, d, u in zip(labels, *columns, strict=True)]


def positions(table: Table, audit: Audit) -> str:
    """Draw where the truth lies in the attackers' ranges: 0 is the lower end, 1 the upper."""
    place: list[FloatArray] = []
    for found in audit.findings:
        width = found.high - found.low
        fits = np.isfinite(width) & (width > 0)
        place.append((table.values[found.cells][fits] - found.low[fits]) / width[fits])
    return histogram(
        np.concatenate([np.zeros(0), *place]), "position of the truth in its range", "sensitive cells", (0.0, 1.0)
    )


def histogram(values: FloatArray, x: str, y: str, limits: tuple[float, float], bins: int = 20) -> str:
    """Draw how values are distributed."""

    def draw(axes: Any) -> None:
        axes.hist(np.clip(values, *limits), bins=bins, range=limits, color=CHANGED, edgecolor="white", linewidth=0.8)
        axes.set_xlim(*limits)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        axes.yaxis.get_major_locator().set_params(integer=True)

    return _drawn(draw, 6.2, 2.8)


def bars(figures: Mapping[str, float], x: str, *, colour: str = PRIMARY, most: int = 20) -> str:
    """Draw a bar for each name, in the order given."""
    names = list(figures)[:most]

    def draw(axes: Any) -> None:
        values = [figures[name] for name in names]
        drawn = axes.barh(range(len(names)), values, color=colour, height=0.65)
        axes.bar_label(drawn, labels=[f"{v:,.3g}" for v in values], fontsize=9, color=INK, padding=3)
        axes.set_yticks(range(len(names)), [n if len(n) <= 40 else n[:39] + "…" for n in names])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel(x)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.margins(x=0.1)

    return _drawn(draw, 5.4, 0.8 + 0.27 * len(names))


def shares(parts: Sequence[tuple[str, int, str]]) -> str:
    """Draw how the cells divide: one bar, a piece for each part with its name and share."""
    total = max(sum(count for _, count, _ in parts), 1)

    def draw(axes: Any) -> None:
        left = 0.0
        for name, count, colour in parts:
            share = 100.0 * count / total
            axes.barh([0], [share], left=[left], color=colour, height=0.5, label=f"{name}: {count:,} ({share:.1f}%)")
            left += share
        axes.set_xlim(0, 100)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("per cent of the cells")
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(len(parts), 3), frameon=False)

    return _drawn(draw, 9.5, 1.35)

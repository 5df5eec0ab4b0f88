"""Draw two figures of the papers from computed tables: baena2018 figure 1 and salazar2004 figure 6.

Run it after a change of what it draws: ``python docs/paper_pictures.py``.
"""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path

import numpy as np

import cellguard as cg
from cellguard.model.weights import compute_weights

PICTURES = Path(__file__).parent / "pictures"
BASE = 5.0


def draw_intervals() -> str:
    """Return baena2018 figure 1: the standardised intervals of instance 3, symmetric levels left, asymmetric right."""
    width, height, parts = 400.0, 240.0, []
    for panel, (title, lower) in enumerate((("symmetric, 20% and 20%", 0.20), ("asymmetric, 5% and 20%", 0.05))):
        low, high = standardise(lower)
        left, step = 60.0 + panel * (width + 60.0), width / len(low)
        zero = scale_height(0.0, height)
        ticks = "".join(
            f'<path d="M{left} {scale_height(at, height):.1f}h{width}" stroke="#ccc" stroke-width="0.5"/>'
            f'<text x="{left - 6}" y="{scale_height(at, height) + 4:.1f}" text-anchor="end">{at:+g}</text>'
            for at in (-100, -50, 50, 100)
        )
        parts.append(
            f'<text x="{left}" y="18" font-weight="bold">{title}: {len(low)} intervals</text>{ticks}'
            f'<path d="{draw_band(low, high, left, step, height)}" fill="#9db5d0" stroke="#5b7fa6" stroke-width="1"/>'
            f'<path d="M{left} {zero}h{width}" stroke="#b03030" stroke-width="1.5"/>'
            f'<text x="{left - 6}" y="{zero + 4:.1f}" text-anchor="end" fill="#b03030">truth</text>'
            f'<text x="{left + width / 2}" y="{height + 50}" text-anchor="middle">cells, ranked</text>'
        )
    return frame(2 * width + 140.0, height + 62.0, "".join(parts))


def draw_band(low: np.ndarray, high: np.ndarray, left: float, step: float, height: float) -> str:
    """Return the outline of all intervals side by side: upper ends from left to right, lower ends back."""

    def follow(ends: np.ndarray) -> list[str]:
        begins = np.flatnonzero(np.diff(ends, prepend=np.nan) != 0)
        stops = np.append(begins[1:], len(ends))
        runs = zip(left + step * begins, left + step * stops, ends[begins], strict=True)
        return [f"{x:.1f} {scale_height(end, height):.1f}" for start, stop, end in runs for x in (start, stop)]

    return "M" + "L".join(follow(high) + follow(low)[::-1]) + "Z"


def standardise(lower: float) -> tuple[np.ndarray, np.ndarray]:
    """Return both ends of each interval relative to the truth, with a width of 100, ranked by where it lies."""
    table = cg.generate.onehier(1, instance=3, lower=lower, upper=0.20)
    table = table.with_(weights=compute_weights("inverse", table.values))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the narrowest intervals are not for publication
        release = cg.intervals(table, position="narrowest")
    width = release.upper - release.lower
    wide = width > 1e-6 * np.maximum(1.0, table.values)
    low = np.round(100.0 * (release.lower - table.values)[wide] / width[wide], 1)
    high = np.round(100.0 * (release.upper - table.values)[wide] / width[wide], 1)
    order = np.argsort(low, kind="stable")
    return low[order], high[order]


def scale_height(value: float, height: float) -> float:
    """Return where a number between -100 and 100 is on the page."""
    return 30.0 + (100.0 - value) / 200.0 * height


def draw_two_steps() -> str:
    """Return salazar2004 figure 6: a rounded to v directly, and to w by way of the random table xi(a).

    The table is ``a1 + a2 = a3`` with the values 6, 11 and 17 and base 5, in the plane of its two parts.
    """
    truth, drawn = np.array([6.0, 11.0, 17.0]), np.array([9.0, 12.0, 18.0])
    floor = np.floor(truth / BASE) * BASE
    rounded = [
        np.array([x, y, x + y])
        for x, y in product((floor[0], floor[0] + BASE), (floor[1], floor[1] + BASE))
        if floor[2] <= x + y <= floor[2] + BASE
    ]
    nearest = min(rounded, key=lambda v: float(np.abs(v - truth).sum()))
    steered = min(rounded, key=lambda v: float(np.abs(v - drawn).sum()))

    def place(point: np.ndarray) -> tuple[float, float]:
        return 70.0 + 34.0 * (point[0] - 3.0), 270.0 - 34.0 * (point[1] - 9.0)

    corners = " ".join(f"{x:.0f},{y:.0f}" for x, y in (place(np.array(p)) for p in ((5, 10), (10, 10), (5, 15))))
    dots = "".join(
        '<circle cx="{:.0f}" cy="{:.0f}" r="4" fill="#222"/>'.format(*place(np.array([x, y])))
        for x, y in product((5.0, 10.0), (10.0, 15.0))
    )
    arrows = "".join(
        '<path d="M{:.0f} {:.0f}L{:.0f} {:.0f}" stroke="{}" stroke-width="1.5" marker-end="url(#tip)"/>'.format(
            *place(start), *place(end), colour
        )
        for start, end, colour in (
            (truth, nearest, "#5b7fa6"),
            (truth, drawn, "#b03030"),
            (drawn, steered, "#b03030"),
        )
    )
    names = "".join(
        f'<text x="{place(point)[0] + dx:.0f}" y="{place(point)[1] + dy:.0f}">{name}</text>'
        for point, name, dx, dy in (
            (truth, "a", 8, 14), (nearest, "v, by distance", -34, 20),
            (drawn, "xi(a), drawn", 10, -6), (steered, "w, by two steps", 10, 4),
        )
    )  # fmt: skip
    white = "".join(
        '<circle cx="{:.0f}" cy="{:.0f}" r="4" fill="#fff" stroke="#222"/>'.format(*place(p)) for p in (truth, drawn)
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>'
    )
    area = f'<polygon points="{corners}" fill="#e8eef5" stroke="#5b7fa6"/>'
    low, right, high = place(np.array([3.0, 9.0])), place(np.array([13.0, 9.0])), place(np.array([3.0, 16.0]))
    axes = f'<path d="M{high[0]:.0f} {high[1]:.0f}V{low[1]:.0f}H{right[0]:.0f}" stroke="#222" fill="none"/>'
    axes += "".join(
        f'<text x="{place(np.array([at, 9.0]))[0]:.0f}" y="{low[1] + 18:.0f}" text-anchor="middle">{at:g}</text>'
        for at in (5.0, 10.0)
    )
    axes += "".join(
        f'<text x="{low[0] - 8:.0f}" y="{place(np.array([3.0, at]))[1] + 4:.0f}" text-anchor="end">{at:g}</text>'
        for at in (10.0, 15.0)
    )
    axes += (
        f'<text x="{right[0]:.0f}" y="{low[1] + 18:.0f}" text-anchor="end">first part</text>'
        f'<text x="{high[0] + 8:.0f}" y="{high[1] + 10:.0f}">second part</text>'
    )
    return frame(440.0, 300.0, marker + axes + area + dots + arrows + white + names)


def frame(width: float, height: float, content: str) -> str:
    """Return the whole picture."""
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222"'
    paper = '<rect width="100%" height="100%" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{paper}{content}</svg>\n'


DRAWN = {"baena2018-figure1.svg": draw_intervals, "salazar2004-figure6.svg": draw_two_steps}

if __name__ == "__main__":
    for name, draw in DRAWN.items():
        (PICTURES / name).write_text(draw(), encoding="utf-8")

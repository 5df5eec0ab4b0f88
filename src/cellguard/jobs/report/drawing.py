"""A canvas for lines, bars and text as SVG; equal figures give equal SVG."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

__all__ = ["INK", "MUTED", "Axis", "Canvas", "measure_text"]

INK, MUTED = "#1f2933", "#8a94a0"
_FONT = "'DejaVu Sans', Verdana, sans-serif"
_WIDTH = 0.62
"""Average width of a letter as a share of the font size, rounded up."""


def measure_text(text: str, size: float = 12) -> float:
    """Return the approximate width of a text."""
    return _WIDTH * size * len(text)


class Canvas:
    """Elements in the order in which they are drawn; y grows downwards."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self._parts: list[str] = []

    def draw_line(self, start: tuple[float, float], end: tuple[float, float], colour: str, width: float = 1) -> None:
        """Draw a line between two points."""
        (x1, y1), (x2, y2) = start, end
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self._parts.append(f'<line {ends} stroke="{colour}" stroke-width="{width:g}"/>')

    def draw_box(self, corner: tuple[float, float], size: tuple[float, float], colour: str) -> None:
        """Fill a rectangle."""
        (x, y), (width, height) = corner, size
        self._parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>')

    def draw_arrow(self, tip: tuple[float, float], back: float, colour: str) -> None:
        """Draw the head of an arrow whose base lies `back` to the right of its tip, or to the left if negative."""
        x, y = tip
        self._parts.append(
            f'<path d="M{x:.1f} {y:.1f}L{x + back:.1f} {y - 5:.1f}L{x + back:.1f} {y + 5:.1f}Z" fill="{colour}"/>'
        )

    def draw_text(self, place: tuple[float, float], words: str, anchor: str = "start", size: float = 12) -> None:
        """Write a text whose start, middle or end is at a point."""
        x, y = place
        where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}"'
        self._parts.append(f'<text {where} fill="{INK}">{escape(words)}</text>')

    def draw_legend(self, entries: list[tuple[str, str]], y: float) -> None:
        """Draw a legend of colours, centred on the canvas."""
        widths = [26 + measure_text(name) + 22 for name, _ in entries]
        x = max((self.width - sum(widths)) / 2, 0)
        for (name, colour), step in zip(entries, widths, strict=True):
            self.draw_box((x, y - 9), (20, 9), colour)
            self.draw_text((x + 26, y), name)
            x += step

    def render_svg(self) -> str:
        """Return the drawing."""
        size = f'width="{self.width:.0f}" height="{self.height:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        body = "\n".join(self._parts)
        name = escape(self.title)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{name}" {size} font-family="{_FONT}">'
            f"\n<title>{name}</title>\n{body}\n</svg>\n"
        )


class Axis:
    """An axis of a drawing: from `low` at `start` to `high` at `end`, with round tick marks."""

    def __init__(self, limits: tuple[float, float], places: tuple[float, float], *, whole: bool = False) -> None:
        self.low, self.high = limits
        self.start, self.end = places
        self.whole = whole

    def __call__(self, value: float) -> float:
        """Return the position of a number."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def list_marks(self, most: int = 6) -> list[tuple[float, str]]:
        """Return the positions and labels of round numbers."""
        step = _round_axis_step((self.high - self.low) / most)
        if self.whole:
            step = max(step, 1.0)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        digits = max(0, -floor(log10(step) + 1e-9))
        return [(self(k * step), f"{k * step:,.{digits}f}") for k in range(first, last + 1)]

    def draw_below(self, canvas: Canvas, y: float, words: str) -> None:
        """Draw the axis at the lower edge of a drawing."""
        canvas.draw_line((self.start, y), (self.end, y), MUTED)
        for x, name in self.list_marks():
            canvas.draw_line((x, y), (x, y + 4), MUTED)
            canvas.draw_text((x, y + 17), name, "middle")
        canvas.draw_text(((self.start + self.end) / 2, y + 35), words, "middle")

    def draw_left(self, canvas: Canvas, x: float, words: str) -> None:
        """Draw the axis at the left edge of a drawing, with its name on top."""
        canvas.draw_line((x, self.start), (x, self.end), MUTED)
        for y, name in self.list_marks(4):
            canvas.draw_line((x - 4, y), (x, y), MUTED)
            canvas.draw_text((x - 8, y + 4), name, "end")
        canvas.draw_text((x, self.end - 9), words)


def _round_axis_step(step: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... that is at least this number."""
    power = 10.0 ** floor(log10(step))
    return next(power * k for k in (1, 2, 5, 10) if power * k >= step * (1 - 1e-9))

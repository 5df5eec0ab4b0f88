"""Views: what many attackers know besides a release, and what each of them must not find out.

A view shares the release with all others; it has tighter bounds on a few cells. Its requests are
translated once into the variables of the reduced system that all share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cellguard._engine.ranges.implied import Tightened
from cellguard._engine.ranges.system import System, find_unknown_cells
from cellguard._engine.space.space import convert_slack_to_variables
from cellguard._tolerances import LEVEL_SHARE
from cellguard._types import FloatArray, IntArray

__all__ = ["Questions", "Views"]

_FURTHER = 1.001
"""Variables are moved by this many times their level: enough is left when a view allows only a part."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Views:
    """The knowledge of many attackers, and the levels to keep against each."""

    known_ptr: IntArray
    """Where the knowledge of each view begins in the next three arrays; one entry more than views."""
    known_cell: IntArray
    """Cells on which a view has tighter bounds."""
    known_lo: FloatArray
    """Lower bounds of the view on these cells."""
    known_hi: FloatArray
    """Upper bounds of the view on these cells."""
    view: IntArray
    """Which view each request is about, ascending."""
    cell: IntArray
    """The requested cell."""
    lower: FloatArray
    """How far down it must be able to go."""
    upper: FloatArray
    """How far up."""
    sliding: FloatArray
    """How wide its range must be."""

    def __len__(self) -> int:
        return len(self.known_ptr) - 1

    @property
    def known_view(self) -> IntArray:
        """The view to which each piece of knowledge belongs."""
        return np.repeat(np.arange(len(self)), np.diff(self.known_ptr))

    def get_bounds(self, view: int, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the bounds that a view has on all cells, given the public ones."""
        mine = slice(self.known_ptr[view], self.known_ptr[view + 1])
        cells = self.known_cell[mine]
        if not len(cells):
            return lo, hi
        lo, hi = lo.copy(), hi.copy()
        np.maximum.at(lo, cells, self.known_lo[mine])
        np.minimum.at(hi, cells, self.known_hi[mine])
        return lo, hi

    def round_to_whole(self) -> Views:
        """Return knowledge and requests in whole numbers: bounds rounded inward, levels rounded up."""
        levels = (np.ceil(x * (1 - LEVEL_SHARE) - 1e-9) for x in (self.lower, self.upper, self.sliding))
        names = dict(zip(("lower", "upper", "sliding"), levels, strict=True))
        lo, hi = np.ceil(self.known_lo - 1e-9), np.floor(self.known_hi + 1e-9)
        return replace(self, known_lo=lo, known_hi=hi, **names)

    def select_hardest(self, some: IntArray) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return every cell of some requests, with the highest of its levels."""
        cells, place = np.unique(self.cell[some], return_inverse=True)
        highest = []
        for level in (self.lower, self.upper, self.sliding):
            most = np.zeros(len(cells))
            np.maximum.at(most, place, level[some])
            highest.append(most)
        return cells, highest[0], highest[1], highest[2]


@dataclass(frozen=True, kw_only=True, eq=False)
class Questions:
    """The requests of all views about variables that can move, and the views' knowledge of variables."""

    number: IntArray
    """The request behind each question."""
    view: IntArray
    variable: IntArray
    ratio: FloatArray
    """Movement of the cell divided by that of its variable."""
    need_high: FloatArray
    """How far up the variable must be able to go."""
    need_low: FloatArray
    """How far down."""
    need_width: FloatArray
    """How far apart its ends must be."""
    known: Tightened
    """Slack of the variables for each view, where it is less than the public slack."""

    @classmethod
    def of(cls, system: System, views: Views, point: FloatArray) -> Questions:
        """Translate cells into variables."""
        reduction = system.reduction
        variable_of = system.space.variable_of
        number = np.flatnonzero(variable_of[views.cell] >= 0)
        cell = views.cell[number]
        ratio, variable = reduction.ratio[cell], variable_of[cell]
        need_low, need_high = convert_slack_to_variables(ratio, views.lower[number], views.upper[number])
        return cls(
            number=number,
            view=views.view[number],
            variable=variable,
            ratio=ratio,
            need_high=need_high,
            need_low=need_low,
            need_width=views.sliding[number] / np.abs(ratio),
            known=_find_narrowed_slack(system, views, point),
        )

    def __len__(self) -> int:
        return len(self.number)

    def get_both_distances(self, some: IntArray | slice = slice(None)) -> FloatArray:
        """Return how far some questions require their variable to move both up and down."""
        level = np.maximum(np.maximum(self.need_low[some], self.need_high[some]), self.need_width[some] / 2)
        return np.asarray(level * _FURTHER)


def _find_narrowed_slack(system: System, views: Views, point: FloatArray) -> Tightened:
    """Return the slack of the variables that a view narrows; the public slack applies to all others."""
    reduction = system.reduction
    k = len(system.up)
    variable = system.space.variable_of[views.known_cell]
    some = variable >= 0
    cell, variable, view = views.known_cell[some], variable[some], views.known_view[some]
    ratio = reduction.ratio[cell]
    lo, hi = views.known_lo[some], views.known_hi[some]
    open_ = find_unknown_cells(lo, hi, point[cell])
    below, above = (np.where(open_, np.maximum(x, 0.0), 0.0) for x in (point[cell] - lo, hi - point[cell]))
    down, up = convert_slack_to_variables(ratio, below, above)
    tighter = (down < system.down[variable]) | (up < system.up[variable])
    view, variable = view[tighter], variable[tighter]
    down, up = np.minimum(down[tighter], system.down[variable]), np.minimum(up[tighter], system.up[variable])
    return Tightened.join_least(k, view * k + variable, down, up)

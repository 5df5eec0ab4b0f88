"""Classes of whole numbers: partitions that depend on the key and on public numbers only.

**The rule.** Let ``W(y)`` be the width that the levels of a count y require: ``ceil(p y) + ceil(q y)`` for levels that
are shares p and q of the value, n - 1 for a threshold of n. W never falls as y grows. The whole numbers from the known
lower bound upwards are cut into classes ``x, x + 1, ..., y``. Each class but the first is the shortest one with
``y - x >= W(y)``. The first class has at least the shortest length k, and its length is drawn uniformly from k,
k + 1, ..., 2 k - 1. So every value v lies in a class at least as wide as its own levels require: ``W(v) <= W(y)``.

**Why the class reveals nothing more.** The cuts depend on the draw, on p, q, n and on the known bounds, and on
no value. All values of a class give that same class.

**Entropy.** The draw has k outcomes, hence log2 k bits: 1.6 bits for a threshold of 3. That is little, but the
guarantee does not depend on it. It depends on the class alone, and holds against an attacker who knows the draw.

**Shares.** The shares p and q of a table are its largest ones, rounded up to a public list (:data:`PUBLIC_SHARES`), and
the same for every cell. They follow from levels before rounding to whole numbers: a rounded level reveals the value.

**Companions.** A threshold n makes the counts 1, ..., n - 1 sensitive, and these are fewer than n numbers. So every
cell whose class begins below n is hidden, whether its own value is sensitive or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cellguard._tolerances import SHARE_NOISE
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.model.levels import SHARE, WHOLE_NUMBERS, list_attackers
from cellguard.model.table import Table

__all__ = ["PUBLIC_SHARES", "ClassRule", "cut_classes", "cut_even_classes", "find_possible_classes"]

PUBLIC_SHARES = np.unique(
    np.concatenate([np.arange(0, 21) * 0.005, np.arange(4, 21) * 0.025, np.arange(5, 11) * 0.1]).round(3)
)
"""Shares to which a table's shares are rounded up: in steps of 0.5% up to 10%, 2.5% up to 50%, then 10%."""
LARGEST_SHARE = 0.5
"""Maximum of both shares together: a class of positive numbers is always narrower than its upper end."""


@dataclass(frozen=True, eq=False)
class ClassRule:
    """The public rule of some cells: the required width of the class of each value."""

    lower: FloatArray
    """Level below, as a share of the value."""
    upper: FloatArray
    """Level above."""
    sliding: FloatArray
    """Width, as a share of the value."""
    least: FloatArray
    """Minimum width of every class."""

    def compute_width(self, end: FloatArray) -> FloatArray:
        """Return the width that a class with this upper end must have.

        >>> rule = ClassRule(*(np.array([x]) for x in (0.1, 0.1, 0.0, 1.0)))
        >>> [rule.compute_width(np.array([y])).tolist() for y in (10.0, 11.0)]
        [[2.0], [4.0]]
        """
        both = np.maximum(self.lower + self.upper, SHARE_NOISE)
        cut = np.minimum(LARGEST_SHARE / both, 1.0)
        end = np.maximum(end, 0.0)
        sides = np.ceil(cut * self.lower * end - SHARE_NOISE) + np.ceil(cut * self.upper * end - SHARE_NOISE)
        slide = np.ceil(np.minimum(self.sliding, LARGEST_SHARE) * end - SHARE_NOISE)
        return np.asarray(np.maximum(np.maximum(self.least, 1.0), np.maximum(sides, slide)))

    def find_least_end(self, begin: FloatArray) -> FloatArray:
        """Return the upper end of the shortest class with this lower end."""
        end = begin + self.compute_width(begin)
        while (end < (next_ := begin + self.compute_width(end))).any():
            end = next_
        return end

    def compute_collar(self, first: FloatArray, last: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how far the levels of any value of a class reach beyond its ends, below and above."""
        below = np.ceil(np.minimum(self.lower, 1.0) * np.maximum(first, 0.0) - SHARE_NOISE)
        return below, np.ceil(self.upper * np.maximum(last, 0.0) - SHARE_NOISE)

    def take(self, which: IntArray | BoolArray) -> ClassRule:
        """Return the rule for some of the cells."""
        return ClassRule(self.lower[which], self.upper[which], self.sliding[which], self.least[which])

    @classmethod
    def from_table(cls, table: Table) -> ClassRule:
        """Return the rule for every cell of a table: the largest shares of the table, or its threshold.

        The threshold, if there is one, also applies to cells that are not sensitive: they may be companions.
        """
        n, size = table.n_cells, np.abs(table.values)
        room_below = np.where(table.values < 0, table.ub - table.values, table.values - table.lb)
        threshold, bare, cut = 0.0, False, False
        shares = {"lower": 0.0, "upper": 0.0, "sliding": 0.0}
        numbered, asked = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        for attacker in list_attackers(table):
            need = table.levels(attacker)
            a = size[need.cells]
            plain = ~need.any()
            number = plain | ((need.lower == 0) & (need.upper == 0) & (need.sliding >= a))
            numbered[need.cells[number]], asked[need.cells] = True, True
            bare |= bool(plain.any())
            threshold = max(threshold, float(np.ceil(need.sliding[number]).max(initial=0.0)))
            used = ~number & (a > 0)
            for name, most in shares.items():
                level = getattr(need, name)
                whole = used & (level < room_below[need.cells] - SHARE_NOISE) if name == "lower" else used
                shares[name] = max(most, float((level[whole] / a[whole]).max(initial=0.0)))
                cut |= name == "lower" and bool((level[used & ~whole] > 0).any())
        if cut and not shares["lower"]:  # known bounds reduce every lower level to 0, but other values would have one
            shares["lower"] = shares["upper"]
        share = {name: _round_up_to_public_share(x) for name, x in shares.items()}
        wide = 0.0
        if bare:
            given = table.smallest_width
            threshold = max(threshold, float(np.ceil(WHOLE_NUMBERS if given is None else given) - 1.0), 1.0)
            wide = SHARE if given is None else 0.0
        numbered |= ~asked & numbered.any()
        by_share = {name: np.where(numbered, 0.0, x) for name, x in share.items()}
        by_share["sliding"] = np.where(numbered, wide, by_share["sliding"])
        return cls(**by_share, least=np.where(numbered, threshold, 1.0))


def _round_up_to_public_share(share: float) -> float:
    place = int(np.searchsorted(PUBLIC_SHARES, share - 1e-6))
    return float(PUBLIC_SHARES[place]) if place < len(PUBLIC_SHARES) else float(np.ceil(share))


def cut_classes(
    value: FloatArray, start: FloatArray, stop: FloatArray, rule: ClassRule, draw: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the class that holds each value.

    `start` and `stop` are the known bounds (`stop` may be infinite), `draw` is uniform between 0 and 1. If the last
    class would be too short, it is merged with the one before.

    >>> rule = ClassRule(*(np.array([x] * 4) for x in (0.0, 0.0, 0.0, 2.0)))
    >>> first, last = cut_classes(np.array([1.0, 3, 4, 9]), np.ones(4), np.full(4, np.inf), rule, np.full(4, 0.5))
    >>> first.tolist(), last.tolist()
    ([1.0, 1.0, 1.0, 8.0], [4.0, 4.0, 4.0, 10.0])
    """
    shortest = rule.find_least_end(start) - start + 1.0
    first, last = start.copy(), start + shortest + np.floor(shortest * draw) - 1.0
    constant = (rule.lower == 0) & (rule.upper == 0) & (rule.sliding == 0)
    length = np.maximum(rule.least, 1.0) + 1.0
    skipped = np.where(constant & (value > last), np.floor((value - last - 1.0) / length), 0.0)
    with np.errstate(invalid="ignore"):  # do not skip the class before the last: the last may be merged with it
        skipped = np.minimum(skipped, np.maximum(np.floor((stop - last) / length) - 2.0, 0.0))
    jumped = skipped > 0
    first = np.where(jumped, last + 1.0 + (skipped - 1.0) * length, first)
    last = np.where(jumped, last + skipped * length, last)
    while True:
        after = rule.find_least_end(last + 1.0)
        final = after > stop
        last = np.where(final, stop, last)
        ahead = (value > last) & ~final
        if not ahead.any():
            return first, last
        first, last = np.where(ahead, last + 1.0, first), np.where(ahead, after, last)


def cut_even_classes(
    value: FloatArray, start: FloatArray, stop: FloatArray, length: FloatArray, draw: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the class of each value in a partition into classes of one length.

    The draw shifts all cuts. A class that a known bound cuts short is merged with the next, so that none is shorter.

    >>> start, stop, length, draw = (np.full(2, x) for x in (0.0, np.inf, 8.0, 0.5))
    >>> first, last = cut_even_classes(np.array([3.0, 17]), start, stop, length, draw)
    >>> first.tolist(), last.tolist()
    ([0.0, 12.0], [11.0, 19.0])
    """
    shift = np.floor(draw * length)
    bounded = np.isfinite(start)
    begin = np.where(bounded, start, 0.0) + shift
    number = np.floor((value - begin) / length)
    number = np.where(bounded, np.maximum(number, 0.0), number)
    with np.errstate(invalid="ignore"):
        whole = np.floor((stop - begin + 1.0) / length)  # classes that fit below the upper bound
    most = np.where(np.isfinite(stop), np.maximum(whole - 1.0, 0.0), np.inf)
    number = np.where(bounded, np.minimum(number, most), np.minimum(number, whole - 1.0))
    first = np.where(bounded & (number == 0), start, begin + number * length)
    last = np.where(np.isfinite(stop) & (number >= whole - 1.0), stop, begin + (number + 1.0) * length - 1.0)
    return first, last


def find_possible_classes(
    low: float, high: float, bounds: tuple[float, float], rule: ClassRule, cell: int
) -> list[tuple[float, float]]:
    """Return the classes that could have led to a published interval of one cell; empty if none could.

    `bounds` are the known bounds. An end at a known bound may be the end of a collar that the bound cut.

    >>> rule = ClassRule(*(np.array([x]) for x in (0.1, 0.1, 0.0, 1.0)))
    >>> bounds = 0.0, np.inf
    >>> find_possible_classes(8.0, 15.0, bounds, rule, 0), find_possible_classes(9.0, 14.0, bounds, rule, 0)
    ([(9.0, 13.0)], [])
    """
    one = rule.take(np.array([cell]))
    share_below, share_above = float(one.lower[0]), float(one.upper[0])
    if not high > low:
        return []
    most = min(high, (low + 2.0) / max(1.0 - share_below, 1e-3))
    first = np.arange(max(low, bounds[0], 0.0), most + 1.0)
    last = np.arange(max(np.floor(high / (1.0 + share_above)) - 2.0, 0.0), high + 1.0)
    below, above = first - one.compute_collar(first, first)[0], last + one.compute_collar(last, last)[1]
    first = first[np.maximum(below, bounds[0]) == low]
    last = last[np.minimum(above, bounds[1]) == high]
    return [(float(x), float(y)) for x in first for y in last[last - x >= one.compute_width(last)]]

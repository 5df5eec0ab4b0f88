"""Attackers who know the method: its manual, its code, the percentages of the law; not the seed.

Formulas that give a value back are tried on every sensitive cell. One hit proves nothing (any number
in an interval may be the truth), so hits are counted beside what blind guesses in the same
intervals would hit, and judged at the end of a campaign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import gcd, inf, sqrt
from typing import Any

from adversary import counts
from adversary.cases import Case
from adversary.checker import Violation
from adversary.programs import exact
from adversary.written import Written

MANY = 1e6
"""Numbers of a set: more make no difference."""
NEAR = Fraction(1, 1000)
"""A guess hits when it is this close to the truth, relatively."""


def attacks(
    made: Case, release: Any, file: Written, options: dict[str, Any], figures: Counter[str]
) -> Iterable[Violation]:
    """Try what a reader of the manual would try; count hits, and yield what is wrong for certain."""
    if release.method == "intervals":
        _interval_formulas(made, release, file, options, figures)
    if options.get("resist") and made.threshold is not None:
        figures["suppress: matching attacked"] += 1
        yield from counts.matching(release, [word == "" for word in file.columns["value"]], made.threshold)
    if release.method == "adjust":
        yield from _adjusted_grid(made, release, file, options, figures)


# ---------------------------------------------------------------------- intervals: widths, ends, middles


def _interval_formulas(made: Case, release: Any, file: Written, options: dict[str, Any], figures: Counter[str]) -> None:
    """Per cent of the value are known: width, ends and middle of an interval may give the value.

    Counted by cells, and by tables: the cells of a table stand at the same position of the same movement, all of
    them in the middle or none.
    """
    table = made.table
    kind = f"intervals[{options.get('position', 'default')}]"
    unit = Fraction(0) if made.decimals is None else Fraction(1, 10**made.decimals)  # others are no values
    cells, hits, guessed = 0, Counter[str](), Fraction(0)
    for i, (lo, hi) in enumerate(zip(file.numbers("lower"), file.numbers("upper"), strict=True)):
        a = abs(exact(table.values[i]))
        if not table.sensitive[i] or lo is None or hi is None or lo >= hi or not a:
            continue
        cells += 1
        blind = min(Fraction(1), max(2 * NEAR * a, unit) / (hi - lo + unit))
        figures[f"{kind}: blind hits"] += float(blind)  # type: ignore[assignment]
        guessed += max(blind, _one_of_the_positions(made, release, i))
        hits.update(name for name, guess in _guesses(made, lo, hi).items() if abs(abs(guess) - a) <= NEAR * a)
    if not cells:
        return
    figures[f"{kind}: sensitive intervals"] += cells
    figures[f"{kind}: tables"] += 1
    figures[f"{kind}: tables, one of the positions"] += float(guessed / cells)  # type: ignore[assignment]
    for name, count in hits.items():
        figures[f"{kind}: hits by {name}"] += count
        figures[f"{kind}: tables, by {name}"] += count / cells  # type: ignore[assignment]


def _one_of_the_positions(made: Case, release: Any, cell: int) -> Fraction:
    """Return how often a guess is right that knows the set of a cell: the manual says how many positions it has."""
    sets = [release.internal.get(f"inner_{side}") for side in ("lower", "upper")]
    if any(ends is None or len(ends) != made.table.n_cells for ends in sets):
        return Fraction(0)  # the narrowest have no sets
    width = float(sets[1][cell] - sets[0][cell])
    if not 0 < width < inf:
        return Fraction(0)
    numbers = min(width / _grid(made), MANY) if made.decimals is not None else MANY  # steps from one to the next
    return Fraction(1, 1 + int(numbers if numbers <= 4 else min(max(numbers // 8, 4), 32)))


def _grid(made: Case) -> float:
    """Return of what all values are multiples."""
    scale = 10 ** (made.decimals or 0)
    common = gcd(*(round(v * scale) for v in made.table.values.tolist()))
    return (1 if made.table.integer else common or 1) / scale


def _guesses(made: Case, lo: Fraction, hi: Fraction) -> Mapping[str, Fraction]:
    out = {"the middle": (lo + hi) / 2}
    if made.shares is not None:
        down, up = (Fraction(str(p)) for p in made.shares)
        out["the width"] = (hi - lo) / (down + up)
        out["the stretched width"] = (hi - lo) / ((down + up) * Fraction(5, 4))
        out["the lower end"] = lo / (1 - down)
        out["the upper end"] = hi / (1 + up)
    return out


# ---------------------------------------------------------------------- adjustment: decimals and corners


def _adjusted_grid(
    made: Case, release: Any, file: Written, options: dict[str, Any], figures: Counter[str]
) -> Iterable[Violation]:
    """Published values on the grid of the true ones; x / (1 + p) and x / (1 - p) on that grid are guesses."""
    table, value = made.table, file.numbers("value")
    if made.decimals is None or options.get("integer") is False or options.get("surplus") == 0:
        return  # asked for as in the papers, which withstand nobody who knows them
    unit = Fraction(1, 10**made.decimals)
    if any(v is not None and v % unit for v in value):
        yield Violation("grid", f"true values have {made.decimals} decimals, published ones more")
    if made.shares is None or not made.decimals:
        return
    down, up = (Fraction(str(p)) for p in made.shares)
    for i, x in enumerate(value):
        a = round(exact(table.values[i]) / unit) * unit  # totals are sums of floating-point numbers
        if not table.sensitive[i] or x is None or not a:
            continue
        figures["adjust: sensitive cells with decimals"] += 1
        guesses = {g for g in (x / (1 + up), x / (1 - down)) if g % unit == 0}
        # a blind guesser does as well where nearly every number is on the grid
        if guesses == {a}:
            figures["adjust: hits by decimals"] += 1
        if x in (a * (1 + up), a * (1 - down)):
            figures["adjust: cells at their level"] += 1


# ---------------------------------------------------------------------- the end of a campaign


def verdict(figures: Mapping[str, float]) -> list[str]:
    """Say which formula recovers more than blind guesses do, of what is promised to withstand it."""
    out = []
    kind = "intervals[default]"
    tables, guessed = figures.get(f"{kind}: tables", 0), figures.get(f"{kind}: tables, one of the positions", 0.0)
    for name in ("the middle", "the width", "the stretched width", "the lower end", "the upper end"):
        hits = figures.get(f"{kind}: tables, by {name}", 0)
        if hits > guessed + 4 * sqrt(guessed + 1) + 0.02 * tables:
            out.append(f"{name} of intervals gives the values of {hits:.1f} of {tables} tables; guesses {guessed:.1f}")
    cells = figures.get("adjust: sensitive cells with decimals", 0)
    hits = figures.get("adjust: hits by decimals", 0)
    if hits > 0.05 * cells + 4:
        out.append(f"decimals of adjusted values give {hits} of {cells} values")
    return out

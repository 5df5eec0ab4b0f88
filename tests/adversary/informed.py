"""Attackers who know the method: its manual, its code, the percentages of the law; not the seed.

Formulas that give a value back are tried on every sensitive cell. One hit proves nothing (any number
in an interval may be the truth), so hits are counted beside what blind guesses in the same
intervals would hit, and judged at the end of a campaign.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import sqrt
from typing import Any

from adversary import counts
from adversary.checker import Violation
from adversary.generator import Case
from adversary.programs import exact
from adversary.written import Written

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
    """Per cent of the value are known: width, ends and middle of an interval may give the value."""
    table = made.table
    kind = f"intervals[{options.get('position', 'default')}]"
    for i, (lo, hi) in enumerate(zip(file.numbers("lower"), file.numbers("upper"), strict=True)):
        a = abs(exact(table.values[i]))
        if not table.sensitive[i] or lo is None or hi is None or lo >= hi or not a:
            continue
        figures[f"{kind}: sensitive intervals"] += 1
        unit = Fraction(0) if made.decimals is None else Fraction(1, 10**made.decimals)  # others are no values
        figures[f"{kind}: blind hits"] += float(min(Fraction(1), max(2 * NEAR * a, unit) / (hi - lo + unit)))  # type: ignore[assignment]
        for name, guess in _guesses(made, lo, hi).items():
            if abs(abs(guess) - a) <= NEAR * a:
                figures[f"{kind}: hits by {name}"] += 1


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
    cells, blind = figures.get(f"{kind}: sensitive intervals", 0), figures.get(f"{kind}: blind hits", 0.0)
    for name in ("the middle", "the width", "the stretched width", "the lower end", "the upper end"):
        hits = figures.get(f"{kind}: hits by {name}", 0)
        if hits > blind + 4 * sqrt(blind + 1) + 0.02 * cells:
            out.append(f"{name} of intervals gives {hits} of {cells} values; blind guesses would give {blind:.1f}")
    cells = figures.get("adjust: sensitive cells with decimals", 0)
    hits = figures.get("adjust: hits by decimals", 0)
    if hits > 0.05 * cells + 4:
        out.append(f"decimals of adjusted values give {hits} of {cells} values")
    return out

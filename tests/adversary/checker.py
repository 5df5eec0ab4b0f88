"""The judge: from the written file, the table and the attackers alone, is what was called a success safe and honest?"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np

import cellguard as cg
from adversary.meaning import (
    LEAST,
    Need,
    find_bounds,
    find_published,
    find_units,
    find_whole,
    list_needs,
    list_small_needs,
)
from adversary.programs import MISSING, Number, Possible, Reach, exact, reach, remember
from adversary.written import Written

Interval = tuple[Number, Number]
EVERYTHING: Interval = (None, None)
Published = tuple[list[Interval], list["Violation"]]


@dataclass(frozen=True)
class Violation:
    """What is wrong, of which kind, and where."""

    kind: str
    text: str


def relations_of(table: cg.Table) -> list[dict[int, Fraction]]:
    """Return the relations as rows of cell -> coefficient."""
    return remember(table, "relations", lambda: _compute_relations(table))


def _compute_relations(table: cg.Table) -> list[dict[int, Fraction]]:
    T = table.relations.tocsr()
    spans = zip(T.indptr[:-1], T.indptr[1:], strict=True)
    return [{int(T.indices[k]): exact(T.data[k]) for k in range(i, j) if T.data[k]} for i, j in spans]


def find_possible(
    table: cg.Table, attacker: cg.Attacker, intervals: list[Interval], whole: np.ndarray | None = None
) -> Possible:
    """Join what is published and what the attacker knew, as movements from the truth."""
    low, high = find_bounds(table, attacker, whole)
    down: list[Number] = []
    up: list[Number] = []
    for i, (a, (lo, hi)) in enumerate(zip(_truth(table), intervals, strict=True)):
        least = [x for x in (lo, low[i]) if x is not None]
        most = [x for x in (hi, high[i]) if x is not None]
        # the truth is possible, whatever rounding left of a bound
        down.append(min(Fraction(0), max(least) - a) if least else None)
        up.append(max(Fraction(0), min(most) - a) if most else None)
    return Possible(relations_of(table), down, up, whole=find_whole(table, whole).tolist())


def attackers(table: cg.Table) -> tuple[cg.Attacker, ...]:
    """Return everybody that the table names, and always the external attacker, who knows nothing more."""
    plain = any(a.sensitive is None and not len(a.cells) for a in table.attackers)
    return tuple(table.attackers) if plain else (cg.Attacker(name="external"), *table.attackers)


@dataclass
class Movements:
    """Movements of all cells that reached a level before: who cannot exclude one needs no program of their own."""

    found: dict[tuple[int, int], list[tuple[Fraction, np.ndarray]]] = field(default_factory=dict)

    def reach(self, world: Possible, cell: int, sign: int, distance: Fraction) -> Reach:
        """Say how much of a distance the cell can move, by a movement that is known or by a program."""
        mine = self.found.setdefault((cell, sign), [])
        if distance > 0 and any(far >= distance and _allows(world, z) for far, z in mine):
            return Reach(1.0)
        out = reach(world, cell, sign, distance)
        if out.movement is not None:
            every = np.zeros(len(world.down))
            every[world.free()] = out.movement
            mine.append((distance, every))
        return out


def _allows(world: Possible, movement: np.ndarray) -> bool:
    """Say whether a movement of all cells, which keeps the relations, is possible in another attacker's eyes."""
    low, high, slack = *world.limits(), 1e-9 * np.maximum(1.0, np.abs(movement))
    return bool(((movement >= low - slack) & (movement <= high + slack)).all())


def too_close(
    table: cg.Table,
    intervals: list[Interval],
    who: cg.Attacker,
    what: str,
    *,
    missing: float = MISSING,
    whole: np.ndarray | None = None,
    movements: Movements | None = None,
    needs: list[Need] | None = None,
) -> Iterator[Violation]:
    """Find the cells of which the attacker learns more than the levels allow; a share of them may be missing.

    When nothing may be missing, what floats leave in doubt counts as missing: it is held against nobody who refuses it.
    """
    asked = list_needs(table, who, whole) if needs is None else needs
    world = find_possible(table, who, intervals, whole)
    known = Movements() if movements is None else movements
    before: Possible | None = None
    for need in asked:
        found = list(_narrow(table, world, need, f"{what}, attacker {who.name!r}", 1 - Fraction(missing), known))
        if found and missing:  # relations may tell them as much before anything is published
            before = before or find_possible(table, who, _list_public(table), whole)
            less = _cap_need(before, need)
            if less != need:
                found = list(
                    _narrow(table, world, less, f"{what}, attacker {who.name!r}", 1 - Fraction(missing), known)
                )
        yield from found


def _list_public(table: cg.Table) -> list[Interval]:
    """Return what everybody knows without a release: which cells are empty."""
    seen = find_published(table) & (table.values == 0)
    return [(a, a) if seen[i] else EVERYTHING for i, a in enumerate(_truth(table))]


def _cap_need(before: Possible, need: Need) -> Need:
    """Return what can stay open at all to an attacker who adds up what they knew before; two values in any case."""
    lower, upper, down, up = (
        level if (found := reach(before, need.cell, sign, level)).proven is None else found.proven
        for sign, level in ((-1, need.lower), (1, need.upper), (-1, need.width), (1, need.width))
    )
    least = min(need.width, LEAST * max(Fraction(1), abs(need.width)))
    return Need(need.cell, lower, upper, max(least, min(need.width, down + up)))


def _narrow(
    table: cg.Table, world: Possible, need: Need, what: str, near: Fraction, movements: Movements
) -> Iterator[Violation]:
    label = table.label(need.cell)
    short = False
    for name, sign, level in (("lower", -1, need.lower), ("upper", 1, need.upper)):
        found = movements.reach(world, need.cell, sign, level)
        doubtful = near == 1 and found.share < 1 - 1e-9
        if doubtful or (found.proven is not None and found.proven < level * near):
            short = True
            yield Violation("level", f"{what}: {label} reaches {found.share:.6g} of its {name} level")
    if need.width > 0 and (short or need.lower + need.upper < need.width):
        down, up = (movements.reach(world, need.cell, sign, need.width) for sign in (-1, 1))
        if down.proven is None or up.proven is None:
            return  # one side alone is wide enough
        width = down.proven + up.proven
        if width == 0:
            yield Violation("exact", f"{what}: {label} is known exactly")
        elif width < need.width * near:
            yield Violation("width", f"{what}: {label} is {float(width / need.width):.6g} of its width wide")


# ---------------------------------------------------------------------- what each method publishes


def judge(
    table: cg.Table,
    release: cg.Release,
    file: Written,
    options: dict[str, Any],
    others: Iterable[cg.Attacker] = (),
    whole: np.ndarray | None = None,
    sums: np.ndarray | None = None,
) -> Iterator[Violation]:
    """Judge a written release of a table against its attackers, and others that were found elsewhere.

    `whole` says which cells are counts, `sums` which are whole numbers if sums of whole things are, too. Levels of a few
    units of those must be kept by tables of whole numbers.
    """
    intervals, found = read_intervals(table, release, file, options)
    yield from found
    yield from _list_fractions(table, intervals, release.method, whole)
    if release.method == "adjust" and not any(lo for lo, _ in intervals):  # it tells nothing for certain
        return
    movements, in_units = Movements(), Movements()
    for who in (*attackers(table), *others):
        yield from too_close(table, intervals, who, release.method, whole=whole, movements=movements)
        few = [] if sums is None else list_small_needs(table, who, sums)
        if few:
            what = f"{release.method} of whole things"
            yield from too_close(table, intervals, who, what, whole=sums, movements=in_units, needs=few)


def read_intervals(table: cg.Table, release: cg.Release, file: Written, options: dict[str, Any]) -> Published:
    """Return what the file tells of every cell, and what is wrong with the file itself."""
    return _PUBLISHED[release.method](table, release, file, options)


def _list_fractions(
    table: cg.Table, intervals: list[Interval], method: str, whole: np.ndarray | None
) -> Iterator[Violation]:
    """Find fractions in what is published of counts that stand beside other indicators."""
    if whole is None or method != "intervals":
        return
    for i in np.flatnonzero(whole).tolist():
        if any(end is not None and end.denominator != 1 for end in intervals[i]):
            yield Violation("whole", f"{table.label(i)}: a count whose published ends are no whole numbers")


def _truth(table: cg.Table) -> list[Fraction]:
    return remember(table, "truth", lambda: [exact(a) for a in table.values])


def _suppression(table: cg.Table, release: Any, file: Written, options: dict[str, Any]) -> Published:
    found = []
    value = file.numbers("value")
    status = file.columns["status"]
    empty = find_published(table) & ~table.fixed
    for i, (v, a) in enumerate(zip(value, _truth(table), strict=True)):
        shown = status[i] == "published"
        if shown is not (v is not None):
            found.append(Violation("file", f"{table.label(i)}: status and value disagree"))
        if v is not None and v != a:
            found.append(Violation("truth", f"{table.label(i)}: the published value is not the true one"))
        if v is not None and table.sensitive[i]:
            found.append(Violation("published", f"{table.label(i)}: sensitive and published"))
        if v is None and (table.fixed[i] or i in options.get("must_publish", ())):
            found.append(Violation("fixed", f"{table.label(i)}: withheld, and must be published"))
        if v is None and empty[i]:
            found.append(Violation("empty", f"{table.label(i)}: withheld, and everybody knows that it is empty"))
    if set(status) - {"published", "withheld", "suppressed"}:
        found.append(Violation("marks", "the file tells primary and secondary cells apart"))
    return [EVERYTHING if v is None else (v, v) for v in value], found


def _interval(table: cg.Table, release: Any, file: Written, options: dict[str, Any]) -> Published:
    found = []
    ends = list(zip(file.numbers("lower"), file.numbers("upper"), strict=True))
    for i, ((lo, hi), a) in enumerate(zip(ends, _truth(table), strict=True)):
        # a published end may miss the truth by rounding alone
        slack = Fraction(1, 10**9) * max(1, abs(a))
        if (lo is not None and lo > a + slack) or (hi is not None and hi < a - slack):
            found.append(Violation("truth", f"{table.label(i)}: the interval does not contain the truth"))
        if table.integer and any(end is not None and end.denominator != 1 for end in (lo, hi)):
            found.append(Violation("whole", f"{table.label(i)}: an end that is no whole number"))
        if lo == hi and lo is not None and table.sensitive[i]:
            found.append(Violation("published", f"{table.label(i)}: sensitive and published"))
        if table.fixed[i] and lo != hi:
            found.append(Violation("fixed", f"{table.label(i)}: an interval, and must be published"))
    return ends, found


def _moved(
    table: cg.Table, value: list[Number], *, bounds: bool = True, given_up: Container[int] = ()
) -> list[Violation]:
    """Of every method that publishes another table: it is one, within what everybody knows."""
    if None in value:
        return [Violation("file", "a cell without a value")]
    found = []
    whole = all(v.denominator == 1 for v in value)  # type: ignore[union-attr]
    b = [exact(r) for r in table.rhs]
    for r, row in enumerate(relations_of(table)):
        left = sum((c * value[i] for i, c in row.items()), Fraction(0)) - b[r]  # type: ignore[operator]
        size = sum((abs(c * value[i]) for i, c in row.items()), abs(b[r]))  # type: ignore[operator]
        if abs(left) > (
            0 if whole and not _residual(table, row, b[r]) else Fraction(1, 10**8) * max(size, Fraction(1, 1000))
        ):
            found.append(Violation("additive", f"{table.describe_relation(r)} does not hold in what is published"))
    for i, v in enumerate(value):
        slack = Fraction(1, 10**9) * max(1, abs(exact(table.values[i])))
        low, high = (exact(x) if abs(x) != float("inf") else None for x in (table.lb[i], table.ub[i]))
        if (
            bounds
            and i not in given_up
            and ((low is not None and v < low - slack) or (high is not None and v > high + slack))
        ):  # type: ignore[operator]
            found.append(Violation("bounds", f"{table.label(i)}: outside what everybody knows"))
        if table.integer and v.denominator != 1:  # type: ignore[union-attr]
            found.append(Violation("whole", f"{table.label(i)}: no whole number"))
    return found


def _residual(table: cg.Table, row: dict[int, Fraction], b: Fraction) -> Fraction:
    """What the true table itself leaves of a relation."""
    return sum((c * exact(table.values[i]) for i, c in row.items()), Fraction(0)) - b


def _rounded(table: cg.Table, release: Any, file: Written, options: dict[str, Any]) -> Published:
    """Multiples of the base; moved by less than step x base: by a unit less where values have a last decimal."""
    value = file.numbers("value")
    found = _moved(table, value, bounds=False)
    asked_for = set() if options.get("keep_multiples") else protected(table)
    kept = _totals(table) if "keep" in options else set()
    intervals: list[Interval] = []
    for i, (v, a) in enumerate(zip(value, _truth(table), strict=True)):
        base = exact(release.base[i])
        if v is None:
            intervals.append(EVERYTHING)
            continue
        if not _is_multiple(v, base):
            found.append(Violation("multiple", f"{table.label(i)}: no multiple of its base"))
        if abs(v - a) >= release.step * base:
            found.append(Violation("far", f"{table.label(i)}: moved by step x base or more"))
        if not table.lb[i] <= v <= table.ub[i] and multiples(table, i, base, release.step, inside=True):
            found.append(
                Violation("bounds", f"{table.label(i)}: outside what everybody knows, and a multiple is inside")
            )
        if v == a and i in asked_for:
            found.append(Violation("published", f"{table.label(i)}: sensitive and published"))
        if table.fixed[i] and abs(v - a) > Fraction(1, 10**12) * max(1, abs(a)):
            found.append(Violation("fixed", f"{table.label(i)}: changed, and must be published"))
        low, high = (v, v) if table.fixed[i] else rounded_interval(find_units(table)[i], v, base, release.step)
        if i in kept:  # the nearest multiple, as everybody knows
            low, high = (
                max(low, v - base / 2),
                min(high, _below(v + base / 2, find_units(table)[i])),
            )  # the middle goes up
            if not low <= a <= high:
                found.append(Violation("kept", f"{table.label(i)}: not the multiple nearest to it"))
        intervals.append((low, high))
    return intervals, found


def _totals(table: cg.Table) -> set[int]:
    """Return the grand totals that can be kept: neither fixed nor sensitive."""
    total = (table.coordinates == 0).all(axis=1) & ~table.fixed & ~table.sensitive
    return set(total.nonzero()[0].tolist())


def multiples(table: cg.Table, i: int, base: Fraction, step: int, *, inside: bool) -> list[Fraction]:
    """Return the multiples nearer to a cell than step bases, all of them or those inside what everybody knows."""
    a = exact(table.values[i])
    first, last = floor((a - step * base) / base) + 1, ceil((a + step * base) / base) - 1
    found = [k * base for k in range(first, last + 1)]
    return [v for v in found if not inside or table.lb[i] <= v <= table.ub[i]]


def rounded_interval(unit: Fraction, v: Fraction, base: Fraction, step: int) -> Interval:
    """Return what is really possible of a rounded cell: less than step x base away, in the unit of the values."""
    room = step * base - unit
    return v - room, v + room


def _below(end: Fraction, unit: Fraction) -> Fraction:
    """Return the largest value on the grid of the unit below an end; the end itself where there is no grid."""
    return (ceil(end / unit) - 1) * unit if unit else end


def protected(table: cg.Table) -> set[int]:
    """Cells that must be protected against somebody who does not know them anyway."""
    needs = (need for who in attackers(table) for need in list_needs(table, who))
    return {need.cell for need in needs if need.lower or need.upper or need.width}


def _is_multiple(v: Fraction, base: Fraction) -> bool:
    """Exactly, of a whole base; of another one, up to the last digits of a float."""
    return abs(v - base * round(v / base)) <= (0 if base.denominator == 1 else Fraction(1, 10**14) * abs(v))


def _perturbed(table: cg.Table, release: Any, file: Written, options: dict[str, Any]) -> Published:
    """Within the published distance, or the base."""
    value = file.numbers("value")
    found = _moved(table, value)
    asked_for = protected(table)
    intervals: list[Interval] = []
    for i, (v, a) in enumerate(zip(value, _truth(table), strict=True)):
        if v is None:
            intervals.append(EVERYTHING)
            continue
        lo, hi = _perturbed_interval(table, release, i, v, between=bool(options.get("between")))
        slack = Fraction(1, 10**9) * max(1, abs(a))
        if abs(v - a) <= slack and i in asked_for:
            found.append(Violation("published", f"{table.label(i)}: sensitive and published"))
        slack = max(slack, Fraction(1, 10**15) * abs(v))  # the last digit of a float
        if not lo - slack <= a <= hi + slack:
            found.append(Violation("truth", f"{table.label(i)}: the truth is not where the release says"))
        if table.fixed[i] and abs(v - a) > Fraction(1, 10**12) * max(1, abs(a)):  # the last digit of a sum
            found.append(Violation("fixed", f"{table.label(i)}: changed, and must be published"))
        intervals.append((lo, hi))
    return intervals, found


def _perturbed_interval(
    table: cg.Table, release: Any, i: int, v: Fraction, *, between: bool
) -> tuple[Fraction, Fraction]:
    """Return what the rule tells: no cell moves farther than its base or distance, whichever multiples lie around it.

    If cells stay between the multiples next to them, the truth is a unit or more away from the next ones.
    """
    room = Fraction(0) if table.fixed[i] else exact((release.distance if release.base is None else release.base)[i])
    if between and room:
        unit = find_units(table)[i]
        return max(v - room, (ceil(v / room) - 1) * room + unit), min(v + room, (floor(v / room) + 1) * room - unit)
    return v - room, v + room


def _adjusted(table: cg.Table, release: Any, file: Written, options: dict[str, Any]) -> Published:
    """Every sensitive cell away from the truth by its levels; a width counts for both sides together."""
    value = file.numbers("value")
    found = _moved(table, value, given_up=_given_up(table, release, options))
    truth = _truth(table)
    for i, v in enumerate(value):
        if table.fixed[i] and options.get("repair") != "relations" and v is not None:  # a price may have been asked
            slack = Fraction(1, 10**9) * max(1, abs(truth[i]))
            if abs(v - truth[i]) > slack:
                found.append(Violation("fixed", f"{table.label(i)}: changed, and must be published"))
    near = 1 - Fraction(MISSING)
    for who in attackers(table):
        for need in list_needs(table, who, stated=True):
            v, a = value[need.cell], truth[need.cell]
            label = f"adjust, attacker {who.name!r}: {table.label(need.cell)}"
            if v is None:
                continue
            if v == a:
                found.append(Violation("published", f"{label} is sensitive and published"))
            elif abs(v - a) < least_movement(table, need, up=v > a) * near:
                found.append(Violation("level", f"{label} is closer than its levels"))
    return _find_kept(table, truth, options), found


def _find_kept(table: cg.Table, truth: list[Fraction], options: dict[str, Any]) -> list[Interval]:
    """Return what an adjusted table tells for certain: cells that were kept, or must be published, are true.

    Nothing is told about the distance of the others from the truth.
    """
    if options.get("repair") == "relations":  # kept cells may have been changed after all
        return [EVERYTHING] * table.n_cells
    sure = set(np.flatnonzero(find_published(table)).tolist())
    sure |= {int(i) for entry in options.get("keep", ()) for i in _list_kept(table, entry)}
    return [(a, a) if i in sure else EVERYTHING for i, a in enumerate(truth)]


def _list_kept(table: cg.Table, entry: Any) -> np.ndarray:
    """Return the cells that one entry of `keep` names; sensitive ones are never kept."""
    if isinstance(entry, int):
        return np.array([entry])
    names = [] if entry == "total" else [entry]
    inside = np.isin(table.dimensions, names)
    return np.flatnonzero((table.coordinates[:, ~inside] == 0).all(axis=1) & ~table.sensitive)


def _given_up(table: cg.Table, release: Any, options: dict[str, Any]) -> set[int]:
    """Totals whose known bounds were given up: only if that was allowed, and never without saying so."""
    if options.get("repair") != "relations":
        return set()
    said = set(release.details.get("changed_bounds", ()))
    totals = {i for row in relations_of(table) for i, c in row.items() if c < 0 and not table.sensitive[i]}
    return {i for i in totals if table.label(i) in said}


def least_movement(table: cg.Table, need: Need, *, up: bool) -> Fraction:
    """Return how far a cell must move. A side without a level asks for as much as the other.

    Without both, half the width to each side, and where the bounds leave less than half, the rest to the other.
    """
    down_level, up_level = need.lower, need.upper
    if not (down_level or up_level):
        a = exact(table.values[need.cell])
        ends = table.lb[need.cell], table.ub[need.cell]
        below, above = (need.width if abs(end) == float("inf") else abs(exact(end) - a) for end in ends)
        half = Fraction(int(need.width / 2)) if table.integer else need.width / 2
        up_level = min(need.width - min(half, below), above)
        down_level = min(need.width - up_level, below)
    return (up_level or down_level) if up else (down_level or up_level)


_PUBLISHED = {
    "suppress": _suppression, "intervals": _interval, "round": _rounded, "perturb": _perturbed, "adjust": _adjusted,
}  # fmt: skip

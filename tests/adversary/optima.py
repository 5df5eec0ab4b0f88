"""Honest statuses: what is claimed optimal, bounded or impossible, against full programs and enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

import cellguard as cg
from adversary.checker import EVERYTHING, Violation, attackers, too_close
from adversary.enumeration import SENSES, cheaper_roundings, least_adjustment, roundings, safe_rounding
from adversary.meaning import find_published, list_needs
from adversary.programs import exact
from adversary.widths import least_width

FEW = 9
"""Cells that may be withheld or not: 512 patterns at most."""


def honest(
    table: cg.Table, release: Any, options: dict[str, Any], rng: np.random.Generator, figures: Counter[str]
) -> Iterable[Violation]:
    """Check what a release of a table claims of its objective."""
    bound, objective = release.bound, release.objective
    if np.isfinite(bound) and bound > objective + 1e-6 * max(1.0, abs(objective)):
        yield Violation("bound", f"the bound {bound:g} lies above the objective {objective:g}")
    open_gap = objective - bound > 1e-9 * max(1.0, float(np.abs(release.table.values).max(initial=0.0)))
    if release.status == "optimal" and open_gap and release.gap > max(0.0, options.get("gap", 1e-3)) + 1e-6:
        yield Violation("bound", f"called optimal with a gap of {release.gap:g}")
    if release.method == "suppress" and rng.random() < 0.6:
        yield from _cheaper_pattern(release, options, figures)
    if release.method == "intervals":
        yield from _narrower_intervals(release, figures)
    if release.method == "round" and "keep" not in options:
        yield from _closer_rounding(table, release, options, figures)
    if release.method == "adjust":
        yield from _closer_adjustment(release, options, figures)


def nothing(table: cg.Table, release: Any, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    """Nothing is published: if it is said that nothing can be, there must be nothing."""
    if release.status != "infeasible" or _known_beforehand(release.table):
        return
    if release.method == "round" and "keep" not in options:
        yield from _some_rounding(table, release, options, figures)
    if release.method == "adjust" and (options.get("senses") == "optimal" or options.get("repair") == "senses"):
        yield from _some_adjustment(release, options, figures)
    if release.method in ("suppress", "intervals"):
        yield from _some_pattern(release, options, figures)


def _known_beforehand(table: cg.Table) -> bool:
    """Whether somebody knows a sensitive cell whatever is published: the manual calls no such table safe."""
    return any(need.width == 0 for who in attackers(table) for need in list_needs(table, who))


def _list_everybody(table: cg.Table) -> list[cg.Attacker]:
    """Return the attackers of a table; contributors are kept from every sensitive cell that they do not know."""
    out = []
    for who in attackers(table):
        if who.derived:
            known = who.cells[who.lb >= who.ub]
            cells = table.sensitive_cells if who.only is None else who.only
            cells = cells[~np.isin(cells, known)]
            levels = {name: getattr(table, name)[cells] for name in ("lower", "upper", "sliding")}
            who = replace(who, sensitive=cells, **levels)  # noqa: PLW2901
        out.append(who)
    return out


def _asks_for_more(table: cg.Table) -> bool:
    """Say whether the table asks for more than the judge: levels that what contributors may have given cannot leave open.

    A contributor who is not listed in a cell may have given up to its smallest listed part. Levels are not reduced by
    what they only may have given. Refusing such a table, or a bound on its cost, is careful and not dishonest.
    """
    return any(who.certain is not None and (who.certain < who.lb).any() for who in table.attackers)


def _some_pattern(release: Any, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    """Withholding everything must not be safe."""
    if options.get("must_publish") or options.get("resist") or _asks_for_more(release.table):
        return
    table = release.table
    truth = [exact(a) for a in table.values]
    fixed = find_published(table)
    intervals = [(truth[i], truth[i]) if fixed[i] else EVERYTHING for i in range(table.n_cells)]
    figures[f"{release.method}: infeasible checked"] += 1
    # The share that is forgiven to who publishes is not held against who refuses: a level that misses by it is missed.
    if not any(v for who in _list_everybody(table) for v in too_close(table, intervals, who, "", missing=0.0)):
        yield Violation("infeasible", "called infeasible, and withholding everything is safe")


def _cheaper_pattern(release: Any, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    """Try every pattern that would be cheaper than the proven bound."""
    table = release.table
    if set(options) & {"weights", "prefer", "must_publish", "already_suppressed", "resist"}:
        return
    choice = np.flatnonzero(~table.sensitive & ~find_published(table)).tolist()
    if len(choice) > FEW or not np.isfinite(release.bound):
        return
    figures["suppress: enumerated"] += 1
    truth = [exact(a) for a in table.values]
    weight = table.weights
    for size in range(len(choice) + 1):
        for chosen in combinations(choice, size):
            cost = float(sum(weight[i] for i in chosen))
            if cost >= release.bound - 1e-6 * max(1.0, release.bound):
                continue
            hidden = {*chosen, *np.flatnonzero(table.sensitive).tolist()}
            intervals = [EVERYTHING if i in hidden else (truth[i], truth[i]) for i in range(table.n_cells)]
            if not any(v for who in _list_everybody(table) for v in too_close(table, intervals, who, "", missing=0.0)):
                yield Violation("bound", f"a pattern of cost {cost:g} is safe; the bound says {release.bound:g}")
                return


def _narrower_intervals(release: Any, figures: Counter[str]) -> Iterable[Violation]:
    """Compare a proven bound with the full linear program: ends, and a table for everything that is asked."""
    table = release.table
    some_whole = not table.integer and table.whole_cells.any()  # there only small levels are asked in whole numbers
    if some_whole or not np.isfinite(release.bound) or table.n_cells > 30 or _asks_for_more(table):
        return
    least = least_width(table)
    if least is None:
        return
    figures["intervals: full program" + (" in whole numbers" if table.integer else "")] += 1
    if release.bound > least * (1 + 1e-5) + 1e-6 * max(1.0, float(np.abs(table.weights).max())):
        yield Violation("bound", f"intervals of {least:g} exist; the bound says {release.bound:g}")


def _weights(table: cg.Table, options: dict[str, Any], usual: str) -> np.ndarray | None:
    size = np.abs(table.values)
    known = {"table": table.weights, "unit": np.ones(table.n_cells), "inverse": 1 / np.where(size > 0, size, 1.0)}
    return known.get(options.get("weights", usual))


def _closer_rounding(
    stated: cg.Table, release: Any, options: dict[str, Any], figures: Counter[str]
) -> Iterable[Violation]:
    """Look for a safe rounding that is closer than the bound says is possible."""
    table, weights = release.table, _weights(release.table, options, "table")
    if weights is None or options.get("objective") == "unbiased" or not np.isfinite(release.bound):
        return
    if roundings(table, release.base, release.step, stated) is None:
        return
    figures["round: enumerated"] += 1
    limit = release.bound - 1e-6 * max(1.0, abs(release.bound))
    for cost in cheaper_roundings(
        table, stated, release.base, release.step, weights, limit, keep=bool(options.get("keep_multiples"))
    ):
        yield Violation("bound", f"a rounding at {cost:g} is safe; the bound says {release.bound:g}")
        return


def _some_rounding(
    stated: cg.Table, release: Any, options: dict[str, Any], figures: Counter[str]
) -> Iterable[Violation]:
    """Look for a safe rounding where none is said to exist."""
    table = release.table
    step = options.get("step") or 1  # with the least step at least
    all_of_them = roundings(table, release.base, step, stated)
    if all_of_them is None:
        return
    figures["round: infeasible checked"] += 1
    if any(
        safe_rounding(table, values, release.base, step, keep=bool(options.get("keep_multiples")))
        for values in all_of_them
    ):
        yield Violation("infeasible", "called infeasible, and a safe rounding exists")


def _as_in_the_papers(options: dict[str, Any]) -> bool:
    """Whether cells may stop at their levels: what the programs here look at."""
    return options.get("surplus", 1.0) == 0 and "keep" not in options


def _closer_adjustment(release: Any, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    """Compare the bound of optimal senses with all senses, one after the other."""
    table, weights = release.table, _weights(release.table, options, "inverse")
    if (
        weights is None
        or options.get("norm") != "l1"
        or options.get("senses") != "optimal"
        or not _as_in_the_papers(options)
    ):
        return
    if int(table.sensitive.sum()) > SENSES or not np.isfinite(release.bound):
        return
    best = least_adjustment(table, weights, release.options["unit"])
    figures["adjust: enumerated"] += 1
    if best is not None and release.bound > best * (1 + 1e-5) + 1e-6:
        yield Violation("bound", f"an adjustment at {best:g} is safe; the bound says {release.bound:g}")


def _some_adjustment(release: Any, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    table = release.table
    if int(table.sensitive.sum()) > SENSES or not _as_in_the_papers(options) or len(table.attackers) > 1:
        return
    figures["adjust: infeasible checked"] += 1
    if least_adjustment(table, None, release.options["unit"]) is not None:
        yield Violation("infeasible", "called infeasible, and an adjustment exists")

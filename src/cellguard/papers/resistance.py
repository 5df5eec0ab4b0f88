"""How probable the tables are that resistant suppression leaves possible: it promises only possibility."""

from __future__ import annotations

import time

import numpy as np

from cellguard._engine.counts import twoway
from cellguard._types import BoolArray, IntArray
from cellguard.attacks import CountRule
from cellguard.attacks.counts import Grid, find_grid
from cellguard.datasets.generate import frequency
from cellguard.methods.suppress.resist import SPREADS, draw_random_costs, suppress_against_matching
from cellguard.model.key import Key
from cellguard.papers._framework import Done, Experiment, Figures, Settings, Unit, Units, compare_with_paper

__all__ = ["POSSIBLE"]

_RULE = CountRule(minimum=5, width=8)
_TABLES = 20
_SIDE = 4
_DRAWS = 1000
_MAX_CANDIDATES = 5000
"""Largest number of candidates of a table: each is suppressed a thousand times."""


def _list_possible_units(settings: Settings) -> Units:
    first = settings.seed * 10_000
    seeds = range(first, first + (settings.replications or _TABLES))
    return [Unit(key=f"{_SIDE**2} cells, table {seed}", work={"seed": seed}) for seed in seeds], []


def _run_possible_tables(work: Figures) -> Figures:
    """Publish one table, and draw weights for every table for which the same pattern is minimal."""
    begin = time.process_time()
    table = frequency(seed=work["seed"], rows=_SIDE, columns=_SIDE)
    release = (
        suppress_against_matching(table, _RULE, key=Key.from_public_number(work["seed"] + 1))
        if table.sensitive.any()
        else None
    )
    grid = find_grid(table, release.suppressed) if release is not None and release.published else None
    if release is None or grid is None:
        return {"skipped": "no release"}
    pattern, law = grid.restrict_pattern(release.suppressed), _RULE.build_law(grid)
    if twoway.number_of_count_tables(grid.counts, pattern, _MAX_CANDIDATES) >= _MAX_CANDIDATES:
        return {"skipped": "too many candidates"}
    listed = twoway.enumerate_candidate_tables(grid.counts, pattern, _MAX_CANDIDATES)
    possible = np.array([y for y in listed if _is_possible(y, pattern, law)])
    drawn = _find_drawn(possible, pattern, law, grid, work["seed"])
    # a cell is certified when the pattern may be there for it: it is sensitive in some possible table
    certified = pattern & law.find_sensitive(possible).any(axis=0)
    without = np.ptp(possible[drawn], axis=0) if drawn.any() else np.zeros(pattern.shape)
    return {
        "possible": len(possible),
        "never_drawn": int((~drawn).sum()),
        "certified": int(certified.sum()),
        "too_narrow_without": int((without < _RULE.width)[certified].sum()),
        "cpu_s": time.process_time() - begin,
    }


def _is_possible(y: IntArray, pattern: BoolArray, law: twoway.CountLaw) -> bool:
    return twoway.is_safe_for_counts(y, pattern, law) and twoway.is_minimal_for_counts(y, pattern, law)


def _find_drawn(possible: IntArray, pattern: BoolArray, law: twoway.CountLaw, grid: Grid, seed: int) -> BoolArray:
    """Return the tables that give the pattern in at least one draw of the mechanism's first spread."""
    rng = np.random.default_rng([seed, 1])
    costs = np.array([draw_random_costs(_RULE, grid, rng, SPREADS[0]).base for _ in range(_DRAWS)])
    return np.asarray(twoway.estimate_optimal_shares(possible, pattern, law, costs, limit=10**6) > 0)


def _report_possible_tables(done: Done) -> list[Figures]:
    found = [result for _, result in done if "skipped" not in result]

    def sum_up(name: str) -> float:
        return float(sum(result[name] for result in found))

    names = {
        "possible tables": "possible",
        f"of them never drawn in {_DRAWS} draws": "never_drawn",
        "certified cells": "certified",
        "of them too narrow without the tables never drawn": "too_narrow_without",
    }
    return [compare_with_paper(what, sum_up(name), None, tables=len(found)) for what, name in names.items()]


POSSIBLE = Experiment(
    name="resistance-possible",
    units=_list_possible_units,
    run=_run_possible_tables,
    rows=_report_possible_tables,
    remark="Not in a paper. A table is possible when the published pattern is safe and minimal for it: then some "
    "weights lead to it. Many of these weights are improbable. A cell is certified when its width over all possible "
    "tables is what the rule asks for; without those that a thousand draws never reach it may be narrower.",
)

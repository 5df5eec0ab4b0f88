"""Suppression of frequency tables: the deterministic optimum, and one that resists the matching attack.

The deterministic optimum leaks: who knows the algorithm excludes the counts for which it would have
chosen another pattern (minami2019), and so does every fixed choice among optima. The resistant
suppression draws secret random weights, takes the cheapest pattern under them, and publishes it only
if it passes a **public test**: over all tables for which this pattern could have been drawn, every
cell that may be sensitive keeps the width that the rule promises. The test looks at nothing but what
the release publishes; so that it was passed tells an attacker nothing he could not compute himself.
What this guarantees, and against whom, is argued in docs/methods/matching.md.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from cellguard._engine.clock import now
from cellguard._engine.counts import twoway
from cellguard._types import BoolArray
from cellguard.check.attack.counts import (
    LARGEST_MINIMUM,
    CountRule,
    Grid,
    matching_grid_of,
    require_counts_for_matching,
    rule_attacker_knows,
    rule_attacker_may_guess,
    rules_attacker_infers,
)
from cellguard.exceptions import InputError
from cellguard.nouns.grid import empty_cells_of_table
from cellguard.nouns.levels import Levels, attackers_of_table, required_levels, table_with_respondent_attackers
from cellguard.nouns.release import Status, Suppression
from cellguard.nouns.table import Table

__all__ = [
    "check_counts_to_suppress", "count_suppression_applies", "optimal_suppression_of_counts",
    "random_suppression_costs", "resist_matching",
]  # fmt: skip

SPREADS = (0.15, 0.3, 0.6, 1.5)
"""Weights are exp(spread * E), E exponential with mean 1: at least 1, without an upper bound. The next spread
is tried when all draws with the one before were refused: more patterns come up, at a higher price."""
_SEARCH_LIMIT = 5_000_000
"""Nodes of the search for one optimum: some seconds. Plain two-way tables of 64 cells need thousands."""
_DRAWING_LIMIT = 4 * _SEARCH_LIMIT
"""Nodes of all draws and their tests, after which it is said that none was found: a minute or so."""
_TEST_NODE = 50
"""A node of the public test takes as long as so many of the search."""
_NONE_DRAWN = "every pattern that was drawn failed the public test, or took too long to find."
_NONE_FOR_ALL = (
    "every pattern that was drawn failed the public test for some minimum frequency that fits what it would publish, "
    "or took too long to find; give the rule that is known: resist=cg.CountRule(...), or min_frequency and width "
    "in a job file."
)
_TOO_NARROW = "even with all inner cells suppressed a sensitive one is too narrow."
_TOO_LARGE = "the table is too large: the search for the optimum reached its limit."
_QUICK = 100
"""Cells of a table whose optimum is found at once."""


def optimal_suppression_of_counts(
    table: Table, rule: CountRule | None = None, *, limit: int = _SEARCH_LIMIT
) -> Suppression:
    """Suppress a two-way frequency table by the deterministic optimum of a rule (minami2019 definition 4).

    This is the algorithm that the matching attack knows. Proven optimal unless `limit` nodes of the
    search come first.

    Examples
    --------
    >>> from cellguard import generate
    >>> release = optimal_suppression_of_counts(generate.frequency(seed=1))
    >>> str(release.status), int(release.primary.sum()), int(release.secondary.sum())
    ('optimal', 1, 3)
    """
    begin = now()
    rule, grid = _prepared_to_resist(table, rule)
    pattern, nodes = twoway.optimal_count_pattern(grid.counts, rule.law(grid), limit=limit)
    proven = nodes <= limit
    options = {"method": "counts", "rule": asdict(rule)}
    seconds = {"solve": now() - begin}
    if pattern is None:
        return _no_suppression_found(table, options, seconds, proven=proven)
    suppressed = _pattern_in_whole_table(table, grid, pattern)
    objective = float(table.weights[suppressed & ~table.sensitive].sum())
    return Suppression(
        table=table,
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        objective=objective,
        bound=objective if proven and _weights_are_suppression_loss(rule, table, grid) else float("nan"),
        seconds=seconds,
        options=options,
        details={"nodes": nodes},
        suppressed=suppressed,
    )


def resist_matching(
    table: Table, rule: CountRule | None = None, *, seed: int | None = None, draws: int = 10, limit: int = 200_000
) -> Suppression:
    """Suppress a two-way frequency table so that the matching attack narrows no sensitive cell too far.

    Parameters
    ----------
    table
        A two-way frequency table with published margins.
    rule
        Which counts are sensitive, the width each must keep, and the loss. All of it may be public.
        Unless given, the pattern withstands every minimum frequency that fits what is published: the
        table does not tell which of them the attacker has read. That costs more than the one.
    seed
        Of the secret weights. **Keep it secret**: who knows it repeats the choice. Drawn from the
        operating system unless given; the release remembers it in `options`, its files do not.
    draws
        Patterns to try with weights of one spread before a wider one, and at last decoys: cells that
        are not sensitive and are protected as well.
    limit
        Nodes of the public test; a pattern that needs more is not published.

    Returns
    -------
    Suppression
        With `details`: the draws and decoys it took, its price over the optimum that leaks, and the
        certificate of the public test. Which of its cells are primary is not published.

    Examples
    --------
    >>> from cellguard import generate
    >>> release = resist_matching(generate.frequency(seed=1), seed=7)
    >>> release.details["certificate"]["narrowest"] >= 8
    True
    """
    begin = now()
    told = rule is not None
    rule, grid = _prepared_to_resist(table, rule, doubtful=True)
    seed = secrets.randbits(63) if seed is None else seed
    # which of the fitting rules was taken depends on the withheld counts: it is told to nobody
    options: dict[str, Any] = {"method": "counts", "rule": asdict(rule) if told else None, "resist": "matching"}
    options |= {"seed": seed, "draws": draws, "limit": limit}
    law = rule.law(grid)
    optimum, nodes = twoway.optimal_count_pattern(grid.counts, law, limit=_SEARCH_LIMIT)
    solved = now()
    proven = nodes <= _SEARCH_LIMIT
    if optimum is None or not proven:
        return _no_suppression_found(table, options, {"solve": solved - begin}, proven=proven)
    passing = _first_passing(grid, rule, np.random.default_rng(seed), draws, _PublicTest(told, limit))
    if passing is None:
        seconds = {"solve": solved - begin, "test": now() - solved}
        return _no_suppression_found(table, options, seconds, proven=False, why=_NONE_DRAWN if told else _NONE_FOR_ALL)
    drawn, found = passing
    pattern = drawn.pattern
    assert pattern is not None  # noqa: S101 - it passed the test
    suppressed = _pattern_in_whole_table(table, grid, pattern)
    loss = np.ones_like(grid.counts) if rule.loss == "cells" else grid.counts + grid.least
    paid, least = float(loss[pattern].sum()), float(loss[optimum].sum())
    objective = float(table.weights[suppressed & ~table.sensitive].sum())
    best = float(table.weights[_pattern_in_whole_table(table, grid, optimum) & ~table.sensitive].sum())
    bound = best if _weights_are_suppression_loss(rule, table, grid) else float("nan")
    return Suppression(
        table=table,
        status=Status.OPTIMAL if objective <= bound else Status.FEASIBLE,
        objective=objective,
        bound=bound,
        seconds={"solve": solved - begin, "test": now() - solved},
        options=options,
        details={
            "nodes": nodes,
            "draws": drawn.tries,
            "spread": drawn.spread,
            "decoys": drawn.decoys,
            "price": paid / least - 1.0 if least else 0.0,
            "certificate": _certificate_of_pattern(found, law),
        },
        explanation="Keep the seed secret, and do not publish which cells are primary.",
        suppressed=suppressed,
        conceal=True,
    )


def count_suppression_applies(table: Table) -> bool:
    """Whether the table is small and asks for nothing but what a count rule with its weights gives."""
    if not table.sensitive.any():
        return False
    try:
        rule, grid = _prepared_to_resist(table, None)
    except InputError:
        return False
    quick = grid.counts.size <= _QUICK
    return (
        quick
        and _weights_are_suppression_loss(rule, table, grid)
        and bool((required_levels(table).sliding == rule.width).all())
    )


def random_suppression_costs(rule: CountRule, grid: Grid, rng: np.random.Generator, spread: float) -> twoway.CountLaw:
    """Return the rule with secret random weights: each cell's loss times exp(spread * E)."""
    law = rule.law(grid)
    factor = np.exp(spread * rng.exponential(size=grid.counts.shape))
    return replace(law, base=np.rint(law.cost(grid.counts) * factor).astype(np.int64), slope=0)


class _Drawn(NamedTuple):
    tries: int
    spread: float
    decoys: int
    nodes: int
    """Of all searches so far."""
    pattern: BoolArray | None
    """None when the search did not end."""


class _PublicTest(NamedTuple):
    """The test that a pattern must pass. It looks at nothing but what would be published."""

    told: bool
    """Whether the rule is known; otherwise the pattern must pass for each that fits what is published."""
    limit: int
    """Nodes of the test for one rule."""

    def of(self, grid: Grid, pattern: BoolArray, rule: CountRule) -> twoway.Kept:
        rules = [rule] if self.told else rules_attacker_infers(grid, pattern, rule)
        whole: twoway.Kept | None = None
        for one in rules:
            found = twoway.counts_keep_width(grid.counts, pattern, one.law(grid), limit=self.limit)
            if not found.possible:
                continue  # no table leads to this pattern by this rule
            whole = found if whole is None else whole.with_another(found)
            if not found.passed:
                break
        assert whole is not None  # noqa: S101 - the true rule is among them
        return whole


def _first_passing(
    grid: Grid, rule: CountRule, rng: np.random.Generator, draws: int, test: _PublicTest
) -> tuple[_Drawn, twoway.Kept] | None:
    """Return the first drawn pattern that passes the public test; None when there is none, or within the limit."""
    tested = 0
    for drawn in _patterns_drawn(grid, rule, rng, draws):
        if drawn.nodes + tested > _DRAWING_LIMIT:
            return None
        if drawn.pattern is None:
            continue
        found = test.of(grid, drawn.pattern, rule)
        tested += _TEST_NODE * found.work
        if found.passed:
            return drawn, found
    return None


def _patterns_drawn(grid: Grid, rule: CountRule, rng: np.random.Generator, draws: int) -> Iterator[_Drawn]:
    """Draw patterns, at last with decoys: cells protected as if they were sensitive.

    The first draws have no decoys, so every table for which the pattern is minimal can have led to it
    in its first draw: decoys add to what the attacker must hold possible, and exclude nothing.
    """
    others = np.flatnonzero(~rule.law(grid).sensitive(grid.counts))
    stages = [(spread, 0) for spread in SPREADS] + [(SPREADS[-1], n) for n in range(1, len(others) + 1)]
    tries = total = 0
    for spread, decoys in stages:
        for _ in range(draws):
            tries += 1
            also = np.zeros(grid.counts.shape, bool)
            also.flat[rng.choice(others, decoys, replace=False)] = True
            costs = random_suppression_costs(rule, grid, rng, spread)
            pattern, nodes = twoway.optimal_count_pattern(grid.counts, costs, also=also, limit=_SEARCH_LIMIT)
            total += nodes
            yield _Drawn(tries, spread, decoys, total, pattern if nodes <= _SEARCH_LIMIT else None)


def _certificate_of_pattern(found: twoway.Kept, law: twoway.CountLaw) -> dict[str, Any]:
    """Return what anybody can check again: widths over the tables for which the pattern is minimal."""
    return {
        "attacker": "knows the mechanism and the rule, not the seed; excludes what is impossible",
        "may_be_sensitive": found.may_be_sensitive,
        "narrowest": found.narrowest,
        "required": law.width,
    }


def check_counts_to_suppress(table: Table, rule: CountRule | None = None) -> None:
    """Refuse a table that cannot be suppressed so that the matching attack is withstood, before a pattern is drawn."""
    _prepared_to_resist(table, rule, doubtful=True)


def _prepared_to_resist(table: Table, rule: CountRule | None, *, doubtful: bool = False) -> tuple[CountRule, Grid]:
    """Return the rule and the grid of a table; where the rule is in doubt, one that fits or an error."""
    require_counts_for_matching(table)
    empty = empty_cells_of_table(table)
    if empty.any():
        raise InputError(
            f"{table.label(int(np.argmax(empty)))}: everybody knows that it is empty; resistance is argued for tables "
            "in which any inner cell may be withheld.",
            hint="say known_zeros = false if attackers do not know which cells are empty; zeros may be withheld then.",
        )
    grid = matching_grid_of(table, np.zeros(table.n_cells, bool))
    if grid is None:
        raise InputError(
            f"{table.name}: not a two-way table whose inner cells add up to published margins.",
            hint="suppression of count tables by enumeration is for plain two-way tables.",
        )
    inner = np.zeros(table.n_cells, bool)
    inner[grid.cells] = True
    if (table.sensitive & ~inner).any():
        raise InputError(
            f"{table.label(int(np.argmax(table.sensitive & ~inner)))}: a sensitive margin, which would be published.",
            hint="suppression of count tables by enumeration withholds inner cells only; leave `resist` out.",
        )
    need = required_levels(table)
    if rule is not None and not isinstance(rule, CountRule):
        raise InputError(f"rule: a CountRule is needed, not {type(rule).__name__}.")
    if rule is None:
        sliding = np.zeros(table.n_cells)
        sliding[need.cells] = need.sliding  # a count without levels asks for the smallest width
        rule = (rule_attacker_may_guess if doubtful else rule_attacker_knows)(table.with_(sliding=sliding))
        if doubtful and rule.minimum > LARGEST_MINIMUM:
            raise InputError(
                f"{table.name}: nobody says the minimum frequency, and it is more than {LARGEST_MINIMUM}.",
                hint="say it: resist=cg.CountRule(minimum=..., width=...).",
            )
    _refuse_levels_beyond_pattern(table, need, rule)
    if (inner & table.fixed).any():
        raise InputError(
            f"{table.label(int(np.argmax(inner & table.fixed)))}: an inner cell that must be published.",
            hint="suppression of count tables by enumeration may choose any inner cell.",
        )
    other = inner & (rule.sensitive(table.values) != table.sensitive)
    if other.any():
        raise InputError(
            f"{table.label(int(np.argmax(other)))}: the rule and the table disagree on whether it is sensitive.",
            hint="give the rule by which the table's sensitive cells were chosen.",
        )
    return rule, grid


def _refuse_levels_beyond_pattern(table: Table, need: Levels, rule: CountRule) -> None:
    """Refuse a table that asks for more than the rule promises: enumeration would not look at it."""
    if any(
        len(attacker.cells) or attacker.sensitive is not None
        for attacker in attackers_of_table(table_with_respondent_attackers(table))
    ):
        raise InputError(
            "suppression of count tables by enumeration withstands an attacker from outside only.",
            hint="choose so, which the report states: insiders=False; or leave `resist` out.",
        )
    more = (need.lower > 0) | (need.upper > 0) | (need.sliding > rule.width)
    if more.any():
        raise InputError(
            f"{table.label(int(need.cells[np.argmax(more)]))}: its levels ask for more than the rule's width.",
            hint="give the rule the largest width that a sensitive cell asks for, and no lower or upper levels.",
        )


def _pattern_in_whole_table(table: Table, grid: Grid, pattern: BoolArray) -> BoolArray:
    out = np.zeros(table.n_cells, bool)
    out[grid.cells[pattern]] = True
    return out


def _weights_are_suppression_loss(rule: CountRule, table: Table, grid: Grid) -> bool:
    """Whether the table's weights are the loss of the rule, so that its optimum is a bound."""
    weights = table.weights[grid.cells]
    return bool((weights == (weights.flat[0] if rule.loss == "cells" else grid.counts + grid.least)).all())


def _no_suppression_found(
    table: Table,
    options: dict[str, Any],
    seconds: dict[str, float],
    *,
    proven: bool,
    why: str | None = None,
) -> Suppression:
    """Return that there is no release: none exists, or the search stopped before it found one."""
    return Suppression(
        table=table,
        status=Status.INFEASIBLE if proven else Status.TIME_LIMIT,
        objective=float("nan"),
        seconds=seconds,
        options=options,
        explanation=why or (_TOO_NARROW if proven else _TOO_LARGE),
        suppressed=table.sensitive.copy(),
    )

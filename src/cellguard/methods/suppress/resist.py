"""Suppression of frequency tables: the deterministic optimum, and one that resists the matching attack.

The deterministic optimum leaks: an attacker who knows the algorithm excludes the counts for which it would have
chosen another pattern (minami2019). Every fixed choice among optima leaks in the same way. The resistant
suppression draws secret random weights, takes the cheapest pattern under them, and publishes it only
if it passes a **public test**: over all tables for which this pattern could have been drawn, every
cell that may be sensitive keeps the width that the rule promises. The test uses only what the release
publishes, so passing it tells an attacker nothing that they could not compute themselves.
docs/methods/matching.md explains what this guarantees, and against which attackers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from cellguard._engine.clock import now
from cellguard._engine.counts import twoway
from cellguard._types import BoolArray, FloatArray
from cellguard.attackers.public import add_public_knowledge
from cellguard.attacks.counts import (
    LARGEST_MINIMUM,
    CountRule,
    Grid,
    find_grid,
    guess_rule,
    infer_rule,
    list_fitting_rules,
    require_counts_for_matching,
)
from cellguard.exceptions import InputError
from cellguard.methods.keys import draw_for_table, take_key
from cellguard.model.key import KeyGiven
from cellguard.model.levels import Levels, add_respondents, compute_required_levels, list_attackers
from cellguard.model.table import Table
from cellguard.release.grid import find_empty_cells
from cellguard.release.release import Status, Suppression

__all__ = [
    "check_counts_to_suppress",
    "count_suppression_applies",
    "draw_random_costs",
    "suppress_against_matching",
    "suppress_counts_optimally",
]  # fmt: skip

SPREADS = (0.15, 0.3, 0.6, 1.5)
"""Weights are exp(spread * E), E exponential with mean 1: at least 1, and at most as large as the argument needs
(`_compute_largest_factor`). The next spread is tried when all draws with the previous one failed: more patterns
occur, at a higher cost."""
_MAX_TOTAL_COST = 1 << 61
"""Sum of all costs up to which the search compares patterns in whole numbers without overflow."""
_MIN_COST = 1 << 10
"""Cost of the cheapest cell below which whole numbers would round the weights too coarsely."""
_SEARCH_LIMIT = 5_000_000
"""Nodes of the search for one optimum: some seconds. Plain two-way tables of 64 cells need thousands."""
_DRAWING_LIMIT = 4 * _SEARCH_LIMIT
"""Nodes of all draws and their tests before the search gives up: about a minute."""
_TEST_NODE = 50
"""A node of the public test takes as long as this many nodes of the search."""
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


def suppress_counts_optimally(
    table: Table, rule: CountRule | None = None, *, limit: int = _SEARCH_LIMIT
) -> Suppression:
    """Suppress a two-way frequency table by the deterministic optimum of a rule (minami2019 definition 4).

    This is the algorithm that the matching attack knows. The pattern is proven optimal unless the search reaches
    `limit` nodes first.

    Examples
    --------
    >>> from cellguard import generate
    >>> release = suppress_counts_optimally(generate.frequency(seed=1))
    >>> str(release.status), int(release.primary.sum()), int(release.secondary.sum())
    ('optimal', 1, 3)
    """
    begin = now()
    rule, grid = _prepare_rule_and_grid(table, rule)
    pattern, nodes = twoway.find_optimal_pattern(grid.counts, rule.build_law(grid), limit=limit)
    proven = nodes <= limit
    options = {"method": "counts", "rule": asdict(rule)}
    seconds = {"solve": now() - begin}
    if pattern is None:
        return _build_empty_release(table, options, seconds, proven=proven)
    suppressed = _expand_pattern(table, grid, pattern)
    objective = float(table.weights[suppressed & ~table.sensitive].sum())
    return Suppression(
        table=table,
        status=Status.OPTIMAL if proven else Status.FEASIBLE,
        objective=objective,
        bound=objective if proven and _are_weights_rule_loss(rule, table, grid) else float("nan"),
        seconds=seconds,
        options=options,
        details={"nodes": nodes},
        suppressed=suppressed,
    )


def suppress_against_matching(
    table: Table, rule: CountRule | None = None, *, key: KeyGiven | None = None, draws: int = 10, limit: int = 200_000
) -> Suppression:
    """Suppress a two-way frequency table so that the matching attack narrows no sensitive cell too far.

    Parameters
    ----------
    table
        A two-way frequency table with published margins.
    rule
        Which counts are sensitive, the width each must keep, and the loss. All of it may be public.
        By default, the pattern resists every minimum frequency that fits what is published: the
        table does not say which of them the attacker knows. That costs more than a single one.
    key
        The secret of the weights: with it, anyone can repeat the choice. By default drawn from the operating
        system; the release keeps it in `options`, its public files do not.
    draws
        Patterns to try with weights of one spread before a wider one, and finally with decoys: cells that
        are not sensitive and are protected as well.
    limit
        Nodes of the public test; a pattern that needs more is not published.

    Returns
    -------
    Suppression
        With `details`: the number of draws and decoys, its cost relative to the optimum that leaks, and the
        certificate of the public test. Which of its cells are primary is not published.

    Examples
    --------
    >>> from cellguard import generate
    >>> release = suppress_against_matching(generate.frequency(seed=1))
    >>> release.details["certificate"]["narrowest"] >= 8
    True
    """
    begin = now()
    told = rule is not None
    rule, grid = _prepare_rule_and_grid(table, rule, doubtful=True)
    secret = take_key(key)
    # which of the fitting rules was taken depends on the withheld counts: it is not published
    options: dict[str, Any] = {"method": "counts", "rule": asdict(rule) if told else None, "resist": "matching"}
    options |= {"key": secret, "draws": draws, "limit": limit}
    law = rule.build_law(grid)
    optimum, nodes = twoway.find_optimal_pattern(grid.counts, law, limit=_SEARCH_LIMIT)
    solved = now()
    proven = nodes <= _SEARCH_LIMIT
    if optimum is None or not proven:
        return _build_empty_release(table, options, {"solve": solved - begin}, proven=proven)
    passing = _find_first_passing(
        grid, rule, draw_for_table(secret, "resist matching", table), draws, _PublicTest(told, limit)
    )
    if passing is None:
        seconds = {"solve": solved - begin, "test": now() - solved}
        return _build_empty_release(table, options, seconds, proven=False, why=_NONE_DRAWN if told else _NONE_FOR_ALL)
    drawn, found = passing
    pattern = drawn.pattern
    assert pattern is not None  # noqa: S101 - it passed the test
    suppressed = _expand_pattern(table, grid, pattern)
    loss = np.ones_like(grid.counts) if rule.loss == "cells" else grid.counts + grid.least
    paid, least = float(loss[pattern].sum()), float(loss[optimum].sum())
    objective = float(table.weights[suppressed & ~table.sensitive].sum())
    best = float(table.weights[_expand_pattern(table, grid, optimum) & ~table.sensitive].sum())
    bound = best if _are_weights_rule_loss(rule, table, grid) else float("nan")
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
            "certificate": _build_certificate(found, law),
        },
        explanation="Keep the key secret, and do not publish which cells are primary.",
        suppressed=suppressed,
        conceal=True,
    )


def count_suppression_applies(table: Table) -> bool:
    """Return whether the table is small and needs only what a count rule with its weights provides."""
    if not table.sensitive.any():
        return False
    try:
        rule, grid = _prepare_rule_and_grid(table, None)
    except InputError:
        return False
    quick = grid.counts.size <= _QUICK
    return (
        quick
        and _are_weights_rule_loss(rule, table, grid)
        and bool((compute_required_levels(table).sliding == rule.width).all())
    )


def draw_random_costs(rule: CountRule, grid: Grid, rng: np.random.Generator, spread: float) -> twoway.CountLaw:
    """Return the rule with secret random weights: each cell's loss, at least 1, times exp(spread * E)."""
    law = rule.build_law(grid)
    # a zero costs nothing to lose, and must still be able to cost more than a whole pattern
    costs = np.maximum(law.compute_cost(grid.counts), twoway.UNIT).astype(np.float64)
    most = _compute_largest_factor(costs)
    factor = np.exp(np.minimum(spread * rng.exponential(size=costs.shape), np.log(most)))
    scale = min(1.0, _MAX_TOTAL_COST / (costs.size * float(costs.max()) * most))
    if scale * float(costs.min()) < _MIN_COST:
        raise InputError(
            "suppression of count tables by enumeration: counts of sizes too different cannot be weighed at random.",
            hint="give the rule loss='cells', which counts cells; or leave `resist` out.",
        )
    return replace(law, base=np.rint(scale * costs * factor).astype(np.int64), slope=0)


def _compute_largest_factor(costs: FloatArray) -> float:
    """Return a factor that makes any one cell cost at least twice as much as all others at their own costs.

    A pattern is the cheapest when the cells outside it weigh more than all of it, so no larger factor is needed.

    >>> _compute_largest_factor(np.array([[1.0, 1.0], [1.0, 2.0]]))
    10.0
    """
    return 2.0 * float(costs.sum() / costs.min())


class _Drawn(NamedTuple):
    tries: int
    spread: float
    decoys: int
    nodes: int
    """Nodes of all searches so far."""
    pattern: BoolArray | None
    """The pattern; None if the search did not end."""


class _PublicTest(NamedTuple):
    """The test that a pattern must pass. It uses only what would be published."""

    told: bool
    """Whether the rule is known; otherwise the pattern must pass for each rule that fits what is published."""
    limit: int
    """Nodes of the test for one rule."""

    def build(self, grid: Grid, pattern: BoolArray, rule: CountRule, *, with_decoys: bool = False) -> twoway.Kept:
        """Return what the test found.

        A pattern that was drawn with decoys must pass for every rule by which the sensitive cells may have been chosen,
        whether or not it is minimal for any table. That uses the true table, which is harmless: an attacker who knows
        the rule knows tables for which the pattern passes in the first draw, and the test measures widths over these.
        """
        rules = [rule] if self.told else list_fitting_rules(grid, pattern, rule)
        whole: twoway.Kept | None = None
        for one in rules:
            law = one.build_law(grid)
            decoys = with_decoys and bool(
                (law.find_sensitive(grid.counts) == rule.build_law(grid).find_sensitive(grid.counts)).all()
            )
            found = twoway.check_widths(grid.counts, pattern, law, limit=self.limit, with_decoys=decoys)
            if not found.possible and not decoys:
                continue  # by this rule, no table leads to this pattern
            whole = found if whole is None else whole.merge_with(found)
            if not found.passed:
                break
        # No table leads to the pattern by any rule, as far as the search went. The test uses published facts alone, so
        # an attacker expects this too: reject the pattern and draw another.
        return found._replace(passed=False) if whole is None else whole


def _find_first_passing(
    grid: Grid, rule: CountRule, rng: np.random.Generator, draws: int, test: _PublicTest
) -> tuple[_Drawn, twoway.Kept] | None:
    """Return the first drawn pattern that passes the public test; None if there is none, or none within the limit."""
    tested = 0
    for drawn in _draw_patterns(grid, rule, rng, draws):
        if drawn.nodes + tested > _DRAWING_LIMIT:
            return None
        if drawn.pattern is None:
            continue
        found = test.build(grid, drawn.pattern, rule, with_decoys=drawn.decoys > 0)
        tested += _TEST_NODE * found.work
        if found.passed:
            return drawn, found
    return None


def _draw_patterns(grid: Grid, rule: CountRule, rng: np.random.Generator, draws: int) -> Iterator[_Drawn]:
    """Draw patterns, finally with decoys: cells protected as if they were sensitive.

    The first draws have no decoys, so every table for which the pattern is minimal can have led to it in its first
    draw. The table that leads to a pattern with decoys need not be one of these: the public test is stricter there.
    """
    others = np.flatnonzero(~rule.build_law(grid).find_sensitive(grid.counts))
    stages = [(spread, 0) for spread in SPREADS] + [(SPREADS[-1], n) for n in range(1, len(others) + 1)]
    tries = total = 0
    for spread, decoys in stages:
        for _ in range(draws):
            tries += 1
            also = np.zeros(grid.counts.shape, bool)
            also.flat[rng.choice(others, decoys, replace=False)] = True
            costs = draw_random_costs(rule, grid, rng, spread)
            pattern, nodes = twoway.find_optimal_pattern(grid.counts, costs, also=also, limit=_SEARCH_LIMIT)
            total += nodes
            yield _Drawn(tries, spread, decoys, total, pattern if nodes <= _SEARCH_LIMIT else None)


def _build_certificate(found: twoway.Kept, law: twoway.CountLaw) -> dict[str, Any]:
    """Return what anyone can check again: widths over the tables for which the pattern is minimal."""
    return {
        "attacker": "knows the mechanism and the rule, not the key; excludes what is impossible",
        "may_be_sensitive": found.may_be_sensitive,
        "narrowest": found.narrowest,
        "required": law.width,
    }


def check_counts_to_suppress(table: Table, rule: CountRule | None = None) -> None:
    """Refuse a table that cannot be suppressed so that it resists the matching attack, before drawing a pattern."""
    _prepare_rule_and_grid(table, rule, doubtful=True)


def _prepare_rule_and_grid(table: Table, rule: CountRule | None, *, doubtful: bool = False) -> tuple[CountRule, Grid]:
    """Return the rule and the grid of a table; if the rule is ambiguous, one that fits, or an error."""
    require_counts_for_matching(table)
    zero = table.sensitive & (table.values == 0)
    if doubtful and table.known_zeros is not False and zero.any():
        # the attacker's lower bound on a withheld count must not depend on the counts
        raise InputError(
            f"{table.label(int(np.argmax(zero)))}: empty and sensitive, in a table whose empty cells are known.",
            hint="say known_zeros = false: if zeros are sensitive, the release must not reveal which cells are empty.",
        )
    table = add_public_knowledge(table)
    empty = find_empty_cells(table)
    if empty.any():
        raise InputError(
            f"{table.label(int(np.argmax(empty)))}: every attacker knows that it is empty; resistance is shown for "
            "tables in which any inner cell may be withheld.",
            hint="say known_zeros = false if attackers do not know which cells are empty; zeros may be withheld then.",
        )
    grid = find_grid(table, np.zeros(table.n_cells, bool))
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
    need = compute_required_levels(table)
    if rule is not None and not isinstance(rule, CountRule):
        raise InputError(f"rule: a CountRule is needed, not {type(rule).__name__}.")
    if rule is None:
        sliding = np.zeros(table.n_cells)
        sliding[need.cells] = need.sliding  # a count without levels requires the smallest width
        rule = (guess_rule if doubtful else infer_rule)(table.with_(sliding=sliding))
        if doubtful and rule.minimum > LARGEST_MINIMUM:
            raise InputError(
                f"{table.name}: the minimum frequency is not given, and is more than {LARGEST_MINIMUM}.",
                hint="give it: resist=cg.CountRule(minimum=..., width=...).",
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
    """Refuse a table that requires more than the rule promises: enumeration would not check it."""
    if any(
        len(attacker.cells) or attacker.sensitive is not None for attacker in list_attackers(add_respondents(table))
    ):
        raise InputError(
            "suppression of count tables by enumeration resists external attackers only.",
            hint="choose insiders=False, which the report states; or leave `resist` out.",
        )
    more = (need.lower > 0) | (need.upper > 0) | (need.sliding > rule.width)
    if more.any():
        raise InputError(
            f"{table.label(int(need.cells[np.argmax(more)]))}: its levels require more than the rule's width.",
            hint="give the rule the largest width that a sensitive cell requires, and no lower or upper levels.",
        )


def _expand_pattern(table: Table, grid: Grid, pattern: BoolArray) -> BoolArray:
    out = np.zeros(table.n_cells, bool)
    out[grid.cells[pattern]] = True
    return out


def _are_weights_rule_loss(rule: CountRule, table: Table, grid: Grid) -> bool:
    """Return whether the table's weights are the loss of the rule, so that its optimum is a bound."""
    weights = table.weights[grid.cells]
    return bool((weights == (weights.flat[0] if rule.loss == "cells" else grid.counts + grid.least)).all())


def _build_empty_release(
    table: Table,
    options: dict[str, Any],
    seconds: dict[str, float],
    *,
    proven: bool,
    why: str | None = None,
) -> Suppression:
    """Return a release without a pattern: none exists, or the search stopped before it found one."""
    return Suppression(
        table=table,
        status=Status.INFEASIBLE if proven else Status.TIME_LIMIT,
        objective=float("nan"),
        seconds=seconds,
        options=options,
        explanation=why or (_TOO_NARROW if proven else _TOO_LARGE),
        suppressed=table.sensitive.copy(),
    )

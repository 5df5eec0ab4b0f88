"""The matching attack: what a suppression reveals to an informed attacker (minami2019).

The attacker lists the tables that agree with what is published (candidates), suppresses each, and keeps those
that give the published pattern (survivors). The survivors' values of a cell are its effective
feasibility interval. There are three attackers, each knowing more than the one before:

``"rule"``
    which counts are sensitive, and the width each must keep;
``"mechanism"``
    also that the pattern is the cheapest under positive weights, but not the weights (they were
    drawn at random and kept secret): a candidate survives when no part of the pattern suffices for it;
``"algorithm"``
    the deterministic algorithm with all its parameters: a candidate survives when its optimum is the
    pattern.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from cellguard._attack_options import COUNT_KNOWLEDGE, MAX_NODES
from cellguard._engine.counts import twoway
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.attackers.public import add_public_knowledge
from cellguard.attacks.counts import (
    CountAttack,
    CountRule,
    Grid,
    find_grid,
    infer_rule,
    match_over_rules,
    require_counts_for_matching,
)
from cellguard.attacks.sampling import sample_matching_candidates
from cellguard.exceptions import InputError, ReleaseError, raise_if_unknown
from cellguard.model.table import Table
from cellguard.release.release import Suppression

__all__ = ["MatchingAttack", "matching_attack"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchingAttack(CountAttack):
    """What the attacker learned about the suppressed cells, one entry each in the table's order.

    Confidential: this is what an attacker can compute about hidden cells from the release. `lower` and `upper` are the
    effective intervals from outside: it is proven that no survivor has a smaller or a greater value.
    """

    knows: str
    """How much of the rule the attacker uses: rule, mechanism or algorithm."""
    feasible_lower: FloatArray = field(repr=False)
    """Feasibility intervals: what the margins and the published cells alone leave open."""
    feasible_upper: FloatArray = field(repr=False)
    """Their upper ends."""
    inner_lower: FloatArray = field(repr=False)
    """Effective intervals from inside: the smallest value of a survivor that was found; NaN without one."""
    inner_upper: FloatArray = field(repr=False)
    """The greatest value of a survivor that was found."""
    exact: bool
    """Whether the inner and outer ends agree, so that the intervals are exact."""
    approach: str
    """``"enumeration"`` of all candidates, or ``"sampling"`` of some."""
    work: int
    """Nodes or candidates that were tried."""
    rules: tuple[CountRule, ...] = ()
    """With secret parameters: the rules that could have led to the pattern, the true one among them."""
    seconds: float
    """How long it took."""

    @property
    def safe(self) -> BoolArray:
        """Sensitive cells that survivors prove to be as wide as the rule promises."""
        return np.asarray(self.primary & (self.inner_upper - self.inner_lower >= self.rule.width))

    @property
    def disclosed(self) -> BoolArray:
        """Sensitive cells whose count the attacker knows exactly."""
        return np.asarray(self.primary & (self.width == 0))

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line: numbers of cells, no cell's value."""
        primary, unsafe, safe = (int(mask.sum()) for mask in (self.primary, self.unsafe, self.safe))
        widths = self.width[self.unsafe].astype(int)
        return {
            "method": "match",
            "knows": self.knows,
            "approach": self.approach,
            "exact": self.exact,
            "suppressed": len(self.cells),
            "primary": primary,
            "unsafe": unsafe,
            "safe": safe,
            "undecided": primary - unsafe - safe,
            "disclosed": int(self.disclosed.sum()),
            "unsafe_share": unsafe / primary if primary else 0.0,
            "widths_of_unsafe": np.bincount(widths, minlength=self.rule.width).tolist(),
            "required_width": self.rule.width,
            "work": self.work,
            "seconds": self.seconds,
        } | ({"rules": len(self.rules)} if self.rules else {})

    def candidates(self, limit: int = 100_000) -> IntArray:
        """Return the tables that agree with what is published, one row of suppressed cells each.

        Return at most `limit`; raise an error for a table that is not two-way.
        """
        grid = _require_grid_to_attack(self.suppression)
        hidden = grid.restrict_pattern(self.suppression.suppressed)
        return grid.expand_counts(twoway.enumerate_candidate_tables(grid.counts, hidden, limit), hidden)

    def count_candidates(self, limit: int = 10**12) -> int:
        """Return the number of candidates; if it reaches `limit`, it is a lower bound."""
        grid = _require_grid_to_attack(self.suppression)
        return twoway.number_of_count_tables(grid.counts, grid.restrict_pattern(self.suppression.suppressed), limit)


def matching_attack(
    suppression: Suppression,
    rule: CountRule | None = None,
    *,
    knows: str | None = None,
    cells: str = "all",
    limit: int = MAX_NODES,
    algorithm: Callable[[Table], BoolArray] | None = None,
    samples: int = 200,
    seed: int = 0,
    secret: bool = False,
) -> MatchingAttack:
    """Attack a suppressed frequency table with knowledge of how it was suppressed.

    For a two-way table with published margins, all candidates are considered and the intervals are exact; only
    what is published is used. For any other table, or with your own algorithm, all candidates are tried if there
    are at most `samples`, and the intervals are exact too. If there are more, only some are tried, beginning with
    the true one: survivors bound the intervals from inside, the feasibility intervals bound them from outside, and
    nothing is exact.

    Parameters
    ----------
    suppression
        The suppression of a frequency table.
    rule
        The algorithm and its parameters; by default what the suppression was made with, or what the
        table's sensitive cells and levels show.
    knows
        ``"rule"``, ``"mechanism"`` or ``"algorithm"`` (see the module); by default the mechanism for a
        suppression made with ``resist="matching"``, otherwise the algorithm.
    cells
        ``"all"`` suppressed cells, or only the ``"primary"`` ones.
    limit
        Nodes of the search. Ends of intervals that are not settled by then keep what is proven, and the attack is
        not exact.
    algorithm
        The algorithm itself, from a table to the cells it suppresses, if the rule alone does not determine it: for
        tables that are not two-way, or for an algorithm other than the optimum.
    samples, seed
        How many candidates are tried if not all are considered at once, and which.
    secret
        The attacker knows neither the minimum frequency nor the width, and tries all possible values
        (minami2019 section 2.5); `rules` has those that remain. For two-way tables; `limit` applies to each.

    Examples
    --------
    >>> from cellguard import examples
    >>> attack = matching_attack(examples.minami2019_table1(k=0), CountRule(minimum=5, width=8), knows="mechanism")
    >>> attack.candidates().tolist()[0], attack.count_candidates()
    ([14, 9, 9, 0], 10)
    >>> attack.summary()["unsafe"]
    0
    """
    begin = time.perf_counter()
    suppression = replace(suppression, table=add_public_knowledge(suppression.table))
    rule = _get_rule(suppression, rule)
    knows = ("mechanism" if "resist" in suppression.options else "algorithm") if knows is None else knows
    raise_if_unknown("knows", knows, COUNT_KNOWLEDGE)
    raise_if_unknown("cells", cells, ("all", "primary"))
    _check_attacked_pattern(suppression, rule)
    grid = None if algorithm is not None else find_grid(suppression.table, suppression.suppressed)
    if grid is None and secret:
        raise InputError("secret parameters are tried only for two-way tables with published margins, by their rule.")
    if grid is None:
        intervals = _match_tried_candidates(suppression, rule, knows, algorithm, samples, seed)
    else:
        _check_rule_of_attack(suppression, rule, grid, knows, limit)
        intervals = _match_all_candidates(suppression, rule, grid, _Listing(knows, cells, limit, secret))
    return MatchingAttack(
        suppression=suppression,
        rule=rule,
        knows=knows,
        cells=np.flatnonzero(suppression.suppressed),
        seconds=time.perf_counter() - begin,
        **intervals,
    )


class _Listing(NamedTuple):
    """How to iterate over all candidates of a two-way table."""

    knows: str
    cells: str
    limit: int
    secret: bool


def _match_all_candidates(suppression: Suppression, rule: CountRule, grid: Grid, asked: _Listing) -> dict[str, Any]:
    """Return the intervals over all candidates of a two-way table."""
    knows, cells, limit, secret = asked
    pattern, law = grid.restrict_pattern(suppression.suppressed), rule.build_law(grid)
    wanted = np.flatnonzero(pattern if cells == "all" else pattern & grid.restrict_pattern(suppression.table.sensitive))
    low, high = twoway.compute_feasible_intervals(grid.counts, pattern)
    how = {"rule": "safe", "mechanism": "minimal", "algorithm": "optimal"}[knows]
    rules: list[CountRule] = []
    if secret:
        rules, found = match_over_rules(grid, pattern, rule, how, limit)
    else:
        found = twoway.compute_effective_intervals(grid.counts, pattern, law, survive=how, limit=limit, cells=wanted)
    ends = {
        "feasible_lower": low, "feasible_upper": high, "lower": found.low, "upper": found.high,
        "inner_lower": found.inner_low, "inner_upper": found.inner_high,
    }  # fmt: skip
    out = {name: grid.expand_counts(end.astype(np.float64), pattern) for name, end in ends.items()}
    unseen = out["inner_lower"] > out["inner_upper"]
    out["inner_lower"][unseen] = out["inner_upper"][unseen] = np.nan
    return out | {
        "exact": found.finished and cells == "all",
        "approach": "enumeration",
        "work": found.work,
        "rules": tuple(rules),
    }


def _match_tried_candidates(
    suppression: Suppression,
    rule: CountRule,
    knows: str,
    algorithm: Callable[[Table], BoolArray] | None,
    samples: int,
    seed: int,
) -> dict[str, Any]:
    """Return the intervals of any table, from inside and outside."""
    if knows == "algorithm" and algorithm is None:
        raise InputError(
            f"{suppression.table.name}: not a two-way table with published margins; the rule alone does not say "
            "how it was suppressed.",
            hint="give the algorithm, a function from a table to its suppressed cells; or knows='mechanism' or 'rule'.",
        )
    if samples < 1:
        raise InputError(f"samples {samples}: at least 1 is needed.")
    found = sample_matching_candidates(suppression, rule, knows, algorithm, samples=samples, seed=seed)
    if not found.survived:
        raise _check_applicable(suppression, rule, knows)
    return {
        "feasible_lower": found.low,
        "feasible_upper": found.high,
        "lower": found.inner_low if found.complete else found.low,
        "upper": found.inner_high if found.complete else found.high,
        "inner_lower": found.inner_low,
        "inner_upper": found.inner_high,
        "exact": found.complete,
        "approach": "enumeration" if found.complete else "sampling",
        "work": found.tried,
    }


# ---------------------------------------------------------------- what is refused


def _get_rule(suppression: Suppression, rule: CountRule | None) -> CountRule:
    if not getattr(suppression, "withholds_cells", False):
        raise InputError(
            f"the matching attack is for suppressions, not for {type(suppression).__name__}.",
            hint="cg.attack has the scenarios against adjusted tables.",
        )
    suppression._require_published()
    require_counts_for_matching(suppression.table)
    if rule is not None:
        if not isinstance(rule, CountRule):
            raise InputError(f"rule: a CountRule is needed, not {type(rule).__name__}.")
        return rule
    made_with = suppression.options.get("rule")
    return CountRule(**made_with) if isinstance(made_with, dict) else infer_rule(suppression.table)


def _require_grid_to_attack(suppression: Suppression) -> Grid:
    grid = find_grid(suppression.table, suppression.suppressed)
    if grid is None:
        raise InputError(
            f"{suppression.table.name}: not a two-way table with published margins.",
            hint="candidates of other tables are tried, not listed.",
        )
    return grid


def _check_attacked_pattern(suppression: Suppression, rule: CountRule) -> None:
    """Refuse a pattern that shows a sensitive cell, and a rule whose sensitive cells are not those of the table."""
    table = suppression.table
    judged = table.inner & ~table.fixed
    small = judged & rule.sensitive(table.values)
    shown = (small | (table.sensitive & ~table.fixed)) & ~suppression.suppressed
    if shown.any():
        raise ReleaseError(
            f"{table.label(int(np.argmax(shown)))}: the cell is sensitive, but published.",
            hint="the pattern must hide its primary cells; is the minimum frequency of the rule right?",
        )
    other = judged & (small != table.sensitive)
    if other.any():
        raise InputError(
            f"{table.label(int(np.argmax(other)))}: the rule and the table disagree on whether it is sensitive.",
            hint="give the rule by which the table's sensitive cells were chosen.",
        )


def _check_rule_of_attack(suppression: Suppression, rule: CountRule, grid: Grid, knows: str, limit: int) -> None:
    """Refuse a rule by which the table would not have been suppressed like this."""
    if knows == "mechanism" and suppression.details.get("decoys"):
        return  # other cells were protected too, so a part of the pattern may suffice
    law, pattern = rule.build_law(grid), grid.restrict_pattern(suppression.suppressed)
    if knows == "algorithm":
        optimum, nodes = twoway.find_optimal_pattern(grid.counts, law, limit=limit)
        same = nodes > limit or (optimum is not None and np.array_equal(optimum, pattern))
    else:
        same = twoway.is_safe_for_counts(grid.counts, pattern, law)
        same = same and (knows == "rule" or twoway.is_minimal_for_counts(grid.counts, pattern, law))
    if not same:
        raise _check_applicable(suppression, rule, knows)


def _check_applicable(suppression: Suppression, rule: CountRule, knows: str) -> InputError:
    hints = {
        "rule": f"a sensitive cell is narrower than {rule.width}: was another width required?",
        "mechanism": "a part of the pattern would suffice: it is not the cheapest under any weights.",
        "algorithm": "its optimum is another pattern: give the rule, loss and order that made the release.",
    }
    return InputError(f"{suppression.table.name}: the rule does not reproduce the pattern.", hint=hints[knows])

from __future__ import annotations

import doctest
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard import examples, generate
from cellguard._engine.counts import twoway
from cellguard.attacks.counts import find_grid, infer_rule
from cellguard.attacks.weighing import attack_by_weighing
from cellguard.exceptions import InputError, ReleaseError
from cellguard.methods.suppress.resist import (
    SPREADS,
    _PublicTest,
    draw_random_costs,
    suppress_against_matching,
    suppress_counts_optimally,
)
from cellguard.release.release import Status, Suppression

RULE = cg.CountRule(minimum=5, width=8)


def suppressed(table, cells):
    hidden = np.zeros(table.n_cells, bool)
    hidden[cells] = True
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden)


def some_tables(size, n):
    found = (generate.frequency(seed=seed, rows=size, columns=size) for seed in range(10 * n))
    chosen = [t for t in found if t.sensitive.any() and suppress_counts_optimally(t, RULE).published][:n]
    assert len(chosen) == n
    return chosen


# ---------------------------------------------------------------- example 2 of section 3.2


def orders(release):
    """Orders under which the rule gives the pattern of the paper's example."""
    for order in range(200):
        rule = cg.CountRule(minimum=5, width=8, order=order)
        if np.array_equal(suppress_counts_optimally(release.table, rule).suppressed, release.suppressed):
            yield rule


@pytest.mark.parametrize("k", range(10))
def test_example_2_has_the_candidates_of_the_paper(k):
    attack = cg.matching_attack(examples.minami2019_table1(k), RULE, knows="rule")
    expected = [[14 + i, 9 - i, 9 - i, i] for i in range(10)]
    assert sorted(attack.candidates().tolist()) == expected
    assert attack.count_candidates() == 10
    assert attack.feasible_lower.tolist() == [14, 0, 0, 0]
    assert attack.feasible_upper.tolist() == [23, 9, 9, 9]


def test_example_2_is_narrowed_by_every_order_that_gives_its_pattern():
    release = examples.minami2019_table1(0)
    rules = list(orders(release))
    assert rules
    for rule in rules:
        attack = cg.matching_attack(release, rule)
        survivors = [
            y for y in range(10) if np.array_equal(
                suppress_counts_optimally(examples.minami2019_table1(y).table, rule).suppressed, release.suppressed
            )
        ]  # fmt: skip
        assert (attack.lower[3], attack.upper[3]) == (min(survivors), max(survivors))
        assert (attack.lower[0], attack.upper[0]) == (14 + min(survivors), 14 + max(survivors))


def test_example_1_has_the_range_of_the_paper():
    rule = cg.CountRule(minimum=10, width=10)
    attack = cg.matching_attack(examples.minami2019_figure2(), rule, knows="rule")
    assert (attack.feasible_lower[0], attack.feasible_upper[0]) == (0, 17)


# ---------------------------------------------------------------- the attack


def test_attackers_who_know_more_learn_more():
    for table in some_tables(5, 12):
        release = suppress_counts_optimally(table, RULE)
        rule, mechanism, algorithm = (
            cg.matching_attack(release, RULE, knows=k) for k in ("rule", "mechanism", "algorithm")
        )
        for less, more in ((rule, mechanism), (mechanism, algorithm)):
            assert (less.lower <= more.lower).all()
            assert (less.upper >= more.upper).all()
        assert (rule.feasible_lower <= rule.lower).all()
        truth = table.values[algorithm.cells]
        assert ((algorithm.lower <= truth) & (truth <= algorithm.upper)).all()
        assert algorithm.exact
        assert (algorithm.safe | algorithm.unsafe)[algorithm.primary].all()


def test_deterministic_suppression_leaks_about_half_of_16_cells():
    attacks = [cg.matching_attack(suppress_counts_optimally(t, RULE), RULE) for t in some_tables(4, 60)]
    unsafe, primary = (sum(int(getattr(a, name).sum()) for a in attacks) for name in ("unsafe", "primary"))
    assert 0.36 <= unsafe / primary <= 0.60  # the paper: 0.46


def test_a_known_lower_bound_narrows():
    table = some_tables(4, 1)[0]
    inner = ~table.fixed
    raised = cg.Table.from_leaves(
        {"row": [f"r{i}" for i in range(4)], "column": [f"c{i}" for i in range(4)]},
        (table.values[inner] + 1).reshape(4, 4), weights=1.0, integer=True, lb=0.0,
    )  # fmt: skip
    raised = raised.with_(
        lb=np.where(inner, 1.0, 0.0), fixed=table.fixed, sensitive=table.sensitive, sliding=table.sliding
    )
    one = cg.matching_attack(suppress_counts_optimally(table, RULE), RULE)
    other_rule = cg.CountRule(minimum=6, width=8)
    other = cg.matching_attack(suppress_counts_optimally(raised, other_rule), other_rule)
    assert np.array_equal(one.lower + 1, other.lower)
    assert np.array_equal(one.upper + 1, other.upper)


def test_limit_gives_outer_bounds_and_says_so():
    release = suppress_counts_optimally(some_tables(6, 5)[-1], RULE)
    full, cut = cg.matching_attack(release, RULE), cg.matching_attack(release, RULE, limit=3)
    assert full.exact
    assert not cut.exact
    assert (cut.lower <= full.lower).all()
    assert (cut.upper >= full.upper).all()


def test_rule_is_taken_from_the_release_or_the_table():
    table = some_tables(4, 1)[0]
    rule = cg.CountRule(minimum=5, width=8, order=3)
    assert cg.matching_attack(suppress_counts_optimally(table, rule)).rule == rule
    assert infer_rule(table) == RULE
    with pytest.raises(InputError, match="does not follow"):
        infer_rule(table.with_(sliding=np.zeros(table.n_cells)))


def test_summary_counts_cells_and_shows_no_value():
    attack = cg.matching_attack(suppress_counts_optimally(some_tables(5, 1)[0], RULE), RULE)
    summary = attack.summary()
    assert summary["unsafe"] + summary["safe"] + summary["undecided"] == summary["primary"]
    assert sum(summary["widths_of_unsafe"]) == summary["unsafe"]


# ---------------------------------------------------------------- bad input


def test_pattern_that_shows_a_primary_cell():
    release = suppress_counts_optimally(some_tables(4, 1)[0], RULE)
    hidden = release.suppressed & ~release.primary
    bad = Suppression(table=release.table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden)
    with pytest.raises(ReleaseError, match="sensitive, but published"):
        cg.matching_attack(bad, RULE)


def test_table_of_magnitudes():
    table = cg.Table.from_leaves({"a": ["x", "y"], "b": ["u", "v"]}, [[1.5, 2], [2, 1]])
    bad = suppressed(table, [4, 5, 7, 8])
    with pytest.raises(InputError, match="not a count table"):
        cg.matching_attack(bad, RULE)


def test_rule_that_does_not_reproduce_the_pattern():
    table = some_tables(4, 1)[0]
    release = suppress_counts_optimally(table, RULE)
    everything = suppressed(table, ~table.fixed)
    for knows in ("algorithm", "mechanism"):
        with pytest.raises(InputError, match="does not reproduce the pattern"):
            cg.matching_attack(everything, RULE, knows=knows)
    with pytest.raises(InputError, match="does not reproduce the pattern"):
        cg.matching_attack(release, cg.CountRule(minimum=5, width=10_000), knows="rule")
    with pytest.raises(InputError, match="disagree"):
        cg.matching_attack(everything, cg.CountRule(minimum=1000, width=8))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"knows": "everything"}, "knows"), ({"cells": "some"}, "cells"), ({"rule": cg.MinFrequency(5)}, "CountRule")],
)
def test_wrong_arguments(arguments, message):
    release = suppress_counts_optimally(some_tables(4, 1)[0], RULE)
    with pytest.raises(InputError, match=message):
        cg.matching_attack(release, **arguments)


@pytest.mark.parametrize("changes", [{"minimum": 0}, {"width": -1}, {"width": 1.5}, {"loss": "money"}, {"order": -1}])
def test_wrong_rules(changes):
    with pytest.raises(InputError):
        cg.CountRule(**changes)


def test_release_of_another_kind():
    with pytest.raises(InputError, match="for suppressions"):
        cg.matching_attack(examples.salazar2004_figure2()["round"], RULE)


# ---------------------------------------------------------------- the grid


def test_grid_is_found_whatever_the_order_of_the_cells():
    table = generate.frequency(seed=2, rows=3, columns=4)
    grid = find_grid(table, np.zeros(table.n_cells, bool))
    assert grid.cells.shape == (3, 4)
    assert np.array_equal(grid.counts.ravel(), table.values[~table.fixed])
    shuffle = np.random.default_rng(0).permutation(table.n_cells)
    mixed = cg.Table(
        values=table.values[shuffle], relations=table.relations[:, shuffle], rhs=table.rhs, lb=table.lb, ub=table.ub,
        weights=table.weights, fixed=table.fixed[shuffle], sensitive=table.sensitive[shuffle], lower=table.lower,
        upper=table.upper, sliding=table.sliding[shuffle],
    )  # fmt: skip
    found = find_grid(mixed, np.zeros(table.n_cells, bool))
    assert sorted(found.cells.shape) == [3, 4]
    assert sorted(found.counts.sum(axis=1)) in (sorted(grid.counts.sum(axis=1)), sorted(grid.counts.sum(axis=0)))


def test_no_grid():
    nothing = np.zeros
    cube = generate.cube(sides=(2, 3, 2))
    assert find_grid(cube, nothing(cube.n_cells, bool)) is None
    tree = generate.onehier(seed=1)
    assert find_grid(tree, nothing(tree.n_cells, bool)) is None
    table = generate.frequency(seed=2)
    assert find_grid(table, table.fixed) is None  # a suppressed margin


# ---------------------------------------------------------------- the suppression that resists


@pytest.mark.parametrize("size", [4, 6])
def test_resistant_suppression_keeps_every_width(size):
    for seed, table in enumerate(some_tables(size, 12)):
        release = suppress_against_matching(table, RULE, key=key(seed))
        if not release.published:
            continue
        attack = cg.matching_attack(release, RULE, knows="mechanism") if not release.details["decoys"] else None
        assert release.audit().safe
        assert attack is None or attack.safe[attack.primary].all()
        assert release.details["certificate"]["narrowest"] >= 8


def test_resistant_suppression_is_the_same_for_the_same_key_only():
    tables = some_tables(6, 6)
    pairs = [[suppress_against_matching(t, RULE, key=key(seed)).suppressed for seed in (1, 1, 2)] for t in tables]
    assert all(np.array_equal(one, again) for one, again, _ in pairs)
    assert any(not np.array_equal(one, other) for one, _, other in pairs)
    assert (
        suppress_against_matching(tables[0], RULE).options["key"]
        != suppress_against_matching(tables[0], RULE).options["key"]
    )


def test_resistant_suppression_does_not_publish_which_cells_are_primary(tmp_path):
    release = suppress_against_matching(some_tables(4, 1)[0], RULE, key=key(1))
    release.save(tmp_path / "out.csv")
    text = (tmp_path / "out.csv").read_text()
    assert "primary" not in text
    assert "withheld" in text
    release.save(tmp_path / "asked.csv", mark_primary=True)
    assert (tmp_path / "asked.csv").read_text() == text


def counted(inner, minimum, width):
    """Return a two-way table of counts with the rule's sensitive cells."""
    inner = np.asarray(inner)
    codes = {"row": [str(i) for i in range(len(inner))], "column": [str(j) for j in range(inner.shape[1])]}
    table = cg.Table.from_leaves(codes, inner.astype(float), weights=1.0, integer=True)
    leaf = (table.coordinates > 0).all(axis=1)
    sensitive = leaf & (table.values < minimum)
    sliding = np.where(sensitive, float(width), 0.0)
    return table.with_(sensitive=sensitive, sliding=sliding, fixed=~leaf, known_zeros=False)


def test_random_weights_never_overflow():
    """Weights that grow without a limit do not fit whole numbers: this seed drew one that became negative."""
    table = counted([[2, 4, 1], [0, 2, 1], [4, 0, 5]], 2, 3)
    release = suppress_against_matching(table, cg.CountRule(minimum=2, width=3), key=key(1177))
    assert release.published or release.status is Status.TIME_LIMIT
    grid = find_grid(table, np.zeros(table.n_cells, bool))
    for seed in range(200):  # the generator that drew the weight, by its own seeds
        law = draw_random_costs(cg.CountRule(minimum=2, width=3), grid, _LongTail(seed), SPREADS[-1])
        assert law.base.min() > 0
        assert float(law.base.astype(float).sum()) < 2.0**62


class _LongTail:
    """Draw exponential numbers ten times as large as usual: one in 200 draws of nine is always far out."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def exponential(self, size):
        return 10.0 * self.rng.exponential(size=size)


@pytest.mark.parametrize("loss", ["cells", "counts"])
def test_random_weights_can_make_any_minimal_pattern_the_cheapest(loss):
    """What the argument needs: outside a pattern the largest weight, inside the smallest, in whole numbers."""

    class Extreme:
        def __init__(self, outside):
            self.outside = outside

        def exponential(self, size):
            return np.where(self.outside, 1e3, 0.0).reshape(size)

    table = counted([[3, 40, 1, 9], [0, 2, 600, 7], [4, 17, 5, 30], [8, 1, 12, 2]], 5, 4)
    rule = cg.CountRule(minimum=5, width=4, loss=loss)
    grid = find_grid(table, np.zeros(table.n_cells, bool))
    found = set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        law = draw_random_costs(rule, grid, rng, 1.5)
        pattern, _ = twoway.find_optimal_pattern(grid.counts, law)
        assert twoway.is_minimal_for_counts(grid.counts, pattern, law)
        for spread in SPREADS:
            chosen = draw_random_costs(rule, grid, Extreme(~pattern), spread)
            assert chosen.base.min() > 0
            assert float(chosen.base.astype(float).sum()) < 2.0**62
            again, _ = twoway.find_optimal_pattern(grid.counts, chosen)
            assert (again == pattern).all()
        found.add(pattern.tobytes())
    assert len(found) > 1


def test_counts_of_very_different_sizes_are_refused_not_rounded_away():
    large = 4 * 10**6
    table = counted(
        [[1, large, 7, 9, 8], [large, 2, 5, 6, 7], [9, 8, large, 7, 5], [4, 5, 6, 2, 9], [8, 9, 1, 5, 7]], 3, 2
    )
    with pytest.raises(InputError, match="sizes too different"):
        suppress_against_matching(table, cg.CountRule(minimum=3, width=2, loss="counts"), key=key(1))


def test_a_table_without_sensitive_counts_is_published_whole():
    """The test of an empty pattern found no survivor, and four cells were withheld for no reason."""
    table = counted([[9, 15, 19, 8], [30, 15, 15, 10], [12, 7, 6, 13], [17, 14, 12, 9]], 5, 8)
    release = suppress_against_matching(table, RULE, key=key(1))
    assert release.published
    assert not release.suppressed.any()
    assert release.details["decoys"] == 0


def test_patterns_with_decoys_keep_every_width_over_tables_for_which_they_are_minimal():
    """A pattern drawn with decoys was minimal for no table at all, and passed because nothing was tested."""
    checked = 0
    for seed in (275, 1118, 1404, 1420, 1520, 1525, 1799, 1881, *range(100, 160)):
        rng = np.random.default_rng(seed)
        rows, columns = rng.integers(3, 5), rng.integers(3, 5)
        inner = rng.integers(0, rng.integers(3, 9), (rows, columns))
        minimum, width = int(rng.integers(1, 4)), int(rng.integers(2, 5))
        table, rule = counted(inner, minimum, width), cg.CountRule(minimum=minimum, width=width)
        release = suppress_against_matching(table, rule, key=key(seed), draws=3) if table.sensitive.any() else None
        if release is None or not release.published:
            continue
        grid = find_grid(table, release.suppressed)
        pattern, law = grid.restrict_pattern(release.suppressed), rule.build_law(grid)
        if twoway.number_of_count_tables(grid.counts, pattern, 1000) >= 1000:
            continue
        minimal = [
            y
            for y in twoway.enumerate_candidate_tables(grid.counts, pattern, 1000)
            if twoway.is_safe_for_counts(y, pattern, law) and twoway.is_minimal_for_counts(y, pattern, law)
        ]
        assert minimal, f"seed {seed}"
        assert (np.ptp(np.array(minimal), axis=0)[law.find_sensitive(grid.counts)] >= width).all(), f"seed {seed}"
        checked += 1
    assert checked >= 5


@pytest.mark.parametrize(
    ("width", "inner", "pattern"),
    [
        (4, [[1, 1, 5, 0], [0, 2, 1, 5], [4, 3, 2, 3]], [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 0]]),
        (
            4,
            [[2, 0, 3, 2], [1, 3, 4, 4], [4, 2, 2, 4], [4, 4, 1, 0]],
            [[0, 1, 1, 1], [0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 1, 1]],
        ),
        (3, [[2, 0, 3], [4, 2, 3], [2, 2, 0], [4, 4, 1]], [[0, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 1]]),
    ],
)
def test_a_pattern_with_decoys_fails_where_a_truly_sensitive_cell_is_sensitive_in_no_survivor(width, inner, pattern):
    """Found among 76,000 patterns drawn with decoys: the test without decoys accepts these, and a cell is too narrow."""
    rule, withheld = cg.CountRule(minimum=1, width=width), np.array(pattern, bool)
    table = counted(inner, 1, width)
    grid = find_grid(table, np.zeros(table.n_cells, bool))
    law = rule.build_law(grid)
    minimal = np.array(
        [
            y
            for y in twoway.enumerate_candidate_tables(grid.counts, withheld, 1000)
            if twoway.is_safe_for_counts(y, withheld, law) and twoway.is_minimal_for_counts(y, withheld, law)
        ]
    )
    narrow = law.find_sensitive(grid.counts) & (np.ptp(minimal, axis=0) < width)
    assert narrow.any()
    assert (minimal[:, narrow] >= rule.minimum).all()
    test = _PublicTest(told=True, limit=200_000)
    assert test.build(grid, withheld, rule).passed
    assert not test.build(grid, withheld, rule, with_decoys=True).passed


def test_patterns_drawn_with_decoys_get_the_stricter_test(monkeypatch):
    """Whatever pattern is drawn, the public test is told whether decoys were used."""
    asked = []

    def refuse(self, grid, pattern, rule, *, with_decoys=False):
        asked.append(with_decoys)
        return twoway.check_widths(grid.counts, pattern, rule.build_law(grid), limit=1)._replace(passed=False)

    monkeypatch.setattr(_PublicTest, "build", refuse)
    table = counted([[2, 0, 3], [4, 2, 3], [2, 2, 0]], 1, 3)
    assert not suppress_against_matching(table, cg.CountRule(minimum=1, width=3), key=key(1), draws=2).published
    plain = 2 * len(SPREADS)
    assert asked[:plain] == [False] * plain
    assert asked[plain:]
    assert all(asked[plain:])


def test_suppress_gives_the_optimum_of_a_count_table_and_resists_when_asked():
    table = some_tables(5, 1)[0]
    release = cg.suppress(table)
    assert release.status is Status.OPTIMAL
    assert release.audit().safe
    assert cg.matching_attack(release).knows == "algorithm"
    secret = cg.suppress(table, resist="matching")
    assert secret.audit().safe
    assert isinstance(secret.options["key"], cg.Key)
    attack = cg.matching_attack(secret)
    assert attack.knows == "mechanism"
    assert attack.safe[attack.primary].all()
    with pytest.raises(InputError, match="resist 'magic'"):
        cg.suppress(table, resist="magic")
    with pytest.raises(InputError, match="two-way"):
        cg.suppress(generate.cube(sides=(2, 3, 2), threshold=2).with_(known_zeros=False), resist="matching")


def test_table_that_no_pattern_protects():
    table = cg.Table.from_leaves({"a": ["x", "y"], "b": ["u", "v"]}, [[1, 2], [2, 1]], weights=1.0)
    inner = np.zeros(table.n_cells, bool)
    inner[[4, 5, 7, 8]] = True
    table = table.with_(sensitive=inner, sliding=np.where(inner, 2.0, 0.0), fixed=~inner)
    assert suppress_counts_optimally(table, RULE).status is Status.INFEASIBLE
    assert suppress_against_matching(table, RULE).status is Status.INFEASIBLE


def test_attack_by_weighing_learns_more_than_one_who_does_not_know():
    releases = [suppress_against_matching(t, RULE, key=key(1)) for t in some_tables(4, 20)]
    releases = [r for r in releases if r.published]
    knowing = sum(int(attack_by_weighing(r, RULE, draws=40, sample=200).unsafe.sum()) for r in releases)
    ignorant = sum(int(attack_by_weighing(r, RULE, knows="rule", sample=200).unsafe.sum()) for r in releases)
    assert ignorant < knowing


# ---------------------------------------------------------------- tables whose candidates cannot be listed


def frequency_cube(seed=0, sides=(3, 3, 2)):
    """A three-way table with published margins, suppressed so that every small count keeps a width of 3."""
    rng = np.random.default_rng(seed)
    leaves = np.abs(np.rint(rng.normal(12, 8, sides)))
    table = cg.Table.from_leaves(
        {f"d{k}": [f"{k}{i}" for i in range(n)] for k, n in enumerate(sides)}, leaves, weights=1.0, integer=True
    )
    inner = (table.coordinates > 0).all(axis=1)
    small = inner & (table.values < 4)
    return table.with_(sensitive=small, sliding=np.where(small, 3.0, 0.0), fixed=~inner)


CUBE_RULE = cg.CountRule(minimum=4, width=3)


def cube_release():
    for seed in range(20):
        table = frequency_cube(seed)
        if table.sensitive.any():
            release = cg.suppress(table, method="heuristic", time_limit_s=10, rounds=2)
            if release.published:
                return release
    raise AssertionError


def test_sampling_bounds_the_intervals_of_a_cube_from_both_sides():
    release = cube_release()
    everything = cg.matching_attack(release, CUBE_RULE, knows="rule", samples=3000)
    assert (everything.approach, everything.exact) == ("enumeration", True)
    some = everything.work // 2
    attack = cg.matching_attack(release, CUBE_RULE, knows="rule", samples=some, seed=1)
    assert attack.approach == "sampling"
    assert (attack.inner_lower >= everything.lower).all()
    assert (attack.inner_upper <= everything.upper).all()
    assert not attack.exact
    assert (attack.lower <= attack.inner_lower).all()
    assert (attack.inner_upper <= attack.upper).all()
    assert (attack.inner_upper > attack.inner_lower).any()
    truth = release.table.values[attack.cells]
    assert ((attack.inner_lower <= truth) & (truth <= attack.inner_upper)).all()
    assert attack.safe[attack.primary].all()
    again = cg.matching_attack(release, CUBE_RULE, knows="rule", samples=some, seed=1)
    assert np.array_equal(attack.inner_upper, again.inner_upper)
    with pytest.raises(InputError, match="not a two-way table"):
        attack.candidates()


def test_sampling_with_the_algorithm_itself():
    release = cube_release()

    def algorithm(table):
        return cg.suppress(table, method="heuristic", time_limit_s=10, rounds=2).suppressed

    known = cg.matching_attack(release, CUBE_RULE, algorithm=algorithm, samples=8)
    rule = cg.matching_attack(release, CUBE_RULE, knows="rule", samples=300)
    assert (known.inner_upper <= rule.upper).all()
    with pytest.raises(InputError, match="does not reproduce"):
        cg.matching_attack(release, CUBE_RULE, algorithm=lambda t: np.ones(t.n_cells, bool), samples=5)
    with pytest.raises(InputError, match="rule alone does not say"):
        cg.matching_attack(release, CUBE_RULE, knows="algorithm")


@pytest.mark.parametrize("knows", ["rule", "mechanism", "algorithm"])
def test_sampling_agrees_with_enumeration_where_both_are_possible(knows):
    for table in some_tables(4, 6):
        release = suppress_counts_optimally(table, RULE)
        exact = cg.matching_attack(release, RULE, knows=knows)

        def algorithm(t):
            return suppress_counts_optimally(t, RULE).suppressed

        few = exact.count_candidates() <= 60
        found = cg.matching_attack(release, RULE, knows=knows, algorithm=algorithm, samples=60)
        assert (found.approach, found.exact) == (("enumeration", True) if few else ("sampling", False))
        assert (found.inner_lower >= exact.lower).all()
        assert (found.inner_upper <= exact.upper).all()
        assert np.array_equal(found.lower, exact.lower if few else exact.feasible_lower)
        assert np.array_equal(found.upper, exact.upper if few else exact.feasible_upper)


def test_examples_of_the_manual_run():
    page = Path(__file__).resolve().parents[3] / "docs" / "methods" / "matching.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0


# ---------------------------------------------------------------- algorithm 1 for any function, secret parameters


def test_algorithm_1_for_any_suppression_function_where_candidates_are_few():
    """Every candidate is suppressed by the function, as in lines 10 to 22; nothing is left undecided."""
    release = examples.minami2019_table1(4)

    def odd_one_out(table):  # a silly algorithm: another pattern when the first suppressed cell is odd
        odd = table.values[np.flatnonzero(release.suppressed)[0]] % 2 == 1
        return release.suppressed if not odd else ~release.suppressed

    attack = cg.matching_attack(release, RULE, algorithm=odd_one_out)
    assert (attack.approach, attack.exact) == ("enumeration", True)
    assert attack.lower.tolist() == [14, 1, 1, 0]
    assert attack.upper.tolist() == [22, 9, 9, 8]
    assert int(attack.primary.sum()) == int(attack.unsafe.sum() + attack.safe.sum())


def test_algorithm_1_for_any_suppression_function_with_a_thousand_candidates():
    """`samples` says how many candidates are tried; where there are no more the intervals are exact."""
    table = generate.frequency(seed=11, rows=4, columns=4)
    release = suppress_counts_optimally(table, RULE)

    def solve(candidate):
        return suppress_counts_optimally(candidate, RULE).suppressed

    tried = cg.matching_attack(release, RULE, algorithm=solve, samples=2000)
    assert (tried.approach, tried.exact) == ("enumeration", True)
    assert tried.count_candidates() > 200
    built_in = cg.matching_attack(release, RULE)
    assert tried.lower.tolist() == built_in.lower.tolist()
    assert tried.upper.tolist() == built_in.upper.tolist()
    assert not cg.matching_attack(release, RULE, algorithm=solve, samples=50).exact


def algorithm_1_as_printed(solutions):
    """Lines 2 to 5 and 14 to 20 of algorithm 1, word for word, for the survivors in their order."""
    least, most = [float("inf")] * len(solutions[0]), [0.0] * len(solutions[0])
    for s in solutions:
        for i in range(len(s)):
            if s[i] < least[i]:
                least[i] = s[i]
            elif s[i] > most[i]:
                most[i] = s[i]
    return np.array(most) - np.array(least)


def test_algorithm_1_as_printed_gives_negative_widths():
    """The first survivor lowers the minimum, and `else if` then never looks at the maximum, which starts at 0."""
    release = examples.minami2019_table1(0)
    rule = next(orders(release))
    survivors = [
        candidate
        for candidate in ([14 + k, 9 - k, 9 - k, k] for k in range(10))
        if np.array_equal(
            suppress_counts_optimally(examples.minami2019_table1(candidate[3]).table, rule).suppressed,
            release.suppressed,
        )
    ]
    assert survivors
    right = np.ptp(np.array(survivors), axis=0)
    # a cell whose values come in falling order: a width of 0 where 9 is right; a single survivor: below 0
    assert algorithm_1_as_printed(survivors).tolist() == [9, 0, 0, 9]
    assert right.tolist() == [9, 9, 9, 9]
    assert (algorithm_1_as_printed(survivors[:1])[:3] < 0).all()
    attack = cg.matching_attack(release, rule)
    assert attack.width.tolist() == right.tolist()  # definition 5, which is what is computed here


def test_secret_parameters_are_tried_one_by_one():
    """The hull over all rules is that of trying every rule on every candidate."""
    release = examples.minami2019_table1(0)
    rule = next(orders(release))
    attack = cg.matching_attack(release, rule, secret=True)
    assert rule in attack.rules
    possible, counts = set(), []
    for minimum in range(1, 9):  # 8 is the smallest published count
        for width in range(1, 10):
            tried = cg.CountRule(minimum=minimum, width=width, order=rule.order)
            for k in range(10):
                table = examples.minami2019_table1(k).table
                small = tried.sensitive(table.values) & ~table.fixed
                counted = table.with_(sensitive=small, sliding=np.where(small, float(width), 0.0))
                found = suppress_counts_optimally(counted, tried)
                if found.published and np.array_equal(found.suppressed, release.suppressed):
                    possible.add(tried)
                    counts.append(table.values[release.suppressed])
    assert set(attack.rules) == possible
    assert attack.lower.tolist() == np.min(counts, axis=0).tolist()
    assert attack.upper.tolist() == np.max(counts, axis=0).tolist()
    known = cg.matching_attack(release, rule)
    assert (attack.lower <= known.lower).all()
    assert (attack.upper >= known.upper).all()
    assert attack.summary()["rules"] == len(possible)


def test_secret_parameters_need_a_two_way_table():
    with pytest.raises(InputError, match="two-way"):
        cg.matching_attack(cube_release(), CUBE_RULE, knows="rule", secret=True)

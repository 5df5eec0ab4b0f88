"""Interval protection against the giant model (baena2018 (9)) solved as one linear program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import cellguard as cg
from builders import key, with_margins
from cellguard._engine.clock import Deadline
from cellguard.methods import limits
from cellguard.release.release import Status

WAYS = ("cuts in a network", "interior point")


@contextmanager
def solved_by(way: str) -> Iterator[None]:
    """Two-dimensional tables are networks; the interior point must agree on them."""
    with pytest.MonkeyPatch.context() as patch:
        if way != WAYS[0]:
            patch.setattr("cellguard._engine.space.network.Network.of", lambda _reduction: None)
        yield


def random_table(rows: int, columns: int, seed: int, *, symmetric: bool, tight: bool) -> cg.Table:
    rng = np.random.default_rng(seed)
    inner = rng.integers(1, 60, (rows, columns)).astype(float)
    full, index, relations = with_margins(inner)
    sensitive = rng.choice(index[:-1, :-1].ravel(), size=min(3, inner.size), replace=False)
    a = full.ravel()
    lower = np.ceil(0.1 * a[sensitive])
    upper = lower if symmetric else np.ceil(0.3 * a[sensitive])
    room = 1.0 + (0.4 if tight else 3.0) * a
    return cg.Table.from_equations(
        a,
        relations,
        lb=np.maximum(a - np.maximum(room, 0.4 * a + 1), 0.0),
        ub=a + np.maximum(room, 0.4 * a + 1),
        sensitive=sensitive,
        lower=np.minimum(lower, a[sensitive]),
        upper=upper,
    )


def giant_model(t: cg.Table) -> float:
    """Least weighted width with one copy of the table per level: widths (u, l), then the movements."""
    n = t.n_cells
    requests, known = [], []
    for attacker in t.attackers:
        need = t.levels(attacker)
        for sign, levels in ((1.0, need.upper), (-1.0, need.lower)):
            requests += [(int(c), sign, level) for c, level in zip(need.cells, levels, strict=True)]
            known += [t.bounds(attacker)] * len(need.cells)
    size = 2 * n + n * len(requests)
    T = t.relations.toarray()
    A_eq = np.zeros((len(requests) * len(T), size))
    A_ub, b_ub = [], []
    for k, (cell, sign, level) in enumerate(requests):
        at = slice(2 * n + k * n, 2 * n + (k + 1) * n)
        A_eq[k * len(T) : (k + 1) * len(T), at] = T
        above, below = np.zeros((n, size)), np.zeros((n, size))
        above[:, at], above[:, :n] = np.eye(n), -np.eye(n)
        below[:, at], below[:, n : 2 * n] = -np.eye(n), -np.eye(n)
        hit = np.zeros((1, size))
        hit[0, 2 * n + k * n + cell] = -sign
        A_ub += [above, below, hit]
        b_ub += [np.zeros(2 * n), np.array([-level])]
    cost = np.concatenate([t.weights, t.weights, np.zeros(n * len(requests))])
    bounds = list(zip(np.zeros(2 * n), np.concatenate([t.ub - t.values, t.values - t.lb]), strict=True))
    for lo, hi in known:
        bounds += list(zip(lo - t.values, hi - t.values, strict=True))
    found = linprog(cost, np.vstack(A_ub), np.concatenate(b_ub), A_eq, np.zeros(len(A_eq)), bounds, method="highs")
    return float(found.fun) if found.status == 0 else float("nan")


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(2, 4),
    columns=st.integers(2, 4),
    seed=st.integers(0, 10**6),
    symmetric=st.booleans(),
    tight=st.booleans(),
    insider=st.booleans(),
)
@pytest.mark.parametrize("way", WAYS)
def test_agrees_with_the_giant_model_and_passes_the_audit(
    way: str, rows: int, columns: int, seed: int, symmetric: bool, tight: bool, insider: bool
) -> None:
    table = random_table(rows, columns, seed, symmetric=symmetric, tight=tight)
    if insider:
        cell = int(np.flatnonzero(~table.sensitive)[seed % 3])
        a = table.values[cell]
        knows = cg.Attacker(name="insider", cells=[cell], lb=[0.9 * a], ub=[1.1 * a])
        table = table.with_(attackers=(*table.attackers, knows))
    best = giant_model(table)
    with solved_by(way):
        release = cg.intervals(table, position="narrowest", gap=1e-4)
    if np.isnan(best):
        assert release.status is Status.INFEASIBLE
        return
    # the interior point may stall before it has proven what it found: then it says so
    assert release.status is Status.OPTIMAL or (way == "interior point" and release.gap < 1e-3)
    assert release.bound <= best * (1 + 1e-7)
    assert best * (1 - 1e-7) <= release.objective <= best * (1 + 1.1e-4) + 1e-6
    assert release.audit().safe
    assert (release.lower >= table.lb).all()
    assert (release.upper <= table.ub).all()


def test_an_attacker_who_knows_more_needs_wider_intervals() -> None:
    table = random_table(3, 3, 5, symmetric=True, tight=False)
    cell = int(table.sensitive_cells[0])
    partner = (cell + 1) if (cell + 1) % 4 != 3 else cell - 1
    a = table.values[partner]
    insider = cg.Attacker(name="insider", cells=[partner], lb=[a - 0.01], ub=[a + 0.01])
    both = table.with_(attackers=(*table.attackers, insider))
    plain, harder = (cg.intervals(t, position="narrowest") for t in (table, both))
    assert harder.audit().safe
    assert harder.objective > plain.objective


def test_sliding_levels_are_met() -> None:
    table = random_table(3, 3, 7, symmetric=False, tight=False)
    sliding = np.where(table.sensitive, 1.5 * (table.lower + table.upper), 0.0)
    release = cg.intervals(table.with_(sliding=sliding))
    assert release.audit().safe
    assert release.bound <= release.objective


def test_random_positions_are_refused_with_a_hint() -> None:
    """The width they drew was the levels times a constant: it told the value."""
    table = random_table(4, 4, 11, symmetric=True, tight=False)
    with pytest.raises(cg.InputError) as refused:
        cg.intervals(table, position="random", seed=3)
    assert "classes" in str(refused.value.hint)


def test_the_narrowest_come_with_a_warning_and_classes_do_not() -> None:
    table = random_table(4, 4, 11, symmetric=True, tight=False)
    assert "classes" in cg.intervals(table, position="narrowest").explanation
    assert cg.intervals(table, key=key(3)).explanation == ""


def test_nothing_to_protect_publishes_the_table() -> None:
    table = cg.Table.from_equations([1, 2, 3], [[2, 0, 1]])
    release = cg.intervals(table)
    assert release.objective == 0
    assert np.array_equal(release.lower, table.values)


def test_a_cell_that_fixed_cells_give_away_is_named() -> None:
    table = cg.Table.from_equations([1, 2, 3], [[2, 0, 1]], sensitive=[0], lower=1, upper=1, fixed=[1, 2])
    release = cg.intervals(table)
    assert release.status is Status.INFEASIBLE
    assert "cell 0" in release.explanation


@pytest.mark.parametrize("wrong", [{"position": "left"}, {"gap": 0}, {"gap": 2.0}])
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    table = cg.Table.from_equations([1, 2, 3], [[2, 0, 1]])
    with pytest.raises(cg.InputError):
        cg.intervals(table, **wrong)


def test_a_sensitive_cell_without_levels_is_not_published_exactly() -> None:
    table = random_table(3, 3, 2, symmetric=True, tight=False)
    none = np.zeros(table.n_cells)
    release = cg.intervals(table.with_(lower=none, upper=none))
    assert (release.upper - release.lower)[table.sensitive].min() > 0
    assert release.audit().safe


def test_small_levels_count_beside_large_ones() -> None:
    """Levels may differ by many orders of magnitude: the smallest must not be lost among the largest."""
    values = np.array([3.0, 4.0, 5.0, 40_000.0, 50_000.0, 60_000.0])
    leaves = np.vstack([values, values[::-1] + 7.0, values + 1.0])
    table = cg.Table.from_leaves(
        {"a": ["x", "y", "z"], "b": [f"c{i}" for i in range(6)]}, leaves, sensitive=[8, 11], lower=0, upper=0
    )
    s = table.sensitive
    table = table.with_(lower=np.where(s, 0.1 * table.values, 0.0), upper=np.where(s, 0.1 * table.values, 0.0))
    assert table.values[s].max() > 1000 * table.values[s].min()
    release = cg.intervals(table)
    assert release.audit().safe


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("levels", [(0.20, 0.20), (0.05, 0.20)])
def test_at_its_limit_the_best_safe_intervals_are_returned_with_an_honest_gap(
    levels: tuple[float, float], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what is begun is finished, and audited, on a busy machine too; nothing more is begun
    monkeypatch.setattr(limits, "_GRACE_S", 60.0)
    monkeypatch.setattr(Deadline, "get_seconds_at_least", lambda deadline, _seconds=0.0: max(60.0, deadline.left))
    table = cg.generate.onehier(1, instance=1).with_levels(*levels)
    with solved_by(way):
        release = cg.intervals(table, position="narrowest", time_limit_s=0.0)
    assert release.status is Status.TIME_LIMIT
    assert np.isfinite(release.objective)
    assert 0.01 < release.gap < 1.0
    assert release.audit().safe


@pytest.mark.parametrize("way", WAYS)
def test_few_open_cells_are_proven_to_be_enough(way: str) -> None:
    """With many degrees of freedom most cells stay closed; the bound holds for all of them."""
    table = cg.generate.onehier(3, rows=14, columns=7, families=3, sensitive=0.1).with_levels(0.05, 0.20)
    with solved_by(way):
        release = cg.intervals(table, position="narrowest")
    assert release.status is Status.OPTIMAL
    best = giant_model(table)
    assert release.bound <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= release.objective <= best * 1.001
    assert release.audit().safe


@pytest.mark.parametrize("way", WAYS)
def test_midpoints_leak_with_symmetric_levels_and_not_with_others_or_by_classes(way: str) -> None:
    """baena2018 table 4. The known bounds are never felt there: so with weights 1/value here."""
    table = cg.generate.onehier(1, rows=30, columns=8, families=3, sensitive=0.1)
    table = table.with_(weights=1.0 / table.values)
    exact = {}
    for levels in ((0.20, 0.20), (0.05, 0.20)):
        for position in ("narrowest", "classes"):
            with solved_by(way):
                release = cg.intervals(table.with_levels(*levels), position=position, key=key(1))
            assert release.audit().safe
            exact[levels, position] = release.details["position"]["at_midpoint"]
    assert exact[(0.20, 0.20), "narrowest"] > 75
    assert exact[(0.05, 0.20), "narrowest"] < 5
    assert exact[(0.20, 0.20), "classes"] < 25


def test_pattern_b_of_salazar2004_figure_2_is_valid_at_levels_1_and_3_and_ours_is_no_worse() -> None:
    from dataclasses import replace

    from cellguard.datasets.examples import salazar2004_figure2

    printed = salazar2004_figure2()["intervals"]
    t = printed.table
    table = t.with_(lower=np.where(t.sensitive, 1.0, 0.0), upper=np.where(t.sensitive, 3.0, 0.0))
    assert cg.audit(replace(printed, table=table)).safe
    assert not cg.audit(printed).safe  # the printed levels of 10 and 12 are not met by the printed intervals
    ours = cg.intervals(table, position="narrowest")
    assert ours.audit().safe
    assert ours.objective <= float(table.weights @ (printed.upper - printed.lower))


def test_ends_are_short_decimal_numbers() -> None:
    table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4], fixed=[2])
    release = cg.intervals(table, position="narrowest")
    assert release.lower.tolist() == [16.0, 46.0, 70.0]
    assert release.upper.tolist() == [24.0, 54.0, 70.0]

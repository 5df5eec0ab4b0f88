"""Senses where only totals answer: the program in the senses alone is the whole problem, or is not used."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cellguard as cg
from cellguard._core.senses import anneal
from cellguard._engine.clock import Deadline
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.directions import Senses
from cellguard._engine.closest.distance import Distance
from cellguard.methods.adjust.senses import compute_slack, needs_of_adjustment


def search_of(table, weights=None):
    need, w = needs_of_adjustment(table), 1.0 / np.maximum(table.values, 1.0) if weights is None else weights
    adjuster = Adjuster(table.relations, table.fixed)
    return Senses(adjuster, compute_slack(table), need.lower, need.upper, Distance.of(table.n_cells, absolute=w))


def generated(seed=3, lower=0.2, upper=0.2, share=0.08):
    return cg.generate.onehier(seed, rows=10, columns=7, families=2, sensitive=share, lower=lower, upper=upper)


@pytest.mark.parametrize("lower", [0.2, 0.05])
def test_it_is_the_whole_problem(lower):
    """Any senses: what the totals say is the distance of the closest table of all."""
    search = search_of(generated(lower=lower))
    totals = search.build_totals_program()
    rng = np.random.default_rng(1)
    for _ in range(6):
        s = rng.choice(np.array([-1, 1], np.int8), len(search.mover))
        assert totals.compute_distance(s > 0) == pytest.approx(search.solve(s)[0], rel=1e-6)


@pytest.mark.parametrize("lower", [0.2, 0.05])
def test_the_best_senses_are_those_of_all_that_are_tried(lower):
    totals = search_of(generated(lower=lower)).build_totals_program()
    every = itertools.product([False, True], repeat=len(totals.own))
    best = min(totals.compute_distance(np.array(each)) for each in every)
    _, value, bound = totals.search(1e-9, Deadline.from_limit(60), seed=1)
    assert value == pytest.approx(best, rel=1e-9)
    assert best * (1 - 1e-6) <= bound <= value


def test_a_search_without_time_still_has_senses_and_a_bound():
    totals = search_of(generated(share=0.3)).build_totals_program()
    rises, value, bound = totals.search(1e-9, Deadline.from_limit(0), seed=1)
    assert totals.compute_distance(rises) == value >= bound > 0


def test_annealing_repeats_itself_and_knows_its_value():
    totals = search_of(generated(share=0.3)).build_totals_program()
    first, second = (totals.search_by_annealing(7, 60.0) for _ in range(2))
    assert (first == second).all()
    H, w = totals.H, totals.weight
    up, value = anneal(
        *(H.indptr.astype(np.int64), H.indices.astype(np.int64), H.data, w, totals.offset, totals.own),
        *((1, 1000), (1.0, 0.1), 1),
    )
    assert totals.fixed + value == pytest.approx(totals.compute_distance(up), rel=1e-9)


def test_a_leaf_that_pays_to_move_is_not_forgotten():
    """A cell that is nearly all of its total, or costs nothing, may carry what others need."""
    table = generated()
    weights = 1.0 / np.maximum(table.values, 1.0)
    leaf = int(np.flatnonzero(~table.sensitive & (table.values < 1000))[-1])
    weights[leaf] = 0.0
    assert search_of(table, weights).build_totals_program() is None


def test_a_total_that_must_choose_or_that_is_bounded_is_not_forgotten():
    table = generated()
    assert (
        search_of(table.with_(ub=np.where(table.sensitive, np.inf, table.values + 1.0))).build_totals_program() is None
    )
    total = int(np.argmax(table.values))
    levels = np.where(np.arange(table.n_cells) == total, 10.0, table.upper)
    marked = table.with_(sensitive=table.sensitive | (levels == 10.0), upper=levels, lower=levels)
    assert search_of(marked).build_totals_program() is None

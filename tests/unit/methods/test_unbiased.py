"""Unbiased rounding: the transition of residues, and its effect on a count table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cellguard as cg
from builders import key
from cellguard.datasets.generate import census
from cellguard.methods.rounding.unbiased import (
    build_first_draws,
    compute_transitions,
    draw_target_table,
    estimate_shares_up,
)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9))
def test_rows_are_probabilities_with_the_right_mean_where_one_exists(inner: list[float]) -> None:
    share = np.concatenate([[0.0], np.sort(inner)])
    P = compute_transitions(share)
    base = len(share)
    assert np.allclose(P.sum(axis=1), 1.0)
    assert (P >= -1e-12).all()
    for k in range(1, base):
        if share[1:].min() <= k / base <= share[1:].max():
            assert P[k] @ share == pytest.approx(k / base)


def test_an_unbiased_algorithm_is_left_alone() -> None:
    share = np.arange(5) / 5
    assert np.allclose(compute_transitions(share), np.eye(5))
    values = np.arange(40.0)
    assert np.array_equal(draw_target_table(values, compute_transitions(share), np.random.default_rng(1)), values)


def test_cells_stay_between_their_multiples_and_multiples_stay() -> None:
    values = np.arange(200.0)
    drawn = draw_target_table(values, build_first_draws(5), np.random.default_rng(2))
    assert np.array_equal(drawn // 5, values // 5)
    assert np.array_equal(drawn[values % 5 == 0], values[values % 5 == 0])
    assert ((drawn % 5 == 0) == (values % 5 == 0)).all()


def test_shares_are_counted_by_residue() -> None:
    values = np.tile([1.0, 1.0, 3.0, 4.0], 5000)
    target = np.tile([1.0, 2.0, 3.0, 4.0], 5000)
    up = np.tile([0.0, 5.0, 5.0, 5.0], 5000)
    share = estimate_shares_up(values, target, up, 5)
    assert share[1, 1] == pytest.approx(0.0, abs=0.01)
    assert min(share[1, 2], share[3, 3], share[4, 4]) == pytest.approx(1.0, abs=0.01)


def test_the_bias_of_a_census_shrinks() -> None:
    table = census(3, wards=4, districts=2)
    options = {"base": 5, "gap": 0.05, "time_limit_s": 120, "weights": "unit"}
    plain = cg.round(table, **options)
    fair = cg.round(table, **options, objective="unbiased", key=key(1))
    assert fair.audit().unsafe == 0
    residue = table.values % 5

    def bias(release: cg.Release) -> float:
        share = [(release.values > table.values)[residue == k].mean() for k in range(1, 5)]
        return float(np.abs(np.array(share) - np.arange(1, 5) / 5).max())

    assert bias(fair) < 0.07 < bias(plain)
    as_printed = cg.round(
        table, **options, objective="unbiased-plain", key=key(1)
    )  # the paper's q: shares of a plain run
    assert as_printed.audit().unsafe == 0
    assert bias(as_printed) < bias(plain) - 0.03
    other = cg.round(table, **options, objective="unbiased", key=key(2))
    assert not np.array_equal(fair.values, other.values)


@pytest.mark.parametrize(
    "wrong",
    [{"objective": "fair"}, {"objective": "unbiased", "shares_up": [0.5]}, {"objective": "unbiased", "base": 0.5}],
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    table = cg.Table.from_equations([1, 2, 3], [[2, 0, 1]])
    with pytest.raises(cg.InputError):
        cg.round(table, **wrong)

"""How far a sensitive cell must be published from the truth: castro2012 (1d), with levels of every kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard.model.attacker import EXTERNAL
from cellguard.model.levels import compute_movement_levels


def table(values=(3, 5, 8), **fields):
    given = {"sensitive": [0], **fields}
    return cg.Table.from_equations(values, [[2, 0, 1]], **given)


def asked(t):
    found = compute_movement_levels(t)
    return found.lower.tolist(), found.upper.tolist()


def test_levels_of_both_sides_are_taken_as_they_are():
    assert asked(table(lower=2, upper=4)) == ([2], [4])


def test_a_side_without_a_level_asks_for_as_much_as_the_other():
    assert asked(table([9, 5, 14], lower=0, upper=4)) == ([4], [4])
    assert asked(table([9, 5, 14], lower=4, upper=0)) == ([4], [4])


def test_a_direction_without_room_is_forbidden():
    assert asked(table(lower=0, upper=4)) == ([np.inf], [4])  # 3 - 4 is below 0
    assert asked(table(lower=2, upper=0, ub=4.0 + np.array([0, 9, 9]))) == ([2], [np.inf])


def test_a_sliding_level_is_split_between_the_sides():
    assert asked(table([9, 5, 14], sliding=6)) == ([3], [3])
    assert asked(table([9, 5, 14], lower=1, upper=2, sliding=6)) == ([2.5], [3.5])
    assert asked(table([9, 5, 14], lower=4, upper=4, sliding=6)) == ([4], [4])


def test_a_sliding_level_goes_where_the_bounds_leave_room():
    assert asked(table([1, 5, 6], sliding=6)) == ([1], [5])
    assert asked(table([0, 5, 5], sliding=6)) == ([np.inf], [6])
    assert asked(table([9, 5, 14], sliding=6, ub=[10.0, 20, 20])) == ([5], [1])


def test_counts_move_by_whole_numbers():
    assert asked(table(integer=True)) == ([1], [1])
    assert asked(table(integer=True, sliding=3)) == ([1], [2])
    assert asked(table(integer=True, lower=1.2, upper=0.4)) == ([2], [1])


def test_a_sensitive_zero_moves_by_what_is_around_it():
    lower, upper = asked(table([0, 5, 5]))
    assert lower == [np.inf]
    assert upper == [0.5]


def test_several_attackers_are_asked_one_by_one():
    other = cg.Attacker(name="other", sensitive=[1], lower=[1], upper=[2])
    t = table(lower=1, upper=1, attackers=(EXTERNAL, other))
    assert compute_movement_levels(t, other).cells.tolist() == [1]
    assert compute_movement_levels(t).cells.tolist() == [0]


# ---------------------------------------------------------------- method, audit and verify say the same


KINDS = {
    "no level": {},
    "sliding": {"sliding": 2},
    "upper only": {"upper": 2},
    "lower only": {"lower": 2},
    "both": {"lower": 1, "upper": 2},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("senses", ["upper", "lower", "key", "optimal", [-1], [1]])
def test_the_truth_is_never_published_for_a_sensitive_cell(kind, integer, senses):
    t = table(integer=integer, **KINDS[kind])
    release = cg.adjust(t, senses=senses, time_limit_s=10)
    assert release.published
    moved = release.values - t.values
    need = compute_movement_levels(t)
    assert moved[0] >= need.upper[0] - 1e-9 or -moved[0] >= need.lower[0] - 1e-9
    assert release.audit().safe
    assert cg.verify(release, []).accepted
    truth = replace(release, values=t.values.copy())
    assert not truth.audit().safe
    assert truth.audit().exact == 1
    assert not cg.verify(truth, []).accepted


def test_minimum_frequency_without_a_measure_moves_the_counts():
    counts = [[1, 9, 12], [8, 2, 11], [10, 12, 2]]
    t = cg.Table.from_leaves({"a": ["x", "y", "z"], "b": ["p", "q", "r"]}, counts, integer=True)
    t = t.apply(cg.MinFrequency(3))
    release = cg.adjust(t)
    assert release.published
    assert (release.values != t.values)[t.sensitive].all()
    assert release.audit().safe


def test_a_cell_without_room_is_named():
    full = table([3, 5, 8], sliding=0.75, lb=[2.75, 0, 0], ub=[3.5, 9, 20])  # all that the bounds leave
    assert cg.adjust(full, senses="lower").published
    stuck = table([3, 5, 8], lower=1, upper=1, fixed=[1, 2])
    release = cg.adjust(stuck)
    assert release.status is cg.Status.INFEASIBLE
    assert "cell 0" in release.explanation

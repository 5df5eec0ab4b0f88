"""Attackers: who knows what, and levels against each of them."""

from __future__ import annotations

import numpy as np
import pytest

from cellguard import Attacker, Table
from cellguard.exceptions import InputError, LevelError, UnknownCodeError
from cellguard.model.attacker import EXTERNAL


@pytest.fixture
def table():
    return Table.from_leaves(
        {"region": ["N", "S"], "sex": ["f", "m"]}, [[30, 40], [50, 7]], sensitive=[4], lower=5, upper=6, sliding=8
    )


def test_a_respondent_knows_his_cell_is_at_least_his_contribution(table):
    firm = Attacker.respondent(table, {"region": "N", "sex": "f"}, 12.0)
    assert firm.name == "respondent in (region=N, sex=f)"
    assert firm.cells.tolist() == [4]
    lo, hi = table.bounds(firm)
    assert lo.tolist() == [0, 0, 0, 0, 12, 0, 0, 0, 0]
    assert np.isinf(hi).all()
    guarded = table.with_(attackers=(EXTERNAL, firm))
    assert guarded.levels(firm).lower.tolist() == [5]


def test_levels_against_a_respondent_are_shares_of_the_others(table):
    firm = Attacker.respondent(table, 4, 12.0, name="firm", levels=(0.5, 1.5))
    levels = table.with_(attackers=(EXTERNAL, firm)).levels(firm)
    assert (levels.cells.tolist(), levels.lower.tolist(), levels.upper.tolist()) == ([4], [9.0], [27.0])
    assert table.levels(EXTERNAL).upper.tolist() == [6]


def test_a_coalition_adds_up_contributions(table):
    both = Attacker.coalition(table, [(4, 10), ({"region": "N", "sex": "m"}, 3), (4, 15)], name="both")
    assert both.cells.tolist() == [4, 5]
    assert both.lb.tolist() == [25, 3]


def test_an_insider_may_know_too_much_for_the_levels(table):
    firm = Attacker.respondent(table, 4, 28.0)
    with pytest.raises(LevelError, match="attacker 'respondent in"):
        table.with_(attackers=(EXTERNAL, firm))


@pytest.mark.parametrize(
    ("cell", "amount", "error", "says"),
    [
        (4, 31.0, InputError, r"contributions to \(region=N, sex=f\) exceed"),
        (4, -1.0, InputError, "is not at least 0"),
        (4, np.nan, InputError, "is not at least 0"),
        (99, 1.0, InputError, "outside"),
        ({"regoin": "N"}, 1.0, UnknownCodeError, "did you mean 'region'"),
        ({"region": "North"}, 1.0, UnknownCodeError, "unknown code 'North'"),
    ],
)
def test_mistakes(table, cell, amount, error, says):
    with pytest.raises(error, match=says) as raised:
        Attacker.respondent(table, cell, amount)
    assert "30" not in str(raised.value)


def test_cells_are_found_by_their_codes(table):
    assert table.cell({}) == 0
    assert table.cell({"sex": "m", "region": "S"}) == 8
    part = Table.from_leaves({"r": ["a"], "s": ["b"]}, [[1]], crossings=["r", ()])
    with pytest.raises(UnknownCodeError, match="does not publish a cell"):
        part.cell({"s": "b"})


def test_bounds_are_the_tighter_of_both(table):
    knows = Attacker(name="x", cells=[1, 2], lb=[-5, 60], ub=[70, np.inf])
    lo, hi = table.bounds(knows)
    assert (lo[1], lo[2], hi[1]) == (0, 60, 70)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"cells": [1], "lb": [1, 2], "ub": [3]}, "equally long"),
        ({"cells": [1, 1], "lb": [1, 2], "ub": [3, 3]}, "named twice"),
        ({"cells": [1], "lb": [4], "ub": [3]}, "not above its ub"),
        ({"cells": [1], "lb": [np.nan], "ub": [3]}, "not above its ub"),
        ({"sensitive": [1, 2], "lower": [1.0]}, "lower needs one finite level"),
        ({"sensitive": [1], "upper": [-1.0]}, "upper needs one finite level"),
    ],
)
def test_attackers_are_checked(fields, says):
    with pytest.raises(InputError, match=says):
        Attacker(name="x", **fields)


def test_fractions_of_the_value_as_levels(table):
    symmetric = table.with_levels(0.2, 0.2, sliding=0.5)
    assert (symmetric.lower[4], symmetric.upper[4], symmetric.sliding[4]) == (6, 6, 15)
    asymmetric = table.with_levels(0.05, 0.20)  # as in baena2018
    assert (asymmetric.lower[4], asymmetric.upper[4]) == (1.5, 6)
    tight = table.with_(ub=np.maximum(table.values, 36))
    assert tight.with_levels(0.1, 0.5).upper[4] == 6
    with pytest.raises(LevelError, match=r"-0\.1"):
        table.with_levels(-0.1, 0.2)

"""A share, a percentage, a ratio and a count are different numbers; each refuses the others with a hint."""

import numpy as np
import pytest

import cellguard as cg
from cellguard._quantities import check_count, check_percent, check_ratio, check_share, suggest_share
from cellguard.exceptions import LevelError


@pytest.fixture
def table():
    return cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0])


@pytest.mark.parametrize("wrong", [20, 1.001, -0.1, np.nan, np.inf])
def test_a_share_lies_between_0_and_1(wrong):
    with pytest.raises(LevelError, match="is not a share between 0 and 1"):
        check_share("upper level", wrong)


@pytest.mark.parametrize("right", [0, 0.2, 1])
def test_shares_are_accepted(right):
    check_share("upper level", right)


def test_levels_of_a_table_are_shares(table):
    with pytest.raises(LevelError, match=r"upper level: 20 .*\n?.*write 0\.2 for 20%"):
        table.with_levels(0.05, 20)
    assert table.with_levels(0.05, 0.2).upper[0] == 4


def test_a_share_is_no_percentage():
    with pytest.raises(LevelError, match=r"0\.2 is a share.*\n?.*write 20 for 20%"):
        check_percent("p", 0.2)
    with pytest.raises(LevelError, match="at most 100"):
        check_percent("k", 120, most=100)
    with pytest.raises(LevelError, match="above 0"):
        check_percent("p", 0)
    check_percent("level", 0, positive=False)
    check_percent("p", 1)


def test_ratios_may_exceed_1_and_percentages_are_refused(table):
    check_ratio("lower_ratio", 1.5)
    check_ratio("lower_ratio", 10)
    with pytest.raises(LevelError, match=r"write 0\.25 for 25%"):
        table.apply(cg.Manual([0]), lower_ratio=25)
    with pytest.raises(LevelError, match="finite"):
        check_ratio("lower_ratio", np.inf)
    with pytest.raises(LevelError, match="at least 0"):
        check_ratio("lower_ratio", -1)


@pytest.mark.parametrize("wrong", [0, 2.5, -1])
def test_a_count_is_whole(wrong):
    with pytest.raises(cg.InputError, match="whole number of at least 1"):
        check_count("n", wrong)


def test_hints_are_given_for_percentages_only():
    assert suggest_share(20) == "write 0.2 for 20%."
    assert suggest_share(100) == "write 1 for 100%."
    assert suggest_share(1000) is suggest_share(-1) is suggest_share(float("nan")) is None

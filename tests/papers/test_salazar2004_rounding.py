"""Controlled rounding on the tables of salazar2004."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from builders import table_with_margins
from cellguard.release.release import Rounding

FIGURE_1 = [[20, 50, 10, 80], [8, 19, 22, 49], [17, 32, 12, 61], [45, 101, 44, 190]]
FIGURE_2C = [[20, 50, 10, 80], [10, 20, 20, 50], [15, 30, 15, 60], [45, 100, 45, 190]]
SENSITIVE = 6  # Activity II, region C

FIGURE_5 = """
60593 29225 31368 13856 46737 34565 26028
174414 78129 96285 25673 148741 3432 170982
108769 46119 62650 2342 106427 32223 76546
93346 43201 50145 23443 69903 23434 69912
131817 61046 70771 23878 107939 432 131385
107060 47376 59684 24532 82528 34233 72827
110811 49053 61758 17635 93176 3423 107388
123359 50949 72410 34223 89136 4567 118792
119863 44718 75145 35980 83883 56356 63507
95388 49579 45809 34989 60399 6454 88934
124678 61327 63351 36789 87889 5643 119035
1030032 449816 580216 201562 828470 192665 837367
1250098 560722 689376 273340 976758 204762 1045336
"""
FIGURE_5_ROUNDED = """
60595 29225 31370 13855 46740 34565 26030
174415 78130 96285 25675 148740 3430 170985
108770 46120 62650 2340 106430 32225 76545
93345 43200 50145 23445 69900 23435 69910
131815 61045 70770 23875 107940 430 131385
107060 47375 59685 24530 82530 34235 72825
110810 49055 61755 17635 93175 3420 107390
123360 50950 72410 34225 89135 4570 118790
119860 44715 75145 35980 83880 56355 63505
95390 49580 45810 34990 60400 6455 88935
124675 61325 63350 36790 87885 5640 119035
1030030 449815 580215 201560 828470 192665 837365
1250095 560720 689375 273340 976755 204760 1045335
"""

# every line of the cube has an even sum, so with base 2 all margins stay, and each odd cell must go to
# 0 or 2: no such cube exists (of the kind that Causey, Cox and Ernst found first)
NO_ZERO_RESTRICTED = [
    [[1, 0, 1], [1, 1, 0], [0, 1, 1]],
    [[0, 1, 1], [1, 1, 0], [1, 0, 1]],
    [[1, 1, 0], [0, 0, 0], [1, 1, 0]],
]


def numbers(text):
    return np.array([[float(word) for word in line.split()] for line in text.strip().splitlines()])


def figure_1(lower=1.0, upper=3.0):
    index = np.arange(16).reshape(4, 4)
    relations = [[int(line[-1]), *map(int, line[:-1])] for line in (*index, *index.T)]
    return cg.Table.from_equations(
        np.ravel(FIGURE_1), relations, weights=1.0, sensitive=[SENSITIVE], lower=[lower], upper=[upper]
    )


def figure_5():
    values = numbers(FIGURE_5)
    index = np.arange(values.size).reshape(values.shape)
    relations = [[int(row[0]), int(row[j]), int(row[j + 1])] for row in index for j in (1, 3, 5)]
    relations += [[int(column[11]), *map(int, column[:9])] for column in index.T]
    relations += [[int(column[12]), *map(int, column[9:12])] for column in index.T]
    return cg.Table.from_equations(values.ravel(), relations, weights=1.0)


def cube(inner):
    return table_with_margins(inner, weights=1.0)


def test_pattern_c_of_figure_2_is_valid():
    """The printed 20 for 22 reaches up by 2, not by the paper's 3: no cell moves by a whole base."""
    table = figure_1(upper=2.0)
    pattern = Rounding(
        table=table, status="feasible", objective=16.0, values=np.ravel(FIGURE_2C).astype(float), base=np.full(16, 5.0)
    )
    audit = pattern.audit(exact=True)
    assert audit.safe
    _, low, high = audit.ranges["external"]
    assert (low[0], high[0]) == (16.0, 24.0)  # the paper's 15 and 25 are a whole base away: no cell moves that far


def test_our_rounding_of_figure_1_is_no_worse_than_pattern_c():
    release = cg.round(figure_1(upper=2.0), base=5)
    assert release.status == "optimal"
    assert release.objective <= np.abs(np.ravel(FIGURE_2C) - np.ravel(FIGURE_1)).sum() == 16
    assert release.audit().safe


def test_the_printed_levels_of_10_and_12_cannot_be_met():
    with pytest.raises(cg.InputError, match=r"cell 6: .*at most 2 x base"):
        cg.round(figure_1(10, 12), base=5)


def test_levels_that_contradict_each_other_need_a_larger_step():
    """Cell II,C (22): rounded down it reaches 24, rounded up it starts at 21; only step 2 leaves 4 on both sides."""
    release = cg.round(figure_1(4, 4), base=5)
    assert (release.status, release.step) == ("optimal", 2)
    assert release.audit().safe


def test_figure_5_is_rounded():
    table = figure_5()
    release = cg.round(table, base=5)
    printed = np.abs(numbers(FIGURE_5_ROUNDED).ravel() - table.values).sum()
    assert release.status == "optimal"
    assert release.objective <= printed
    assert (release.values % 5 == 0).all()
    assert (np.abs(release.values - table.values) < 5).all()
    np.testing.assert_array_equal(table.relations @ release.values, 0)


def test_an_infeasible_cube_is_recognised_and_solved_with_step_2():
    table = cube(NO_ZERO_RESTRICTED)
    assert cg.round(table, base=2, step=1).status == "infeasible"
    release = cg.round(table, base=2)
    assert (release.status, release.step) == ("optimal", 2)
    np.testing.assert_array_equal(table.relations @ release.values, 0)
    assert (np.abs(release.values - table.values) < 4).all()
    assert (release.values % 2 == 0).all()

"""Suppression: safe patterns, as cheap as they get."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg

FIGURE_1 = {  # salazar2004 figure 1
    "values": [20, 50, 10, 80, 8, 19, 22, 49, 17, 32, 12, 61, 45, 101, 44, 190],
    "relations": [
        [3, 0, 1, 2], [7, 4, 5, 6], [11, 8, 9, 10], [15, 12, 13, 14],
        [12, 0, 4, 8], [13, 1, 5, 9], [14, 2, 6, 10], [15, 3, 7, 11],
    ],
}  # fmt: skip


def figure_1(**levels):
    return cg.Table.from_equations(FIGURE_1["values"], FIGURE_1["relations"], sensitive=[6], **levels)


def test_no_dearer_than_figure_2a():
    release = cg.suppress(figure_1(lower=[10], upper=[8]), method="heuristic", time_limit_s=0.5)
    assert release.audit().safe
    assert release.cost <= 8 + 17 + 12


@pytest.mark.parametrize("name", ["targus", "hie1372d", "table7"])
def test_patterns_of_csplib_are_safe(csplib, name):
    release = cg.suppress(cg.Table.read(csplib(name)), method="heuristic", time_limit_s=0.3)
    assert release.audit().safe


def test_cells_that_must_be_published_are(csplib):
    table = figure_1(lower=[4], upper=[4])
    free = cg.suppress(table, method="heuristic", time_limit_s=0.3)
    cell = int(np.flatnonzero(free.secondary)[0])
    kept = cg.suppress(table, method="heuristic", time_limit_s=0.3, must_publish=[cell])
    assert not kept.suppressed[cell]
    assert kept.audit().safe


def test_a_sensitive_cell_that_must_be_published_is_refused():
    with pytest.raises(cg.InputError, match="must be published"):
        cg.suppress(figure_1(lower=[4], upper=[4]), must_publish=[6])


def test_unknown_method_is_refused():
    with pytest.raises(cg.InputError, match="method"):
        cg.suppress(figure_1(lower=[4], upper=[4]), method="magic")


def test_infeasible_says_which_cell():
    table = cg.Table.from_equations([3, 4, 7], [[2, 0, 1]], sensitive=[0], upper=[2], lower=[2], fixed=[1, 2])
    release = cg.suppress(table, method="heuristic", time_limit_s=1)
    assert release.status == cg.Status.INFEASIBLE
    assert "cell 0" in release.explanation

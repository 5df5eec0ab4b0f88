"""Feasible movements of few variables, found without a program over the whole table."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.ranges.search.small_movements import SmallMovements
from cellguard._engine.space.reduce import reduce
from cellguard.datasets.generate import census, cube


@pytest.fixture(scope="module")
def system():
    table = cube(1, sides=(6, 7, 8))
    rng = np.random.default_rng(1)
    reduction = reduce(table.relations)
    down, up = rng.integers(0, 4, (2, table.n_cells)).astype(float)
    return table, reduction, down, up


def check(table, v, down, up):
    np.testing.assert_allclose(table.relations @ v, 0, atol=1e-9)
    assert (v <= up).all()
    assert (-v <= down).all()


def test_piled_up_movements_are_feasible_and_reach_levels(system):
    table, reduction, down, up = system
    moves = SmallMovements(reduction.basis, down, up)
    cells = reduction.parameters[:100]
    v = moves.combine_movements([(1, cells, np.ones(100)), (-1, cells, np.ones(100))])
    check(table, v, down, up)
    assert (np.abs(v[cells]) >= 1).sum() > 5


@pytest.mark.parametrize("side", [1, -1])
def test_around_a_variable_nothing_leaves_its_room(system, side):
    table, reduction, down, up = system
    moves = SmallMovements(reduction.basis, down, up)
    room = up if side > 0 else down
    reached = 0
    for cell in np.flatnonzero(room >= 1)[:40]:
        v = moves.find_around(int(cell), side, 1.0)
        if v is not None:
            check(table, v, down, up)
            assert side * v[cell] <= 1.0 + 1e-9
            reached += side * v[cell] >= 1 - 1e-9
    assert reached > 20


def test_a_large_release_is_audited_without_large_programs():
    table = census(3, wards=40, districts=4, ages=10, living=5, mean=700.0, threshold=3)
    release = cg.round(table, time_limit_s=20, gap=0.05)
    audit = release.audit()
    assert audit.safe
    assert audit.checked == len(table.sensitive_cells) > 500
    assert sum(finding.programs for finding in audit.findings) == 0

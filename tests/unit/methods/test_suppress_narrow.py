"""Attacks at a point where few rows can move: the same answers as from the program over all rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csc_array

from cellguard import generate
from cellguard._engine.ranges.search.attacker_program import MovementProgram
from cellguard._engine.space.reduce import reduce
from cellguard.methods.suppress.search.narrow_program import NarrowProgram


@pytest.mark.parametrize("seed", range(8))
def test_few_rows_answer_for_all(seed):
    table = generate.hierarchical(seed=seed, branching=((3, 2), (4,), (2,)))
    space = reduce(table.relations).space
    rng = np.random.default_rng(seed)
    n = len(space)
    whole = MovementProgram(space.relations, space.basis, np.ones(n), np.ones(n))
    moving = np.sort(rng.choice(n, n // 3, replace=False))
    few = NarrowProgram(csc_array(space.relations), moving)
    for _ in range(4):
        down, up = np.zeros((2, n))
        down[moving], up[moving] = rng.random((2, len(moving)))
        row, way = rng.choice(moving, 1), np.array([rng.choice([-1.0, 1.0])])
        whole.set_room(down, up)
        few.set_room(down, up)
        one, other = whole.push(row, way), few.push(row, way, time_limit_s=5.0)
        assert one.optimal
        assert other.optimal
        assert other.movement[row] == pytest.approx(one.movement[row], abs=1e-9)
        assert (other.movement[np.setdiff1d(np.arange(n), moving)] == 0).all()
        # prices of all rows give the row's movement, whatever moves
        anything = space.basis @ rng.normal(size=space.basis.shape[1])
        assert other.prices @ anything == pytest.approx(float(way[0] * anything[row[0]]), abs=1e-8)
        # and prove how far it can go
        reach = np.where(other.prices > 0, other.prices * up, -other.prices * down).sum()
        assert reach == pytest.approx(float(way[0] * other.movement[row[0]]), abs=1e-8)

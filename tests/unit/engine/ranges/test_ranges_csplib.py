"""Ranges on the tables of the field against a separate solver."""

import numpy as np
import pytest
from scipy.optimize import linprog

from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard.model.table import Table


@pytest.mark.parametrize(("name", "share"), [("targus", 0.5), ("hie1372d", 0.75), ("table7", 0.3), ("table1", 0.2)])
def test_ranges_equal_a_separate_solver(name, share, csplib):
    table = Table.read(csplib(name))
    rng = np.random.default_rng(7)
    hidden = (table.sensitive | (rng.random(table.n_cells) < share)) & ~(table.fixed & ~table.sensitive)
    lo, hi = np.where(hidden, table.lb, table.values), np.where(hidden, table.ub, table.values)
    cells = table.sensitive_cells
    found = compute_ranges(Sight(table.relations, lo, hi, table.values), AskedRanges(cells), exact=True)
    assert len(cells) > 5
    for k in rng.permutation(len(cells))[:6]:
        cost = np.zeros(table.n_cells)
        cost[cells[k]] = 1.0
        for sign, end in ((1, found.low[k]), (-1, found.high[k])):
            bounds = np.column_stack([lo, np.where(np.isinf(hi), np.inf, hi)])
            other = linprog(sign * cost, A_eq=table.relations, b_eq=table.rhs, bounds=bounds, method="highs-ipm")
            assert other.status == 0
            assert end == pytest.approx(sign * other.fun, rel=1e-6, abs=1e-5 * max(1.0, table.values[cells[k]]))

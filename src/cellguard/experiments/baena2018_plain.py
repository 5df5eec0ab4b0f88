"""The mixed-integer program (6) of baena2018 as it is printed, given to HiGHS: what our adjustment has to beat."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import block_array, csr_array, diags_array

from cellguard._engine.solvers.lp import LinearModel
from cellguard._engine.solvers.mip import Until, solve_mixed
from cellguard.nouns.table import Table
from cellguard.nouns.weights import weights_by_value

__all__ = ["solve_plainly"]

_FAR = 1e6
"""The "large value" that bounds the cells from above, in the unit of the values: never reached."""


def solve_plainly(table: Table, *, gap: float, time_limit_s: float) -> dict[str, Any]:
    """Solve (6) with weights 1/a on one thread; return status, distance and the gap in per cent.

    Columns are z+, z-, then one y per sensitive cell.
    """
    a, A, cells = table.values, csr_array(table.relations), table.sensitive_cells
    n, f, m = table.n_cells, len(cells), A.shape[0]
    w = weights_by_value("inverse", a)
    low = np.where(table.fixed, 0.0, np.minimum(np.maximum(a - table.lb, 0.0), _FAR))
    high = np.where(table.fixed, 0.0, np.minimum(np.maximum(table.ub - a, 0.0), _FAR))
    up, down = table.upper[cells], table.lower[cells]
    pick = csr_array((np.ones(f), (np.arange(f), cells)), shape=(f, n))
    rows = [
        [A, -A, None],
        [pick, None, -diags_array(up)],
        [pick, None, -diags_array(high[cells])],
        [None, pick, diags_array(down)],
        [None, pick, diags_array(low[cells])],
    ]
    zero, none, inf = np.zeros(f), np.zeros(m), np.full(f, np.inf)
    found = solve_mixed(
        LinearModel(
            csr_array(block_array(rows)),
            np.concatenate([none, zero, -inf, down, -inf]),
            np.concatenate([none, inf, zero, inf, low[cells]]),
            np.zeros(2 * n + f),
            np.concatenate([high, low, np.ones(f)]),
            np.concatenate([w, w, np.zeros(f)]),
            integer=np.arange(2 * n + f) >= 2 * n,
        ),
        Until(time_limit_s=time_limit_s, relative_gap=gap),
    )
    left = 100.0 * (found.objective - found.bound) / found.objective if found.found else None
    return {"status": str(found.status), "objective": found.objective, "gap_pct": left}

"""Secondary suppression beside gconfid in the same run: cost, cells, CPU seconds and our audit of each pattern.

``python bench/bench_others.py [TABLE ...]``; needs ``pip install cellguard[bench]``. Costs are those of the
secondaries, by the table's own weights. Both run on one thread.

How a table is put to gconfid. Its programs move a sensitive cell by half its ``Sensitivity``, and every other cell by
at most half its ``TotalNoise``, up and down alike. So ``Sensitivity`` is a width, twice the larger level, and
``TotalNoise`` is twice the room of a cell, the smaller distance to its bounds. A cell without room, such as a zero, has
the status "P" (published). A second phase drops what the first withheld in vain, if it is given a cost that is low
for large cells ("Information").
"""

from __future__ import annotations

import logging
import sys
import time

import numpy as np
from figures import CSPLIB

import cellguard as cg
from cellguard._types import BoolArray
from cellguard.release.release import Status, Suppression

TABLES = ("targus", "table8", "osorio", "hie1372d", "hie1327d", "hier13", "table3", "hier16", "two5in6")
SECONDS = 60.0
"""Time limit of ours, by the clock."""


def suppress_with_gconfid(table: cg.Table, *, phases: int) -> BoolArray | None:
    """Return the pattern of gconfid's sequential linear programs, or None if its solver failed."""
    import pandas as pd
    import pulp
    from gconfid import Suppression as Gconfid

    relations = table.relations.tocoo()
    constraints = pd.DataFrame(
        {"ConstraintId": relations.row + 1, "CellId": relations.col + 1, "Coefficient": relations.data}
    )
    level = np.maximum(np.maximum(table.lower, table.upper), table.sliding / 2)
    room = np.minimum(table.values - table.lb, table.ub - table.values)
    movable = ~table.fixed & (room > 0)
    cells = pd.DataFrame(
        {
            "CellId": np.arange(table.n_cells) + 1,
            "TotalNoise": 2 * np.where(movable, room, 1.0),
            "Sensitivity": np.where(table.sensitive, 2 * level, -1.0),
            "Status": np.where(table.sensitive, "S", np.where(movable, "V", "P")),
            "Type": "C",
            "Cost": table.weights,
        }
    )
    run = Gconfid(
        incell=cells, inconstraint=constraints, cost_var1="Cost", cost_var2="Cost",
        cost_function2="Information" if phases == 2 else None, trace=False,
        custom_solver=pulp.HiGHS(msg=False, threads=1),
    )  # fmt: skip
    found = run.outsuppress
    if found is None:
        return None
    found = found if isinstance(found, pd.DataFrame) else found.to_pandas()
    pattern: BoolArray = table.sensitive.copy()
    pattern[found.loc[found["OutStatus"] == "X", "CellId"].to_numpy(dtype=np.int64) - 1] = True
    return pattern


def describe_pattern(table: cg.Table, pattern: BoolArray) -> str:
    """Return what a pattern costs, and what the audit says."""
    secondary = pattern & ~table.sensitive
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=pattern)
    audit = release.audit()
    verdict = "safe" if audit.safe else f"{len(audit.unsafe_cells)} cells not safe"
    return f"{table.weights[secondary].sum():.6g} | {int(secondary.sum())} | {verdict}"


def main(names: list[str]) -> None:
    """Print one line per table and method."""
    logging.disable(logging.CRITICAL)
    print("| table | method | cost | secondaries | audit | CPU s |")
    for name in names or TABLES:
        table = cg.Table.read(CSPLIB / f"{name}.jj.gz").with_(insiders=False)
        methods = {
            "cellguard": lambda table=table: cg.suppress(table, time_limit_s=SECONDS, threads=1).suppressed,
            "gconfid, one phase": lambda table=table: suppress_with_gconfid(table, phases=1),
            "gconfid, two phases": lambda table=table: suppress_with_gconfid(table, phases=2),
        }
        for method, run in methods.items():
            begin = time.process_time()
            pattern = run()
            seconds = time.process_time() - begin
            told = "none | - | -" if pattern is None else describe_pattern(table, pattern)
            print(f"| {name} | {method} | {told} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

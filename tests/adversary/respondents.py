"""Contributors of every rank as attackers, found once more from the records themselves.

Everybody who contributed knows their own parts: of every cell they are in, of every table and indicator, whatever the
rule looked at. A cell in which they are alone they know exactly; of another one they know that it is at least what they
gave. Records of one holding are one contributor. Each must be kept from every sensitive cell in which they are not alone.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np

import cellguard as cg
from adversary.cases import Case

TOTAL = "Total"


def list_respondents(made: Case) -> tuple[cg.Attacker, ...]:
    """Return every contributor of a table from records as an attacker."""
    table = made.table
    if not made.records or table.insiders is False:
        return ()
    own = find_parts(made)
    contributors = np.zeros(table.n_cells, int)
    for cells in own.values():
        contributors[list(cells)] += 1
    out = []
    for who, cells in own.items():
        alone = {i for i in cells if contributors[i] == 1}
        wanted = [i for i in np.flatnonzero(table.sensitive).tolist() if i not in alone]
        if wanted:
            out.append(_make_attacker(table, who, cells, alone, wanted))
    return tuple(out)


def find_parts(made: Case) -> dict[str, dict[int, float]]:
    """Return what each contributor gave to each cell, added up from the records."""
    codes = made.table.cell_codes()
    dimensions = [name for name in codes if name != "indicator"]
    place = {key: i for i, key in enumerate(zip(*(codes[d] for d in codes), strict=True))}
    columns = [made.records[d] for d in dimensions]
    counted = made.table.statistics is not None and np.array_equal(made.table.values, made.table.statistics.count)
    measures = made.measures or {"value": None if counted else "x"}
    own: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row, (who, *leaf) in enumerate(zip(made.records["holding"], *columns, strict=True)):
        cells = list(product(*((code, TOTAL) for code in leaf)))
        for name, column in measures.items():
            amount = 1.0 if column is None else float(made.records[column][row])
            for cell in cells:
                i = place.get((name, *cell) if "indicator" in codes else cell)
                if i is not None:
                    own[who][i] += amount
    return own


def _make_attacker(table: cg.Table, who: str, own: dict[int, float], alone: set[int], wanted: list[int]) -> cg.Attacker:
    a, cells = table.values, sorted(own)
    return cg.Attacker(
        name=f"respondent {who}",
        cells=cells,
        lb=[a[i] if i in alone else max(table.lb[i], min(own[i], a[i])) for i in cells],
        ub=[a[i] if i in alone else table.ub[i] for i in cells],
        sensitive=wanted,
        lower=table.lower[wanted],
        upper=table.upper[wanted],
        sliding=table.sliding[wanted],
    )

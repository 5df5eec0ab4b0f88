"""Respondents as attackers, found once more from the records themselves.

Who is alone in a cell knows it; one of two in a sensitive cell knows at least what he gave, there and
in every other cell he is in. Each must be kept from every sensitive cell in which he is not alone.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np

import cellguard as cg
from adversary.generator import Case


def respondents(made: Case) -> tuple[cg.Attacker, ...]:
    """Return the respondents of a table from records (dimensions region and branch)."""
    table, records = made.table, made.records
    if not records or table.insiders is False:
        return ()
    own: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    place = {codes: i for i, codes in enumerate(zip(*table.cell_codes().values(), strict=True))}
    for region, branch, x, who in zip(*(records[n] for n in ("region", "branch", "x", "holding")), strict=True):
        for codes in product((region, "Total"), (branch, "Total")):
            own[who][place[codes]] += 1.0 if table.integer else x
    contributors = np.zeros(table.n_cells, int)
    for cells in own.values():
        contributors[list(cells)] += 1
    out = []
    for who, cells in own.items():
        alone = {i for i in cells if contributors[i] == 1}
        one_of_two = [i for i in cells if contributors[i] == 2 and table.sensitive[i]]
        wanted = [i for i in np.flatnonzero(table.sensitive).tolist() if i not in alone]
        if (alone or one_of_two) and wanted:
            out.append(_attacker(table, who, cells, alone, wanted))
    return tuple(out)


def _attacker(table: cg.Table, who: str, own: dict[int, float], alone: set[int], wanted: list[int]) -> cg.Attacker:
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

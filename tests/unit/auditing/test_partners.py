"""What a secondary suppression protects is explained by work that is counted, not timed."""

from __future__ import annotations

import numpy as np

import cellguard as cg
from cellguard.auditing.partners import find_partners


def test_the_work_has_an_end_and_what_it_explains_does_not_depend_on_the_clock():
    rng = np.random.default_rng(2)
    table = cg.Table.from_leaves({"a": list("pqrstu"), "b": list("vwxyz")}, rng.integers(5, 90, (6, 5)))
    table = table.apply(cg.Manual([table.cell({"a": "p", "b": "v"}), table.cell({"a": "u", "b": "z"})]))
    release = cg.suppress(table, time_limit_s=5)
    every = find_partners(release)
    assert {p for cells in every.values() for p in cells} == set(table.sensitive_cells.tolist())
    first = table.sensitive_cells[0]
    assert find_partners(release, most_work=0) == {s: [first] for s, cells in every.items() if first in cells}

"""castro2012 (1d): a sensitive cell is published at most ``a - lpl`` or at least ``a + upl``, and so never at the truth.

The paper has positive levels on both sides. Here they may also be zero, on one side only, or sliding only.
"""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.methods.adjust.adjust import PLAIN

LEVELS = {
    "both sides": {"lower": 4.0, "upper": 6.0},
    "zero": {"lower": 0.0, "upper": 0.0},
    "above only": {"lower": 0.0, "upper": 6.0},
    "below only": {"lower": 4.0, "upper": 0.0},
    "sliding only": {"lower": 0.0, "upper": 0.0, "sliding": 8.0},
}


@pytest.mark.parametrize("senses", ["upper", "lower", "key", "optimal"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("levels", LEVELS.values(), ids=LEVELS.keys())
def test_condition_1d_holds_with_levels_of_every_kind(levels, norm, senses):
    inner = np.random.default_rng(1).integers(20, 90, (3, 4))
    table = cg.Table.from_leaves({"r": list("abc"), "c": list("wxyz")}, inner)
    inner_cells = np.flatnonzero((table.coordinates > 0).all(axis=1))
    sensitive = np.isin(np.arange(table.n_cells), inner_cells[[1, 6]])
    table = table.with_(sensitive=sensitive, **{k: np.where(sensitive, v, 0.0) for k, v in levels.items()})
    plain = {**PLAIN, "senses": senses}
    for options in (plain, {"senses": senses, "key": key(5)}):  # the paper's table, and ours
        release = cg.adjust(table, norm=norm, **options)
        moved = (release.values - table.values)[sensitive]
        assert (np.abs(moved) > 1e-6).all()
        assert ((moved <= -table.lower[sensitive] + 1e-6) | (moved >= table.upper[sensitive] - 1e-6)).all()
        assert release.audit().safe

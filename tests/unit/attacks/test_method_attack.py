"""The attacker who knows how tables are rounded and perturbed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.attacks import attack_method
from cellguard.exceptions import ReleaseError, UnknownCodeError
from cellguard.release.release import Rounding


def counts(seed: int = 0, shape: tuple[int, int] = (6, 5), **fields: object) -> cg.Table:
    leaves = np.random.default_rng(seed).poisson(9, shape).astype(float)
    dims = {"r": [f"r{i}" for i in range(shape[0])], "c": [f"c{i}" for i in range(shape[1])]}
    table = cg.Table.from_leaves(dims, leaves, integer=True, weights=1.0)
    return table.with_(sensitive=(table.values > 0) & (table.values < 7) & (table.values % 5 != 0), **fields)


@pytest.mark.parametrize("seed", range(4))
def test_the_truth_is_among_what_explains_a_nearest_rounding(seed):
    """Duality, not a guess: wherever the relaxation is whole, prices explain the true table."""
    release = cg.round(counts(seed), base=5)
    found = cg.attack(release)
    assert found.fits
    assert found.held.all()
    lo, hi = release.published_bounds()
    assert (found.low >= lo[found.cells] - 1e-6).all()
    assert (found.high <= hi[found.cells] + 1e-6).all()


def test_it_finds_what_a_search_of_all_tables_finds():
    """Of all small tables that are rounded like this one at the least distance, its range is that of the program."""
    row = cg.Table.from_equations([6, 3, 9], [[2, 0, 1]], sensitive=[0], sliding=2, weights=1.0)
    release = cg.round(row, base=5)
    possible = [
        a
        for a, b in itertools.product(range(16), repeat=2)
        if cg.round(row.with_(values=np.array([a, b, a + b], float), weights=np.ones(3)), base=5, keep_multiples=True)
        .values.tolist() == release.values.tolist()
    ]  # fmt: skip
    found = attack_method(release)
    assert found.low[0] <= min(possible)
    assert max(possible) <= found.high[0]
    assert found.high[0] - found.low[0] < 8  # the base alone leaves 8


def test_coins_make_the_belief_false():
    table = counts(5, (8, 8))
    nearest = [attack_method(cg.perturb(table, base=5, draw="nearest", key=key(k))) for k in range(3)]
    drawn = [attack_method(cg.perturb(table, base=5, key=key(k))) for k in range(3)]
    assert np.mean([f.within_half for f in nearest]) > np.mean([f.within_half for f in drawn])
    assert np.mean([f.held.mean() for f in drawn]) < 1.0


def test_widths_tell_nothing_and_percentages_do():
    """A width is asked whatever the value is; a percentage of the value says that it is not near the ends."""
    table = counts(1)
    assert attack_method(cg.round(table, base=5), "levels").width == pytest.approx(1.0)
    s = table.sensitive
    levels = np.where(s, np.maximum(1.0, np.floor(0.2 * table.values)), 0.0)
    two_sided = table.with_(lower=np.minimum(levels, np.where(s, table.values - 1, 0.0)), upper=levels)
    release = cg.round(two_sided, base=5)
    assert release.published
    found = attack_method(release, "levels")
    assert found.held.all()
    assert found.width < 1.0


def test_what_cannot_be_attacked_is_refused():
    table = counts(2)
    with pytest.raises(UnknownCodeError, match="knowledge 'nearly'"):
        attack_method(cg.round(table, base=5), "nearly")
    nothing = Rounding(
        table=table, status="infeasible", objective=float("nan"),
        values=np.full(table.n_cells, np.nan), base=np.full(table.n_cells, 5.0),
    )  # fmt: skip
    with pytest.raises(ReleaseError, match="no release to attack"):
        attack_method(nothing)


def test_the_summary_is_that_of_the_command_line():
    found = cg.attack(cg.round(counts(3), base=5), cells=3)
    assert len(found.cells) == 3
    shown = found.summary()
    assert {"method", "knowledge", "cells", "held_pct", "missed_pct", "width_pct", "within_half_pct", "verdict"} <= set(
        shown
    )
    assert shown["verdict"].startswith(("withstood", "weak", "disclosed"))
    none = cg.round(counts(3).with_(sensitive=np.zeros(42, bool)), base=5)
    assert cg.attack(none).verdict.startswith("nothing to attack")

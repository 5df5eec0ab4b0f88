"""What suppression calls a success is one: zero levels, zeros, counts, insiders, limits."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard import generate
from cellguard.exceptions import InputError
from cellguard.methods.suppress.requests import translate_levels
from cellguard.methods.suppress.resist import count_suppression_applies, suppress_counts_optimally
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.levels import compute_required_levels

QUICK = {"method": "heuristic", "rounds": 10}


def counts(seed: int = 3, rows: int = 5, columns: int = 4, **more) -> cg.Table:
    leaves = np.random.default_rng(seed).poisson(7, (rows, columns)) + 4.0
    leaves[0, 1], leaves[2, 3], leaves[4, 0], leaves[3, 2] = 1, 2, 1, 0
    dims = {"region": [f"r{i}" for i in range(rows)], "age": [f"a{i}" for i in range(columns)]}
    table = cg.Table.from_leaves(dims, leaves, integer=True, weights=1.0)
    inner = np.ones(table.n_cells, bool)
    inner[table.relations.indices[table.relations.data < 0]] = False
    return table.with_(sensitive=inner & (table.values < 3), **more)


@pytest.mark.parametrize("method", ["auto", "heuristic", "exact"])
def test_levels_of_zero_ask_for_the_smallest_width(method):
    table = generate.hierarchical(2, branching=((3, 2), (4,)), sensitive=0.15).with_levels(0.0, 0.0)
    release = cg.suppress(table, method=method, time_limit_s=20, rounds=10)
    assert release.published
    assert release.secondary.any()
    assert release.audit().safe


def test_a_sensitive_zero_hides_upward():
    table = counts()
    zero = int(np.flatnonzero(table.sensitive & (table.values == 0))[0])
    release = cg.suppress(table, **QUICK)
    found = release.audit(exact=True)
    assert found.safe
    assert found.range(zero)[1] >= 2


def test_the_optimum_of_counts_obeys_the_smallest_width():
    table = counts()
    inner = np.ones(table.n_cells, bool)
    inner[table.relations.indices[table.relations.data < 0]] = False
    table = table.with_(fixed=~inner)
    assert count_suppression_applies(table)
    release = cg.suppress(table)
    assert (release.status, release.options["method"]) == (cg.Status.OPTIMAL, "counts")
    found = release.audit()
    assert found.integer
    assert found.safe
    assert (compute_required_levels(table).sliding == 2).all()


@pytest.mark.parametrize("change", ["lower", "attacker", "width"])
def test_the_optimum_of_counts_is_not_asked_for_what_it_does_not_see(change):
    table = generate.frequency(seed=1)
    if change == "lower":
        table = table.with_(lower=np.where(table.sensitive, 1.0, 0.0) * (table.values > 0), sliding=np.zeros(25))
    elif change == "attacker":
        knows = int(np.flatnonzero(~table.fixed & ~table.sensitive)[0])
        he = Attacker(name="he", cells=[knows], lb=[table.values[knows]], ub=[table.values[knows]])
        table = table.with_(attackers=(EXTERNAL, he))
    else:
        with pytest.raises(InputError, match="more than the rule"):
            suppress_counts_optimally(table, cg.CountRule(minimum=5, width=3))
        return
    assert not count_suppression_applies(table)
    release = cg.suppress(table, time_limit_s=20, rounds=20)
    assert release.published
    assert release.audit().safe


def test_nothing_proven_is_no_bound():
    table = generate.hierarchical(2, branching=((3, 2), (4,)), sensitive=0.15)
    release = cg.suppress(table, **QUICK)
    assert np.isnan(release.bound)
    assert np.isnan(release.gap)
    assert release.status is cg.Status.FEASIBLE


# ---------------------------------------------------------------------- requests


def grid_with(*attackers: Attacker, level: float = 2.0) -> cg.Table:
    dims = {"r": list("abcd"), "c": list("wxyz")}
    table = cg.Table.from_leaves(dims, 10.0 + np.arange(16.0).reshape(4, 4) % 7)
    mark = np.zeros(table.n_cells, bool)
    mark[[0, 7]] = True
    return table.with_(sensitive=mark, attackers=(EXTERNAL, *attackers)).with_levels(level / 10, level / 10)


def knows(name: str, *cells: int, table: cg.Table | None = None) -> Attacker:
    t = grid_with() if table is None else table
    return Attacker(name=name, cells=list(cells), lb=t.values[list(cells)], ub=t.values[list(cells)])


def test_who_knows_more_asks_for_what_who_knows_less_asks_for():
    table = grid_with(knows("one", 1), knows("one and two", 1, 2), knows("three", 3))
    asked = translate_levels(table).requests
    assert sorted(set(asked.attacker.tolist())) == [2, 3]
    assert len(asked) == 2 * 2


def test_what_somebody_knows_of_the_cell_itself_only_scales_his_movement_down():
    t = grid_with()
    part = Attacker(name="part", cells=[0], lb=[t.values[0] - 1], ub=[np.inf], sensitive=[0], lower=[1.0], upper=[1.0])
    assert set(translate_levels(grid_with(part)).requests.attacker.tolist()) == {0}
    only_width = Attacker(name="width", cells=[0], lb=[t.values[0] - 1], ub=[np.inf], sensitive=[0], sliding=[2.0])
    assert set(translate_levels(grid_with(only_width)).requests.attacker.tolist()) == {0, 1}

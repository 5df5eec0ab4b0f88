"""Which tables are networks, and their narrowest cuts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

import cellguard as cg
from cellguard._engine.space.network import Network
from cellguard._engine.space.reduce import reduce


def network_of(table: cg.Table, *, fixed: list[int] | None = None) -> Network | None:
    free = np.ones(table.n_cells, np.bool_)
    free[[] if fixed is None else fixed] = False
    return Network.of(reduce(table.relations, free))


@pytest.mark.parametrize(
    ("table", "is_network"),
    [
        (cg.generate.cube(1, sides=(4, 5)), True),
        (cg.generate.onehier(1, rows=20, columns=5, families=4), True),
        (cg.generate.cube(1, sides=(3, 3, 3)), False),
        (cg.Table.from_equations([2, 5, 7], [[2, 0, 1]]), True),
        (cg.Table.from_equations([2, 5, 7], [[2, 0, 1], [2, 0, 1]]), True),
    ],
)
def test_two_dimensions_with_one_hierarchy_are_a_network(table: cg.Table, is_network: bool) -> None:
    network = network_of(table)
    assert (network is not None) == is_network
    if network is None:
        return
    # whatever moves the table is a circulation, and the other way round: same dimension, and movements fit
    movements = reduce(table.relations, np.ones(table.n_cells, np.bool_)).basis[network.cells].toarray()
    balance = np.zeros((network.n_nodes, movements.shape[1]))
    np.add.at(balance, network.head, movements)
    np.add.at(balance, network.tail, -movements)
    assert np.abs(balance).max(initial=0.0) < 1e-9
    # circulations of a connected graph: as many degrees of freedom as arcs beyond a spanning tree
    assert movements.shape[1] == len(network.cells) - network._compute_rank()


def test_fixed_cells_are_no_arcs() -> None:
    table = cg.generate.cube(1, sides=(3, 3))
    network = network_of(table, fixed=[0, 5])
    assert network is not None
    assert not np.isin([0, 5], network.cells).any()


def test_relations_that_no_turning_reconciles_are_no_network() -> None:
    # three cells, each in two of three relations, all with the same sign: an odd circuit
    T = csr_array(np.array([[1.0, 1, 0, 1, 0, 0], [0, 1, 1, 0, 1, 0], [1, 0, 1, 0, 0, 1]]))
    assert Network.of(reduce(T, np.ones(6, np.bool_))) is None


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), rows=st.integers(2, 5), columns=st.integers(2, 5))
def test_what_flows_is_what_a_maximum_flow_says_and_the_cuts_prove_it(seed: int, rows: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    network = network_of(cg.generate.cube(seed, sides=(rows, columns)))
    assert network is not None
    n = len(network.cells)
    upper, lower = (rng.integers(0, 6, n).astype(float) for _ in range(2))
    arcs = rng.choice(n, 4, replace=False)
    sign, level = rng.choice([-1.0, 1.0], 4), rng.integers(1, 9, 4).astype(float)
    reached, sides = network.narrow(arcs, sign, level, upper, lower)
    short = iter(sides)
    for k, arc in enumerate(arcs):
        other = np.arange(n) != arc
        start = np.concatenate([network.tail[other], network.head[other]])
        end = np.concatenate([network.head[other], network.tail[other]])
        room = np.concatenate([upper[other], lower[other]]).astype(np.int32)
        graph = csr_array((room, (start, end)), shape=(network.n_nodes,) * 2)
        graph.sum_duplicates()
        source, target = network.head[arc], network.tail[arc]
        if sign[k] < 0:
            source, target = target, source
        flows = maximum_flow(graph, int(source), int(target)).flow_value
        assert reached[k] == min(flows, level[k])
        if flows < level[k]:
            side = next(short)
            for near in (side == 1, side != 2):
                assert near[source]
                assert not near[target]
                assert room[near[start] & ~near[end]].sum() == flows
    assert next(short, None) is None

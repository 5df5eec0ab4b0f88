"""Random publications: the global audit is that of plain linear programs, and the least pattern that of brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import cellguard as cg
from cellguard.model.linked.publication import Part, Publication
from cellguard.release.release import Status, Suppression

FOUR = ["a", "b", "c", "d"]
NESTED = cg.Hierarchy.from_nested({"ab": ["a", "b"], "cd": ["c", "d"]})
CROSSED = cg.Hierarchy.from_nested({"ac": ["a", "c"], "bd": ["b", "d"]})


@st.composite
def publications(draw) -> Publication:
    """Two tables that share a margin, perhaps a third with totals that do not nest, perhaps two indicators."""
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    cube = rng.integers(0, 60, (4, 2, 2)).astype(float)  # region x sex x age
    first = cg.Table.from_leaves({"region": NESTED, "sex": ["f", "m"]}, cube.sum(axis=2))
    second = cg.Table.from_leaves({"region": FOUR, "age": ["y", "o"]}, cube.sum(axis=1))
    parts = [Part(name="sex", table=first, indicator="all"), Part(name="age", table=second, indicator="all")]
    if draw(st.booleans()):
        third = cg.Table.from_leaves({"region": CROSSED, "sex": ["f", "m"]}, cube.sum(axis=2)[[0, 2, 1, 3]])
        parts.append(Part(name="crossed", table=third, indicator="all"))
    equations = []
    if draw(st.booleans()):
        some = np.floor(cube.sum(axis=2) * rng.random((4, 2)))
        for name, leaves in (("some", some), ("rest", cube.sum(axis=2) - some)):
            table = cg.Table.from_leaves({"region": NESTED, "sex": ["f", "m"]}, leaves)
            parts.append(Part(name=name, table=table, indicator=name))
        equations = ["all = some + rest"]
    found = Publication.of(parts, equations=equations)
    positive = np.flatnonzero(found.table.values > 0)
    assume(len(positive) > 3)
    sensitive = np.zeros(found.table.n_cells, bool)
    sensitive[rng.choice(positive, 2, replace=False)] = True
    level = np.where(sensitive, np.maximum(1.0, 0.1 * found.table.values), 0.0)
    level = np.minimum(level, found.table.values)
    return found.replace_table(found.table.with_(sensitive=sensitive, lower=level, upper=level))


def plain_range(table: cg.Table, hidden: np.ndarray, cell: int) -> tuple[float, float]:
    """The attacker's two linear programs (salazar2004 section 2), without any of the engine."""
    bounds = [(0, None) if h else (v, v) for h, v in zip(hidden, table.values, strict=True)]
    ends = []
    for sign in (1.0, -1.0):
        c = np.zeros(table.n_cells)
        c[cell] = sign
        got = linprog(c, A_eq=table.relations, b_eq=table.rhs, bounds=bounds, method="highs")
        ends.append(sign * got.fun if got.status == 0 else sign * -np.inf)
    return ends[0], ends[1]


def plainly_safe(table: cg.Table, hidden: np.ndarray) -> bool:
    for cell in table.sensitive_cells:
        low, high = plain_range(table, hidden, cell)
        a, level = table.values[cell], table.upper[cell]
        if a - low < level * (1 - 1e-6) or high - a < level * (1 - 1e-6):
            return False
    return True


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(publications())
def test_the_global_audit_is_that_of_plain_programs(found):
    release = cg.suppress(found, method="heuristic", time_limit_s=3, rounds=2)
    assume(release.published)
    audit = release.audit(exact=True)
    assert audit.safe
    assert plainly_safe(release.table, release.suppressed)
    cells, low, high = audit.ranges["external"]
    for cell, lo, hi in zip(cells, low, high, strict=True):
        expected = plain_range(release.table, release.suppressed, cell)
        assert (lo, hi) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    for part in found.parts:  # each table comes back with its own cells
        shown = release.tables[part.name].columns()
        hidden = np.asarray(shown["status"]) != "published"
        assert np.array_equal(np.asarray(shown["value"])[~hidden], part.table.values[~hidden])


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**31))
def test_the_least_pattern_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    cube = rng.integers(1, 40, (2, 2, 2)).astype(float)
    first = cg.Table.from_leaves({"r": ["1", "2"], "s": ["f", "m"]}, cube.sum(axis=2))
    second = cg.Table.from_leaves({"r": ["1", "2"], "t": ["y", "o"]}, cube.sum(axis=1))
    found = Publication.of({"first": first, "second": second})
    cell = int(rng.integers(1, found.table.n_cells))
    one = np.arange(found.table.n_cells) == cell
    level = np.where(one, np.maximum(1.0, 0.1 * found.table.values), 0.0)
    table = found.table.with_(sensitive=one, lower=level, upper=level, weights=np.ones(found.table.n_cells))
    release = cg.suppress(found.replace_table(table), time_limit_s=10)
    others = np.flatnonzero(~one)
    least = next(
        (
            k
            for k in range(len(others) + 1)
            for chosen in combinations(others, k)
            if plainly_safe(table, one | np.isin(np.arange(len(one)), chosen))
        ),
        None,
    )
    if least is None:
        assert release.status is Status.INFEASIBLE
    else:
        assert isinstance(release, Suppression)
        assert (release.status, int(release.secondary.sum())) == (Status.OPTIMAL, least)

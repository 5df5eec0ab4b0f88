"""Small tables: controlled rounding agrees with an enumeration of all roundings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import cellguard as cg
from builders import table_with_margins
from cellguard.exceptions import LevelError
from cellguard.model.levels import compute_required_levels


def two_way(inner, **fields):
    """Make a table with margins from an array of inner cells; the total comes last in each direction."""
    return table_with_margins(inner, weights=1.0, **fields)


def attacker_range(table, published, distance, attacker, cell):
    lb, ub = table.bounds(attacker)
    bounds = list(zip(np.maximum(lb, published - distance), np.minimum(ub, published + distance), strict=True))
    T = table.relations.toarray()
    ends = []
    for sign in (1.0, -1.0):
        c = np.zeros(table.n_cells)
        c[cell] = sign
        found = linprog(c, A_eq=T, b_eq=table.rhs, bounds=bounds, method="highs")
        assert found.status == 0
        ends.append(sign * found.fun)
    return ends


def meets_levels(table, published, distance):
    for attacker in table.attackers:
        need = compute_required_levels(table, attacker)
        if (published == table.values)[need.cells].any():  # never published as it is
            return False
        for cell, lower, upper, sliding in zip(need.cells, need.lower, need.upper, need.sliding, strict=True):
            low, high = attacker_range(table, published, distance, attacker, cell)
            a = table.values[cell]
            if low > a - lower + 1e-7 or high < a + upper - 1e-7 or high - low < sliding - 1e-7:
                return False
    return True


def choices(table, base, step):
    """List the multiples less than `step` bases away, inside what is public unless none is."""
    out = []
    for i, a in enumerate(table.values):
        all_ = [v for k in range(-step, step + 2) if abs((v := (a // base[i] + k) * base[i]) - a) < step * base[i]]
        out.append([v for v in all_ if table.lb[i] <= v <= table.ub[i]] or all_)
    return out


def cheapest(table, base, step, inner):
    """Least distance over all roundings, by enumeration of the inner cells; None if there is no rounding."""
    allowed = choices(table, base, step)
    T = table.relations.toarray()
    totals = [i for i in range(table.n_cells) if i not in inner]
    best = None
    for combination in itertools.product(*(allowed[i] for i in inner)):
        v = np.zeros(table.n_cells)
        v[list(inner)] = combination
        for _ in totals:  # totals from their parts, until nothing changes
            for row in T:
                total = int(np.flatnonzero(row < 0)[0])
                v[total] = v[row > 0].sum()
        if any(v[i] not in allowed[i] for i in totals):
            continue
        distance = float(table.weights @ np.abs(v - table.values))
        if (best is None or distance < best - 1e-9) and meets_levels(
            table, v, step * base - 1
        ):  # the values are whole numbers
            best = distance
    return best


def inner_cells(shape):
    rows, columns = shape
    return [i * (columns + 1) + j for i in range(rows) for j in range(columns)]


def hopeless(table, base):
    """Tell whether the levels ask for more than less than a base on both sides."""
    needs = [compute_required_levels(table, attacker) for attacker in table.attackers]
    return any((np.maximum(n.sliding, n.lower + n.upper) > 2 * (base[n.cells] - 1)).any() for n in needs)


def check(table, base, inner, steps=(1, 2)):
    bases = np.broadcast_to(np.asarray(base, float), table.n_cells)
    if hopeless(table, bases):
        with pytest.raises(LevelError):
            cg.round(table, base)
        return None
    expected = next(((s, d) for s in steps if (d := cheapest(table, bases, s, inner)) is not None), None)
    release = cg.round(table, base, max_step=max(steps))
    if expected is None:
        assert release.status == "infeasible"
        return release
    assert release.status == "optimal"
    assert (release.step, release.objective) == pytest.approx(expected)
    assert release.bound == pytest.approx(release.objective)
    assert release.audit().unsafe == 0
    return release


shapes = st.sampled_from([(2, 2), (2, 3), (3, 2)])


@st.composite
def tables(draw, top=14):
    shape = draw(shapes)
    inner = draw(st.lists(st.integers(0, top), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    return np.reshape(inner, shape)


@settings(max_examples=30)
@given(tables(), st.sampled_from([2, 3, 5]))
def test_plain_rounding_is_the_cheapest(inner, base):
    check(two_way(inner), base, inner_cells(inner.shape), steps=(1,))


@settings(max_examples=40)
@given(tables(top=8), st.data())
def test_levels_are_met_at_the_least_distance(inner, data):
    base = 3
    table = two_way(inner)
    cells = data.draw(st.lists(st.integers(0, table.n_cells - 1), min_size=1, max_size=3, unique=True))
    up = np.array([data.draw(st.sampled_from([0, 1, 2, 3])) for _ in cells], float)
    down = np.minimum([data.draw(st.sampled_from([0, 1, 2, 3])) for _ in cells], table.values[cells])
    sliding = np.array([data.draw(st.sampled_from([0, 2, 4])) for _ in cells], float)
    check(two_way(inner, sensitive=cells, lower=down, upper=up, sliding=sliding), base, inner_cells(inner.shape))


@settings(max_examples=60)
@given(tables(top=8), st.randoms(use_true_random=False))
def test_two_attackers(inner, random):
    """An insider who knows many cells exactly leaves so little room that cuts on other cells are needed."""
    table = two_way(inner)
    n, a = table.n_cells, table.values
    cells = random.sample(range(n), random.randint(1, 3))
    known = [i for i in random.sample(range(n), random.randint(2, n - 3)) if i not in cells]
    levels = {
        "lower": [min(random.randint(0, 3), a[i]) for i in cells],
        "upper": [random.randint(0, 3) for _ in cells],
        "sliding": [random.randint(0, 6) for _ in cells],
    }
    insider = cg.Attacker(
        name="insider",
        cells=known,
        lb=[max(a[i] - random.randint(0, 1), 0) for i in known],
        ub=[a[i] + random.randint(0, 1) for i in known],
        sensitive=cells,
        **levels,
    )
    external = cg.Attacker(name="external", sensitive=cells[:1], upper=[2.0])
    check(two_way(inner, attackers=(external, insider)), 3, inner_cells(inner.shape), steps=(1,))


@settings(max_examples=20)
@given(tables(top=9))
def test_a_larger_base_on_the_margins(inner):
    table = two_way(inner)
    base = np.full(table.n_cells, 4.0)
    base[inner_cells(inner.shape)] = 2.0
    check(table, base, inner_cells(inner.shape), steps=(1, 2))

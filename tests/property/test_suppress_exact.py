"""Exact suppression against a brute force over all patterns, judged by linear programs that are not ours."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import cellguard as cg
from builders import with_margins
from cellguard.release.release import Status


def random_table(rows: int, columns: int, seed: int, *, insider: bool) -> cg.Table:
    rng = np.random.default_rng(seed)
    inner = rng.integers(1, 30, (rows, columns)).astype(float)
    full, index, relations = with_margins(inner)
    a = full.ravel()
    s = rng.choice(index[:-1, :-1].ravel(), size=2, replace=False)
    lower, upper = np.minimum(a[s], rng.integers(1, 8, 2)), rng.integers(1, 10, 2)
    attackers = (cg.Attacker(name="external"),)
    if insider:
        known = rng.choice(np.setdiff1d(index[:-1, :-1].ravel(), s), 1)
        attackers += (cg.Attacker(name="insider", cells=known, lb=a[known] - 1, ub=a[known] + 1),)
    return cg.Table.from_equations(
        a,
        relations,
        ub=a + 20,
        weights=rng.integers(1, 20, len(a)),
        sensitive=s,
        lower=lower,
        upper=upper,
        sliding=rng.integers(0, 14, 2),
        attackers=attackers,
    )


def is_safe(t: cg.Table, hidden: np.ndarray) -> bool:
    """Judge a pattern by two linear programs per cell and attacker, none of them ours."""
    for attacker in t.attackers:
        lo, hi = t.bounds(attacker)
        need = t.levels(attacker)
        bounds = np.column_stack([np.where(hidden, lo, t.values), np.where(hidden, hi, t.values)])
        for k, cell in enumerate(need.cells):
            cost = np.eye(t.n_cells)[cell]
            least, most = (linprog(sign * cost, A_eq=t.relations, b_eq=t.rhs, bounds=bounds) for sign in (1, -1))
            assert least.status == most.status == 0
            low, high, a = least.fun, -most.fun, t.values[cell]
            if min(a - low - need.lower[k], high - a - need.upper[k], high - low - need.sliding[k]) < -1e-6:
                return False
    return True


def cheapest(t: cg.Table, ceiling: float) -> float:
    """Cost of the cheapest safe pattern that is not dearer than the ceiling, by trying them in order of size."""
    others = np.flatnonzero(~t.sensitive)
    best = np.inf
    for size in range(len(others) + 1):
        if np.sort(t.weights[others])[:size].sum() > min(best, ceiling):
            break
        for chosen in combinations(others, size):
            cost = float(t.weights[list(chosen)].sum())
            if cost < best and cost <= ceiling:
                hidden = t.sensitive.copy()
                hidden[list(chosen)] = True
                if is_safe(t, hidden):
                    best = cost
    return best


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), insider=st.booleans())
def test_the_optimum_equals_a_brute_force(seed: int, insider: bool) -> None:
    table = random_table(2, 3, seed, insider=insider)
    release = cg.suppress(table, method="exact", time_limit_s=30)
    if release.status is Status.INFEASIBLE:
        assert not is_safe(table, ~table.fixed)
        return
    assert release.status is Status.OPTIMAL
    assert release.audit().safe
    assert release.objective == cheapest(table, release.objective)

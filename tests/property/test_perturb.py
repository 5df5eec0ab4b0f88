"""Cell perturbation against the giant model (salazar2004 figure 3, relaxed) solved as one linear program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import cellguard as cg
from cellguard.exceptions import LevelError
from cellguard.release import Status

BASE = 5.0


def random_table(rows: int, columns: int, seed: int, *, insider: bool = False) -> cg.Table:
    rng = np.random.default_rng(seed)
    inner = rng.integers(0, 40, (rows, columns)).astype(float)
    full = np.zeros((rows + 1, columns + 1))
    full[:-1, :-1] = inner
    full[-1] = full.sum(axis=0)
    full[:, -1] = full.sum(axis=1)
    index = np.arange(full.size).reshape(full.shape)
    relations = [[r[-1], *r[:-1]] for r in index] + [[c[-1], *c[:-1]] for c in index.T]
    a = full.ravel()
    candidates = index[:-1, :-1].ravel()
    sensitive = rng.choice(candidates[a[candidates] >= 4], size=min(3, int((a[candidates] >= 4).sum())), replace=False)
    attackers = (cg.Attacker(name="external"),)
    if insider:
        known = rng.choice(candidates[~np.isin(candidates, sensitive)], 1)
        attackers += (cg.Attacker(name="insider", cells=known, lb=a[known] - 1, ub=a[known] + 1),)
    return cg.Table.from_equations(
        a,
        relations,
        weights=rng.uniform(0.5, 2.0, len(a)),
        sensitive=sensitive,
        lower=rng.integers(0, 4, len(sensitive)),
        upper=rng.integers(0, 4, len(sensitive)),
        sliding=rng.integers(0, 8, len(sensitive)),
        attackers=attackers,
    )


def giant_model(t: cg.Table, target: np.ndarray, low: np.ndarray, high: np.ndarray) -> float:
    """Published movements z, and for each attacker and sensitive cell two tables f, g that prove its range."""
    n, d = t.n_cells, np.full(t.n_cells, BASE)
    copies = [(k, int(p)) for k in range(len(t.attackers)) for p in t.sensitive_cells]
    size = n * (1 + 2 * len(copies))
    T = t.relations.toarray()
    A_eq = np.kron(np.eye(1 + 2 * len(copies)), T)
    A_ub, b_ub = [], []
    bounds = list(zip(low - t.values, high - t.values, strict=True))
    for c, (k, p) in enumerate(copies):
        lo, hi = t.bounds(t.attackers[k])
        hit = np.zeros(size)
        for copy, sign, level in ((2 * c + 1, 1.0, t.upper[p]), (2 * c + 2, -1.0, t.lower[p])):
            at = slice(copy * n, (copy + 1) * n)
            above, below = np.zeros((n, size)), np.zeros((n, size))
            above[:, at], above[:, :n] = np.eye(n), -np.eye(n)  # y - v <= d
            below[:, at], below[:, :n] = -np.eye(n), np.eye(n)  # v - y <= d
            own = np.zeros(size)
            own[copy * n + p] = -sign
            hit += own
            A_ub += [above, below, own[None]]
            b_ub += [d, d, [-level]]
            bounds += list(zip(lo - t.values, hi - t.values, strict=True))
        A_ub.append(hit[None])
        b_ub.append([-t.sliding[p]])
    sign = np.where(target == low, 1.0, -1.0)
    cost = np.concatenate([t.weights * sign, np.zeros(size - n)])
    found = linprog(cost, np.vstack(A_ub), np.concatenate(b_ub), A_eq, np.zeros(len(A_eq)), bounds, method="highs")
    constant = -float((t.weights * sign) @ (target - t.values))
    return float(found.fun) + constant if found.status == 0 else float("nan")


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(2, 3), columns=st.integers(2, 4), seed=st.integers(0, 10**6), insider=st.booleans())
def test_agrees_with_the_giant_model_and_passes_the_audit(rows: int, columns: int, seed: int, insider: bool) -> None:
    table = random_table(rows, columns, seed, insider=insider)
    low, high = np.floor(table.values / BASE) * BASE, np.ceil(table.values / BASE) * BASE
    target = np.where(table.values - low <= high - table.values, low, high)
    best = giant_model(table, target, low, high)
    release = cg.perturb(table, base=BASE)
    if np.isnan(best):
        assert release.status is Status.INFEASIBLE
        assert release.explanation
        return
    assert release.status is Status.OPTIMAL
    assert release.objective == pytest.approx(best, rel=1e-6, abs=1e-5)
    assert release.bound <= best + 1e-5
    assert release.audit().safe


def test_pattern_d_of_salazar2004_figure_2_is_valid_at_levels_1_and_3_and_ours_is_no_worse() -> None:
    from cellguard.examples import salazar2004_figure2

    printed = salazar2004_figure2()["perturb"]
    t = printed.table
    table = t.with_(lower=np.where(t.sensitive, 1.0, 0.0), upper=np.where(t.sensitive, 3.0, 0.0), weights=np.ones(16))
    assert cg.audit(type(printed)(**{**vars(printed), "table": table})).safe
    for seed in range(3):
        ours = cg.perturb(table, distance=5, seed=seed)
        assert ours.audit().safe
        up = np.random.default_rng(seed).random(16) < 0.5
        target = np.where(up, table.values + 5, table.values - 5)
        target = np.clip(target, 0, np.inf)
        assert ours.objective <= np.abs(printed.values - target).sum() + 1e-9


def test_the_printed_levels_of_figure_2_cannot_be_met_and_the_cell_is_named() -> None:
    from cellguard.examples import salazar2004_figure1

    with pytest.raises(LevelError, match="activity=II, region=C"):
        cg.perturb(salazar2004_figure1(), distance=5)


def test_sensitive_cells_can_be_rounded() -> None:
    table = random_table(3, 3, 4).with_(sliding=np.zeros(16))
    release = cg.perturb(table, base=BASE, round_sensitive=True)
    assert release.status is Status.OPTIMAL
    share = release.values[table.sensitive] / BASE
    assert np.allclose(share, np.rint(share))
    assert release.audit().safe
    assert release.objective >= cg.perturb(table, base=BASE).objective - 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": 0},
        {"base": -5},
        {"base": [5.0, 5.0]},
        {"distance": -1},
        {"distance": [1.0]},
        {"base": 5, "distance": 5},
    ],
)
def test_wrong_limits_are_refused(wrong: dict[str, object]) -> None:
    table = cg.Table.from_equations([1, 2, 3], [[2, 0, 1]])
    with pytest.raises(cg.InputError):
        cg.perturb(table, **wrong)

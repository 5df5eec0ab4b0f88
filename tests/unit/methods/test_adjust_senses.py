"""Optimal senses, infeasible ones and their repair, whole numbers, sensitivity, the internal file."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize

import cellguard as cg
from builders import key, table_with_margins
from cellguard._engine.closest.adjuster import Adjuster
from cellguard._engine.closest.directions import Senses
from cellguard._engine.closest.distance import Distance
from cellguard.methods.adjust import METHOD
from cellguard.methods.adjust.adjust import PLAIN
from cellguard.methods.adjust.sensitivity import compute_sensitivity

NORMS = METHOD.get_option("norm").choices
REAL = {"surplus": 0, "integer": False}  # the problem of the papers


def random_table(seed, rows=3, columns=3, sensitive=4, **changes):
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 60, (rows, columns))
    n = (rows + 1) * (columns + 1)
    chosen = rng.choice(n, sensitive, replace=False)
    table = table_with_margins(a, **changes)
    level = np.maximum(1.0, np.round(0.2 * table.values[chosen]))
    return table.with_(
        sensitive=np.isin(np.arange(n), chosen),
        lower=np.bincount(chosen, np.minimum(level, table.values[chosen]), n),
        upper=np.bincount(chosen, 2 * level, n),
    )


def brute_force(table, norm):
    """The least distance over all senses, by other people's solvers on the plain model."""
    w, n, best = 1.0 / table.values, table.n_cells, np.inf
    T = table.relations.toarray()
    cells = table.sensitive_cells
    for signs in product((1, -1), repeat=len(cells)):
        low, high = table.lb - table.values, table.ub - table.values
        for cell, sign in zip(cells, signs, strict=True):
            low[cell], high[cell] = (table.upper[cell], high[cell]) if sign > 0 else (low[cell], -table.lower[cell])
        best = min(best, solve_plainly(T, low, high, w, norm, table.sensitive, n))
    return best


def solve_plainly(T, low, high, w, norm, sensitive, n):
    zero, eye = np.zeros((len(T), 0)), np.diag(w)
    if norm == "l1":
        found = linprog(
            np.r_[np.zeros(n), np.ones(n)],
            A_ub=np.block([[eye, -np.eye(n)], [-eye, -np.eye(n)]]),
            b_ub=np.zeros(2 * n),
            A_eq=np.hstack([T, np.zeros_like(T)]),
            b_eq=np.zeros(len(T)),
            bounds=[*zip(low, high, strict=True), *[(0, None)] * n],
        )
        return found.fun if found.status == 0 else np.inf
    if norm == "linf":
        groups = np.column_stack([-sensitive.astype(float), -(~sensitive).astype(float)])
        found = linprog(
            np.r_[np.zeros(n), 1, 1],
            A_ub=np.block([[eye, groups], [-eye, groups]]),
            b_ub=np.zeros(2 * n),
            A_eq=np.hstack([T, zero, np.zeros((len(T), 2))]),
            b_eq=np.zeros(len(T)),
            bounds=[*zip(low, high, strict=True), (0, None), (0, None)],
        )
        return found.fun if found.status == 0 else np.inf
    start = linprog(np.zeros(n), A_eq=T, b_eq=np.zeros(len(T)), bounds=list(zip(low, high, strict=True)))
    if start.status != 0:
        return np.inf
    N = null_space(T)
    finite = np.isfinite(high)
    found = minimize(
        lambda u: w @ (N @ u) ** 2,
        N.T @ start.x,
        jac=lambda u: 2 * N.T @ (w * (N @ u)),
        constraints=[
            {"type": "ineq", "fun": lambda u: N @ u - low, "jac": lambda _: N},
            {"type": "ineq", "fun": lambda u: (high - N @ u)[finite], "jac": lambda _: -N[finite]},
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    return found.fun


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("seed", range(4))
def test_optimal_senses_are_what_brute_force_finds(norm, seed):
    table = random_table(seed)
    release = cg.adjust(table, norm=norm, senses="optimal", gap=1e-6, time_limit_s=30, **REAL)
    assert release.status is cg.Status.OPTIMAL
    assert release.objective == pytest.approx(brute_force(table, norm), rel=1e-5)
    assert release.bound <= release.objective
    assert release.audit().safe


@pytest.mark.parametrize("norm", NORMS)
def test_optimal_is_no_worse_than_any_fixed_senses(norm):
    table = random_table(11, rows=4, columns=5, sensitive=6)
    best = cg.adjust(table, norm=norm, senses="optimal", gap=1e-4, time_limit_s=20, **REAL)
    for senses in ("upper", "lower", "key"):
        other = cg.adjust(table, norm=norm, senses=senses, **REAL)
        assert not other.published or best.objective <= other.objective * (1 + 1e-3)


def test_without_time_there_is_still_a_safe_table_with_its_gap():
    table = random_table(5, rows=6, columns=8, sensitive=20)
    release = cg.adjust(table, norm="l1", senses="optimal", gap=0.0, time_limit_s=0.05)
    assert release.published
    assert release.audit().safe
    assert release.bound <= release.objective
    assert release.status in (cg.Status.OPTIMAL, cg.Status.FEASIBLE, cg.Status.TIME_LIMIT)


def test_optimal_senses_of_an_impossible_table():
    table = table_with_margins([[5, 6], [7, 8]], fixed=[1, 2, 3, 4, 5, 6, 7, 8], sensitive=[0], lower=1, upper=1)
    release = cg.adjust(table, senses="optimal", time_limit_s=5)
    assert release.status is cg.Status.INFEASIBLE
    assert not release.published


def table_with_one_huge_level(seed):
    """Return a 4 x 4 table with five levels of 2 to 4 and one of thousands of millions."""
    rng = np.random.default_rng(seed)
    inner = rng.integers(5, 40, (4, 4)).astype(float)
    huge = int(rng.integers(4)), int(rng.integers(4))
    inner[huge] = 7e10 if seed % 2 else 3.5e10
    others = [4 * i + j for i in range(4) for j in range(4) if (i, j) != huge]
    few = rng.choice(others, 5, replace=False)
    level = np.zeros((4, 4))
    level[few // 4, few % 4] = rng.integers(2, 5, 5)
    level[huge] = inner[huge] / 10
    values = np.pad(inner, ((0, 1), (0, 1)))
    values[4], values[:, 4] = values.sum(axis=0), values.sum(axis=1)
    values[4, 4] = inner.sum()
    at = np.arange(25).reshape(5, 5)
    relations = [[int(row[4]), *row[:4].tolist()] for row in at] + [[int(c[4]), *c[:4].tolist()] for c in at.T]
    cells = at[:4, :4][level > 0]
    amounts = level[level > 0]
    return cg.Table.from_equations(values.ravel(), relations, sensitive=cells, lower=amounts, upper=amounts)


@pytest.mark.parametrize("seed", [8, 12, 36, 49, 79])
def test_levels_of_very_different_sizes_are_not_called_infeasible(seed):
    table = table_with_one_huge_level(seed)
    found = cg.adjust(table, norm="l1", senses="optimal", time_limit_s=20, **REAL)
    assert found.status is cg.Status.OPTIMAL
    # every choice of senses, by the same solver with the senses given
    fixed = [
        cg.adjust(table, norm="l1", senses=list(senses), repair=None, **REAL).objective
        for senses in product((1, -1), repeat=6)
    ]
    assert found.bound <= np.nanmin(fixed) * (1 + 1e-9)
    assert found.objective == pytest.approx(np.nanmin(fixed), rel=1e-3)


def test_a_claim_of_the_mixed_integer_program_within_limits_is_no_proof():
    """Movers that may go further than the program lets them: that it finds nothing says nothing."""
    table = table_with_one_huge_level(36)
    room = np.minimum(table.lb - table.values, 0.0), np.maximum(table.ub - table.values, 0.0)
    adjuster = Adjuster(table.relations, table.fixed)
    weights = Distance.of(table.n_cells, absolute=1.0 / table.values)
    search = Senses(adjuster, room, table.lower, table.upper, weights)
    program, _ = search._build_program(search.start(), far=1.0)
    assert program.capped


# ---------------------------------------------------------------- infeasible, explained, repaired


def contradictory():
    """All parts of a row must rise and its total fall; a margin far away is fixed."""
    return table_with_margins([[20, 30], [40, 50]], sensitive=[0, 1, 2], lower=2, upper=2, fixed=[8]), np.array(
        [1, 1, -1]
    )


def test_the_explanation_names_the_relation_and_its_cells_and_no_value():
    table, senses = contradictory()
    release = cg.adjust(table, senses=senses, repair=None, surplus=0)
    assert release.status is cg.Status.INFEASIBLE
    conflict = release.details["conflict"]
    assert conflict["relations"] == [table.describe_relation(0)]
    assert conflict["cells"] == {
        "cell 0": "must rise by its level",
        "cell 1": "must rise by its level",
        "cell 2": "must fall by its level",
    }
    assert conflict["irreducible"]
    for name in ("cell 0", "cell 1", "cell 2"):
        assert name in release.explanation
    assert not any(str(int(v)) in release.explanation.split() for v in table.values)


def test_senses_are_flipped_as_few_as_possible():
    table, senses = contradictory()
    release = cg.adjust(table, senses=senses, surplus=0)  # with a surplus one flip may leave too little room
    assert release.published
    assert release.status is cg.Status.FEASIBLE
    assert release.audit().safe
    assert release.details["flipped"] == 1
    assert "1 senses were flipped" in release.explanation


def test_fixed_cells_change_only_when_they_must():
    table = table_with_margins([[20, 30], [40, 50]], sensitive=[0, 1], lower=2, upper=2, fixed=[2, 8])
    assert cg.adjust(table, repair=None, **PLAIN).status is cg.Status.INFEASIBLE  # the parts of a fixed total both rise
    release = cg.adjust(table, repair="relations", senses="upper")
    assert release.published
    assert release.audit().safe
    assert release.details["changed_fixed"] == ["cell 2"]
    assert release.values[8] == pytest.approx(table.values[8])
    assert release.status is cg.Status.FEASIBLE


@pytest.mark.parametrize("options", [PLAIN, {"senses": "upper", "key": key(3)}], ids=["plain", "default"])
@pytest.mark.parametrize("norm", NORMS)
def test_a_bound_on_a_total_that_is_not_fixed_is_given_up_and_named(norm, options):
    """castro2004 sections 2 and 5: with a large penalty for changes of margins there is always a table."""
    table = table_with_margins([[20, 30], [40, 50]], sensitive=[0, 1], lower=4, upper=4)
    ub = np.full(table.n_cells, np.inf)
    ub[2] = table.values[2] + 5.0  # the total of the two that must rise by 4 each
    table = table.with_(ub=ub)
    assert cg.adjust(table, norm=norm, repair=None, **options).status is cg.Status.INFEASIBLE
    release = cg.adjust(table, norm=norm, repair="relations", **options)
    assert release.status is cg.Status.FEASIBLE
    assert release.details["changed_bounds"] == ["cell 2"]
    assert "known bounds of totals were given up (cell 2)" in release.explanation
    assert release.values[2] >= table.values[2] + 8.0 - 1e-9
    assert release.audit().safe
    assert np.isinf(release.table.ub[2])
    assert np.abs(table.relations @ release.values).max() < 1e-9


def test_what_cannot_be_repaired_stays_infeasible():
    table, senses = contradictory()
    release = cg.adjust(table, senses=senses, repair="relations")
    assert release.status is cg.Status.INFEASIBLE
    with pytest.raises(cg.CellguardError):
        cg.adjust(table, repair="everything")


# ---------------------------------------------------------------- whole numbers


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(3))
def test_whole_numbers_stay_additive_and_safe(norm, seed):
    table = random_table(20 + seed, rows=4, columns=4, sensitive=5, integer=True)
    release = cg.adjust(table, norm=norm, senses="optimal", time_limit_s=20, surplus=0)
    assert release.published
    assert (release.values == np.rint(release.values)).all()
    assert np.abs(table.relations @ release.values).max() == 0
    assert release.audit().safe
    real = cg.adjust(table, norm=norm, senses="optimal", time_limit_s=20, **REAL)
    assert release.bound <= release.objective
    assert release.objective >= real.bound * (1 - 1e-9)


def test_whole_numbers_in_three_dimensions():
    from cellguard import generate

    table = generate.frequency(seed=3)
    release = cg.adjust(table, norm="l1", integer=True, time_limit_s=20)
    assert (release.values == np.rint(release.values)).all()
    assert release.audit().safe


def test_whole_numbers_need_whole_values():
    with pytest.raises(cg.InputError):
        cg.adjust(table_with_margins([[1.5, 2], [3, 4]], sensitive=[0], lower=1, upper=1), integer=True)


# ---------------------------------------------------------------- sensitivity and the internal file


def test_multipliers_are_derivatives():
    table = random_table(2)
    level = table.upper.copy()
    release = cg.adjust(table, norm="l2", **PLAIN)
    cell = int(np.argmax(compute_sensitivity(release).lower))
    step = 1e-4 * level[cell]
    level[cell] += step
    moved = cg.adjust(table.with_(upper=level), norm="l2", **PLAIN)
    errors = np.zeros(table.n_cells)
    errors[cell] = step
    assert moved.objective - release.objective == pytest.approx(compute_sensitivity(release).predict(errors), rel=1e-3)


def test_the_internal_file_is_written_only_when_asked_for(tmp_path):
    release = cg.adjust(random_table(3), norm="l1")
    release.save(tmp_path / "public.csv")
    assert (tmp_path / "public.csv").read_text().splitlines()[0] == "cell,value"
    release.save_internal(tmp_path / "internal.csv")
    header = (tmp_path / "internal.csv").read_text().splitlines()[0]
    assert header == "cell,original,value,sense,public_sense,absolute_weight,lower_multiplier,upper_multiplier"
    assert "weight" not in str(release.summary())
    assert "sense" not in {*release.summary()}


def scattered(fixed):
    """Sensitive cells in no relation before, between and behind those of a total that contradict each other."""
    a = [9, 20, 30, 50, 11, 7]
    return cg.Table.from_equations(a, [[3, 1, 2]], sensitive=[0, 1, 2, 4, 5], lower=2, upper=2, fixed=fixed)


@pytest.mark.parametrize("fixed", [[], [3]], ids=["free", "a fixed total"])
@pytest.mark.parametrize("repair", ["senses", "relations"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("integer", [False, True])
def test_senses_of_cells_in_no_relation_are_repaired_by_their_own_places(norm, repair, fixed, integer):
    """Flipped senses were looked up by the place among the cells that relations touch."""
    table = scattered(fixed)
    given = np.zeros(table.n_cells)
    given[table.sensitive] = 1
    for senses in ("upper", "lower", "optimal", given):
        release = cg.adjust(
            table, norm=norm, senses=senses, repair=repair, integer=integer, key=key(1), time_limit_s=10
        )
        assert release.published, release.explanation
        assert release.audit().safe
        assert np.abs(table.relations @ release.values).max() < 1e-9
        assert (np.abs(release.values - table.values)[table.sensitive] >= 2 - 1e-6).all()

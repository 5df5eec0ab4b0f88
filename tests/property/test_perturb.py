"""Cell perturbation against the giant model (salazar2004 figure 3, relaxed) solved as one linear program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import cellguard as cg
from builders import key, with_margins
from cellguard.exceptions import LevelError
from cellguard.methods.demands import build_demands, find_demanded_cells
from cellguard.methods.keys import draw_for_table
from cellguard.methods.perturb.cell_limits import CellLimits, Drawn, compute_cell_limits, perturb_to_multiples
from cellguard.model.levels import compute_required_levels
from cellguard.release.release import Status

BASE = 5.0


def random_table(rows: int, columns: int, seed: int, *, insider: bool = False) -> cg.Table:
    rng = np.random.default_rng(seed)
    inner = rng.integers(0, 40, (rows, columns)).astype(float)
    full, index, relations = with_margins(inner)
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


def draw_limits(t: cg.Table, secret: cg.Key) -> CellLimits:
    """What the method may do: no farther than a base, drawn to multiples, sensitive cells on their side."""
    needs = [compute_required_levels(t, attacker) for attacker in t.attackers]
    rng = draw_for_table(secret, "perturb", t)
    bases = np.full(t.n_cells, BASE)
    target = perturb_to_multiples(t.values, bases, find_demanded_cells(t.n_cells, needs), rng, nearest=False)
    drawn = Drawn(distance=bases, target=target, unit=1.0)
    return compute_cell_limits(t, build_demands(t, needs), drawn, rng).fix_sides()


def giant_model(t: cg.Table, limits: CellLimits) -> float:
    """Published movements z, and for each attacker and sensitive cell two tables f, g that prove its range."""
    n, d = t.n_cells, limits.distance
    copies = [(k, int(p)) for k in range(len(t.attackers)) for p in t.sensitive_cells]
    blocks = 2 + 2 * len(copies)  # z, its distance from what is drawn, and the tables
    size = n * blocks
    T = t.relations.toarray()
    tables = np.eye(blocks)
    A_eq = np.kron(np.delete(tables, 1, axis=0), T)
    A_ub, b_ub = [], []
    bounds = list(zip(limits.low, limits.high, strict=True)) + [(0, None)] * n
    for sign in (1.0, -1.0):  # sign (z - target) <= distance
        rows = np.zeros((n, size))
        rows[:, :n], rows[:, n : 2 * n] = sign * np.eye(n), -np.eye(n)
        A_ub.append(rows)
        b_ub.append(sign * limits.target)
    for c, (k, p) in enumerate(copies):
        lo, hi = t.bounds(t.attackers[k])
        need = compute_required_levels(t, t.attackers[k])
        at_cell = int(np.flatnonzero(need.cells == p)[0])
        hit = np.zeros(size)
        for copy, sign, level in ((2 * c + 2, 1.0, need.upper), (2 * c + 3, -1.0, need.lower)):
            at = slice(copy * n, (copy + 1) * n)
            above, below = np.zeros((n, size)), np.zeros((n, size))
            above[:, at], above[:, :n] = np.eye(n), -np.eye(n)  # y - v <= d
            below[:, at], below[:, :n] = -np.eye(n), np.eye(n)  # v - y <= d
            own = np.zeros(size)
            own[copy * n + p] = -sign
            hit += own
            A_ub += [above, below, own[None]]
            b_ub += [d, d, [-level[at_cell]]]
            bounds += list(zip(lo - t.values, hi - t.values, strict=True))
        A_ub.append(hit[None])
        b_ub.append([-need.sliding[at_cell]])
    cost = np.concatenate([np.zeros(n), t.weights, np.zeros(size - 2 * n)])
    found = linprog(cost, np.vstack(A_ub), np.concatenate(b_ub), A_eq, np.zeros(len(A_eq)), bounds, method="highs")
    return float(found.fun) if found.status == 0 else float("nan")


def compare_with_giant_model(table: cg.Table, seed: int) -> bool:
    """Check a perturbation against the giant model; return whether there was a release to compare with its optimum."""
    limits = draw_limits(table, key(seed))
    best = giant_model(table, limits) if not limits.impossible.any() else float("nan")
    release = cg.perturb(table, base=BASE, key=key(seed))
    if not release.published:
        assert np.isnan(best)
        assert release.explanation
        return False
    assert release.audit().safe
    assert (np.abs(release.values - table.values) <= BASE + 1e-9).all()
    if np.isnan(best):  # the program chose the sides
        return False
    assert release.status is Status.OPTIMAL
    assert release.objective == pytest.approx(best, rel=1e-6, abs=1e-5)
    assert release.bound <= best + 1e-5
    return True


@settings(max_examples=25, deadline=None)
@given(rows=st.integers(2, 3), columns=st.integers(2, 4), seed=st.integers(0, 10**6), insider=st.booleans())
def test_agrees_with_the_giant_model_and_passes_the_audit(rows: int, columns: int, seed: int, insider: bool) -> None:
    compare_with_giant_model(random_table(rows, columns, seed, insider=insider), seed)


def test_most_tables_are_published_and_compared_with_the_giant_model() -> None:
    compared = [compare_with_giant_model(random_table(3, 4, seed, insider=seed % 2 > 0), seed) for seed in range(8)]
    assert sum(compared) >= 5


def test_pattern_d_of_salazar2004_figure_2_is_valid_at_levels_1_and_3_and_so_is_ours() -> None:
    from cellguard.datasets.examples import salazar2004_figure2

    printed = salazar2004_figure2()["perturb"]
    t = printed.table
    table = t.with_(lower=np.where(t.sensitive, 1.0, 0.0), upper=np.where(t.sensitive, 3.0, 0.0), weights=np.ones(16))
    assert cg.audit(type(printed)(**{**vars(printed), "table": table})).safe
    for seed in range(3):
        ours = cg.perturb(table, distance=5, key=key(seed))
        assert ours.audit().safe
        assert np.abs(ours.values - table.values).max() <= 5
        assert (ours.values == np.rint(ours.values)).all()  # no decimals where the truth has none


def test_the_printed_levels_of_figure_2_cannot_be_met_and_the_cell_is_named() -> None:
    from cellguard.datasets.examples import salazar2004_figure1

    with pytest.raises(LevelError, match="activity=II, region=C"):
        cg.perturb(salazar2004_figure1(), distance=5)


def test_sensitive_cells_can_be_rounded() -> None:
    table = random_table(3, 3, 4).with_(sliding=np.zeros(16))
    release = cg.perturb(table, base=BASE, round_sensitive=True)
    assert release.status is Status.OPTIMAL
    share = release.values[table.sensitive] / BASE
    assert np.allclose(share, np.rint(share))
    assert release.audit().safe


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": 0},
        {"base": -5},
        {"base": [5.0, 5.0]},
        {"distance": -1},
        {"distance": [1.0]},
        {"base": 5, "distance": 5},
        {"base": 5, "draw": "often"},
        {"distance": 5, "round_sensitive": True},
    ],
)
def test_wrong_limits_are_refused(wrong: dict[str, object]) -> None:
    table = cg.Table.from_equations([1, 2, 3], [[2, 0, 1]])
    with pytest.raises(cg.InputError):
        cg.perturb(table, **wrong)


def describe_cell(value: int, **fields: object) -> cg.Table:
    """A sensitive cell beside one that may take whatever the sum needs."""
    return cg.Table.from_equations(
        [value, 50, 50 + value], [[2, 0, 1]], sensitive=[0], sliding=4, weights=[1, 0.001, 0.001], **fields
    )


@pytest.mark.parametrize(("draw", "nearest"), [("random", 5), ("nearest", 2)])
def test_a_multiple_is_published_for_every_value_within_a_base(draw: str, nearest: int) -> None:
    """Whoever sees 15 and knows the rule must hold everything from 10 to 20 possible, but 15 itself."""
    possible = {
        value
        for value in range(8, 23)
        for seed in range(25)
        if cg.perturb(describe_cell(value), base=5, draw=draw, key=key(seed)).values[0] == 15
    }
    assert possible - {10, 20} == set(range(15 - nearest, 16 + nearest)) - {10, 15, 20}
    assert draw == "nearest" or {10, 20} <= possible


def test_within_a_distance_every_movement_is_drawn() -> None:
    """A coin between both ends would leave two values possible for most cells."""
    moved = {cg.perturb(describe_cell(30), distance=4, key=key(seed)).values[0] - 30 for seed in range(80)}
    assert moved == {-4, -3, -2, -1, 1, 2, 3, 4}


@pytest.mark.parametrize("options", [{"base": 5}, {"distance": 5}, {"base": 5, "draw": "nearest"}])
def test_the_truth_is_never_published_for_a_sensitive_cell(options: dict[str, object]) -> None:
    for seed in range(20):
        table = random_table(3, 3, seed)
        release = cg.perturb(table, key=key(seed), **options)
        assert release.published
        assert (np.abs(release.values - table.values)[table.sensitive] > 1e-6).all()
        assert release.audit().safe


def test_counts_are_published_as_whole_numbers_and_audited_as_such(tmp_path: Path) -> None:
    for seed in range(10):
        table = random_table(3, 4, seed).with_(integer=True)
        release = cg.perturb(table, base=4.5, key=key(seed))
        assert release.published
        assert (release.values == np.rint(release.values)).all()
        assert (np.abs(release.values - table.values) <= 4).all()
        lo, hi = release.published_bounds()
        assert ((lo == np.rint(lo)) & (hi == np.rint(hi))).all()
        assert release.audit().integer
        assert release.audit().safe
        release.save(tmp_path / "r.csv")
        again = cg.read_release(table, tmp_path / "r.csv", method="perturb", base=4.5)
        assert again.audit().safe


def test_the_written_file_is_audited_like_the_release(tmp_path: Path) -> None:
    """Cells that had to stay are known, also to whoever only has the file and the distance."""
    table = cg.Table.from_equations(
        [30, 40, 70, 50, 120], [[2, 0, 1], [4, 2, 3]], sensitive=[0], lower=1, upper=2, fixed=[2]
    )
    release = cg.perturb(table, base=5)
    release.save(tmp_path / "r.csv")
    again = cg.read_release(table, tmp_path / "r.csv", method="perturb", base=5)
    for mine, file in zip(release.published_bounds(), again.published_bounds(), strict=True):
        assert (mine == file).all()
    assert again.audit(exact=True).range(0) == release.audit(exact=True).range(0)

"""baena2018: where the truth lies in the narrowest intervals, and what the small classes of table 4 come from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

import cellguard as cg
from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Way
from cellguard.model.weights import compute_weights
from cellguard.papers.baena2018 import classify_positions


def positions(table: cg.Table, low: np.ndarray, high: np.ndarray) -> dict[str, float]:
    wide = high - low > 1e-5 * np.maximum(1.0, table.values)
    return classify_positions(table.values[wide], low[wide], high[wide])


def weighted(kind: str, lower: float, **size: object) -> cg.Table:
    table = cg.generate.onehier(size.pop("seed", 1), lower=lower, upper=0.20, **size)
    return table.with_(weights=compute_weights(kind, table.values))


def solve_as_printed(table: cg.Table) -> tuple[float, np.ndarray, np.ndarray]:
    """Solve (9) with one copy of the table per level by the simplex method; return the width and both ends."""
    n, cells = table.n_cells, table.sensitive_cells
    copies, relations = 2 * len(cells), table.relations
    move = n * copies
    every = csr_array(np.ones((copies, 1)))
    A = vstack([
        hstack([csr_array((relations.shape[0] * copies, 2 * n)), kron(eye_array(copies), relations)]),
        hstack([-kron(every, eye_array(n)), csr_array((move, n)), eye_array(move)]),
        hstack([csr_array((move, n)), -kron(every, eye_array(n)), -eye_array(move)]),
    ])  # fmt: skip
    equal = relations.shape[0] * copies
    low, high = np.full(move, -np.inf), np.full(move, np.inf)
    low[np.arange(len(cells)) * n + cells] = table.upper[cells]
    high[(len(cells) + np.arange(len(cells))) * n + cells] = -table.lower[cells]
    found = LinearProgram(
        LinearModel(
            csr_array(A),
            np.concatenate([np.zeros(equal), np.full(2 * move, -np.inf)]),
            np.zeros(equal + 2 * move),
            np.concatenate([np.zeros(2 * n), low]),
            np.concatenate([np.full(n, 1e7), table.values, high]),
            np.concatenate([table.weights, table.weights, np.zeros(move)]),
        ),
        Way(simplex="dual", presolve=True, tolerance=1e-7),
    ).solve()
    assert found.optimal
    return found.objective, table.values - found.x[n : 2 * n], table.values + found.x[:n]


@pytest.mark.filterwarnings("ignore")
def test_table4_small_classes_appear_with_other_weights_of_the_paper() -> None:
    """With 1/a no asymmetric interval ends at its truth on the right; with 1/sqrt(a) some do, as printed."""
    by_kind = {}
    for kind in ("inverse", "inverse_sqrt"):
        table = weighted(kind, 0.05, instance=1)
        release = cg.intervals(table, position="narrowest")
        by_kind[kind] = positions(table, release.lower, release.upper)
    assert by_kind["inverse"]["at_right_end"] == 0
    assert 0 < by_kind["inverse_sqrt"]["at_right_end"] < 6
    for shares in by_kind.values():
        assert shares["at_midpoint"] < 4
        assert 55 < shares["left_of_midpoint"] < 75
        assert 20 < shares["at_left_end"] < 40


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "seed", "unique"), [("inverse", 1, True), ("inverse_sqrt", 4, False)])
def test_table4_midpoints_depend_on_which_optimum_a_solver_ends_at(kind: str, seed: int, unique: bool) -> None:
    table = weighted(kind, 0.20, seed=seed, rows=12, columns=8, families=2, sensitive=0.12)
    ours = cg.intervals(table, position="narrowest")
    least, low, high = solve_as_printed(table)
    assert ours.objective == pytest.approx(least, rel=1e-4)
    assert positions(table, ours.lower, ours.upper)["at_midpoint"] == 100
    assert (positions(table, low, high)["at_midpoint"] == 100) == unique


def test_one_table_serves_all_three_methods() -> None:
    """Section 2: relations, weights, bounds and levels are those of one table, whatever the method."""
    table = cg.generate.onehier(3, rows=12, columns=5, families=2, sensitive=0.1, lower=0.05, upper=0.20)
    cells = table.sensitive_cells
    released = {
        "suppress": cg.suppress(table, rounds=0),
        "adjust": cg.adjust(table, surplus=0, integer=False),
        "intervals": cg.intervals(table, position="narrowest"),
    }
    for name, release in released.items():
        assert release.audit().safe, name
    assert released["suppress"].suppressed[cells].all()
    moved = released["adjust"].values[cells] - table.values[cells]
    assert ((moved >= table.upper[cells] - 1e-6) | (moved <= -table.lower[cells] + 1e-6)).all()
    low, high = released["intervals"].published_bounds()
    assert (high[cells] - table.values[cells] >= table.upper[cells] - 1e-4).all()
    assert (table.values[cells] - low[cells] >= table.lower[cells] - 1e-4).all()


@pytest.mark.parametrize("lower", [0.20, 0.05])
def test_midpoints_of_suppression_ranges_are_seldom_the_truth(lower: float) -> None:
    """The paper's future work: unlike the narrowest intervals, ranges of a suppression do not have the truth in the middle."""
    table = cg.generate.onehier(1, rows=30, columns=8, families=3, sensitive=0.1, lower=lower, upper=0.20)
    found = cg.suppress(table, rounds=0).audit(exact=True)
    assert found.safe
    assert found.midpoints()["0"] < 0.1

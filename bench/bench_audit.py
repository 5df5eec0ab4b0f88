"""The audit against the naive way: a fresh linear program for every sensitive cell and side."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from figures import CSPLIB, figure, peak_gib, seconds
from joblib import parallel_config
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from cellguard._engine.solvers.lp import LinearModel, LinearProgram, Way
from cellguard.auditing.audit import audit
from cellguard.methods.suppress.suppress import suppress
from cellguard.model.table import Table
from cellguard.release.release import Release, Status, Suppression

SAMPLE = 30
"""So many of the naive programs are solved; their mean stands for all of them."""


def naive(release: Release) -> float:
    """Return the processor time of a fresh program, as the solver comes, per sensitive cell and side."""
    table = release.table
    lo, hi = release.published_bounds()
    rng = np.random.default_rng(0)
    cells = rng.permutation(table.sensitive_cells)[: SAMPLE // 2]
    start = time.process_time()
    for cell in cells:
        for maximize in (False, True):
            cost = np.zeros(table.n_cells)
            cost[cell] = 1.0
            program = LinearProgram(
                LinearModel(table.relations, table.rhs, table.rhs, lo, hi, cost),
                Way(solver="choose", simplex="dual", presolve=True, tolerance=1e-7),
            )
            program.solve(maximize=maximize)
    return (time.process_time() - start) / (2 * len(cells)) * 2 * int(table.sensitive.sum())


def against_naive() -> None:
    """Verdicts with exact witnesses, and exact ranges, on suppressed tables of CSPLIB."""
    if not CSPLIB.is_dir():
        print("CSPLIB is not there; set CELLGUARD_CSPLIB")
        return
    targets = {"table1": (50, 30), "hier13": (50, 100), "two5in6": (500, 100), "cbs": (500, 30)}
    for name, (verdicts, exact) in targets.items():
        table = Table.read(CSPLIB / f"{name}.jj.gz")
        release = suppress(table, method="heuristic", time_limit_s=10)
        once = naive(release)
        figure(f"{name}: a fresh program per cell and side", once, note=f"{SAMPLE} of {2 * int(table.sensitive.sum())}")
        for kind, factor, whole in (("verdicts", verdicts, False), ("exact ranges", exact, True)):
            found: list[Any] = []
            took = seconds(lambda r=release, e=whole, f=found: f.append(audit(r, exact=e)), 3)
            note = f"{once / took:.0f} times faster (at least {factor}), {found[-1].summary()}"
            figure(f"{name}: {kind}", took, once / factor, note=note)


def million_cells(areas: int = 8264, side: int = 10, sensitive: int = 20_000) -> Suppression:
    """Return areas with a square table each, some rectangles of each suppressed: small components."""
    rng = np.random.default_rng(1)
    m = side + 1
    index = np.arange(m * m).reshape(m, m)
    lines = np.zeros((2 * m, m * m))
    for r, line in enumerate([*index, *index.T]):
        lines[r, line[:-1]], lines[r, line[-1]] = 1.0, -1.0
    n = areas * m * m + 1
    totals = np.append(np.arange(areas) * m * m + m * m - 1, n - 1)
    top = csr_array((np.append(np.ones(areas), -1.0), (np.zeros(areas + 1, int), totals)), shape=(1, n))
    inner = kron(eye_array(areas), csr_array(lines), format="csr")
    T = csr_array(vstack([hstack([inner, csr_array((inner.shape[0], 1))]), top]))
    a = np.zeros((areas, m, m))
    a[:, :side, :side] = rng.integers(1, 1000, (areas, side, side))
    a[:, side, :side] = a[:, :side, :side].sum(axis=1)
    a[:, :, side] = a[:, :, :side].sum(axis=2)
    values = np.append(a.ravel(), a[:, side, side].sum())
    area = np.arange(sensitive) % areas
    row, column = rng.integers(0, side, (2, sensitive))
    other_row, other_column = (x + rng.integers(1, side, sensitive) for x in (row, column))
    primary, hidden = np.zeros(n, bool), np.zeros(n, bool)
    for i, j in ((row, column), (row, other_column), (other_row, column), (other_row, other_column)):
        hidden[area * m * m + i % side * m + j % side] = True
    primary[area * m * m + row * m + column] = True
    level = np.where(primary, np.maximum(1.0, np.round(0.1 * values)), 0.0)
    table = Table.from_equations(values, T, sensitive=primary, lower=level, upper=level, weights=1.0)
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden)


def large() -> None:
    """A million cells, in one process and spread over processes."""
    release = million_cells()
    for exact in (False, True):
        found: list[Any] = []
        took = seconds(lambda e=exact, f=found: f.append(audit(release, exact=e)), 1)
        name = f"a million cells, {'exact ranges' if exact else 'verdicts'}"
        figure(name, took, 120.0, note=str(found[0].summary()))
    figure("memory of all this", peak_gib(), 6.0, unit="GiB")
    spread(release, found[0])


def spread(release: Suppression, alone: Any) -> None:
    """The same over a local Dask cluster of two processes: wall time, and whether the answer is the same."""
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError:
        print("Dask is not there; it is the extra cellguard[dask]")
        return
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        start = time.perf_counter()
        with parallel_config("dask"):
            found = audit(release, exact=True)
        took = time.perf_counter() - start
    f, g = alone.findings[0], found.findings[0]
    same = all((getattr(f, name) == getattr(g, name)).all() for name in ("low", "high", "safe", "unsafe"))
    same = same and (f.witnesses.numerators != g.witnesses.numerators).nnz == 0
    figure("a million cells over Dask, exact ranges (wall time)", took, 120.0, note=f"same answer: {same}")


def main() -> None:
    """Print every figure."""
    large()
    against_naive()


if __name__ == "__main__":
    main()

"""The audit spread over a cluster: the same answer."""

import numpy as np
import pytest
from joblib import parallel_config
from scipy.sparse import block_diag, csr_array

from cellguard._engine.ranges import parts
from cellguard.auditing.audit import audit
from cellguard.model.table import Table
from cellguard.release.release import Status, Suppression


def many_squares(count=40):
    """A release of 2 x 3 tables without totals of their own: small components."""
    rng = np.random.default_rng(2)
    index = np.arange(12).reshape(3, 4)
    lines = np.zeros((7, 12))
    for r, line in enumerate([*index, *index.T]):
        lines[r, line[:-1]], lines[r, line[-1]] = 1.0, -1.0
    inner = rng.integers(1, 90, (count, 2, 3)).astype(float)
    a = np.zeros((count, 3, 4))
    a[:, :2, :3] = inner
    a[:, 2, :3] = inner.sum(axis=1)
    a[:, :, 3] = a[:, :, :3].sum(axis=2)
    hidden = np.zeros((count, 3, 4), bool)
    hidden[:, :2, :3] = True
    sensitive = hidden & (rng.random(hidden.shape) < 0.3)
    level = np.where(sensitive, np.ceil(0.2 * a), 0.0).ravel()
    table = Table.from_equations(
        a.ravel(), csr_array(block_diag([lines] * count)), sensitive=sensitive.ravel(), lower=level, upper=level
    )
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden.ravel())


def assert_same(left, right):
    for f, g in zip(left.findings, right.findings, strict=True):
        for name in ("low", "high", "safe", "unsafe", "exact", "disclosed", "low_witness", "high_witness"):
            assert (getattr(f, name) == getattr(g, name)).all()
        assert (f.witnesses.numerators != g.witnesses.numerators).nnz == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # what a cluster says while it starts and stops is not ours
def test_a_dask_cluster_gives_the_same_answer(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(parts, "PART_SIZE", 30)
    release = many_squares()
    alone = audit(release, exact=True)
    assert 0 < alone.unsafe < alone.checked
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config("dask"),
    ):
        spread = audit(release, exact=True)
    assert_same(alone, spread)


def test_threads_give_the_same_answer(monkeypatch):
    monkeypatch.setattr(parts, "PART_SIZE", 30)
    release = many_squares()
    alone = audit(release)
    with parallel_config("threading"):
        assert_same(alone, audit(release, jobs=3))

"""Clusters of a publication: at a time, within one limit, and kept as they are finished."""

import time

import numpy as np
import pytest
from joblib import parallel_config

import cellguard as cg
from builders import key
from cellguard.auditing.clusters import _restrict_release
from cellguard.model.linked.clusters import run_clusters_of_tables
from cellguard.model.linked.publication import Part, Publication


def three(**fields) -> Publication:
    """Three tables that share nothing: they measure different things."""
    rng = np.random.default_rng(4)
    parts = []
    for name in ("cattle", "sheep", "pigs"):
        leaves = rng.integers(3, 90, (5, 4)).astype(float)
        table = cg.Table.from_leaves({"region": list("abcde"), "size": list("wxyz")}, leaves)
        marked = np.zeros(table.n_cells, bool)
        marked[rng.choice(np.flatnonzero(table.coordinates.all(axis=1)), 3, replace=False)] = True
        level = np.where(marked, np.ceil(0.2 * table.values), 0.0)
        parts.append(
            Part(name=name, table=table.with_(sensitive=marked, lower=level, upper=level), indicator=name, **fields)
        )
    return Publication.of(parts)


def test_the_same_release_on_one_core_and_on_several():
    found = three()
    assert len(found.clusters) == 3
    alone = cg.suppress(found, method="heuristic", rounds=3)
    with parallel_config(backend="threading", n_jobs=2):
        together = cg.suppress(found, method="heuristic", rounds=3)
    assert np.array_equal(alone.suppressed, together.suppressed)
    assert together.audit().safe


@pytest.mark.slow
def test_clusters_in_processes():
    found = three()
    with parallel_config(n_jobs=2):
        release = cg.suppress(found, method="heuristic", rounds=1)
    assert release.audit().safe


class Box:
    """Keeps releases, and stops after some."""

    def __init__(self, after: int = 99) -> None:
        self.kept, self.after = {}, after

    def load(self, number):
        return self.kept.get(number)

    def save(self, number, release):
        self.kept[number] = release
        if len(self.kept) == self.after:
            raise KeyboardInterrupt

    def should_protect(self, number):  # noqa: ARG002 - a single process protects every cluster
        return True


def test_a_run_that_was_stopped_goes_on_with_the_clusters_that_are_left():
    found, box = three(), Box(after=2)
    with pytest.raises(KeyboardInterrupt):
        cg.suppress(found, method="heuristic", rounds=1, keeper=box)
    assert len(box.kept) == 2
    kept, box.after = dict(box.kept), 99
    release = cg.suppress(found, method="heuristic", rounds=1, keeper=box)
    assert all(box.kept[number] is before for number, before in kept.items())
    assert np.array_equal(release.suppressed, cg.suppress(found, method="heuristic", rounds=1).suppressed)


def test_one_limit_for_all_clusters():
    begin = time.process_time()
    release = cg.suppress(three(), method="heuristic", time_limit_s=3.0)
    assert release.published
    assert time.process_time() - begin < 3.0 + 3.0  # and some moments for the audits


@pytest.mark.parametrize("effort", [[1.0] * 5, [5.0, 1, 1, 1], [3.0, 2, 2]])
def test_clusters_at_a_time_end_within_the_limit_of_all(effort):
    with parallel_config(backend="threading", n_jobs=2):
        tasks = ((k, None, {"time_limit_s": 0.0}) for k in range(len(effort)))
        found = run_clusters_of_tables(
            lambda _, time_limit_s: time_limit_s, (), tasks, np.array(effort), {"time_limit_s": 60.0}
        )
        given = dict(found)
    busy = [0.0, 0.0]
    for k in range(len(effort)):  # whoever is free takes the next
        busy[busy.index(min(busy))] += given[k]
    assert max(busy) == pytest.approx(60.0)


def test_cells_of_the_whole_system_are_found_in_their_cluster():
    found = three()
    plain = cg.suppress(found, method="heuristic", rounds=1)
    headline = np.flatnonzero(plain.secondary)[-2:]
    release = cg.suppress(found, method="heuristic", rounds=1, must_publish=headline)
    assert not release.suppressed[headline].any()
    assert release.audit().safe
    mask = np.zeros(found.table.n_cells, bool)
    mask[headline] = True
    again = cg.suppress(found, method="heuristic", rounds=1, must_publish=mask)
    assert np.array_equal(again.suppressed, release.suppressed)


def test_kinds_of_weights_know_priorities():
    found = three(priority=5.0)
    release = cg.suppress(found, method="heuristic", rounds=1, weights="unit")
    assert release.objective == 5.0 * release.secondary.sum()


@pytest.mark.parametrize(("verb", "options"), [("round", {"base": 60}), ("perturb", {"base": 60})])
def test_attacks_know_releases_of_several_clusters(verb, options):
    one = three().parts[0]
    table = cg.Table.from_leaves(
        {"region": list("abcde"), "size": list("wxyz")},
        one.table.values[one.table.coordinates.all(axis=1)].reshape(5, 4),
    )
    table = table.with_(sensitive=one.table.sensitive, lower=one.table.lower, upper=one.table.upper)
    twice = Publication.of(
        [Part(name=name, table=table, indicator=name) for name in ("cattle", "sheep")], different=[["cattle", "sheep"]]
    )
    assert len(twice.clusters) == 2
    release = getattr(cg, verb)(twice, key=key(1), **options)
    # each cluster has coins of its own: the attack on both together finds what those on each of them find
    alone = [cg.attack(_restrict_release(release, np.flatnonzero(twice.cluster_of == k))) for k in range(2)]
    assert cg.attack(release).width == pytest.approx(np.mean([one.width for one in alone]))
    assert all(0 < one.width <= 2 for one in alone)

"""The audit of a publication, cluster by cluster, is the audit of the whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from joblib import effective_n_jobs, parallel_config

import cellguard as cg
from cellguard.auditing import audit as module
from cellguard.auditing import clusters as by_clusters
from cellguard.auditing import inference
from cellguard.model.levels import add_respondents, list_attackers
from cellguard.release.release import Suppression


def firms(n: int = 60) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    sizes = {"region": 6, "sector": 5, "size": 3}
    made = {name: rng.choice([f"{name[:2]}{k}" for k in range(m)], n) for name, m in sizes.items()}
    return made | {"x": np.ceil(np.exp(rng.normal(3, 1.5, n))), "y": np.ceil(np.exp(rng.normal(3, 1.5, n)))}


@pytest.fixture(scope="module")
def publication() -> cg.Publication:
    """Two indicators with nothing between them: two clusters, with the same firms in both."""
    tables = {"sectors": ["region", "sector"], "sizes": ["region", "size"]}
    by = dict.fromkeys(("region", "sector", "size"))
    found = cg.tabulate_publication(firms(), by, tables, indicators={"x": "x", "y": "y"})
    return found.apply(cg.PPercent(10), cg.MinFrequency(2, percent=10))


def whole_audit(release: cg.Release, monkeypatch: pytest.MonkeyPatch, **options):
    with monkeypatch.context() as patch:
        patch.setattr(inference, "list_clusters", lambda _: [])
        return module.audit(release, **options)


@pytest.fixture(scope="module")
def patterns(publication) -> dict[str, Suppression]:
    safe = cg.suppress(publication, method="heuristic", rounds=0)
    assert isinstance(safe, Suppression)
    rng = np.random.default_rng(2)
    fewer = safe.suppressed & ~(safe.secondary & (rng.random(publication.table.n_cells) < 0.4))
    return {"safe": safe, "unsafe": replace(safe, suppressed=fewer)}


@pytest.mark.parametrize("exact", [False, True])
def test_clusters_tell_what_the_whole_tells(publication, patterns, monkeypatch, exact):
    assert len(publication.clusters) == 2
    for kind, release in patterns.items():
        one, other = whole_audit(release, monkeypatch, exact=exact), module.audit(release, exact=exact)
        assert one.safe is other.safe is (kind == "safe")
        assert one.summary() == other.summary()
        assert np.array_equal(one.disclosed, other.disclosed)
        assert [f.attacker.name for f in one.findings] == [f.attacker.name for f in other.findings]
        for a, b in zip(one.findings, other.findings, strict=True):
            assert np.array_equal(a.cells, b.cells)
            assert np.array_equal(a.safe, b.safe)
            assert np.array_equal(a.unsafe, b.unsafe)
            assert np.array_equal(a.levels.sliding, b.levels.sliding)
            if exact and not a.attacker.derived:
                assert np.allclose(a.low, b.low)
                assert np.allclose(a.high, b.high)
        verdict = cg.verify(other.release, list(other.witnesses.values()))
        assert verdict.accepted is (kind == "safe")


def describe_knowledge(attacker, cells) -> tuple[tuple[int, float, float], ...]:
    """Return what an attacker knows of some cells of a table, by the numbers of the whole table."""
    known = zip(attacker.cells.tolist(), attacker.lb.tolist(), attacker.ub.tolist(), strict=True)
    return tuple(sorted((int(cells[c]), lb, ub) for c, lb, ub in known))


def test_a_respondent_is_one_in_each_cluster(publication):
    """Clusters share no cell and no relation: what is known of one says nothing about another."""
    table = add_respondents(publication.table)
    cluster, every = publication.cluster_of, np.arange(table.n_cells)
    derived = [a for a in list_attackers(table) if a.derived]
    people = [a for a in derived if a.name.startswith("insider")]
    assert len(people) > 10
    assert all(len(set(cluster[a.cells].tolist())) == 1 for a in people)
    # those who leave slack for all levels nearby are one attacker together, everywhere
    assert [a.name for a in derived if a not in people] == ["other contributors"]
    # they are those that the method of each cluster plans against
    whole = [describe_knowledge(a, every) for a in people]
    alone = []
    for k in range(2):
        part, cells = publication.select_cluster(k)[0], np.flatnonzero(cluster == k)
        for a in add_respondents(part).attackers:
            if a.derived and a.name.startswith("insider"):
                alone.append(describe_knowledge(a, cells))
            elif a.derived:
                theirs = describe_knowledge(derived[-1], every)
                assert describe_knowledge(a, cells) == tuple(one for one in theirs if cluster[one[0]] == k)
    assert sorted(whole) == sorted(alone)


def test_clusters_are_audited_in_other_processes(patterns, monkeypatch):
    release = patterns["safe"]
    monkeypatch.setattr(by_clusters, "_SEVERAL_CORES", 0)
    one, other = module.audit(release), module.audit(release, jobs=2)
    assert one.safe
    assert other.safe
    assert [f.attacker.name for f in one.findings] == [f.attacker.name for f in other.findings]
    assert cg.verify(other.release, list(other.witnesses.values())).accepted


@pytest.mark.parametrize(("around", "jobs", "workers"), [(2, None, 2), (2, 1, 1), (1, None, 1), (1, 2, 2)])
def test_as_many_at_a_time_as_somebody_says(patterns, monkeypatch, around, jobs, workers):
    release = patterns["safe"]
    seen = []
    run = by_clusters.run_clusters_of_tables

    def watched(*args):
        seen.append(effective_n_jobs(None))
        return run(*args)

    monkeypatch.setattr(by_clusters, "_SEVERAL_CORES", 0)
    monkeypatch.setattr(by_clusters, "run_clusters_of_tables", watched)
    with parallel_config(backend="threading", n_jobs=around):
        assert module.audit(release, jobs=jobs).safe
    assert seen == [workers]

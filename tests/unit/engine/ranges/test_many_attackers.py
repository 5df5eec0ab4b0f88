"""Many attackers at once: the same verdicts as one by one, shared witnesses that fit what each of them knows."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

import cellguard as cg
from cellguard._engine.ranges import coalitions
from cellguard._engine.ranges.implied import Tightened, tighten_slack, tighten_slack_of_views
from cellguard._engine.ranges.many import Views, compute_ranges_for_views
from cellguard._engine.ranges.ranges import AskedRanges, Sight, compute_ranges
from cellguard.auditing.audit import audit
from cellguard.auditing.witnesses import list_audited_attackers, read_witnesses, verify
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.levels import add_respondents
from cellguard.release.release import Status, Suppression


def survey(n=500, seed=0, scale=1.0):
    """A survey with many lone respondents, tabulated and flagged."""
    rng = np.random.default_rng(seed)
    firms = {
        "region": rng.choice([f"r{i}" for i in range(8)], n),
        "branch": rng.choice([f"b{i}" for i in range(12)], n, p=np.arange(1, 13) / 78),
        "size": rng.choice(["s", "m", "l"], n, p=[0.6, 0.3, 0.1]),
        "x": np.ceil(rng.pareto(1.0, n) * 100 + 1) * scale,
    }
    branches = {f"B{k}": [f"b{i}" for i in range(4 * k, 4 * k + 4)] for k in range(3)}
    by = {"region": [f"r{i}" for i in range(8)], "branch": branches, "size": ["s", "m", "l"]}
    return cg.tabulate(firms, by, "x").apply(cg.PPercent(10), cg.MinFrequency(3, percent=10))


def withheld(table, share, seed=0):
    """A pattern drawn by lot: some is safe, some is not."""
    rng = np.random.default_rng(seed)
    mask = table.sensitive | (rng.random(table.n_cells) < share)
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=mask & ~table.fixed)


def one_by_one(release, everywhere):
    """Every attacker alone, by the range engine without anything shared."""
    verdicts = []
    table = release.table
    for attacker, need in list_audited_attackers(release, everywhere=everywhere):
        lo, hi = release.published_bounds(attacker)
        found = compute_ranges(
            Sight(table.relations, lo, hi, table.values), AskedRanges(need.cells, need.lower, need.upper, need.sliding)
        )
        verdicts.append((found.safe, found.unsafe))
    return verdicts


@pytest.mark.parametrize(
    ("share", "seed", "scale", "everywhere"),
    [(0.1, 0, 1.0, True), (0.3, 1, 1.0, False), (0.5, 2, 1e-3, False), (0.25, 3, 1e6, False)],
)
def test_the_same_verdicts_as_one_by_one(share, seed, scale, everywhere):
    table = add_respondents(survey(seed=seed, scale=scale).with_(whole=False))
    assert len(table.attackers) > 50
    release = withheld(table, share, seed)
    found = audit(release, everywhere=everywhere)
    for finding, (safe, unsafe) in zip(found.findings, one_by_one(release, everywhere), strict=True):
        np.testing.assert_array_equal(finding.safe, safe)
        np.testing.assert_array_equal(finding.unsafe, unsafe)
    assert found.unsafe > 0
    assert sum(int(f.safe.sum()) for f in found.findings) > 100


def test_witnesses_are_shared_and_prove_each_attacker(tmp_path):
    table = cg.with_insiders(survey())
    release = withheld(table, 0.5)
    found = audit(release)
    # everybody asks only for what is safe against him
    asking = [
        replace(
            f.attacker, derived=False, sensitive=f.cells[f.safe], lower=f.levels.lower[f.safe], upper=f.levels.upper[f.safe],
            sliding=f.levels.sliding[f.safe],
        )
        for f in found.findings[1:] if f.safe.any()
    ]  # fmt: skip
    external = found.findings[0]
    kept = np.isin(np.arange(table.n_cells), external.cells[external.safe])
    levels = {name: np.where(kept, getattr(table, name), 0.0) for name in ("lower", "upper", "sliding")}
    assert len(asking) > 50
    asked = table.with_(sensitive=kept, attackers=(EXTERNAL, *asking), insiders=False, **levels)
    careful = replace(release, table=asked)
    again = audit(careful)
    assert again.safe
    again.save_witnesses(tmp_path / "w.json.gz")
    proofs, _ = read_witnesses(tmp_path / "w.json.gz", n_cells=table.n_cells)
    checked = verify(careful, proofs)
    assert checked.accepted, checked.problems[:3]
    assert 10 * checked.tables < checked.checked
    # what one attacker may use of a table another may not
    k = next(k for k, p in enumerate(proofs) if p.high_share is not None and min(p.high_share) < 1)
    greedy = replace(proofs[k], high_share=None, low_share=None)
    assert any("interval that the attacker knows" in p for p in verify(careful, [greedy]).problems)
    beyond = [*proofs]
    beyond[k] = replace(proofs[k], high_share=[Fraction(2)] * len(proofs[k].cells))
    assert any("beyond its end" in p for p in verify(careful, beyond).problems)


def test_exactly_known_cells_stand_still_exactly():
    table = cg.with_insiders(survey(seed=5))
    release = withheld(table, 0.4, 5)
    looked_at = 0
    for finding in audit(release).findings:
        exactly = finding.attacker.cells[finding.attacker.lb == finding.attacker.ub]
        rows = np.unique([*finding.low_witness[finding.safe], *finding.high_witness[finding.safe], -1])[1:]
        for row in rows.tolist():
            assert not set(finding.witnesses.get_row(row)) & set(exactly.tolist())
            looked_at += len(exactly) > 0
    assert looked_at > 50


def test_what_attackers_know_discloses_is_listed():
    # one relation 20 = a + b + c with everything but the total withheld: who knows a and b knows c
    table = cg.Table.from_equations([20, 9, 7, 4], [[0, 1, 2, 3]], sensitive=[1], upper=[1.0])
    knows = Attacker(name="two of three", cells=[1, 2], lb=[9, 7], ub=[9, 7], sensitive=[3], upper=[1.0])
    table = table.with_(attackers=(EXTERNAL, knows))
    release = Suppression(
        table=table, status=Status.FEASIBLE, objective=0.0, suppressed=np.array([False, True, True, True])
    )
    external, insider = audit(release).findings
    assert external.safe.all()
    assert external.disclosed.tolist() == []
    assert insider.exact.tolist() == [True]
    assert insider.disclosed.tolist() == [3]


def test_time_is_for_all_attackers_together():
    table = cg.with_insiders(survey(2500, seed=7))
    release = withheld(table, 0.4, 7)
    audit(release)
    begin = time.process_time()
    found = audit(release, time_limit_s=0.0)
    assert time.process_time() - begin < 2.0
    assert found.unknown > 0
    assert not found.safe


def test_coalitions_do_not_change_verdicts(monkeypatch):
    table = cg.with_insiders(survey(seed=8))
    release = withheld(table, 0.35, 8)
    usual = audit(release, everywhere=False)
    monkeypatch.setattr(coalitions, "_ALONE", 1 << 62)  # nobody is asked together
    apart = audit(release, everywhere=False)
    for a, b in zip(usual.findings, apart.findings, strict=True):
        np.testing.assert_array_equal(a.safe, b.safe)
        np.testing.assert_array_equal(a.unsafe, b.unsafe)


def test_views_without_requests_and_without_knowledge():
    T = csr_array(np.array([[-1.0, 1, 1]]))
    lo, hi, a = np.array([9.0, 0, 0]), np.array([9.0, 9, 9]), np.array([9.0, 4, 5])
    none = np.zeros(0)
    nothing = Views(
        known_ptr=np.zeros(3, np.int64), known_cell=none.astype(np.int64), known_lo=none, known_hi=none,
        view=none.astype(np.int64), cell=none.astype(np.int64), lower=none, upper=none, sliding=none,
    )  # fmt: skip
    assert len(compute_ranges_for_views(Sight(T, lo, hi, a), nothing, certify=True).safe) == 0


@pytest.mark.parametrize("seed", range(5))
def test_tightened_room_is_what_implied_room_says_of_each_view(seed):
    rng = np.random.default_rng(seed)
    A = csr_array(rng.choice([-1.0, 0.0, 1.0], (12, 20), p=[0.1, 0.75, 0.15]))
    A = csr_array(A[np.flatnonzero(np.diff(A.indptr) > 1)])
    down, up = rng.integers(0, 9, (2, 20)).astype(float)
    up[rng.random(20) < 0.3] = np.inf
    down, up = tighten_slack(A, down, up)
    down, up = tighten_slack(A, down, up)
    known = {v: rng.choice(20, 3, replace=False) for v in range(4)}
    key = np.concatenate([v * 20 + cells for v, cells in known.items()])
    room = Tightened.join_least(
        20, key, down[key % 20] * rng.random(12), np.minimum(up[key % 20], 3.0) * rng.random(12)
    )
    tight = tighten_slack_of_views(A, down, up, room)
    for v, cells in known.items():
        d, u = down.copy(), up.copy()
        d[cells], u[cells] = room.get_slack(np.full(3, v), cells, d[cells], u[cells])
        every = np.arange(20)
        own = tight.get_slack(np.full(20, v), every, down, up)
        for mine, whole in zip(own, tighten_slack(A, d, u), strict=True):
            np.testing.assert_allclose(mine, whole, rtol=1e-12)

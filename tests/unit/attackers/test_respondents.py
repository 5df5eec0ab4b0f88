"""Every contributor is an attacker where it matters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import cellguard as cg
from builders import key, write_job
from cellguard.exceptions import InputError
from cellguard.jobs.definition.read import read_job
from cellguard.jobs.flags import flag_job
from cellguard.jobs.tables import tabulate_job
from cellguard.model.levels import add_respondents, compute_required_levels
from cellguard.release.release import Status, Suppression


def find(table: cg.Table, *codes: str) -> int:
    return list(zip(*table.cell_codes().values(), strict=True)).index(codes)


def withhold(table: cg.Table, *cells: int) -> Suppression:
    mask = np.zeros(table.n_cells, bool)
    mask[list(cells)] = True
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=mask)


def make_pair(*partner: float, **options: object) -> tuple[cg.Table, Suppression]:
    """Return a = 100 with an upper level of 17.6, hidden by a cell with the given contributions, and the rest."""
    a = [98.0, 1.0, 1.0]
    c = [300.0, 280.0, 260.0, 240.0]
    frame = {"r": ["a"] * len(a) + ["b"] * len(partner) + ["c"] * len(c), "x": [*a, *partner, *c]}
    table = cg.tabulate(frame, ["r"], "x", **options)
    sensitive = np.zeros(table.n_cells, bool)
    sensitive[find(table, "a")] = True
    table = table.with_(sensitive=sensitive, upper=np.where(sensitive, 17.6, 0.0))
    return table, withhold(table, find(table, "a"), find(table, "b"))


@pytest.mark.parametrize("partner", [(14.0, 6.0), (14.0, 4.0, 2.0), (14.0, 2.0, 1.0, 1.0, 1.0, 1.0)])
@pytest.mark.parametrize("top", [2, 5])
def test_a_contributor_of_a_cell_that_no_rule_flagged_is_an_attacker(partner, top):
    """The contributor of 14 subtracts themselves from a + b = 120: a is at most 106."""
    table, release = make_pair(*partner, top=top)
    assert release.table.with_(insiders=False).sensitive.any()
    assert withhold(table.with_(insiders=False), *np.flatnonzero(release.suppressed)).audit().safe
    found = release.audit()
    assert not found.safe
    assert found.unsafe_cells.tolist() == [find(table, "a")]
    made = cg.suppress(table, time_limit_s=5)
    assert made.published
    assert made.audit().safe
    assert made.suppressed[find(table, "c")]


def test_a_contributor_who_leaves_room_is_no_attacker_of_their_own():
    table, release = make_pair(*[5.0] * 20)
    assert [a.name for a in cg.insiders(table) if a.name != "other contributors"] == ["insider 1"]  # the one of 98
    assert release.audit().safe


def test_the_own_share_counts_behind_a_shadow_variable():
    frame = {"r": ["a"] * 3 + ["b"] * 3 + ["c"] * 4, "x": [98.0, 1, 1, 14, 4, 2, 300, 280, 260, 240]}
    frame["s"] = [5.0, 4, 3, 1, 1, 9, 8, 7, 6, 5]
    table = cg.tabulate(frame, ["r"], "x", shadow="s")
    assert table.statistics.own.top[find(table, "b")].tolist() == [14, 4, 2, 0, 0][: table.statistics.own.top.shape[1]]
    sensitive = np.zeros(table.n_cells, bool)
    sensitive[find(table, "a")] = True
    table = table.with_(sensitive=sensitive, upper=np.where(sensitive, 17.6, 0.0))
    assert not withhold(table, find(table, "a"), find(table, "b")).audit().safe
    assert any(14.0 in a.lb for a in cg.insiders(table))


def test_a_holding_that_is_third_in_a_cell_is_not_forgotten():
    """The holding h is alone in (N, a), and third in (S, a) with 30 of 100: it knows both."""
    rows = [("N", "a", "h", 50.0), ("N", "b", "x", 60), ("N", "b", "y", 50), ("N", "b", "z", 40)]
    rows += [("S", "a", "p", 36.0), ("S", "a", "q", 34), ("S", "a", "h", 30)]
    rows += [("S", "b", "u", 50.0), ("S", "b", "v", 45), ("S", "b", "w", 40)]
    region, size, group, x = (list(column) for column in zip(*rows, strict=True))
    frame = {"region": region, "size": size, "group": group, "x": x}
    for top in (2, 3, 5):
        table = cg.tabulate(frame, ["region", "size"], "x", holding="group", top=top)
        table = table.apply(cg.MinFrequency(2, percent=10))
        lone, third = find(table, "N", "a"), find(table, "S", "a")
        knows = next(a for a in cg.insiders(table) if lone in a.cells)
        assert knows.lb[knows.cells.tolist().index(third)] >= 30.0


def test_jobs_keep_what_contributors_as_attackers_need(tmp_path):
    from cellguard.datasets.survey import write_survey
    from cellguard.jobs.tables import count_needed_contributions
    from cellguard.tabulation.request import KEPT_CONTRIBUTIONS

    assert count_needed_contributions(read_job(write_survey(tmp_path, n=500)).job) >= KEPT_CONTRIBUTIONS > 2


def test_a_job_knows_for_certain_what_the_third_of_a_cell_gave(tmp_path):
    """The holding h is alone in (N, a), and third in (S, a): two kept contributions would only bound its part."""
    rows = ["N,a,h,50", "N,b,x,60", "N,b,y,50", "N,b,z,40", "S,a,p,36", "S,a,q,34", "S,a,h,30"]
    rows += ["S,b,u,50", "S,b,v,45", "S,b,w,40"]
    (tmp_path / "firms.csv").write_text("region,size,group,x\n" + "\n".join(rows) + "\n")
    data = {"file": "firms.csv", "value": "x", "holding": "group"}
    rules = [{"rule": "min_frequency", "n": 2, "percent": 10}]
    file = read_job(write_job(tmp_path, "region", "size", name="third", data=data, rules=rules))
    table = flag_job(tabulate_job(file), file)
    lone, third = find(table, "N", "a"), find(table, "S", "a")
    knows = next(a for a in cg.insiders(table) if lone in a.cells)
    certain = knows.lb if knows.certain is None else knows.certain
    assert certain[knows.cells.tolist().index(third)] == 30.0


def test_contributors_with_gaps_in_their_column_are_refused():
    frame = {"r": ["a", "a", "b"], "x": [1.0, 2.0, 3.0], "group": ["g", None, "h"]}
    with pytest.raises(InputError, match=r"column 'group' \(holding\): 1 records belong to no holding"):
        cg.tabulate(frame, ["r"], "x", holding="group")


def test_larger_contributors_stand_for_smaller_ones_of_the_same_cells():
    frame = {"r": ["a", "a", "b", "b", "b", "c", "c", "c"], "x": [60.0, 20, 15, 3, 1.5, 70, 65, 60]}
    table = cg.tabulate(frame, ["r"], "x").apply(cg.PPercent(10))
    a, b = find(table, "a"), find(table, "b")
    assert table.sensitive_cells.tolist() == [a]
    people = [p for p in cg.insiders(table) if p.name != "other contributors"]
    assert [p.lb[p.cells.tolist().index(b)] for p in people if b in p.cells] == [15.0]
    # against the contributor of 60 less can be asked of their own cell than against that of 20: both are attackers
    table = table.with_(lower=np.where(table.sensitive, 70.0, 0.0))
    asked = {p.lb[p.cells.tolist().index(a)]: p for p in cg.insiders(table) if a in p.cells}
    assert {20.0, 60.0} <= set(asked)
    assert asked[20.0].only.tolist() == [a]
    assert compute_required_levels(
        table, replace(asked[20.0], sensitive=[], lower=[], upper=[], sliding=[]), everywhere=True
    ).cells.tolist() == [a]
    assert compute_required_levels(table, asked[20.0], everywhere=True).cells.tolist() == [a]


def test_two_lone_firms_of_a_kept_total_subtract_themselves(tmp_path):
    frame = {"r": ["a", "b"], "x": [100.0, 60.0]}
    table = cg.tabulate(frame, ["r"], "x").apply(cg.MinFrequency(2, percent=10))
    refused = cg.adjust(table, keep=["total"], key=key(1))
    assert not refused.published
    assert "(r=a)" in refused.explanation
    assert cg.adjust(table, key=key(1)).audit().safe
    made = cg.adjust(table.with_(insiders=False), keep=["total"], key=key(1))
    assert made.published
    assert made.audit().safe
    made.save(tmp_path / "release.csv")
    assert not cg.read_release(table, tmp_path / "release.csv", method="adjust", keep=["total"]).audit().safe


def test_witnesses_prove_kept_totals_of_an_adjusted_table(tmp_path):
    frame = {"r": ["a"] * 2 + ["b"] * 3 + ["c"] * 3, "x": [60.0, 20, 65, 60, 50, 70, 65, 60]}
    table = cg.tabulate(frame, ["r"], "x").apply(cg.PPercent(10))
    made = cg.adjust(table, keep=["total"], key=key(1))
    found = made.audit()
    assert found.safe
    assert len(found.findings) > 1
    proofs = list(found.witnesses.values())
    assert cg.verify(made, proofs).accepted
    assert not cg.verify(made, []).accepted


# ---------------------------------------------------------------------- brute force


def draw_records(rng: np.random.Generator) -> dict[str, list[object]]:
    n = int(rng.integers(12, 40))
    sizes = np.ceil(np.exp(rng.normal(3.0, 1.2, n)))
    holding = rng.integers(0, n, n) if rng.random() < 0.5 else np.arange(n)
    return {
        "region": [f"r{k}" for k in rng.integers(0, 4, n)],
        "branch": [f"b{k}" for k in rng.integers(0, 3, n)],
        "x": sizes.tolist(),
        "s": np.ceil(np.exp(rng.normal(3.0, 1.2, n))).tolist(),
        "holding": [f"h{k}" for k in holding],
    }


def find_own_amounts(table: cg.Table, records: dict[str, list[object]]) -> dict[object, np.ndarray]:
    """Return what every holding gave to each cell."""
    own: dict[object, np.ndarray] = {}
    codes = list(zip(*table.cell_codes().values(), strict=True))
    place = {code: k for k, code in enumerate(codes)}
    for region, branch, x, who in zip(*(records[c] for c in ("region", "branch", "x", "holding")), strict=True):
        mine = own.setdefault(who, np.zeros(table.n_cells))
        for code in ((region, branch), (region, "Total"), ("Total", branch), ("Total", "Total")):
            mine[place[code]] += x
    return own


def find_narrow_cells(release: Suppression, own: np.ndarray, alone: np.ndarray) -> list[str]:
    """Return the sensitive cells that a contributor can infer too precisely, by plain linear programs."""
    table = release.table
    lo, hi = release.published_bounds()
    lo, hi = np.maximum(lo, own), np.where(alone, table.values, hi)
    lo = np.where(alone, table.values, np.minimum(lo, table.values))
    need = compute_required_levels(table)
    bounds = [(a, None if np.isinf(b) else b) for a, b in zip(lo, hi, strict=True)]
    out = []
    for k, s in enumerate(need.cells.tolist()):
        if alone[s]:
            continue
        a = table.values[s]
        c = np.zeros(table.n_cells)
        c[s] = 1.0
        ends = []
        for sign in (1.0, -1.0):
            found = linprog(sign * c, A_eq=table.relations.toarray(), b_eq=table.rhs, bounds=bounds)
            ends.append(found.fun * sign if found.status == 0 else -sign * np.inf)
        low, high = ends
        lower, tolerance = min(need.lower[k], a - lo[s]), 1e-6 * max(1.0, a)
        if (
            a - low < lower - tolerance
            or high - a < need.upper[k] - tolerance
            or high - low < need.sliding[k] - tolerance
        ):
            out.append(table.label(s))
    return out


@pytest.mark.parametrize("seed", range(12))
def test_no_contributor_infers_a_sensitive_cell(seed):
    rng = np.random.default_rng([29, seed])
    records = draw_records(rng)
    options = (
        {"holding": "holding"} | ({"shadow": "s"} if seed % 4 == 3 else {}) | ({"top": 2} if seed % 3 == 2 else {})
    )
    table = cg.tabulate(records, ["region", "branch"], "x", **options).apply(
        cg.PPercent(10), cg.MinFrequency(3, percent=10)
    )
    if not table.sensitive.any():
        pytest.skip("nothing is sensitive")
    release = cg.suppress(table, time_limit_s=10)
    if not release.published:
        pytest.skip("no pattern is safe against everybody")
    assert release.audit().safe
    own = find_own_amounts(table, records)
    count = sum((amount > 0).astype(int) for amount in own.values())
    assert np.array_equal(count, table.counts)
    for who, amount in own.items():
        assert find_narrow_cells(release, amount, (amount > 0) & (count == 1)) == [], f"seed {seed}: {who}"


@pytest.mark.parametrize("seed", range(6))
def test_for_every_contributor_there_is_an_attacker_who_knows_as_much(seed):
    """Listed, dominated by a larger one of the same cells, or one of the others: nobody is forgotten."""
    rng = np.random.default_rng([30, seed])
    records = draw_records(rng)
    table = cg.tabulate(records, ["region", "branch"], "x", holding="holding", top=(2, 5)[seed % 2]).apply(
        cg.PPercent(10), cg.MinFrequency(3, percent=10)
    )
    assert table.sensitive.any()
    known = add_respondents(table)
    own = find_own_amounts(known, records)
    count = sum((amount > 0).astype(int) for amount in own.values())
    people = [a for a in known.attackers if a.derived]
    assert people
    for who, amount in own.items():
        free = (amount > 0) & ~known.fixed
        alone = free & (count == 1)
        assert any(knows_as_much(a, known, amount, free, alone) for a in people), f"seed {seed}: {who}"


def knows_as_much(
    attacker: cg.Attacker, table: cg.Table, amount: np.ndarray, free: np.ndarray, alone: np.ndarray
) -> bool:
    low, high = table.lb.copy(), table.ub.copy()
    low[attacker.cells], high[attacker.cells] = attacker.lb, attacker.ub
    exact = (low[alone] == table.values[alone]) & (high[alone] == table.values[alone])
    return bool((low[free] >= np.minimum(amount, table.values)[free] - 1e-9).all() and exact.all())


def test_levels_are_not_reduced_by_what_somebody_only_may_have_given():
    """Six gave 5 each: nobody is listed sixth. All of a level of 30 must stay open to who gave nothing."""
    frame = {"r": ["a"] * 6 + ["b"] * 8, "x": [5.0] * 6 + [40.0] * 8}
    table = cg.tabulate(frame, ["r"], "x", known_zeros=False)
    a = find(table, "a")
    sensitive = np.arange(table.n_cells) == a
    table = table.with_(sensitive=sensitive, lower=np.where(sensitive, 30.0, 0.0))
    asked = {}
    for who in cg.insiders(table):
        need = compute_required_levels(table, who, everywhere=True)
        asked[who.name] = (float(who.lb[who.cells == a].max(initial=0.0)), need.lower[need.cells == a].tolist())
    assert (0.0, [30.0]) in asked.values()
    assert (5.0, [25.0]) in asked.values()
    assert cg.suppress(table, time_limit_s=5).published

"""Counts of Statistics Norway (`easysdc_z3`): nobody computes a withheld count exactly, zeros published or sensitive."""

from __future__ import annotations

import csv
import time
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import cellguard as cg

GAUSS = {(False, False): 515, (True, False): 619, (False, True): 626, (True, True): 683}
"""Cells that Gauss suppresses with its method for lone contributors: linked or single, zeros sensitive or not."""
MAX_CPU_S = 60.0


def build_table(path, *, linked: bool, zeros: bool, insiders: bool | None) -> cg.Table:
    """Return region and fylke (linked: and kostragr) x hovedint x mnd and mnd2, with totals; up to 3 is sensitive."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    areas, kinds, months = (sorted({row[name] for row in rows}) for name in ("region", "hovedint", "mnd"))
    above = {name: {row["region"]: row[name] for row in rows} for name in ("fylke", "kostragr")}
    half = {row["mnd"]: row["mnd2"] for row in rows}
    trees = ("fylke", "kostragr") if linked else ("fylke",)
    geography = {("region", a): [a] for a in areas} | {("all", "all"): areas}
    sums = []
    for tree in trees:
        groups = {(tree, g): [a for a in areas if above[tree][a] == g] for g in sorted(set(above[tree].values()))}
        sums += [(g, [("region", a) for a in members]) for g, members in groups.items()]
        sums.append((("all", "all"), list(groups)))
        geography |= groups
    kind_of = {k: [k] for k in kinds} | {"all": kinds}
    halves = {h: [m for m in months if half[m] == h] for h in sorted(set(half.values()))}
    time_of = {m: [m] for m in months} | {("half", h): members for h, members in halves.items()} | {"all": months}
    leaf: dict[tuple, float] = defaultdict(float)
    for row in rows:
        leaf[row["region"], row["hovedint"], row["mnd"]] += float(row["ant"])
    place = {key: i for i, key in enumerate(product(geography, kind_of, time_of))}
    values = [sum(leaf[x] for x in product(geography[g], kind_of[k], time_of[m])) for g, k, m in place]
    relations = [
        [place[g, k, m], *(place[part, k, m] for part in parts)] for (g, parts), k, m in product(sums, kind_of, time_of)
    ]
    relations += [[place[g, "all", m], *(place[g, k, m] for k in kinds)] for g, m in product(geography, time_of)]
    for g, k in product(geography, kind_of):
        relations += [[place[g, k, ("half", h)], *(place[g, k, m] for m in halves[h])] for h in halves]
        relations.append([place[g, k, "all"], *(place[g, k, ("half", h)] for h in halves)])
    a = np.array(values)
    sensitive = (a <= 3) & (zeros | (a > 0))
    return cg.Table.from_equations(
        a, relations, weights=1.0, integer=True, insiders=insiders, counts=a, known_zeros=not zeros,
        sensitive=sensitive, sliding=1.0,
    )  # fmt: skip


class Reader:
    """Somebody who knows the published cells, the relations, and perhaps some cells of their own."""

    def __init__(self, table: cg.Table, withheld: np.ndarray, least: float, known: np.ndarray) -> None:
        self.cells = np.flatnonzero(withheld)
        T = table.relations[:, self.cells]
        self.T = T[np.flatnonzero(np.diff(T.indptr))]
        own = np.isin(self.cells, known)
        a = table.values[self.cells]
        self.low = np.where(own, 0.0, least - a)
        self.high = np.where(own, 0.0, np.inf)
        self.moved = np.zeros(len(self.cells), bool)

    def find_table(self, costs: np.ndarray) -> None:
        """Look for another table of whole numbers that costs least; all cells that differ in it are not known."""
        bounds = Bounds(np.maximum(self.low, -50.0), np.minimum(self.high, 50.0))
        found = milp(costs, integrality=1, bounds=bounds, constraints=LinearConstraint(self.T, 0.0, 0.0))
        assert found.success
        z = np.rint(found.x)
        assert not (self.T @ z).any()
        self.moved |= z != 0

    def find_known(self, asked: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return which of some cells have one value only."""
        place = np.searchsorted(self.cells, asked)
        for _ in range(6):
            left = place[~self.moved[place]]
            costs = np.zeros(len(self.cells))
            costs[left] = rng.choice([-1.0, 1.0], len(left))
            self.find_table(costs)
        for j in place.tolist():
            for side in (1.0, -1.0):
                if not self.moved[j]:
                    costs = np.zeros(len(self.cells))
                    costs[j] = side
                    self.find_table(costs)
        return asked[~self.moved[place]]


def find_lone_contributors(table: cg.Table) -> list[np.ndarray]:
    """Return for each cell of one contributor what that person knows: it, its totals of one, and what is empty below."""
    T, lone = table.relations, table.values == 1
    out = set()
    for cell in np.flatnonzero(lone & table.inner):
        known = {int(cell)}
        while True:
            more = set(known)
            for r in range(T.shape[0]):
                members, signs = T.indices[T.indptr[r] : T.indptr[r + 1]], T.data[T.indptr[r] : T.indptr[r + 1]]
                total = int(members[signs < 0][0])
                parts = set(members[signs > 0].tolist())
                if total in known or (lone[total] and any(lone[c] for c in known & parts)):
                    more |= {total, *(c for c in parts if table.values[c] == 0)}
            if more == known:
                break
            known = more
        out.add(tuple(sorted(known)))
    return [np.array(known) for known in out]


CASES = list(product((False, True), (False, True), (False, None)))


@pytest.mark.parametrize(("linked", "zeros", "insiders"), CASES)
def test_no_count_is_known_to_a_stranger_or_a_lone_contributor(acceptance, linked, zeros, insiders) -> None:
    table = build_table(acceptance("easysdc_z3/z3.csv"), linked=linked, zeros=zeros, insiders=insiders)
    assert table.n_cells == (1350 if linked else 1200)
    begin = time.process_time()
    rounds = 1 if linked and insiders is None else 20
    release = cg.suppress(table, method="heuristic", rounds=rounds, time_limit_s=600)
    assert time.process_time() - begin < MAX_CPU_S
    assert release.published
    assert release.suppressed.sum() <= 1.05 * GAUSS[linked, zeros]
    rng = np.random.default_rng(1)
    least = 0.0 if zeros else 1.0
    stranger = Reader(table, release.suppressed, least, np.zeros(0, np.int64))
    assert not len(stranger.find_known(table.sensitive_cells, rng))
    if insiders is None:
        people = find_lone_contributors(table)
        for known in [people[k] for k in rng.choice(len(people), 10, replace=False)]:
            asked = np.setdiff1d(table.sensitive_cells, known)
            assert not len(Reader(table, release.suppressed, least, known).find_known(asked, rng))

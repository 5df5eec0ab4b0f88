"""The joint system: its ranges equal plain programs over all releases, and enumeration for counts."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import cellguard as cg
from cellguard.release.release import Suppression

QUARTERS = ("2025Q1", "2025Q2", "2025Q3", "2025Q4")


def withhold(table: cg.Table, cells) -> Suppression:
    suppressed = np.zeros(table.n_cells, bool)
    suppressed[list(cells)] = True
    return Suppression.from_file(table, suppressed=suppressed)


class Plain:
    """A linear program over named cells, written without the package."""

    def __init__(self):
        self.names, self.bounds, self.equal, self.most = {}, [], [], []

    def cell(self, name, low=0.0, high=None):
        if name not in self.names:
            self.names[name] = len(self.names)
            self.bounds.append([low, high])
        return name

    def fix(self, name, value):
        self.cell(name)
        self.bounds[self.names[name]] = [value, value]

    def row(self, terms):
        out = np.zeros(len(self.names))
        for name, coefficient in terms:
            out[self.names[name]] += coefficient
        return out

    def range(self, name):
        n = len(self.names)
        equal = np.array([self.row(terms) for terms in self.equal]).reshape(-1, n)
        most = np.array([self.row(terms) for terms in self.most]).reshape(-1, n)
        ends = []
        for sign in (1, -1):
            cost = sign * self.row([(name, 1.0)])
            found = linprog(
                cost, A_ub=most, b_ub=np.zeros(len(most)), A_eq=equal, b_eq=np.zeros(len(equal)),
                bounds=[tuple(b) for b in self.bounds], method="highs",
            )  # fmt: skip
            ends.append(sign * found.fun if found.status == 0 else -sign * np.inf)
        return ends


def add_release(plain, period, release, regions):
    table = release.table
    for cell in range(table.n_cells):
        name = (period, table.cell_codes(int(cell))["region"])
        plain.cell(name)
        if not release.suppressed[cell]:
            plain.fix(name, table.values[cell])
    plain.equal.append([((period, "Total"), -1.0), *(((period, region), 1.0) for region in regions)])


@pytest.mark.parametrize("seed", range(12))
def test_ranges_equal_a_plain_program_over_all_releases(seed):
    rng = np.random.default_rng(seed)
    regions = list("ABCD")
    leaves = {period: rng.integers(20, 60, 4).astype(float) for period in QUARTERS}
    year = sum(leaves.values())
    periods = [*QUARTERS[: rng.integers(1, 5)], "2025"]
    percent = float(rng.choice([40.0, 150.0]))
    releases = {}
    for period in periods:
        values = year if period == "2025" else leaves[period]
        table = cg.Table.from_leaves({"region": regions}, values, sensitive=[1, 2], sliding=1.0)
        more = rng.choice(np.arange(3, 5), rng.integers(0, 3), replace=False)
        releases[period] = withhold(table, [1, 2, *more.tolist()])
    plain = Plain()
    for period, release in releases.items():
        add_release(plain, period, release, regions)
    rest = len(periods) < 5
    for region in ("Total", *regions):
        terms = [(("2025", region), -1.0), *(((p, region), 1.0) for p in periods[:-1])]
        plain.equal.append([*terms, (plain.cell(("rest", region)), 1.0)] if rest else terms)
    for before, after in itertools.pairwise(periods[:-1]):
        for region in ("Total", *regions):
            a = releases[after].table.values[releases[after].table.cell({"region": region})]
            b = releases[before].table.values[releases[before].table.cell({"region": region})]
            if abs(a - b) <= percent / 100 * b:
                plain.most.append([((after, region), 1.0), ((before, region), -(1 + percent / 100))])
                plain.most.append([((after, region), -1.0), ((before, region), 1 - percent / 100)])
    earlier = [cg.EarlierRelease.of(releases[p], period=p) for p in periods[:-1]]
    history = cg.History(period="2025", releases=earlier, additive=True, prior_percent=percent)
    found = cg.audit(releases["2025"], earlier=history, exact=True)
    cells, low, high = found.ranges["external"]
    table = found.release.table
    assert len(cells) == 2 * len(periods)
    for cell, a, b in zip(cells.tolist(), low, high, strict=True):
        codes = table.cell_codes(int(cell))
        expected = plain.range((codes["release"], codes["region"]))
        np.testing.assert_allclose([a, b], expected, rtol=1e-6, atol=1e-6)

"""Random small histories: joint ranges equal plain linear programs over all releases, and enumeration for counts."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import cellguard as cg
from cellguard.release.release import Suppression

REGIONS = list("ABC")


def withhold(table: cg.Table, cells) -> Suppression:
    suppressed = np.zeros(table.n_cells, bool)
    suppressed[list(cells)] = True
    return Suppression.from_file(table, suppressed=suppressed)


def make(values, **fields):
    fields = {"sensitive": [1, 2], "sliding": 0.5, **fields}
    return cg.Table.from_leaves({"region": REGIONS}, np.array(values, float), **fields)


def draw_seed() -> int:
    """A fresh seed; it is printed, so that a failure can be repeated."""
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print("seed", seed)  # noqa: T201
    return seed


def draw_pattern(rng):
    return [1, 2] if rng.random() < 0.5 else [1, 2, 3] if rng.random() < 0.6 else [0, 1, 2, 3]


class Program:
    """A linear program over (release, region), written without the package."""

    def __init__(self):
        self.names, self.fixed, self.most = {}, {}, []

    def add_release(self, version, values, withheld):
        total = values.sum()
        for k, (region, value) in enumerate(zip(["Total", *REGIONS], [total, *values], strict=True)):
            self.names[version, region] = len(self.names)
            if k not in withheld:
                self.fixed[version, region] = value
        self.add_equal([((version, "Total"), -1.0), *(((version, r), 1.0) for r in REGIONS)])

    def add_most(self, terms):
        """The sum of coefficients times cells is at most 0."""
        self.most.append(terms)

    def add_equal(self, terms):
        self.add_most(terms)
        self.add_most([(name, -x) for name, x in terms])

    def range(self, name):
        A = np.zeros((len(self.most), len(self.names)))
        for row, terms in zip(A, self.most, strict=True):
            for cell, x in terms:
                row[self.names[cell]] += x
        bounds = [(self.fixed.get(cell, 0.0), self.fixed.get(cell)) for cell in self.names]
        ends = []
        for sign in (1, -1):
            cost = np.zeros(len(self.names))
            cost[self.names[name]] = sign
            found = linprog(cost, A_ub=A, b_ub=np.zeros(len(A)), bounds=bounds, method="highs")
            ends.append(sign * found.fun if found.status == 0 else -sign * np.inf)
        return ends


@pytest.mark.parametrize("fresh", [False] * 8 + [True] * 2)
def test_revisions_growth_rates_and_sums_are_those_of_plain_programs(fresh, request):
    """Two quarters, a revision of the second with growth rates and shares, and the half-year."""
    seed = draw_seed() if fresh else request.node.callspec.indices["fresh"]
    rng = np.random.default_rng([33, seed])
    first = np.round(rng.uniform(20, 60, 3), 3)
    second = np.round(first * rng.uniform(0.8, 1.3, 3), 3)
    revised = np.round(second * rng.uniform(0.97, 1.03, 3), 3)
    patterns = [draw_pattern(rng) for _ in range(4)]
    percent, decimals = float(rng.choice([4.0, 20.0])), int(rng.integers(0, 2))
    plain = Program()
    versions = {"2025Q1": first, "2025Q2, version 2": second, "2025H1": first + second, "2025Q2": revised}
    for (name, values), pattern in zip(versions.items(), patterns, strict=True):
        plain.add_release(name, values, pattern)
    for region in ("Total", *REGIONS):  # the half-year is the sum of what was out with it
        parts = [(("2025Q1", region), 1.0), (("2025Q2, version 2", region), 1.0)]
        plain.add_equal([(("2025H1", region), -1.0), *parts])
        plain.add_most([(("2025Q2", region), 1.0), (("2025Q2, version 2", region), -1 - percent / 100)])
        plain.add_most([(("2025Q2", region), -1.0), (("2025Q2, version 2", region), 1 - percent / 100)])
    truth = {name: dict(zip(["Total", *REGIONS], [v.sum(), *v], strict=True)) for name, v in versions.items()}
    unit = 10.0**-decimals
    for region in ("Total", *REGIONS):  # growth since the first quarter, in per cent, of the revised values
        a, b = ("2025Q2", region), ("2025Q1", region)
        add_ratio(plain, a, b, 100 * truth["2025Q2"][region] / truth["2025Q1"][region] - 100, unit, 100.0)
        if region != "Total":
            share = 100 * truth["2025Q2"][region] / truth["2025Q2"]["Total"]
            add_ratio(plain, a, ("2025Q2", "Total"), share, 1.0, 0.0)
    out = [
        cg.EarlierRelease.of(withhold(make(first), patterns[0]), name="a", period="2025Q1"),
        cg.EarlierRelease.of(withhold(make(second), patterns[1]), name="b", period="2025Q2"),
        cg.EarlierRelease.of(withhold(make(first + second), patterns[2]), name="c", period="2025H1"),
    ]
    history = cg.History(period="2025Q2", releases=out, additive=True, revision_percent=percent)
    derived = [
        cg.Derived(name="growth", kind="growth", decimals=decimals),
        cg.Derived(name="share", kind="share", by={"region": "Total"}, decimals=0),
    ]
    found = cg.audit(withhold(make(revised), patterns[3]), earlier=history, derived=derived, exact=True)
    cells, low, high = found.ranges["external"]
    assert len(cells) >= 2
    for cell, a, b in zip(cells.tolist(), low, high, strict=True):
        codes = found.release.table.cell_codes(int(cell))
        np.testing.assert_allclose([a, b], plain.range((codes["release"], codes["region"])), rtol=1e-6, atol=1e-5)


def add_ratio(plain, a, b, exact, unit, offset):
    """Add that 100 a / b - offset rounds to what is published."""
    shown = np.floor(exact / unit + 0.5) * unit
    plain.add_most([(a, -100.0), (b, shown - unit / 2 + offset)])
    plain.add_most([(a, 100.0), (b, -(shown + unit / 2 + offset))])


@pytest.mark.parametrize("fresh", [False] * 8 + [True] * 2)
def test_ranges_of_counts_are_those_of_enumeration(fresh, request):
    """Two quarters and their half-year as counts, each within a percentage of the one before."""
    seed = draw_seed() if fresh else request.node.callspec.indices["fresh"]
    rng = np.random.default_rng([34, seed])
    quarters = rng.integers(1, 5, (2, 3))
    patterns = [draw_pattern(rng) for _ in range(3)]
    fields = {"integer": True, "sliding": 1.0, "insiders": False}
    tables = [make(values, **fields) for values in (*quarters, quarters.sum(axis=0))]
    percent = float(rng.choice([50.0, 400.0]))
    possible = []
    for leaves in itertools.product(range(1, 13), repeat=3):
        q1 = np.array([sum(leaves), *leaves])
        if all(k in patterns[0] or q1[k] == tables[0].values[k] for k in range(4)):
            possible.append(q1)
    seconds = []
    for leaves in itertools.product(range(1, 13), repeat=3):
        q2 = np.array([sum(leaves), *leaves])
        if all(k in patterns[1] or q2[k] == tables[1].values[k] for k in range(4)):
            seconds.append(q2)
    first, second = np.array(possible), np.array(seconds)
    a, b = (x.ravel() for x in np.meshgrid(np.arange(len(first)), np.arange(len(second))))
    q1, q2 = first[a], second[b]
    keep = np.ones(len(a), bool)
    for k in range(4):
        if k not in patterns[2]:
            keep &= q1[:, k] + q2[:, k] == tables[2].values[k]
        now, before = tables[1].values[k], tables[0].values[k]
        if abs(now - before) <= percent / 100 * before:
            keep &= np.abs(q2[:, k] - q1[:, k]) * 100 <= percent * q1[:, k]
    q1, q2 = q1[keep], q2[keep]
    out = [
        cg.EarlierRelease.of(withhold(table, pattern), name=period, period=period)
        for table, pattern, period in zip(tables, patterns, ("2025Q1", "2025Q2"), strict=False)
    ]
    history = cg.History(period="2025H1", releases=out, additive=True, prior_percent=percent)
    found = cg.audit(withhold(tables[2], patterns[2]), earlier=history, exact=True)
    listed_all = max(q1[:, 1:].max(), q2[:, 1:].max()) < 12  # no table beyond the largest number is possible
    listed = {"2025Q1": q1, "2025Q2": q2, "2025H1": q1 + q2}
    cells, low, high = found.ranges["external"]
    for cell, least, most in zip(cells.tolist(), low, high, strict=True):
        codes = found.release.table.cell_codes(int(cell))
        values = listed[codes["release"]][:, ["Total", *REGIONS].index(codes["region"])]
        assert least == values.min()
        assert most == values.max() if listed_all else most >= values.max()

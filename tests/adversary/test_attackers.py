"""The judge sees what people can really compute: files written by hand, no method involved."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import cellguard as cg
from adversary.cases import Case
from adversary.checker import attackers, judge, read_intervals
from adversary.counts import count_numbers, list_whole_tables
from adversary.meaning import find_known_zeros, find_least, list_needs
from adversary.options import is_randomised
from adversary.order import find_order
from adversary.reruns import FRESH, list_defaults
from adversary.respondents import find_parts, list_respondents
from adversary.written import Written


def withhold(table, hidden):
    """Return a suppressed file that somebody else might have written."""
    words = ["" if i in hidden else repr(float(v)) for i, v in enumerate(table.values)]
    status = ["withheld" if i in hidden else "published" for i in range(table.n_cells)]
    return SimpleNamespace(method="suppress", table=table, details={}), Written({"status": status, "value": words})


def find_cells(table, **codes):
    """Return the cells with some codes."""
    columns = table.cell_codes()
    return [i for i in range(table.n_cells) if all(columns[name][i] == code for name, code in codes.items())]


def list_kinds(table, hidden, people=(), whole=None):
    """Return what is wrong with a pattern, as pairs of kind and attacker."""
    release, file = withhold(table, set(hidden))
    found = judge(table, release, file, {}, people, whole)
    return {(v.kind, v.text.partition("'")[2].partition("'")[0]) for v in found}


# ---------------------------------------------------------------------- withheld means not empty


@pytest.fixture
def counts():
    leaves = np.array([[3, 2, 2], [1, 1, 1], [1, 6, 4]], float)
    table = cg.Table.from_leaves({"r": list("abc"), "c": list("xyz")}, leaves, integer=True)
    return table.apply(cg.MinFrequency(3))


def test_three_withheld_counts_with_a_total_of_three_are_ones(counts):
    hidden = {
        *np.flatnonzero(counts.sensitive).tolist(),
        *find_cells(counts, r="a", c="x"),
        *find_cells(counts, r="c", c="z"),
    }
    assert ("exact", "external") in list_kinds(counts, hidden)


def test_enumeration_counts_the_numbers_that_stay_possible(counts):
    least = np.where(counts.sensitive, 3, 0)
    made = Case(counts, (), least_numbers=least)
    release, file = withhold(counts, {i for i in range(16) if (counts.coordinates[i] > 0).all()})
    intervals, _ = read_intervals(counts, release, file, {})
    found = list(count_numbers(made, intervals, attackers(counts), Counter(), "suppress"))
    assert [v.kind for v in found] == ["exact"] * 3  # the second row: three withheld cells with a total of 3
    few = Case(counts, (), least_numbers=np.where(counts.sensitive, 50, 0))
    found = list(count_numbers(few, intervals, attackers(counts), Counter(), "suppress"))
    assert {v.kind for v in found} == {"exact", "numbers"}


@pytest.mark.parametrize("seed", range(6))
def test_every_whole_table_is_listed(seed):
    rng = np.random.default_rng(seed)
    table = cg.Table.from_leaves(
        {"r": ["a", "b"], "c": ["x", "y"]}, rng.integers(0, 5, (2, 2)).astype(float), integer=True
    )
    hidden = rng.random(table.n_cells) < 0.7
    hidden[0] = False
    low, high = np.where(hidden, 0, table.values), np.where(hidden, np.inf, table.values)
    listed = list_whole_tables(table, low, high, most=10**6)
    most = int(table.values[0]) + 1
    a, b, c, d = np.indices((most,) * 4).reshape(4, -1).astype(float)
    every = np.array([a + b + c + d, a + c, b + d, a + b, a, b, c + d, c, d]).T  # totals first, as in the table
    expected = every[(every[:, ~hidden] == table.values[~hidden]).all(axis=1)]
    assert sorted(map(tuple, listed.tolist())) == sorted(map(tuple, expected.tolist()))


def test_zeros_that_nobody_knows_leave_a_withheld_count_at_zero(counts):
    assert find_known_zeros(counts).all()
    assert find_least(counts).min() == 1
    leaves = np.array([[3, 0], [5, 7]], float)
    with_zero = cg.Table.from_leaves({"r": ["a", "b"], "c": ["x", "y"]}, leaves, integer=True)
    zero = with_zero.values == 0
    sensitive = with_zero.with_(sensitive=zero, sliding=np.where(zero, 2.0, 0.0))
    assert find_known_zeros(with_zero).all()
    assert not find_known_zeros(sensitive).any()
    assert find_least(sensitive).min() == 0


def test_a_withheld_empty_cell_is_reported():
    leaves = np.array([[2, 0, 5], [5, 7, 8], [4, 4, 4]], float)
    table = cg.Table.from_leaves({"r": list("abc"), "c": list("xyz")}, leaves, integer=True).apply(cg.MinFrequency(3))
    corners = [i for row in "ab" for column in "xy" for i in find_cells(table, r=row, c=column)]
    assert "empty" in {kind for kind, _ in list_kinds(table, corners)}


# ---------------------------------------------------------------------- contributors


def make_case(cells, rules, measures=None, holding=None, **options):
    """Return a case of firms: cell -> contributions, each a number or a pair of numbers."""
    rows = [(r, b, x if isinstance(x, tuple) else (x, x)) for (r, b), xs in cells.items() for x in xs]
    records = {
        "region": [r for r, _, _ in rows], "branch": [b for _, b, _ in rows],
        "x": [float(x) for _, _, (x, _) in rows], "other": [float(y) for _, _, (_, y) in rows],
        "holding": holding or [f"f{k}" for k in range(len(rows))],
    }  # fmt: skip
    table = cg.tabulate(records, ["region", "branch"], "x", holding="holding", **options).apply(*rules)
    return Case(table, ("records",), records=records, measures=measures or {"value": "x"})


WIDE = [200, 190, 180, 170]


@pytest.mark.parametrize("shares", [[14, 6], [14, 4, 2]], ids=["one of two", "one of three"])
def test_the_largest_of_a_withheld_cell_subtracts_their_part(shares):
    """a + b = 120 is known; whoever gave 14 of b knows that a is at most 106."""
    cells = {
        ("n", "p"): [95, 3, 2],
        ("n", "q"): shares,
        ("s", "p"): WIDE,
        ("s", "q"): WIDE,
        ("t", "p"): WIDE,
        ("t", "q"): WIDE,
    }
    made = make_case(cells, (cg.PPercent(10),))
    table = made.table
    (cell,) = find_cells(table, region="n", branch="p")
    assert table.sensitive[cell]
    hidden = [i for r in "ns" for b in "pq" for i in find_cells(table, region=r, branch=b)]
    level = np.where(np.arange(table.n_cells) == cell, 10.0, 0.0)
    table = table.with_(sensitive=level > 0, lower=level, upper=level, sliding=0 * level)
    made = Case(table, made.what, records=made.records, measures=made.measures)
    assert not list_kinds(table, hidden)
    found = list_kinds(table, hidden, list_respondents(made))
    assert {kind for kind, _ in found} == {"level"}
    assert len(found) == 1


def test_a_shadow_variable_does_not_make_contributors_forget_what_they_gave():
    cells = {("n", "p"): [(60, 90), (40, 1)], ("n", "q"): [(14, 5), (6, 5)], ("s", "p"): WIDE, ("s", "q"): WIDE}
    made = make_case(cells, (cg.PPercent(10),), shadow="other")
    parts = find_parts(made)
    inner = find_cells(made.table, region="n", branch="p")[0]
    assert parts["f0"][inner] == 60
    assert len(list_respondents(made)) == 12


def test_the_third_of_a_cell_and_their_holding_are_one_attacker():
    cells = {("n", "p"): [50, 40, 9], ("n", "q"): [30, 20, 9], ("s", "p"): WIDE, ("s", "q"): WIDE}
    made = make_case(cells, (cg.MinFrequency(4),), holding=["a", "b", "h", "c", "d", "h", *(f"w{k}" for k in range(8))])
    (who,) = [person for person in list_respondents(made) if person.name == "respondent h"]
    known = dict(zip(who.cells.tolist(), who.lb.tolist(), strict=True))
    assert known[find_cells(made.table, region="n", branch="Total")[0]] == 18


def test_two_lone_firms_subtract_themselves_from_a_kept_total():
    records = {"region": ["n", "s"], "branch": ["p", "p"], "x": [70.0, 30.0], "holding": ["a", "b"]}
    table = cg.tabulate(records, ["region"], "x").apply(cg.MinFrequency(3))
    parts = table.coordinates[:, 0] > 0
    level = np.where(parts, 0.1 * table.values, 0.0)
    table = table.with_(sensitive=parts, lower=level, upper=level, sliding=0 * level)
    made = Case(table, ("records",), records=records, measures={"value": "x"})
    words = Written({"value": ["100", "90", "10"]})
    release = SimpleNamespace(method="adjust", table=table, details={})
    people = list_respondents(made)
    assert len(people) == 2
    assert "exact" in {v.kind for v in judge(table, release, words, {"keep": ["total"]}, people)}
    assert not list(judge(table, release, words, {}, people))


# ---------------------------------------------------------------------- whole numbers beside others


def test_a_count_beside_turnover_is_a_whole_number():
    """A count of 2 that is published as 1.6 to 2.4 is published."""
    records = {"r": list("aabbb"), "x": [1.5, 2, 3, 4, 5.25]}
    made = cg.tabulate_publication(records, ["r"], {"one": ["r"]}, indicators={"n": None, "x": "x"})
    table = made.apply(cg.MinFrequency(3)).table
    whole = np.array([code == "n" for code in table.cell_codes()["indicator"]])
    ends = [(v - 0.4, v + 0.4) if s else (v, v) for v, s in zip(table.values, table.sensitive, strict=True)]
    file = Written({"lower": [repr(float(lo)) for lo, _ in ends], "upper": [repr(float(up)) for _, up in ends]})
    release = SimpleNamespace(method="intervals", table=table, details={})
    found = list(judge(table, release, file, {}, (), whole))
    assert {"exact", "whole"} <= {v.kind for v in found}
    (need,) = [n for n in list_needs(table, table.attackers[0], whole) if table.label(n.cell) == "(indicator=n, r=a)"]
    assert need.width == 2


# ---------------------------------------------------------------------- order, defaults


def test_rows_in_the_order_of_their_sizes_are_reported(tmp_path):
    table = cg.Table.from_frame({"x": ["b", "a", "c"], "value": [90.0, 50.0, 10.0]}, ["x"])
    made = Case(table, ("ready",))
    path = tmp_path / "release.csv"
    path.write_text("x,value\nTotal,150\nb,90\na,50\nc,10\n")
    assert [v.kind for v in find_order(made, path)] == ["order"]
    path.write_text("x,value\nTotal,150\na,50\nb,90\nc,10\n")
    assert not list(find_order(made, path))


def test_a_default_secret_is_noticed_and_chance_is_not():
    known = {"rerun perturb: tables": 40, "rerun perturb: old defaults": 38, "rerun perturb: fresh secrets": 2}
    chance = {"rerun perturb: tables": 40, "rerun perturb: old defaults": 5, "rerun perturb: fresh secrets": 3}
    assert len(list_defaults(known)) == 1
    assert not list_defaults(chance)
    assert is_randomised("perturb", {})
    assert not is_randomised("suppress", {})


def test_the_fresh_secrets_that_defaults_are_compared_with_are_accepted():
    table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4])
    assert all(cg.adjust(table, **secret).published for secret in FRESH)

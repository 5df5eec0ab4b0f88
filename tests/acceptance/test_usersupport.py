"""Cases of other projects in which a reader computed what was withheld (../shared/acceptance, skipped where absent)."""

import csv
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.argus.safety import _build_safety_rule
from cellguard.release.release import Status, Suppression
from cellguard.rules import Rule

CASES = Path(__file__).resolve().parents[3] / "shared" / "acceptance" / "usersupport" / "cases.csv"
COLUMNS = ["A", "B", "H", "M", "W"]


def read_case(name, **fields):
    if not CASES.is_file():
        pytest.skip(f"the acceptance data are not there ({CASES})")
    with CASES.open() as file:
        rows = [row for row in csv.DictReader(file) if row["case"] == name]
    leaves = [[int(row[c]) for c in COLUMNS] for row in rows]
    dims = {"row": [row["row"] for row in rows], "column": COLUMNS}
    return cg.Table.from_leaves(dims, leaves, integer=True, insiders=False, **fields)


def list_row(total, known, n):
    """Return the values of one of `n` withheld cells: whole numbers of at least 1 that add up to what is left."""
    left = total - known
    return [x for x in range(1, left + 1) if (n - 1) <= left - x] if n > 1 else [left]


@pytest.mark.parametrize("name", ["data1a", "data1b"])
def test_small_counts_are_withheld_and_zeros_published(name):
    """UserSupport#135: a withheld count is at least 1."""
    table = read_case(name).apply(cg.MinFrequency(4))
    release = cg.suppress(table, time_limit_s=10)
    found = release.audit(exact=True)
    assert found.safe
    assert not release.suppressed[table.values == 0].any()
    _, low, high = found.ranges["external"]
    assert low.min() >= 1
    assert (high - low).min() >= 3


def test_three_cells_that_add_up_to_three_are_refused():
    """In data1b, r1 = 10 with H = 7 leaves 3 for three cells."""
    table = read_case("data1b").apply(cg.MinFrequency(4))
    inner = table.inner & (table.values > 0) & (table.values < 4)
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=inner | table.sensitive)
    row = [table.cell({"row": "r1", "column": c}) for c in ("A", "B", "M")]
    assert not release.suppressed[table.cell({"row": "r1"})]
    assert list_row(10, 7, 3) == [1]
    assert np.isin(row, release.audit().unsafe_cells).all()


@pytest.mark.parametrize("name", ["data0a", "data0b"])
def test_zeros_that_are_sensitive_are_not_given_away(name):
    """The published cells of r1 add up to its total: all that is withheld there would be 0."""
    table = read_case(name, known_zeros=False)
    table = table.with_(sensitive=(table.values == 0) & table.inner)
    naive = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=table.sensitive)
    assert not naive.audit().safe
    release = cg.suppress(table, time_limit_s=10)
    found = release.audit(exact=True)
    assert found.safe
    _, low, high = found.ranges["external"]
    assert (low == 0).all()
    assert (high > 0).all()


@pytest.mark.parametrize(
    ("counts", "sensitive"),
    [
        ([0, 0, 0, 0], [0, 1]),  # 0 = x + x + 0
        ([15, 10, 5, 0, 0], [3, 4]),  # 15 = 10 + 5 + x + x
        ([15, 10, 3, 1, 1], [3, 4]),  # 15 = 10 + 3 + x + x, each at least 1
    ],
)
def test_a_published_total_gives_the_rest_away(counts, sensitive):
    """UserSupport#194, for numbers of contributors."""
    n = len(counts)
    total = n - 1 if counts[0] == 0 else 0
    parts = [k for k in range(n) if k != total]
    table = cg.Table.from_equations(counts, [[total, *parts]], sensitive=sensitive, integer=True, insiders=False)
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=table.sensitive)
    assert not release.audit().safe


# ---------------------------------------------------------------- weights


def make_sample() -> dict[str, list]:
    """Return a sample: in A two firms stand for 20, in B five for 5, in C one for 100."""
    return {
        "area": ["A", "A", "B", "B", "B", "B", "B", "C"],
        "turnover": [50.0, 40.0, 30.0, 25.0, 20.0, 15.0, 10.0, 60.0],
        "weight": [12.0, 8.0, 1.0, 1.0, 1.0, 1.0, 1.0, 100.0],
    }


def list_flagged(table: cg.Table, rule: Rule) -> list[str]:
    """Return the areas that a rule flags."""
    flagged = table.apply(rule).sensitive_cells
    return [code for code in table.cell_codes(flagged)["area"] if code != "Total"]


@pytest.mark.parametrize(
    ("basis", "expected"), [(None, ["A", "C"]), ("contributors", ["A", "C"]), ("weights", []), ("both", ["A", "C"])]
)
def test_a_minimum_frequency_looks_at_contributors_unless_told_otherwise(basis, expected):
    """UserSupport#98: two answers do not become many because each stands for ten."""
    table = cg.tabulate(make_sample(), ["area"], "turnover", weight="weight")
    rule = cg.MinFrequency(3) if basis is None else cg.MinFrequency(3, basis=basis)
    assert list_flagged(table, rule) == expected


def test_weights_below_one_are_seen_by_weights_and_both():
    sample = make_sample() | {"weight": [1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 4.0]}
    table = cg.tabulate(sample, ["area"], "turnover", weight="weight")
    found = {basis: list_flagged(table, cg.MinFrequency(3, basis=basis)) for basis in ("weights", "both")}
    assert found == {"weights": ["A", "B"], "both": ["A", "B", "C"]}


def test_a_minimum_frequency_of_something_else_is_refused():
    with pytest.raises(cg.exceptions.InputError, match="'contributors', 'weights', 'both'"):
        cg.MinFrequency(3, basis="units")


def test_jobs_say_what_a_minimum_frequency_counts():
    from cellguard.jobs.definition.rule_sections import RULE_SECTIONS

    section = RULE_SECTIONS["min_frequency"]
    assert section(rule="min_frequency", n=3).build_plain_rule(None) == cg.MinFrequency(3)
    assert section(rule="min_frequency", n=3, basis="both").build_plain_rule(None) == cg.MinFrequency(3, basis="both")


def test_jobs_of_tau_argus_count_the_weights():
    assert _build_safety_rule("FREQ", (3.0, 10.0)) == cg.MinFrequency(3, percent=10, basis="weights")


@pytest.mark.parametrize("seed", range(5))
def test_weighted_dominance_flags_the_same_cells_as_the_same_data_unweighted(seed):
    """UserSupport#139: a record of weight 3 is three records of weight 1, for (2, 90)."""
    rng = np.random.default_rng(seed)
    n = 60
    firms = {
        "area": rng.choice(list("ABCDEFGH"), n).tolist(),
        "turnover": np.ceil(rng.pareto(0.6, n) * 100).tolist(),
        "weight": rng.choice([1, 1, 1, 2, 3], n).tolist(),
    }
    repeated = {name: np.repeat(firms[name], firms["weight"]).tolist() for name in ("area", "turnover")}
    rule = cg.Dominance(2, 90)
    weighted = list_flagged(cg.tabulate(firms, ["area"], "turnover", weight="weight"), rule)
    assert weighted == list_flagged(cg.tabulate(repeated, ["area"], "turnover"), rule)
    assert seed or weighted

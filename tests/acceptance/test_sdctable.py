"""Tables, ranges and rules that the tests of the R package sdcTable expect (data only)."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import cellguard as cg
from cellguard.release.release import Suppression


def read_rows(path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------- ranges of a heuristic's pattern


def suppressed_4x4(acceptance, *, also: tuple[str, str] | None) -> cg.Release:
    """Return the 4 x 4 table with its nine primaries withheld, and one more cell if given."""
    rows = read_rows(acceptance("sdctable/simpleheuristic_4x4.csv"))
    codes = {name: sorted({row[name] for row in rows}) for name in ("v1", "v2")}
    table = cg.Table.from_leaves(codes, np.array([float(row["count"]) for row in rows]).reshape(4, 4))
    sensitive = np.zeros(table.n_cells, bool)
    sensitive[(table.coordinates > 0).all(axis=1)] = [row["primary"] == "1" for row in rows]
    assert sensitive.sum() == 9
    withheld = sensitive.copy()
    if also is not None:
        withheld[table.cell(dict(zip(codes, also, strict=True)))] = True
    return Suppression(
        table=table.with_(sensitive=sensitive), status=cg.Status.FEASIBLE, objective=0.0, suppressed=withheld
    )


def test_with_only_the_primaries_withheld_one_of_them_follows(acceptance) -> None:
    release = suppressed_4x4(acceptance, also=None)
    cell = release.table.cell({"v1": "w", "v2": "b"})
    found = release.audit(exact=True)
    assert found.range(cell) == pytest.approx((47.0, 47.0))
    assert not found.safe


def test_with_one_more_cell_withheld_its_range_is_0_to_78(acceptance) -> None:
    release = suppressed_4x4(acceptance, also=("x", "d"))
    assert release.audit(exact=True).range(release.table.cell({"v1": "w", "v2": "b"})) == pytest.approx((0.0, 78.0))


def test_our_own_pattern_of_it_is_safe(acceptance) -> None:
    release = cg.suppress(suppressed_4x4(acceptance, also=None).table, gap=0.0)
    assert release.status is cg.Status.OPTIMAL
    assert release.audit().safe


# ---------------------------------------------------------------- two trees over the same regions


def counties(acceptance, *trees: str) -> tuple[cg.Table, list[str]]:
    """Return the regions with the totals of some trees, and their names; counts up to 3 are sensitive."""
    rows = read_rows(acceptance("sdctable/linked_counties.csv"))
    names = [row["region"] for row in rows]
    values = [float(row["n"]) for row in rows]
    relations, all_parts = [], []
    for tree in trees:
        totals = []
        for code in sorted({row[tree] for row in rows}):
            parts = [i for i, row in enumerate(rows) if row[tree] == code]
            totals.append(len(values))
            relations.append([len(values), *parts])
            names.append(code)
            values.append(sum(values[i] for i in parts))
        all_parts.append(totals)
    relations += [[len(values), *totals] for totals in all_parts]
    values.append(sum(values[: len(rows)]))
    table = cg.Table.from_equations(values, relations, weights=1.0, integer=True)
    return table.with_(sensitive=(np.arange(len(values)) < len(rows)) & (np.array(values) <= 3)), [*names, "Total"]


@pytest.mark.parametrize("tree", ["county", "group"])
def test_each_tree_alone_needs_no_secondary(acceptance, tree: str) -> None:
    table, _ = counties(acceptance, tree)
    assert table.sensitive.sum() == 5
    assert cg.suppress(table, gap=0.0).secondary.sum() == 0


def test_both_trees_together_need_exactly_one_secondary(acceptance) -> None:
    table, names = counties(acceptance, "county", "group")
    alone = Suppression(table=table, status=cg.Status.FEASIBLE, objective=0.0, suppressed=table.sensitive)
    found = alone.audit(exact=True)
    assert found.range(names.index("K")) == pytest.approx((3.0, 3.0))
    release = cg.suppress(table, gap=0.0)
    assert release.status is cg.Status.OPTIMAL
    assert [names[i] for i in np.flatnonzero(release.secondary)] == ["N"]
    assert release.audit().safe


# ---------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (cg.MinFrequency(3), 1),
        (cg.Dominance(2, 75), 2),
        (cg.PPercent(70), 2),
        (cg.PriorPosterior(60, 80), 2),
    ],
)
def test_rules_flag_as_many_cells(acceptance, rule, expected: int) -> None:
    """Counts up to 2 are fewer than 3 contributors; the other rules flag (A, female) and (D, male)."""
    table = cg.tabulate(str(acceptance("sdctable/microdata1.csv")), by=["region", "gender"], value="val").apply(rule)
    inner = table.sensitive & (table.coordinates > 0).all(axis=1)
    assert inner.sum() == expected
    if expected == 2:
        wanted = {table.cell({"region": "A", "gender": "female"}), table.cell({"region": "D", "gender": "male"})}
        assert set(np.flatnonzero(inner).tolist()) == wanted

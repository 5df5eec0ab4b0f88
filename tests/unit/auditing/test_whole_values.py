"""Values that are whole but no counts: attackers know that there are no half employees."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import cellguard as cg
from cellguard.auditing.witnesses import verify
from cellguard.model.levels import compute_required_levels
from cellguard.model.linked.publication import Part
from cellguard.release.release import Intervals, Status, Suppression

FRAME = {"area": ["a", "b", "c"], "employees": [4.0, 10.0, 60.0]}


def make_table(frame=FRAME, **fields):
    table = cg.Table.from_frame(frame, ["area"], value="employees", insiders=False, **fields)
    level = 0.1 * table.values
    sensitive = np.isin(np.arange(4), [table.cell({"area": "a"})])
    return table.with_(sensitive=sensitive, lower=level * sensitive, upper=level * sensitive)


def publish_intervals(table, reach):
    """Publish a and b as intervals, the rest unchanged."""
    opened = np.isin(table.cell_codes()["area"], ["a", "b"])
    return Intervals(
        table=table, status=Status.FEASIBLE, objective=0.0,
        lower=table.values - reach * opened, upper=table.values + reach * opened,
    )  # fmt: skip


def test_a_range_of_less_than_one_employee_on_each_side_is_none():
    """3.6 to 4.4 employees are 4 employees."""
    table = make_table()
    assert not publish_intervals(table, 0.4).audit().safe
    assert not publish_intervals(table, 0.9).audit().safe
    assert publish_intervals(table, 1.0).audit().safe


@pytest.mark.parametrize("fields", [{"integer": False}, {"whole": False}])
def test_whoever_says_so_has_real_numbers(fields):
    assert publish_intervals(make_table(**fields), 0.4).audit().safe


def test_values_with_fractions_are_real_numbers():
    table = make_table(FRAME | {"employees": [4.0, 10.5, 60.0]})
    assert not table.whole_cells.any()
    assert publish_intervals(table, 0.4).audit().safe


def test_small_levels_are_whole_and_large_ones_stay():
    table = make_table().with_(sensitive=np.ones(4, bool), lower=np.zeros(4), upper=np.zeros(4)).with_levels(0.1, 0.1)
    need = compute_required_levels(table)
    by_area = dict(zip(table.cell_codes()["area"], need.lower.tolist(), strict=True))
    assert by_area == {"a": 1.0, "b": 1.0, "c": 6.0, "Total": pytest.approx(7.4)}


def test_records_and_publications_are_recognised_indicator_by_indicator():
    records = {"area": ["a", "a", "b"], "staff": [3, 2, 5], "paid": [1.5, 2.25, 7.0]}
    staff, paid = (cg.tabulate(records, ["area"], value) for value in ("staff", "paid"))
    assert staff.whole_cells.all()
    assert not staff.count_cells.any()
    assert not paid.whole_cells.any()
    parts = [Part(name=name, table=table, indicator=name) for name, table in (("staff", staff), ("paid", paid))]
    joined = cg.Publication.of(parts).table
    assert joined.whole_cells.sum() == staff.n_cells
    assert not cg.Table.from_equations([3, 4, 7], [[2, 0, 1]]).whole_cells.any()


def test_the_choice_is_stored_with_the_table(tmp_path):
    for whole in (True, False):
        table = make_table(whole=whole)
        table.write(tmp_path / "t.csv")
        assert cg.Table.read(tmp_path / "t.csv").whole is whole


def test_witnesses_of_small_levels_must_be_whole():
    release = publish_intervals(make_table(), 1.0)
    proofs = list(release.audit().witnesses.values())
    assert verify(release, proofs).accepted
    assert all(value.denominator == 1 for proof in proofs for moved in proof.tables for value in moved.values())
    wide = publish_intervals(make_table(), 1.5)
    a, b = (wide.table.cell({"area": code}) for code in "ab")
    half = [
        {cell: Fraction(wide.table.values[cell]) + sign * Fraction(3, 2) for cell, sign in ((a, side), (b, -side))}
        for side in (-1, 1)
    ]
    broken = [replace(proof, tables=half, cells=[a], low=[0], high=[1], low_share=None, high_share=None)
              for proof in list(wide.audit().witnesses.values())]  # fmt: skip
    assert any("whole numbers" in problem for problem in verify(wide, broken).problems)


@pytest.mark.parametrize("method", ["suppress", "intervals"])
def test_no_small_number_of_employees_is_known(method):
    published = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        firms = {"r": rng.choice(list("abcd"), 40), "s": rng.choice(list("xyz"), 40), "staff": rng.integers(1, 8, 40)}
        table = cg.tabulate(firms, ["r", "s"], "staff").apply(cg.PPercent(20), cg.MinFrequency(3))
        table = table.with_(insiders=False)
        if not table.sensitive.any():
            continue
        release = getattr(cg, method)(table, time_limit_s=60)
        assert release.published
        published += 1
        assert release.audit().safe
        low, high = release.published_bounds()
        bounds = Bounds(np.ceil(low - 1e-9), np.minimum(np.floor(high + 1e-9), 1e4))
        need = compute_required_levels(release.audit().release.table)
        for cell, width in zip(need.cells, need.width, strict=True):
            cost = (np.arange(table.n_cells) == cell).astype(float)
            ends = [
                milp(sign * cost, integrality=1, bounds=bounds, constraints=LinearConstraint(table.relations, 0, 0)).fun
                for sign in (1, -1)
            ]
            assert -ends[1] - ends[0] >= min(width, 5.0) - 1e-6
    assert published >= 4


def test_small_levels_are_shown_by_whole_tables_only():
    """Of ``5 a + 7 b = 17`` only 2 and 1 are whole: over real numbers a reaches from 0 to 3.4, and its levels of 1."""
    table = cg.Table.from_equations(
        [2, 1, 17], np.array([[5.0, 7, -1]]), sensitive=[0], lower=1, upper=1, whole=True, known_zeros=False
    )
    withheld = np.array([True, True, False])
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=withheld)
    assert not release.audit().safe
    fractions = replace(release, table=table.with_(whole=False))
    assert fractions.audit().safe

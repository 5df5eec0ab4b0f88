"""Witnesses: accepted as they are, refused when a digit is changed."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cellguard as cg
from cellguard.auditing.audit import audit
from cellguard.auditing.witnesses import Proof, read_witnesses, verify, write_witnesses
from cellguard.datasets.examples import minami2019_figure2
from cellguard.exceptions import FormatError
from cellguard.model.levels import compute_required_levels
from cellguard.release.release import Adjustment, Intervals, Rounding, Status, Suppression


@pytest.fixture(scope="module")
def release():
    """A cube with decimals, where vertices have fractions."""
    rng = np.random.default_rng(1)
    leaves = rng.integers(1, 900, (3, 3, 3)) / 10
    codes = ["a", "b", "c"]
    table = cg.Table.from_leaves({"x": codes, "y": codes, "z": codes}, leaves)
    inner = (table.coordinates > 0).all(axis=1)
    sensitive = inner & (np.arange(table.n_cells) % 3 == 0)
    level = np.where(sensitive, 0.5, 0.0)
    table = table.with_(sensitive=sensitive, lower=level, upper=level)
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=inner)


def proofs_of(release, **options):
    return list(audit(release, **options).witnesses.values())


def test_witnesses_of_a_safe_release_are_accepted(release):
    found = audit(release)
    assert found.safe
    checked = verify(release, list(found.witnesses.values()))
    assert checked.accepted
    assert checked.checked == found.checked
    assert checked.tables >= 2


def test_a_change_of_one_digit_is_refused(release):
    proof = proofs_of(release)[0]
    assert sum(len(table) for table in proof.tables) > 2
    for number, table in enumerate(proof.tables):
        for cell, value in table.items():
            text = str(value)
            changed = Fraction(text[:-1] + str((int(text[-1]) + 1) % 10))
            tables = [*proof.tables]
            tables[number] = {**table, cell: changed}
            assert not verify(release, [replace(proof, tables=tables)]).accepted


def test_a_smallest_step_across_a_bound_is_refused(release):
    proof = proofs_of(release)[0]
    one = {
        cell: value + (Fraction(1, 10**30) if k % 2 else 0) for k, (cell, value) in enumerate(proof.tables[0].items())
    }
    problems = verify(release, [replace(proof, tables=[one, *proof.tables[1:]])]).problems
    assert any("does not hold" in p for p in problems)


def test_every_cell_needs_its_witnesses(release):
    proof = proofs_of(release)[0]
    fewer = replace(proof, cells=proof.cells[1:], low=proof.low[1:], high=proof.high[1:])
    problem = verify(release, [fewer]).problems[0]
    assert release.table.label(proof.cells[0]) in problem
    assert "has no witnesses" in problem
    swapped = replace(proof, low=proof.high, high=proof.low)
    assert any("does not reach" in p for p in verify(release, [swapped]).problems)
    beyond = replace(proof, low=[len(proof.tables)] * len(proof.cells))
    assert not verify(release, [beyond]).accepted
    assert verify(release, []).problems == ("attacker 'external': no witnesses.",)


def test_a_published_cell_may_not_move(release):
    proof = proofs_of(release)[0]
    total = {0: Fraction(1)}
    problems = verify(release, [replace(proof, tables=[*proof.tables, total])]).problems
    assert any("not in the interval" in p for p in problems)


def test_files_bring_back_what_was_written(release, tmp_path):
    for name in ("w.json", "w.json.gz"):
        audit(release).save_witnesses(tmp_path / name)
        proofs, integer = read_witnesses(tmp_path / name, n_cells=release.table.n_cells)
        assert not integer
        assert verify(release, proofs).accepted
        assert proofs[0].tables == proofs_of(release)[0].tables
    first = (tmp_path / "w.json").read_bytes()
    audit(release).save_witnesses(tmp_path / "w.json")
    assert (tmp_path / "w.json").read_bytes() == first


def test_one_digit_of_the_file_changed_is_refused(release, tmp_path):
    path = tmp_path / "w.json"
    audit(release).save_witnesses(path)
    content = json.loads(path.read_text())
    table = content["tables"][0]
    cell = next(iter(table))
    digit = table[cell][0]
    table[cell] = ("2" if digit == "1" else "1") + table[cell][1:]
    path.write_text(json.dumps(content))
    proofs, _ = read_witnesses(path)
    assert not verify(release, proofs).accepted


def damaged(**changes):
    entry = {"name": "x", "cells": [1], "low": [0], "high": [0], "tables": [{"1": "2"}]} | changes
    return json.dumps({"format": "cellguard witnesses 1", "attackers": [entry], "integer": False, "cells": 3})


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"format": "cellguard witnesses 1"}',
        damaged(low=[]),
        damaged(tables=[{"1": "1e999999999"}]),
        damaged(tables=[{"1": "1/0"}]),
        damaged(tables=[{"one": "1"}]),
        damaged(tables=[{"1": 0.5}]),
        damaged(tables={"1": "1"}),
        damaged(cells="1"),
        damaged(cells=None),
    ],
)
def test_a_damaged_file_is_refused(content, tmp_path):
    path = tmp_path / "w.json"
    path.write_text(content)
    with pytest.raises(FormatError):
        read_witnesses(path)


def test_a_file_for_another_table_is_refused(release, tmp_path):
    audit(release).save_witnesses(tmp_path / "w.json")
    with pytest.raises(FormatError, match="64 cells, not of 5"):
        read_witnesses(tmp_path / "w.json", n_cells=5)


def test_whole_number_witnesses_must_be_whole(tmp_path):
    release = minami2019_figure2()
    found = audit(release, integer=True)
    found.save_witnesses(tmp_path / "w.json")
    proofs, integer = read_witnesses(tmp_path / "w.json")
    assert integer
    assert verify(release, proofs, integer=True).accepted
    half = [
        {cell: value + Fraction((-1) ** k, 2) for k, (cell, value) in enumerate(t.items())} for t in proofs[0].tables
    ]
    assert not verify(release, [replace(proofs[0], tables=half)], integer=True).accepted


def test_a_release_that_is_not_safe_is_not_accepted(release):
    level = np.where(release.table.sensitive, 1000.0, 0.0)  # more than the whole table
    greedy = release.table.with_(upper=level)
    unsafe = Suppression(table=greedy, status=Status.FEASIBLE, objective=0.0, suppressed=release.suppressed)
    found = audit(unsafe)
    assert not found.safe
    assert not verify(unsafe, list(found.witnesses.values())).accepted


def test_a_sensitive_cell_without_levels_must_not_be_a_point():
    table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0])
    assert compute_required_levels(table).sliding[0] > 0
    write_target = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=np.array([1, 1, 0], bool))
    assert verify(write_target, proofs_of(write_target)).accepted


def test_nothing_is_left_when_writing_fails(release, tmp_path):
    with pytest.raises(cg.CellguardError):
        write_witnesses(tmp_path / "no" / "w.json", release, [])
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- the release must be one of its kind


def small(**changes):
    given = {"sensitive": [4], "lower": 3, "upper": 3} | changes
    return cg.Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[20, 50], [8, 19]], **given)


def made(kind, table, **published):
    return kind(table=table, status=Status.FEASIBLE, objective=0.0, **published)


def generous(table, room=40):
    """Witnesses that would do: the sensitive cell far up and far down, in a table that adds up."""
    a = [Fraction(repr(float(v))) for v in table.values]
    around = {4: 1, 5: -1, 7: -1, 8: 1}
    tables = [{c: a[c] + s * d for c, s in around.items()} for d in (-5, 5)]
    return [Proof(attacker="external", cells=[4], low=[0], high=[1], tables=tables)]


def test_intervals_that_exclude_the_truth_prove_nothing():
    table = small()
    lower, upper = table.values - 6, table.values + 6
    assert verify(made(Intervals, table, lower=lower, upper=upper), generous(table)).accepted
    lower[0] = table.values[0] + 1
    found = verify(made(Intervals, table, lower=lower, upper=upper), generous(table))
    assert not found.accepted
    assert found.problems == ("(region=Total, sex=Total): the published interval does not contain the true value.",)


def test_an_adjustment_that_does_not_add_up_or_leaves_its_bounds_is_refused():
    table = small(ub=120)
    moved = table.values.copy()
    moved[[4, 5, 7, 8]] += [4, -4, -4, 4]
    assert verify(made(Adjustment, table, values=moved), []).accepted
    broken = moved.copy()
    broken[0] += 1
    found = verify(made(Adjustment, table, values=broken), [])
    assert "relations do not hold" in found.problems[0]
    outside = table.values.copy()
    outside[[4, 5, 7, 8]] += [-25, 25, 25, -25]
    found = verify(made(Adjustment, table, values=outside), [])
    assert "outside the known bounds" in found.problems[0]


def test_rounded_values_must_be_multiples_near_the_truth():
    table = small()
    true = made(Rounding, table, values=table.values, base=np.full(9, 5.0))
    assert "not a multiple of the base" in verify(true, generous(table)).problems[0]
    far = np.array([100.0, 30, 70, 70, 10, 60, 30, 20, 10])
    found = verify(made(Rounding, table, values=far, base=np.full(9, 5.0)), generous(table))
    assert "does not contain the true value" in found.problems[0]


def test_a_sensitive_cell_that_is_published_is_refused():
    table = small()
    nothing = made(Suppression, table, suppressed=np.zeros(9, bool))
    assert "sensitive, but published" in verify(nothing, generous(table)).problems[0]


def test_where_nothing_is_sensitive_nothing_is_proven():
    table = small(sensitive=[], lower=0, upper=0)
    proof = replace(generous(table)[0], cells=[], low=[], high=[], tables=[])
    found = verify(made(Suppression, table, suppressed=np.zeros(9, bool)), [proof])
    assert found.problems == ()
    assert not found.accepted


def test_the_tables_of_counts_must_hold_whole_numbers_whatever_the_file_says():
    table = small(integer=True)
    suppressed = np.zeros(9, bool)
    suppressed[[4, 5, 7, 8]] = True
    release = made(Suppression, table, suppressed=suppressed)
    proof = generous(table)[0]
    assert verify(release, [proof], integer=False).accepted
    around = {4: 1, 5: -1, 7: -1, 8: 1}
    broken = [{c: v + around[c] * Fraction(1, 2) for c, v in t.items()} for t in proof.tables]
    found = verify(release, [replace(proof, tables=broken)], integer=False)
    assert any("is not a whole number" in p for p in found.problems)

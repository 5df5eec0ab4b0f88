"""What careless users and other attackers found: tables that were called safe although nobody had asked enough."""

import json
import stat
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import cellguard as cg
from adversary.campaign import run_case
from adversary.generator import case
from cellguard.check.coverage import coverage
from cellguard.cli import main
from cellguard.nouns.levels import table_with_respondent_attackers

LEAVES = [[20, 50, 10], [8, 19, 22], [17, 32, 12]]


def square(**fields):
    return cg.Table.from_leaves({"r": ["a", "b", "c"], "c": ["x", "y", "z"]}, LEAVES, **fields)


def firms(n=60):
    rng = np.random.default_rng(3)
    return {
        "r": rng.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]).tolist(),
        "s": rng.choice(list("xyz"), n, p=[0.6, 0.3, 0.1]).tolist(),
        "z": rng.choice(list("uvw"), n, p=[0.6, 0.3, 0.1]).tolist(),
        "x": np.round(np.exp(rng.normal(7, 1.5, n))).tolist(),
    }


# ---------------------------------------------------------------------- who attacks


@pytest.mark.parametrize("method", ["suppress", "intervals", "adjust", "round"])
def test_describing_one_attacker_does_not_dismiss_the_others(method):
    """An attacker of a single cell, with levels of his own, stood for everybody: the other sensitive cells were free."""
    plain = square(sensitive=[5, 10], lower=4, upper=4)
    friend = cg.Attacker(name="friend", cells=[6], lb=[40], ub=[60], sensitive=[10], lower=[1], upper=[1])
    options = {"base": 5.0} if method == "round" else {}
    release = getattr(cg, method)(plain.with_(attackers=(friend,)), seed=1, **options)
    assert release.audit().checked == 2
    assert cg.audit(replace(release, table=plain)).safe


def test_asking_for_respondents_finds_them():
    """``insiders=True`` said that they were among the attackers, and nobody had looked for them."""
    table = cg.tabulate(firms(), ["r", "s"], "x").apply(cg.MinFrequency(3))
    asked, usual = (table_with_respondent_attackers(t).attackers for t in (table.with_(insiders=True), table))
    assert len(usual) > 1
    assert [a.name for a in asked] == [a.name for a in usual]


TABLES = [["r", "s"], ["r", "z"], ["s", "z"]]
RULES = (cg.PPercent(10), cg.MinFrequency(3))


def people(records, table):
    """Return what each respondent gave to every cell of a table, counted from the records."""
    place = {cell: i for i, cell in enumerate(zip(*(table.cell_codes()[d] for d in "rsz"), strict=True))}
    out = {}
    for r, s, z, x, who in zip(*(records[name] for name in ("r", "s", "z", "x", "who")), strict=True):
        for cell in product((r, "Total"), (s, "Total"), (z, "Total")):
            if cell in place:
                own = out.setdefault(who, {})
                own[place[cell]] = own.get(place[cell], 0.0) + x
    return out


@pytest.mark.parametrize("holding", [None, "who"])
@pytest.mark.parametrize("way", ["together", "apart"])
def test_respondents_of_linked_tables_are_who_they_are(holding, way):
    """Numbers of contributors were those of each crossing: the fifth of one table was taken for the fifth of another.

    Tables that were linked afterwards had forgotten their contributors altogether.
    """
    records = {**firms(), "who": [f"h{k}" for k in range(60)]}
    if holding:
        records["who"] = [f"h{k}" for k in np.random.default_rng(2).integers(0, 35, 60)]
    if way == "together":
        table = cg.tabulate(records, ["r", "s", "z"], "x", tables=TABLES, holding=holding).apply(*RULES)
    else:
        parts = [cg.tabulate(records, by, "x", holding=holding).apply(*RULES) for by in TABLES]
        table = cg.Table.from_linked(parts)
    gave = people(records, table)
    count = np.zeros(table.n_cells)
    for own in gave.values():
        count[list(own)] += 1
    assert (table.counts == count).all()
    known = [
        dict(zip(a.cells.tolist(), a.lb.tolist(), strict=True))
        for a in table_with_respondent_attackers(table).attackers[1:]
    ]
    assert len(known) > 4
    for attacker in known:  # everybody knows what one respondent knows, and not what two know
        assert any(all(np.isclose(own.get(i, -1.0), low) for i, low in attacker.items()) for own in gave.values())
    if way == "together" or not holding:  # and who is alone somewhere knows of all cells in which he is one of two
        for own in gave.values():
            few = {i for i in own if count[i] <= 2}
            if any(count[i] == 1 for i in own):
                assert any(few <= attacker.keys() for attacker in known)


# ---------------------------------------------------------------------- what the report says


def test_the_report_does_not_claim_more_than_was_checked():
    ready = square(sensitive=[5, 10], lower=4, upper=4, counts=[30, 9, 9, 9, 9, 1, 4, 4, 9, 3, 2, 4, 9, 3, 3, 3])
    said = coverage(cg.suppress(ready, rounds=1).audit())
    assert not any("one of two" in sentence for sentence in said.holds)
    assert any("one of two" in sentence for sentence in said.left_out)
    kept = cg.round(square(sensitive=[5, 10], lower=1, upper=1), base=5, keep_multiples=True, seed=1)
    assert not any("published as it is," in sentence for sentence in coverage(kept.audit()).holds)


# ---------------------------------------------------------------------- doors


def test_a_comparison_tells_nothing_of_true_values(tmp_path, capsys):
    """With one sensitive cell the width of its range, relative to its value, is the value."""
    square(sensitive=[10], lower=4, upper=4).write(tmp_path / "t.csv")
    asked = ["compare", str(tmp_path / "t.csv"), "--methods", "suppress,round", "--time-limit", "5", "--quiet"]
    assert main([*asked, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["methods"]
    assert not {"range_pct", "deviation_pct", "interval_pct", "range_to_level"} & set().union(*told)
    assert main(asked) == 0
    assert "deviation %" not in capsys.readouterr().out
    assert main([*asked, "--json", "--internal"]) == 0
    assert "range_pct" in json.loads(capsys.readouterr().out)["methods"][0]


def test_internal_files_are_their_owners(tmp_path):
    """The folder was closed; the ranges in it could be read by all once it was copied."""
    rows = zip(*(firms()[name] for name in "rsx"), strict=True)
    (tmp_path / "firms.csv").write_text("r,s,x\n" + "".join(f"{r},{s},{x}\n" for r, s, x in rows))
    (tmp_path / "job.toml").write_text(
        'name="job"\nseed=1\n[data]\nfile="firms.csv"\nvalue="x"\n[dimensions.r]\n[dimensions.s]\n'
        '[[rules]]\nrule="p_percent"\np=10\n[method]\nname="suppress"\nrounds=1\n[output]\nfolder="out"\n'
    )
    assert main(["protect", str(tmp_path / "job.toml"), "--json"]) == 0
    inside = [path for path in (tmp_path / "out" / "internal").rglob("*") if path.is_file()]
    assert len(inside) > 3
    assert not [path.name for path in inside if stat.S_IMODE(path.stat().st_mode) & 0o077]
    assert main(["verify", str(tmp_path / "out" / "internal" / "manifest.json")]) == 0


def test_witnesses_without_a_movement():
    """A proof whose fractions move nothing made the audit fail (a base of 0.5 beside 1e12)."""
    from scipy.sparse import csr_array

    from cellguard._engine.ranges.witness import ExactMovements

    empty = ExactMovements(
        numerators=csr_array((1, 3), dtype=np.int64), denominator=np.ones(3, np.int64), careful={0: {}}
    )
    assert empty.as_floats().nnz == 0


# ---------------------------------------------------------------------- numbers of contributors


@pytest.mark.parametrize("count", [0.0, np.nan, -1.0])
def test_a_cell_with_a_value_has_contributors(count):
    """A blank or a 0 in the column of numbers made a cell neither rare nor empty: it was published."""
    frame = {"r": ["a", "b", "c"], "value": [45.0, 30.0, 20.0], "n": [count, 7.0, 9.0]}
    with pytest.raises(cg.InputError) as error:
        cg.Table.from_frame(frame, ["r"], counts="n")
    assert "45" not in str(error.value)


# ---------------------------------------------------------------------- files of others


def test_the_truth_is_no_rounded_table_even_where_multiples_may_stay(tmp_path):
    """With a base of 1, a large step and keep_multiples the true table was called safe."""
    table = square(sensitive=[5, 10], lower=4, upper=4)
    rows = zip(*table.cell_codes().values(), table.values.tolist(), strict=True)
    (tmp_path / "t.csv").write_text("r,c,value\n" + "".join(f"{r},{c},{x}\n" for r, c, x in rows))
    release = cg.read_release(table, tmp_path / "t.csv", method="round", base=1.0, step=100, keep_multiples=True)
    assert not cg.audit(release).safe
    assert not cg.verify(release, list(release.audit().witnesses.values())).accepted
    fives = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=2, upper=2)
    assert not cg.round(fives, base=5, keep_multiples=True, step=1, seed=1).published


@pytest.mark.parametrize("integer", [True, False])
def test_mended_ends_tell_nothing_by_their_last_digits(integer):
    """Ends lay a billionth of their distance beyond it: 2.999999998 is a 5 that was moved by 2."""
    T = np.array([[4.0, 0, 2, 2, -2]])
    table = cg.Table.from_equations([3, 1, 0, 1, 7], T, sensitive=[4], sliding=3, integer=integer)
    release = cg.intervals(table, position="narrowest", seed=1)
    assert release.audit().safe
    for end in np.concatenate([release.lower, release.upper]).tolist():
        assert len(repr(end).partition(".")[2]) < 7, end
        assert end == int(end) or not integer


def test_respondents_who_were_asked_for_stay_when_something_else_changes():
    """A cell that must be published made the respondents of a table of counts vanish, and what they know was called safe."""
    outcome = run_case(854437730, 3, ("suppress",))
    assert outcome.found == []
    table = case(854437730, 3).table
    release = cg.suppress(table, must_publish=[3], rounds=1, time_limit_s=5.0)
    assert {a.name for a in table.attackers} <= {a.name for a in release.table.attackers}


def test_a_part_of_a_publication_that_is_all_zeros_asks_for_what_the_whole_asks():
    """The smallest width of a zero was a share of the whole's values in the audit, and of nothing in its own part."""
    assert not run_case(20261204, 9031).found

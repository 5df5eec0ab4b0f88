"""What careless users and other attackers found: tables that were called safe although nobody had asked enough."""

import json
import stat
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from adversary import records
from adversary.campaign import run_case, trial
from adversary.generator import case
from adversary.options import VERBS, draw
from builders import key
from cellguard.auditing.coverage import summarize_coverage
from cellguard.cli import main
from cellguard.model.levels import add_respondents, list_attackers
from cellguard.tabulation.request import KEPT_CONTRIBUTIONS

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
    release = getattr(cg, method)(plain.with_(attackers=(friend,)), key=key(1), **options)
    assert release.audit().checked == 2
    assert cg.audit(replace(release, table=plain)).safe


@pytest.mark.parametrize("method", ["suppress", "intervals", "round", "perturb"])
def test_a_described_attacker_does_not_narrow_what_the_external_one_is_denied(method):
    """An attacker who knows a cell nearly leaves little room; that little was all that anybody was kept from."""
    plain = square(sensitive=[5, 10], lower=0, upper=0)
    value = plain.values[5]
    friend = cg.Attacker(name="friend", cells=[5], lb=[value - 0.01], ub=[value + 0.01])
    assert [a.name for a in list_attackers(plain.with_(attackers=(friend,)))] == ["external", "friend"]
    options = {"base": 5.0} if method in ("round", "perturb") else {}
    release = getattr(cg, method)(plain.with_(attackers=(friend,)), **options)
    assert release.published
    assert cg.audit(replace(release, table=plain)).safe


def test_the_name_of_the_external_attacker_belongs_to_nobody_else():
    table = square(sensitive=[5, 10], lower=4, upper=4)
    namesake = cg.Attacker(name="external", cells=[6], lb=[40], ub=[60])
    assert [a.name for a in list_attackers(table.with_(attackers=(namesake,)))] == ["external attacker", "external"]


def test_asking_for_respondents_finds_them():
    """``insiders=True`` said that they were among the attackers, and nobody had looked for them."""
    table = cg.tabulate(firms(), ["r", "s"], "x").apply(cg.MinFrequency(3))
    asked, usual = (add_respondents(t).attackers for t in (table.with_(insiders=True), table))
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
        for a in add_respondents(table.with_(known_zeros=False)).attackers[1:]
        if a.name != "other contributors"  # who are several; test_respondents.py asks whether they know enough
    ]
    assert len(known) > 4

    def fits(own: dict[int, float], cell: int, low: float) -> bool:
        """Return whether it is what somebody gave; of cells that do not list them all, whether it is no less."""
        part = own.get(cell, 0.0 if count[cell] > KEPT_CONTRIBUTIONS else -1.0)
        return bool(np.isclose(part, low)) or (count[cell] > KEPT_CONTRIBUTIONS and low >= part)

    for attacker in known:  # everybody knows what one respondent knows, and not what two know
        assert any(all(fits(own, i, low) for i, low in attacker.items()) for own in gave.values())
    if way == "together" or not holding:  # and who is alone somewhere knows of all cells in which he is one of two
        for own in gave.values():
            few = {i for i in own if count[i] <= 2}
            if any(count[i] == 1 for i in own):
                assert any(few <= attacker.keys() for attacker in known)


# ---------------------------------------------------------------------- what the report says


def test_the_report_does_not_claim_more_than_was_checked():
    ready = square(sensitive=[5, 10], lower=4, upper=4, counts=[30, 9, 9, 9, 9, 1, 4, 4, 9, 3, 2, 4, 9, 3, 3, 3])
    said = summarize_coverage(cg.suppress(ready, rounds=1).audit())
    assert not any("all contributors" in sentence for sentence in said.holds)
    assert any("Contributors to cells with several" in sentence for sentence in said.left_out)
    kept = cg.round(square(sensitive=[5, 10], lower=1, upper=1), base=5, keep_multiples=True, seed=1)
    assert not any("is published unchanged," in sentence for sentence in summarize_coverage(kept.audit()).holds)


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

    from cellguard._engine.ranges.witnesses.witness import ExactMovements

    empty = ExactMovements(
        numerators=csr_array((1, 3), dtype=np.int64), denominator=np.ones(3, np.int64), careful={0: {}}
    )
    assert empty.convert_to_floats().nnz == 0


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
    outcome = run_case(854437730, 3, ("suppress",), edition=1)
    assert outcome.found == []
    table = case(854437730, 3, edition=1).table
    release = cg.suppress(table, must_publish=[3], rounds=1, time_limit_s=5.0)
    asked = {a.name for a in table.attackers} - {"other contributors"}
    there = {a.name for a in release.table.attackers}
    assert asked <= there
    # the others are missing only if what is published leaves them nothing that everybody does not know
    derived = {a.name for a in cg.insiders(release.table)}
    assert derived == there - {"external"}


def test_a_part_of_a_publication_that_is_all_zeros_asks_for_what_the_whole_asks():
    """The smallest width of a zero was a share of the whole's values in the audit, and of nothing in its own part."""
    assert not run_case(20261204, 9031, edition=1).found


def test_a_program_without_an_end_is_not_taken_for_one_that_stays():
    """Of large counts with both ends wanted, a cell that could rise without limit kept the point of an earlier program."""
    assert not run_case(297234628, 46, ["suppress"]).found
    assert not run_case(20261181, 35, ["suppress"]).found


def test_witnesses_of_counts_without_limit_go_as_far_as_levels_ask():
    """They stopped at a thousand where nothing had an end, and a level of 7,304 was not shown."""
    assert not run_case(20261186, 136).found


def run_drawn(seed: int, number: int, method: str, *kinds: str) -> list[str]:
    """Return what is wrong with a release of drawn records that are tabulated in one of some ways."""
    rng = np.random.default_rng([seed, number, list(VERBS).index(method)])
    made = records.draw_records(np.random.default_rng([seed, number]), kinds)
    with tempfile.TemporaryDirectory() as folder:
        options = draw(method, rng, made)
        return [v.text for v in trial(made, method, options, Path(folder), rng, Counter())]


@pytest.mark.parametrize(("method", "number"), [("suppress", 82), ("perturb", 82), ("suppress", 94)])
def test_the_audit_of_a_part_knows_the_bounds_that_were_given(method, number):
    """Cut out of a publication, a table forgot which bounds were its own: the audit asked for a few units more."""
    assert run_drawn(2, number, method, "employees", "indicators") == []


@pytest.mark.parametrize("number", [113, 177])
def test_an_adjusted_table_may_publish_0_for_a_small_count(number):
    """With kept totals the joined publication had bounds of the rule of publication, and refused its own release."""
    assert run_drawn(2, number, "adjust", "employees", "indicators") == []


@pytest.mark.parametrize("method", ["suppress", "intervals"])
def test_respondents_that_were_asked_for_add_up_what_everybody_knows(method):
    """Derived before the rule of publication was applied, they were held to levels that nobody leaves open."""
    assert run_drawn(4, 6, method, "employees", "indicators", "linked", "shadow") == []


def test_an_adjusted_table_that_moves_empty_cells_is_held_to_what_everybody_knows():
    """Counts whose lower bound was infinite: everybody knows the empty ones, and a fixed total less those is a cell."""
    assert not run_case(20261201, 144, ["adjust"]).found
    assert cg.adjust(case(20261201, 144).table, key=key(1)).status == "infeasible"


@pytest.mark.parametrize(("seed", "number"), [(20261223, 216), (20261225, 66)])
def test_units_of_others_are_not_taken_from_a_level_twice(seed, number):
    """A contributor's bound on a total holds a unit for each of the others; the level was reduced by them once more."""
    outcome = run_case(seed, number)
    assert outcome.figures["intervals: releases"] == 1
    assert outcome.found == []


def test_a_described_attacker_adds_up_what_they_know():
    """Who knows a part of a total knows the total as well: the level that nobody leaves open made the table infeasible."""
    outcome = run_case(20261225, 73, ["intervals", "perturb"])
    assert outcome.figures["intervals: releases"] == 1
    assert outcome.found == []
    counts = cg.Table.from_leaves(
        {"r": ["a", "b"], "s": ["x", "y"]}, [[90, 5], [4, 6]], sensitive=[0], lower=60, upper=60, integer=True
    )
    cell = counts.cell({"r": "a", "s": "x"})
    rival = cg.Attacker(name="rival", cells=[cell], lb=[80], ub=[np.inf])
    release = cg.suppress(counts.with_(attackers=(rival,)), seed=1)
    assert release.published
    levels = {found.attacker.name: found.levels.lower[0] for found in release.audit().findings}
    assert levels == {"external": 60, "rival": 105 - 80 - 3}  # the three other cells are not empty


def test_large_counts_without_limit_have_witnesses():
    """A solver called a program unbounded in which only one cell was limited, and nothing was shown."""
    for seed, number in ((20261234, 170), (20261802, 1800)):
        outcome = run_case(seed, number)
        assert outcome.figures["suppress: releases"] == 1
        assert outcome.found == []


def test_an_adjustment_in_which_nothing_may_move_ends_without_a_warning():
    """The first step of the largest movement was a median of nothing."""
    assert not run_case(20261801, 39, ["adjust"]).found
    assert not run_case(20261801, 279, ["adjust"]).found


def test_perturbed_values_have_no_remainders_beside_multiples():
    """A solver left 1e-9 beside a base of a million, which did not add up, and -7e-15, which is below 0."""
    assert not run_case(20261801, 993, ["perturb"]).found
    assert not run_case(20261801, 1682, ["perturb"]).found


def test_a_cell_in_no_relation_has_the_decimals_of_all_others():
    """The judge took an empty cell without relations for a whole number, beside values with three decimals."""
    assert not run_case(20261801, 625, ["round"]).found


def test_a_level_of_a_millionth_of_a_count_is_a_level():
    """The judge took it for none, and asked for three whole numbers where the level asks for one unit."""
    outcome = run_case(20261901, 585)
    assert outcome.figures["suppress: releases"] == 1
    assert outcome.found == []

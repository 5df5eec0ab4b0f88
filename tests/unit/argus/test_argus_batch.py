"""Batches of tau-ARGUS: small ones written here, and the public examples with their known outcomes."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.argus import read_table_of_batch, run_batch
from cellguard.cli import main
from cellguard.exceptions import FormatError, InputError, UnknownCodeError

ARGUS = Path(os.environ.get("CELLGUARD_ARGUS", Path(__file__).resolve().parents[4] / "shared" / "argus"))
EXPECTED = list("ssssxussssxxsss")

RDA = """\
Region 1 2 99
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "region.hrc"
  <HIERLEADSTRING> "@"
Size 4 1 9
  <RECODEABLE>
Wgt 6 3
  <WEIGHT>
Firm 10 2
  <HOLDING>
Turn 13 7 9999999
  <NUMERIC>
  <DECIMALS> 1
Cost 21 3
  <NUMERIC>
Ask 25 1
  <REQUEST> "1" "2"
"""
RECORDS = [
    # region, size, weight, firm, turnover, cost, request
    ("N1", "1", "1.0", " 1", "  100.5", "  1", "1"),
    ("N1", "1", "1.5", " 2", "   20.0", "  2", "0"),
    ("N1", "2", "1.0", " 1", "   50.0", "  3", "0"),
    ("N2", "1", "2.0", " 3", "   60.0", "  4", "0"),
    ("N2", "1", "1.0", " 4", "   55.0", "  5", "0"),
    ("N2", "1", "1.0", " 5", "   50.0", "  6", "0"),
    ("N2", "2", "1.0", " 6", "   40.0", "  7", "2"),
    ("N2", "2", "1.0", " 7", "   39.0", "  8", "0"),
    ("S1", "1", "1.0", " 8", "   30.0", "  9", "0"),
    ("S1", "1", "1.0", " 9", "   31.0", " 10", "0"),
    ("S1", "1", "1.0", "10", "   32.0", " 11", "0"),
    ("S1", "2", "1.0", "11", "   33.0", " 12", "0"),
    ("S1", "2", "1.0", "12", "   34.0", " 13", "0"),
    ("S1", "2", "1.0", "13", "   35.0", " 14", "0"),
    ("S1", "2", "1.0", "14", "9999999", " 15", "0"),
]


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Write a batch beside its data, and run it; methods without a limit of their own get a short one."""
    monkeypatch.setattr("cellguard.argus.batch._DEFAULT_MINUTES", 0.01)
    (tmp_path / "firms.asc").write_text("".join(f"{' '.join(record)}\r\n" for record in RECORDS))
    (tmp_path / "firms.rda").write_text(RDA)
    (tmp_path / "region.hrc").write_text("N\n@N1\n@N2\nS\n@S1\n@S2\n")

    def run(*commands: str, rules: str = "P(20,1)|", table: str = '"Region""Size"|"Turn"||', **options):
        start = ['<OPENMICRODATA> "firms.asc"', '<OPENMETADATA> "firms.rda"', f"<SPECIFYTABLE> {table}"]
        lines = [*start, f"<SAFETYRULE> {rules}", "<READMICRODATA>", *commands]
        (tmp_path / "job.arb").write_text("\n".join(lines) + "\n")
        return run_batch(tmp_path / "job.arb", **options)

    return run


def cells(table: cg.Table) -> dict[tuple[str, ...], int]:
    return {codes: i for i, codes in enumerate(zip(*table.cell_codes().values(), strict=True))}


def rows(path: Path) -> list[list[str]]:
    return [row for row in csv.reader(path.read_text().splitlines()) if row]


# ---------------------------------------------------------------- microdata


def test_records_rules_and_notes(job):
    outcome = job()
    table = outcome.results[0].made.table
    at = cells(table)
    assert table.codes == (("Total", "N", "N1", "N2", "S", "S1", "S2", "99"), ("Total", "1", "2", "9"))
    assert table.values[at["N", "1"]] == 285.5
    assert table.sensitive[at["N1", "1"]]
    assert not table.sensitive[at["N2", "1"]]
    assert table.fixed[at["99", "Total"]]  # the missing code has its place, and is empty
    assert any("1 records have no value of 'Turn'" in note for note in outcome.notes)


def test_weights_holdings_requests_and_costs(job):
    weighted = job(rules="P(20,1)|WGT(1)").results[0].made.table
    assert weighted.values[cells(weighted)["N1", "1"]] == 130.5
    alone = job(rules="P(10,1)|FREQ(3,20)").results[0].made.table
    held = job(rules="P(10,1)|P(0,0)|P(10,1)|FREQ(0,0)|FREQ(3,20)").results[0].made.table
    at = cells(alone)
    assert not alone.sensitive[at["N1", "Total"]]
    assert held.sensitive[at["N1", "Total"]]  # firm 1 is in two cells: two holdings
    assert any("fewer than 3" in reason for reason in held.reasons(at["N1", "Total"]))
    asked = job(rules="REQ(50,50,0,10)").results[0].made.table
    assert [codes for codes, i in at.items() if asked.sensitive[i]] == [("N1", "Total"), ("N1", "1"), ("N2", "2")]
    for cost, expected in (('"Cost"', 15), ("-1", 3), ("-2", 1), ("-2,0.5", 1), ("", 165)):
        costly = job(table=f'"Region""Size"|"Turn"||{cost}').results[0].made.table
        assert costly.weights[at["N2", "1"]] == expected
    frequencies = job(rules="FREQ(3,0)", table='"Region"|<freq>||').results[0].made.table
    assert frequencies.integer
    assert frequencies.values[cells(frequencies)["S1",]] == 7


def test_recoding(job, tmp_path):
    (tmp_path / "size.grc").write_text("a: -1\nb: 2-\n")
    (tmp_path / "tree.grc").write_text("<TREERECODE>\nN\n")
    table = job('<RECODE> 1, Size, "size.grc"', "<RECODE> 1, Region, 1").results[0].made.table
    assert table.codes == (("Total", "N", "S", "99"), ("Total", "a", "b", "9"))
    assert table.values[cells(table)["N", "a"]] == 285.5
    table = job('<RECODE> 1, Region, "tree.grc"').results[0].made.table
    assert table.codes[0] == ("Total", "N", "S", "S1", "S2", "99")
    with pytest.raises(FormatError, match="not a dimension of table 1"):
        job('<RECODE> 1, Turn, "size.grc"')
    with pytest.raises(FormatError, match="is hierarchical"):
        job('<RECODE> 1, Region, "size.grc"')


def test_missing_codes_may_be_safe(job, tmp_path):
    with (tmp_path / "firms.asc").open("a") as stream:
        stream.write("99 1 1.0 20    12.5   1 0\r\n")
    at = cells(job().results[0].made.table)
    assert job().results[0].made.table.sensitive[at["99", "1"]]
    assert not job(rules="P(20,1)|MIS(1)").results[0].made.table.sensitive[at["99", "1"]]


def test_a_priori_decisions(job, tmp_path):
    (tmp_path / "a.hst").write_text("N1;1;S\nS1;1;U\nN2;1;P\nS1;2;C;7\n")
    table = job('<APRIORI> "a.hst", 1, ";"', rules="P(20,1)|MAN(30)").results[0].made.table
    at = cells(table)
    assert not table.sensitive[at["N1", "1"]]
    assert table.upper[at["S1", "1"]] == pytest.approx(0.3 * 93)
    assert table.fixed[at["N2", "1"]]
    assert table.weights[at["S1", "2"]] == 7


# ---------------------------------------------------------------- methods and formats


def test_every_method_protects_and_says_how(job, tmp_path):
    for method in ("GH(1,75)", "MOD(1,0.01)", "OPT(1,0.01)", "NET(1)"):
        outcome = job(f"<SUPPRESS> {method}", '<WRITETABLE> (1, 3, AS-, "out.txt")', rules="FREQ(3,20)|")
        assert outcome.safe
        result = outcome.results[0]
        assert result.audit.safe
        assert any("replaced by" in note for note in outcome.notes)
        withheld = [row for row in rows(tmp_path / "out.txt") if row[2] == "x"]
        assert len(withheld) == int(result.release.suppressed.sum())
    assert result.release.method == "suppress"


def test_singletons_are_held_off_where_the_batch_asks_for_it(job):
    plain = job("<SUPPRESS> MOD(1,0.01)", rules="FREQ(3,20)|")
    careful = job("<SUPPRESS> MOD(1,0.01,1,1,1)", rules="FREQ(3,20)|")
    assert len(plain.results[0].made.table.attackers) == 1
    assert len(careful.results[0].made.table.attackers) > 1
    assert careful.safe
    assert any("singletons" in note for note in careful.notes)


def test_rounding_and_adjustment(job, tmp_path):
    outcome = job(
        "<SUPPRESS> RND(1,5)", '<WRITETABLE> (1, 3, FL+, "out.txt")', rules="FREQ(3,0)", table='"Region"|<freq>||'
    )
    assert outcome.results[0].release.method == "round"
    written = rows(tmp_path / "out.txt")
    assert written[0] == ["Region", "Freq_Round"]
    assert all(int(row[1]) % 5 == 0 for row in written[1:] if row[1] != "-")
    outcome = job("<SUPPRESS> CTA", '<WRITETABLE> (1, 3, AS+FL+, "out.txt")')
    assert outcome.results[0].release.method == "adjust"
    assert rows(tmp_path / "out.txt")[0] == ["Region", "Size", "Turn_CTA", "Turn_Orig"]


def test_linked_tables_are_protected_together(job, tmp_path):
    lines = [
        '<SPECIFYTABLE> "Region"|"Turn"||',
        "<SAFETYRULE> FREQ(3,20)|",
        "<READMICRODATA>",
        "<SUPPRESS> MOD(0,0.01)",
    ]
    outcome = job(*lines, rules="FREQ(3,20)|")
    both, margin = outcome.results
    assert outcome.safe
    inside = {codes[0]: i for codes, i in cells(both.made.table).items() if codes[1] == "Total"}
    for (code,), i in cells(margin.made.table).items():
        assert margin.release.suppressed[i] == both.release.suppressed[inside[code]]


def test_formats(job, tmp_path):
    names = {1: "matrix.csv", 2: "pivot.csv", 3: "codes.txt", 5: "again.tab", 6: "table.jj"}
    write = [f'<WRITETABLE> (1, {form}, , "{name}")' for form, name in names.items()]
    outcome = job("<SUPPRESS> MOD(1,0.01)", *write)
    table = outcome.results[0].made.table
    matrix = rows(tmp_path / "matrix.csv")
    assert matrix[0] == ["", "Total", "1", "2", "9"]
    assert [row[0].strip() for row in matrix[1:]] == list(table.codes[0])
    assert matrix[-1][1:] == ["-"] * 4
    assert rows(tmp_path / "pivot.csv")[0] == ["Region", "Size", "Turn"]
    assert len(rows(tmp_path / "codes.txt")) == table.n_cells
    for name in ("again.tab", "again.rda", "table.jj"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert cg.Table.read(tmp_path / "table.jj").n_cells == table.n_cells

    (tmp_path / "second.arb").write_text(
        '<OPENTABLEDATA> "again.tab"\n<OPENMETADATA> "again.rda"\n<SPECIFYTABLE> "Region""Size"|"Turn"||"Turn_cost"\n'
        "<SAFETYRULE> P(20,1)|\n<READTABLE>\n"
    )
    again = read_table_of_batch(tmp_path / "second.arb")
    for name in ("values", "sensitive", "lower", "upper", "weights", "counts"):
        assert getattr(again, name) == pytest.approx(getattr(table, name)), name


def test_withheld_values_are_written_only_where_tau_argus_does(job, tmp_path):
    outcome = job(
        "<SUPPRESS> MOD(1,0.01)", '<WRITETABLE> (1, 3, AS+, "in.txt")', '<WRITETABLE> (1, 3, AS-SE+, "out.txt")'
    )
    assert any("keep it internal" in note for note in outcome.notes)
    assert stat.S_IMODE((tmp_path / "in.txt").stat().st_mode) == 0o600
    status = {tuple(r[:2]): int(r[3]) for r in rows(tmp_path / "in.txt")}
    public = {tuple(r[:2]): r[2] for r in rows(tmp_path / "out.txt")}
    assert set(status.values()) <= {1, 3, 11, 14}
    for codes, number in status.items():
        assert (public.get(codes) == "x") == (number in (3, 11))
        assert (codes not in public) == (number == 14)


def test_what_cannot_be_protected_is_not_written(job, tmp_path, capfd):
    everything_else = [f"{r};{s};P" for r in ("Total", "N", "N2", "S", "S1") for s in ("Total", "1", "2")]
    (tmp_path / "a.hst").write_text("\n".join(everything_else) + "\n")
    decide = '<APRIORI> "a.hst", 1, ";"'
    outcome = job(decide, "<SUPPRESS> MOD(1,0.01)", '<WRITETABLE> (1, 3, , "out.txt")', rules="REQ(50,0,0,10)")
    assert not outcome.safe
    assert outcome.written == []
    assert any("no safe release" in note for note in outcome.notes)
    assert main(["argus", str(tmp_path / "job.arb")]) == 2
    assert not (tmp_path / "out.txt").exists()


def test_levels_by_digits_labels_and_a_table_of_one_dimension(job, tmp_path):
    rda = RDA.replace(
        "Firm 10 2", 'Act 10 2 99\n <RECODEABLE>\n <HIERARCHICAL>\n <HIERLEVELS> 1 1\n <CODELIST> "ACT.cdl"\nFirm 10 2'
    )
    (tmp_path / "firms.rda").write_text(rda)
    (tmp_path / "act.cdl").write_text("1,Mining\n")
    (tmp_path / "firms.asc").write_text(
        "".join(f"{' '.join(r)}\n".replace("  ", " 0") for r in RECORDS if r[3] >= "10")
    )
    outcome = job(
        "<SUPPRESS> MOD(1,0.01)", '<WRITETABLE> (1, 1, , "out.csv")', table='"Act"|"Cost"||', rules="FREQ(1,0)"
    )
    table = outcome.results[0].made.table
    assert table.codes == (("Total", "1", "10", "11", "12", "13", "14", "99"),)
    assert outcome.results[0].made.dimensions[0].hierarchy.labels[1] == "Mining"
    assert rows(tmp_path / "out.csv")[0] == ["Total", "65"]


def test_outputs_may_go_elsewhere(job, tmp_path):
    (tmp_path / "results").mkdir()
    outcome = job(
        "<LOGBOOK> log.txt", "<SUPPRESS> MOD(1,0.01)", '<WRITETABLE> (1, 3, , "out.txt")', "<VERSIONINFO> v.txt",
        out=tmp_path / "results",
    )  # fmt: skip
    assert sorted(p.name for p in outcome.written) == ["log.txt", "out.txt", "v.txt"]
    assert all(p.parent.name == "results" for p in outcome.written)
    log = (tmp_path / "results" / "log.txt").read_text()
    assert "100.5" not in log


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        (["<SUPPRESS> MOD(3)"], r"job.arb:6: there is no table 3; 1 are specified"),
        (['<WRITETABLE> (1,3,,"x")'], r"job.arb:6: table 1 has sensitive cells and is not protected"),
        (["<SUPPRESS> RND(1)"], r"job.arb:6: RND needs a base"),
        (['<APRIORI> "none.hst", 1, ";"'], r"job.arb:6: none.hst: no such file"),
        (["<READTABLE>"], r"job.arb:6: no table is open"),
        (["<CLEAR>", '<SPECIFYTABLE> "Size"|"Turn"'], r"job.arb:7: a table is specified before data"),
        (['<SPECIFYTABLE> "Turn"|"Cost"'], r"job.arb:6: variable 'Turn' is numeric"),
        (["<FROBNICATE>"], r"job.arb:6: unknown command <FROBNICATE>"),
    ],
)
def test_mistakes_name_their_line(job, commands, message):
    with pytest.raises(FormatError, match=message):
        job(*commands)


def test_other_mistakes(job):
    with pytest.raises(UnknownCodeError, match=r"no variable 'Sise'.*\n.*did you mean 'Size'"):
        job(table='"Sise"|"Turn"')
    with pytest.raises(InputError, match=r"job.arb:4: dominance rule, k"):
        job(rules="NK(1,120)")
    with pytest.raises(InputError, match="prior-posterior"):
        job(rules="P(60,50,1)")


def test_the_batch_ends_where_it_would_become_interactive(job):
    outcome = job("<GOINTERACTIVE>", '<WRITETABLE> (1,3,,"x")')
    assert outcome.written == []
    assert "ends here" in outcome.notes[-1]


def test_command_line(job, tmp_path, capfd):
    job("<SUPPRESS> MOD(1,0.01)", '<WRITETABLE> (1, 3, , "out.txt")')
    assert main(["argus", str(tmp_path / "job.arb"), "--json"]) == 0
    facts = json.loads(capfd.readouterr().out)
    assert facts["safe"]
    assert facts["tables"][0]["audit"]["safe"]
    assert len(facts["tables"][0]["status_of_cells"]) == 32
    assert main(["argus", str(tmp_path / "job.arb"), "--quiet"]) == 0
    assert "written:" in capfd.readouterr().out
    assert main(["argus", str(tmp_path / "none.arb")]) == 1
    assert main(["info", str(tmp_path / "job.arb"), "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["sensitive"] > 0


# ---------------------------------------------------------------- ready tables


TABLE = """\
;;60,5;9;S;20,0;10,0;
;1;30;5;S;20;5;
;2;30,5;4;S;10;9,5;
A;;38;4;S;20;10;
A;1;20;1;S;20;;
A;2;18;3;S;10;5;
B;;22,5;5;S;9,5;5;
B;1;10;4;U;5;3;4
B;2;12,5;1;P;12,5;;
"""
TABLE_RDA = """\
<SEPARATOR> ";"
Region
 <RECODEABLE>
Size
 <RECODEABLE>
Turn
 <NUMERIC>
 <DECIMALS> 1
Freq
 <FREQUENCY>
Stat
 <STATUS>
Top1
 <MAXSCORE>
Top2
 <MAXSCORE>
Low
 <NUMERIC> <LOWERPL>
"""


def ready(folder: Path, rules: str, text: str = TABLE, read: str = "<READTABLE>") -> cg.Table:
    (folder / "t.tab").write_text(text)
    (folder / "t.rda").write_text(TABLE_RDA)
    (folder / "t.arb").write_text(
        '<OPENTABLEDATA> "t.tab"\n<OPENMETADATA> "t.rda"\n<SPECIFYTABLE> "Region""Size"|"Turn"||\n'
        f"<SAFETYRULE> {rules}\n{read}\n"
    )
    return read_table_of_batch(folder / "t.arb")


def test_a_ready_table_with_statuses_and_levels(tmp_path):
    table = ready(tmp_path, "MAN(20)")
    at = cells(table)
    assert table.values[at["Total", "Total"]] == 60.5
    assert table.sensitive_cells.tolist() == [at["B", "1"]]
    assert (table.lower[at["B", "1"]], table.upper[at["B", "1"]]) == (4, 2)  # given, and 20% of 10
    assert table.fixed[at["B", "2"]]
    judged = ready(tmp_path, "P(10,1)|MAN(20)", TABLE.replace("P;12,5", "S;12,5"))
    assert {codes for codes, i in at.items() if judged.sensitive[i]} == {("A", "1"), ("B", "1"), ("B", "2")}
    assert judged.reasons(at["B", "1"]) == ("status: unsafe in the file",)


def test_business_statistics_tell_the_share_of_the_largest_without_a_rule_about_it(tmp_path):
    ready(tmp_path, "MAN(20)")
    with (tmp_path / "t.arb").open("a") as batch:
        batch.write('<SUPPRESS> GH(1)\n<WRITETABLE> (1,4,AS+,"t_out.csv")\n')
    run_batch(tmp_path / "t.arb")
    shares = [float(row[-1]) for row in rows(tmp_path / "t_out.csv")]
    assert all(0 <= share <= 100 for share in shares)
    assert any(shares)


def test_a_ready_table_that_does_not_add_up(tmp_path):
    wrong = TABLE.replace(";;60,5", ";;61,5")
    with pytest.raises(InputError, match="do not hold"):
        ready(tmp_path, "MAN(20)", wrong)
    assert ready(tmp_path, "MAN(20)", wrong, "<READTABLE> 2").values[0] == 60.5
    with pytest.raises(FormatError, match=r"t.tab:2: unknown status 'Q'"):
        ready(tmp_path, "MAN(20)", TABLE.replace(";1;30;5;S", ";1;30;5;Q"))


# ---------------------------------------------------------------- the public examples


def example(name: str, folder: Path) -> Path:
    if not (ARGUS / name).is_dir():
        pytest.skip(f"the examples of tau-ARGUS are not there ({ARGUS}); set CELLGUARD_ARGUS")
    for file in (ARGUS / name).iterdir():
        shutil.copy(file, folder / file.name)
        (folder / file.name).chmod(0o644)
    return folder


@pytest.mark.parametrize("name", ["ex1", "ex2"])
def test_examples_end_with_their_known_statuses(name, tmp_path):
    folder = example(name, tmp_path)
    job = folder / f"batch_{name}.arb"
    job.write_text(job.read_text().replace("OPT(1,1)", "OPT(1,0.02)"))  # a minute is more than is needed
    outcome = run_batch(job)
    result = outcome.results[0]
    assert outcome.safe
    assert result.summarize()["status_of_cells"] == EXPECTED
    numbers = {"s": {"1"}, "x": {"11"}, "u": {"3", "9"}}
    written = rows(folder / f"tabout_{name}.txt")[1:]
    assert all(row[-1] in numbers[letter] for row, letter in zip(written, EXPECTED, strict=True))


def test_simple2d_has_the_values_and_primaries_of_tau_argus(tmp_path):
    folder = example("simple2d", tmp_path)
    (folder / "tau_testW.asc").write_bytes(gzip.decompress((folder / "tau_testW.asc.gz").read_bytes()))
    (folder / "job.arb").write_text(
        '<OPENMICRODATA> "tau_testW.asc"\n<OPENMETADATA> "Tau_TestW.rda"\n<SPECIFYTABLE> "Size""Region"|"Var2"||\n'
        '<SAFETYRULE> P(15,1)|\n<READMICRODATA>\n<SUPPRESS> MOD(1,0.05)\n<WRITETABLE> (1, 3, AS+, "out.txt")\n'
    )
    outcome = run_batch(folder / "job.arb")
    expected, ours = rows(folder / "expected.txt"), rows(folder / "out.txt")
    assert len(expected) == len(ours) == 162
    full = [i for i, row in enumerate(expected) if row[3] != "14"]
    assert len(full) == 119
    assert all(expected[i][:3] == ours[i][:3] for i in range(162))
    assert [i for i in full if expected[i][3] == "3"] == [i for i in full if ours[i][3] == "3"]
    assert outcome.safe
    theirs = sum(float(row[2]) for row in expected if row[3] in ("11", "12"))
    assert outcome.results[0].release.cost <= theirs
    assert np.isclose(sum(float(row[2]) for row in ours if row[3] == "11"), outcome.results[0].release.cost)

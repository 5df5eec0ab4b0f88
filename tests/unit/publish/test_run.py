import csv
import json
import re
import stat

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest

from cellguard.cli import main
from cellguard.exceptions import CellguardError, InputError
from cellguard.nouns.release import UNSAFE, Suppression
from cellguard.publish import read_job
from cellguard.publish.manifest import check_manifest, hash_of
from cellguard.publish.outputs import Folders
from cellguard.publish.progress import Progress
from cellguard.publish.run import UnsafeReleaseError, run
from cellguard.publish.steps import tabulated


@pytest.fixture
def outcome(office):
    return run(read_job(office / "job.toml"))


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def changed_manifest(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return check_manifest(path)


@pytest.mark.parametrize("folder", ["public", "internal"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.update(outputs={}), "lists no file that was published"),
        (lambda m: m.update(outputs={k: {} for k in m["outputs"]}), "lists no file that was published"),
        (lambda m: m.update(safe=False), "although the audit refused it"),
        (lambda m: m.pop("safe"), "although the audit refused it"),
        (lambda m: m.update(safe="yes"), "although the audit refused it"),
        (lambda m: m.update(unsafe=True), "although the audit refused it"),
    ],
)
def test_a_manifest_without_files_or_not_safe_is_refused(outcome, office, folder, change, says):
    found = changed_manifest(office / "out" / folder / "manifest.json", change)
    assert not found["accepted"]
    assert any(says in problem for problem in found["problems"]), found["problems"]


def test_the_audit_of_a_manifest_must_be_there_and_say_safe(outcome, office):
    internal = office / "out" / "internal"
    path, audit = internal / "manifest.json", internal / "audit.json"
    original = path.read_text()
    found = changed_manifest(path, lambda m: m.update(audit=None))
    assert "the audit is not the one that the manifest tells of." in found["problems"]
    path.write_text(original)
    found = changed_manifest(path, lambda m: m["outputs"]["."].pop("audit.json"))
    assert "the manifest does not list the audit." in found["problems"]
    path.write_text(original)
    facts = json.loads(audit.read_text())
    audit.write_text(json.dumps(facts | {"safe": False, "unsafe": 1}))

    def adapted(manifest):
        manifest["outputs"]["."]["audit.json"] = hash_of(audit)
        manifest["audit"] |= {"safe": False, "unsafe": 1}

    found = changed_manifest(path, adapted)
    assert found["problems"] == ["the audit does not call the release safe."]


def test_a_manifest_excuses_no_file_but_those_that_tell_seconds(outcome, office):
    (office / "out" / "public" / "more.csv").write_text("cell,value\n0,212.5\n")
    for folder in ("public", "internal"):
        path = office / "out" / folder / "manifest.json"
        found = changed_manifest(path, lambda m: m.update(not_hashed=["more.csv"]))
        assert any("more.csv: is not in the manifest." in problem for problem in found["problems"])


def test_a_link_in_place_of_an_output_is_refused(outcome, office):
    release = office / "out" / "public" / "small.csv"
    release.rename(office / "elsewhere.csv")
    release.symlink_to(office / "elsewhere.csv")
    found = check_manifest(office / "out" / "public" / "manifest.json")
    assert found["problems"] == ["small.csv: the output is a symbolic link."]


def test_everything_is_written(outcome, office):
    public = {path.name for path in (office / "out" / "public").iterdir()}
    internal = {path.name for path in (office / "out" / "internal").iterdir()}
    assert public == {"small.csv", "small.parquet", "small.xlsx", "report.html", "manifest.json"}
    assert internal >= {"small.jj.gz", "audit.json", "report.html", "manifest.json", "job.toml", "timing.json"}
    assert not (office / "out" / ".work").exists()
    assert stat.S_IMODE((office / "out" / "internal").stat().st_mode) == 0o700
    assert outcome.audit.safe


def test_the_formats_agree(outcome, office):
    public = office / "out" / "public"
    rows = rows_of(public / "small.csv")
    parquet = pq.read_table(public / "small.parquet").to_pylist()
    sheet = list(openpyxl.load_workbook(public / "small.xlsx").active.iter_rows())
    assert len(rows) == len(parquet) == len(sheet) - 1 == outcome.release.table.n_cells
    for row, line, cells in zip(rows, parquet, sheet[1:], strict=True):
        assert row["status"] == line["status"] == cells[2].value
        withheld = row["value"] == ""
        assert withheld == (line["value"] is None) == (cells[3].value == "x") == (row["status"] != "published")
        if not withheld:
            assert float(row["value"]) == line["value"] == cells[3].value


def test_spreadsheet_marks_suppressed_cells_and_guards_against_formulas(outcome, office):
    sheet = openpyxl.load_workbook(office / "out" / "public" / "small.xlsx").active
    seen = set()
    for _, sector, status, value in list(sheet.iter_rows())[1:]:
        if status.value != "published":
            seen.add((status.value, value.fill.fgColor.rgb))
        if str(sector.value).startswith("="):
            assert sector.data_type == "s"
            assert sector.quotePrefix
    assert len(seen) == 1
    assert any(str(c[1].value) == "=C" for c in sheet.iter_rows())


def test_same_job_same_bytes(outcome, office):
    first = {p.name: p.read_bytes() for p in (office / "out" / "public").iterdir()}
    audit = (office / "out" / "internal" / "audit.json").read_bytes()
    run(read_job(office / "job.toml"))
    assert first == {p.name: p.read_bytes() for p in (office / "out" / "public").iterdir()}
    assert audit == (office / "out" / "internal" / "audit.json").read_bytes()


def test_manifest_is_verified_and_sees_changes(outcome, office, capsys):
    internal = office / "out" / "internal" / "manifest.json"
    for path in (internal, office / "out" / "public" / "manifest.json"):
        assert check_manifest(path)["accepted"]
    assert main(["verify", str(internal), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"]
    release = office / "out" / "public" / "small.csv"
    release.write_text(release.read_text().replace("withheld", "published", 1))
    (office / "firms.csv").write_text("gone\n")
    (office / "out" / "public" / "extra.csv").write_text("")
    found = check_manifest(internal)["problems"]
    assert found == [
        "small.csv: the output has changed.",
        "extra.csv: is not in the manifest.",
        "firms.csv: the input has changed.",
    ]
    assert main(["verify", str(internal)]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": "cellguard manifest 1"}',
        '{"format": "cellguard manifest 1", "outputs": {"../../..": {"x": "y"}}}',
    ],
)
def test_a_damaged_manifest_is_wrong_input(text, tmp_path, capsys):
    (tmp_path / "manifest.json").write_text(text)
    assert main(["verify", str(tmp_path / "manifest.json")]) == 1
    assert "Traceback" not in capsys.readouterr().err


def _protect_badly(table, job, tell):
    """A method that forgets to protect: only the sensitive cells are withheld."""
    from cellguard.nouns.release import Status

    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=table.sensitive.copy())


def test_nothing_unsafe_leaves(office, monkeypatch, capsys):
    monkeypatch.setattr("cellguard.publish.run.protected", _protect_badly)
    with pytest.raises(UnsafeReleaseError, match="the audit refuses"):
        run(read_job(office / "job.toml"))
    assert not (office / "out" / "public").exists()
    assert not (office / "out" / "internal").exists()
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 2


def test_allow_unsafe_is_recorded_in_every_output(office, monkeypatch):
    monkeypatch.setattr("cellguard.publish.run.protected", _protect_badly)
    run(read_job(office / "job.toml"), allow_unsafe=True)
    public = office / "out" / "public"
    assert {row["warning"] for row in rows_of(public / "UNSAFE-small.csv")} == {UNSAFE}
    assert set(pq.read_table(public / "UNSAFE-small.parquet")["warning"].to_pylist()) == {UNSAFE}
    sheet = openpyxl.load_workbook(public / "UNSAFE-small.xlsx").active
    assert {row[-1].value for row in list(sheet.iter_rows())[1:]} == {UNSAFE}
    for report in (public / "report.html", office / "out" / "internal" / "report.html"):
        assert "NOT SAFE" in report.read_text()
    for manifest in (public / "manifest.json", office / "out" / "internal" / "manifest.json"):
        assert json.loads(manifest.read_text())["unsafe"] is True
        assert not check_manifest(manifest)["accepted"]


def test_no_value_of_a_withheld_cell_in_public_files_or_logs(office, capfd):
    assert main(["protect", str(office / "job.toml")]) == 0
    shown = capfd.readouterr()
    release = run(read_job(office / "job.toml")).release
    published = set(release.table.values[~release.suppressed].tolist())
    secret = {v for v in release.table.values[release.suppressed].tolist() if v not in published and v > 99}
    assert len(secret) > 3
    texts = [shown.out, shown.err]
    for path in (office / "out" / "public").iterdir():
        if path.suffix in (".csv", ".html", ".json"):
            texts.append(path.read_text())
        elif path.suffix == ".xlsx":
            texts += [str(c.value) for row in openpyxl.load_workbook(path).active.iter_rows() for c in row]
        else:
            texts.append(str(pq.read_table(path).to_pylist()))
    whole = "\n".join(texts)
    for value in secret:
        assert f"{value:.0f}" not in whole
        assert f"{value:,.0f}" not in whole


def test_public_manifest_tells_no_secret(outcome, office):
    manifest = json.loads((office / "out" / "public" / "manifest.json").read_text())
    assert not manifest.keys() & {"seed", "options", "inputs"}


def test_dry_run_writes_nothing(office, capsys):
    assert main(["protect", str(office / "job.toml"), "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["cells"] == 35
    assert plan["sensitive"] > 0
    assert not (office / "out").exists()


def test_report_option_and_json(office, capsys):
    assert main(["protect", str(office / "job.toml"), "--json", "--report", str(office / "r.html")]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["audit"]["safe"] is True
    assert (office / "r.html").read_text() == (office / "out" / "public" / "report.html").read_text()


@pytest.mark.parametrize("method", ["adjust", "intervals", "round", "perturb"])
def test_every_method(office, method):
    text = (office / "job.toml").read_text().replace('name = "suppress"\nrounds = 2', f'name = "{method}"')
    (office / "job.toml").write_text(text)
    outcome = run(read_job(office / "job.toml"))
    assert outcome.release.method == method
    if method == "adjust":  # decimals would tell which of the whole numbers moved
        assert np.array_equal(outcome.release.values, np.rint(outcome.release.values))
    assert outcome.audit.safe
    assert (office / "out" / "public" / "small.csv").is_file()


def test_public_files_have_one_mark_for_withheld_cells(outcome, office):
    public = office / "out" / "public"
    assert {row["status"] for row in rows_of(public / "small.csv")} == {"withheld", "published"}
    assert set(pq.read_table(public / "small.parquet")["status"].to_pylist()) == {"withheld", "published"}
    sheet = list(openpyxl.load_workbook(public / "small.xlsx").active.iter_rows())[1:]
    assert {row[2].value for row in sheet} == {"withheld", "published"}
    looks = {(row[2].value, row[3].fill.fgColor.rgb) for row in sheet}
    assert len(looks) == 2  # one colour for withheld cells
    page = (public / "report.html").read_text()
    assert "(primary)" not in page
    assert 'class="primary"' not in page


def test_primary_and_secondary_are_told_apart_on_request_with_a_warning(office, capsys):
    text = (office / "job.toml").read_text().replace("[output]", "[output]\nmark_primary = true")
    (office / "job.toml").write_text(text)
    assert main(["protect", str(office / "job.toml")]) == 0
    assert "warning: readers are told which withheld cells are sensitive themselves" in capsys.readouterr().err
    public = office / "out" / "public"
    assert {row["status"] for row in rows_of(public / "small.csv")} == {"primary", "secondary", "published"}
    assert "(primary)" in (public / "report.html").read_text()


def test_rules_levels_and_attackers_of_the_job(office):
    text = (
        (office / "job.toml")
        .read_text()
        .replace(
            "[method]",
            '[[rules]]\nrule = "manual"\ncells = [{region = "North"}]\npercent = 5\n[[rules]]\nrule = "min_frequency"\nn = 3\n'
            '[[attackers]]\nname = "a firm"\nknows = [{cell = {region = "N1", sector = "A"}, contribution = 1.0}]\n[method]',
        )
    )
    (office / "job.toml").write_text(text)
    table = run(read_job(office / "job.toml")).release.table
    assert table.sensitive[table.cell({"region": "North"})]
    assert [a.name for a in table.attackers if not a.derived] == ["external", "a firm"]
    assert any(a.derived for a in table.attackers)  # respondents join, unless told otherwise
    assert "a firm" not in (office / "out" / "public" / "report.html").read_text()


def test_a_table_instead_of_records(office):
    table = run(read_job(office / "job.toml")).release.table
    table.write(office / "cells.jj.gz")
    (office / "job.toml").write_text(
        'name = "cells"\n[data]\ntable = "cells.jj.gz"\n[method]\nrounds = 0\n[output]\nfolder = "o2"\n'
    )
    outcome = run(read_job(office / "job.toml"))
    assert np.array_equal(outcome.release.table.values, table.values)
    assert outcome.audit.safe


class Impatient(Progress):
    """Somebody who presses Ctrl-C as soon as there is a result."""

    def tell(self, incumbent, bound):  # noqa: ARG002 - told, not heard
        raise KeyboardInterrupt


def test_ctrl_c_ends_with_the_best_safe_result(office):
    outcome = run(read_job(office / "job.toml"), progress=Impatient(quiet=True))
    assert outcome.audit.safe
    manifest = json.loads((office / "out" / "internal" / "manifest.json").read_text())
    assert manifest["repeatable"] is False
    assert check_manifest(office / "out" / "public" / "manifest.json")["accepted"]


def test_an_unbroken_run_is_repeatable(outcome, office):
    assert json.loads((office / "out" / "internal" / "manifest.json").read_text())["repeatable"] is True


def run_on_a_full_disk(office, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    file = read_job(office / "job.toml")
    with monkeypatch.context() as patch:
        patch.setattr("cellguard.publish.run.write_public", fail)
        with pytest.raises(OSError, match="No space"):
            run(file)


def test_a_run_goes_on_from_its_checkpoints(office, monkeypatch):
    run_on_a_full_disk(office, monkeypatch)
    assert not (office / "out" / "public").exists()
    assert stat.S_IMODE((office / "out" / ".work").stat().st_mode) == 0o700
    assert run(read_job(office / "job.toml")).resumed == ("tabulate", "flag", "protect", "audit")


def test_a_run_that_found_no_release_is_tried_again(office, monkeypatch, capsys):
    from dataclasses import replace

    from cellguard.nouns.release import Status
    from cellguard.publish import run as running

    def none(table, job, tell):
        return replace(found(table, job, tell), status=Status.TIME_LIMIT, objective=float("nan"), explanation="late.")

    found = running.protected
    with monkeypatch.context() as patch:
        patch.setattr(running, "protected", none)
        assert main(["protect", str(office / "job.toml")]) == 2
    assert "raise limits.time_limit_s (now" in capsys.readouterr().err
    assert not (office / "out").exists()  # a table of true values is not left behind
    assert run(read_job(office / "job.toml")).resumed == ()


def test_checkpoints_of_other_data_or_damaged_ones_count_for_nothing(office, monkeypatch):
    run_on_a_full_disk(office, monkeypatch)
    (office / "out" / ".work" / "protect.npz").write_bytes(b"PK\x03\x04 damaged")
    text = (office / "firms.csv").read_text()
    (office / "firms.csv").write_text(text + "N1,A,1\n")
    assert run(read_job(office / "job.toml")).resumed == ()


def test_attack_and_comparison_of_a_job(office):
    text = (office / "job.toml").read_text().replace('name = "suppress"\nrounds = 2', 'name = "adjust"')
    text += '[attack]\nscenario = "B2"\nreplications = 2\n[compare]\nmethods = ["round"]\n'
    (office / "job.toml").write_text(text)
    outcome = run(read_job(office / "job.toml"))
    assert [row["method"] for row in outcome.comparison.rows] == ["adjust", "round"]
    internal = (office / "out" / "internal" / "report.html").read_text()
    assert "How far the intruder" in internal
    assert "Other methods on the same table" in internal
    assert "intruder" not in (office / "out" / "public" / "report.html").read_text()


def test_a_folder_of_somebody_else_is_not_replaced(office, capsys):
    (office / "out" / "public").mkdir(parents=True)
    (office / "out" / "public" / "index.html").write_text("my web site")
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 1
    assert "was not written by cellguard" in capsys.readouterr().err
    assert (office / "out" / "public" / "index.html").read_text() == "my web site"


@pytest.mark.parametrize("search", ["exact", "auto"])
def test_a_pattern_with_a_proof(office, search):
    text = (office / "job.toml").read_text().replace("rounds = 2", f'search = "{search}"')
    (office / "job.toml").write_text(text)
    outcome = run(read_job(office / "job.toml"))
    assert str(outcome.release.status) == "optimal"
    assert outcome.audit.safe
    manifest = json.loads((office / "out" / "internal" / "manifest.json").read_text())
    assert manifest["options"]["method"] == search
    assert manifest["repeatable"] is True
    assert manifest["not_hashed"].keys() == {"report.html", "timing.json"}


def test_levels_by_digits_and_records_that_stand_alone(tmp_path):
    lines = [f"{11 + 10 * (i % 3) + i % 2};{i + 1},5;{'G' if i % 4 == 0 else ''}" for i in range(60)]
    (tmp_path / "d.csv").write_text("\n".join(["nace;umsatz;gruppe", *lines]))
    (tmp_path / "job.toml").write_text(
        'nothing_sensitive = "publish"\n[data]\nfile = "d.csv"\nvalue = "umsatz"\nholding = "gruppe"\nstandalone = true\ndecimal = ","\n'
        '[dimensions.nace]\ndigits = [1, 1]\ntotal = "all"\n[[rules]]\nrule = "min_frequency"\nn = 3\n'
    )
    table = run(read_job(tmp_path / "job.toml")).release.table
    assert table.codes[0] == ("all", "1", "11", "12", "2", "21", "22", "3", "31", "32")
    assert table.values[0] == sum(i + 1.5 for i in range(60))
    assert table.counts[0] == 46  # fifteen records of one holding, and the others
    assert table.counts[1] == 16


COUNTS = """\
name = "people"
seed = 5
[data]
file = "people.csv"
[dimensions.town]
[dimensions.age]
[[rules]]
rule = "min_frequency"
n = 5
[levels]
width = 8
[method]
{method}
weights = "unit"
[attack]
scenario = "matching"
[output]
folder = "out"
"""


@pytest.mark.parametrize(
    ("method", "knows"),
    [('resist = "matching"', "mechanism"), ('search = "exact"', "algorithm"), ('search = "heuristic"', "rule")],
)
def test_matching_attack_of_a_job(tmp_path, method, knows, capsys):
    counts = [[3, 12, 9, 14], [11, 4, 13, 10], [12, 9, 15, 8], [10, 11, 7, 2]]
    lines = [f"t{i},a{j}" for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
    (tmp_path / "people.csv").write_text("\n".join(["town,age", *lines]))
    (tmp_path / "job.toml").write_text(COUNTS.format(method=method))
    assert main(["protect", str(tmp_path / "job.toml"), "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)["attack"]
    assert found["knows"] == knows
    assert found["primary"] == 3
    if knows == "mechanism":
        assert found["unsafe"] == 0
        assert {row["status"] for row in rows_of(tmp_path / "out" / "public" / "people.csv")} == {
            "withheld",
            "published",
        }
    assert "matching" not in (tmp_path / "out" / "public" / "report.html").read_text()
    assert "mechanism" in (tmp_path / "out" / "internal" / "report.html").read_text() or knows != "mechanism"


# ---------------------------------------------------------------- going on after a kill


def ready_table(folder):
    """A job for a table that is already added up; its description names a hierarchy."""
    (folder / "regions.hrc").write_text("North\n@N1\n@N2\nSouth\n@S1\n@S2\n")
    (folder / "cells.toml").write_text('[dimensions.region]\nfile = "regions.hrc"\n[dimensions.size]\n')
    lines = [
        f"{r},{s},{20 + 7 * i + 3 * j}" for i, r in enumerate(["N1", "N2", "S1", "S2"]) for j, s in enumerate("abc")
    ]
    (folder / "cells.csv").write_text("\n".join(["region,size,value", *lines]) + "\n")
    (folder / "job.toml").write_text(
        'name = "cells"\n[data]\ntable = "cells.csv"\n'
        '[[rules]]\nrule = "manual"\ncells = [{region = "N1", size = "a"}]\npercent = 20\n'
        '[method]\nrounds = 1\n[output]\nfolder = "out"\n'
    )
    return folder / "job.toml"


def killed_after(step, job, monkeypatch):
    """Run a job that ends, as by a kill, when `step` begins."""

    def ended(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"cellguard.publish.run.{step}", ended)
        with pytest.raises(KeyboardInterrupt):
            run(read_job(job))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("regions.hrc", "North\n@N1\n@N2\nSouth\n@S1\n@S2\n", "North\n@N1\n@S1\nSouth\n@N2\n@S2\n"),
        ("cells.toml", "[dimensions.size]\n", '[dimensions.size]\ntotal = "all"\n'),
        ("cells.csv", "N1,a,20", "N1,a,21"),
    ],
)
def test_every_file_that_is_read_counts_when_a_run_goes_on(tmp_path, monkeypatch, name, old, new):
    job = ready_table(tmp_path)
    killed_after("_write", job, monkeypatch)
    assert list((tmp_path / "out" / ".work").glob("*.npz"))
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    outcome = run(read_job(job))
    assert outcome.resumed == ()
    fresh = run(read_job(job), folder=tmp_path / "other")
    assert outcome.release.table.codes == fresh.release.table.codes
    assert np.array_equal(outcome.release.table.values, fresh.release.table.values)
    listed = json.loads((tmp_path / "out" / "internal" / "manifest.json").read_text())["inputs"]
    assert {path.rpartition("/")[2] for path in listed} == {"cells.csv", "cells.toml", "regions.hrc"}


def test_files_that_change_places_count_too(office, monkeypatch):
    text = (
        (office / "job.toml")
        .read_text()
        .replace("[dimensions.sector]", '[dimensions.sector]\nhierarchy = "sector.txt"')
    )
    (office / "job.toml").write_text(text)
    (office / "sector.txt").write_text("All\n  A\n  B\n  =C\n  D\n")
    killed_after("_write", office / "job.toml", monkeypatch)
    one, other = (office / "region.txt").read_text(), (office / "sector.txt").read_text()
    (office / "region.txt").write_text(other)
    (office / "sector.txt").write_text(one)
    with pytest.raises(CellguardError, match="codes that the hierarchy does not have"):
        run(read_job(office / "job.toml"))


def test_inputs_that_change_during_the_run_are_noticed(office, monkeypatch):
    audited = Suppression.audit

    def and_changed(self, **options):
        (office / "region.txt").write_text("Total\n  N1\n  N2\n  S1\n  S2\n")
        return audited(self, **options)

    monkeypatch.setattr(Suppression, "audit", and_changed)
    with pytest.raises(InputError, match=r"region\.txt: changed while the job was running; nothing was written"):
        run(read_job(office / "job.toml"))
    assert not (office / "out" / "public").exists()


@pytest.mark.parametrize("name", [".work", "public", "internal"])
def test_a_link_in_the_folder_of_the_outputs_is_refused(office, tmp_path_factory, name, capsys):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "manifest.json").write_text("{}")
    (office / "out").mkdir()
    (office / "out" / name).symlink_to(elsewhere, target_is_directory=True)
    for words in (["protect", str(office / "job.toml")], ["protect", str(office / "job.toml"), "--fresh"]):
        assert main(words) == 1
        assert "is a symbolic link" in capsys.readouterr().err
    assert [path.name for path in elsewhere.iterdir()] == ["manifest.json"]


def test_a_second_run_in_the_same_folder_says_so_and_stops(office, capsys):
    with Folders(office / "out").entered():
        for words in (["protect", str(office / "job.toml")], ["protect", str(office / "job.toml"), "--fresh"]):
            assert main(words) == 1
            assert "another run is at work in this folder" in capsys.readouterr().err
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 0


def test_the_lock_of_a_dead_process_holds_nobody_up(office):
    work = office / "out" / ".work"
    work.mkdir(parents=True)
    (work / "lock").write_text("")
    (work / "tabulate.npz").write_text("what an earlier run left")
    assert run(read_job(office / "job.toml"), fresh=True).audit.safe
    assert not work.exists()


# ---------------------------------------------------------------- nested columns


def nested_office(folder, **changes):
    tree = {"a1": "A", "a2": "A", "b1": "B", "b2": "B", "b3": "B"} | changes
    rng = np.random.default_rng(5)
    fine = rng.choice(list(tree), 300)
    lines = [f"{tree[f]},{f},{'xyz'[i % 3]},{rng.integers(1, 900)}" for i, f in enumerate(fine)]
    (folder / "firms.csv").write_text("\n".join(["A10,A88,size,turnover", *lines]) + "\n")
    (folder / "job.toml").write_text(
        '[data]\nfile = "firms.csv"\nvalue = "turnover"\n[dimensions.A88]\nlevels = ["A10", "A88"]\n'
        '[dimensions.size]\n[[rules]]\nrule = "p_percent"\np = 10\n'
    )
    return folder / "job.toml"


def test_columns_that_nest_are_one_hierarchy(tmp_path):
    table = tabulated(read_job(nested_office(tmp_path)))
    expected = ("Total", "A", "a1", "a2", "B", "b1", "b2", "b3")
    assert table.codes[0] == expected
    lines = (tmp_path / "firms.csv").read_text().splitlines()
    (tmp_path / "firms.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    again = tabulated(read_job(tmp_path / "job.toml"))
    assert again.codes == table.codes
    assert np.array_equal(again.values, table.values)


def test_columns_that_do_not_nest_are_told(tmp_path, capsys):
    job = nested_office(tmp_path)
    with (tmp_path / "firms.csv").open("a") as stream:
        stream.write("A,b1,x,5\n")
    assert main(["protect", str(job)]) == 1
    shown = capsys.readouterr().err
    assert "levels A10, A88: code 'b1' of 'A88' stands under two parents, 'A' of 'A10' and 'B' of 'A10'" in shown


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["A10", "A88"]', '["A88", "A10"]', "the last of them must be the dimension itself, 'A88'"),
        ('["A10", "A88"]', '["A11", "A88"]', "the data have no column 'A11'"),
        ('["A10", "A88"]', '["A88"]', "may not be empty or shorter than 2"),
        ("[dimensions.size]", "digits = [1, 1]\n[dimensions.size]", "the codes have a hierarchy already"),
        ("[dimensions.size]", "[dimensions.A10]\n[dimensions.size]", "'A10' is a dimension too"),
    ],
)
def test_levels_that_make_no_sense_are_told(tmp_path, capsys, old, new, says):
    job = nested_office(tmp_path)
    job.write_text(job.read_text().replace(old, new))
    assert main(["protect", str(job)]) == 1
    assert says in capsys.readouterr().err


def test_levels_of_a_correspondence_file(tmp_path):
    job = nested_office(tmp_path)
    rows = ["1,A,a1", "2,A,a2", "3,B,b1", "4,B,b2", "5,B,b3", "6,C,c1"]
    (tmp_path / "corr.csv").write_text("\n".join(["no,group,code88", *rows]) + "\n")
    text = job.read_text().replace('levels = ["A10", "A88"]', 'hierarchy = "corr.csv"\nlevels = ["group", "code88"]')
    job.write_text(text)
    assert tabulated(read_job(job)).codes[0] == ("Total", "A", "a1", "a2", "B", "b1", "b2", "b3", "C", "c1")


def test_a_dry_run_makes_every_check_of_the_method(office, capsys):
    """What the method would refuse is told before the work, and so is that nothing is possible."""
    path = office / "job.toml"
    text = path.read_text().replace('name = "suppress"\nrounds = 2', 'name = "round"\nbase = 0.001')
    path.write_text(text)
    assert main(["protect", str(path), "--dry-run"]) == 1
    assert "base" in capsys.readouterr().err


def test_resistance_and_zeros_that_everybody_knows(tmp_path, capsys):
    counts = [[3, 12, 9, 0], [11, 4, 13, 10], [12, 9, 15, 8], [10, 11, 7, 2]]
    lines = [f"t{i},a{j}" for i, row in enumerate(counts) for j, n in enumerate(row) for _ in range(n)]
    (tmp_path / "people.csv").write_text("\n".join(["town,age", *lines]))
    job = tmp_path / "job.toml"
    job.write_text(COUNTS.format(method='resist = "matching"'))
    assert main(["protect", str(job), "--dry-run"]) == 1
    assert "known_zeros = false" in capsys.readouterr().err
    job.write_text(job.read_text().replace("[data]", "[data]\nknown_zeros = false"))
    assert main(["protect", str(job), "--dry-run"]) == 0
    assert main(["protect", str(job), "--quiet"]) == 0


def test_linked_tables_come_back_one_by_one(office):
    path = office / "job.toml"
    tables = '[[tables]]\nname = "By region"\ndimensions = ["region"]\n[[tables]]\nname = "By sector"\n'
    text = path.read_text().replace("[[rules]]", f'{tables}dimensions = ["sector"]\n\n[[rules]]')
    path.write_text(re.sub(r"formats = .*", 'formats = ["csv", "xlsx", "sdmx"]', text.replace("p = 10", "p = 60")))
    outcome = run(read_job(path))
    public = outcome.folder / "public"
    for folder in (public, outcome.folder / "internal"):
        assert {file.name for file in folder.glob("*.sdmx.csv")} == {"By region.sdmx.csv", "By sector.sdmx.csv"}
    whole, one, other = (rows_of(public / f"{name}.csv") for name in ("small", "By region", "By sector"))
    assert set(one[0]) == {"region", "status", "value"}
    assert len(one) + len(other) == len(whole) + 1  # the total is in both
    at_total = {row["region"]: row for row in whole if row["sector"] == "Total"}
    assert all(at_total[row["region"]]["value"] == row["value"] for row in one)
    assert openpyxl.load_workbook(public / "small.xlsx").sheetnames == ["By region", "By sector"]

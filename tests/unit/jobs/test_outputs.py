"""What a job writes: every format, the same numbers, one mark for what is withheld."""

import re
import stat

import openpyxl
import pyarrow.parquet as pq

from builders import convert_to_rows
from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.runner import run


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
    rows = convert_to_rows(public / "small.csv")
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


def test_public_files_have_one_mark_for_withheld_cells(outcome, office):
    public = office / "out" / "public"
    assert {row["status"] for row in convert_to_rows(public / "small.csv")} == {"withheld", "published"}
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
    assert "warning: readers see which withheld cells are sensitive themselves" in capsys.readouterr().err
    public = office / "out" / "public"
    assert {row["status"] for row in convert_to_rows(public / "small.csv")} == {"primary", "secondary", "published"}
    assert "(primary)" in (public / "report.html").read_text()


def test_linked_tables_come_back_one_by_one(office):
    path = office / "job.toml"
    tables = '[[tables]]\nname = "By region"\ndimensions = ["region"]\n[[tables]]\nname = "By sector"\n'
    text = path.read_text().replace("[[rules]]", f'{tables}dimensions = ["sector"]\n\n[[rules]]')
    path.write_text(re.sub(r"formats = .*", 'formats = ["csv", "xlsx", "sdmx"]', text.replace("p = 10", "p = 60")))
    outcome = run(read_job(path))
    public = outcome.folder / "public"
    for folder in (public, outcome.folder / "internal"):
        assert {file.name for file in folder.glob("*.sdmx.csv")} == {"By region.sdmx.csv", "By sector.sdmx.csv"}
    whole, one, other = (convert_to_rows(public / f"{name}.csv") for name in ("small", "By region", "By sector"))
    assert set(one[0]) == {"region", "status", "value"}
    assert len(one) + len(other) == len(whole) + 1  # the total is in both
    at_total = {row["region"]: row for row in whole if row["sector"] == "Total"}
    assert all(at_total[row["region"]]["value"] == row["value"] for row in one)
    assert openpyxl.load_workbook(public / "small.xlsx").sheetnames == ["By region", "By sector"]

"""Excel in, and out in the publisher's layout."""

from __future__ import annotations

import openpyxl
import pytest
from openpyxl.styles import Font

import cellguard as cg
from cellguard._io.frames import read_frame, texts
from cellguard.cli import main
from cellguard.exceptions import InputError

RECORDS = {
    "region": ["N", "N", "N", "S", "S", "S", "W", "W", "W"],
    "size": ["a", "b", "b", "a", "a", "b", "a", "b", "b"],
    "x": [971, 13, 17, 8, 19, 23, 31, 37, 41],
}


def workbook(path, rows, title="Sheet"):
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


@pytest.fixture(scope="module")
def release():
    t = cg.tabulate(RECORDS, ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))
    return cg.suppress(t, method="heuristic", rounds=2)


@pytest.fixture
def template(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet["B1"] = "Turnover by region, provisional"
    for k, size in enumerate(("Total", "a", "b")):
        sheet.cell(3, 3 + k).value = size
    for k, region in enumerate(("N", "S", "W", "Total")):
        sheet.cell(4 + k, 2).value = region
        sheet.cell(4 + k, 3).value = 99  # last year's
    sheet["C7"].font = Font(bold=True)
    sheet["C7"].number_format = "#,##0"
    book.save(tmp_path / "yearbook.xlsx")
    return tmp_path / "yearbook.xlsx"


def test_the_publishers_layout_is_kept_and_filled(tmp_path, template, release):
    release.save(tmp_path / "out.xlsx", layout=template)
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    t = release.table
    for r, region in enumerate(("N", "S", "W", "Total")):
        for c, size in enumerate(("Total", "a", "b")):
            cell = t.cell({"region": region, "size": size})
            shown = sheet.cell(4 + r, 3 + c).value
            assert shown == ("x" if release.suppressed[cell] else t.values[cell])
    assert sheet["C7"].font.bold
    assert sheet["C7"].number_format == "#,##0"
    assert sheet["B1"].value == "Turnover by region, provisional"
    first = (tmp_path / "out.xlsx").read_bytes()
    release.save(tmp_path / "out.xlsx", layout=template)
    assert (tmp_path / "out.xlsx").read_bytes() == first


@pytest.mark.parametrize("left", [4711, "=SUM(C4:C6)"])
def test_what_would_be_published_unchecked_is_refused_by_its_place(tmp_path, template, release, left):
    book = openpyxl.load_workbook(template)
    book.active["H9"] = left
    book.save(template)
    with pytest.raises(InputError, match="H9"):
        release.save(tmp_path / "out.xlsx", layout=template)
    assert not (tmp_path / "out.xlsx").exists()


def test_a_workbook_without_the_codes_is_refused(tmp_path, release):
    template = workbook(tmp_path / "other.xlsx", [["nothing", "here"]])
    with pytest.raises(InputError, match="no sheet has the codes"):
        release.save(tmp_path / "out.xlsx", layout=template)


def test_sheets_are_read_with_titles_above_and_codes_as_text(tmp_path):
    rows = [["A title"], [], ["nace", "turnover", "note"], ["01", 5, None], ["02", 7.5, "x"], [3, 2, None]]
    read = read_frame(workbook(tmp_path / "r.xlsx", rows))
    assert list(read) == ["nace", "turnover", "note"]
    assert texts(read["nace"]) == ["01", "02", "3"]
    assert read["turnover"].to_pylist() == [5.0, 7.5, 2.0]
    with pytest.raises(InputError, match="no sheet 'Shete'"):
        read_frame(tmp_path / "r.xlsx", sheet="Shete")


def test_hierarchies_and_records_of_a_workbook(tmp_path):
    tree = workbook(tmp_path / "nace.xlsx", [["A10", "A88"], ["AZ", "01"], ["AZ", "02"], ["BE", "05"]])
    assert cg.Hierarchy.read(tree).codes == ("Total", "AZ", "01", "02", "BE", "05")
    records = workbook(tmp_path / "firms.xlsx", [list(RECORDS), *zip(*RECORDS.values(), strict=True)])
    assert cg.tabulate(records, ["region", "size"], "x").values[0] == sum(RECORDS["x"])


def test_a_job_from_workbook_to_workbook(tmp_path, template):
    rows = [list(RECORDS), *zip(*RECORDS.values(), strict=True)]
    workbook(tmp_path / "firms.xlsx", rows)
    job = '[data]\nfile = "firms.xlsx"\nvalue = "x"\n[dimensions.region]\n[dimensions.size]\n'
    job += '[[rules]]\nrule = "min_frequency"\nn = 2\npercent = 10\n[method]\nrounds = 1\n'
    (tmp_path / "job.toml").write_text(job + '[output]\nfolder = "out"\nlayout = "yearbook.xlsx"\n')
    assert main(["protect", str(tmp_path / "job.toml"), "--quiet"]) == 0
    sheet = openpyxl.load_workbook(tmp_path / "out" / "public" / "yearbook.xlsx").active
    assert sheet["C7"].value == sum(RECORDS["x"])
    assert any(cell.value == "x" for row in sheet.iter_rows() for cell in row)

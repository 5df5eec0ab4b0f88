"""Excel in, and out in the publisher's layout."""

from __future__ import annotations

import numpy as np
import openpyxl
import pytest
from openpyxl.styles import Font

import cellguard as cg
from cellguard._io.frames import convert_to_texts, read_frame
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
    assert convert_to_texts(read["nace"]) == ["01", "02", "3"]
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


SIZES, FORMS = ("small", "large"), ("LL", "PA")


@pytest.fixture(scope="module")
def three():
    """Three dimensions, one of them with codes whose zeros a spreadsheet loses."""
    places = [(n, s, f) for n in ("01", "02", "10") for s in SIZES for f in FORMS]
    frame = {d: [place[k] for place in places] for k, d in enumerate(("nace", "size", "form"))}
    t = cg.Table.from_frame({**frame, "value": [100 + 7 * k for k in range(12)]}, ["nace", "size", "form"])
    marked = np.arange(t.n_cells) == t.cell({"nace": "01", "size": "small", "form": "LL"})
    return cg.suppress(t.with_(sensitive=marked, lower=5.0 * marked, upper=5.0 * marked), rounds=1)


def yearbook(path, rows, merged=()):
    book = openpyxl.load_workbook(workbook(path, rows))
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path)
    return path


def shown(release, **codes):
    cell = release.table.cell(codes)
    return "x" if release.suppressed[cell] else release.table.values[cell]


@pytest.mark.parametrize("merged", [(), ("B2:D2", "E2:G2", "H2:J2")])
def test_heads_in_two_rows_are_read_together(tmp_path, three, merged):
    under = ["LL", "PA", "Total"]
    rows = [["Turnover"], [None, "small", None, None, "large", None, None, "Total"], [None, *under * 3]]
    rows += [[code, *[1] * 9] for code in ("01", "02", "10", "Total")]  # last year's: as good as codes, for who looks
    three.save(tmp_path / "out.xlsx", layout=yearbook(tmp_path / "two.xlsx", rows, merged))
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    for r, nace in enumerate(("01", "02", "10", "Total")):
        for c, (size, form) in enumerate((s, f) for s in (*SIZES, "Total") for f in under):
            assert sheet.cell(4 + r, 2 + c).value == shown(three, nace=nace, size=size, form=form)


def test_a_column_that_one_head_names_is_a_total_of_the_other(tmp_path, three):
    rows = [[None, "Total", "small", None, "large", None], [None, None, "LL", "PA", "LL", "PA"], ["01"], ["02"]]
    template = yearbook(tmp_path / "two.xlsx", rows, ("B1:B2", "C1:D1", "E1:F1"))
    three.save(tmp_path / "out.xlsx", layout=template)
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert [sheet.cell(3, c).value for c in (2, 3, 6)] == [
        shown(three, nace="01"),
        shown(three, nace="01", size="small", form="LL"),
        shown(three, nace="01", size="large", form="PA"),
    ]


def test_blocks_of_rows_and_codes_that_lost_their_zeros(tmp_path, three):
    rows = [
        ["size", "nace", "LL", "PA", "Total"],
        ["small", 1],
        [None, 2],
        [None, 10],
        ["large", 1],
        [None, 2],
        [None, 10],
    ]
    three.save(tmp_path / "out.xlsx", layout=yearbook(tmp_path / "blocks.xlsx", rows))
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert sheet["C2"].value == shown(three, nace="01", size="small", form="LL")
    assert sheet["E7"].value == shown(three, nace="10", size="large")
    assert sheet["B2"].value == 1


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([[None, None, "small", None, "large"], [None, "LL", "PA", "LL", "PA"], ["01"], ["02"]], "merge"),
        ([[None, None, None, "small", None, "large"], [None, *["LL", "PA"] * 3], ["01"], ["02"]], "Sheet!B2"),
        ([[None, "small", None, "large"], [None, "LL", "PA", "LL", "PA", "Total"], ["01"], ["02"]], "merge"),
        ([["small", "large"], [None, None, "LL", "PA"], [None, "01"], [None, "02"]], "'small' and 'large'"),
        ([[None, "LL", "PA"], ["01"], ["02"], [], ["01"], ["02"]], "B2 and B5"),
    ],
)
def test_heads_that_can_be_read_in_two_ways_are_refused(tmp_path, three, rows, says):
    with pytest.raises(InputError) as refused:
        three.save(tmp_path / "out.xlsx", layout=yearbook(tmp_path / "two.xlsx", rows))
    assert says in str(refused.value)
    assert not (tmp_path / "out.xlsx").exists()


def test_a_layout_that_cannot_be_filled_is_told_before_the_work(tmp_path, template, monkeypatch, capsys):
    workbook(tmp_path / "firms.xlsx", [list(RECORDS), *zip(*RECORDS.values(), strict=True)])
    book = openpyxl.load_workbook(template)
    book.active["H9"] = 4711
    book.save(template)
    job = '[data]\nfile = "firms.xlsx"\nvalue = "x"\n[dimensions.region]\n[dimensions.size]\n'
    job += '[[rules]]\nrule = "min_frequency"\nn = 2\npercent = 10\n[output]\nlayout = "yearbook.xlsx"\n'
    (tmp_path / "job.toml").write_text(job)
    monkeypatch.setattr("cellguard.jobs.runner.protect_table", lambda *_: pytest.fail("the work had begun"))
    for words in (["--dry-run"], ["--quiet"]):
        assert main(["protect", str(tmp_path / "job.toml"), *words]) == 1
        assert "H9" in capsys.readouterr().err

"""Cross tables in workbooks are read as one row per cell; lists stay lists."""

import openpyxl
import pytest

from cellguard._io.frames import read_frame
from cellguard.jobs.proposal.records import propose_job


def book(path, rows):
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    made.save(path)
    return path


def columns(path):
    return {name: column.to_pylist() for name, column in read_frame(path).items()}


def test_codes_over_measures(tmp_path):
    rows = [["Turnover of enterprises, 2025"], [], ["Activity", "North", None, "South", None]]
    rows += [[None, "Enterprises", "Turnover", "Enterprises", "Turnover"]]
    rows += [["Food", 5, 100, 2, 40.5], ["Wood", 7, 200, 9, 90], ["Total", 12, 300, 11, 130.5], ["Source: survey"]]
    found = columns(book(tmp_path / "t.xlsx", rows))
    assert found["Activity"] == ["Food", "Food", "Wood", "Wood", "Total", "Total"]
    assert found["columns"] == ["North", "South"] * 3
    assert found["Enterprises"] == [5, 2, 7, 9, 12, 11]
    assert found["Turnover"] == [100, 40.5, 200, 90, 300, 130.5]


def test_the_dimension_of_the_columns_is_named_above_its_codes(tmp_path):
    rows = [[None, None, "Region"], ["Section", "Activity", "North", "South", "Total"]]
    rows += [["C", "Food", 1, 2, 3], [None, "Wood", 4, 5, 9], ["F", "Roads", 7, 8, 15]]
    found = columns(book(tmp_path / "t.xlsx", rows))
    assert list(found) == ["Section", "Activity", "Region", "value"]
    assert found["Section"] == ["C"] * 6 + ["F"] * 3
    assert found["Region"] == ["North", "South", "Total"] * 3
    assert found["value"] == [1, 2, 3, 4, 5, 9, 7, 8, 15]


def test_one_header_row_with_a_total(tmp_path):
    rows = [["Activity / Region", "North", "South", "Total"], ["Food", 1, 2, 3], ["Wood", 4, 5, 9]]
    found = columns(book(tmp_path / "t.xlsx", rows))
    assert list(found) == ["Activity", "Region", "value"]
    rows[2][3] = 10  # not the sum: figures of three kinds
    assert list(columns(book(tmp_path / "u.xlsx", rows))) == ["Activity / Region", "North", "South", "Total"]


@pytest.mark.parametrize(
    "rows",
    [
        [["Activity", "Region", "Enterprises", "Turnover"], ["Food", "N", 3, 100], ["Wood", "S", 4, 90]],
        [["A list of firms"], ["firm", "region", "employees", "turnover"], ["a", "N", 3, 100], ["b", "S", 4, 90]],
        [["code", "parent"], ["1", "Total"], ["2", "Total"]],
        [["id", "x", "y"], [1, 2, 3], [4, 5, 6]],
    ],
)
def test_lists_stay_lists(tmp_path, rows):
    head = max(rows, key=lambda row: (len(row), -rows.index(row)))
    assert list(columns(book(tmp_path / "t.xlsx", rows))) == head


def test_numbers_of_enterprises_are_the_count_and_turnover_is_the_value(tmp_path):
    rows = [["Activity", "Region", "Enterprises", "Turnover"]]
    cells = {("Food", "N"): (3, 100), ("Food", "S"): (5, 80), ("Wood", "N"): (4, 90), ("Wood", "S"): (6, 70)}
    for activity in ("Food", "Wood", "Total"):
        for region in ("N", "S", "Total"):
            own = [v for (a, r), v in cells.items() if activity in (a, "Total") and region in (r, "Total")]
            rows.append([activity, region, sum(n for n, _ in own), sum(v for _, v in own)])
    text = propose_job(book(tmp_path / "t.xlsx", rows), tmp_path).text
    assert 'value = "Turnover"' in text
    assert 'count = "Enterprises"' in text
    without = [[*row[:2], row[3]] for row in rows]
    draft = propose_job(book(tmp_path / "u.xlsx", without), tmp_path)
    assert 'value = "Turnover"' in draft.text
    assert "\ncount = " not in draft.text

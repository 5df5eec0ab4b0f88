"""Releases that other programs wrote."""

import numpy as np
import pytest

import cellguard as cg
from cellguard._io.frames import convert_to_texts, read_frame
from cellguard.auditing.audit import audit
from cellguard.cli import main
from cellguard.exceptions import FormatError, InputError, ReleaseError, UnknownCodeError
from cellguard.release.release import Intervals, Rounding, Status, Suppression

INNER = [4, 5, 7, 8]


@pytest.fixture
def table():
    return cg.Table.from_leaves(
        {"region": ["N", "S"], "sex": ["f", "m"]}, [[20, 50], [8, 19]], sensitive=[4], lower=3, upper=3
    )


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def hidden(release):
    return np.flatnonzero(release.suppressed).tolist()


def rows(table, columns):
    codes = table.cell_codes()
    return [",".join([codes["region"][i], codes["sex"][i], *(c[i] for c in columns)]) for i in range(9)]


def test_our_own_files_come_back(table, tmp_path):
    suppressed = np.zeros(9, bool)
    suppressed[INNER] = True
    common = {"table": table, "status": Status.FEASIBLE, "objective": 0.0}
    release = Suppression(**common, suppressed=suppressed)
    for name in ("r.csv", "r.parquet"):
        release.save(tmp_path / name)
        again = cg.read_release(table, tmp_path / name)
        assert hidden(again) == INNER
        assert audit(again).safe
    intervals = Intervals(**common, lower=table.values - 4.5, upper=table.values + 4)
    intervals.save(tmp_path / "i.csv")
    again = cg.read_release(table, tmp_path / "i.csv")
    assert (again.lower == intervals.lower).all()
    cg.round(table, base=5).save(tmp_path / "v.csv")
    again = cg.read_release(table, tmp_path / "v.csv", base=5, step=2)
    assert isinstance(again, Rounding)
    assert audit(again).safe


def test_a_rounded_file_that_is_the_truth_is_refused(table, tmp_path):
    """No value is a multiple; the claimed base would leave a range around each of them."""
    path = write(tmp_path / "v.csv", ["region,sex,value", *rows(table, [[f"{v:g}" for v in table.values]])])
    with pytest.raises(ReleaseError, match=r"\(region=Total, sex=Total\) \(and 5 more\): .*not a multiple of the base"):
        audit(cg.read_release(table, path, base=5))


def test_a_rounded_file_of_multiples_that_is_the_truth_is_not_safe(tmp_path):
    """Amounts in thousands, rounded to thousands: nothing was rounded."""
    table = cg.Table.from_equations([3000, 4000, 7000], [[2, 0, 1]], sensitive=[0], lower=500, upper=500)
    path = write(tmp_path / "v.csv", ["cell,value", "0,3000", "1,4000", "2,7000"])
    found = audit(cg.read_release(table, path, base=1000))
    assert (found.safe, found.unsafe) == (False, 1)
    kept = cg.read_release(table, path, base=1000, keep_multiples=True)
    assert not audit(kept).safe  # multiples may stay among others that moved; here nothing was rounded
    table = cg.Table.from_equations([3000, 4200, 7200], [[2, 0, 1]], sensitive=[0], lower=500, upper=500)
    path = write(tmp_path / "w.csv", ["cell,value", "0,3000", "1,4000", "2,7000"])
    kept = cg.read_release(table, path, base=1000, keep_multiples=True)
    assert audit(kept).safe  # whoever lets multiples stay says so


def test_a_rounded_file_is_read_with_a_base_per_cell(tmp_path):
    table = cg.Table.from_equations([3, 4, 7], [[2, 0, 1]])
    path = write(tmp_path / "v.csv", ["cell,value", "0,2", "1,6", "2,8"])
    assert audit(cg.read_release(table, path, method="round", base=[2, 3, 4])).checked == 0
    with pytest.raises(ReleaseError, match=r"cell 1: .*not a multiple"):
        audit(cg.read_release(table, path, method="round", base=[2, 4, 4]))
    with pytest.raises(InputError, match="2 numbers were given for 3 cells"):
        cg.read_release(table, path, method="round", base=[2, 3])
    with pytest.raises(InputError, match="step 0"):
        cg.read_release(table, path, method="round", base=2, step=0)


def test_rows_in_another_order_and_marks_of_other_programs(table, tmp_path):
    """As sdcTable exports it: u primary, x secondary, s published; the value stays beside the status (internal)."""
    marks = ["s"] * 9
    for i in INNER:
        marks[i] = "x"
    marks[4] = "u"
    values = [f"{v:g}" for v in table.values]
    body = rows(table, [values, marks])
    path = write(tmp_path / "sdc.csv", ["sex_,region,sex,freq,sdcStatus".removeprefix("sex_,"), *body[::-1]])
    with pytest.raises(
        ReleaseError, match=r"\(region=N, sex=f\) \(and 3 more\): is marked as withheld, but has a value"
    ):
        cg.read_release(table, path)
    assert hidden(cg.read_release(table, path, marks_only=True)) == INNER


def test_blank_values_are_suppressed(table, tmp_path):
    for mark in ("", "x", "*", "NA"):
        values = [mark if i in INNER else f"{v:g}" for i, v in enumerate(table.values)]
        path = write(tmp_path / "blank.csv", ["region,sex,value", *rows(table, [values])])
        assert hidden(cg.read_release(table, path)) == INNER


def test_semicolons_commas_in_numbers_and_empty_totals(table, tmp_path):
    """As tau-ARGUS writes in some countries."""
    codes = table.cell_codes()
    lines = ["region;sex;lower;upper"]
    for i in range(9):
        code = [c if c != "Total" else "" for c in (codes["region"][i], codes["sex"][i])]
        lines.append(
            ";".join(
                [*code, f"{table.values[i] - 3.5:g}".replace(".", ","), f"{table.values[i] + 3.5:g}".replace(".", ",")]
            )
        )
    release = cg.read_release(table, write(tmp_path / "a.csv", lines))
    assert release.lower == pytest.approx(table.values - 3.5)
    assert audit(release).safe


def test_answer_of_a_suppression_solver(table, tmp_path):
    release = cg.read_release(table, write(tmp_path / "answer.txt", ["5", "7", "", "8"]))
    assert hidden(release) == INNER  # the primary cell is known to be suppressed
    with pytest.raises(FormatError, match=r"answer\.txt:2"):
        cg.read_release(table, write(tmp_path / "answer.txt", ["5", "nine"]))


def test_a_table_of_raw_equations_is_read_by_index(tmp_path):
    raw = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], upper=[4])
    path = write(tmp_path / "r.csv", ["cell,value", "2,70", "0,", "1,"])
    assert hidden(cg.read_release(raw, path)) == [0, 1]
    in_order = write(tmp_path / "o.csv", ["status,value", "u,", "x,", "s,70"])
    assert hidden(cg.read_release(raw, in_order)) == [0, 1]


def test_perturbed_and_adjusted_values(table, tmp_path):
    path = write(tmp_path / "v.csv", ["region,sex,value", *rows(table, [[f"{v:g}" for v in table.values]])])
    assert cg.read_release(table, path, distance=4).method == "perturb"
    assert cg.read_release(table, path, method="adjust").method == "adjust"
    with pytest.raises(InputError, match="nothing says how"):
        cg.read_release(table, path)
    with pytest.raises(InputError, match="needs its base"):
        cg.read_release(table, path, method="round")
    with pytest.raises(InputError, match="needs the distance"):
        cg.read_release(table, path, method="perturb")
    with pytest.raises(InputError, match="unknown method 'rond'"):
        cg.read_release(table, path, method="rond", base=5)


# ---------------------------------------------------------------- bad input


def test_what_does_not_fit_the_table_is_refused(table, tmp_path):
    values = [f"{v:g}" for v in table.values]
    body = rows(table, [values])
    with pytest.raises(ReleaseError, match="8 rows"):
        cg.read_release(table, write(tmp_path / "r.csv", ["region,sex,value", *body[:-1]]), base=5)
    with pytest.raises(ReleaseError, match="9 rows, 8 different cells"):
        cg.read_release(table, write(tmp_path / "r.csv", ["region,sex,value", *body[:-1], body[0]]), base=5)
    with pytest.raises(UnknownCodeError, match="'region' has no code 'Nn'"):
        cg.read_release(table, write(tmp_path / "r.csv", ["region,sex,value", *body[:-1], "Nn,f,3"]), base=5)
    with pytest.raises(FormatError, match="no column of values"):
        cg.read_release(table, write(tmp_path / "r.csv", ["region,sex,height", *body]))
    with pytest.raises(InputError, match="no such file"):
        cg.read_release(table, tmp_path / "nothing.csv")


def test_a_published_value_of_another_table_is_refused(table, tmp_path):
    values = ["" if i in INNER else f"{v:g}" for i, v in enumerate(table.values)]
    values[0] = "98"
    path = write(tmp_path / "r.csv", ["region,sex,value", *rows(table, [values])])
    with pytest.raises(ReleaseError, match=r"\(region=Total, sex=Total\): the published value is not the table's") as e:
        cg.read_release(table, path)
    assert "98" not in str(e.value)


def test_statuses_that_say_nothing_are_refused(table, tmp_path):
    marks = ["s"] * 8 + ["perhaps"]
    values = [f"{v:g}" for v in table.values]
    path = write(tmp_path / "r.csv", ["region,sex,status,value", *rows(table, [marks, values])])
    with pytest.raises(FormatError, match="unknown status 'perhaps'"):
        cg.read_release(table, path)
    path = write(tmp_path / "r.csv", ["region,sex,status,value", *rows(table, [["s"] * 9, [*values[:8], ""]])])
    with pytest.raises(ReleaseError, match="says published, and there is no value"):
        cg.read_release(table, path)


def test_a_text_in_place_of_a_number_is_not_repeated(table, tmp_path):
    values = [f"{v:g}" for v in table.values]
    path = write(tmp_path / "r.csv", ["region,sex,value", *rows(table, [[*values[:8], "12345six"]])])
    with pytest.raises(FormatError) as caught:
        cg.read_release(table, path, base=5)
    assert "12345six" not in str(caught.value)


# ---------------------------------------------------------------- what stands in the file is published


def published(table, blank="x"):
    return [blank if i in INNER else f"{v:g}" for i, v in enumerate(table.values)]


def marks(withheld="withheld"):
    return [withheld if i in INNER else "published" for i in range(9)]


@pytest.mark.parametrize("mark", ["u", "withheld", "primary", "m"])
def test_a_value_beside_the_mark_of_a_withheld_cell_is_refused(table, tmp_path, mark):
    values = published(table)
    values[5] = f"{table.values[5]:g}"
    path = write(tmp_path / "r.csv", ["region,sex,status,value", *rows(table, [marks(mark), values])])
    with pytest.raises(ReleaseError, match=r"\(region=N, sex=m\): is marked as withheld, but has a value") as error:
        cg.read_release(table, path)
    assert "50" not in str(error.value)


@pytest.mark.parametrize("method", [None, "intervals"])
def test_a_value_beside_an_interval_is_refused(table, tmp_path, method):
    lower, upper = ([f"{v + d:g}" for v in table.values] for d in (-4, 4))
    values = [f"{v:g}" for v in table.values]
    path = write(tmp_path / "r.csv", ["region,sex,lower,upper,value", *rows(table, [lower, upper, values])])
    with pytest.raises(ReleaseError, match=r"\(and 8 more\): has an interval, and a value beside it"):
        cg.read_release(table, path, method=method)
    fine = write(tmp_path / "r.csv", ["region,sex,lower,upper,value", *rows(table, [lower, upper, ["x"] * 9])])
    assert cg.read_release(table, fine).method == "intervals"


@pytest.mark.parametrize("method", ["suppress", "round", "adjust"])
def test_ends_beside_values_are_refused_for_other_methods(table, tmp_path, method):
    values = [f"{v:g}" for v in table.values]
    path = write(tmp_path / "r.csv", ["region,sex,value,lower,upper", *rows(table, [published(table), values, values])])
    with pytest.raises(FormatError, match="a lower or an upper end"):
        cg.read_release(table, path, method=method, base=5)


@pytest.mark.parametrize("second", ["freq", "Value", "count", "response"])
def test_two_columns_of_values_are_refused(table, tmp_path, second):
    values = [f"{v:g}" for v in table.values]
    path = write(tmp_path / "r.csv", [f"region,sex,value,{second}", *rows(table, [published(table), values])])
    with pytest.raises(FormatError, match=f"columns 'value' and '{second}' both look like the value"):
        cg.read_release(table, path)


def test_a_column_that_nothing_explains_is_refused_unless_told(table, tmp_path):
    values = [f"{v:g}" for v in table.values]
    path = write(tmp_path / "r.csv", ["region,sex,value,truth", *rows(table, [published(table), values])])
    with pytest.raises(FormatError, match="column 'truth' is published too"):
        cg.read_release(table, path)
    assert hidden(cg.read_release(table, path, ignore=["truth"])) == INNER


def test_labels_years_and_row_numbers_say_nothing(table, tmp_path):
    codes = table.cell_codes()
    names = {"Total": "both regions", "N": "North 1", "S": "South 2"}
    regions = table.hierarchies[0].with_labels(names)
    table = table.with_(hierarchies=(regions, *table.hierarchies[1:]))
    labels = [names[code] for code in codes["region"]]
    columns = [published(table), labels, ["2024"] * 9, [str(i + 1) for i in range(9)], ["thousand euros"] * 9]
    path = write(tmp_path / "r.csv", ["region,sex,value,label,year,no,unit", *rows(table, columns)])
    assert hidden(cg.read_release(table, path)) == INNER
    # what depends on the region alone may be the region's total, in figures or in words
    for known in (("97", "70", "27"), ("ninety-seven", "seventy", "twenty-seven"), ("Total 97", "N 70", "S 27")):
        totals = [dict(zip(("Total", "N", "S"), known, strict=True))[code] for code in codes["region"]]
        path = write(tmp_path / "r.csv", ["region,sex,value,label", *rows(table, [published(table), totals])])
        with pytest.raises(FormatError, match="column 'label' is published too"):
            cg.read_release(table, path)


def test_a_text_that_spells_the_values_out_is_refused_unless_told(table, tmp_path, capsys):
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    spelt = [" ".join(words[int(digit)] for digit in f"{value:g}") for value in table.values]
    path = write(tmp_path / "r.csv", ["region,sex,value,remark", *rows(table, [published(table), spelt])])
    with pytest.raises(FormatError, match="column 'remark' is published too"):
        cg.read_release(table, path)
    table.write(tmp_path / "t.csv")
    assert main(["audit", str(tmp_path / "t.csv"), str(path)]) == 1
    told = capsys.readouterr().err
    assert "--ignore remark" in told
    assert not any(text in told for text in spelt)
    assert main(["audit", str(tmp_path / "t.csv"), str(path), "--ignore", "remark"]) == 0


def test_a_status_that_may_be_a_value_is_not_repeated(table, tmp_path):
    path = write(tmp_path / "r.csv", ["region,sex,status", *rows(table, [["212.5"] * 9])])
    with pytest.raises(FormatError, match="unknown status") as error:
        cg.read_release(table, path)
    assert "212" not in str(error.value)


def test_the_command_line_says_it_too(table, tmp_path, capsys):
    table.write(tmp_path / "t.csv")
    values = [f"{v:g}" for v in table.values]
    path = write(tmp_path / "r.csv", ["region,sex,status,value", *rows(table, [marks("u"), values])])
    assert main(["audit", str(tmp_path / "t.csv"), str(path)]) == 1
    assert "has a value next to the mark" in capsys.readouterr().err
    assert main(["audit", str(tmp_path / "t.csv"), str(path), "--marks-only"]) == 0


# ---------------------------------------------------------------- strange names and codes


@pytest.mark.parametrize("name", ["value", "Status", "lower", "UPPER", "cell", "warning", "count"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_dimension_may_have_the_name_of_a_column(tmp_path, name, ending):
    table = cg.Table.from_leaves({name: ["N", "S", "W"], "sex": ["f", "m"]}, [[20, 50], [8, 19], [30, 40]],
                                 sensitive=[4], lower=3, upper=3)  # fmt: skip
    for release in (cg.suppress(table), cg.intervals(table)):
        path = tmp_path / f"r.{ending}"
        release.save(path)
        columns = read_frame(path)
        assert convert_to_texts(columns[name]) == table.cell_codes()[name]
        again = cg.read_release(table, path)
        assert again.method == release.method
        assert np.array_equal(again.get_point_values(), release.get_point_values(), equal_nan=True)
        assert audit(again).safe


CODES = ["=1+1", "'=1+1", "+SUM(A1)", "-x", "@y", "-1", "+2.5", "plain"]


def test_codes_that_look_like_formulas_are_guarded_and_come_back(tmp_path):
    values = np.outer([5, 6, 7, 8, 9, 10, 11, 12], [3, 4, 5])
    table = cg.Table.from_leaves({"=code": CODES, "b": ["u", "v", "w"]}, values, sensitive=[5], lower=3, upper=3)
    release = cg.suppress(table)
    release.save(tmp_path / "r.csv")
    written = {line.split(",")[0] for line in (tmp_path / "r.csv").read_text().splitlines()}
    assert {"'=code", "'=1+1", "''=1+1", "'+SUM(A1)", "'-x", "'@y", "-1", "+2.5", "plain"} <= written
    again = cg.read_release(table, tmp_path / "r.csv")
    assert hidden(again) == hidden(release)
    release.save(tmp_path / "r.parquet")
    assert hidden(cg.read_release(table, tmp_path / "r.parquet")) == hidden(release)

import json
import os

import numpy as np
import pytest

from cellguard._io.plain import convert_to_plain_json
from cellguard.cli.support import printing as _printing
from cellguard.cli.support.method import Wanted, run_on_command_line
from cellguard.cli.support.options import TableAsked
from cellguard.cli.support.printing import NoSafeReleaseError, print_json, redirect_library_output
from cellguard.exceptions import InputError, LevelError, UnknownCodeError
from cellguard.model.table import Table
from cellguard.release.release import Status, Suppression


@pytest.fixture
def table_file(tmp_path):
    path = tmp_path / "small.jj"
    Table.from_equations([20, 50, 70, 30, 40], [[2, 0, 1], [2, 3, 4]], sensitive=[0], lower=[4], upper=[4]).write(path)
    return path


class FakeAudit:
    def __init__(self, safe):
        self.safe = safe

    checked = 1

    @property
    def verdict(self):
        return "safe" if self.safe else "not safe"

    def summary(self):
        return {"safe": self.safe, "checked": 1, "exact": 0, "unsafe": int(not self.safe)}


def suppressing(monkeypatch, *, safe=True, status=Status.OPTIMAL):
    """Return a method that suppresses everything, and an audit with a verdict known beforehand."""
    monkeypatch.setattr(Suppression, "audit", lambda _self, **_options: FakeAudit(safe))

    def method(table):
        objective = float("nan") if status is Status.INFEASIBLE else 1.0
        return Suppression(
            table=table,
            status=status,
            objective=objective,
            suppressed=np.ones(table.n_cells, bool),
            seconds={"reduce": 0.5},
            explanation="two levels contradict each other." if status is Status.INFEASIBLE else "",
        )

    return method


def test_plain_values():
    value = {"a": np.float64("nan"), "b": np.int64(3), "c": [np.inf, 1.5, True, None], "d": Status.OPTIMAL}
    assert convert_to_plain_json(value) == {"a": None, "b": 3, "c": [None, 1.5, True, None], "d": "optimal"}


def test_print_json_is_one_line(capsys):
    print_json({"x": np.array([1.0, np.nan])})
    assert capsys.readouterr().out == '{"x": [1.0, null]}\n'


def test_only_json_on_stdout(capfd):
    with redirect_library_output(True):
        os.write(1, b"banner of a solver\n")
    print_json({})
    captured = capfd.readouterr()
    assert captured.out == "{}\n"
    assert captured.err == "banner of a solver\n"


def test_options_change_the_table(table_file):
    table = TableAsked(path=table_file, weights="unit", levels="0.1,0.5").load()
    assert table.weights.tolist() == [1.0] * 5
    assert (table.lower[0], table.upper[0]) == (2.0, 10.0)


@pytest.mark.parametrize("levels", ["", "0.1", "0.1;0.2", "a,b", "0.1,0.2,0.3"])
def test_levels_that_are_not_two_numbers(table_file, levels):
    with pytest.raises(InputError, match=r"0\.05,0\.20"):
        TableAsked(path=table_file, levels=levels).load()


@pytest.mark.parametrize("levels", ["-0.1,0.2", "nan,0.1", "0.1,inf"])
def test_levels_that_make_no_sense(table_file, levels):
    with pytest.raises(LevelError):
        TableAsked(path=table_file, levels=levels).load()


def test_unknown_weights_get_a_hint(table_file):
    with pytest.raises(UnknownCodeError, match="did you mean 'inverse'"):
        TableAsked(path=table_file, weights="invers").load()


def test_unknown_kind_of_file(tmp_path):
    with pytest.raises(InputError, match="no known kind"):
        TableAsked(path=tmp_path / "table.docx").load()


def test_run_method_prints_and_writes(table_file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "release.csv"
    run_on_command_line(suppressing(monkeypatch), TableAsked(path=table_file), Wanted(out=out, as_json=True))
    captured = capsys.readouterr()
    shown = json.loads(captured.out)
    assert shown["audit"] == {"safe": True, "checked": 1, "exact": 0, "unsafe": 0}
    assert list(shown["seconds"]) == ["total", "read", "reduce", "solve", "audit"]
    assert shown["seconds"]["reduce"] == 0.5
    assert shown["table"] == {"cells": 5, "sensitive": 1, "relations": 2}
    assert "bound" not in shown  # computed from true values
    assert out.read_text().splitlines()[:2] == ["cell,status,value", "0,withheld,"]
    assert "written" in captured.err


def test_run_method_in_words(table_file, monkeypatch, capsys):
    run_on_command_line(suppressing(monkeypatch), TableAsked(path=table_file), Wanted(quiet=True))
    captured = capsys.readouterr()
    assert "optimal" in captured.out
    assert captured.err == ""


def test_an_unsafe_release_is_not_written(table_file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "release.csv"
    with pytest.raises(NoSafeReleaseError, match="audit refuses"):
        run_on_command_line(
            suppressing(monkeypatch, safe=False), TableAsked(path=table_file), Wanted(out=out, as_json=True)
        )
    assert json.loads(capsys.readouterr().out)["audit"]["safe"] is False
    assert not out.exists()


def test_no_release_is_not_written(table_file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "release.csv"
    with pytest.raises(NoSafeReleaseError, match="contradict"):
        run_on_command_line(
            suppressing(monkeypatch, status=Status.INFEASIBLE),
            TableAsked(path=table_file),
            Wanted(out=out, as_json=True),
        )
    shown = json.loads(capsys.readouterr().out)
    assert shown["status"] == "infeasible"
    assert shown["audit"] is None
    assert not out.exists()


def test_figures_for_people():
    shown = {"a": 1234567, "b": 0.123456789, "c": None, "d": True, "e": {"x_y": 1}, "f": "[x]"}
    texts = [_printing._format_figure(v) for v in shown.values()]
    assert texts == ["1,234,567", "0.123457", "-", "yes", "x y 1", r"\[x]"]


@pytest.mark.parametrize(
    ("out", "text"),
    [("release.docx", ".parquet or .xlsx"), ("nowhere/release.csv", "no folder"), ("folder.csv", "is a folder")],
)
def test_a_place_where_nothing_can_go_is_refused_first(table_file, tmp_path, out, text):
    (tmp_path / "folder.csv").mkdir()

    def method(_table):
        pytest.fail("the work was begun")

    with pytest.raises(InputError, match=text):
        run_on_command_line(method, TableAsked(path=table_file), Wanted(out=tmp_path / out))


def test_a_release_does_not_overwrite_its_table(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    Table.from_leaves({"region": ["N", "S"]}, [20, 50], sensitive=[1], lower=4, upper=4).write(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="the table itself"):
        run_on_command_line(suppressing(monkeypatch), TableAsked(path=path), Wanted(out=tmp_path / "." / "table.csv"))
    assert path.read_bytes() == before

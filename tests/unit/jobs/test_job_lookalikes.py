"""A job with two tables of one thing under two names: refused where one prints what the other withholds."""

from builders import write_columns, write_job
from cellguard.cli import main

CELLS = {"act": ["a", "a", "a", "b", "b", "b", "c", "c", "c", "Total", "Total", "Total"],
         "size": ["s", "l", "Total"] * 4,
         "value": [10, 20, 30, 30, 40, 70, 11, 14, 25, 51, 74, 125]}  # fmt: skip


def write_two_names(folder, **more):
    write_columns(folder / "one.csv", CELLS)
    write_columns(folder / "two.csv", {"activity" if name == "act" else name: column for name, column in CELLS.items()})
    return write_job(
        folder, "act", "activity", "size", name="twice", data={}, method={"name": "suppress", "rounds": 0},
        tables=[{"name": "one", "file": "one.csv", "dimensions": ["act", "size"]},
                {"name": "two", "file": "two.csv", "dimensions": ["activity", "size"]}],
        rules=[{"rule": "manual", "cells": [{"act": "a", "size": "s"}], "tables": ["one"]}],
        output={"folder": "out"}, **more,
    )  # fmt: skip


def test_two_names_of_one_thing_are_refused_unless_they_are_said_to_differ(tmp_path, capsys):
    assert main(["protect", str(write_two_names(tmp_path)), "--quiet"]) == 1
    told = capsys.readouterr().err
    assert "published in one way by one name" in told
    assert 'different = [["act", "activity"]]' in told
    assert not (tmp_path / "out").exists()
    assert main(["protect", str(write_two_names(tmp_path, different=[["act", "activity"]])), "--quiet"]) == 0

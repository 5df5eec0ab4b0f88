"""Damaged CSV, Parquet and description files on the command line: exit code 1, a hint, no traceback, no value."""

from __future__ import annotations

import gzip
import json

import pytest

from cellguard import generate
from cellguard.cli import main

CELLS = "region,sex,value\nN,f,1.5\nN,m,77125\nS,f,4\n"
ABOUT = "[dimensions.region]\n[dimensions.sex]\n"

DAMAGED = {
    "empty": ("", ABOUT),
    "binary": ("\0\x01\x02" * 99, ABOUT),
    "cut in a quote": ('region,sex,value\n"N,f,1', ABOUT),
    "a value that is text": (CELLS.replace("77125", "77125x"), ABOUT),
    "not a number": (CELLS.replace("77125", "nan"), ABOUT),
    "infinite": (CELLS.replace("77125", "-inf"), ABOUT),
    "enormous": (CELLS.replace("77125", "77125e200"), ABOUT),
    "twice": (CELLS + "N,m,77125\n", ABOUT),
    "not additive": (CELLS + "Total,Total,77125\n", ABOUT),
    "unknown code": (CELLS, "[dimensions.region]\noutline = 'N'\n[dimensions.sex]\n"),
    "two parents": (CELLS, '[dimensions.region]\noutline = """\nN\n  a\nS\n  a\n"""\n[dimensions.sex]\n'),
    "cycle": (CELLS, "[dimensions.region]\ncodes = ['T','N','S']\nparents = [[-1, 2, 1]]\n[dimensions.sex]\n"),
    "lower bound above": (CELLS.replace("value\n", "value,lb\n").replace("77125", "77125,77126"), ABOUT),
    "no description": (CELLS, None),
    "not toml": (CELLS, "[dimensions.region"),
    "another folder": (CELLS, "[dimensions.region]\nfile = '../../etc/passwd'\n"),
    "a billion relations": (CELLS, "relations = 't.csv'\nn_relations = 1000000000\n" + ABOUT),
    "a wall of brackets": (CELLS, "x = " + "[" * 100_000),
    "a long line": ("region,sex,value\n" + "N" * 3_000_000, ABOUT),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_end_in_a_clear_message(name, tmp_path, capsys):
    cells, about = DAMAGED[name]
    (tmp_path / "t.csv").write_text(cells)
    if about is not None:
        (tmp_path / "t.toml").write_text(about)
    assert main(["info", str(tmp_path / "t.csv"), "--json"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["message"]
    assert "Traceback" not in shown.err
    assert "77125" not in shown.err + shown.out


def test_a_gzip_bomb_is_refused(tmp_path, capsys):
    (tmp_path / "t.toml").write_text(ABOUT)
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=9) as stream:
        for _ in range(200):
            stream.write(b"0" * (1 << 20))
    assert main(["info", str(tmp_path / "t.csv.gz")]) == 1
    assert "unpacks to more than" in capsys.readouterr().err


def test_a_good_table_is_shown(tmp_path, capsys):
    generate.hierarchical(1, branching=((2, 2), (3,))).write(tmp_path / "t.parquet")
    assert main(["info", str(tmp_path / "t.parquet"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)

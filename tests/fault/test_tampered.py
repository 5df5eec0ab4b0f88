"""Cells, descriptions and hierarchies that were tampered with: an error of ours or a table, and never a value shown."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cellguard.cli import main
from cellguard.model.table import Table

SECRET = "7391"  # in every value, and in no other number
CELLS = b"""region,sex,value,status,lower,upper
n1,f,17391,sensitive,20,30
n1,m,273910,safe,0,0
s1,f,47391,fixed,0,0
s1,m,57391,safe,0,0
"""
ABOUT = b"""name = "persons"
value = "value"

[dimensions.region]
file = "region.hrc"

[dimensions.sex]
total = "Both"
"""
TREE = b"North\n@n1\nSouth\n@s1\n"


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("frames")


def lay(folder, *, cells=CELLS, about=ABOUT, tree=TREE, name="cells.csv"):
    """Write the three files and return the path of the cells."""
    path = folder / name
    path.write_bytes(cells)
    (folder / "cells.toml").write_bytes(about)
    (folder / "region.hrc").write_bytes(tree)
    return path


def info(path, capfd):
    """Run ``cellguard info``; whatever it says, it shows no value and no traceback."""
    code = main(["info", str(path), "--json"])
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err
    assert SECRET not in captured.err + captured.out
    shown = json.loads(captured.out)
    return code, shown


def test_the_good_files_are_good(tmp_path, capfd):
    code, shown = info(lay(tmp_path), capfd)
    assert (code, shown["cells"], shown["sensitive"], shown["fixed"]) == (0, 15, 1, 1)


def test_a_missing_part_is_not_told_by_the_difference(tmp_path, capfd):
    """Off by 273910 would be the value of the cell that is missing."""
    total = b"North,Both,291301,safe,0,0\n"
    code, shown = info(lay(tmp_path, cells=CELLS.replace(b"n1,m,273910,safe,0,0\n", total)), capfd)
    assert code == 1
    assert "273910" not in str(shown)
    assert "off by" not in str(shown)


def test_a_hundred_thousand_columns_are_refused_at_once(tmp_path, capfd):
    more = b"," + b",".join(b"c%d" % k for k in range(100_000))
    head, _, rest = CELLS.partition(b"\n")
    begin = time.process_time()
    code, shown = info(lay(tmp_path, cells=head + more + b"\n" + rest), capfd)
    assert code == 1
    assert "columns" in str(shown)
    assert time.process_time() - begin < 10


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"cells": CELLS.replace(b"s1,m", b"Souht,m")}, "UnknownCodeError", "did you mean 'South'"),
        ({"cells": CELLS.replace(b"n1,m", b"North,m")}, "AdditivityError", "region=North"),
        ({"cells": CELLS.replace(b",20,30", b",-20,30")}, "LevelError", "lower level"),
        ({"cells": CELLS.replace(b",20,30", b",99999,30")}, "LevelError", "no release can meet it"),
        ({"cells": CELLS.replace(b"sensitive", b"secret")}, "UnknownCodeError", "status"),
        ({"cells": CELLS.replace(b"value", b"amount")}, "UnknownCodeError", "value"),
        (
            {"cells": CELLS.replace(b"n1,m,273910,safe,0,0", b"n1,m")},
            "FormatError",
            "2 columns; the first line names 6",
        ),
        ({"about": ABOUT.replace(b"file", b"fiel")}, "FormatError", "did you mean 'file'"),
        ({"about": ABOUT.replace(b"region.hrc", b"none.hrc")}, "InputError", "no such file"),
        ({"tree": b"North\n@n1\nSouth\n@s1\n@n1\n"}, "InputError", "n1"),
        ({"tree": b"North\n@@@n1\n"}, "FormatError", "hrc:2"),
        ({"tree": b""}, "FormatError", "empty"),
        ({"cells": gzip.compress(CELLS)[:-9], "name": "cells.csv.gz"}, "FormatError", "gzip"),
        ({"cells": b"PAR1" + bytes(40) + b"PAR1", "name": "cells.parquet"}, "FormatError", "cannot be read"),
    ],
)
def test_tampered_files(changes, error, text, tmp_path, capfd):
    code, shown = info(lay(tmp_path, **changes), capfd)
    assert code == 1
    assert shown["error"] == error
    assert text in shown["message"] + str(shown["hint"])


@pytest.fixture(scope="session")
def parquet(folder):
    path = folder / "good.parquet"
    Table.read(lay(folder)).write(path)
    return path.read_bytes()


def tamper(content, data):
    """Change, insert or drop a few bytes."""
    content = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=2))
    return bytes(content)


def read(folder, **changes):
    """Read without the reduction, which only takes time; exit code 3 would be a fault of ours."""
    from cellguard.exceptions import CellguardError

    message = ""
    try:
        Table.read(lay(folder, **changes))
    except CellguardError as error:
        message = str(error)
    assert SECRET not in message


@given(st.data())
def test_a_few_bytes_of_the_cells(folder, data):
    read(folder, cells=tamper(CELLS, data))


@given(st.data())
def test_a_few_bytes_of_the_description(folder, data):
    read(folder, about=tamper(ABOUT, data))


@given(st.data())
def test_a_few_bytes_of_the_hierarchy(folder, data):
    read(folder, tree=tamper(TREE, data))


@given(st.data())
def test_a_few_bytes_of_a_parquet_file(folder, parquet, data):
    read(folder, cells=tamper(parquet, data), name="cells.parquet")

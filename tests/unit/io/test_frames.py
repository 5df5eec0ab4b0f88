"""Columns of frames of every library, in and out."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cellguard._io.frames import (
    build_frame,
    convert_to_numbers,
    convert_to_texts,
    encode_frame_column,
    read_frame,
    read_frame_columns,
    write_csv,
    write_parquet,
)
from cellguard.exceptions import FormatError, InputError
from cellguard.tabulation.engines.duck import DuckRecords

pa = pytest.importorskip("pyarrow")


@pytest.fixture(params=["pandas", "polars", "pyarrow", "dict"])
def make(request):
    if request.param == "dict":
        return dict
    module = pytest.importorskip(request.param)
    return module.table if request.param == "pyarrow" else module.DataFrame


def test_columns_of_each_library(make):
    columns = read_frame_columns(
        make({"code": ["a", None, "b", "a"], "n": [1, 2, 3, 4], "x": [0.5, None, 1e300, -1.0]})
    )
    assert encode_frame_column(columns["code"])[0] == ["a", "b"]
    assert encode_frame_column(columns["code"])[1].tolist() == [0, -1, 1, 0]
    assert convert_to_texts(columns["n"]) == ["1", "2", "3", "4"]
    assert convert_to_numbers(columns["n"], "n").tolist() == [1, 2, 3, 4]
    assert np.array_equal(convert_to_numbers(columns["x"], "x"), [0.5, np.nan, 1e300, -1.0], equal_nan=True)


def test_the_same_kind_comes_out(make):
    like = make({"x": [1]})
    frame = build_frame({"code": ["a", "b"], "value": np.array([1.5, np.nan]), "n": np.array([1, 2])}, like)
    assert isinstance(frame, pa.Table if make is dict else type(like))
    columns = read_frame_columns(frame)
    assert convert_to_texts(columns["code"]) == ["a", "b"]
    assert np.array_equal(convert_to_numbers(columns["value"], "value"), [1.5, np.nan], equal_nan=True)


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ([1.0, 2.0, None], ["1", "2"]),  # whole numbers that a missing value made floating
        ([1.5, 2.0], ["1.5", "2"]),
        ([True, False], ["true", "false"]),
        (["01", "1"], ["01", "1"]),
        ([None, None], []),
    ],
)
def test_codes_of_other_types(column, codes):
    assert encode_frame_column(pa.array(column))[0] == codes


def test_dictionary_columns_and_chunks():
    column = pa.chunked_array([pa.array(["x", "y"]).dictionary_encode(), pa.array(["y"]).dictionary_encode()])
    assert convert_to_texts(column) == ["x", "y", "y"]
    assert convert_to_numbers(pa.chunked_array([["1"], [" 2.5 ", ""]]), "n").tolist()[:2] == [1, 2.5]
    assert convert_to_numbers(pa.array([True, None]), "b").tolist()[0] == 1
    assert np.isnan(convert_to_numbers(pa.array([None, None]), "b")).all()


def test_numbers_are_checked():
    with pytest.raises(InputError, match="column 'x' holds something that is not a number") as raised:
        convert_to_numbers(pa.array(["12", "secret"]), "x")
    assert "secret" not in str(raised.value)
    with pytest.raises(InputError, match="column 'x' mixes"):
        read_frame_columns({"x": [1, "a"]})


@pytest.mark.parametrize("write", [write_csv, write_parquet])
def test_files_keep_numbers_exactly(write, tmp_path):
    values = np.array([0.1, 1 / 3, 1e-300, 2**53 + 2, 5, -0.25, np.nan, np.inf])
    path = tmp_path / ("x.csv" if write is write_csv else "x.parquet")
    write({"code": ["a", "b,c", 'd"e', "f\ng", " h", "ü", "001", "nan"], "value": values}, path)
    columns = read_frame(path)
    assert np.array_equal(convert_to_numbers(columns["value"], "value"), values, equal_nan=True)
    assert convert_to_texts(columns["code"]) == ["a", "b,c", 'd"e', "f\ng", " h", "ü", "001", "nan"]


@pytest.mark.parametrize("text", ["a;b\n1;2\n", "a\tb\r\n1\t2\r\n", "\ufeffa,b\n1,2\n", "a,b\n1,2"])
def test_delimiters_and_line_ends(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    assert {name: convert_to_texts(column) for name, column in read_frame(path).items()} == {"a": ["1"], "b": ["2"]}


def test_latin1_is_understood(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("code\nZürich\n".encode("latin-1"))
    assert convert_to_texts(read_frame(path)["code"]) == ["Zürich"]


def test_a_parquet_file_that_claims_too_much(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    write_parquet({"x": np.zeros(100_000)}, path)
    monkeypatch.setattr("cellguard._io.frames.MAX_BYTES", 100)
    with pytest.raises(FormatError, match="more than 100 bytes"):
        read_frame(path)


@pytest.mark.parametrize("name", ["wide.csv", "wide.parquet"])
def test_a_file_of_a_hundred_thousand_columns_is_refused_at_once(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".csv"):
        line = ",".join(f"c{i}" for i in range(100_000))
        path.write_text(f"{line}\n{line}\n")
    else:
        write_parquet({f"c{i}": [1] for i in range(5_001)}, path)
    begin = time.process_time()
    with pytest.raises(FormatError, match="columns; at most 5,000 are possible"):
        read_frame(path)
    with pytest.raises(FormatError, match="columns; at most 5,000 are possible"):
        DuckRecords.from_files(path)
    assert time.process_time() - begin < 5


def test_a_first_line_without_an_end_is_refused(tmp_path):
    path = tmp_path / "long.csv"
    path.write_bytes(b"x" * (3 << 20))
    with pytest.raises(FormatError, match="the first line is longer than"):
        read_frame(path)

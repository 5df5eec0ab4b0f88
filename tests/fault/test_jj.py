"""Every malformed JJ file gets the right error, exit code 1, no traceback, and shows no value."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cellguard._io import files
from cellguard.cli import main
from cellguard.exceptions import CellguardError, FormatError, InputError
from cellguard.model.table import Table

spec = importlib.util.spec_from_file_location("jj_corpus", Path(__file__).with_name("jj_corpus.py"))
corpus = importlib.util.module_from_spec(spec)
sys.modules["jj_corpus"] = corpus
spec.loader.exec_module(corpus)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("jj")


def write(folder, case):
    path = folder / f"{case.name}{case.suffix}"
    path.write_bytes(case.content)
    return path


def test_the_good_file_is_good(tmp_path):
    path = tmp_path / "good.jj"
    path.write_bytes(corpus.GOOD)
    table = Table.read(path)
    assert table.values.tolist() == [73910, 273910, 347820, 17391, 330429]
    assert table.sensitive.tolist() == [True, False, False, False, True]
    assert table.fixed.tolist() == [False, False, False, True, False]
    assert by_the_book(corpus.GOOD)[0] == table.values.tolist()


def test_the_corpus_names_each_case_once():
    names = [case.name for case in corpus.CORPUS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", corpus.CORPUS, ids=lambda case: case.name)
def test_reading(case, folder):
    with pytest.raises(CellguardError) as caught:
        Table.read(write(folder, case))
    message = str(caught.value)
    assert type(caught.value) is case.error
    assert case.text in message
    assert corpus.SECRET not in message
    assert len(message) < 600


@pytest.mark.parametrize("case", corpus.CORPUS, ids=lambda case: case.name)
def test_command_line(case, folder, capfd):
    start = time.process_time()
    assert main(["info", str(write(folder, case)), "--json"]) == 1
    assert time.process_time() - start < 5
    captured = capfd.readouterr()
    assert "Traceback" not in captured.err
    assert captured.err.startswith("cellguard: ")
    assert corpus.SECRET not in captured.err + captured.out
    assert json.loads(captured.out)["error"] == case.error.__name__


@pytest.mark.parametrize("length", range(len(corpus.GOOD) - 2))
def test_cut_short_anywhere(length, folder):
    path = folder / "cut.jj"
    path.write_bytes(corpus.GOOD[:length])
    with pytest.raises(InputError) as caught:
        Table.read(path)
    assert corpus.SECRET not in str(caught.value)


def refused_or_read(path, content):
    """Read a file of any bytes: a table, or an error of ours that shows no value."""
    path.write_bytes(content)
    try:
        return Table.read(path)
    except CellguardError as error:
        message = str(error)
    assert corpus.SECRET not in message
    return None


def by_the_book(content):
    """Read JJ the slow way, a word after the other; return the values and the relations, or None."""
    words = iter(re.findall(rb"[():]|[^\s():]+", content))
    number = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)(inity)?")

    def read_number():
        word = next(words)
        if not number.fullmatch(word):
            raise ValueError
        return float(word)

    def read_mark(marks):
        if next(words).lower() not in marks:
            raise ValueError

    try:
        if read_number() != 0:
            return None
        values, relations = [], []
        for cell in range(int(read_number())):
            if read_number() != cell:
                return None
            values.append(read_number())
            read_number()
            read_mark((b"s", b"u", b"m", b"z"))
            for _ in range(5):
                read_number()
        for _ in range(int(read_number())):
            row = [read_number()]
            parts = int(read_number())
            read_mark((b":",))
            for _ in range(parts):
                row.append(read_number())
                read_mark((b"(",))
                row.append(read_number())
                read_mark((b")",))
            relations.append(row)
    except (ValueError, StopIteration, OverflowError):
        return None
    return (values, relations) if next(words, None) is None else None


ALPHABET = b"0123456789 \n\t.:()-+esumznaif,_x\xb2\0"


@given(st.data())
def test_a_few_changed_bytes(folder, data):
    content = bytearray(corpus.GOOD)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        new = bytes([data.draw(st.sampled_from(ALPHABET))])
        content[at : at + data.draw(st.integers(0, 2))] = new
    table = refused_or_read(folder / "changed.jj", bytes(content))
    if table is not None:  # what is read is what is written there
        values, relations = by_the_book(bytes(content))
        assert table.values.tolist() == values
        assert table.rhs.tolist() == [row[0] for row in relations]


@given(st.lists(st.sampled_from(corpus.GOOD.split()), max_size=60), st.sampled_from([b" ", b"\n"]))
@example([b"5", *corpus.GOOD.split()[2:29], b"273910"], b"\n")
def test_words_in_any_order(folder, words, between):
    refused_or_read(folder / "words.jj", between.join([b"0", *words]))


@given(st.binary(max_size=200))
@example(b"0\n0\n0\n")
@example(b"\x85")
def test_any_bytes(folder, content):
    refused_or_read(folder / "any.jj", content)
    refused_or_read(folder / "any.jj.gz", content)


@given(st.lists(st.sampled_from([b" ", b"\n", b"\r\n", b"\t", b"  "]), min_size=200, max_size=200))
def test_white_space_is_free(folder, blanks):
    words = corpus.GOOD.replace(b"(", b" ( ").replace(b")", b" ) ").split()
    content = b"".join(word + blanks[i] for i, word in enumerate(words))
    table = refused_or_read(folder / "free.jj", content)
    assert table is not None
    assert table.values.tolist() == [73910, 273910, 347820, 17391, 330429]


def test_a_huge_file_is_refused_unread(tmp_path):
    path = tmp_path / "huge.jj"
    with path.open("wb") as stream:
        stream.truncate(files.MAX_BYTES + 1)  # sparse: takes no space
    with pytest.raises(FormatError, match="larger than"):
        Table.read(path)


def test_a_bomb_is_refused_before_it_has_unpacked(tmp_path):
    path = tmp_path / "bomb.jj.gz"
    path.write_bytes(corpus.bomb())
    start = time.process_time()
    with pytest.raises(FormatError, match="unpacks to more than"):
        Table.read(path)
    assert time.process_time() - start < 3


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        Table.read(tmp_path / "missing.jj")


def test_a_folder(tmp_path):
    folder = tmp_path / "folder.jj"
    folder.mkdir()
    with pytest.raises(InputError, match="folder"):
        Table.read(folder)


def test_neither_file_nor_folder(tmp_path):
    import os

    pipe = tmp_path / "pipe.jj"
    os.mkfifo(pipe)  # reading it would wait for ever
    with pytest.raises(InputError, match="ordinary file"):
        Table.read(pipe)


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "closed.jj"
    path.write_bytes(corpus.GOOD)

    def refuse(_self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match="may not be read"):
        Table.read(path)

"""Ctrl-C: one line, exit code 130, and no traceback, wherever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from cellguard import _interrupt, cli
from cellguard.cli import VERBS, main

LINE = "cellguard: stopped by Ctrl-C.\n"


def _stop():
    raise KeyboardInterrupt


def _cut_short():
    raise ImportError("initialization failed")


@pytest.fixture
def verb(monkeypatch):
    monkeypatch.setitem(VERBS, "trial", cli.Verb("Start", "Try."))
    return lambda load: monkeypatch.setattr(cli, "_load_command", load)


def test_in_a_verb(verb, capsys):
    verb(lambda _name: _stop)
    assert main(["trial"]) == 130
    assert capsys.readouterr().err == LINE


def test_while_a_verb_is_loaded(verb, capsys):
    verb(lambda _name: _stop())
    assert main(["trial"]) == 130
    assert capsys.readouterr().err == LINE


def test_an_import_that_was_cut_short_is_no_internal_error(verb, capsys, monkeypatch):
    verb(lambda _name: _cut_short)
    assert main(["trial"]) == 3
    capsys.readouterr()
    monkeypatch.setattr(_interrupt, "_seen", [signal.SIGINT])
    assert main(["trial"]) == 130
    assert capsys.readouterr().err == LINE


def _process(code):
    start = "import sys\nfrom cellguard import __main__, cli\nsys.argv = ['cellguard', 'info']\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + code + "\n__main__.console()"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
@pytest.mark.parametrize(
    "work",
    [
        "def work(): print('ready', flush=True); import time; time.sleep(60)",
        # an interrupt that passes through exec is remembered by the interpreter
        "def work(): print('ready', flush=True); exec('import time; time.sleep(60)')",
        # a thread that is left behind
        """
def work():
    import threading, time
    threading.Thread(target=time.sleep, args=(60,)).start()
    print('ready', flush=True)
    time.sleep(60)
""",
    ],
)
def test_as_a_process(work):
    process = _process(f"{work}\ncli._load_command = lambda name: work")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=50)  # its work would take 60 s
    assert (process.returncode, err) == (130, LINE)


@pytest.mark.skipif(os.name == "nt", reason="signals of another kind")
def test_while_the_records_are_added_up():
    """DuckDB makes an error of its own of an interrupt."""
    work = """
def work():
    from cellguard.tabulation.engines.duck import DuckRecords
    records = DuckRecords.from_frame({"a": [1]}, ["a"])
    print("ready", flush=True)
    records._run("SELECT sum(x.range * y.range % 7) FROM range(10000000) x, range(10000000) y")
cli._load_command = lambda name: work"""
    process = _process(work)
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, LINE)


def test_a_best_release_that_is_kept_is_announced(tmp_path, monkeypatch, capsys):
    import cellguard as cg

    table = cg.Table.from_leaves({"a": list("xyz"), "b": list("uvw")}, [[9, 8, 7], [6, 5, 4], [3, 2, 9]])
    table.apply(cg.Manual([5])).write(tmp_path / "table.csv")
    ask = ["suppress", str(tmp_path / "table.csv"), "--out", str(tmp_path / "out.csv")]
    assert main(ask) == 0
    assert "Ctrl-C" not in capsys.readouterr().err
    monkeypatch.setattr(_interrupt, "_seen", [signal.SIGINT])
    assert main(ask) == 0
    assert f"{_interrupt.BEST_KEPT}.\n" in capsys.readouterr().err

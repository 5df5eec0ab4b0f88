"""What the README prints works as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cellguard.cli import VERBS

README = Path(__file__).resolve().parents[2] / "README.md"


@pytest.fixture(scope="module")
def text():
    return README.read_text(encoding="utf-8")


def test_its_python_runs(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    lines = (tmp_path / "turnover.csv").read_text().splitlines()
    assert lines[0] == "region,branch,status,value"
    assert sum(",withheld," in line for line in lines) >= 4
    assert len(lines) == 1 + 4 * 3


def test_it_fits_one_screen(text):
    assert len(text.splitlines()) < 60


def test_its_commands_exist(text):
    makefile = README.with_name("Makefile").read_text()
    targets = re.findall(r"^make (\w+)", text, re.MULTILINE)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert set(re.findall(r"`cellguard (\w+) ", text)) <= set(VERBS)

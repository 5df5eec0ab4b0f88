"""The figures of the papers that are pictures, drawn from computed tables."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def made() -> dict:
    return runpy.run_path(str(DOCS / "paper_pictures.py"))


@pytest.mark.parametrize("name", ["baena2018-figure1.svg", "salazar2004-figure6.svg"])
def test_pictures_are_what_is_computed(made: dict, name: str) -> None:
    assert (DOCS / "pictures" / name).read_text("utf-8") == made["DRAWN"][name](), "python docs/paper_pictures.py"
    assert f"pictures/{name}" in (DOCS / "experiments.md").read_text("utf-8")


def test_baena2018_figure1_shows_the_middle_of_symmetric_intervals_only(made: dict) -> None:
    """Standardised intervals of instance 3: all around the truth with symmetric levels, none with others."""
    low, high = made["standardise"](0.20)
    assert (low == -50).all()
    assert (high == 50).all()
    low, _ = made["standardise"](0.05)
    assert not (low == -50).any()
    assert (low == 0).mean() > 0.2
    assert re.search(r"symmetric, 20% and 20%: \d+ intervals", made["draw_intervals"]())

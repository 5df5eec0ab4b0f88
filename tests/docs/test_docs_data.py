"""The examples in the pages about data run."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "docs" / "data"


@pytest.mark.parametrize("page", ["tabulate.md", "hierarchies.md", "rules.md"])
def test_examples_run(page):
    text = (PAGES / page).read_text(encoding="utf-8")
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert result.attempted > 2
    assert result.failed == 0

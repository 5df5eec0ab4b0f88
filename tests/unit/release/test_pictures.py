"""Notebooks: short reprs, and pictures that show of a release only what is published."""

from __future__ import annotations

import logging
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest

import cellguard as cg
from cellguard.exceptions import InputError
from cellguard.release.figures import choose_decimals, format_figure, format_percentage, format_short_figure
from cellguard.release.release import Status, Suppression

RECORDS = {
    "region": ["N", "N", "N", "S", "S", "S", "W", "W", "W"],
    "size": ["a", "b", "b", "a", "a", "b", "a", "b", "b"],
    "x": [971.25, 13.5, 17.25, 8.0, 19.5, 23.25, 31.0, 37.5, 41.25],
}


@pytest.fixture(scope="module")
def table():
    return cg.tabulate(RECORDS, ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))


@pytest.fixture(scope="module")
def release(table):
    return cg.suppress(table, method="heuristic", rounds=2)


def test_a_release_shows_what_is_published_and_nothing_else(table, release):
    page = release._repr_html_()
    assert release.suppressed.any()
    for cell in np.flatnonzero(release.suppressed).tolist():
        assert format_figure(table.values[cell], 2) not in page
    assert page.count(">x<") == int(release.suppressed.sum())
    assert "primary" not in page
    assert "sensitive" not in page
    assert format_figure(table.values[0], 2) in page


def test_reprs_are_one_line_and_without_figures_from_true_values(release):
    withheld = int(release.suppressed.sum())
    assert repr(release) == f"Suppression({release.status}, 12 cells: {12 - withheld} published, {withheld} withheld)"
    audit = release.audit()
    assert repr(audit).startswith("Audit(safe: ")
    assert "\n" not in repr(audit)
    for kind in (cg.round(release.table, base=500), cg.intervals(release.table)):
        assert re.fullmatch(r"\w+\([a-z_]+, 12 cells[:,] .*\)", repr(kind)), repr(kind)


def test_every_noun_has_a_picture(table, release):
    nouns = [table, release, release.audit(), table.hierarchies[0], cg.Publication.of({"one": table})]
    for noun in nouns:
        assert "<" in noun._repr_html_()
    assert "confidential" in table._repr_html_()
    assert format_figure(table.values[0], 2) in table._repr_html_()


def test_codes_are_escaped_in_pictures():
    t = cg.Table.from_leaves({"<b>": ["<script>", "y"]}, [3, 4], sensitive=[1], upper=[2], lower=[2])
    assert "<script>" not in t._repr_html_()


def test_a_release_that_is_none_says_so(table):
    none = Suppression(
        table=table, status=Status.INFEASIBLE, objective=float("nan"), suppressed=table.sensitive, explanation="why"
    )
    assert repr(none) == "Suppression(infeasible: no release of 12 cells)"
    assert "why" in none._repr_html_()


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_the_kind_of_frame_that_came_in_comes_out(kind):
    t = cg.tabulate(kind(RECORDS), ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))
    release = cg.suppress(t, method="heuristic", rounds=2)
    assert isinstance(release.frame(), kind)
    assert isinstance(t.frame(), kind)
    cells = cg.Table.from_frame(t.frame(), ["region", "size"])
    assert isinstance(cells.frame(), kind)
    joined = cg.Publication.of({"one": t.with_(name="one")})
    published = cg.suppress(joined, method="heuristic", rounds=2)
    assert isinstance(published.frame(), kind)
    assert isinstance(published.tables["one"].frame(), kind)


@pytest.mark.parametrize("verb", [cg.suppress, cg.adjust, cg.intervals, cg.round, cg.perturb])
def test_a_frame_is_no_table_and_the_verb_says_what_to_do(verb):
    with pytest.raises(InputError, match=r"(?s)not pandas\.DataFrame.*cg\.tabulate"):
        verb(pd.DataFrame(RECORDS))


def test_a_workbook_or_a_refusal(tmp_path, release):
    release.save(tmp_path / "x.xlsx")
    assert (tmp_path / "x.xlsx").read_bytes()[:2] == b"PK"
    for name in ("x.xls", "x.docx", "x"):
        with pytest.raises(InputError, match=r"\.xlsx"):
            release.save(tmp_path / name)
    assert [p.name for p in tmp_path.iterdir()] == ["x.xlsx"]


def test_the_log_tells_what_happens_and_never_a_value(tmp_path, caplog):
    with caplog.at_level(logging.INFO, logger="cellguard"):
        t = cg.tabulate(RECORDS, ["region", "size"], "x").apply(cg.MinFrequency(2, percent=10))
        cg.suppress(t, method="heuristic", rounds=2).save(tmp_path / "x.csv")
    told = "\n".join(record.getMessage() for record in caplog.records if record.name == "cellguard")
    assert "tabulate: 12 cells" in told
    assert "suppress: 12 cells, " in told
    assert "written to" in told
    for value in t.values.tolist():
        assert format_figure(value, 2) not in told


def test_no_bound_is_told_as_none():
    t = cg.Table.from_equations([3, 4, 7], [[2, 0, 1]], sensitive=[0], upper=[1], lower=[1])
    made = Suppression(table=t, status=Status.FEASIBLE, objective=11.0, bound=4.657e-10, suppressed=t.sensitive)
    assert np.isnan(made.gap)
    assert format_percentage(made.gap) == "no bound computed"
    assert np.isnan(made.summary(internal=True)["bound"])


@pytest.mark.parametrize("value", [-0.0, -1e-13, 4.657e-10, 1e-300])
def test_nothing_is_nothing(value):
    assert format_short_figure(value) == "0"
    assert not format_figure(value, 1).startswith("-")
    assert format_percentage(value) == "0.0%"


@pytest.mark.parametrize("value", [1.5e-7, 0.000123456, 99999.4, 1e15, -1234.5678])
def test_figures_have_no_exponents(value):
    assert "e" not in format_short_figure(value)
    assert float(format_short_figure(value).replace(",", "")) == pytest.approx(value, rel=5e-4)


def test_decimals_of_the_data_are_kept():
    assert choose_decimals(np.array([1.0, 2.5, 0.1 + 0.2])) == 1
    assert choose_decimals(np.array([1.0, 2.0])) == 0
    assert choose_decimals(np.array([36667964.344156764, 1 / 3])) == 2


def test_no_data_is_not_a_zero():
    records = {"r": ["N", "N", "S", "S", "S"], "s": ["a", "a", "a", "b", "b"], "x": [0.0, 0.0, 5.0, 7.0, 9.0]}
    t = cg.tabulate(records, ["r", "s"], "x").apply(cg.MinFrequency(2, percent=10))
    page = cg.suppress(t, method="heuristic", rounds=2)._repr_html_()
    assert "no contributors" in page
    assert page.count("–</td>") == 1  # N, b; the zero of N, a stays a zero

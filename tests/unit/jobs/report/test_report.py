"""The two versions of the report: what they show, and what they must not."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.datasets.examples import salazar2004_figure1
from cellguard.jobs.report import Content, render_report
from cellguard.jobs.report.grid import build_report_grids
from cellguard.release.release import Status, Suppression

SNAPSHOTS = Path(__file__).with_name("snapshots")


def suppressed(table, cells):
    mask = np.zeros(table.n_cells, bool)
    mask[cells] = True
    return Suppression(
        table=table,
        status=Status.FEASIBLE,
        objective=float(table.weights[mask & ~table.sensitive].sum()),
        suppressed=mask,
    )


@pytest.fixture(scope="module")
def content():
    table = salazar2004_figure1()
    secondary = [table.cell({"activity": "II", "region": "A"}), table.cell({"activity": "III", "region": "A"})]
    secondary.append(table.cell({"activity": "III", "region": "C"}))
    release = suppressed(table, [*table.sensitive_cells.tolist(), *secondary])
    audit = cg.audit(release, exact=True)
    return Content(
        title="Investments <&>", release=release, audit=audit, seconds={"protect": 1.5}, versions={"cellguard": "9"}
    )


class Texts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.found, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open) and data.strip():
            self.found.append(data.strip())


def read_texts(page):
    parser = Texts()
    parser.feed(page)
    return parser


@pytest.mark.parametrize("public", [True, False], ids=["public", "internal"])
def test_snapshot(content, public):
    """What a reader reads, line by line; pictures are compared by their words. Delete the file to renew it."""
    page = re.sub(r"Time: \d+\.\d\d s", "Time: 0.00 s", render_report(content, public=public))
    shown = "\n".join(read_texts(page).found) + "\n"
    path = SNAPSHOTS / ("public.txt" if public else "internal.txt")
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


def test_ranges_that_were_only_judged_are_not_drawn_and_others_say_whose_they_are(content):
    table = content.release.table
    cell = table.sensitive_cells[:1]
    people = [cg.Attacker(name=name, cells=cell, lb=[0.0], ub=[900.0]) for name in ("bank", "insider 1")]
    people[1] = replace(people[1], derived=True)
    release = replace(content.release, table=table.with_(attackers=(cg.Attacker(name="external"), *people)))
    told = replace(content, release=release, audit=cg.audit(release, exact=True))
    words = read_texts(render_report(told, public=False)).found
    place = words.index("Ranges of sensitive cells and their protection levels, the tightest first")
    labels = [word for word in words[place:] if "II · C" in word]
    assert sorted(labels) == ["II · C", "II · C, bank"]
    assert any("For 1 respondent only the verdict is computed" in word for word in words)
    notes = [
        c.note for g in build_report_grids(told, public=False) for _, line in g.rows for c in line if "Range" in c.note
    ]
    assert any("Range against bank: " in note for note in notes)
    assert not any("Range against insider" in note for note in notes)
    assert any(note.endswith("Not shown safe against insider 1") for note in notes)


@pytest.mark.parametrize("public", [True, False])
def test_same_content_same_bytes(content, public):
    assert render_report(content, public=public) == render_report(content, public=public)


@pytest.mark.parametrize("public", [True, False])
def test_one_file_without_network(content, public):
    page = render_report(content, public=public)
    assert all(link.startswith("#") for link in read_texts(page).links)
    assert not re.search(r"url\((?!#)", page)
    assert "default-src 'none'" in page


def test_titles_are_escaped(content):
    assert "Investments &lt;&amp;&gt;" in render_report(content, public=True)


def test_public_version_shows_no_level_range_rule_cost_or_time(content):
    written = render_report(content, public=True)
    own, _, rest = written.partition('<details id="each-word">')  # the manual's page is the same in every report
    page = " ".join(read_texts(own + rest.partition("</details>")[2]).found)
    page = page.replace("its protection levels", "").replace("as its levels require", "")
    page = page.replace("The levels and rules", "")
    for word in ("level", "range", "objective", "seconds", "seed", "p%", "true value", "Confidential"):
        assert word not in page
    table, release = content.release.table, content.release
    shown = {float(n.replace(",", "")) for n in re.findall(r"\d[\d,.]*\d|\d", page)}
    hidden = set(table.values[release.suppressed].tolist()) - set(table.values[~release.suppressed].tolist())
    assert content.release.cost not in shown
    for value in hidden:
        cells = [c.text for g in build_report_grids(content, public=True) for _, line in g.rows for c in line]
        assert f"{value:g}" not in cells


def test_public_version_has_no_notes_on_cells(content):
    assert "title=" not in render_report(content, public=True)
    assert "true value" in render_report(content, public=False)


def test_grid_has_every_cell_once_with_its_kind(content):
    (grid,) = build_report_grids(content, public=True)
    cells = [cell for _, line in grid.rows for cell in line]
    assert len(cells) == content.release.table.n_cells
    kinds = [cell.kind for cell in cells]
    assert kinds.count("withheld") == 4  # which of them are sensitive, readers are not told
    assert all((cell.text == "x") == (cell.kind != "published") for cell in cells)


@pytest.mark.parametrize(("public", "marked"), [(True, True), (False, False)])
def test_primary_and_secondary_are_told_apart_inside_or_on_request(content, public, marked):
    (grid,) = build_report_grids(replace(content, mark_primary=marked), public=public)
    kinds = [cell.kind for _, line in grid.rows for cell in line]
    assert (kinds.count("primary"), kinds.count("secondary")) == (1, 3)


def test_rows_have_the_depth_of_their_codes():
    table = cg.Table.from_leaves({"region": {"North": ["N1", "N2"], "South": ["S1"]}}, [3, 4, 5])
    (grid,) = build_report_grids(Content(title="t", release=suppressed(table, [])), public=True)
    assert [(head.code, head.depth, head.children) for head, _ in grid.rows] == [
        ("Total", 0, True), ("North", 1, True), ("N1", 2, False), ("N2", 2, False), ("South", 1, True), ("S1", 2, False),
    ]  # fmt: skip


def test_further_dimensions_become_slices():
    table = cg.Table.from_leaves(
        {"a": ["a1", "a2"], "b": ["b1", "b2"], "c": ["c1", "c2"]}, np.arange(8).reshape(2, 2, 2)
    )
    grids = list(build_report_grids(Content(title="t", release=suppressed(table, [])), public=True))
    assert [grid.title for grid in grids] == ["table: c Total", "table: c c1", "table: c c2"]
    assert grids[1].rows[1][1][1].text == "0"


def test_a_table_without_dimensions_is_listed():
    table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4])
    page = render_report(Content(title="t", release=suppressed(table, [0, 1])), public=True)
    assert "cell 0" in page


@pytest.mark.parametrize("method", ["intervals", "round", "perturb", "adjust"])
def test_every_kind_of_release_has_both_reports(method):
    release = getattr(cg, method)(salazar2004_figure1(), **({"base": 30.0} if method in ("round", "perturb") else {}))
    content = Content(title="t", release=release, audit=release.audit(exact=True))
    for public in (True, False):
        page = render_report(content, public=public)
        assert page.count('<table class="cells">') == 1
    assert "Information loss" in page

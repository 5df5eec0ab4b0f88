"""What a report says of a publication."""

import re

import numpy as np
import pytest

import cellguard as cg
from cellguard.jobs.report import Content, render_report
from cellguard.jobs.report.linked import describe_linked_tables, draw_clusters
from cellguard.model.linked.publication import Part, Publication, count_shared_cells


@pytest.fixture(scope="module")
def release():
    leaves = np.array([[30.0, 7, 21], [12, 40, 9], [25, 18, 33]])
    first = cg.Table.from_leaves({"region": ["N", "S", "W"], "sector": ["a", "b", "c"]}, leaves)
    cell = first.cell({"region": "S"})  # a margin: it stands in both tables
    first = first.with_(
        sensitive=np.arange(16) == cell, lower=(np.arange(16) == cell) * 3.0, upper=(np.arange(16) == cell) * 3.0
    )
    sizes = cg.Table.from_leaves({"region": ["N", "S", "W"], "size": ["s", "l"]}, [[20, 38], [31, 30], [46, 30]])
    apart = cg.Table.from_leaves({"colour": ["red <&>", "blue"]}, [5, 9])
    found = Publication.of(
        [Part(name="by sector", table=first), Part(name="by size", table=sizes),
         Part(name="apart", table=apart, where={"kind": "other"})]
    )  # fmt: skip
    return cg.suppress(found, method="heuristic", rounds=1)


def content(release) -> Content:
    return Content(title="t", release=release, audit=release.audit(), versions={"cellguard": "9"})


def test_index_clusters_and_where_a_withheld_cell_stands(release):
    facts = describe_linked_tables(content(release), public=True)
    assert [row["name"] for row in facts["index"]] == ["by sector", "by size", "apart"]
    assert [row["cluster"] for row in facts["index"]] == [1, 1, 2]
    assert ("region S", ["by sector", "by size"]) in facts["standing"]
    page = render_report(content(release), public=True)
    assert "3 tables in 2 clusters" in page
    for row in facts["index"]:
        assert page.count(f'id="{row["anchor"]}"') == 1


def test_the_public_version_tells_no_primary(release):
    public, internal = (
        describe_linked_tables(content(release), public=p)["index"][0]["figures"] for p in (True, False)
    )
    assert set(public) == {"cells", "withheld"}
    assert int(internal["primary"]) + int(internal["secondary"]) == int(public["withheld"])


def test_the_picture_has_a_node_for_each_table_and_a_line_for_what_is_shared(release):
    picture = describe_linked_tables(content(release), public=True)["clusters_picture"]
    assert picture.count("<circle") == 2
    assert "by sector and by size: 4 cells" in picture
    assert "1 table shares nothing" in picture
    assert picture == describe_linked_tables(content(release), public=True)["clusters_picture"]


def test_a_cluster_of_many_tables_is_drawn_by_its_largest():
    tables = {
        f"table {k:02d} with a very long name indeed": cg.Table.from_leaves({"r": ["a", "b"]}, [3, 4])
        for k in range(70)
    }
    found = Publication.of(tables)
    picture = draw_clusters(found.parts, found.clusters, count_shared_cells(found.parts))
    assert picture.count("<circle") == 60
    assert "and 10 smaller tables" in picture
    assert max(map(int, re.findall(r'viewBox="0 0 (\d+)', picture))) < 2000


def test_a_single_table_has_none_of_it():
    table = cg.Table.from_leaves({"r": ["a", "b", "c"]}, [3, 4, 5], sensitive=[1], lower=1, upper=1)
    assert describe_linked_tables(content(cg.suppress(table, method="heuristic", rounds=1)), public=True) == {}

"""A file that lists the cells to be published: its tables are found, and rows that fit none are told."""

from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.exceptions import CellguardError, PublicationError
from cellguard.model.linked.publication import Publication
from cellguard.tabulation.many import tabulate_template
from cellguard.tabulation.template import Template

REGIONS = cg.Hierarchy.from_nested({"East": ["E1", "E2"], "West": ["W1", "W2"]})
ROWS = [
    ("2023", "turnover", region, sector, "_T") for region in ("_T", "East", "West", "E1", "E2") for sector in ("_T", "a", "b")
] + [("2023", "turnover", region, "_T", size) for region in ("East", "West") for size in ("small", "large")]  # fmt: skip
HEAD = "TIME_PERIOD,INDICATOR,region,sector,size"


@pytest.fixture
def template(tmp_path) -> Path:
    path = tmp_path / "cells.csv"
    path.write_text("\n".join([HEAD, *(",".join(row) for row in ROWS)]) + "\n")
    return path


def firms(n: int = 60, **more) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    out = {"region": ["E1", "E2", "W1", "W2"], "sector": ["a", "b"], "size": ["small", "large"]}
    made = {name: rng.choice(codes, n) for name, codes in out.items()}
    return made | {"turnover": np.ceil(np.exp(rng.normal(5, 1.6, n))), **more}


BY = {"region": REGIONS, "sector": None, "size": None}


def test_tables_and_margins_are_found(template):
    found = Template.read(template)
    assert found.totals == {"region": "_T", "sector": "_T", "size": "_T"}
    assert [(t.dimensions, len(t.codes)) for t in found.tables] == [
        (("region", "sector"), 15), (("region", "size"), 9),
    ]  # fmt: skip
    assert found.tables[1].lines.tolist() == [2, 5, 8, 11, 14, 17, 18, 19, 20]  # the margins of both are shared


def test_only_listed_cells_are_published_and_all_are_known(template):
    parts = tabulate_template(firms(), BY, Template.read(template), {"turnover": "turnover"})
    found = Publication.of(parts).apply(cg.PPercent(10), cg.MinFrequency(3, percent=10))
    assert [part.name for part in found.table.parts] == ["region by sector 2023", "region by size 2023"]
    assert len(found.table.parts[0].cells) == 15
    west = found.table.cell({"region": "W1"})  # not listed: East and West are, and the leaves of the East
    assert found.table.weights[west] == 0
    release = cg.suppress(found, method="heuristic", rounds=2)
    assert release.audit().safe
    shown = release.tables["region by sector 2023"].columns()
    assert len(shown["value"]) == 15
    assert "W1" not in shown["region"]


def test_what_unpublished_cells_give_away_is_seen(tmp_path):
    # North = N1 + N2, of which N2 is not listed: who sees North and N1 knows N2, the only one of its kind
    path = tmp_path / "cells.csv"
    path.write_text("region\n_T\nN1\nS1\n")
    data = {"region": ["N1"] * 5 + ["N2"] + ["S1"] * 5, "x": [10, 12, 9, 11, 10, 50, 8, 9, 9, 8, 7]}
    parts = tabulate_template(data, {"region": None}, Template.read(path), {"x": "x"})
    found = Publication.of(parts).apply(cg.MinFrequency(3, percent=10))
    assert found.table.label(int(found.table.sensitive_cells[0])) == "(region=N2)"
    release = cg.suppress(found, method="heuristic", rounds=1)
    assert release.audit().safe
    assert "withheld" in list(release.tables["region"].columns()["status"])


def test_periods_are_apart(tmp_path):
    path = tmp_path / "cells.csv"
    rows = [",".join((year, *row[1:])) for year in ("2022", "2023") for row in ROWS]
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    rng = np.random.default_rng(3)
    data = firms(90, TIME_PERIOD=rng.choice(["2022", "2023"], 90))
    parts = tabulate_template(data, BY, Template.read(path), {"turnover": "turnover"})
    found = Publication.of(parts)
    assert len(found.clusters) == 2
    with pytest.raises(CellguardError, match="TIME_PERIOD"):
        tabulate_template(firms(), BY, Template.read(path), {"turnover": "turnover"})


def test_rows_that_fit_no_table_are_told_with_their_lines(template):
    lines = template.read_text().splitlines()
    lines[3] = "2023,turnover,_T,bb,_T"
    lines += ["2023,turnover,Est,a,_T", "2023,turnover,East,_T,tiny"]
    template.write_text("\n".join(lines) + "\n")
    with pytest.raises(PublicationError) as caught:
        tabulate_template(firms(), BY, Template.read(template), {"turnover": "turnover"})
    told = [m.removeprefix("cells.csv: ") for m in caught.value.mistakes]
    assert told == [
        "line 21: fits no table: 'region' has no code 'Est'.", "line 4: fits no table: 'sector' has no code 'bb'.",
        "line 22: fits no table: 'size' has no code 'tiny'.",
    ]  # fmt: skip


def test_mistakes_in_the_file_itself(template):
    with pytest.raises(CellguardError, match="line 2: there is no indicator 'turnover'") as caught:
        tabulate_template(firms(), BY, Template.read(template), {"turnovers": "turnover", "y": None})
    assert "did you mean 'turnovers'" in str(caught.value.hint)
    lines = template.read_text().splitlines()
    template.write_text("\n".join([*lines, lines[1], "2023,turnover,,a,_T"]) + "\n")
    with pytest.raises(PublicationError) as caught:
        Template.read(template)
    assert [m.split(": ")[1] for m in caught.value.mistakes] == ["line 22", "line 21"]
    with pytest.raises(CellguardError, match="column 'size' is not a dimension"):
        Template.read(template, dimensions=["region", "sector"])

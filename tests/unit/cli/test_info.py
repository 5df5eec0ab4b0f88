import json

import numpy as np
import pytest

from cellguard.cli import main
from cellguard.cli.commands.tables.info import collect_facts
from cellguard.model.table import Table

# castro2012 table 1, under the names of the files: cells, sensitive cells, relations
DIMENSIONS = {
    "targus": (162, 13, 63),
    "hie1372d": (637, 50, 525),
    "table7": (624, 17, 230),
    "hie1327d": (1183, 75, 1443),
    "table8": (1271, 3, 72),
    "table1": (1584, 146, 510),
    "hier13": (2020, 112, 3313),
    "hier133a": (2197, 108, 3549),
    "toysarah": (2890, 376, 1649),
    "hier16": (3564, 224, 5484),
    "hier163a": (4096, 224, 5376),
    "table3": (4992, 517, 2464),
    "two5in6": (5681, 720, 9629),
    "ninenew": (6546, 858, 7340),
    "osorio": (10201, 7, 202),
    "nine5d": (10733, 1661, 17295),
    "cbs": (11163, 2467, 244),
}


@pytest.mark.parametrize("name", DIMENSIONS)
def test_csplib_has_the_dimensions_of_castro2012(name, csplib, capsys):
    assert main(["info", str(csplib(name)), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["cells"], facts["sensitive"], facts["relations"]) == DIMENSIONS[name]
    assert facts["rank"] + facts["degrees_of_freedom"] == facts["cells"]


@pytest.mark.parametrize("name", ["targus", "hie1372d", "table7"])
def test_rank_is_the_dense_rank(name, csplib):
    table = Table.read(csplib(name))
    assert collect_facts(table)["rank"] == np.linalg.matrix_rank(table.relations.toarray())


def small(**changes):
    given = {"sensitive": [0], "lower": [4], "upper": [6]} | changes
    return Table.from_equations([20, 50, 70, 30, 40], [[2, 0, 1], [2, 3, 4]], **given)


def test_facts_of_a_small_table():
    facts = collect_facts(small())
    assert facts["rank"] == 2
    assert facts["degrees_of_freedom"] == 3
    assert facts["components"] == 1
    assert facts["nonzeros"] == 6
    assert facts["levels"]["lower"] == {"cells": 1, "least_share": 0.2, "median_share": 0.2, "most_share": 0.2}
    assert facts["levels"]["sliding"] == {"cells": 0}
    assert facts["problems"] == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"fixed": [1, 2], "lower": 0, "upper": 0}, "disclosed by relations and fixed cells"),
        ({"lower": 0, "upper": 0}, "without any level"),
        ({"lb": [20, 0, 0, 0, 0], "ub": [20, 99, 99, 99, 99], "lower": 0, "upper": 0}, "already known exactly"),
        ({"sensitive": [], "lower": 0, "upper": 0}, "nothing to protect"),
    ],
)
def test_what_is_wrong(changes, problem):
    assert any(problem in text for text in collect_facts(small(**changes))["problems"])


def test_cells_in_no_relation():
    table = Table.from_equations([1, 2, 3, 9], [[2, 0, 1]], sensitive=[0], upper=1)
    assert collect_facts(table)["problems"] == ["1 cells are in no relation; the first is cell 3."]


def test_info_for_people(tmp_path, capsys):
    path = tmp_path / "small.jj"
    small().write(path)
    assert main(["info", str(path)]) == 0
    out = capsys.readouterr().out
    assert "degrees of freedom" in out
    assert "lower: 1 cells" in out
    assert "of the value" not in out  # the share that a level is would tell the rule's parameter
    assert main(["info", str(path), "--internal"]) == 0
    out = capsys.readouterr().out
    assert "20% to 20% of the value" in out

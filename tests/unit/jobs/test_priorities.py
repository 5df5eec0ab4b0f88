"""Cells that cost more, headline figures, and figures that were published before."""

import numpy as np
import pytest

from builders import REGIONS, write_columns, write_job
from cellguard.exceptions import CellguardError, InputError
from cellguard.jobs import read_job
from cellguard.jobs.definition.read import JobError
from cellguard.jobs.flags import flag_job
from cellguard.jobs.runner import run
from cellguard.jobs.steps import list_inputs
from cellguard.jobs.tables import tabulate_job

TABLES = [
    {"name": "by sector", "dimensions": ["region", "sector"]},
    {"name": "by size", "dimensions": ["region", "size"], "priority": 2},
    {"name": "coasts", "dimensions": ["region", "sector"],
     "hierarchies": {"region": {"Coast": ["E1", "W1"], "Inland": ["E2", "W2"]}}},
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(5)
    n = 70
    columns = {
        "region": rng.choice(["E1", "E2", "W1", "W2"], n).tolist(), "sector": rng.choice(["a", "b", "c"], n).tolist(),
        "size": rng.choice(["small", "large"], n).tolist(), "x": np.ceil(np.exp(rng.normal(5, 1.9, n))).tolist(),
    }  # fmt: skip
    write_columns(tmp_path / "firms.csv", columns)
    return tmp_path


def job(folder, *priorities, tables=TABLES, **method):
    return write_job(
        folder, "sector", "size", insiders=False, data={"file": "firms.csv", "value": "x"},
        dimensions={"region": {"hierarchy": REGIONS}}, tables=tables, priorities=list(priorities), method=method,
    )  # fmt: skip


def made(folder, *priorities, **method):
    file = read_job(job(folder, *priorities, **(method or {"name": "suppress", "weights": "unit"})))
    return file, flag_job(tabulate_job(file), file)


def test_margins_that_should_stay_whole_cost_more(folder):
    _, plain = made(folder)
    margins = {"only": {"sector": "Total", "size": "Total"}, "priority": 10}
    _, table = made(folder, margins, {"tables": ["by size"], "only": {"region": ["E1"]}, "priority": 3})
    ratio = table.weights / plain.weights
    margin = table.cell({"region": "E2"})
    assert (ratio[margin], ratio[table.cell({"region": "E2", "sector": "a"})]) == (10, 1)
    assert ratio[table.cell({"region": "E1"})] == 30
    assert ratio[table.cell({"region": "E1", "size": "small"})] == 3
    # a region is in three tables, one of which counts twice
    assert plain.weights[margin] == 4


def test_headline_figures_are_published_whatever_it_costs(folder):
    file, _ = made(folder)
    withheld = run(file).release
    headline = int(np.flatnonzero(withheld.secondary)[0])
    codes = {d: c[0] for d, c in withheld.table.cell_codes([headline]).items()}
    file, table = made(folder, {"only": codes, "publish": True})
    assert table.fixed[headline]
    outcome = run(file, again=True)
    assert outcome.audit.safe
    assert not outcome.release.suppressed[headline]


def test_a_headline_figure_that_is_sensitive_is_refused(folder):
    _, table = made(folder)
    codes = {d: c[0] for d, c in table.cell_codes([int(table.sensitive_cells[0])]).items()}
    with pytest.raises(InputError, match="must be published and is sensitive"):
        made(folder, {"only": codes, "publish": True})


def test_what_was_published_before_is_published_again(folder):
    _, table = made(folder)
    free = np.flatnonzero(~table.sensitive & ~table.fixed & (table.values > 0))[:3]
    codes = table.cell_codes(free)
    press = {"region": codes["region"], "sector": codes["sector"], "value": [*table.values[free[:2]].tolist(), ""]}
    write_columns(folder / "press.csv", press)
    before = {"published": "press.csv"}
    file, again = made(folder, before)
    assert again.fixed[free].tolist() == [True, True, False]
    assert folder / "press.csv" in list_inputs(file)
    first, second, _ = press["value"]
    write_columns(folder / "press.csv", press | {"value": [first, second + 1, ""]})
    with pytest.raises(InputError, match=r"press.csv: line 3: \(.*\) was published with another value") as caught:
        made(folder, before)
    assert str(second) not in str(caught.value)
    write_columns(folder / "press.csv", {"region": ["Est"], "sector": ["a"], "value": [3]})
    with pytest.raises(CellguardError, match=r"press.csv: line 2: no table has the code 'Est' of 'region'"):
        made(folder, before)


def test_priorities_count_for_methods_with_weights_of_their_own(folder):
    _, table = made(folder, {"only": {"sector": "a"}, "priority": 1000}, name="adjust")
    one, other = table.cell({"region": "West", "sector": "a"}), table.cell({"region": "West", "sector": "b"})
    inverse = 1 / table.values[[one, other]]
    assert table.weights[one] / table.weights[other] == pytest.approx(1000 * inverse[0] / inverse[1])


def test_what_is_wrong_in_priorities_is_told_with_the_rest(folder):
    wrong = [{"only": {"regio": "E1"}, "priority": 2}, {"tables": ["by sizes"]}, {"published": "nowhere.csv"}]
    tables = [*TABLES, {"dimensions": ["size"], "hierarchies": {"region": "r.hrc"}}]
    path = job(folder, *wrong, tables=tables)
    with pytest.raises(JobError) as caught:
        read_job(path)
    told = str(caught.value)
    for part in (
        "there is no dimension 'regio'", "there is no table 'by sizes'", "one of priority, publish and published",
        "nowhere.csv: no such file", "'region' is not a dimension of this table",
    ):  # fmt: skip
        assert part in told

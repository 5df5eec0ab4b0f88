"""Cells that cost more, headline figures, and figures that were published before."""

import csv

import numpy as np
import pytest

from cellguard.exceptions import CellguardError, InputError
from cellguard.publish import read_job
from cellguard.publish.read import JobError
from cellguard.publish.run import run
from cellguard.publish.steps import flagged, inputs, tabulated

JOB = """\
name = "firms"
seed = 1
insiders = false
[data]
file = "firms.csv"
value = "x"
[dimensions.region]
hierarchy = {{East = ["E1", "E2"], West = ["W1", "W2"]}}
[dimensions.sector]
[dimensions.size]
[[tables]]
name = "by sector"
dimensions = ["region", "sector"]
[[tables]]
name = "by size"
dimensions = ["region", "size"]
priority = 2
[[tables]]
name = "coasts"
dimensions = ["region", "sector"]
hierarchies = {{region = {{Coast = ["E1", "W1"], Inland = ["E2", "W2"]}}}}
{priorities}
[[rules]]
rule = "p_percent"
p = 10
[method]
name = "{method}"
weights = "unit"
[output]
folder = "out"
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(5)
    n = 70
    columns = {
        "region": rng.choice(["E1", "E2", "W1", "W2"], n).tolist(), "sector": rng.choice(["a", "b", "c"], n).tolist(),
        "size": rng.choice(["small", "large"], n).tolist(), "x": np.ceil(np.exp(rng.normal(5, 1.9, n))).tolist(),
    }  # fmt: skip
    write(tmp_path / "firms.csv", list(columns), zip(*columns.values(), strict=True))
    return tmp_path


def write(path, head, rows) -> None:
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(head)
        writer.writerows(rows)


def made(folder, priorities: str = "", method: str = "suppress"):
    (folder / "job.toml").write_text(JOB.format(priorities=priorities, method=method))
    file = read_job(folder / "job.toml")
    return file, flagged(tabulated(file), file)


def test_margins_that_should_stay_whole_cost_more(folder):
    _, plain = made(folder)
    text = '[[priorities]]\nonly = {sector = "Total", size = "Total"}\npriority = 10\n'
    text += '[[priorities]]\ntables = ["by size"]\nonly = {region = ["E1"]}\npriority = 3\n'
    _, table = made(folder, text)
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
    only = ", ".join(f'{d} = "{code}"' for d, code in codes.items())
    file, table = made(folder, f"[[priorities]]\nonly = {{{only}}}\npublish = true\n")
    assert table.fixed[headline]
    outcome = run(file)
    assert outcome.audit.safe
    assert not outcome.release.suppressed[headline]


def test_a_headline_figure_that_is_sensitive_is_refused(folder):
    _, table = made(folder)
    codes = {d: c[0] for d, c in table.cell_codes([int(table.sensitive_cells[0])]).items()}
    only = ", ".join(f'{d} = "{code}"' for d, code in codes.items())
    with pytest.raises(InputError, match="must be published and is sensitive"):
        made(folder, f"[[priorities]]\nonly = {{{only}}}\npublish = true\n")


def test_what_was_published_before_is_published_again(folder):
    _, table = made(folder)
    free = np.flatnonzero(~table.sensitive & ~table.fixed & (table.values > 0))[:3]
    codes = table.cell_codes(free)
    rows = [(codes["region"][k], codes["sector"][k], table.values[free[k]] if k < 2 else "") for k in range(3)]
    write(folder / "press.csv", ["region", "sector", "value"], rows)
    text = '[[priorities]]\npublished = "press.csv"\n'
    file, again = made(folder, text)
    assert again.fixed[free].tolist() == [True, True, False]
    assert folder / "press.csv" in inputs(file)
    revised = [*rows[:1], (*rows[1][:2], rows[1][2] + 1)]
    write(folder / "press.csv", ["region", "sector", "value"], revised)
    with pytest.raises(InputError, match=r"press.csv: line 3: \(.*\) was published with another value") as caught:
        made(folder, text)
    assert str(rows[1][2]) not in str(caught.value)
    write(folder / "press.csv", ["region", "sector", "value"], [("Est", "a", 3)])
    with pytest.raises(CellguardError, match=r"press.csv: line 2: no table has the code 'Est' of 'region'"):
        made(folder, text)


def test_priorities_count_for_methods_with_weights_of_their_own(folder):
    text = '[[priorities]]\nonly = {sector = "a"}\npriority = 1000\n'
    (folder / "job.toml").write_text(JOB.format(priorities=text, method="adjust").replace('weights = "unit"\n', ""))
    file = read_job(folder / "job.toml")
    table = flagged(tabulated(file), file)
    one, other = table.cell({"region": "West", "sector": "a"}), table.cell({"region": "West", "sector": "b"})
    inverse = 1 / table.values[[one, other]]
    assert table.weights[one] / table.weights[other] == pytest.approx(1000 * inverse[0] / inverse[1])


def test_what_is_wrong_in_priorities_is_told_with_the_rest(folder):
    text = '[[priorities]]\nonly = {regio = "E1"}\npriority = 2\n'
    text += '[[priorities]]\ntables = ["by sizes"]\n[[priorities]]\npublished = "nowhere.csv"\n'
    text = text.replace(
        "[[priorities]]\nonly",
        '[[tables]]\ndimensions = ["size"]\nhierarchies = {region = "r.hrc"}\n[[priorities]]\nonly',
    )
    (folder / "job.toml").write_text(JOB.format(priorities=text, method="suppress"))
    with pytest.raises(JobError) as caught:
        read_job(folder / "job.toml")
    told = str(caught.value)
    for part in (
        "there is no dimension 'regio'", "there is no table 'by sizes'", "one of priority, publish and published",
        "nowhere.csv: no such file", "'region' is no dimension of this table",
    ):  # fmt: skip
        assert part in told

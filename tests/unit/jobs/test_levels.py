"""Hierarchies of a job: by digits, from columns that nest, from a correspondence file."""

import numpy as np
import pytest

from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.runner import run
from cellguard.jobs.tables import tabulate_job


def test_levels_by_digits_and_records_that_stand_alone(tmp_path):
    lines = [f"{11 + 10 * (i % 3) + i % 2};{i + 1},5;{'G' if i % 4 == 0 else ''}" for i in range(60)]
    (tmp_path / "d.csv").write_text("\n".join(["nace;umsatz;gruppe", *lines]))
    (tmp_path / "job.toml").write_text(
        'nothing_sensitive = "publish"\n[data]\nfile = "d.csv"\nvalue = "umsatz"\nholding = "gruppe"\nstandalone = true\ndecimal = ","\n'
        '[dimensions.nace]\ndigits = [1, 1]\ntotal = "all"\n[[rules]]\nrule = "min_frequency"\nn = 3\n'
    )
    table = run(read_job(tmp_path / "job.toml")).release.table
    assert table.codes[0] == ("all", "1", "11", "12", "2", "21", "22", "3", "31", "32")
    assert table.values[0] == sum(i + 1.5 for i in range(60))
    assert table.counts[0] == 46  # fifteen records of one holding, and the others
    assert table.counts[1] == 16


def nested_office(folder, **changes):
    tree = {"a1": "A", "a2": "A", "b1": "B", "b2": "B", "b3": "B"} | changes
    rng = np.random.default_rng(5)
    fine = rng.choice(list(tree), 300)
    lines = [f"{tree[f]},{f},{'xyz'[i % 3]},{rng.integers(1, 900)}" for i, f in enumerate(fine)]
    (folder / "firms.csv").write_text("\n".join(["A10,A88,size,turnover", *lines]) + "\n")
    (folder / "job.toml").write_text(
        '[data]\nfile = "firms.csv"\nvalue = "turnover"\n[dimensions.A88]\nlevels = ["A10", "A88"]\n'
        '[dimensions.size]\n[[rules]]\nrule = "p_percent"\np = 10\n'
    )
    return folder / "job.toml"


def test_columns_that_nest_are_one_hierarchy(tmp_path):
    table = tabulate_job(read_job(nested_office(tmp_path)))
    expected = ("Total", "A", "a1", "a2", "B", "b1", "b2", "b3")
    assert table.codes[0] == expected
    lines = (tmp_path / "firms.csv").read_text().splitlines()
    (tmp_path / "firms.csv").write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    again = tabulate_job(read_job(tmp_path / "job.toml"))
    assert again.codes == table.codes
    assert np.array_equal(again.values, table.values)


def test_columns_that_do_not_nest_are_told(tmp_path, capsys):
    job = nested_office(tmp_path)
    with (tmp_path / "firms.csv").open("a") as stream:
        stream.write("A,b1,x,5\n")
    assert main(["protect", str(job)]) == 1
    shown = capsys.readouterr().err
    assert "levels A10, A88: code 'b1' of 'A88' stands under two parents, 'A' of 'A10' and 'B' of 'A10'" in shown


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('["A10", "A88"]', '["A88", "A10"]', "the last of them must be the dimension itself, 'A88'"),
        ('["A10", "A88"]', '["A11", "A88"]', "the data have no column 'A11'"),
        ('["A10", "A88"]', '["A88"]', "may not be empty or shorter than 2"),
        ("[dimensions.size]", "digits = [1, 1]\n[dimensions.size]", "the codes have a hierarchy already"),
        ("[dimensions.size]", "[dimensions.A10]\n[dimensions.size]", "'A10' is a dimension too"),
    ],
)
def test_levels_that_make_no_sense_are_told(tmp_path, capsys, old, new, says):
    job = nested_office(tmp_path)
    job.write_text(job.read_text().replace(old, new))
    assert main(["protect", str(job)]) == 1
    assert says in capsys.readouterr().err


def test_levels_of_a_correspondence_file(tmp_path):
    job = nested_office(tmp_path)
    rows = ["1,A,a1", "2,A,a2", "3,B,b1", "4,B,b2", "5,B,b3", "6,C,c1"]
    (tmp_path / "corr.csv").write_text("\n".join(["no,group,code88", *rows]) + "\n")
    text = job.read_text().replace('levels = ["A10", "A88"]', 'hierarchy = "corr.csv"\nlevels = ["group", "code88"]')
    job.write_text(text)
    assert tabulate_job(read_job(job)).codes[0] == ("Total", "A", "a1", "a2", "B", "b1", "b2", "b3", "C", "c1")

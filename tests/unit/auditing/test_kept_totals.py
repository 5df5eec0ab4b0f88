"""Totals that a rounding kept are known to half a base: who audits the written file must be told, and is."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cellguard as cg
from builders import key, write_job
from cellguard.cli import main
from cellguard.exceptions import ReleaseError
from cellguard.jobs import read_job
from cellguard.jobs.runner import run


@pytest.fixture
def table():
    """A total of 23 whose part of 10 everybody knows: what is known of the total is known of the other part."""
    t = cg.Table.from_leaves({"part": ["a", "b"]}, [13.0, 10.0], sensitive=[1], lower=2, upper=2)
    return t.with_(fixed=np.array([False, False, True]))


@pytest.fixture
def files(table, tmp_path):
    table.write(tmp_path / "table.csv")
    (tmp_path / "release.csv").write_text("part,value\nTotal,25\na,15\nb,10\n")
    return [str(tmp_path / "table.csv"), str(tmp_path / "release.csv"), "--base", "5"]


def test_a_kept_total_tells_more(table, files, tmp_path, capsys):
    plain = cg.read_release(table, files[1], base=5)
    assert plain.audit().safe
    kept = cg.read_release(table, files[1], base=5, keep=["total"])
    assert not kept.audit().safe
    assert [x[0] for x in kept.published_bounds()] == [23, 27]
    assert main(["audit", *files]) == 0
    assert main(["audit", *files, "--keep", "total"]) == 2
    assert main(["verify", *files, "--keep", "total"]) == 2
    capsys.readouterr()


def test_a_total_that_is_not_at_its_nearest_multiple_was_not_kept(table, tmp_path):
    (tmp_path / "release.csv").write_text("part,value\nTotal,20\na,10\nb,10\n")
    with pytest.raises(ReleaseError, match="kept, but is not the multiple nearest"):
        cg.read_release(table, tmp_path / "release.csv", base=5, keep=["total"])


def test_what_lies_in_the_middle_goes_up_and_everybody_knows_it():
    t = cg.Table.from_leaves({"part": ["a", "b"]}, [13, 9], integer=True)
    low, high = cg.round(t, 4, keep=["total"], time_limit_s=5).published_bounds()
    assert (low[0], high[0]) == (22, 25)


def test_the_public_manifest_tells_what_readers_know_and_the_audit_uses_it(tmp_path, capsys):
    rng = np.random.default_rng(3)
    lines = [f"{rng.choice(list('NSW'))},{rng.choice(list('ABC'))},{int(rng.lognormal(8, 1.4))}" for _ in range(60)]
    (tmp_path / "firms.csv").write_text("\n".join(["region,sector,turnover", *lines]) + "\n")
    job = write_job(
        tmp_path, "region", "sector", method={"name": "round", "base": 50000, "keep": ["total", ["region"]]}
    )
    outcome = run(read_job(job))
    public = tmp_path / "out" / "public"
    told = json.loads((public / "manifest.json").read_text())["published_with"]
    assert told == {"base": 50000.0, "step": outcome.release.step, "keep": ["total", ["region"]]}
    assert "at its nearest multiple" in (public / "report.html").read_text()
    table = outcome.release.table
    plain = table.with_(lb=np.zeros(table.n_cells), ub=np.full(table.n_cells, np.inf))
    again = cg.read_release(plain, public / "small.csv")
    margin = (table.coordinates[:, 1] == 0) & ~table.sensitive
    low, high = again.published_bounds()
    assert again.method == "round"
    assert ((high - low)[margin] <= 50000).all()
    assert (high - low)[~margin].max() > 50000
    assert main(["audit", str(tmp_path / "job.toml"), str(public / "small.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["method"] == "round"


def test_contributors_who_are_planned_for_elsewhere_are_asked_about_every_cell():
    """A contributor had nothing near to be kept from by distance, and ranges everywhere: the audit crashed."""
    places = [
        *("01", "01", "21", "00", "01", "11", "20", "11", "01", "11"),
        *("20", "00", "01", "10", "11", "10", "21", "01", "11"),
    ]
    who = [0, 0, 0, 2, 18, 14, 2, 11, 12, 14, 5, 3, 14, 13, 6, 8, 9, 7, 4]
    records = {"r": [p[0] for p in places], "s": [p[1] for p in places], "who": [f"f{k}" for k in who]}
    table = cg.with_insiders(cg.tabulate(records, ["r", "s"], holding="who").apply(cg.MinFrequency(3)))
    release = cg.adjust(table, norm="l1", senses="lower", surplus=2.0, keep=[3], key=key(1))
    assert release.published
    assert release.audit().safe

"""Adjustment in jobs: its options, what it keeps, what it does when senses contradict each other."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.cli import main
from cellguard.exceptions import UnknownCodeError
from cellguard.jobs import read_job
from cellguard.jobs.runner import run


def adjusted(office, *options, extra=""):
    text = (office / "job.toml").read_text()
    method = "\n".join(['name = "adjust"', *options])
    text = text.replace('name = "suppress"\nrounds = 2', method)
    (office / "job.toml").write_text(text + extra)
    return office / "job.toml"


def test_words_are_known_in_any_case(office, capsys):
    path = adjusted(office, 'norm = "L2"', 'senses = "Key"')
    assert read_job(path).job.method.collect_options()["norm"] == "l2"
    table = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    assert cg.adjust(table, norm="L2", key=key(1)).options["norm"] == "l2"
    assert cg.suppress(table, method="Exact").published
    table.write(office / "table.jj")
    assert main(["adjust", str(office / "table.jj"), "--norm", "LINF", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["norm"] == "linf"
    with pytest.raises(UnknownCodeError, match="'L3' is not known"):
        cg.adjust(table, norm="L3")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ('senses = "optimal"', "gap = 0.01"),
        ('senses = "lower"', 'repair = "senses"'),
        ('repair = "relations"',),
        ('repair = "none"', "surplus = 0.5"),
        ('norm = "l2"', "whole = false"),
        ('keep = ["total"]',),
    ],
)
def test_options_are_taken_and_recorded(office, options):
    outcome = run(read_job(adjusted(office, *options)))
    assert outcome.audit.safe
    manifest = json.loads((office / "out" / "internal" / "manifest.json").read_text())
    assert manifest["options"]["surplus"] == (0.5 if "surplus = 0.5" in options else 1.0)
    assert cg.Key.read(office / "out" / "internal" / manifest["key"]) == outcome.release.options["key"]
    assert not {"seed", "key"} & json.loads((office / "out" / "public" / "manifest.json").read_text()).keys()


def test_kept_margins_stay_in_a_job(office):
    outcome = run(read_job(adjusted(office, 'keep = ["region"]')))
    table = outcome.release.table
    place = table.dimensions.index("region")
    margin = (np.delete(table.coordinates, place, axis=1) == 0).all(axis=1) & ~table.sensitive
    assert margin.sum() > 1
    assert np.allclose(outcome.release.values[margin], table.values[margin])


def test_a_job_draws_a_key_and_keeps_it(office):
    path = adjusted(office)
    first, second = (run(read_job(path), fresh=True, again=True).release for _ in range(2))
    assert first.options["key"] != second.options["key"]


def test_unknown_margins_are_told_before_any_work(office, capsys):
    assert main(["protect", str(adjusted(office, 'keep = ["regio"]'))]) == 1
    assert "there is no dimension 'regio'" in capsys.readouterr().err


def test_flips_are_told(office, capsys):
    path = adjusted(office, 'senses = "upper"', 'keep = ["total"]')
    assert main(["protect", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    if "flipped" in shown:
        assert "senses were flipped" in shown["explanation"]


def test_decimals_are_attacked_in_a_job(office):
    outcome = run(read_job(adjusted(office, extra='\n[attack]\nscenario = "decimals"\nreplications = 2\n')))
    assert outcome.attack.scenario == "decimals"
    assert outcome.attack.distances.shape[0] == 2

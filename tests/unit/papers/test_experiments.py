"""Experiments: kept results, resumption, skipped instances, and the comparison with the papers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.papers import EXPERIMENTS, Experiment, Settings, get_experiment, reproduce
from cellguard.papers._framework import Unit, compare_with_paper, read_paper_figures


def counting(log: list[str], fail_at: str = "") -> Experiment:
    def run(work) -> dict[str, object]:
        if work["n"] == fail_at:
            raise KeyboardInterrupt
        log.append(work["n"])
        return {"value": len(work["n"])}

    return Experiment(
        name="counting",
        units=lambda _: ([Unit(key=n, work={"n": n}) for n in ("a", "bb", "ccc")], ["d: skipped, file not found"]),
        run=run,
        rows=lambda done: [compare_with_paper(work["n"], found["value"], 1.0) for work, found in done],
    )


def test_a_second_run_goes_on_from_what_is_kept(tmp_path: Path) -> None:
    log: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        reproduce(counting(log, fail_at="ccc"), Settings(), tmp_path)
    assert log == ["a", "bb"]
    with (tmp_path / "counting.jsonl").open("a") as stream:
        stream.write('\n{"key": "ccc", "resu')  # the process was killed while it wrote
    report = reproduce(counting(log), Settings(), tmp_path)
    assert log == ["a", "bb", "ccc"]
    assert [r["ours"] for r in report.rows] == [1, 2, 3]
    assert report.computed == 1
    assert report.skipped == ["d: skipped, file not found"]
    assert reproduce(counting(log), Settings(), tmp_path).computed == 0


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_experiment_says_what_it_is(name: str) -> None:
    found = get_experiment(name)
    assert found.name == name
    assert EXPERIMENTS[name].summary.endswith(".")
    assert re.fullmatch(r"\d+ (s|min|h)", EXPERIMENTS[name].time)


def test_the_help_lists_every_experiment_with_its_time(capsys) -> None:
    assert main(["reproduce", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name, entry in EXPERIMENTS.items():
        assert f"{name} ({entry.time})" in shown, name


def test_published_figures_are_there() -> None:
    assert len(read_paper_figures("castro2012-tables2to9")) == 200
    assert all(len(r["distribution"]) == 8 for r in read_paper_figures("castro2012-tables2to9"))


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(UnknownCodeError, match="castro2004-table3"):
        get_experiment("castro2004-table33")
    with pytest.raises(InputError):
        reproduce(get_experiment("castro2004-table3"), Settings(instances=("nowhere",)), Path("unused"))


def test_missing_instances_are_skipped_plainly(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("CELLGUARD_CSPLIB", str(tmp_path))
    assert main(["reproduce", "castro2004-table3", "--out", str(tmp_path / "kept"), "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["rows"] == []
    assert "hier13: skipped, file not found" in printed["skipped"]


def test_lines_tell_what_is_left(capfd, monkeypatch) -> None:
    from cellguard.cli.commands.papers import reproduce as verb

    now = iter([0.0, 0.0, 3.0, 10.0, 20.0])
    monkeypatch.setattr(verb.time, "monotonic", lambda: next(now))
    lines = verb._Lines("counting")
    for done in range(4):
        lines(done, 3, f"unit {done}")
    told = capfd.readouterr().err.splitlines()
    assert told == ["counting: 0 of 3 done; now unit 0", "counting: 2 of 3 done, about 5 s left; now unit 2"]


def test_adjustment_is_compared_with_the_plain_program(tmp_path: Path) -> None:
    """Both solve baena2018 (6): what one has found is not below what the other has proven."""
    from cellguard.methods.adjust.adjust import PLAIN, adjust
    from cellguard.papers.baena2018 import _generate_table, solve_baena2018_plainly

    for levels in ("symmetric", "asymmetric"):
        table = _generate_table("small", levels, 1)
        ours = adjust(table, norm="l1", seed=1, **{**PLAIN, "senses": "optimal", "gap": 1e-3})
        plain = solve_baena2018_plainly(table, gap=1e-3, time_limit_s=60.0)
        assert plain["status"] == "optimal"
        assert ours.status.value == "optimal"
        assert ours.objective >= plain["objective"] * (1 - 1.01e-3)
        assert plain["objective"] >= ours.bound * (1 - 1e-9)
    report = reproduce(get_experiment("baena2018-table2"), Settings(instances=("small",), time_limit_s=30.0), tmp_path)
    assert {row["method"] for row in report.rows} == {"cta", "highs", "csp"}

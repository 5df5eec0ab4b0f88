"""Jobs with a ledger: releases of several periods are recorded with their content and protected together."""

import json
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.outputs.content import LedgerQuery, check_ledger, load_linked, store_content
from cellguard.jobs.outputs.ledger import FILE, add_to_ledger, read_entries
from cellguard.jobs.runner import run

JOB = """\
name = "quarterly"
insiders = false
nothing_sensitive = "publish"

[data]
table = "cells.csv"

[method]
name = "suppress"
rounds = 2

[ledger]
folder = ".."
period = "{period}"
office = "stat"
additive = true
{more}
[output]
folder = "out"
"""


def write_period(folder: Path, period: str, values, *, sensitive=(1,), more: str = "") -> Path:
    place = folder / f"job-{period}"
    place.mkdir(exist_ok=True)
    levels = {"sensitive": list(sensitive), "lower": 4.0, "upper": 4.0} if sensitive else {}
    cg.Table.from_leaves({"region": list("ABCD")}, np.array(values, float), **levels).write(place / "cells.csv")
    (place / "job.toml").write_text(JOB.format(period=period, more=more))
    return place / "job.toml"


def list_withheld(outcome):
    return np.flatnonzero(outcome.release.suppressed).tolist()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Four quarters, of which the first and second have a sensitive cell, are in the ledger."""
    folder = tmp_path_factory.mktemp("office")
    for k in range(1, 5):
        sensitive = (1,) if k < 3 else ()
        run(read_job(write_period(folder, f"2025Q{k}", [10 + k, 20 + k, 30 + k, 40 + k], sensitive=sensitive)))
    return folder


@pytest.fixture
def year(made, tmp_path):
    """Return a copy of the office of its own."""
    return Path(shutil.copytree(made, tmp_path / "office"))


def test_a_year_is_protected_together_with_its_quarters(year):
    values = np.sum([[10 + k, 20 + k, 30 + k, 40 + k] for k in range(1, 5)], axis=0)
    path = write_period(year, "2025", values)
    outcome = run(read_job(path))
    assert not outcome.unsafe
    entries, whole = read_entries(year)
    assert whole
    assert [e["period"] for e in entries] == ["2025Q1", "2025Q2", "2025Q3", "2025Q4", "2025"]
    report = (path.parent / "out" / "internal" / "report.html").read_text()
    assert "earlier releases" in report
    assert main(["verify", str(path.parent / "out" / "internal" / "manifest.json"), "--quiet"]) == 0


def test_only_linked_releases_are_read(year):
    found = load_linked(year, LedgerQuery(period="2026Q2", additive=True))
    assert found == []
    assert len(load_linked(year, LedgerQuery(period="2025", additive=True))) == 4
    near = load_linked(year, LedgerQuery(period="2025-Q3", additive=True))
    assert [one.period for one in near] == ["2025Q2", "2025Q3"]  # the preceding one for its pattern
    assert load_linked(year, LedgerQuery(period="2025Q2", population="farms")) == []


def test_what_is_recorded_is_what_was_published_and_truth_is_internal(year):
    (one,) = load_linked(year, LedgerQuery(period="2025Q1", additive=True))
    assert one.published.sum() == 3
    assert np.isfinite(one.values).all()
    internal = year / "ledger.internal"
    assert stat.S_IMODE(internal.stat().st_mode) == 0o700
    for path in internal.iterdir():
        path.unlink()
    (public,) = load_linked(year, LedgerQuery(period="2025Q1", additive=True))
    assert np.isnan(public.values).sum() == 2
    assert public.sensitive.sum() == 2
    values = np.sum([[10 + k, 20 + k, 30 + k, 40 + k] for k in range(1, 5)], axis=0)
    assert run(read_job(write_period(year, "2025", values))).audit.safe  # the attack needs no true value


def test_the_audit_of_the_command_line_reads_the_ledger(year, capsys):
    place = year / "audited"
    place.mkdir()
    values = np.sum([[10 + k, 20 + k, 30 + k, 40 + k] for k in range(1, 5)], axis=0).astype(float)
    table = cg.Table.from_leaves({"region": list("ABCD")}, values, sensitive=[1], lower=4.0, upper=4.0)
    table.write(place / "cells.csv")
    pairs = zip(["Total", *"ABCD"], table.values.tolist(), strict=True)
    lines = [f"{code},{'' if code in 'AC' else value}" for code, value in pairs]
    (place / "release.csv").write_text("region,value\n" + "\n".join(lines) + "\n")
    words = ["audit", str(place / "cells.csv"), str(place / "release.csv"), "--quiet", "--json"]
    assert main(words) == 0
    assert main([*words, "--ledger", str(year), "--period", "2025", "--additive"]) == 2
    capsys.readouterr()


def test_the_ledger_is_listed_shown_and_checked(year, capsys):
    assert main(["ledger", "list", str(year), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [e["period"] for e in listed["entries"]] == ["2025Q1", "2025Q2", "2025Q3", "2025Q4"]
    assert main(["ledger", "show", str(year), "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["withheld"] == 2
    assert main(["ledger", "check", str(year)]) == 0
    assert main(["ledger", "show", str(year), "9"]) == 1
    (next((year / "ledger.content").iterdir())).write_bytes(b"other")
    assert main(["ledger", "check", str(year)]) == 2


def test_derived_figures_of_a_job_are_published_where_they_are_safe(tmp_path):
    run(read_job(write_period(tmp_path, "2025Q1", [10, 20, 30, 40], sensitive=())))
    more = '[[derived]]\nname = "growth"\nkind = "growth"\ndecimals = 1\n'
    path = write_period(tmp_path, "2025Q2", [11, 22, 31, 44], more=more)
    outcome = run(read_job(path))
    lines = (path.parent / "out" / "public" / "derived.csv").read_text().splitlines()
    assert lines[0].split(",") == ["region", "statistic", "status", "decimals", "value"]
    shown = {line.split(",")[0]: line.split(",")[4] for line in lines[1:]}
    withheld = {"ABCD"[k - 1] for k in list_withheld(outcome)}
    assert float(shown["Total"]) == 8.0
    assert all(shown[code] == "" for code in withheld)
    assert all(shown[code] != "" for code in set("ABCD") - withheld)
    assert main(["verify", str(path.parent / "out" / "internal" / "manifest.json"), "--quiet"]) == 0


def record(folder, period, release):
    facts = store_content(folder, cg.EarlierRelease.of(release, period=period))
    add_to_ledger(folder, "released", {"release": period, **facts})


def test_releases_to_which_figures_refer_are_read_too(tmp_path):
    """An index ties its quarter to the base; whoever links one of them needs the other, in both directions."""
    table = cg.Table.from_leaves({"region": list("AB")}, [10.0, 20.0])
    base = cg.suppress(table)
    record(tmp_path, "2020Q1", base)
    index = cg.Derived(name="index", kind="index", period="2020-Q1", decimals=1)
    history = cg.History(period="2025Q1", releases=[cg.EarlierRelease.of(base, period="2020Q1")])
    record(tmp_path, "2025Q1", cg.suppress(table, earlier=history, derived=[index]))
    for period in ("2025Q1", "2025Q2", "2020Q1"):
        found = load_linked(tmp_path, LedgerQuery(period=period))
        assert [one.period for one in found] == ["2020Q1", "2025Q1"]
    assert load_linked(tmp_path, LedgerQuery(period="2024Q1")) == []


def test_sums_that_were_declared_once_stay_declared(year, tmp_path):
    more = 'sums = {"winter" = ["2025Q1", "2025Q4"]}\n'
    values = [10 + 1 + 10 + 4, 20 + 5 + 20, 30 + 5 + 30, 40 + 5 + 40]
    assert not run(read_job(write_period(year, "winter", values, more=more))).unsafe
    found = load_linked(year, LedgerQuery(period="2025Q1", additive=True))
    assert {one.period for one in found} == {"2025Q1", "2025Q4", "winter"}


# ---------------------------------------------------------------------- bad input; nothing is recorded


def run_and_expect(path: Path, folder: Path, message: str):
    before = (folder / FILE).read_bytes()
    with pytest.raises(cg.CellguardError, match=message):
        run(read_job(path))
    assert (folder / FILE).read_bytes() == before
    assert not (path.parent / "out" / "public").exists()


def test_the_ledger_of_another_office_is_refused(year):
    path = write_period(year, "2026Q1", [10, 20, 30, 40])
    path.write_text(path.read_text().replace('"stat"', '"other"'))
    run_and_expect(path, year, "line 1: a release of another office")


def test_a_job_that_forgets_that_periods_add_up_is_refused(year):
    path = write_period(year, "2026Q1", [10, 20, 30, 40])
    path.write_text(path.read_text().replace("additive = true", ""))
    run_and_expect(path, year, r"line 1: 'job-2025Q1/out' says that values of periods add up")


def test_the_same_data_under_another_period_are_refused(year):
    place = year / "job-2025Q1"
    other = place / "other.toml"
    text = (place / "job.toml").read_text().replace('"2025Q1"', '"2031Q1"').replace('"out"', '"out2"')
    other.write_text(text.replace('name = "suppress"\nrounds = 2', 'name = "intervals"'))
    with pytest.raises(cg.InputError, match="cells of this table were published before"):
        run(read_job(other))
    assert not (place / "out2" / "public").exists()


def test_a_broken_chain_is_refused(year, capsys):
    lines = (year / FILE).read_text().splitlines(keepends=True)
    (year / FILE).write_text("".join([lines[0], *lines[2:]]))
    run_and_expect(write_period(year, "2026Q1", [10, 20, 30, 40]), year, "chain of the ledger is broken")
    assert main(["ledger", "check", str(year), "--json"]) == 2
    assert "line 2" in capsys.readouterr().out


def test_content_that_was_changed_is_refused(year):
    for path in (year / "ledger.content").iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    run_and_expect(write_period(year, "2025", [50, 90, 130, 170]), year, "line 1: .* changed after it was recorded")


def test_a_release_changed_after_it_was_recorded_is_found(year):
    manifest = year / "job-2025Q1" / "out" / "internal" / "manifest.json"
    manifest.chmod(0o600)
    manifest.write_text(manifest.read_text() + " ")
    assert any("changed after it was recorded" in text for text in check_ledger(year)[1])


def test_two_different_releases_of_one_period_are_refused(year):
    path = write_period(year, "2025Q1", [99, 21, 31, 41])
    text = path.read_text().replace('folder = "out"', 'folder = "out2"')
    path.write_text(text)
    with pytest.raises(cg.InputError, match="published other values"):
        run(read_job(path))


def test_a_ledger_that_grows_during_a_run_stops_it(year, monkeypatch):
    from cellguard.jobs import runner

    protect = runner.protect_table

    def slow(*args, **options):
        add_to_ledger(year, "released", {"release": "other"})
        return protect(*args, **options)

    monkeypatch.setattr(runner, "protect_table", slow)
    path = write_period(year, "2026Q1", [10, 20, 30, 40])
    with pytest.raises(cg.InputError, match="another run recorded a release"):
        run(read_job(path))
    assert not (path.parent / "out" / "public").exists()

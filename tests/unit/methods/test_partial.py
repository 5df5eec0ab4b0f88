"""At the limit the best pattern is labelled: against whom it is shown safe, and against whom it is not."""

import json
from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard.exceptions import CellguardError
from cellguard.jobs import read_job
from cellguard.jobs.outputs.verify import verify_manifest
from cellguard.jobs.runner import run
from cellguard.methods import respondents
from cellguard.methods.attempt import refuse_candidate
from cellguard.methods.limits import Limits
from cellguard.methods.partial import RESPONDENTS, label_partial
from cellguard.methods.procedure import Candidate, Problem
from cellguard.methods.suppress.suppress import SuppressProcedure
from cellguard.model.levels import add_respondents
from cellguard.release.release import Status, Suppression

STATEMENT = "shown safe against external attackers, but not against respondents"


def make_records(n=160):
    """Return records in which many respondents are alone in a cell."""
    rng = np.random.default_rng(1)
    return {
        "region": np.array([f"r{k}" for k in rng.integers(0, 6, n)]),
        "branch": np.array([f"b{k}" for k in rng.integers(0, 12, n)]),
        "turnover": np.ceil(rng.pareto(1.1, n) * 50) + 1,
        "firm": np.arange(n).astype(str),
    }


def survey(n=160):
    """Return a table of turnover in which many are alone in a cell."""
    table = cg.tabulate(make_records(n), by=["region", "branch"], value="turnover", holding="firm")
    return table.apply(cg.PPercent(10), cg.MinFrequency(3, percent=10))


def refuse(suppressed, table):
    """Return a candidate that the limit left without proof against respondents."""
    release = Suppression(table=table, status=Status.FEASIBLE, objective=1.0, suppressed=suppressed)
    return refuse_candidate(
        Candidate(release=release, problem=Problem(table=table)), "too late.", unproven=(RESPONDENTS,)
    )


@pytest.fixture
def no_repair(monkeypatch):
    """No pattern is repaired or completed: what was planned against respondents nearby stays as it is."""
    monkeypatch.setattr(SuppressProcedure, "repair", lambda *_: None)
    monkeypatch.setattr(SuppressProcedure, "complete", lambda *_: None)
    monkeypatch.setattr(SuppressProcedure, "plans_near_respondents", False)
    monkeypatch.setattr(respondents, "ROUND_POLICY", replace(respondents.ROUND_POLICY, max_rounds=1))
    monkeypatch.setattr("cellguard.methods.respondents._add_found_requests", lambda table, _: table)


def test_a_pattern_that_is_safe_for_strangers_is_reported_and_not_published():
    table = add_respondents(survey())
    naive = cg.suppress(survey().with_(insiders=False), method="heuristic", rounds=3)
    told = label_partial(refuse(naive.suppressed, table), None, Limits(time_limit_s=60.0)).release
    assert not told.published
    assert STATEMENT in told.explanation
    assert "accept" in told.explanation


def test_what_is_accepted_is_published_with_the_statement(tmp_path):
    table = add_respondents(survey())
    naive = cg.suppress(survey().with_(insiders=False), method="heuristic", rounds=3)
    release = label_partial(refuse(naive.suppressed, table), "external", Limits(time_limit_s=60.0)).release
    assert release.published
    assert STATEMENT in release.accepted
    assert release.explanation == release.accepted
    assert release.options["accept"] == "external"
    assert release.status is Status.TIME_LIMIT
    assert np.isnan(release.bound)  # it was proven for patterns that are safe against everyone
    assert release.audit().safe  # against those for whom it is claimed
    assert not cg.audit(
        Suppression(table=table, status=release.status, objective=0.0, suppressed=naive.suppressed)
    ).safe
    release.save(tmp_path / "release.csv")


def test_what_strangers_can_compute_is_never_accepted():
    table = add_respondents(survey(n=900))
    told = label_partial(refuse(table.sensitive, table), "external", Limits(time_limit_s=60.0)).release
    assert not told.published
    assert STATEMENT not in told.explanation


def test_suppress_returns_a_labelled_pattern_only_if_it_is_accepted(no_repair):
    del no_repair
    nothing = cg.suppress(survey(), time_limit_s=5.0, method="heuristic", rounds=3)
    assert not nothing.published
    assert STATEMENT in nothing.explanation
    release = cg.suppress(survey(), time_limit_s=5.0, method="heuristic", rounds=3, accept="external")
    assert release.published
    assert STATEMENT in release.accepted


def test_accepting_changes_nothing_that_is_safe_against_everyone():
    asked = {"time_limit_s": 20.0, "method": "heuristic", "rounds": 3}
    release, other = cg.suppress(survey(), accept="external", **asked), cg.suppress(survey(), **asked)
    assert not release.accepted
    assert (release.suppressed == other.suppressed).all()
    assert release.audit().safe


def test_other_words_are_refused():
    with pytest.raises(CellguardError, match="accept"):
        cg.suppress(survey(), accept="nobody")


JOB = """
name = "turnover"
[data]
file = "records.csv"
value = "turnover"
holding = "firm"
[dimensions.region]
[dimensions.branch]
[[rules]]
rule = "p_percent"
p = 10
[[rules]]
rule = "min_frequency"
n = 3
percent = 10
[method]
name = "suppress"
rounds = 3
[limits]
time_limit_s = 10
threads = 1
"""


def test_a_job_writes_what_is_accepted_and_says_so(tmp_path, no_repair):
    del no_repair
    records = make_records()
    rows = zip(*records.values(), strict=True)
    lines = [",".join(records), *(",".join(str(x) for x in row) for row in rows)]
    (tmp_path / "records.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "job.toml").write_text(JOB)
    file = read_job(tmp_path / "job.toml")
    with pytest.raises(CellguardError, match=STATEMENT):
        run(file)
    assert not (tmp_path / "release" / "public").exists()
    outcome = run(file, accept="external")
    assert STATEMENT in outcome.release.accepted
    public = tmp_path / "release" / "public"
    manifests = [json.loads(path.read_text()) for path in tmp_path.glob("release/**/manifest.json")]
    assert manifests
    assert all(STATEMENT in manifest["accepted"] for manifest in manifests)
    assert all(manifest["safe_against_everyone"] is False for manifest in manifests)
    assert STATEMENT in (public / "report.html").read_text()
    (tmp_path / "accepting.toml").write_text(JOB.replace("rounds = 3", 'rounds = 3\naccept = "external"'))
    again = run(read_job(tmp_path / "accepting.toml"), again=True, folder=tmp_path / "other")
    assert STATEMENT in again.release.accepted


def test_what_was_accepted_is_verified_and_claims_no_more(tmp_path, no_repair):
    """Its witnesses prove it against strangers; that a manifest which claims more contradicts itself is noticed."""
    del no_repair
    records = make_records()
    rows = zip(*records.values(), strict=True)
    lines = [",".join(records), *(",".join(str(x) for x in row) for row in rows)]
    (tmp_path / "records.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "job.toml").write_text(JOB)
    run(read_job(tmp_path / "job.toml"), accept="external")
    path = tmp_path / "release" / "internal" / "manifest.json"
    found = verify_manifest(path)
    assert found["problems"] == []
    assert found["proven"] > 0
    assert STATEMENT in found["verdict"]
    told = json.loads(path.read_text())
    assert told["not_shown_against"] == ["respondents"]
    for more in ({"safe_against_everyone": True}, {"accepted": None, "not_shown_against": None}):
        kept = {name: value for name, value in {**told, **more}.items() if value is not None}
        path.write_text(json.dumps(kept))
        assert not verify_manifest(path)["accepted"]


def test_the_manifest_of_a_release_that_is_safe_against_everyone_says_so(tmp_path):
    (tmp_path / "records.csv").write_text("a,x\n" + "".join(f"{k % 4},{k + 1}\n" for k in range(30)) + "5,900\n")
    (tmp_path / "job.toml").write_text(
        'name = "n"\n[data]\nfile = "records.csv"\nvalue = "x"\n[dimensions.a]\n[[rules]]\nrule = "p_percent"\np = 10\n'
        '[method]\nname = "suppress"\n'
    )
    run(read_job(tmp_path / "job.toml"))
    manifests = [json.loads(path.read_text()) for path in tmp_path.glob("release/**/manifest.json")]
    assert [manifest["safe_against_everyone"] for manifest in manifests] == [True, True]
    assert verify_manifest(tmp_path / "release" / "internal" / "manifest.json")["accepted"]

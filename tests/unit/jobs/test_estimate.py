"""Memory and time are estimated before the work starts; what does not fit is refused."""

import io

import pytest

from cellguard.exceptions import InputError
from cellguard.jobs import read_job
from cellguard.jobs.definition import estimate
from cellguard.jobs.progress import Progress
from cellguard.jobs.runner import run


@pytest.fixture
def _every_table_is_large(monkeypatch):
    monkeypatch.setattr(estimate, "MIN_CELLS", 1)


def _limit_memory(office, memory):
    path = office / "job.toml"
    path.write_text(f'{path.read_text()}\n[limits]\nmemory = "{memory}"\n')
    return read_job(path)


@pytest.mark.usefixtures("_every_table_is_large")
def test_a_job_that_needs_more_memory_than_its_limit_is_refused_with_the_estimate(office):
    with pytest.raises(InputError, match=r"needs about 0\.4 GB of memory; limits\.memory allows 0\.1 GB") as error:
        run(_limit_memory(office, "100MB"))
    assert "insiders = false" in error.value.hint
    assert not (office / "out").exists()


@pytest.mark.usefixtures("_every_table_is_large")
def test_a_job_that_needs_more_memory_than_the_machine_has_is_refused(office, monkeypatch):
    monkeypatch.setattr(estimate, "_find_available_bytes", lambda: 10**8)
    with pytest.raises(InputError, match="this machine has available"):
        run(read_job(office / "job.toml"))


@pytest.mark.usefixtures("_every_table_is_large")
def test_the_estimate_is_reported_before_the_work(office):
    said = io.StringIO()
    run(_limit_memory(office, "8GB"), progress=Progress(stream=said))
    lines = said.getvalue().splitlines()
    told = next(k for k, line in enumerate(lines) if line.startswith("estimate: about 0.4 GB"))
    assert told < lines.index("protect")


def test_small_tables_are_not_refused(office):
    assert run(_limit_memory(office, "100MB")).release.published


def test_respondents_cost_more_and_no_time_is_promised_for_them(office, monkeypatch):
    monkeypatch.setattr(estimate, "MIN_CELLS", 1)
    job = read_job(office / "job.toml").job
    table = run(read_job(office / "job.toml")).release.table
    with_them = estimate.estimate_work(table, job)
    without = estimate.estimate_work(table.with_(insiders=False), job)
    assert with_them.memory_bytes > without.memory_bytes
    assert with_them.first_s is None
    assert without.first_s > 0
    assert "first safe pattern" in str(without)


@pytest.mark.parametrize("text", ["", "much", "4 XB", "-1GB", "80%"])
def test_what_is_no_amount_of_memory_is_left_to_the_reader_of_records(text):
    assert estimate.parse_memory(text) is None


def test_the_available_memory_is_known_or_not_asked_for():
    found = estimate._find_available_bytes()
    assert found is None or found > 0


def test_the_audit_of_a_large_release_checks_the_movements_of_the_search_first(office, monkeypatch):
    from cellguard.jobs import runner
    from cellguard.release.base import Release

    given = []
    audit = Release.audit
    monkeypatch.setattr(Release, "audit", lambda self, **options: given.append(options) or audit(self, **options))
    monkeypatch.setattr(runner, "MIN_CELLS", 1)
    path = office / "job.toml"
    path.write_text(path.read_text().replace("insiders = true", "insiders = false"))
    outcome = run(read_job(office / "job.toml"))
    assert outcome.audit.safe
    last = next(options for options in reversed(given) if "jobs" in options)
    assert last["shown"].select_cells(outcome.release.table.n_cells, outcome.release.table.sensitive_cells) is not None

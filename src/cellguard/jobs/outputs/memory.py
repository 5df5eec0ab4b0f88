"""Jobs that remember: the ledger's linked releases as a history, and derived statistics as declarations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard.history.derived import Derived
from cellguard.history.earlier import EarlierRelease, History
from cellguard.history.joint import join_release
from cellguard.history.view import view_new_cells
from cellguard.jobs.outputs.content import LedgerQuery, find_linked
from cellguard.jobs.outputs.ledger import get_head

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit
    from cellguard.jobs.definition.model import Job
    from cellguard.jobs.definition.read import JobFile
    from cellguard.release.release import Release

__all__ = ["Memory", "find_ledger_folder", "load_history", "read_derived"]


def find_ledger_folder(file: JobFile) -> Path:
    """Return the folder of the ledger of a job."""
    named = file.job.ledger.folder
    return file.path.parent if named is None else file.resolve_path(named)


class Memory:
    """What a run knows of earlier releases, and the statistics that it publishes."""

    def __init__(self, file: JobFile) -> None:
        asked = file.job.ledger
        self.folder = find_ledger_folder(file)
        self.derived = [read_derived(section.model_dump()) for section in file.job.derived]
        self.head: str | None = None
        self.history: History | None = None
        self.contents: frozenset[str] = frozenset()
        if asked.remembers:
            self.head = get_head(self.folder)
            self.history, self.contents = load_history(self.folder, file.job)

    @property
    def active(self) -> bool:
        """Whether there is anything to protect besides the table."""
        return self.history is not None or bool(self.derived)

    def get_options(self) -> dict[str, Any]:
        """Return the options of a method that protects together with earlier releases and figures."""
        return {"earlier": self.history, "derived": self.derived} if self.active else {}

    def add_history(self, release: Release) -> Release:
        """Return a release of a method that does not know earlier ones, with all that the audit must look at."""
        if not self.active or not release.published or release.earlier is not None:
            return release
        known = replace(release, earlier=self.history or History())
        figures = join_release(known, self.history, self.derived).system.figures if self.derived else ()
        return replace(known, figures=figures)

    def describe(self, audit: Audit | None) -> dict[str, str]:
        """Describe earlier releases and figures for the internal report."""
        system = None if audit is None else getattr(audit.release, "system", None)
        if system is None:
            return {}
        told = {}
        if self.history is not None:
            told["earlier releases"] = ", ".join(system.names) or "none that is linked"
        if system.figures:
            counts = system.counts
            told["derived figures"] = (
                f"{sum(int((~one.withheld).sum()) for one in system.figures)} published, "
                f"{sum(int(one.withheld.sum()) for one in system.figures)} withheld; "
                f"{counts.one_side} bound a withheld cell, {counts.two_sides} bound the ratio of two"
            )
        return told

    def build_entry(self, release: Release, name: str, job: Job) -> EarlierRelease | None:
        """Return the content to record in the ledger; None if the job does not remember."""
        if self.history is None:
            return None
        return EarlierRelease.of(release, name=name, period=self.history.period, population=job.ledger.population)


def restrict_audit(audit: Audit | None, release: Release) -> Audit | None:
    """Return the audit of the new table's own cells, for files and reports."""
    return None if audit is None else view_new_cells(audit, release)


def read_derived(fields: dict[str, Any]) -> Derived:
    """Return a statistic from its section of a job."""
    return Derived(**fields)


def load_history(folder: Path, job: Job, until: int | None = None) -> tuple[History, frozenset[str]]:
    """Return the linked releases of a ledger, as it was at a line, with the links of the job; and their contents."""
    asked = job.ledger
    also = [p for total, parts in asked.sums.items() for p in (total, *parts)]
    also += [section.period for section in job.derived if section.period]
    growth = any(section.kind == "growth" and not section.period for section in job.derived)
    query = LedgerQuery(
        period=asked.period, population=asked.population, office=asked.office, additive=asked.additive,
        neighbours=asked.prior_percent is not None or growth, also=tuple(also), until=until,
    )  # fmt: skip
    found = find_linked(folder, query)
    told = {d: {old: new or None for old, new in codes.items()} for d, codes in asked.correspondence.items()}
    links = {
        name: getattr(asked, name)
        for name in ("period", "population", "additive", "tolerance", "revision_percent", "prior_percent")
    }
    history = History(
        releases=found.releases, correspondence=told, reopen=asked.reopen, accept=asked.accept,
        sums={**found.sums, **asked.sums}, **links,
    )  # fmt: skip
    return history, found.contents

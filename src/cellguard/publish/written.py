"""What a run of a job writes: outputs, layouts, reports, manifests, and a line of the ledger."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._io.files import write_text
from cellguard.exceptions import CellguardError
from cellguard.nouns.release import PRIMARY_TOLD, Release, Status, Suppression
from cellguard.publish import manifest as manifests
from cellguard.publish.outputs import Folders, write_internal, write_json, write_public
from cellguard.publish.parts import name_of
from cellguard.publish.progress import Progress

if TYPE_CHECKING:
    from cellguard.publish.model import Job
    from cellguard.publish.run import Outcome

__all__ = ["write_outputs"]


def write_outputs(outcome: Outcome, folders: Folders, hashes: Mapping[Path, str], progress: Progress) -> None:
    """Stage every output, then put both folders in place. `hashes` are those of the inputs."""
    job, release = outcome.file.job, outcome.release
    folders.stage()
    public, internal = folders.staged_public, folders.staged_internal
    if job.output.mark_primary and isinstance(release, Suppression):
        progress.note(PRIMARY_TOLD)
    write_public(public, job.name, release, job.output, unsafe=outcome.unsafe, views=_tables_of_job(job))
    if job.output.layout is not None and not outcome.unsafe:
        from cellguard.nouns.layout import fill_workbook

        template = outcome.file.file(job.output.layout)
        taken = (public / template.name).exists()
        fill_workbook(release, template, public / f"{'layout-' if taken else ''}{template.name}")
    write_internal(internal, job.name, release, outcome.audit, job.output, views=_tables_of_job(job))
    write_text(internal / "job.toml", outcome.file.text, private=True)
    if job.output.report:
        _write_reports(outcome, public, internal)
    write_json(public / "manifest.json", _public_manifest(outcome, public))
    write_json(internal / "manifest.json", _internal_manifest(outcome, folders, hashes))
    write_json(internal / "timing.json", {"seconds": outcome.seconds, "resumed": list(outcome.resumed)})
    folders.publish()
    folders.clean()
    _enter_into_ledger(outcome, progress)


def _enter_into_ledger(outcome: Outcome, progress: Progress) -> None:
    """Enter the release, which is out already, into the ledger beside the job; that it cannot be written is told."""
    from cellguard.publish import ledger

    beside, release = outcome.file.path.parent, outcome.release
    facts = {
        "release": os.path.relpath(outcome.folder, beside),
        "method": release.method,
        "status": str(release.status),
        "manifest": manifests.hash_of(outcome.folder / "internal" / "manifest.json"),
    }
    try:
        ledger.enter(beside, "released", facts | ({"unsafe": True} if outcome.unsafe else {}))
    except (OSError, CellguardError) as error:
        progress.note(f"the ledger was not written: {error}")


def _tables_of_job(job: Job) -> list[tuple[str, tuple[str, ...]]]:
    """Return the tables of a job: how each is called, and its dimensions."""
    return [(name_of(entry), tuple(entry.dimensions)) for entry in job.tables]


def _write_reports(outcome: Outcome, public: Path, internal: Path) -> None:
    from cellguard.publish.report import Content, write_report

    job = outcome.file.job
    content = Content(
        title=job.title or job.name,
        release=outcome.release,
        method=job.method.name,
        audit=outcome.audit,
        asked=_asked_in_words(outcome),
        views=tuple(_tables_of_job(job)),
        comparison=outcome.comparison,
        attack=outcome.attack,
        seconds=outcome.seconds,
        versions=manifests.versions(),
        unsafe=outcome.unsafe,
        mark_primary=job.output.mark_primary,
    )
    write_report(public / "report.html", content, public=True)
    write_report(internal / "report.html", content, public=False)


def _asked_in_words(outcome: Outcome) -> dict[str, str]:
    """Return what the job asked for, in words; only the internal report shows it."""
    job = outcome.file.job
    files = [entry.file for entry in job.tables if entry.file is not None]
    data = ", ".join(name for name in (job.data.file or job.data.table, *files) if name)
    asked = {"data": data}
    if job.indicators or not files:
        measured = [i.name for i in job.indicators] or [job.data.value or "number of records"]
        asked["value"] = ", ".join(measured)
    if job.data.holding:
        asked["holdings"] = job.data.holding
    options = {k: v for k, v in job.method.options(outcome.release.table).items() if v is not None}
    asked["method"] = job.method.name + "".join(
        f", {k} {v:g}" if isinstance(v, float) else f", {k} {v}" for k, v in options.items()
    )
    asked["weights"] = job.method.weights
    known = [attacker.name for attacker in outcome.release.table.attackers if not attacker.derived]
    respondents = len(outcome.release.table.attackers) - len(known)
    asked["attackers"] = ", ".join(known or ["external"]) + (f", {respondents} respondents" if respondents else "")
    asked["seed"] = str(job.seed)
    if outcome.warnings:
        asked["warnings"] = " ".join(outcome.warnings)
    return asked


def _public_manifest(outcome: Outcome, public: Path) -> dict[str, Any]:
    """Return what everybody may know: no seed, no hash of anything confidential, of options what readers are told."""
    told = outcome.release.published_with()
    out = {
        "format": manifests.FORMAT,
        "name": outcome.file.job.name,
        "method": outcome.release.method,
        "versions": manifests.versions(),
        "audited": outcome.audit is not None,
        "safe": not outcome.unsafe,
        "outputs": {".": manifests.hashes(public, without=("manifest.json",))},
        **({"published_with": told} if told else {}),
    }
    return out | _remarks_of_manifest(outcome)


def _repeatable(release: Release) -> bool:
    """Say whether another run would give the same release: no clock and no Ctrl-C ended the search."""
    asked, done = release.options.get("rounds"), release.details.get("rounds")
    cut_short = asked is not None and done is not None and done < asked and release.objective > 0
    if release.status is Status.OPTIMAL:  # the search ended by itself
        return True
    return release.status is not Status.TIME_LIMIT and not cut_short


def _internal_manifest(outcome: Outcome, folders: Folders, hashes: Mapping[Path, str]) -> dict[str, Any]:
    job, release = outcome.file.job, outcome.release
    public, internal = folders.staged_public, folders.staged_internal
    out = {
        "format": manifests.FORMAT,
        "confidential": True,
        "name": job.name,
        "versions": manifests.versions(),
        "seed": job.seed,
        "method": release.method,
        "options": {k: v for k, v in release.options.items() if v is not None},
        "status": str(release.status),
        "repeatable": _repeatable(release),
        "audit": None if outcome.audit is None else outcome.audit.summary(),
        "safe": not outcome.unsafe,
        "inputs": {os.path.relpath(path, folders.internal): digest for path, digest in hashes.items()},
        "outputs": {"../public": manifests.hashes(public), ".": manifests.hashes(internal, without=manifests.CHANGING)},
        "not_hashed": manifests.CHANGING,
        **({"warnings": list(outcome.warnings)} if outcome.warnings else {}),
    }
    return out | _remarks_of_manifest(outcome)


def _remarks_of_manifest(outcome: Outcome) -> dict[str, bool]:
    """Return what a manifest says of a release that nobody would call safe without a word more."""
    nothing = outcome.audit is not None and outcome.audit.checked == 0
    return ({"unsafe": True} if outcome.unsafe else {}) | ({"nothing_sensitive": True} if nothing else {})

"""What a job writes, and how: staged in a private folder, put in place at the end, the public part last."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._io.files import write_text
from cellguard._io.frames import write_csv, write_parquet
from cellguard._io.lock import locked
from cellguard.check.partners import partners
from cellguard.exceptions import CellguardError, InputError
from cellguard.nouns.exchange import (
    internal_exchange_of_release,
    sdmx_exchange_of_release,
    tables_of_release,
    write_release_as_px,
)
from cellguard.nouns.layout import fill_layout_with_release
from cellguard.nouns.release import PRIMARY_TOLD, Adjustment, Suppression
from cellguard.nouns.sheets import file_name_of_sheet, sheets_of_release, write_release_sheets
from cellguard.publish import ledger
from cellguard.publish import manifest as manifests
from cellguard.publish.audit_file import write_audit_file
from cellguard.publish.model import Job
from cellguard.publish.progress import Progress
from cellguard.publish.report import Content, write_report

if TYPE_CHECKING:
    from cellguard.publish.run import Outcome

__all__ = ["Folders", "write_outputs"]


class Folders:
    """The folders of a job's outputs.

    ``public`` and ``internal`` appear whole or not at all: both are made inside ``.work``, on the same file
    system, and renamed. The public one comes last, when everything that proves it safe is in place.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work = root / ".work"
        self.public, self.internal = root / "public", root / "internal"
        self.staged_public, self.staged_internal = self.work / "public", self.work / "internal"
        self.old = self.work / "old"

    @contextmanager
    def entered(self, *, fresh: bool = False) -> Iterator[None]:
        """Work in the folder, alone: make the private one for checkpoints, and refuse to replace what is not ours.

        `fresh` throws away what an earlier run left there.
        """
        for folder in (self.work, self.public, self.internal):
            if folder.is_symlink():  # whoever made it decides where confidential files would go
                raise InputError(f"{folder}: is a symbolic link.", hint="remove it, or name another folder.")
        for folder in (self.public, self.internal):
            if folder.exists() and not (folder / "manifest.json").is_file():
                raise InputError(
                    f"{folder}: is there, and was not written by cellguard.",
                    hint="name another folder for the outputs.",
                )
        there = self.root.exists()
        with locked(self.work, busy=f"{self.root}: another run is at work in this folder."):
            self.work.chmod(0o700)
            if fresh:
                for entry in self.work.iterdir():
                    if entry.is_dir() and not entry.is_symlink():
                        shutil.rmtree(entry, ignore_errors=True)
                    elif entry.name != "lock":
                        entry.unlink()
            try:
                yield
            finally:
                self._leave(there=there)

    def _leave(self, *, there: bool) -> None:
        """Remove what a run that was refused has made: an empty folder for checkpoints, and the one around it."""
        if self.work.is_dir() and all(entry.name == "lock" for entry in self.work.iterdir()):
            shutil.rmtree(self.work, ignore_errors=True)
        if not there and self.root.is_dir() and not any(self.root.iterdir()):
            self.root.rmdir()

    def stage(self) -> None:
        """Begin with empty staged folders; what a killed run left there is thrown away."""
        for folder in (self.staged_public, self.staged_internal):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)

    def publish(self) -> None:
        """Put the staged folders in place of the old ones."""
        shutil.rmtree(self.old, ignore_errors=True)
        self.old.mkdir(mode=0o700)
        if self.public.exists():  # the old release goes before the first new file comes: never a mixture
            self.public.rename(self.old / "public")
        if self.internal.exists():
            self.internal.rename(self.old / "internal")
        for path in self.staged_internal.rglob("*"):  # whoever copies the folder may forget to close it
            if path.is_file():
                path.chmod(0o600)
        self.staged_internal.rename(self.internal)
        self.staged_public.chmod(0o755)
        self.staged_public.rename(self.public)

    def clean(self) -> None:
        """Remove checkpoints and what was replaced."""
        shutil.rmtree(self.work, ignore_errors=True)


def write_outputs(outcome: Outcome, folders: Folders, hashes: Mapping[Path, str], progress: Progress) -> None:
    """Stage every output, then put both folders in place. `hashes` are those of the inputs."""
    job = outcome.file.job
    folders.stage()
    public, internal = folders.staged_public, folders.staged_internal
    if job.output.mark_primary and isinstance(outcome.release, Suppression):
        progress.note(PRIMARY_TOLD)
    _write_public(public, outcome)
    _write_internal(internal, outcome)
    if job.output.report:
        _write_reports_of_job(outcome, public, internal)
    _write_published_json(public / "manifest.json", manifests.public_manifest(outcome, public))
    inputs = {os.path.relpath(path, folders.internal): digest for path, digest in hashes.items()}
    _write_published_json(internal / "manifest.json", manifests.internal_manifest(outcome, public, internal, inputs))
    _write_published_json(internal / "timing.json", {"seconds": outcome.seconds, "resumed": list(outcome.resumed)})
    folders.publish()
    folders.clean()
    _enter_published_into_ledger(outcome, progress)


def _write_published_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON, atomically and the same for the same object."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n")


def _write_public(folder: Path, outcome: Outcome) -> None:
    """Write the release in every format that was asked for: a file or a sheet for each table.

    Of linked tables there is one file with all cells too.
    """
    release, job, output = outcome.release, outcome.file.job, outcome.file.job.output
    marks = {"mark_primary": output.mark_primary, "unsafe": outcome.unsafe}
    sheets = sheets_of_release(release, job.name, _tables_of_job(job), **marks)
    before = "UNSAFE-" if outcome.unsafe else ""
    for title, sheet in sheets.items():
        if "csv" in output.formats:
            write_csv(sheet.columns, folder / f"{before}{file_name_of_sheet(title)}.csv", guard=True)
        if "parquet" in output.formats:
            write_parquet(sheet.columns, folder / f"{before}{file_name_of_sheet(title)}.parquet")
    for title, columns in _sdmx_columns_of_job(outcome).items():
        write_csv(columns, folder / f"{before}{file_name_of_sheet(title)}.sdmx.csv")
    if "px" in output.formats:
        for title, view in tables_of_release(release, job.name, _tables_of_job(job)).items():
            write_release_as_px(release, view, folder / f"{before}{file_name_of_sheet(title)}.px", title=title)
    if "xlsx" in output.formats:
        shown = {title: sheet for title, sheet in sheets.items() if title != job.name} or sheets
        write_release_sheets(shown, folder / f"{before}{job.name}.xlsx")
    if output.layout is not None and not outcome.unsafe:
        template = outcome.file.file(output.layout)
        taken = (folder / template.name).exists()
        fill_layout_with_release(release, template, folder / f"{'layout-' if taken else ''}{template.name}")


def _sdmx_columns_of_job(outcome: Outcome, *, internal: bool = False) -> dict[str, Any]:
    """Return the columns of each table as SDMX-CSV has them; none where nobody asked for it."""
    job = outcome.file.job
    if "sdmx" not in job.output.formats:
        return {}
    made = "".join(c if c.isascii() and c.isalnum() else "_" for c in job.name.upper())
    dataflow = job.output.dataflow or f"CELLGUARD:{made}(1.0)"
    tables = tables_of_release(outcome.release, job.name, _tables_of_job(job))
    return dict(sdmx_exchange_of_release(outcome.release, tables, dataflow, internal=internal))


def _write_internal(folder: Path, outcome: Outcome) -> None:
    """Write what proves the release safe, the job, and the table where it was asked for: all of it confidential."""
    release, audit, job = outcome.release, outcome.audit, outcome.file.job
    if "jj" in job.output.formats:
        release.table.write(folder / f"{job.name}.jj.gz")
    protects = partners(release) if isinstance(release, Suppression) else {}
    write_csv(internal_exchange_of_release(release, protects), folder / "cells.csv", guard=True, private=True)
    for title, columns in _sdmx_columns_of_job(outcome, internal=True).items():
        write_csv(columns, folder / f"{file_name_of_sheet(title)}.sdmx.csv", private=True)
    write_text(folder / "job.toml", outcome.file.text, private=True)
    if audit is not None:
        write_audit_file(folder / "audit.json", release.table, audit)
        if job.output.witnesses and not isinstance(release, Adjustment):  # an adjusted table is its own witness
            audit.save_witnesses(folder / "witnesses.json.gz")


def _enter_published_into_ledger(outcome: Outcome, progress: Progress) -> None:
    """Enter the release, which is out already, into the ledger beside the job; that it cannot be written is told."""
    beside, release = outcome.file.path.parent, outcome.release
    facts = {
        "release": os.path.relpath(outcome.folder, beside),
        "method": release.method,
        "status": str(release.status),
        "manifest": manifests.hash_for_manifest(outcome.folder / "internal" / "manifest.json"),
    }
    try:
        ledger.add_to_ledger(beside, "released", facts | ({"unsafe": True} if outcome.unsafe else {}))
    except (OSError, CellguardError) as error:
        progress.note(f"the ledger was not written: {error}")


def _tables_of_job(job: Job) -> list[tuple[str, tuple[str, ...]]]:
    """Return the tables of a job: how each is called, and its dimensions."""
    return [(entry.title, tuple(entry.dimensions)) for entry in job.tables]


def _write_reports_of_job(outcome: Outcome, public: Path, internal: Path) -> None:
    job = outcome.file.job
    content = Content(
        title=job.title or job.name,
        release=outcome.release,
        method=job.method.name,
        audit=outcome.audit,
        asked=_job_in_words(outcome),
        views=tuple(_tables_of_job(job)),
        comparison=outcome.comparison,
        attack=outcome.attack,
        seconds=outcome.seconds,
        versions=manifests.versions_for_manifest(),
        unsafe=outcome.unsafe,
        mark_primary=job.output.mark_primary,
    )
    write_report(public / "report.html", content, public=True)
    write_report(internal / "report.html", content, public=False)


def _job_in_words(outcome: Outcome) -> dict[str, str]:
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

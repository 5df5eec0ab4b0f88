"""Write the outputs of a job: stage them in a private folder, then move them into place, the public part last."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cellguard._io.files import write_text
from cellguard._io.frames import write_csv
from cellguard._io.lock import lock_folder
from cellguard.auditing.partners import find_partners
from cellguard.exceptions import CellguardError, InputError
from cellguard.jobs.definition.model import Job
from cellguard.jobs.outputs import ledger, signing
from cellguard.jobs.outputs import manifest as manifests
from cellguard.jobs.outputs.audit_file import write_audit_file
from cellguard.jobs.outputs.content import store_content
from cellguard.jobs.outputs.earlier import Hashes, find_earlier, hash_cells, refuse_repetition, store_cell_hashes
from cellguard.jobs.outputs.signed import refuse_signed
from cellguard.jobs.progress import Progress
from cellguard.jobs.report import Content, write_report
from cellguard.release.formats.exchange import build_internal_columns
from cellguard.release.formats.layout import fill_layout_with_release
from cellguard.release.formats.registry import FORMATS, ReleaseOutput
from cellguard.release.readers.read_tables import FIGURES
from cellguard.release.release import INPUT_ORDER_WARNING, PRIMARY_WARNING

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit
    from cellguard.history.earlier import EarlierRelease
    from cellguard.jobs.outputs.memory import Memory
    from cellguard.jobs.runner import Outcome
    from cellguard.release.release import Release, Suppression

JOINT_WITNESSES = "witnesses-joint.json.gz"
"""The proof of safety together with earlier releases and derived figures."""

__all__ = ["JOINT_WITNESSES", "Folders", "write_outputs", "write_public_files"]


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
    def enter(self, *, fresh: bool = False) -> Iterator[None]:
        """Lock the folder, make the private folder for checkpoints, and refuse to replace files of other programs.

        `fresh` deletes what an earlier run left there.
        """
        for folder in (self.work, self.public, self.internal):
            if folder.is_symlink():  # the creator of a link decides where confidential files would go
                raise InputError(f"{folder}: is a symbolic link.", hint="remove it, or name another folder.")
        for folder in (self.public, self.internal):
            if folder.exists() and not (folder / "manifest.json").is_file():
                raise InputError(
                    f"{folder}: already exists, and was not written by cellguard.",
                    hint="name another folder for the outputs.",
                )
        refuse_signed(self.root)
        there = self.root.exists()
        with lock_folder(self.work, busy=f"{self.root}: another run is at work in this folder."):
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
        """Remove the folders that a refused run has made: the empty checkpoint folder, and its parent."""
        if self.work.is_dir() and all(entry.name == "lock" for entry in self.work.iterdir()):
            shutil.rmtree(self.work, ignore_errors=True)
        if not there and self.root.is_dir() and not any(self.root.iterdir()):
            self.root.rmdir()

    def stage(self) -> None:
        """Create empty staged folders; delete what a killed run left there."""
        for folder in (self.staged_public, self.staged_internal):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)

    def publish(self) -> None:
        """Put the staged folders in place of the old ones, unless these were signed in the meantime."""
        refuse_signed(self.root)
        shutil.rmtree(self.old, ignore_errors=True)
        self.old.mkdir(mode=0o700)
        if self.public.exists():  # remove the old release before placing the first new file: never a mixture
            self.public.rename(self.old / "public")
        if self.internal.exists():
            self.internal.rename(self.old / "internal")
        for path in self.staged_internal.rglob("*"):  # a user who copies the folder may forget to restrict access
            if path.is_file():
                path.chmod(0o600)
        self.staged_internal.rename(self.internal)
        self.staged_public.chmod(0o755)
        self.staged_public.rename(self.public)

    def clean(self) -> None:
        """Remove checkpoints and what was replaced."""
        shutil.rmtree(self.work, ignore_errors=True)


def write_outputs(
    outcome: Outcome,
    folders: Folders,
    hashes: Mapping[Path, str],
    progress: Progress,
    *,
    again: bool = False,
    memory: Memory | None = None,
) -> None:
    """Stage every output, then move both folders into place.

    `hashes` are those of the inputs. A release of cells that were published differently before is refused, unless
    `again` confirms it, or it was protected together with the earlier ones (`memory`).
    """
    job = outcome.file.job
    key = _make_signing_key(outcome.file.path.parent, progress)
    folders.stage()
    public, internal = folders.staged_public, folders.staged_internal
    if job.output.mark_primary and outcome.release.withholds_cells:
        progress.note(PRIMARY_WARNING)
    if job.output.row_order == "input":
        progress.note(INPUT_ORDER_WARNING)
    write_public_files(public, outcome)
    entry = _LedgerEntry.of(outcome, public, key, memory)
    entry.report_earlier(progress, again=again)
    _write_internal(internal, outcome)
    if job.output.report:
        _write_reports_of_job(outcome, public, internal)
    _write_published_json(public / "manifest.json", manifests.build_public_manifest(outcome, public))
    inputs = {os.path.relpath(path, folders.internal): digest for path, digest in hashes.items()}
    job_folder = os.path.relpath(outcome.file.path.parent, folders.internal)
    made = manifests.build_internal_manifest(outcome, public, internal, inputs, job_folder)
    _write_published_json(internal / "manifest.json", made)
    _write_published_json(internal / "timing.json", {"seconds": outcome.seconds, "resumed": list(outcome.resumed)})
    if key is not None:
        signature = signing.sign_manifest(internal, key, manifests.hash_unlisted_files(internal))
        write_text(internal / signing.SIGNATURE, signature, private=True)
    entry.publish(folders, progress)


def _make_signing_key(folder: Path, progress: Progress) -> bytes | None:
    """Return the key that signs releases of a folder's jobs; None, with a note, if none can be created."""
    try:
        return signing.make_key(folder)
    except OSError as error:
        progress.note(f"the release is not signed: no key can be made beside the job ({error.strerror}).")
        return None


def _write_published_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON, atomically; equal objects give equal files."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False, sort_keys=True) + "\n")


def write_public_files(folder: Path, outcome: Outcome) -> None:
    """Write the release in every requested format: a file or a sheet for each table.

    Linked tables also get one file with all cells.
    """
    release, output = outcome.release, outcome.file.job.output
    files = _get_release_output(outcome)
    for name in output.formats:
        if (write := FORMATS[name].write) is not None:
            write(files, folder)
    if release.figures:
        write_figures(folder / FIGURES, release)
    if output.layout is not None and not outcome.unsafe:
        template = outcome.file.resolve_path(output.layout)
        taken = (folder / template.name).exists()
        fill_layout_with_release(release, template, folder / f"{'layout-' if taken else ''}{template.name}")


def write_figures(path: Path, release: Release) -> None:
    """Write the derived figures of a release: codes, statistic, status and figure."""
    columns: dict[str, list[str]] = {}
    for one in release.figures:
        own = one.build_file_columns(release.table)
        places = [max(d, 0) for d in one.decimals.tolist()]
        shown = zip(one.withheld.tolist(), one.values.tolist(), places, strict=True)
        own["value"] = ["" if gone else f"{value:.{digits}f}" for gone, value, digits in shown]
        for name, column in own.items():
            columns.setdefault(name, []).extend(map(str, column))
    write_csv(columns, path, guard=True)


def _get_release_output(outcome: Outcome) -> ReleaseOutput:
    """Return the content of a release that the formats write."""
    job = outcome.file.job
    return ReleaseOutput(
        release=outcome.release,
        name=job.name,
        views=_list_job_tables(job),
        mark_primary=job.output.mark_primary,
        row_order=job.output.row_order,
        unsafe=outcome.unsafe,
        dataflow=job.output.dataflow,
    )


def _write_internal(folder: Path, outcome: Outcome) -> None:
    """Write the confidential files: the proof of safety, the job, and the table if requested."""
    release, audit, job = outcome.release, outcome.audit, outcome.file.job
    files = _get_release_output(outcome)
    for name in job.output.formats:
        if (write := FORMATS[name].write_internal) is not None:
            write(files, folder)
    protects = find_partners(cast("Suppression", release)) if release.withholds_cells else {}
    write_csv(build_internal_columns(release, protects), folder / "cells.csv", guard=True, private=True)
    write_text(folder / "job.toml", outcome.file.text, private=True)
    if "key" in release.options:
        release.options["key"].write(folder / manifests.KEY_FILE)
    if audit is not None:
        write_audit_file(folder / "audit.json", release.table, audit)
        if job.output.witnesses and release.by_ranges:  # an adjusted table is its own witness
            alone = audit if outcome.joint is None else _audit_alone(release)
            alone.save_witnesses(folder / "witnesses.json.gz")
            if outcome.joint is not None:
                outcome.joint.save_witnesses(folder / JOINT_WITNESSES)


def _audit_alone(release: Release) -> Audit:
    """Audit a release without earlier ones and derived figures."""
    return replace(release, earlier=None, figures=()).audit()


@dataclass(frozen=True, kw_only=True, eq=False)
class _LedgerEntry:
    """The ledger entry of a release: checked before the release is written, recorded afterwards."""

    outcome: Outcome
    public: str
    """Hash of the published content."""
    key: str
    """Name of the key that hashes the cells; empty without a key."""
    cells: Hashes | None
    memory: Memory | None = None
    """Earlier releases with which it was protected."""

    @classmethod
    def of(cls, outcome: Outcome, public: Path, key: bytes | None, memory: Memory | None) -> _LedgerEntry:
        """Return the entry of a release whose public files are staged, before reports and manifest are written."""
        files = json.dumps(manifests.hash_files(public), sort_keys=True)
        return cls(
            outcome=outcome,
            public=hashlib.sha256(files.encode()).hexdigest(),
            key="" if key is None else signing.name_key(key),
            cells=None if key is None else hash_cells(outcome.release.table, key),
            memory=memory if memory is not None and memory.history is not None else None,
        )

    @property
    def folder(self) -> Path:
        """Where the ledger is."""
        return self.outcome.file.path.parent if self.memory is None else self.memory.folder

    def report_earlier(self, progress: Progress, *, again: bool) -> None:
        """Report earlier releases of the same cells; refuse the release unless `again` confirms it."""
        earlier = [] if self.cells is None else find_earlier(self.folder, self.cells, self.key)
        if self.memory is not None:  # linked ones were audited together with this one
            linked = self.memory.contents
            earlier = [one for one in earlier if one.content not in linked and not (one.content and one.problem)]
        for one in earlier:
            what = "the same files were released before" if one.public == self.public else "cells were released before"
            progress.note(f"ledger: {what}: {one}.")
        if not again:
            refuse_repetition(earlier, self.public)

    def publish(self, folders: Folders, progress: Progress) -> None:
        """Move the staged folders into place and record the release.

        A release that was protected together with earlier ones is published only if the ledger has not grown since,
        and while no other run can add to it.
        """
        if self.memory is None:
            folders.publish()
            folders.clean()
            try:
                ledger.add_to_ledger(self.folder, "released", self._collect_facts())
            except (OSError, CellguardError) as error:
                progress.note(f"the ledger was not written: {error}")
            return
        release, job = self.outcome.release, self.outcome.file.job
        content = self.memory.build_entry(release, job.name, job)
        with ledger.hold_ledger(self.folder) as held:
            ledger.refuse_growth(held, self.memory.head or "", self.folder)
            stored = {} if content is None else self._store(content)
            folders.publish()
            held.add("released", self._collect_facts() | stored)
        folders.clean()

    def _store(self, content: EarlierRelease) -> dict[str, Any]:
        """Write the content beside the ledger; return what the ledger records of it."""
        asked = self.outcome.file.job.ledger
        return store_content(self.folder, content, office=asked.office, additive=asked.additive, sums=asked.sums)

    def _collect_facts(self) -> dict[str, Any]:
        """Return what the ledger records of the written release."""
        release, folder = self.outcome.release, self.outcome.folder
        facts: dict[str, Any] = {
            "release": os.path.relpath(folder, self.folder),
            "method": release.method,
            "status": str(release.status),
            "manifest": manifests.hash_for_manifest(folder / "internal" / "manifest.json"),
        }
        if self.cells is not None:
            kept = store_cell_hashes(self.folder, self.cells)
            facts |= {"public": self.public, "cells": kept, "key": self.key}
        return facts | ({"unsafe": True} if self.outcome.unsafe else {})


def _list_job_tables(job: Job) -> list[tuple[str, tuple[str, ...]]]:
    """Return the name and the dimensions of each table of a job."""
    return [(entry.title, tuple(entry.dimensions)) for entry in job.tables]


def _write_reports_of_job(outcome: Outcome, public: Path, internal: Path) -> None:
    content = describe_outcome(outcome)
    write_report(public / "report.html", content, public=True)
    write_report(internal / "report.html", content, public=False)


def describe_outcome(outcome: Outcome) -> Content:
    """Return the content of the reports of a run."""
    job = outcome.file.job
    return Content(
        title=job.title or job.name,
        release=outcome.release,
        method=job.method.name,
        audit=outcome.audit,
        asked=_describe_job(outcome),
        views=tuple(_list_job_tables(job)),
        comparison=outcome.comparison,
        attack=outcome.attack,
        seconds=outcome.seconds,
        versions=manifests.collect_versions(),
        unsafe=outcome.unsafe,
        mark_primary=job.output.mark_primary,
    )


def _describe_job(outcome: Outcome) -> dict[str, str]:
    """Describe the job in words, for the internal report only."""
    job = outcome.file.job
    files = [entry.file for entry in job.tables if entry.file is not None]
    data = ", ".join(name for name in (job.data.file or job.data.table, *files) if name)
    asked = {"data": data}
    if job.indicators or not files:
        measured = [i.name for i in job.indicators] or [job.data.value or "number of records"]
        asked["value"] = ", ".join(measured)
    if job.data.holding:
        asked["holdings"] = job.data.holding
    options = {k: v for k, v in job.method.collect_options(outcome.release.table).items() if v is not None}
    asked["method"] = job.method.name + "".join(
        f", {k} {v:g}" if isinstance(v, float) else f", {k} {v}" for k, v in options.items()
    )
    asked["weights"] = job.method.weights
    known = [attacker.name for attacker in outcome.release.table.attackers if not attacker.derived]
    respondents = len(outcome.release.table.attackers) - len(known)
    asked["attackers"] = ", ".join(known or ["external"]) + (f", {respondents} respondents" if respondents else "")
    if "key" in outcome.release.options:
        asked["key"] = f"in {manifests.KEY_FILE}, which must stay inside"
    else:
        asked["seed"] = str(job.seed)
    asked |= outcome.remembered
    if outcome.warnings:
        asked["warnings"] = " ".join(outcome.warnings)
    return asked

"""Running a job: tabulate, flag, protect, audit, attack, write. Nothing unsafe leaves."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from cellguard._interrupt import BEST_KEPT, was_interrupted
from cellguard.check.attack import attack, matching_attack
from cellguard.check.audit import Audit
from cellguard.exceptions import CellguardError, InputError
from cellguard.methods.compare import compare, measured_for_comparison
from cellguard.nouns.clusters import cluster_releases_kept_by
from cellguard.nouns.grid import empty_cells_of_table
from cellguard.nouns.release import Release, Status, Suppression
from cellguard.nouns.table import Table
from cellguard.publish import manifest as manifests
from cellguard.publish.checkpoint import Checkpoints
from cellguard.publish.flags import flagged_by_job
from cellguard.publish.model import AttackSection, CompareSection
from cellguard.publish.outputs import Folders, write_outputs
from cellguard.publish.progress import Progress
from cellguard.publish.read import JobFile
from cellguard.publish.steps import (
    check_layout_of_job,
    count_rule_of_job,
    inputs_of_job,
    protected_by_job,
    warnings_of_job,
)
from cellguard.publish.tables import tabulated_by_job

__all__ = ["Outcome", "UnsafeReleaseError", "run"]

T = TypeVar("T")

_EXACT_RANGES = 2000
"""Up to so many sensitive cells the report shows both ends of every range; beyond, verdicts alone are computed."""
_SEVERAL_CORES = 20_000
"""From so many cells on, the audit runs on as many cores as the job says: below, it ends before others have begun."""


class UnsafeReleaseError(CellguardError):
    """The method found no release, the audit refuses the one it found, or there was nothing to check."""

    summary: Mapping[str, Any] = {}
    """The JSON object of the command line for what was found and not written."""
    kept = False
    """Whether what was found stays in the private folder: whoever writes it all the same need not search again."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """What a run of a job made."""

    file: JobFile = field(repr=False)
    release: Release
    audit: Audit | None
    folder: Path
    """Where the outputs are, in ``public`` and ``internal``."""
    seconds: dict[str, float]
    """How long each step took."""
    resumed: tuple[str, ...] = ()
    """Steps that an earlier run, ended before its time, had already done."""
    comparison: Any = None
    attack: Any = None
    unsafe: bool = False
    """Whether an unsafe release was written on request."""
    warnings: tuple[str, ...] = ()
    """What somebody should look at before it is published."""

    @property
    def report(self) -> Path | None:
        """The public report, if one was asked for."""
        path = self.folder / "public" / "report.html"
        return path if path.is_file() else None

    def summary(self, *, internal: bool = False) -> dict[str, Any]:
        """Return the JSON object of the command line; what is computed from true values only when `internal`."""
        out = self.release.summary(internal=internal)
        out["seconds"] = {"total": sum(self.seconds.values()), **self.seconds}
        out["audit"] = None if self.audit is None else self.audit.summary()
        out |= {"job": self.file.job.name, "folder": str(self.folder), "unsafe": self.unsafe}
        out |= {"resumed": list(self.resumed), "report": None if self.report is None else str(self.report)}
        out |= {"warnings": list(self.warnings)} if self.warnings else {}
        if self.attack is not None:
            out["attack"] = self.attack.summary()
        if self.comparison is not None and internal:
            out["compare"] = list(self.comparison.rows)
        return out


def run(
    file: JobFile,
    *,
    allow_unsafe: bool = False,
    fresh: bool = False,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Do everything a job asks for.

    Parameters
    ----------
    file
        The job, from :func:`cellguard.publish.read_job`.
    allow_unsafe
        Write a release that the audit refuses; every output says so.
    fresh
        Forget the checkpoints of an earlier run.
    folder
        Where the outputs go, instead of where the job says.
    progress
        Who is told.

    Raises
    ------
    UnsafeReleaseError
        When there is no release, or the audit refuses it and `allow_unsafe` is not given.
    """
    if file.job.unconfirmed:
        raise InputError(
            f"{file.path}: guesses that nobody has confirmed: {', '.join(file.job.unconfirmed)}.",
            hint="look at them in the file, correct them, and delete the line `unconfirmed`.",
        )
    folders = Folders(folder or file.folder)
    with folders.entered(fresh=fresh):
        work = _Run(file, folders, progress or Progress(quiet=True))
        try:
            return _steps_of_job_done(file, work, allow_unsafe=allow_unsafe)
        except CellguardError as error:
            if not (isinstance(error, UnsafeReleaseError) and error.kept):  # for another job nothing here is of use
                folders.clean()
            raise


def _steps_of_job_done(file: JobFile, work: _Run, *, allow_unsafe: bool) -> Outcome:
    """Do the steps of a job."""
    table = work.step("tabulate", lambda: tabulated_by_job(file))
    table = work.step("flag", lambda: flagged_by_job(table, file))
    empty = int(empty_cells_of_table(table).sum())
    without = f", {empty:,} without data" if empty else ""
    work.progress.note(f"{table.n_cells:,} cells, {int(table.sensitive.sum()):,} sensitive{without}")
    warnings = warnings_of_job(table, file.job)
    for text in warnings:
        work.progress.note(f"warning: {text}")
    if not table.sensitive.any() and file.job.nothing_sensitive == "stop":
        raise _refusal_to_publish_harmless(table, file)
    check_layout_of_job(table, file)
    limit = file.job.limits.time_limit_s
    release = work.step("protect", lambda: _release_for_checkpoint(_protected_in_run(table, file, work)), limit_s=limit)
    if was_interrupted() and release.published:
        work.progress.note(BEST_KEPT)
    exact = file.job.output.report and int(table.sensitive.sum()) <= _EXACT_RANGES
    jobs = file.job.limits.threads if table.n_cells >= _SEVERAL_CORES else None
    audit = work.step("audit", lambda: release.audit(exact=exact, jobs=jobs)) if release.published else None
    unsafe = audit is None or not (audit.safe or audit.checked == 0)
    outcome = Outcome(
        file=file,
        release=release,
        audit=audit,
        folder=work.folders.root,
        seconds=work.seconds,
        resumed=tuple(work.resumed),
        unsafe=unsafe,
        warnings=tuple(warnings),
    )
    if unsafe and not (allow_unsafe and audit is not None):
        raise _refusal_to_publish_outcome(outcome)
    if (scenario := file.job.attack) is not None:
        found = work.step("attack", lambda: _release_attacked_by_job(release, scenario, file), kept=False)
        outcome = replace(outcome, attack=found)
    if (others := file.job.compare) is not None:
        rows = work.step("compare", lambda: _methods_compared_in_run(release, audit, others, file))
        outcome = replace(outcome, comparison=rows)
    work.refuse_changes()
    work.step("write", lambda: write_outputs(outcome, work.folders, work.hashes, work.progress), kept=False)
    return outcome


def _protected_in_run(table: Table, file: JobFile, work: _Run) -> Release:
    """Protect the table; of a publication as many clusters at a time as the job says, each with its checkpoint."""
    if table.parts is None:
        return protected_by_job(table, file.job, work.progress.tell)
    from joblib import parallel_config

    with parallel_config(n_jobs=file.job.limits.threads), cluster_releases_kept_by(_Clusters(work)):
        return protected_by_job(table, file.job, work.progress.tell)


class _Clusters:
    """Keeps the clusters of a publication that are protected already."""

    def __init__(self, work: _Run) -> None:
        self.work = work

    def load(self, number: int) -> Release | None:
        """Return the release of a cluster that an earlier run has made."""
        found: Release | None = self.work.checkpoints.load(f"protect-{number}")
        if found is not None:
            self.work.resumed.append(f"cluster {number + 1}")
        return found

    def save(self, number: int, release: Release) -> None:
        """Keep the release of a cluster."""
        self.work.checkpoints.save(f"protect-{number}", _release_for_checkpoint(release))
        self.work.progress.note(f"cluster {number + 1}: {release.status}")


class _Run:
    """The steps of a run with their checkpoints and seconds."""

    def __init__(self, file: JobFile, folders: Folders, progress: Progress) -> None:
        self.folders, self.progress = folders, progress
        self.seconds: dict[str, float] = {}
        self.resumed: list[str] = []
        self.hashes = {path: file.facts.of(path).digest for path in inputs_of_job(file)}
        self.checkpoints = Checkpoints(folders.work, _key_of_checkpoints(file, self.hashes))

    def step(self, name: str, make: Callable[[], T], *, limit_s: float | None = None, kept: bool = True) -> T:
        """Do a step unless a checkpoint has its result, which is `kept` there."""
        self.progress.phase(name, limit_s=limit_s)
        begin = time.perf_counter()
        made, before = self.checkpoints.step(name, make) if kept else (make(), False)
        if before:
            self.resumed.append(name)
        self.seconds[name] = time.perf_counter() - begin
        return made

    def refuse_changes(self) -> None:
        """Refuse to write what was made from files that changed meanwhile: nobody could say from which version."""
        for path, digest in self.hashes.items():
            if not path.is_file() or manifests.hash_for_manifest(path) != digest:
                text = f"{path}: changed while the job was running; nothing was written."
                raise InputError(text, hint="run the job again.")


def _key_of_checkpoints(file: JobFile, hashes: dict[Path, str]) -> str:
    """Return what a checkpoint must agree with: the job, its inputs, the versions."""
    read = sorted((os.path.relpath(path, file.path.parent), digest) for path, digest in hashes.items())
    facts = [file.job.model_dump(mode="json"), read, manifests.versions_for_manifest()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _release_for_checkpoint(release: Release) -> Release:
    """Return the release with plain details only: a checkpoint holds no solver's objects."""
    plain = {k: v for k, v in release.details.items() if isinstance(v, bool | int | float | str | dict | list | None)}
    return replace(release, details=plain, options=dict(release.options), seconds=dict(release.seconds))


def _refusal_to_publish_outcome(outcome: Outcome) -> UnsafeReleaseError:
    release, audit = outcome.release, outcome.audit
    if audit is None:
        status, limit = str(release.status).replace("_", " "), outcome.file.job.limits.time_limit_s
        late = release.status is Status.TIME_LIMIT
        more = f"raise limits.time_limit_s (now {limit:g}) in the job; " if late else ""
        error = UnsafeReleaseError(
            f"no release: {status}. {release.explanation}".strip(),
            hint=f"{more}lower levels, or another method may find one.",
        )
    else:
        cells = audit.unsafe_cells
        first = release.table.label(int(cells[0])) if len(cells) else ""
        error = UnsafeReleaseError(
            f"the audit refuses this release: {audit.unsafe} of {audit.checked} cells are not safe, {first} for one; "
            "nothing was written.",
            hint="--allow-unsafe writes it all the same, marked as unsafe; --fresh forgets what was found.",
        )
        error.kept = True
    error.summary = outcome.summary()
    return error


def _refusal_to_publish_harmless(table: Table, file: JobFile) -> UnsafeReleaseError:
    """Stop a job that would protect nothing: more often a mistake in the rules than a harmless table."""
    error = UnsafeReleaseError(
        f"no cell of {table.n_cells:,} is sensitive by the rules of this job: nothing would be protected or checked.",
        hint='look at the rules, and at which column is the value; or say nothing_sensitive = "publish".',
    )
    error.summary = {
        "job": file.job.name,
        "method": file.job.method.name,
        "status": "nothing_checked",
        "table": {"cells": table.n_cells, "sensitive": 0, "relations": table.n_relations},
        "audit": {"safe": False, "checked": 0, "exact": 0, "unsafe": 0},
    }
    return error


def _methods_compared_in_run(release: Release, audit: Audit | None, asked: CompareSection, file: JobFile) -> Any:
    """Protect the table by other methods too. Their releases stay here: two releases of a table can be subtracted."""
    others = [name for name in asked.methods if name != release.method]
    found = compare(release.table, others, time_limit_s=asked.time_limit_s, seed=file.job.seed)
    rows = found.rows
    if audit is not None:
        seconds = release.seconds.get("total", sum(release.seconds.values()))
        rows = (measured_for_comparison(file.job.method.method, release, audit, seconds, release.options), *rows)
    return replace(found, rows=rows, releases={})


def _release_attacked_by_job(release: Release, asked: AttackSection, file: JobFile) -> Any:
    if asked.scenario != "matching":
        return attack(release, asked.scenario, replications=asked.replications, seed=file.job.seed)
    if not isinstance(release, Suppression):
        raise InputError(f"attack: matching is for suppressions, not for {release.method}.")
    knows = "rule"  # a pattern that was searched for depends on more than its attacker can know
    if "rule" in release.options:
        knows = "mechanism" if "resist" in release.options else "algorithm"
    return matching_attack(release, count_rule_of_job(release.table, file.job), knows=knows, seed=file.job.seed)

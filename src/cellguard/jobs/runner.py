"""Run a job: tabulate, flag, protect, audit, attack, write. Nothing unsafe is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cellguard._interrupt import BEST_KEPT, was_interrupted
from cellguard.attacks import attack, attack_by_weighing, matching_attack
from cellguard.auditing.audit import Audit
from cellguard.exceptions import CellguardError, InputError
from cellguard.jobs.checkpoint import Checkpoints
from cellguard.jobs.definition.estimate import MIN_CELLS, estimate_work, refuse_too_large
from cellguard.jobs.definition.model import AttackSection, CompareSection, Job
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.flags import flag_job
from cellguard.jobs.outputs import manifest as manifests
from cellguard.jobs.outputs.earlier import RepeatedReleaseError
from cellguard.jobs.outputs.memory import Memory, restrict_audit
from cellguard.jobs.outputs.writer import Folders, write_outputs
from cellguard.jobs.parts import Parts, compute_checkpoint_key, strip_for_checkpoint, take_movements
from cellguard.jobs.progress import Progress
from cellguard.jobs.steps import (
    check_layout_of_job,
    count_rule_of_job,
    list_inputs,
    list_warnings,
    protect_table,
    refuse_identifiers,
    refuse_lookalikes_of_job,
)
from cellguard.jobs.tables import tabulate_job
from cellguard.methods.compare import compare, measure_release
from cellguard.model.key import Key, KeyGiven
from cellguard.model.table import Table
from cellguard.release.grid import find_empty_cells
from cellguard.release.release import Release, Status

if TYPE_CHECKING:
    from cellguard._engine.ranges.witnesses.shown import ShownMovements
    from cellguard.release.release import Suppression

__all__ = ["Outcome", "UnsafeReleaseError", "run"]

T = TypeVar("T")

_EXACT_RANGES = 2000
"""Up to this many sensitive cells, the report shows both ends of every range; beyond, only verdicts are computed."""
_SEVERAL_CORES = 20_000
"""From this many cells, the audit uses all cores the job allows; smaller audits end before workers have started."""


class UnsafeReleaseError(CellguardError):
    """The method found no release, the audit refused it, or there was nothing to check."""

    summary: Mapping[str, Any] = {}
    """The command line's JSON object for a release that was found but not written."""
    kept = False
    """Whether the release stays in the private folder, so that a user who writes it anyway need not search again."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
    """The outcome of a run."""

    file: JobFile = field(repr=False)
    release: Release
    audit: Audit | None
    folder: Path
    """Folder of the outputs, with ``public`` and ``internal``."""
    seconds: dict[str, float]
    """Seconds that each step took."""
    resumed: tuple[str, ...] = ()
    """Steps that an earlier, interrupted run had already done."""
    comparison: Any = None
    attack: Any = None
    unsafe: bool = False
    """Whether an unsafe release was written on request."""
    warnings: tuple[str, ...] = ()
    """Warnings that a user should check before publication."""
    joint: Audit | None = field(default=None, repr=False)
    """The audit together with earlier releases and derived figures, if any; `audit` is the part about the table."""
    remembered: Mapping[str, str] = field(default_factory=dict)
    """Earlier releases and derived figures with which it was audited, in words."""

    @property
    def report(self) -> Path | None:
        """The public report, if requested."""
        path = self.folder / "public" / "report.html"
        return path if path.is_file() else None

    def summary(self, *, internal: bool = False) -> dict[str, Any]:
        """Return the command line's JSON object; figures computed from true values are included only if `internal`."""
        out = self.release.summary(internal=internal)
        out["seconds"] = {"total": sum(self.seconds.values()), **self.seconds}
        out["audit"] = None if self.audit is None else self.audit.summary()
        out |= {"job": self.file.job.name, "folder": str(self.folder), "unsafe": self.unsafe}
        out |= {"resumed": list(self.resumed), "report": None if self.report is None else str(self.report)}
        out |= {"accepted": self.release.accepted} if self.release.accepted else {}
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
    key: KeyGiven | None = None,
    progress: Progress | None = None,
    again: bool = False,
    parts: Path | None = None,
    scheduler: str | None = None,
    accept: str | None = None,
) -> Outcome:
    """Run a job.

    Parameters
    ----------
    file
        The job, from :func:`cellguard.jobs.read_job`.
    allow_unsafe
        Write a release that the audit refuses; every output says so.
    fresh
        Ignore the checkpoints of an earlier run.
    folder
        Folder of the outputs, instead of the job's.
    key
        The secret key for the method's random draws, instead of the job's; drawn unless given.
    progress
        Callback that receives progress updates.
    again
        Write a release of cells that an earlier release in the ledger shows differently.
    parts
        Folder with the parts of the job that other processes have protected (:mod:`cellguard.jobs.parts`).
    scheduler
        Address of a Dask scheduler whose workers protect the clusters of a publication, instead of the job's.
    accept
        ``"external"``: if nothing is shown safe against everyone in time, write a release that is shown safe against
        external attackers, instead of what the job says. Report and manifest say so.

    Raises
    ------
    UnsafeReleaseError
        When there is no release, or the audit refuses it and `allow_unsafe` is not given.
    """
    if file.job.unconfirmed:
        raise InputError(
            f"{file.path}: guesses that have not been confirmed: {', '.join(file.job.unconfirmed)}.",
            hint="look at them in the file, correct them, and delete the line `unconfirmed`.",
        )
    if accept is not None:
        file = _accept_in_job(file, accept)
    named = file.job.method.key
    given = key if key is not None else None if named is None else file.resolve_path(named)
    secret = None if given is None else Key.from_any(given)
    folders = Folders(folder or file.folder)
    with folders.enter(fresh=fresh):
        work = _Run(file, folders, progress or Progress(quiet=True), secret, parts)
        work.scheduler = scheduler
        try:
            return _run_steps(file, work, allow_unsafe=allow_unsafe, again=again or file.job.ledger.again)
        except CellguardError as error:
            kept = isinstance(error, UnsafeReleaseError | RepeatedReleaseError) and error.kept
            if not kept:  # checkpoints of another job are useless here
                folders.clean()
            raise


def _accept_in_job(file: JobFile, accept: str) -> JobFile:
    """Return the job in which the method accepts a release that is shown safe against some attackers only."""
    section = file.job.method
    if "accept" not in type(section).model_fields:
        raise InputError(f"the method {section.name} does not take `accept`.", hint="suppress does.")
    section.method.require_choices(accept=accept)
    method = section.model_copy(update={"accept": accept})
    return replace(file, job=file.job.model_copy(update={"method": method}))


def _run_steps(file: JobFile, work: _Run, *, allow_unsafe: bool, again: bool) -> Outcome:
    """Run the steps of a job."""
    table = work.run_step("tabulate", lambda: tabulate_job(file))
    table = work.run_step("flag", lambda: flag_job(table, file))
    refuse_identifiers(table, file.job)
    empty = int(find_empty_cells(table).sum())
    without = f", {empty:,} without data" if empty else ""
    work.progress.note(f"{table.n_cells:,} cells, {int(table.sensitive.sum()):,} sensitive{without}")
    warnings = list_warnings(table, file.job)
    for text in warnings:
        work.progress.note(f"warning: {text}")
    if not table.sensitive.any() and file.job.nothing_sensitive == "stop":
        raise _build_nothing_sensitive_error(table, file)
    check_layout_of_job(table, file)
    if (estimate := estimate_work(table, file.job)) is not None:
        work.progress.note(f"estimate: {estimate}")
        refuse_too_large(estimate, file.job)
    limit = file.job.limits.time_limit_s
    memory = work.memory
    release = work.run_step(
        "protect", lambda: work.strip_release(_protect(table, file, work)), limit_s=limit, kept=not memory.active
    )
    release = memory.add_history(release)
    if was_interrupted() and release.published:
        work.progress.note(BEST_KEPT)
    exact = file.job.output.report and int(table.sensitive.sum()) <= _EXACT_RANGES
    jobs = file.job.limits.threads if table.n_cells >= _SEVERAL_CORES else None
    audit = None
    if release.published:
        judge = partial(release.audit, exact=exact or None, jobs=jobs, shown=work.shown)
        audit = work.run_step("audit", judge, kept=not memory.active)
    unsafe = audit is None or not (audit.safe or audit.checked == 0)
    outcome = Outcome(
        file=file,
        release=release,
        audit=audit,
        remembered=memory.describe(audit),
        folder=work.folders.root,
        seconds=work.seconds,
        resumed=tuple(work.resumed),
        unsafe=unsafe,
        warnings=tuple(warnings),
    )
    if unsafe and not (allow_unsafe and audit is not None):
        raise _build_unsafe_error(outcome)
    outcome = replace(outcome, audit=restrict_audit(audit, release), joint=audit if memory.active else None)
    if not unsafe:
        refuse_lookalikes_of_job(release, file.job)
    if (scenario := file.job.attack) is not None:
        found = work.run_step("attack", lambda: _attack_release(release, scenario, file), kept=False)
        outcome = replace(outcome, attack=found)
    if (others := file.job.compare) is not None:
        rows = work.run_step("compare", lambda: _compare_methods(release, audit, others, file, work.key))
        outcome = replace(outcome, comparison=rows)
    work.refuse_changes()
    write = partial(write_outputs, outcome, work.folders, work.hashes, work.progress, again=again, memory=memory)
    work.run_step("write", write, kept=False)
    if work.parts is not None:
        work.parts.remove()
    return outcome


def _protect(table: Table, file: JobFile, work: _Run) -> Release:
    """Protect the table; for a publication, protect as many clusters at a time as the job says, with checkpoints."""
    if work.parts is not None:
        return work.parts.join(table, file.job, key=work.key)
    if table.parts is None:
        return protect_table(table, file.job, work.progress.tell, key=work.key, further=work.memory.get_options())
    with _use_workers(file.job, work.scheduler):
        return protect_table(
            table, file.job, work.progress.tell, key=work.key,
            further={"keeper": _Clusters(work), **work.memory.get_options()},
        )  # fmt: skip


def _use_workers(job: Job, scheduler: str | None) -> AbstractContextManager[Any]:
    """Return a context in which clusters run on the workers of a scheduler, or on as many cores as the job says."""
    if (address := scheduler or job.limits.scheduler) is not None:
        from cellguard.jobs.scheduler import use_scheduler

        return use_scheduler(address)
    from joblib import parallel_config

    context: AbstractContextManager[Any] = parallel_config(n_jobs=job.limits.threads)
    return context


class _Clusters:
    """Checkpoints of the clusters of a publication that are already protected."""

    def __init__(self, work: _Run) -> None:
        self.work = work

    def load(self, number: int) -> Release | None:
        """Return the release of a cluster that an earlier run made."""
        found: Release | None = self.work.checkpoints.load(f"protect-{number}")
        if found is not None:
            self.work.resumed.append(f"cluster {number + 1}")
        return found

    def save(self, number: int, release: Release) -> None:
        """Save the release of a cluster."""
        self.work.checkpoints.save(f"protect-{number}", strip_for_checkpoint(release))
        self.work.progress.note(f"cluster {number + 1}: {release.status}")

    def should_protect(self, number: int) -> bool:  # noqa: ARG002 - an undivided run protects every cluster
        """Protect every cluster."""
        return True


class _Run:
    """The steps of a run with their checkpoints and seconds."""

    def __init__(
        self, file: JobFile, folders: Folders, progress: Progress, key: Key | None, parts: Path | None = None
    ) -> None:
        self.folders, self.progress = folders, progress
        self.scheduler: str | None = None
        self.shown: ShownMovements | None = None
        """Movements of a large release, which the audit checks again before it solves programs."""
        self.seconds: dict[str, float] = {}
        self.resumed: list[str] = []
        self.hashes = {path: file.facts.get_facts(path).digest for path in list_inputs(file)}
        digest = compute_checkpoint_key(file, self.hashes, key)
        self.checkpoints = Checkpoints(folders.work, digest)
        self.parts = None if parts is None else Parts(parts, digest)
        # saved like the result of a step, so that a resumed run uses the same secret as its first part
        self.key = self.checkpoints.run_step("key", Key.draw)[0] if key is None else key
        self.memory = Memory(file)

    def strip_release(self, release: Release) -> Release:
        """Return a release for its checkpoint; keep the movements that prove a large one."""
        if release.table.n_cells >= MIN_CELLS:
            self.shown = take_movements(release)
        return strip_for_checkpoint(release)

    def run_step(self, name: str, make: Callable[[], T], *, limit_s: float | None = None, kept: bool = True) -> T:
        """Run a step unless a checkpoint has its result, which is `kept` there."""
        self.progress.begin_phase(name, limit_s=limit_s)
        begin = time.perf_counter()
        made, before = self.checkpoints.run_step(name, make) if kept else (make(), False)
        if before:
            self.resumed.append(name)
        self.seconds[name] = time.perf_counter() - begin
        return made

    def refuse_changes(self) -> None:
        """Refuse to write a release if its inputs changed during the run: its version would be unknown."""
        for path, digest in self.hashes.items():
            if not path.is_file() or manifests.hash_for_manifest(path) != digest:
                text = f"{path}: changed while the job was running; nothing was written."
                raise InputError(text, hint="run the job again.")


def _build_unsafe_error(outcome: Outcome) -> UnsafeReleaseError:
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
        first = audit.release.table.label(int(cells[0])) if len(cells) else ""
        error = UnsafeReleaseError(
            f"the audit refuses this release: {audit.unsafe} of {audit.checked} cells are not safe, {first} for one; "
            "nothing was written.",
            hint="--allow-unsafe writes it all the same, marked as unsafe; --fresh forgets what was found.",
        )
        error.kept = True
    error.summary = outcome.summary()
    return error


def _build_nothing_sensitive_error(table: Table, file: JobFile) -> UnsafeReleaseError:
    """Return the error for a job that would protect nothing: usually a mistake in the rules, not a harmless table."""
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


def _compare_methods(release: Release, audit: Audit | None, asked: CompareSection, file: JobFile, key: Key) -> Any:
    """Protect the table by other methods too. Discard their releases: two releases of a table can be subtracted."""
    others = [name for name in asked.methods if name != release.method]
    found = compare(release.table, others, time_limit_s=asked.time_limit_s, seed=file.job.seed, key=key)
    rows = found.rows
    if audit is not None:
        seconds = release.seconds.get("total", sum(release.seconds.values()))
        rows = (measure_release(file.job.method.method, release, audit, seconds, release.options), *rows)
    return replace(found, rows=rows, releases={})


def _attack_release(release: Release, asked: AttackSection, file: JobFile) -> Any:
    options = asked.collect_options(release.method)
    if asked.scenario not in ("matching", "weighing"):
        return attack(release, asked.scenario, seed=file.job.seed, **options)
    if not release.withholds_cells:
        raise InputError(f"attack: {asked.scenario} is for suppressions, not for {release.method}.")
    knows = "rule"  # a pattern from a search depends on more than an attacker can know
    if "rule" in release.options:
        knows = "mechanism" if "resist" in release.options else "algorithm"
    run = matching_attack if asked.scenario == "matching" else attack_by_weighing
    rule = count_rule_of_job(release.table, file.job)
    return run(cast("Suppression", release), rule, **{"knows": knows, "seed": file.job.seed, **options})

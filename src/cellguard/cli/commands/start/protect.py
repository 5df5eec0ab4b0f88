"""``cellguard protect``: run a job file."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cellguard.cli.support.options import Internal, Json, KeyFile, Quiet
from cellguard.cli.support.printing import (
    JobsFailedError,
    NoSafeReleaseError,
    format_summary,
    print_json,
    print_note,
    print_pairs,
    redirect_library_output,
)

if TYPE_CHECKING:
    from cellguard.cli.support.many import Batch
    from cellguard.jobs.definition.model import Job
    from cellguard.jobs.definition.read import JobFile
    from cellguard.jobs.runner import Outcome

__all__ = ["command", "run_job_on_terminal"]

_SHOWN = (
    *("status", "explanation", "gap", "table", "primary", "secondary", "base", "audit"),
    *("attack", "folder", "report", "seconds"),
)


def command(
    jobs: Annotated[
        list[Path],
        Argument(metavar="JOB.toml...", show_default=False, help="The job, or several jobs: see cellguard init."),
    ],
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show the plan and the sizes; protect and write nothing.")
    ] = False,
    report: Annotated[Path | None, Option(metavar="FILE.html", help="Write the public report here too.")] = None,
    out: Annotated[Path | None, Option(metavar="FOLDER", help="Output folder, instead of the job's.")] = None,
    allow_unsafe: Annotated[
        bool,
        Option("--allow-unsafe", help="Write a release that the audit rejects; every output says that it is unsafe."),
    ] = False,
    accept: Annotated[
        str | None,
        Option(
            metavar="ATTACKER",
            help="external: write a release that is shown safe against external attackers only; every report says so.",
        ),
    ] = None,
    again: Annotated[
        bool, Option("--again", help="Write the release although an earlier one shows some of its cells differently.")
    ] = False,
    key: KeyFile = None,
    fresh: Annotated[bool, Option("--fresh", help="Discard the checkpoints of an interrupted run.")] = False,
    only_changed: Annotated[
        bool, Option("--only-changed", help="Skip jobs whose inputs, software and release are unchanged.")
    ] = False,
    workers: Annotated[
        int | None, Option(metavar="N", min=1, max=1024, help="With several jobs: how many run at the same time (1).")
    ] = None,
    summary: Annotated[
        Path | None, Option(metavar="FILE.html", help="With several jobs: write a page with one row per job.")
    ] = None,
    part: Annotated[
        str | None,
        Option(metavar="K/N", help="Protect part K of N of a publication and store it in --out, for --join."),
    ] = None,
    scheduler: Annotated[
        str | None,
        Option(metavar="ADDRESS", help="Dask scheduler whose workers protect the clusters of a publication."),
    ] = None,
    join: Annotated[bool, Option("--join", help="Join the parts in --out: audit and write the release.")] = False,
    internal: Internal = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a job file: tabulate, flag, protect, audit, write.

    A release that the audit refuses is not written (exit code 2). Nor are cells that an earlier release in the
    ledger shows differently, unless --again confirms it: two releases of one table can be subtracted. A run that
    was killed leaves no partial release; the same command resumes it.

    Several jobs run in processes of their own: a failure does not stop the others, standard output has one JSON
    line per job, and the exit code is the largest of theirs.
    """
    if len(jobs) > 1 or only_changed or workers is not None or summary is not None:
        from cellguard.cli.support.many import Batch

        single = {
            "--part": part,
            "--join": join,
            "--scheduler": scheduler,
            "--dry-run": dry_run,
            "--report": report,
            "--out": out,
            "--key": key,
        }
        flags = {"--allow-unsafe": allow_unsafe, "--again": again, "--fresh": fresh, "--internal": internal}
        options = [name for name, on in flags.items() if on]
        every = list(dict.fromkeys(jobs))
        _run_several_jobs(
            Batch(jobs=every, workers=workers or 1, only_changed=only_changed, options=options, summary=summary),
            single=single,
            quiet=quiet,
        )
        return
    job = jobs[0]
    if part is not None:
        _run_part_on_terminal(job, part, out, key, join=join, as_json=as_json)
        return
    from cellguard.jobs import read_job
    from cellguard.jobs.plan import plan
    from cellguard.model.key import Key

    with redirect_library_output(as_json):
        secret = None if key is None else Key.read(key)
        file = read_job(job)
        if report is not None and not dry_run:
            _check_report_option(file.job, report)
        if dry_run:
            shown = plan(file)
        else:
            asked: dict[str, Any] = {
                "allow_unsafe": allow_unsafe,
                "fresh": fresh,
                "folder": out,
                "key": secret,
                "again": again,
            }
            asked |= {"parts": out or file.folder if join else None, "scheduler": scheduler, "accept": accept}
            outcome = run_job_on_terminal(file, quiet=quiet, **asked)
            shown = outcome.summary(internal=internal)
            if report is not None:
                _copy_to_report_option(outcome, report)
    if as_json:
        print_json(shown)
    elif dry_run:
        for text in shown.pop("warnings", ()):
            print_note(f"warning: {text}", quiet=quiet)
        print_pairs(f"{job.name}: the plan", shown)
    else:
        print_pairs(f"{file.job.name}: {outcome.release.method}", _format_essentials(outcome))
        print_note(_describe_verdict(outcome), quiet=quiet)


def _describe_verdict(outcome: Outcome) -> str:
    """Return what was written, in a few words."""
    if outcome.unsafe:
        return "written, and NOT SAFE"
    accepted = outcome.release.accepted
    return f"written on request: {accepted}" if accepted else "written, and safe"


def _run_part_on_terminal(
    job: Path, part: str, out: Path | None, key: Path | None, *, join: bool, as_json: bool
) -> None:
    """Protect one part of a job and print which clusters it has."""
    from cellguard.exceptions import InputError
    from cellguard.jobs import read_job
    from cellguard.jobs.parts import JobPart, run_part

    asked = JobPart.parse(part)
    if join:
        raise InputError("--part and --join: one of them is possible.", hint="join after all parts have ended.")
    with redirect_library_output(as_json):
        file = read_job(job)
        shown = run_part(file, asked, out or file.folder, key)
    if as_json:
        print_json(shown)
    else:
        print_pairs(f"{job.name}: part {part}", shown)


def _run_several_jobs(batch: Batch, *, single: Mapping[str, Any], quiet: bool) -> None:
    """Run several jobs and print one JSON line for each; options of a `single` job are refused."""
    from cellguard.cli.support.many import refuse_shared_folders, run_many_jobs, write_summary_page
    from cellguard.exceptions import InputError

    for name, value in single.items():
        if value:
            raise InputError(f"{name}: is for a single job.", hint="run that job alone.")
    page = batch.summary
    if page is not None and not page.parent.is_dir():
        raise InputError(f"--summary {page}: there is no folder {page.parent}.", hint="make the folder first.")
    refuse_shared_folders(batch.jobs)
    results = []
    for result in run_many_jobs(batch):
        results.append(result)
        print_json(result.build_json())
        print_note(f"{len(results)} of {len(batch.jobs)}: {result.job}: {result.verdict}", quiet=quiet)
        if page is not None:
            write_summary_page(page, results)
    if worst := max(result.exit_code for result in results):
        raise JobsFailedError(worst)


def run_job_on_terminal(file: JobFile, *, quiet: bool, **options: Any) -> Outcome:
    """Run a job and report its progress; refuse an unsafe release like the other commands."""
    from cellguard.jobs.progress import Progress
    from cellguard.jobs.runner import UnsafeReleaseError, run

    try:
        with Progress(quiet=quiet) as progress:
            return run(file, progress=progress, **options)
    except UnsafeReleaseError as error:
        raise NoSafeReleaseError(error.message, hint=error.hint, summary=error.summary) from None


def _format_essentials(outcome: Outcome) -> dict[str, Any]:
    """Return the key facts for a user at a terminal; the reports have the rest."""
    shown = outcome.summary()
    if "attack" in shown:
        wanted = ("scenario", "knowledge", "knows", "primary", "unsafe", "undecided", "disclosed", "hits", "verdict")
        shown["attack"] = {k: shown["attack"][k] for k in wanted if k in shown["attack"]}
    shown["seconds"] = {step: round(seconds, 2) for step, seconds in shown["seconds"].items()}
    return format_summary({k: shown[k] for k in _SHOWN if k in shown})


def _check_report_option(job: Job, path: Path) -> None:
    """Refuse, before the run, a report that cannot be written."""
    from cellguard.exceptions import InputError

    if not job.output.report:
        raise InputError("--report: the job writes no report.", hint="set output.report = true.")
    if not path.parent.is_dir():
        raise InputError(f"--report {path}: there is no folder {path.parent}.", hint="make the folder first.")


def _copy_to_report_option(outcome: Outcome, path: Path) -> None:
    from cellguard._io.files import open_atomically

    if outcome.report is None:  # the check before the run ensures that the job has a report
        return
    with outcome.report.open("rb") as source, open_atomically(path) as target:
        shutil.copyfileobj(source, target)

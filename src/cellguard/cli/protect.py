"""``cellguard protect``: do everything a job file asks for."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cellguard.cli._options import Internal, Json, Quiet
from cellguard.cli._printing import (
    NoSafeReleaseError,
    only_json_on_stdout,
    print_json,
    print_note,
    print_pairs,
    printed_in_words,
)

if TYPE_CHECKING:
    from cellguard.publish.model import Job
    from cellguard.publish.read import JobFile
    from cellguard.publish.run import Outcome

__all__ = ["command", "run_job_on_terminal"]

_SHOWN = (
    *("status", "explanation", "gap", "table", "primary", "secondary", "base", "audit"),
    *("attack", "folder", "report", "seconds"),
)


def command(
    job: Annotated[Path, Argument(metavar="JOB.toml", show_default=False, help="The job: see cellguard init.")],
    dry_run: Annotated[
        bool, Option("--dry-run", help="Show the plan and the sizes; protect and write nothing.")
    ] = False,
    report: Annotated[Path | None, Option(metavar="FILE.html", help="Write the public report here too.")] = None,
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Where the outputs go, instead of where the job says.")
    ] = None,
    allow_unsafe: Annotated[
        bool, Option("--allow-unsafe", help="Write a release that the audit refuses; every output says so.")
    ] = False,
    fresh: Annotated[bool, Option("--fresh", help="Forget the checkpoints of a run that was ended.")] = False,
    internal: Internal = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Do everything a job file asks for: tabulate, flag, protect, audit, write.

    A release that the audit refuses is not written (exit code 2). A run that was killed leaves no partial
    release; the same command goes on where it was.
    """
    from cellguard.publish import read_job
    from cellguard.publish.plan import plan

    with only_json_on_stdout(as_json):
        file = read_job(job)
        if report is not None and not dry_run:
            _check_report_option(file.job, report)
        if dry_run:
            shown = plan(file)
        else:
            outcome = run_job_on_terminal(file, quiet=quiet, allow_unsafe=allow_unsafe, fresh=fresh, folder=out)
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
        print_pairs(f"{file.job.name}: {outcome.release.method}", _printed_essentials(outcome))
        print_note("written, and safe" if not outcome.unsafe else "written, and NOT SAFE", quiet=quiet)


def run_job_on_terminal(file: JobFile, *, quiet: bool, **options: Any) -> Outcome:
    """Run a job, telling its progress; what is not safe is refused as the verbs do."""
    from cellguard.publish.progress import Progress
    from cellguard.publish.run import UnsafeReleaseError, run

    try:
        with Progress(quiet=quiet) as progress:
            return run(file, progress=progress, **options)
    except UnsafeReleaseError as error:
        raise NoSafeReleaseError(error.message, hint=error.hint, summary=error.summary) from None


def _printed_essentials(outcome: Outcome) -> dict[str, Any]:
    """Return what somebody at a terminal wants to know first; the reports have the rest."""
    shown = outcome.summary()
    if "attack" in shown:
        wanted = ("scenario", "knows", "primary", "unsafe", "undecided", "disclosed", "hits", "verdict")
        shown["attack"] = {k: shown["attack"][k] for k in wanted if k in shown["attack"]}
    shown["seconds"] = {step: round(seconds, 2) for step, seconds in shown["seconds"].items()}
    return printed_in_words({k: shown[k] for k in _SHOWN if k in shown})


def _check_report_option(job: Job, path: Path) -> None:
    """Refuse, before any work is done, a report that cannot be written."""
    from cellguard.exceptions import InputError

    if not job.output.report:
        raise InputError("--report: the job asks for no report.", hint="set output.report = true.")
    if not path.parent.is_dir():
        raise InputError(f"--report {path}: there is no folder {path.parent}.", hint="make the folder first.")


def _copy_to_report_option(outcome: Outcome, path: Path) -> None:
    from cellguard._io.files import atomic_writer

    if outcome.report is None:  # the check before the run has seen that one is asked for
        return
    with outcome.report.open("rb") as source, atomic_writer(path) as target:
        shutil.copyfileobj(source, target)

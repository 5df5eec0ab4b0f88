"""Run several job files, each in a process of its own, so that a failure of one does not stop the others."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from cellguard._io.files import write_text
from cellguard.exceptions import CellguardError, InputError

__all__ = ["Batch", "JobResult", "refuse_shared_folders", "run_many_jobs", "write_summary_page"]

_VERDICTS = {0: "safe", 1: "wrong input", 2: "no safe release", 3: "internal error", 130: "stopped"}


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What became of one job."""

    job: Path
    exit_code: int
    skipped: bool = False
    """Whether the release in its folder is still the one that the job would give."""
    reason: str = ""
    """Why the job ran again, where unchanged jobs are skipped."""
    message: str = ""
    """The error message, if the job failed."""
    seconds: float = 0.0
    summary: dict[str, Any] = field(default_factory=dict)
    """The JSON object that the job printed."""

    @property
    def verdict(self) -> str:
        """The result in a few words; a release that was written on request is not called safe."""
        if self.skipped:
            return "unchanged"
        if self.exit_code == 0 and self.summary.get("unsafe"):
            return "NOT SAFE, written on request"
        if self.exit_code == 0 and self.summary.get("accepted"):
            return "safe against some attackers, written on request"
        return _VERDICTS.get(self.exit_code, f"exit code {self.exit_code}")

    def build_json(self) -> dict[str, Any]:
        """Return the JSON object of the job."""
        out: dict[str, Any] = {"job": str(self.job), "exit_code": self.exit_code, "skipped": self.skipped}
        out |= {"verdict": self.verdict, "seconds": round(self.seconds, 3)}
        out |= {name: text for name in ("reason", "message") if (text := getattr(self, name))}
        return out | ({"result": self.summary} if self.summary else {})


def refuse_shared_folders(jobs: Sequence[Path]) -> None:
    """Refuse job files that are named twice, or that write into one folder: one release would replace the other."""
    from cellguard._io.toml import parse_toml, read_toml_text

    seen: dict[Path, Path] = {}
    for job in jobs:
        try:
            content = parse_toml(read_toml_text(job, job), job)
            folder = (job.parent / str((content.get("output") or {}).get("folder", "release"))).resolve()
        except (CellguardError, OSError, AttributeError):
            continue  # the job's own run reports this mistake
        if folder in seen:
            raise InputError(
                f"{seen[folder]} and {job}: both write into {folder}.",
                hint="give each job an output.folder of its own.",
            )
        seen[folder] = job


@dataclass(frozen=True, kw_only=True)
class Batch:
    """How several jobs run."""

    jobs: Sequence[Path]
    workers: int = 1
    """Number of jobs that run at the same time."""
    only_changed: bool = False
    """Whether unchanged jobs are skipped."""
    options: Sequence[str] = ()
    """Options of the command line for every job."""
    summary: Path | None = None
    """The page with one row per job."""


def run_many_jobs(batch: Batch) -> Iterator[JobResult]:
    """Run the jobs; yield each result when its job ends."""
    with ThreadPoolExecutor(batch.workers) as pool:
        waiting = [pool.submit(_run_one_job, job, batch.only_changed, batch.options) for job in batch.jobs]
        for done in as_completed(waiting):
            yield done.result()


def _run_one_job(job: Path, only_changed: bool, options: Sequence[str]) -> JobResult:
    start = time.perf_counter()
    reason = _find_change_of_job(job) if only_changed else ""
    if reason is None:
        return JobResult(job=job, exit_code=0, skipped=True, seconds=time.perf_counter() - start)
    words = [sys.executable, "-m", "cellguard", "protect", str(job), "--json", "--quiet", *options]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - our own command
    summary = _parse_last_json_line(ended.stdout)
    message = str(summary.get("message", "")) if "error" in summary else _find_error_message(ended.stderr)
    return JobResult(
        job=job,
        exit_code=ended.returncode if ended.returncode >= 0 else 3,  # killed by the operating system
        reason=reason,
        message=message if ended.returncode else "",
        seconds=time.perf_counter() - start,
        summary={} if "error" in summary else summary,
    )


def _find_change_of_job(job: Path) -> str | None:
    from cellguard.jobs import read_job
    from cellguard.jobs.unchanged import find_change

    try:
        return find_change(read_job(job))
    except (CellguardError, OSError):
        return "the job cannot be read"  # its own run reports the mistake and its place


def _parse_last_json_line(text: str) -> dict[str, Any]:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        found = json.loads(lines[-1]) if lines else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _find_error_message(text: str) -> str:
    """Return the first line that the command line printed about an error."""
    lines = [line.removeprefix("cellguard: ") for line in text.splitlines() if line.startswith("cellguard: ")]
    return lines[-1] if lines else ""


def write_summary_page(path: Path, results: Sequence[JobResult]) -> None:
    """Write a page with one row per job; it shows no values of a table."""
    rows = "\n".join(_format_row(result) for result in sorted(results, key=lambda r: (-r.exit_code, str(r.job))))
    failed = sum(result.exit_code != 0 for result in results)
    skipped = sum(result.skipped for result in results)
    write_text(
        path,
        f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>cellguard: {len(results)} jobs</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }}
:root {{ color-scheme: light dark }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .3rem .8rem; border-bottom: 1px solid #8884 }}
td.number {{ text-align: right }} .failed {{ color: #b3261e; font-weight: 600 }}
</style>
<h1>{len(results)} jobs: {len(results) - failed - skipped} protected, {skipped} unchanged, {failed} failed</h1>
<table><thead><tr><th>Job</th><th>Result</th><th>Status</th><th>Withheld</th><th>Seconds</th><th>Remark</th></tr></thead>
<tbody>
{rows}
</tbody></table></html>
""",
    )


def _format_row(result: JobResult) -> str:
    shown = result.summary
    withheld = shown.get("primary", 0) + shown.get("secondary", 0) if "secondary" in shown else ""
    style = ' class="failed"' if result.exit_code else ""
    cells = (
        f"<td>{escape(str(result.job))}</td><td{style}>{escape(result.verdict)}</td>"
        f"<td>{escape(str(shown.get('status', '')))}</td>"
        f'<td class="number">{withheld}</td><td class="number">{result.seconds:.1f}</td>'
        f"<td>{escape(result.message or result.reason)}</td>"
    )
    return f"<tr>{cells}</tr>"

"""``cellguard argus``: run a batch of tau-ARGUS."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cellguard.cli.support import options, printing

__all__ = ["command"]


def command(
    job: Annotated[Path, Argument(metavar="JOB.arb", help="The batch file.", show_default=False)],
    out: Annotated[
        Path | None, Option(metavar="FOLDER", help="Where files are written, instead of the batch's folder.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run a tau-ARGUS batch: with its files and rules unchanged, and its methods replaced by cellguard's own.

    A table is written only if the audit confirms that its release is safe. Files that hold values of
    withheld cells, as tau-ARGUS writes them with AS+, can be read by their owner only.
    """
    from cellguard.argus import run_batch

    with printing.redirect_library_output(as_json):
        outcome = run_batch(job, out=out, say=lambda line: printing.print_note(line, quiet=quiet))
    tables = [result.summarize() for result in outcome.results]
    written = [str(path) for path in outcome.written]
    if as_json:
        facts = {"method": "argus", "job": job.name, "safe": outcome.safe, "tables": tables}
        printing.print_json({**facts, "written": written, "notes": outcome.notes})
    else:
        for number, facts in enumerate(tables, 1):
            facts.pop("status_of_cells", None)
            printing.print_pairs(f"table {number}", printing.format_summary(facts))
        for name in written:
            print(f"written: {name}")
    if not outcome.safe:
        raise printing.NoSafeReleaseError(
            "no safe release was found for every table; what is not safe was not written.",
            hint="more time, lower levels, or another method may find one.",
        )

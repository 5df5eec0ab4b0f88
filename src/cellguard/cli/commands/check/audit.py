"""``cellguard audit``: what an attacker can infer from a release of any program."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cellguard._engine.threads import count_cores
from cellguard.cli.support import options, printing
from cellguard.cli.support.ledger import (
    Additive,
    Ledger,
    Period,
    Population,
    PriorPercent,
    RevisionPercent,
    Until,
    load_history,
)
from cellguard.cli.support.options import ReleaseAsked, add_release_options
from cellguard.methods.registry import METHODS

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit

__all__ = ["command"]


@add_release_options(exact="levels")
def command(
    path: options.TableFile,
    release_path: Annotated[
        Path,
        Argument(
            metavar="RELEASE",
            show_default=False,
            help="What was published: .csv or .parquet, a text file with the index of a suppressed cell in each line, "
            "or a folder with a file for each table of a publication or of linked tables.",
        ),
    ],
    asked: ReleaseAsked,
    exact: Annotated[bool, Option("--exact", help="Compute both ends of every range, not only the verdict.")] = False,
    witnesses: Annotated[
        Path | None, Option(metavar="FILE", help="Write the proof (.json, .json.gz): confidential.")
    ] = None,
    ranges: Annotated[
        Path | None, Option(metavar="FILE", help="Write each sensitive cell's range (.csv): confidential.")
    ] = None,
    ledger: Ledger = None,
    period: Period = "",
    population: Population = "",
    additive: Additive = False,
    revision_percent: RevisionPercent = None,
    prior_percent: PriorPercent = None,
    until: Until = None,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = float("inf"),
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Report what an attacker can infer from a release, whichever program made it.

    Everything in the file counts as published: a value beside the mark of a withheld cell, or a column that nothing
    explains, is refused. The verdict is safe or not safe; exit code 2 if it is not. Cells that are known exactly
    are counted even if they are not sensitive.

    With --ledger the release is audited together with earlier ones that show the same cells, or whose periods
    are linked; cells that they withhold must stay protected too.

    For a publication, the table is its job file, and the release is a folder with a file for each table.
    """
    from cellguard.auditing.audit import audit

    start = time.perf_counter()
    with printing.redirect_library_output(as_json):
        release = asked.read(path, release_path)
        read = time.perf_counter()
        printing.print_note(f"{release_path}: {release.method}, {release.table.n_cells} cells", quiet=quiet)
        history = None
        if ledger is not None:
            from cellguard.jobs.outputs.content import LedgerQuery

            query = LedgerQuery(
                period=period, population=population, additive=additive, neighbours=prior_percent is not None,
                until=until,
            )  # fmt: skip
            history = load_history(
                ledger, query, revision_percent=revision_percent, prior_percent=prior_percent
            )  # fmt: skip
            printing.print_note(f"{ledger}: {len(history.releases)} linked releases", quiet=quiet)
        found = audit(
            release, exact=exact or None, jobs=threads or count_cores(), time_limit_s=time_limit, earlier=history
        )
        if ranges is not None:
            _write_ranges_option(found, ranges)
        if witnesses is not None:
            found.save_witnesses(witnesses)
    seconds = {"total": time.perf_counter() - start, "read": read - start, "audit": found.seconds}
    summary = _format_audit(found, release.method, seconds)
    people = printing.format_attackers([f.attacker for f in found.findings])
    printing.print_summary(f"{release_path.name}: {release.method}", summary, as_json=as_json, attackers=people)
    if found.checked == 0 and not asked.allow_nothing_sensitive:
        raise printing.NoSafeReleaseError(
            "nothing was checked: no cell of the table is sensitive.",
            hint="--allow-nothing-sensitive says that this is meant.",
        )
    if found.checked and not found.safe:
        hint = "--ranges FILE.csv shows every cell's range."
        raise printing.NoSafeReleaseError("the release is not safe.", hint=hint)


def _format_audit(found: Audit, method: str, seconds: dict[str, float]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "method": method,
        "verdict": found.verdict,
        **found.summary(),
        "audit": found.summary(),
        "disclosed": len(found.disclosed),
        "attackers": [f.attacker.name for f in found.findings],
        "programs": sum(f.programs for f in found.findings),
        "table": found.release.table.sizes,
        "seconds": seconds,
    }
    if found.ranges_exact and METHODS[method].by_ranges:
        out["midpoints"] = found.midpoints()
    return out


def _write_ranges_option(found: Audit, path: Path) -> None:
    import numpy as np

    from cellguard._io.frames import merge_codes_and_columns, write_csv
    from cellguard.model.levels import LEAST_WIDTH

    table, findings = found.release.table, found.findings
    cells = np.concatenate([f.cells for f in findings])
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(table.values[cells]))  # the audit requires some width anyway
    sliding = np.concatenate([f.levels.sliding for f in findings])
    words = ("exact", "safe", "unsafe")
    columns = {
        "attacker": [f.attacker.name for f in findings for _ in f.cells],
        "low": np.concatenate([f.low for f in findings]),
        "high": np.concatenate([f.high for f in findings]),
        "lower_level": np.concatenate([f.levels.lower for f in findings]),
        "upper_level": np.concatenate([f.levels.upper for f in findings]),
        "sliding_level": np.where(sliding > least, sliding, 0.0),
        "verdict": np.concatenate([np.select([getattr(f, w) for w in words], words, "unknown") for f in findings]),
    }
    write_csv(merge_codes_and_columns(table.cell_codes(cells), columns), path, guard=True, private=True)

"""``cellguard audit``: what an attacker can compute from a release, whoever made it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cellguard._engine.threads import all_cores
from cellguard.cli import _options as options
from cellguard.cli import _printing as printing
from cellguard.cli._options import ReleaseAsked, with_release_options
from cellguard.methods.registry import METHODS

if TYPE_CHECKING:
    from cellguard.check.audit import Audit

__all__ = ["command"]


@with_release_options(exact="levels")
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
    exact: Annotated[bool, Option("--exact", help="Compute both ends of every range, not only verdicts.")] = False,
    witnesses: Annotated[
        Path | None, Option(metavar="FILE", help="Write the proof (.json, .json.gz): confidential.")
    ] = None,
    ranges: Annotated[
        Path | None, Option(metavar="FILE", help="Write each sensitive cell's range (.csv): confidential.")
    ] = None,
    threads: options.Threads = None,
    time_limit: options.TimeLimit = float("inf"),
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Say what an attacker can compute from a release, whichever program made it.

    What stands in the file is published: a value beside the mark of a withheld cell, or a column that nothing
    explains, is refused. The verdict is safe, or not; exit code 2 when it is not. Cells that are known exactly
    are counted even where they are not sensitive.

    Of a publication the table is its job file, and the release a folder with a file for each table.
    """
    from cellguard.check.audit import audit

    start = time.perf_counter()
    with printing.only_json_on_stdout(as_json):
        release = asked.read(path, release_path)
        read = time.perf_counter()
        printing.print_note(f"{release_path}: {release.method}, {release.table.n_cells} cells", quiet=quiet)
        found = audit(release, exact=exact, jobs=threads or all_cores(), time_limit_s=time_limit)
        if ranges is not None:
            _write_ranges_option(found, ranges)
        if witnesses is not None:
            found.save_witnesses(witnesses)
    seconds = {"total": time.perf_counter() - start, "read": read - start, "audit": found.seconds}
    summary = _printed_audit(found, release.method, seconds)
    people = printing.printed_attackers([f.attacker for f in found.findings])
    printing.print_summary(f"{release_path.name}: {release.method}", summary, as_json=as_json, attackers=people)
    if found.checked == 0 and not asked.allow_nothing_sensitive:
        raise printing.NoSafeReleaseError(
            "nothing was checked: no cell of the table is sensitive.",
            hint="--allow-nothing-sensitive says that this is meant.",
        )
    if found.checked and not found.safe:
        hint = "--ranges FILE.csv shows every cell's range."
        raise printing.NoSafeReleaseError("the release is not safe.", hint=hint)


def _printed_audit(found: Audit, method: str, seconds: dict[str, float]) -> dict[str, Any]:
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

    from cellguard._io.frames import columns_beside_codes, write_csv
    from cellguard.nouns.levels import LEAST_WIDTH

    table, findings = found.release.table, found.findings
    cells = np.concatenate([f.cells for f in findings])
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(table.values[cells]))  # the audit asks for some width anyway
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
    write_csv(columns_beside_codes(table.cell_codes(cells), columns), path, guard=True, private=True)

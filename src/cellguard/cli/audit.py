"""``cellguard audit``: what an attacker can compute from a release, whoever made it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellguard.cli import _common as shared
from cellguard.exceptions import InputError
from cellguard.methods.bases import read_bases

if TYPE_CHECKING:
    from cellguard.check.audit import Audit
    from cellguard.nouns.table import Table

__all__ = ["ReleaseFile", "command", "published_with", "with_bounds"]

ReleaseFile = Annotated[
    Path,
    typer.Argument(
        metavar="RELEASE",
        show_default=False,
        help="What was published: .csv or .parquet, or a text file with the index of a suppressed cell in each line.",
    ),
]
Method = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", help="suppress, intervals, round, perturb or adjust; found if not given."),
]
Base = Annotated[
    str | None,
    typer.Option("--base", metavar="NUMBER|FILE", help="The base of a rounded table; or a file, a line per cell."),
]
Step = Annotated[int, typer.Option("--step", metavar="N", min=1, help="A rounded table moved by less than N bases.")]
KeepMultiples = Annotated[
    bool, typer.Option("--keep-multiples", help="Of a rounded table: sensitive multiples were let stay.")
]
Distance = Annotated[
    float | None, typer.Option("--distance", metavar="NUMBER", help="How far, at most, a perturbed table moved.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="COLUMN", help="A column of the release that says nothing about the values."),
]
MarksOnly = Annotated[
    bool,
    typer.Option("--marks-only", help="An internal file: values beside the marks of withheld cells stay inside."),
]
Bounds = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="BELOW,ABOVE",
        help="What attackers know before: shares of the value (1,inf), not the table's.",
    ),
]


def command(
    path: shared.TableFile,
    release_path: ReleaseFile,
    method: Method = None,
    base: Base = None,
    step: Step = 1,
    distance: Distance = None,
    keep_multiples: KeepMultiples = False,
    ignore: Ignore = None,
    marks_only: MarksOnly = False,
    bounds: Bounds = None,
    levels: shared.Levels = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute both ends of every range, not only verdicts.")
    ] = False,
    integer: shared.Whole = False,
    insiders: shared.Insiders = True,
    allow_nothing_sensitive: shared.NothingSensitive = False,
    witnesses: Annotated[
        Path | None,
        typer.Option("--witnesses", metavar="FILE", help="Write the proof (.json, .json.gz): confidential."),
    ] = None,
    ranges: Annotated[
        Path | None,
        typer.Option("--ranges", metavar="FILE", help="Write each sensitive cell's range (.csv): confidential."),
    ] = None,
    threads: shared.Threads = 1,
    time_limit: shared.TimeLimit = float("inf"),
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Say what an attacker can compute from a release, whichever program made it.

    What stands in the file is published: a value beside the mark of a withheld cell, or a column that nothing
    explains, is refused. The verdict is safe, or not; exit code 2 when it is not. Cells that are known exactly
    are counted even where they are not sensitive.
    """
    from cellguard.check.audit import audit
    from cellguard.check.read_release import read_release

    start = time.perf_counter()
    with shared.only_json_on_stdout(as_json):
        table = with_bounds(shared.load_table(path, levels=levels, insiders=insiders, whole=integer), bounds)
        how = published_with(base, step, distance, keep_multiples)
        release = read_release(table, release_path, method=method, ignore=ignore or (), marks_only=marks_only, **how)
        read = time.perf_counter()
        shared.note(f"{release_path}: {release.method}, {table.n_cells} cells", quiet=quiet)
        found = audit(release, exact=exact, jobs=threads, time_limit_s=time_limit)
        if ranges is not None:
            _write_ranges(found, ranges)
        if witnesses is not None:
            found.save_witnesses(witnesses)
    seconds = {"total": time.perf_counter() - start, "read": read - start, "audit": found.seconds}
    summary = _summary(found, release.method, seconds)
    if as_json:
        shared.print_json(summary)
    else:
        shared.print_pairs(f"{release_path.name}: {release.method}", summary)
    if found.checked == 0 and not allow_nothing_sensitive:
        raise shared.NoSafeReleaseError(
            "nothing was checked: no cell of the table is sensitive.",
            hint="--allow-nothing-sensitive says that this is meant.",
        )
    if found.checked and not found.safe:
        raise shared.NoSafeReleaseError("the release is not safe.", hint="--ranges FILE.csv shows every cell's range.")


def published_with(base: str | None, step: int, distance: float | None, keep_multiples: bool) -> dict[str, Any]:
    """Return what was published with a table that was moved, as :func:`cellguard.read_release` takes it."""
    bases = None if base is None else read_bases(base)
    return {"base": bases, "step": step, "distance": distance, "keep_multiples": keep_multiples}


def _summary(found: Audit, method: str, seconds: dict[str, float]) -> dict[str, Any]:
    table = found.release.table
    out: dict[str, Any] = {
        "method": method,
        "verdict": found.verdict,
        **found.summary(),
        "audit": found.summary(),
        "disclosed": len(found.disclosed),
        "attackers": [f.attacker.name for f in found.findings],
        "programs": sum(f.programs for f in found.findings),
        "table": {"cells": table.n_cells, "sensitive": int(table.sensitive.sum()), "relations": table.n_relations},
        "seconds": seconds,
    }
    if found.ranges_exact and method != "adjust":
        out["midpoints"] = found.midpoints()
    return out


def with_bounds(table: Table, text: str | None) -> Table:
    """Return the table with what attackers know as shares of each value: ``1,inf`` is from 0 to anything."""
    import numpy as np

    if text is None:
        return table
    try:
        below, above = (float(part) for part in text.split(","))
    except ValueError:
        below, above = float("nan"), float("nan")
    if not (below >= 0 and above >= 0):
        raise InputError(f"--bounds {text!r}: two shares of at least 0 with a comma are needed.", hint="as in 0.5,inf.")
    size = np.abs(table.values)
    room = (np.where(size > 0, share * size, 0.0) if np.isfinite(share) else np.inf for share in (below, above))
    lower, upper = room
    known = table.lb == table.ub  # what everybody knows stays known
    lb, ub = np.where(known, table.lb, table.values - lower), np.where(known, table.ub, table.values + upper)
    return table.with_(lb=lb, ub=ub)


def _write_ranges(found: Audit, path: Path) -> None:
    import numpy as np

    from cellguard._io.frames import beside, write_csv
    from cellguard.nouns.levels import LEAST_WIDTH

    table = found.release.table
    cells = np.concatenate([f.cells for f in found.findings])
    least = LEAST_WIDTH * np.maximum(1.0, np.abs(table.values[cells]))  # the audit asks for some width anyway
    sliding = np.concatenate([f.levels.sliding for f in found.findings])
    verdicts = np.concatenate(
        [np.select([f.exact, f.safe, f.unsafe], ["exact", "safe", "unsafe"], "unknown") for f in found.findings]
    )
    columns = {
        "attacker": [f.attacker.name for f in found.findings for _ in f.cells],
        "low": np.concatenate([f.low for f in found.findings]),
        "high": np.concatenate([f.high for f in found.findings]),
        "lower_level": np.concatenate([f.levels.lower for f in found.findings]),
        "upper_level": np.concatenate([f.levels.upper for f in found.findings]),
        "sliding_level": np.where(sliding > least, sliding, 0.0),
        "verdict": verdicts,
    }
    write_csv(beside(table.cell_codes(cells), columns), path, guard=True, private=True)

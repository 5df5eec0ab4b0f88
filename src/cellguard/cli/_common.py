"""What the verbs share: options, reading a table, printing, and running a method from file to file."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellguard._io.plain import plain
from cellguard.exceptions import CellguardError, InputError

if TYPE_CHECKING:
    from cellguard.check.audit import Audit
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = [
    "Gap",
    "Insiders",
    "Internal",
    "Json",
    "Levels",
    "NoSafeReleaseError",
    "NothingSensitive",
    "Out",
    "Quiet",
    "Seed",
    "TableFile",
    "Threads",
    "TimeLimit",
    "Weights",
    "Whole",
    "in_words",
    "load_table",
    "note",
    "only_json_on_stdout",
    "print_error",
    "print_json",
    "print_pairs",
    "progress_lines",
    "run_method",
]

# ---------------------------------------------------------------- options, the same for every verb

TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", show_default=False, help="A table: .jj, .jj.gz, or .csv or .parquet with NAME.toml beside it."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on standard output.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="FILE", help="Write the release (.csv, .parquet or .xlsx), if the audit says it is safe."
    ),
]
Weights = Annotated[
    str, typer.Option("--weights", metavar="KIND", help="Loss per cell: table, unit, inverse, value, sqrt or log.")
]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", metavar="SECONDS", min=0.0, help="Stop searching after this.")
]
Gap = Annotated[float, typer.Option("--gap", metavar="SHARE", min=0.0, help="Stop when proven this close to the best.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The same seed gives the same release.")]
Threads = Annotated[
    int, typer.Option("--threads", metavar="N", min=1, help="Processor cores to use, where the work can be shared.")
]
Levels = Annotated[
    str | None,
    typer.Option(
        "--levels", metavar="LOWER,UPPER", help="Protection levels as shares of the value (0.05,0.20), not the table's."
    ),
]
Internal = Annotated[
    bool,
    typer.Option("--internal", help="Tell also what is computed from true values: objective, bound, cost, loss."),
]
Insiders = Annotated[
    bool,
    typer.Option(
        "--insiders/--no-insiders", help="Respondents are attackers too, where the table knows its contributors."
    ),
]
Whole = Annotated[bool, typer.Option("--integer", help="All values are whole numbers, and attackers know it (counts).")]
NothingSensitive = Annotated[
    bool,
    typer.Option("--allow-nothing-sensitive", help="That no cell is sensitive is meant: exit code 0, not 2."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]


class NoSafeReleaseError(CellguardError):
    """The method ended without a release that the audit confirms: exit code 2."""

    def __init__(self, message: str, *, hint: str | None = None, summary: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.summary = summary
        """The JSON object, where it is not printed yet."""


# ---------------------------------------------------------------- printing


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(plain(value), allow_nan=False), flush=True)


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """Print names and figures in two columns on standard output."""
    from rich.console import Console
    from rich.table import Table as Grid

    grid = Grid(title=title, title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs.items():
        grid.add_row(name.replace("_", " "), _figure(value))
    Console(highlight=False).print(grid)


def in_words(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary for people: a gap in per cent, or that there is none to tell."""
    from cellguard.nouns.figures import percentage

    shown = dict(summary)
    if "gap" in shown:
        shown["gap"] = percentage(float("nan") if shown["gap"] is None else float(shown["gap"]))
    if "status" in shown:
        shown["status"] = str(shown["status"]).replace("_", " ")
    return shown


def _figure(value: Any) -> str:
    from rich.markup import escape

    value = plain(value)
    if value is None:
        return "-"
    if isinstance(value, bool | int | float):
        from cellguard.nouns.figures import figure

        return figure(value, 6)
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {_figure(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "\n".join(_figure(item) for item in value)
    return escape(str(value))


def note(text: str, *, quiet: bool = False) -> None:
    """Print a line of progress on standard error."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def print_error(error: CellguardError, *, as_json: bool, internal: bool = False) -> None:
    """Print an error on standard error, and with ``--json`` as an object on standard output too."""
    print(f"cellguard: {error}", file=sys.stderr, flush=True)
    if internal and error.internal is not None:
        print(f"Internal: {error.internal}", file=sys.stderr, flush=True)
    if as_json:
        print_json({"error": type(error).__name__, "message": error.message, "hint": error.hint})


@contextmanager
def only_json_on_stdout(wanted: bool) -> Iterator[None]:
    """Send to standard error what libraries print meanwhile, compiled ones included."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def progress_lines(*, internal: bool, quiet: bool) -> Callable[[float, float], None]:
    """Return what a method tells its objective and bound; without `internal` only how far they are apart."""

    def tell(objective: float, bound: float) -> None:
        near = 0 < bound <= objective
        words = f"within {100 * (objective - bound) / objective:.1f}% of the best" if near else "a better one"
        note(f"objective {objective:,.6g}, at least {bound:,.6g}" if internal else words, quiet=quiet)

    return tell


# ---------------------------------------------------------------- from file to file


def load_table(
    path: Path,
    *,
    weights: str = "table",
    levels: str | None = None,
    insiders: bool = True,
    whole: bool = False,
) -> Table:
    """Read a table file and apply what the options say about weights, levels and attackers."""
    from cellguard.nouns.table import Table

    known = (".jj", ".jj.gz", ".csv", ".csv.gz", ".parquet", ".arb")
    if not path.name.lower().endswith(known):
        raise InputError(f"{path}: no known kind of table file.", hint=f"known are {', '.join(known)}.")
    if path.name.lower().endswith(".arb"):
        from cellguard.argus import read_table

        table = read_table(path)
    else:
        table = Table.read(path)
    if levels is not None:
        table = table.with_levels(*_shares(levels))
    if whole and not table.integer:
        _refuse_fractions(table)
        table = table.with_(integer=True)
    if not insiders:
        table = table.with_(insiders=False)
    return table.with_weights(weights)


def _refuse_fractions(table: Table) -> None:
    broken = (table.values % 1 != 0).nonzero()[0]
    if len(broken):
        raise InputError(f"--integer: {table.label(int(broken[0]))} has no whole value.", hint="leave it out.")


def _shares(text: str) -> tuple[float, float]:
    try:
        lower, upper = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--levels {text!r}: two numbers with a comma are needed.", hint="as in 0.05,0.20.") from None
    return lower, upper


def _check_out(out: Path, path: Path) -> None:
    """Refuse, before any work is done, a place where the release cannot go."""
    from cellguard.nouns.sheets import refuse_ending

    try:
        refuse_ending(out)
    except InputError as error:
        raise InputError(f"--out {error.message}", hint=error.hint) from None
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}.", hint="make the folder first.")
    if out.is_dir():
        raise InputError(f"--out {out}: is a folder; the name of a file is needed.")
    if out.exists() and path.exists() and out.samefile(path):
        raise InputError(f"--out {out}: is the table itself.", hint="give the release another name.")


def run_method(
    method: Callable[[Table], Release],
    path: Path,
    *,
    weights: str = "table",
    levels: str | None = None,
    out: Path | None = None,
    as_json: bool = False,
    quiet: bool = False,
    threads: int = 1,
    internal: bool = False,
    insiders: bool = True,
    whole: bool = False,
    allow_nothing_sensitive: bool = False,
    mark_primary: bool = False,
) -> None:
    """Read a table, protect it, audit the release, print it, and write it if it is safe.

    Parameters
    ----------
    method
        Makes a release of a table; its ``seconds`` say how long reducing and solving took.
    path, weights, levels, insiders, whole
        See :func:`load_table`.
    out
        Where the release goes. Nothing is written unless the audit says that it is safe.
    as_json
        Print the JSON object and nothing else on standard output.
    quiet
        No progress on standard error.
    threads
        Processor cores for the audit.
    internal
        Print also what is computed from true values.
    allow_nothing_sensitive
        A table without sensitive cells is as safe as it needs to be.
    mark_primary
        Tell primary from secondary suppressions in the file, after a warning.

    Raises
    ------
    NoSafeReleaseError
        When there is no release, or the audit refuses it.
    """
    start = time.perf_counter()
    if out is not None:
        _check_out(out, path)
    with only_json_on_stdout(as_json):
        table = load_table(path, weights=weights, levels=levels, insiders=insiders, whole=whole)
        read = time.perf_counter()
        note(f"{path}: {table.n_cells} cells, {int(table.sensitive.sum())} sensitive", quiet=quiet)
        release = method(table)
        solved = time.perf_counter()
        audit = release.audit(jobs=threads) if release.published else None
        audited = time.perf_counter()
        if release.published and release.explanation:
            note(f"note: {release.explanation}", quiet=quiet)
        accepted = audit is not None and (audit.safe or (allow_nothing_sensitive and audit.checked == 0))
        if out is not None and accepted:
            if mark_primary:
                from cellguard.nouns.release import PRIMARY_TOLD

                note(PRIMARY_TOLD)
            release.save(out, allow_unchecked=allow_nothing_sensitive, mark_primary=mark_primary)
    seconds = {"reduce": 0.0, "solve": solved - read, **release.seconds}
    seconds |= {"read": read - start, "audit": audited - solved, "total": time.perf_counter() - start}
    order = ("total", "read", "reduce", "solve", "audit")
    summary = release.summary(internal=internal)
    summary["seconds"] = {name: seconds.pop(name) for name in order} | seconds
    summary["audit"] = None if audit is None else audit.summary()
    if as_json:
        print_json(summary)
    else:
        shown = {k: v for k, v in summary.items() if k not in ("method", "loss")}
        print_pairs(f"{path.name}: {release.method}", in_words(shown))
    if not accepted:
        raise _refusal(release, audit)
    if out is not None:
        note(f"written: {out}", quiet=quiet)


def _refusal(release: Release, audit: Audit | None) -> NoSafeReleaseError:
    if audit is None:
        return NoSafeReleaseError(
            f"no release: {release.status}. {release.explanation}".strip(),
            hint="more time, lower levels, or another method may find one.",
        )
    if audit.checked == 0:
        return NoSafeReleaseError(
            "nothing was checked: no cell of the table is sensitive; nothing was written.",
            hint="apply rules first, or say --allow-nothing-sensitive if that is meant.",
        )
    return NoSafeReleaseError("the audit refuses this release; nothing was written.")

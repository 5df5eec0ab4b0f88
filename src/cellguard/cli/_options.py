"""The options that several verbs have, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Base", "Bounds", "Distance", "Ignore", "Insiders", "Internal", "Json", "KeepMultiples", "Kept", "Levels",
    "MarksOnly", "Method", "NothingSensitive", "Out", "Quiet", "ReleaseFile", "Seed", "Step", "TableFile", "Threads",
    "TimeLimit", "Weights", "Whole",
]  # fmt: skip

# ---------------------------------------------------------------- a table, and how a verb works

TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        show_default=False,
        help="A table: .jj, .jj.gz, .csv or .parquet with NAME.toml beside it; or a job (.toml).",
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
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="The same seed gives the same release.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", metavar="N", min=1, help="Processor cores for work that can be shared; otherwise all."),
]
Levels = Annotated[
    str | None,
    typer.Option(
        "--levels", metavar="LOWER,UPPER", help="Protection levels as shares of the value (0.05,0.20), not the table's."
    ),
]
Internal = Annotated[
    bool, typer.Option("--internal", help="Tell also what is computed from true values: objective, bound, cost, loss.")
]
Insiders = Annotated[
    bool,
    typer.Option(
        "--insiders/--no-insiders", help="Respondents are attackers too, where the table knows its contributors."
    ),
]
Whole = Annotated[bool, typer.Option("--integer", help="All values are whole numbers, and attackers know it (counts).")]
NothingSensitive = Annotated[
    bool, typer.Option("--allow-nothing-sensitive", help="That no cell is sensitive is meant: exit code 0, not 2.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.")]

# ---------------------------------------------------------------- what was published of a table

ReleaseFile = Annotated[
    Path,
    typer.Argument(
        metavar="RELEASE",
        show_default=False,
        help="What was published: .csv or .parquet, a text file with the index of a suppressed cell in each line, or a "
        "folder with a file for each table of a publication.",
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
Step = Annotated[
    int | None,
    typer.Option(
        "--step", metavar="N", min=1, help="A rounded table moved by less than N bases; 1 if nothing is told."
    ),
]
KeepMultiples = Annotated[
    bool, typer.Option("--keep-multiples", help="Of a rounded table: sensitive multiples were let stay.")
]
Kept = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", metavar="MARGIN",
        help="Of a rounded table: what went to its nearest multiple (total, a dimension, or several with commas).",
    ),
]  # fmt: skip
Distance = Annotated[
    float | None, typer.Option("--distance", metavar="NUMBER", help="How far, at most, a perturbed table moved.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="COLUMN", help="A column of the release that says nothing about the values."),
]
MarksOnly = Annotated[
    bool, typer.Option("--marks-only", help="An internal file: values beside the marks of withheld cells stay inside.")
]
Bounds = Annotated[
    str | None,
    typer.Option(
        "--bounds",
        metavar="BELOW,ABOVE",
        help="What attackers know before: shares of the value (1,inf), not the table's.",
    ),
]

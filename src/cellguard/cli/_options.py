"""The options that several verbs have, each said once. Where no flag is named, it is the parameter's own name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

__all__ = [
    "Insiders", "Internal", "Json", "Levels", "NothingSensitive", "Out", "Quiet", "Seed", "TableFile", "Threads",
    "TimeLimit", "Weights", "Whole",
]  # fmt: skip

TableFile = Annotated[
    Path,
    Argument(
        metavar="TABLE",
        show_default=False,
        help="A table: .jj, .jj.gz, .csv or .parquet with NAME.toml beside it; or a job (.toml).",
    ),
]
Json = Annotated[bool, Option("--json", help="Print one JSON object, and nothing else, on standard output.")]
Out = Annotated[
    Path | None,
    Option(metavar="FILE", help="Write the release (.csv, .parquet or .xlsx), if the audit says it is safe."),
]
Weights = Annotated[str, Option(metavar="KIND", help="Loss per cell: table, unit, inverse, value, sqrt or log.")]
TimeLimit = Annotated[float, Option(metavar="SECONDS", min=0.0, help="Stop searching after this.")]
Seed = Annotated[int, Option(metavar="N", min=0, help="The same seed gives the same release.")]
Threads = Annotated[
    int | None, Option(metavar="N", min=1, help="Processor cores for work that can be shared; otherwise all.")
]
Levels = Annotated[
    str | None,
    Option(metavar="LOWER,UPPER", help="Protection levels as shares of the value (0.05,0.20), not the table's."),
]
Internal = Annotated[
    bool, Option("--internal", help="Tell also what is computed from true values: objective, bound, cost, loss.")
]
Insiders = Annotated[
    bool,
    Option("--insiders/--no-insiders", help="Respondents are attackers too, where the table knows its contributors."),
]
Whole = Annotated[bool, Option("--integer", help="All values are whole numbers, and attackers know it (counts).")]
NothingSensitive = Annotated[
    bool, Option("--allow-nothing-sensitive", help="That no cell is sensitive is meant: exit code 0, not 2.")
]
Quiet = Annotated[bool, Option("--quiet", help="No progress on standard error.")]

"""The options that several commands share, each defined once, and the table and release that they describe.

Where an option names no flag, it is the parameter's own name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = [
    "ExperimentSeed",
    "Insiders",
    "Internal",
    "Json",
    "KeyFile",
    "Levels",
    "NothingSensitive",
    "Out",
    "Quiet",
    "ReleaseAsked",
    "Seed",
    "TableAsked",
    "TableFile",
    "Threads",
    "TimeLimit",
    "Weights",
    "Whole",
    "add_release_options",
    "command_with_options",
    "set_bounds",
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
    Option(metavar="FILE", help="Write the release (.csv, .parquet or .xlsx) if the audit finds it safe."),
]
Weights = Annotated[str, Option(metavar="KIND", help="Cost of each cell: table, unit, inverse, value, sqrt or log.")]
TimeLimit = Annotated[float, Option(metavar="SECONDS", min=0.0, help="Time limit of the search.")]
Seed = Annotated[
    int,
    Option(
        metavar="N", min=0, help="Seed of the search; refused if the method hides values by random draws (see --key)."
    ),
]
ExperimentSeed = Annotated[int, Option(metavar="N", min=0, help="The same seed gives the same result.")]
KeyFile = Annotated[
    Path | None,
    Option(
        "--key", metavar="FILE",
        help="Secret key of the random draws: a file of at least 16 bytes that only you can read.",
    ),
]  # fmt: skip
Threads = Annotated[int | None, Option(metavar="N", min=1, help="Number of processor cores; default: all.")]
Levels = Annotated[
    str | None,
    Option(metavar="LOWER,UPPER", help="Protection levels as shares of the value (0.05,0.20), instead of the table's."),
]
Internal = Annotated[
    bool, Option("--internal", help="Also print what is computed from true values: objective, bound, cost, loss.")
]
Insiders = Annotated[
    bool,
    Option("--insiders/--no-insiders", help="Treat respondents as attackers too, if the table has contributors."),
]
Whole = Annotated[bool, Option("--integer", help="All values are whole numbers, and attackers know it (counts).")]
NothingSensitive = Annotated[
    bool, Option("--allow-nothing-sensitive", help="Accept that no cell is sensitive: exit code 0 instead of 2.")
]
Quiet = Annotated[bool, Option("--quiet", help="Print no progress on standard error.")]


@dataclass(frozen=True, kw_only=True)
class TableAsked:
    """A table file, and the options for weights, levels and attackers."""

    path: Path
    """The file."""
    weights: str = "table"
    """Loss per cell."""
    levels: str | None = None
    """``LOWER,UPPER`` as shares of the value, instead of the table's."""
    bounds: str | None = None
    """``BELOW,ABOVE``: what attackers know, as shares of the value, instead of the table's."""
    insiders: bool = True
    """Respondents are attackers too."""
    whole: bool = False
    """All values are whole numbers, and attackers know it."""

    def load(self) -> Table:
        """Read the table and apply the options."""
        table = _read_table_argument(self.path)
        if self.levels is not None:
            shares = _parse_two_numbers(self.levels)
            if shares is None:
                wrong = f"--levels {self.levels!r}: two numbers with a comma are needed."
                raise InputError(wrong, hint="as in 0.05,0.20.")
            table = table.with_levels(*shares)
        if self.whole and not table.integer:
            broken = (table.values % 1 != 0).nonzero()[0]
            if len(broken):
                raise InputError(f"--integer: {table.label(int(broken[0]))} has no whole value.", hint="leave it out.")
            table = table.with_(integer=True)
        if not self.insiders:
            table = table.with_(insiders=False)
        table = table.with_weights(self.weights)
        return table if self.bounds is None else set_bounds(table, self.bounds)


@dataclass(frozen=True, kw_only=True)
class ReleaseAsked:
    """A published file and its table: the options of every command that checks a release."""

    method: Annotated[
        str | None, Option(metavar="NAME", help="suppress, intervals, round, perturb or adjust; default: detected.")
    ] = None
    base: Annotated[
        str | None,
        Option(metavar="NUMBER|FILE", help="Base of a rounded table, or a file with one base per line and cell."),
    ] = None
    step: Annotated[
        int | None, Option(metavar="N", min=1, help="For a rounded table: cells moved by less than N bases; default 1.")
    ] = None
    distance: Annotated[
        float | None, Option(metavar="NUMBER", help="For a perturbed table: largest movement of a cell.")
    ] = None
    areas: Annotated[
        str | None, Option(metavar="DIMENSION", help="A perturbed table moved area by area: the dimension of areas.")
    ] = None
    keep_multiples: Annotated[
        bool,
        Option(
            "--keep-multiples", help="For a rounded table: sensitive multiples of the base were published unchanged."
        ),
    ] = False
    between: Annotated[
        bool, Option("--between", help="Of a perturbed table: cells stayed between the multiples next to them.")
    ] = False
    keep: Annotated[
        list[str] | None,
        Option(
            metavar="MARGIN",
            help="For a rounded table: cells at their nearest multiple (total, a dimension, or several, with commas).",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        Option(metavar="COLUMN", help="A column of the release that reveals nothing about the values."),
    ] = None
    marks_only: Annotated[
        bool,
        Option("--marks-only", help="The file is internal: the values of withheld cells in it will not be published."),
    ] = False
    bounds: Annotated[
        str | None,
        Option(
            metavar="BELOW,ABOVE",
            help="Bounds that attackers know, as shares of the value (1,inf), instead of the table's.",
        ),
    ] = None
    levels: Levels = None
    integer: Whole = False
    insiders: Insiders = True
    allow_nothing_sensitive: NothingSensitive = False

    def read(self, table_path: Path, path: Path) -> Release:
        """Read the table and its release."""
        from cellguard.methods.options import parse_bases, parse_margins
        from cellguard.release.readers.read_release import read_release

        table = TableAsked(
            path=table_path, levels=self.levels, bounds=self.bounds, insiders=self.insiders, whole=self.integer
        )
        return read_release(
            table.load(),
            path,
            method=self.method,
            base=None if self.base is None else parse_bases(self.base),
            step=self.step,
            distance=self.distance,
            areas=self.areas,
            keep_multiples=self.keep_multiples,
            between=self.between,
            keep=parse_margins(list(self.keep or ())),
            ignore=self.ignore or (),
            marks_only=self.marks_only,
        )


def add_release_options(**behind: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command that takes `asked`, a :class:`ReleaseAsked`, an option for each of its fields.

    `behind` maps the command's own options to the fields after which the help lists them.
    """
    noun = signature(ReleaseAsked, eval_str=True).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run_command(**given: Any) -> None:
            command(asked=ReleaseAsked(**{name: given.pop(name) for name in noun}), **given)

        own = signature(command, eval_str=True).parameters
        among = [[field, *(own[name] for name in behind if behind[name] == field.name)] for field in noun.values()]
        listed = {name: [parameter] for name, parameter in own.items() if name not in behind}
        listed["asked"] = [parameter for some in among for parameter in some]
        return command_with_options(
            run_command, (parameter for some in listed.values() for parameter in some), command.__doc__
        )

    return decorate


def command_with_options(
    verb: Callable[..., None], parameters: Iterable[Parameter], about: str | None
) -> Callable[..., None]:
    """Turn a function that accepts any keyword into a command with these parameters."""
    named = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    verb.__doc__ = about
    verb.__signature__ = Signature(named)  # type: ignore[attr-defined]
    verb.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
    return verb


def _read_table_argument(path: Path) -> Table:
    from cellguard.model.table import Table

    known = (".jj", ".jj.gz", ".csv", ".csv.gz", ".parquet", ".arb", ".toml")
    name = path.name.lower()
    if not name.endswith(known):
        raise InputError(f"{path}: no known kind of table file.", hint=f"known are {', '.join(known)}.")
    if name.endswith(".arb"):
        from cellguard.argus import read_table_of_batch

        return read_table_of_batch(path)
    if name.endswith(".toml"):  # the tables of a job, with the rules and attackers that it names
        from cellguard.jobs import read_job
        from cellguard.jobs.flags import flag_job
        from cellguard.jobs.tables import tabulate_job

        job = read_job(path)
        return flag_job(tabulate_job(job), job)
    return Table.read(path)


def _parse_two_numbers(text: str) -> tuple[float, float] | None:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        return None
    return first, second


def set_bounds(table: Table, text: str) -> Table:
    """Return the table with attackers' bounds as shares of each value: ``1,inf`` means 0 to infinity."""
    import numpy as np

    shares = _parse_two_numbers(text)
    if shares is None or not all(share >= 0 for share in shares):
        raise InputError(f"--bounds {text!r}: two shares of at least 0 with a comma are needed.", hint="as in 0.5,inf.")
    size = np.abs(table.values)
    below, above = (np.where(size > 0, share * size, 0.0) if np.isfinite(share) else np.inf for share in shares)
    known = table.lb == table.ub  # public knowledge stays known
    lb, ub = np.where(known, table.lb, table.values - below), np.where(known, table.ub, table.values + above)
    return table.with_(lb=lb, ub=ub)

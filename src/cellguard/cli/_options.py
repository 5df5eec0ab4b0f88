"""The options that several verbs have, each said once, and what they ask for, as nouns: a table, and a release of it.

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
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = [
    "Insiders", "Internal", "Json", "Levels", "NothingSensitive", "Out", "Quiet", "ReleaseAsked", "Seed",
    "TableAsked", "TableFile", "Threads", "TimeLimit", "Weights", "Whole", "command_with_options",
    "with_bounds_option", "with_release_options",
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


@dataclass(frozen=True, kw_only=True)
class TableAsked:
    """A table file, and what the options say about weights, levels and attackers."""

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
        """Read the table and apply what is asked."""
        table = _read_table_argument(self.path)
        if self.levels is not None:
            shares = _two_numbers_of_option(self.levels)
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
        return table if self.bounds is None else with_bounds_option(table, self.bounds)


@dataclass(frozen=True, kw_only=True)
class ReleaseAsked:
    """What is said of a file that was published, and of its table: the options of every verb that checks a release."""

    method: Annotated[
        str | None, Option(metavar="NAME", help="suppress, intervals, round, perturb or adjust; found if not given.")
    ] = None
    base: Annotated[
        str | None, Option(metavar="NUMBER|FILE", help="The base of a rounded table; or a file, a line per cell.")
    ] = None
    step: Annotated[
        int | None, Option(metavar="N", min=1, help="A rounded table moved by less than N bases; 1 if nothing is told.")
    ] = None
    distance: Annotated[float | None, Option(metavar="NUMBER", help="How far, at most, a perturbed table moved.")] = (
        None
    )
    keep_multiples: Annotated[
        bool, Option("--keep-multiples", help="Of a rounded table: sensitive multiples were let stay.")
    ] = False
    keep: Annotated[
        list[str] | None,
        Option(
            metavar="MARGIN",
            help="Of a rounded table: what went to its nearest multiple (total, a dimension, or several with commas).",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None, Option(metavar="COLUMN", help="A column of the release that says nothing about the values.")
    ] = None
    marks_only: Annotated[
        bool, Option("--marks-only", help="An internal file: values beside the marks of withheld cells stay inside.")
    ] = False
    bounds: Annotated[
        str | None,
        Option(metavar="BELOW,ABOVE", help="What attackers know before: shares of the value (1,inf), not the table's."),
    ] = None
    levels: Levels = None
    integer: Whole = False
    insiders: Insiders = True
    allow_nothing_sensitive: NothingSensitive = False

    def read(self, table_path: Path, path: Path) -> Release:
        """Read the table, and what was published of it."""
        from cellguard.check.read_release import read_release
        from cellguard.methods.options import bases_of_method_option, margins_of_method_option

        table = TableAsked(
            path=table_path, levels=self.levels, bounds=self.bounds, insiders=self.insiders, whole=self.integer
        )
        return read_release(
            table.load(),
            path,
            method=self.method,
            base=None if self.base is None else bases_of_method_option(self.base),
            step=self.step,
            distance=self.distance,
            keep_multiples=self.keep_multiples,
            keep=margins_of_method_option(list(self.keep or ())),
            ignore=self.ignore or (),
            marks_only=self.marks_only,
        )


def with_release_options(**behind: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Let a verb that takes `asked`, a :class:`ReleaseAsked`, have an option for each of its fields.

    `behind` are options of the verb's own that the help lists among them, each behind the field that is named.
    """
    noun = signature(ReleaseAsked, eval_str=True).parameters

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def verb(**given: Any) -> None:
            command(asked=ReleaseAsked(**{name: given.pop(name) for name in noun}), **given)

        own = signature(command, eval_str=True).parameters
        among = [[field, *(own[name] for name in behind if behind[name] == field.name)] for field in noun.values()]
        listed = {name: [parameter] for name, parameter in own.items() if name not in behind}
        listed["asked"] = [parameter for some in among for parameter in some]
        return command_with_options(
            verb, (parameter for some in listed.values() for parameter in some), command.__doc__
        )

    return decorate


def command_with_options(
    verb: Callable[..., None], parameters: Iterable[Parameter], about: str | None
) -> Callable[..., None]:
    """Let a function that takes anything be a verb with these parameters."""
    named = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
    verb.__doc__ = about
    verb.__signature__ = Signature(named)  # type: ignore[attr-defined]
    verb.__annotations__ = {parameter.name: parameter.annotation for parameter in named}
    return verb


def _read_table_argument(path: Path) -> Table:
    from cellguard.nouns.table import Table

    known = (".jj", ".jj.gz", ".csv", ".csv.gz", ".parquet", ".arb", ".toml")
    name = path.name.lower()
    if not name.endswith(known):
        raise InputError(f"{path}: no known kind of table file.", hint=f"known are {', '.join(known)}.")
    if name.endswith(".arb"):
        from cellguard.argus import read_table_of_batch

        return read_table_of_batch(path)
    if name.endswith(".toml"):  # the tables of a job, with the rules and attackers that it names
        from cellguard.publish import read_job
        from cellguard.publish.flags import flagged_by_job
        from cellguard.publish.tables import tabulated_by_job

        job = read_job(path)
        return flagged_by_job(tabulated_by_job(job), job)
    return Table.read(path)


def _two_numbers_of_option(text: str) -> tuple[float, float] | None:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        return None
    return first, second


def with_bounds_option(table: Table, text: str) -> Table:
    """Return the table with what attackers know as shares of each value: ``1,inf`` is from 0 to anything."""
    import numpy as np

    shares = _two_numbers_of_option(text)
    if shares is None or not all(share >= 0 for share in shares):
        raise InputError(f"--bounds {text!r}: two shares of at least 0 with a comma are needed.", hint="as in 0.5,inf.")
    size = np.abs(table.values)
    below, above = (np.where(size > 0, share * size, 0.0) if np.isfinite(share) else np.inf for share in shares)
    known = table.lb == table.ub  # what everybody knows stays known
    lb, ub = np.where(known, table.lb, table.values - below), np.where(known, table.ub, table.values + above)
    return table.with_(lb=lb, ub=ub)

"""``cellguard reproduce``: a table of a paper, ours beside the printed figures."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cellguard.cli._options import Json, Quiet, Seed
from cellguard.cli._printing import only_json_on_stdout, print_json, print_note

__all__ = ["command"]

_SECONDS_BETWEEN_LINES = 5.0


def command(
    name: Annotated[str, Argument(metavar="NAME", help="Which experiment, such as castro2004-table3.")],
    instances: Annotated[str, Option(metavar="LIST", help="Names with commas between them; all if not given.")] = "",
    replications: Annotated[
        int | None, Option(metavar="N", help="Repetitions of random parts; the paper's if not given.")
    ] = None,
    time_limit: Annotated[float, Option(metavar="SECONDS", min=0.0, help="For each solve that may take long.")] = 60.0,
    option: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="Another reading of the paper, as in level_error=0.2.")
    ] = None,
    seed: Seed = 1,
    out: Annotated[
        Path, Option(metavar="DIR", help="Where finished results are kept; a second run goes on from there.")
    ] = Path("cellguard-reproduce"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce an experiment of the papers and print ours beside the printed figures."""
    from cellguard.experiments import Settings, experiment

    settings = Settings(
        instances=tuple(part.strip() for part in instances.split(",") if part.strip()),
        replications=replications,
        seed=seed,
        time_limit_s=time_limit,
        options=_options_on_command_line(option or []),
    )
    with only_json_on_stdout(as_json):
        report = _reproduce_on_terminal(experiment(name), settings, out, quiet)
    if as_json:
        print_json(report.summary())
    else:
        _print_reproduction(report)


def _help_on_experiments() -> str:
    """Return the help: every experiment, what it shows, and about how long all of it takes on one core."""
    from cellguard.experiments import EXPERIMENTS

    lines = [f"- {name} ({entry.time}): {entry.summary}" for name, entry in EXPERIMENTS.items()]
    where = "Tables of CSPLIB are read from the folder CELLGUARD_CSPLIB; one that is not there is skipped."
    what = "Experiments, with about how long all of it takes on one core:"
    return "\n\n".join([command.__doc__ or "", where, what, *lines])


command.__doc__ = _help_on_experiments()


def _options_on_command_line(given: list[str]) -> dict[str, str]:
    from cellguard.exceptions import InputError

    pairs = [text.partition("=") for text in given]
    for name, sign, value in pairs:
        if not (name.strip() and sign and value.strip()):
            raise InputError(f"--option {name}{sign}{value}: a name and a value are needed.", hint="level_error=0.2")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _reproduce_on_terminal(chosen: Any, settings: Any, out: Path, quiet: bool) -> Any:
    """Run, and tell on standard error how long it will still take: a bar on a terminal, lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from cellguard.experiments import reproduce

    if quiet or not sys.stderr.isatty():
        return reproduce(chosen, settings, out, progress=None if quiet else _Lines(chosen.name))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(chosen.name)

        def progress(done: int, total: int, unit: str) -> None:
            bar.update(task, completed=done, total=max(total, 1), description=f"{chosen.name}: {unit}")

        return reproduce(chosen, settings, out, progress=progress)


class _Lines:
    """Tells every few seconds what is done and how long the rest will take, if it goes on like this."""

    def __init__(self, name: str) -> None:
        self.name, self.begin, self.told = name, time.monotonic(), float("-inf")

    def __call__(self, done: int, total: int, unit: str) -> None:
        now = time.monotonic()
        if now - self.told < _SECONDS_BETWEEN_LINES or done == total:
            return
        self.told = now
        left = f", about {(now - self.begin) / done * (total - done):.0f} s left" if done else ""
        print_note(f"{self.name}: {done} of {total} done{left}; now {unit}")


def _print_reproduction(report: Any) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    console = Console(highlight=False)
    if report.rows:
        names = list(dict.fromkeys(name for row in report.rows for name in row))
        grid = Grid(title=report.experiment, title_justify="left")
        for name in names:
            grid.add_column(name, justify="right" if name in ("ours", "paper", "difference") else "left")
        for row in report.rows:
            grid.add_row(*(_figure_printed_on_terminal(row.get(name)) for name in names))
        console.print(grid)
    for line in report.skipped:
        console.print(line, style="yellow")
    if report.remark:
        console.print(report.remark, style="dim")


def _figure_printed_on_terminal(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    return str(value)

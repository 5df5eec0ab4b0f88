"""``cellguard reproduce``: compare our results with the printed figures of a paper."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cellguard.cli.support.options import ExperimentSeed, Json, Quiet
from cellguard.cli.support.printing import print_json, print_note, redirect_library_output

__all__ = ["command"]

_SECONDS_BETWEEN_LINES = 5.0


def command(
    name: Annotated[str, Argument(metavar="NAME", help="Which experiment, such as castro2004-table3.")],
    instances: Annotated[str, Option(metavar="LIST", help="Names separated by commas; default: all.")] = "",
    replications: Annotated[
        int | None, Option(metavar="N", help="Repetitions of random parts; default: as in the paper.")
    ] = None,
    time_limit: Annotated[float, Option(metavar="SECONDS", min=0.0, help="Time limit for each long solve.")] = 60.0,
    option: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="Another reading of the paper, as in level_error=0.2.")
    ] = None,
    seed: ExperimentSeed = 1,
    out: Annotated[
        Path, Option(metavar="DIR", help="Folder of finished results; a second run continues from there.")
    ] = Path("cellguard-reproduce"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce an experiment of the papers and print our results beside the printed figures."""
    from cellguard.papers import Settings, get_experiment

    settings = Settings(
        instances=tuple(part.strip() for part in instances.split(",") if part.strip()),
        replications=replications,
        seed=seed,
        time_limit_s=time_limit,
        options=_parse_options(option or []),
    )
    with redirect_library_output(as_json):
        report = _reproduce_on_terminal(get_experiment(name), settings, out, quiet)
    if as_json:
        print_json(report.summarize())
    else:
        _print_reproduction(report)


def _build_help() -> str:
    """Return the help: every experiment, what it shows, and about how long it takes on one core."""
    from cellguard.papers import EXPERIMENTS

    lines = [f"- {name} ({entry.time}): {entry.summary}" for name, entry in EXPERIMENTS.items()]
    where = "Tables of CSPLIB are read from the folder CELLGUARD_CSPLIB; one that is not there is skipped."
    what = "Experiments, with about how long all of it takes on one core:"
    return "\n\n".join([command.__doc__ or "", where, what, *lines])


command.__doc__ = _build_help()


def _parse_options(given: list[str]) -> dict[str, str]:
    from cellguard.exceptions import InputError

    pairs = [text.partition("=") for text in given]
    for name, sign, value in pairs:
        if not (name.strip() and sign and value.strip()):
            raise InputError(f"--option {name}{sign}{value}: a name and a value are needed.", hint="level_error=0.2")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _reproduce_on_terminal(chosen: Any, settings: Any, out: Path, quiet: bool) -> Any:
    """Run an experiment and report the remaining time on standard error: a bar on a terminal, lines elsewhere."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from cellguard.papers import reproduce

    if quiet or not sys.stderr.isatty():
        return reproduce(chosen, settings, out, progress=None if quiet else _Lines(chosen.name))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(chosen.name)

        def update_bar(done: int, total: int, unit: str) -> None:
            bar.update(task, completed=done, total=max(total, 1), description=f"{chosen.name}: {unit}")

        return reproduce(chosen, settings, out, progress=update_bar)


class _Lines:
    """Print every few seconds what is done, and an estimate of the remaining time."""

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
            grid.add_row(*(_format_terminal_figure(row.get(name)) for name in names))
        console.print(grid)
    for line in report.skipped:
        console.print(line, style="yellow")
    if report.remark:
        console.print(report.remark, style="dim")


def _format_terminal_figure(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    return str(value)

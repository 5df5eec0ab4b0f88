"""``cellguard demo``: a business survey, protected, audited, compared and reported."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from cellguard.cli.commands.start.protect import run_job_on_terminal
from cellguard.cli.support.options import Json, Quiet
from cellguard.cli.support.printing import print_json, redirect_library_output

if TYPE_CHECKING:
    from cellguard.jobs.runner import Outcome

__all__ = ["command"]

_OUT = Path("cellguard-demo")


def command(
    out: Annotated[Path, Option(metavar="FOLDER", help="Folder for the survey, its job and the release.")] = _OUT,
    enterprises: Annotated[int, Option(metavar="N", min=500, help="Number of enterprises in the survey.")] = 20_000,
    compare: Annotated[bool, Option(help="Compare with the other four methods.")] = True,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Protect a bundled example and show the result.

    A survey of 20,000 fictitious enterprises: turnover by activity, region and size. Some cells consist of one
    enterprise, or nearly so: the table would disclose its turnover. The folder contains the survey and the job,
    so that you can repeat everything yourself: cellguard protect cellguard-demo/job.toml.
    """
    from cellguard.datasets.survey import JOB, write_survey
    from cellguard.jobs import read_job

    with redirect_library_output(as_json):
        job = JOB if compare else JOB.partition("[compare]")[0] + "[output]" + JOB.partition("[output]")[2]
        path = write_survey(out, n=enterprises, job=job)
        outcome = run_job_on_terminal(read_job(path), quiet=quiet)
    if as_json:
        print_json(outcome.summary())
    else:
        _print_demo(outcome)


def _print_demo(outcome: Outcome) -> None:
    from rich.console import Console

    from cellguard.cli.commands.protect.compare import print_comparison

    release, audit = outcome.release, outcome.audit
    table = release.table
    console = Console(highlight=False)
    console.print(
        f"\n[bold]Turnover of enterprises[/]: {table.n_cells} cells, of which {int(table.sensitive.sum())} would "
        "disclose an enterprise. This is what cellguard publishes for one region:\n"
    )
    console.print(_print_corner(outcome))
    console.print(
        "\n[bold red]x[/] sensitive, withheld (primary)   [yellow]x[/] withheld to protect those (secondary)\n"
    )
    verdict = "[bold green]safe[/]" if audit is not None and audit.safe else "[bold red]not safe[/]"
    console.print(f"Verdict of the independent audit: {verdict}.")
    if outcome.comparison is not None:
        console.print()
        print_comparison("this table", outcome.comparison.rows)
    total = sum(outcome.seconds.values())
    console.print(f"\nDone in {total:.0f} seconds. The public and the internal report:", soft_wrap=True)
    for kind in ("public", "internal"):
        console.print(f"  {outcome.folder / kind / 'report.html'}", soft_wrap=True)


def _print_corner(outcome: Outcome) -> Any:
    """Return a corner of the table: activities in rows, the parts of the first region in columns."""
    from rich.table import Table as Grid

    release, table = outcome.release, outcome.release.table
    point, sensitive = release.get_point_values(), table.sensitive
    across = list(table.codes[table.dimensions.index("region")][:5])
    grid = Grid("activity \\ region", *across, box=None, pad_edge=False)
    for column in grid.columns[1:]:
        column.justify = "right"
    for activity in table.codes[table.dimensions.index("activity")][:13]:
        row = []
        for region in across:
            cell = table.cell({"activity": activity, "region": region})
            withheld = "[bold red]x[/]" if sensitive[cell] else "[yellow]x[/]"
            row.append(withheld if math.isnan(point[cell]) else f"{point[cell]:,.0f}")
        grid.add_row(activity, *row)
    return grid

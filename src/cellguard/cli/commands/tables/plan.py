"""``cellguard plan``: from a producer's list of tables to what must be protected together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cellguard.cli.support.options import Json, Quiet
from cellguard.cli.support.printing import print_note, print_summary, redirect_library_output

__all__ = ["command"]


def command(
    path: Annotated[Path, Argument(metavar="LIST.csv", show_default=False, help="One row per table to be published.")],
    hierarchies: Annotated[
        Path | None, Option(metavar="FOLDER", help="A file for each hierarchy; beside the list unless given.")
    ] = None,
    equation: Annotated[
        list[str] | None, Option(metavar="EQUATION", help="Between indicators: 'turnover = domestic + exports'.")
    ] = None,
    out: Annotated[Path | None, Option(metavar="JOB.toml", help="Write the job of the publication.")] = None,
    picture: Annotated[Path | None, Option(metavar="FILE.svg", help="Draw the clusters and their tables.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Plan a publication from a list of its tables: which are parts of others, and which share cells.

    Tables that are parts of others are merged, tables that share cells form a cluster, and a job is written that
    protects each cluster as one system.
    """
    from cellguard._io.files import write_text
    from cellguard.jobs.table_list.plan import plan_tables

    with redirect_library_output(as_json):
        plan = plan_tables(path, hierarchies=hierarchies, equations=equation or ())
        summary = plan.summary()
        if out is not None:
            summary["jobs"] = [str(name) for name in plan.write_jobs(out)]
            print_note("look through the job: what is unconfirmed is named at its top.", quiet=quiet)
        if picture is not None:
            write_text(picture, plan.draw())
    shown = [f"{name}: {', '.join(tables)}" for name, tables in summary["clusters"].items()]
    print_summary(path.name, summary, as_json=as_json, clusters=shown)

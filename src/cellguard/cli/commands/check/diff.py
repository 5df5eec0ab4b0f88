"""``cellguard diff``: what tables over the same records by groupings that do not nest reveal together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from cellguard.cli.support.options import Json, Quiet
from cellguard.cli.support.printing import NoSafeReleaseError, print_note, print_summary, redirect_library_output
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.differencing.pieces import Grouping

__all__ = ["command"]

_SHOWN = 10
"""Unions that are named on the terminal; --out writes all."""


def command(
    tables: Annotated[
        list[Path] | None,
        Argument(
            metavar="[TABLE.csv]...",
            show_default=False,
            help="Published tables; columns that the records have too name their areas, an empty figure is withheld.",
        ),
    ] = None,
    records: Annotated[Path | None, Option(metavar="FILE", help="The records: a column of codes per table.")] = None,
    pieces: Annotated[Path | None, Option(metavar="FILE", help="A row per intersection, instead of records.")] = None,
    by: Annotated[
        list[str] | None, Option(metavar="COLUMN[,COLUMN]", help="A table by these columns, with all its areas.")
    ] = None,
    minimum: Annotated[int, Option(metavar="N", min=1, help="Fewer records than this are disclosive.")] = 10,
    dominance: Annotated[
        float | None, Option(metavar="PERCENT", help="A larger share of one contribution is disclosive.")
    ] = None,
    value: Annotated[str | None, Option(metavar="COLUMN", help="The values, for dominance.")] = None,
    count: Annotated[str | None, Option(metavar="COLUMN", help="Of pieces: the number of their records.")] = None,
    largest: Annotated[str | None, Option(metavar="COLUMN", help="Of pieces: the largest contribution.")] = None,
    total: Annotated[bool, Option("--total/--no-total", help="Whether the number of all records is published.")] = True,
    time_limit: Annotated[
        float, Option(metavar="SECONDS", min=0, help="For what only three or more tables determine together.")
    ] = 60.0,
    out: Annotated[Path | None, Option(metavar="FILE.csv", help="Write every union (confidential).")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find what can be computed from tables over the same records whose areas do not nest.

    Areas of one table minus areas of another leave intersections that are not published. Every one that has few
    records or is dominated is named with the areas to add and subtract. Exit code 2 if there is any.
    """
    from cellguard.differencing.differences import find_differences

    start = time.perf_counter()
    with redirect_library_output(as_json):
        source = records or pieces
        if source is None or (records is not None and pieces is not None):
            raise InputError("records or pieces are needed, not both.", hint="--records FILE, or --pieces FILE.")
        if pieces is not None and count is None:
            raise InputError("--pieces: the column with the number of records is needed.", hint="--count COLUMN.")
        groupings = _list_tables(source, tables or [], by or [])
        print_note(f"{source}: looking for intersections ...", quiet=quiet)
        found = find_differences(
            source, groupings, minimum=minimum, dominance=dominance, value=value, count=count, largest=largest,
            total=total, time_limit_s=time_limit,
        )  # fmt: skip
        if out is not None:
            found.save(out)
    if not found.complete:
        print_note("not all unions of three or more tables were searched: --time-limit allows more.", quiet=quiet)
    summary = {**found.summary(), "seconds": {"total": time.perf_counter() - start}}
    named = [f"{one.formula}: {one.count} records ({one.reason})" for one in found.found[:_SHOWN]]
    print_summary("differences", summary, as_json=as_json, **({"smallest": named} if named else {}))
    if found.found:
        hint = "coarsen a table, withhold areas, or --out FILE.csv for all of them."
        raise NoSafeReleaseError("the tables disclose something together.", hint=hint)


def _list_tables(source: Path, paths: list[Path], by: list[str]) -> dict[str, Grouping]:
    from cellguard.differencing.pieces import Grouping
    from cellguard.differencing.tables import list_record_columns, read_grouping

    columns = list_record_columns(source)
    groupings = [read_grouping(path, columns) for path in paths]
    groupings += [Grouping(name=text, columns=tuple(text.split(","))) for text in by]
    names = [grouping.name for grouping in groupings]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two tables are called {twice!r}.", hint="rename a file.")
    return dict(zip(names, groupings, strict=True))

"""``cellguard ranges``: what everybody can compute about the withheld cells of a published table."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cellguard.cli.support.options import Json, Quiet, TimeLimit, Whole
from cellguard.cli.support.printing import print_note, print_summary, redirect_library_output
from cellguard.exceptions import InputError

__all__ = ["command"]

_Column = str | None


def command(
    path: Annotated[
        Path,
        Argument(
            metavar="PUBLISHED", show_default=False, help="A published table (.csv, .parquet, .xlsx): a row per cell."
        ),
    ],
    dimension: Annotated[
        list[str] | None,
        Option(
            metavar="NAME[=FILE]", help="A column of codes, with the file of its hierarchy; all others unless given."
        ),
    ] = None,
    value: Annotated[_Column, Option(metavar="COLUMN", help="The values; empty or marked where withheld.")] = None,
    status: Annotated[_Column, Option(metavar="COLUMN", help="Marks of withheld cells.")] = None,
    mark: Annotated[
        list[str] | None, Option(metavar="WORD", help="A mark of withheld cells, not the usual ones.")
    ] = None,
    count: Annotated[_Column, Option(metavar="COLUMN", help="Numbers of contributors: none means 0.")] = None,
    lower: Annotated[_Column, Option(metavar="COLUMN", help="Known least values of withheld cells.")] = None,
    upper: Annotated[_Column, Option(metavar="COLUMN", help="Known greatest values of withheld cells.")] = None,
    ratio: Annotated[
        list[str] | None, Option(metavar="RATIO=COLUMN", help="A column of printed ratios and that of its denominator.")
    ] = None,
    ignore: Annotated[list[str] | None, Option(metavar="COLUMN", help="A column that says nothing.")] = None,
    knowledge: Annotated[Path | None, Option(metavar="FILE", help="Further sums of cells with their ends.")] = None,
    missing: Annotated[
        str, Option(metavar="WHAT", help="What cells without a row are: unpublished, zero or withheld.")
    ] = "unpublished",
    total: Annotated[str | None, Option(metavar="CODE", help="The code of totals.")] = None,
    tolerance: Annotated[
        float, Option(metavar="NUMBER", min=0.0, help="By how much a total may differ from the sum of its parts.")
    ] = 0.0,
    rounded_to: Annotated[float, Option(metavar="UNIT", min=0.0, help="Printed values are rounded to this.")] = 0.0,
    integer: Whole = False,
    negative: Annotated[bool, Option("--negative", help="Values may be negative.")] = False,
    exact_only: Annotated[
        bool, Option("--exact-only", help="Only what is known exactly: seconds, not minutes.")
    ] = False,
    out: Annotated[Path | None, Option(metavar="FILE.csv", help="Write the range of each withheld cell.")] = None,
    time_limit: TimeLimit = float("inf"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute from public data alone how narrowly withheld cells are known.

    No true table is needed, and there is no verdict: how many withheld cells are known exactly, and how narrow the
    ranges of the others are. Exit code 0 whatever is found.
    """
    from cellguard.published.ranges import public_ranges

    start = time.perf_counter()
    ratios = {name: str(column) for name, column in _parse_pairs("--ratio", ratio).items()}
    with redirect_library_output(as_json):
        print_note(f"{path}: reading ...", quiet=quiet)
        found = public_ranges(
            path, _parse_pairs("--dimension", dimension, optional=True) or None, value=value, status=status,
            marks=mark or (), count=count, lower=lower, upper=upper, ratios=ratios,
            ignore=ignore or (), knowledge=knowledge, missing=missing, total=total, tolerance=tolerance,
            rounded_to=rounded_to, integer=integer, negative=negative, exact_only=exact_only, time_limit_s=time_limit,
        )  # fmt: skip
        if out is not None:
            found.save(out)
    summary = {**found.summary(), "seconds": {"total": time.perf_counter() - start}}
    print_summary(f"{path.name}: what everybody can compute", summary, as_json=as_json)


def _parse_pairs(option: str, given: list[str] | None, *, optional: bool = False) -> dict[str, str | None]:
    """Return the pairs of an option ``NAME=WHAT``."""
    out: dict[str, str | None] = {}
    for text in given or ():
        name, equals, what = text.partition("=")
        if not name or not (what or (optional and not equals)):
            raise InputError(f"{option} {text!r}: NAME=WHAT is needed.")
        out[name] = what or None
    return out

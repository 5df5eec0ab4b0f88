"""``cellguard compare``: the five methods side by side."""

from __future__ import annotations

import math
from typing import Annotated, Any

from typer import Option

from cellguard.cli.support.options import Internal, Json, Levels, Quiet, Seed, TableAsked, TableFile, Weights
from cellguard.cli.support.printing import print_json, print_note, redirect_library_output
from cellguard.methods.registry import METHODS

__all__ = ["command", "print_comparison"]

_FROM_TRUTH = ("deviation_pct", "interval_pct", "range_pct", "range_to_level")
"""Figures computed from true values: for a single sensitive cell, the relative width of its range reveals its value."""

_COLOURS = {"safe": "green", "safe by distance": "yellow", "not safe": "red", "not finished": "dim", "refused": "dim"}
"""Verdict -> its colour, and the only colours of the table."""


def command(
    path: TableFile,
    methods: Annotated[str, Option(metavar="LIST", help="Names separated by commas; default: all.")] = ",".join(
        METHODS
    ),
    base: Annotated[
        float | None, Option(metavar="NUMBER", help="Base of rounding and perturbation; default: chosen for the table.")
    ] = None,
    norm: Annotated[
        str | None,
        Option(metavar="NORM", help="Norm of the adjustment: l1, l2, linf or l12; its default if not given."),
    ] = None,
    weights: Weights = "table",
    levels: Levels = None,
    time_limit: Annotated[float, Option(metavar="SECONDS", min=0.0, help="Time limit for each method.")] = 60.0,
    seed: Seed = 0,
    internal: Internal = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Protect one table by several methods and compare the information loss and what an attacker learns."""
    from cellguard.methods.compare import compare

    with redirect_library_output(as_json):
        table = TableAsked(path=path, weights=weights, levels=levels).load()
        found = compare(
            table,
            [name.strip() for name in methods.split(",")],
            base=base,
            norm=norm,
            time_limit_s=time_limit,
            seed=seed,
            progress=lambda name: print_note(f"{name} ...", quiet=quiet),
        )
    rows = found.rows
    if not internal:
        rows = tuple({name: value for name, value in row.items() if name not in _FROM_TRUTH} for row in rows)
    if as_json:
        print_json({"table": table.sizes, "methods": list(rows)})
    else:
        print_comparison(path.name, rows)


def print_comparison(title: str, rows: tuple[dict[str, Any], ...]) -> None:
    """Print the comparison as a readable table."""
    from rich.console import Console
    from rich.table import Table as Grid

    from cellguard.methods.compare import HEADINGS

    # a column per method: five columns fit on any screen
    grid = Grid(title=f"{title}: the methods side by side", title_justify="left")
    grid.add_column("", no_wrap=True)
    for row in rows:
        grid.add_column(row["method"], justify="right", overflow="fold")
    shown = {name: heading for name, heading in HEADINGS.items() if name in rows[0]}
    for name, heading in shown.items():
        values = (100.0 * row["gap"] if name == "gap" else row[name] for row in rows)
        grid.add_row(heading, *(_format_comparison_figure(value) for value in values))
    console = Console(highlight=False)
    console.print(grid)
    text = "untouched: published unchanged. "
    if "deviation_pct" in shown:
        text += (
            "deviation: distance between published number and truth. published width: width of the published interval. "
            "attacker's range: range of the sensitive cells, relative to their value; it must be at least as wide as "
            "their levels (range / levels >= 1)."
        )
    else:
        text += "Figures computed from true values (deviations, widths, ranges) are shown with --internal."
    console.print(text, style="dim")


def _format_comparison_figure(value: Any) -> str:
    from rich.markup import escape

    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and value in _COLOURS:
        return f"[{_COLOURS[value]}]{value}[/]"
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:,.2f}"
    return escape(str(value).replace("_", " "))  # a status breaks between its words

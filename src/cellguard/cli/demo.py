"""``cellguard demo``: a small table, protected, audited and shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cellguard.cli._common import Json, NoSafeReleaseError, only_json_on_stdout, print_json

if TYPE_CHECKING:
    from cellguard.audit import Audit
    from cellguard.release import Release

__all__ = ["command"]


def command(as_json: Json = False) -> None:
    """Protect a bundled example and show the result.

    Investments of enterprises by activity and region (salazar2004, figure 1). One enterprise alone stands behind
    activity II in region C: whoever reads the table reads its investment.
    """
    from cellguard.examples import salazar2004_figure1
    from cellguard.intervals import intervals

    with only_json_on_stdout(as_json):
        release = intervals(salazar2004_figure1())
        audit = release.audit(exact=True)
    if as_json:
        print_json({**release.summary(), "audit": audit.summary()})
    else:
        _show(release, audit)
    if not audit.safe:
        raise NoSafeReleaseError("the audit refuses this release.")


def _show(release: Release, audit: Audit) -> None:
    from rich.console import Console

    table = release.table
    console = Console(highlight=False)
    console.print("[bold]Before[/]: investments of enterprises. The cell in [bold red]red[/] is a single enterprise.\n")
    console.print(_grid(release, [f"{v:g}" for v in table.values]))
    console.print("\n[bold]After[/]: what cellguard would publish.\n")
    console.print(_grid(release, _published(release)))
    cells, lowest, highest = next(iter(audit.ranges.values()))
    for cell, low, high in zip(cells, lowest, highest, strict=True):
        console.print(
            f"\nWhoever adds and subtracts all day learns of {table.label(int(cell))} only that it lies between "
            f"[bold]{low:.6g}[/] and [bold]{high:.6g}[/]. It must be able to be as low as "
            f"{table.values[cell] - table.lower[cell]:g} and as high as {table.values[cell] + table.upper[cell]:g}."
        )
    verdict = "[bold green]safe[/]" if audit.safe else "[bold red]not safe[/]"
    console.print(f"The audit, which knows nothing of the method, says: {verdict}.")


def _published(release: Release) -> list[str]:
    """What a reader sees in each cell: a number, two numbers, or x."""
    columns = release.columns()
    if "lower" in columns:
        pairs = zip(columns["lower"], columns["upper"], strict=True)
        return [
            f"{low:g}" if math.isclose(low, high) else f"{round(low, 2):g} to {round(high, 2):g}" for low, high in pairs
        ]
    return ["x" if math.isnan(value) else f"{value:g}" for value in columns["value"]]


def _grid(release: Release, texts: list[str]) -> Any:
    """Lay out the cells of a table of two dimensions, totals last."""
    from rich.table import Table as Grid

    table = release.table
    (rows, columns), (down, across) = table.dimensions, table.codes
    text = {}
    for cell, (i, j) in enumerate(table.coordinates.tolist()):
        text[i, j] = f"[bold red]{texts[cell]}[/]" if table.sensitive[cell] else texts[cell]
    order = [*range(1, len(across)), 0]
    grid = Grid(f"{rows} \\ {columns}", *(across[j] for j in order))
    for i in [*range(1, len(down)), 0]:
        grid.add_row(down[i], *(text[i, j] for j in order))
    return grid

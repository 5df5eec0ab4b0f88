"""``cellguard demo``: a small table of investments, protected and attacked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cellguard.cli._common import Json, print_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cellguard.release import Release
    from cellguard.table import Table

__all__ = ["command"]

_REGIONS = ("A", "B", "C", "Total")
_ACTIVITIES = ("I", "II", "III", "Total")
_INVESTMENT = ((20, 50, 10, 80), (8, 19, 22, 49), (17, 32, 12, 61), (45, 101, 44, 190))
_SENSITIVE = 6
_PATTERN = (4, 6, 8, 10)


def command(as_json: Json = False) -> None:
    """Protect a bundled example and show the result.

    Investments by activity and region (salazar2004, figure 1): one enterprise alone is in activity II of region C.
    """
    from cellguard.release import Status, Suppression

    table = _investments()
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=_mask(table.n_cells, _PATTERN))
    lowest, highest = _range(release, _SENSITIVE)
    if as_json:
        print_json({"cell": table.label(_SENSITIVE), "lowest": lowest, "highest": highest, **release.summary()})
        return
    from rich.console import Console

    console = Console(highlight=False)
    console.print("Investments of enterprises, before: the sensitive cell is [bold red]red[/].")
    console.print(_grid(table, release, published=False))
    console.print("\nAfter: what would be published.")
    console.print(_grid(table, release, published=True))
    console.print(
        f"\nWhoever adds and subtracts all day learns of {table.label(_SENSITIVE)} only that it lies between "
        f"[bold]{lowest:g}[/] and [bold]{highest:g}[/]."
    )


def _investments() -> Table:
    """Return the table of salazar2004 figure 1, with its levels: 10 down, 12 up."""
    import numpy as np

    from cellguard.table import Table

    cell = np.arange(16).reshape(4, 4)
    relations = [[r[3], *r[:3]] for r in cell] + [[c[3], *c[:3]] for c in cell.T]
    return Table.from_equations(
        np.ravel(_INVESTMENT),
        relations,
        sensitive=[_SENSITIVE],
        lower=10,
        upper=12,
        name="investments",
        dimensions=("activity", "region"),
        codes=(_ACTIVITIES, _REGIONS),
        coordinates=np.argwhere(cell >= 0).astype(np.int32),
    )


def _mask(n: int, cells: tuple[int, ...]) -> NDArray[np.bool_]:
    import numpy as np

    mask = np.zeros(n, np.bool_)
    mask[list(cells)] = True
    return mask


def _range(release: Release, cell: int) -> tuple[float, float]:
    """What an attacker computes for a cell: two linear programs (salazar2004 section 2)."""
    import numpy as np

    from cellguard._engine.lp import LinearProgram

    table = release.table
    lower, upper = release.published_bounds()
    attacker = LinearProgram(table.relations, table.rhs, table.rhs, lower, upper)
    attacker.set_costs(np.array([cell]), np.array([1.0]))
    return attacker.solve().objective, attacker.solve(maximize=True).objective


def _grid(table: Table, release: Release, *, published: bool) -> object:
    from rich.table import Table as Grid

    grid = Grid("activity", *(f"region {r}" if r != "Total" else r for r in _REGIONS))
    column = release.point_values() if published else table.values
    for row, activity in enumerate(_ACTIVITIES):
        texts = []
        for cell in range(4 * row, 4 * row + 4):
            text = "x" if math.isnan(column[cell]) else f"{column[cell]:g}"
            texts.append(f"[bold red]{text}[/]" if table.sensitive[cell] else text)
        grid.add_row(activity, *texts)
    return grid

"""Options of the commands that check a release together with the earlier ones of a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

if TYPE_CHECKING:
    from cellguard.history.earlier import History
    from cellguard.jobs.outputs.content import LedgerQuery

__all__ = ["Additive", "Ledger", "Period", "Population", "PriorPercent", "RevisionPercent", "Until", "load_history"]

Ledger = Annotated[
    Path | None, Option(metavar="FOLDER", help="Together with the linked releases of this ledger (see --period).")
]
Period = Annotated[str, Option(help="With --ledger: the period of the release, such as 2025Q1.")]
Population = Annotated[str, Option(help="With --ledger: its population.")]
Additive = Annotated[bool, Option("--additive", help="With --ledger: values of periods add up.")]
RevisionPercent = Annotated[
    float | None, Option(metavar="Q", help="With --ledger: the largest revision, in per cent.")
]  # fmt: skip
PriorPercent = Annotated[
    float | None, Option(metavar="Q", help="With --ledger: values are known within Q per cent of the last period's.")
]
Until = Annotated[
    int | None, Option(metavar="LINE", min=0, help="With --ledger: as it was after this line; all lines unless given.")
]


def load_history(
    folder: Path, query: LedgerQuery, *, revision_percent: float | None, prior_percent: float | None
) -> History:
    """Return the linked releases of a ledger with their links."""
    from cellguard.history.earlier import History
    from cellguard.jobs.outputs.content import find_linked

    found = find_linked(folder, query)
    return History(
        period=query.period, population=query.population, releases=found.releases, additive=query.additive,
        sums=found.sums, revision_percent=revision_percent, prior_percent=prior_percent,
    )  # fmt: skip

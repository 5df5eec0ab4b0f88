"""``cellguard adjust``: the closest safe table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cellguard.cli._common import Json, Levels, Out, Quiet, Seed, TableFile, Weights, run_method

if TYPE_CHECKING:
    from cellguard.release import Release
    from cellguard.table import Table

__all__ = ["command"]

Norm = Annotated[str, typer.Option("--norm", metavar="NORM", help="Distance: l1, l2, linf or l12.")]
Senses = Annotated[str, typer.Option("--senses", metavar="KIND", help="Sensitive cells go upper, lower or by key.")]
Omega = Annotated[
    float, typer.Option("--omega", metavar="SHARE", min=0.0, max=1.0, help="Share of the absolute changes in l12.")
]


def command(
    table: TableFile,
    norm: Norm = "l2",
    weights: Weights = "inverse",
    senses: Senses = "upper",
    omega: Omega = 0.99,
    levels: Levels = None,
    seed: Seed = 0,
    out: Out = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publish the closest additive table in which every sensitive cell is at least its level from the truth."""

    def method(loaded: Table) -> Release:
        from cellguard.adjust import adjust

        return adjust(loaded, norm=norm, weights=weights, senses=senses, omega=omega, seed=seed)

    run_method(method, table, levels=levels, out=out, as_json=as_json, quiet=quiet)

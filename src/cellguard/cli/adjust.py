"""``cellguard adjust``: the closest safe table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cellguard.cli._common import (
    Gap,
    Insiders,
    Internal,
    Json,
    Levels,
    NothingSensitive,
    Out,
    Quiet,
    Seed,
    TableFile,
    Threads,
    TimeLimit,
    Weights,
    run_method,
)

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["command"]

Norm = Annotated[str, typer.Option("--norm", metavar="NORM", help="Distance: l1, l2, linf or l12.")]
Senses = Annotated[
    str,
    typer.Option(
        "--senses", metavar="KIND", help="Sensitive cells go by a secret key, upper, lower, or as is optimal."
    ),
]
Surplus = Annotated[
    float,
    typer.Option(
        "--surplus", metavar="SHARE", min=0.0, help="What stays possible for a sensitive cell, in widths of its levels."
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep", metavar="MARGIN", help="Stays as it is: total, a dimension, or several with commas; may be repeated."
    ),
]
Omega = Annotated[
    float, typer.Option("--omega", metavar="SHARE", min=0.0, max=1.0, help="Share of the absolute changes in l12.")
]
Integer = Annotated[
    bool | None,
    typer.Option("--integer/--real", help="Only whole numbers, or any; unless given as many decimals as the values."),
]
Repair = Annotated[
    str,
    typer.Option("--repair", metavar="HOW", help="When no table fits: flip senses, relax relations, or none."),
]
InternalFile = Annotated[
    Path | None,
    typer.Option("--internal-file", metavar="FILE", help="Also write true values, senses, weights: must stay inside."),
]


def command(
    table: TableFile,
    norm: Norm = "l2",
    weights: Weights = "inverse",
    senses: Senses = "key",
    surplus: Surplus = 1.0,
    omega: Omega = 0.99,
    integer: Integer = None,
    keep: Keep = None,
    repair: Repair = "senses",
    time_limit: TimeLimit = 60.0,
    gap: Gap = 1e-3,
    levels: Levels = None,
    seed: Seed = 0,
    threads: Threads = 1,
    out: Out = None,
    internal_file: InternalFile = None,
    internal: Internal = False,
    insiders: Insiders = True,
    allow_nothing_sensitive: NothingSensitive = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publish the closest additive table in which every sensitive cell is at least its level from the truth."""

    def method(loaded: Table) -> Release:
        from cellguard.methods.adjust import adjust

        release = adjust(
            loaded,
            norm=norm,
            weights=weights,
            senses=senses,
            surplus=surplus,
            omega=omega,
            integer=integer,
            keep=[entry.split(",") for entry in keep or []],
            repair=None if repair == "none" else repair,
            time_limit_s=time_limit,
            gap=gap,
            seed=seed,
        )
        if internal_file is not None and release.published:
            release.save_internal(internal_file)
        return release

    run_method(
        method,
        table,
        levels=levels,
        out=out,
        as_json=as_json,
        quiet=quiet,
        threads=threads,
        internal=internal,
        insiders=insiders,
        allow_nothing_sensitive=allow_nothing_sensitive,
    )

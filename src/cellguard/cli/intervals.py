"""``cellguard intervals``: publish the narrowest intervals that are safe."""

from __future__ import annotations

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
    Whole,
    run_method,
)

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["command"]


def command(
    table: TableFile,
    out: Out = None,
    levels: Levels = None,
    weights: Weights = "table",
    position: Annotated[
        str, typer.Option("--position", metavar="KIND", help="Where the truth lies: narrowest, or random (wider).")
    ] = "narrowest",
    gap: Gap = 1e-3,
    time_limit: TimeLimit = 600.0,
    seed: Seed = 0,
    threads: Threads = 1,
    internal: Internal = False,
    insiders: Insiders = True,
    whole: Whole = False,
    allow_nothing_sensitive: NothingSensitive = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Publish some cells as intervals, as narrow as safety allows.

    With symmetric levels the midpoint of most intervals is the truth: use --levels 0.05,0.20 or --position random.
    """
    from cellguard.methods.intervals import intervals

    def method(given: Table) -> Release:
        return intervals(given, gap=gap, time_limit_s=time_limit, position=position, seed=seed)

    run_method(
        method,
        table,
        weights=weights,
        levels=levels,
        out=out,
        as_json=as_json,
        quiet=quiet,
        threads=threads,
        internal=internal,
        insiders=insiders,
        whole=whole,
        allow_nothing_sensitive=allow_nothing_sensitive,
    )

"""``cellguard intervals``: publish some cells as intervals."""

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
        str,
        typer.Option(
            "--position", metavar="KIND", help="How the ends are chosen: classes, or narrowest (tells values)."
        ),
    ] = "classes",
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
    """Publish some cells as intervals from which nobody computes a sensitive cell too closely.

    By classes with a secret offset: who knows the method learns no more than the set that its levels leave. The
    narrowest intervals (--position narrowest) are a few times narrower, and tell most values to who knows the levels.
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

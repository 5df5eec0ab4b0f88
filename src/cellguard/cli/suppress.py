"""``cellguard suppress``: withhold as few cells as safety allows."""

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
    Whole,
    note,
    run_method,
)

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["command"]


def command(
    table: TableFile,
    out: Out = None,
    method: Annotated[
        str, typer.Option("--method", metavar="KIND", help="heuristic, exact, or auto: the first, then the second.")
    ] = "auto",
    time_limit: Annotated[
        float, typer.Option("--time-limit", metavar="SECONDS", min=0.0, help="Stop searching after this.")
    ] = 60.0,
    gap: Gap = 0.0,
    weights: Annotated[
        str,
        typer.Option(
            "--weights",
            metavar="KIND",
            help="Cost per cell: table, unit, value, inverse, sqrt, log, frequency or power.",
        ),
    ] = "table",
    power: Annotated[
        float,
        typer.Option("--power", metavar="LAMBDA", min=0.0, help="Exponent of --weights power; 0 is the logarithm."),
    ] = 0.5,
    levels: Levels = None,
    resist: Annotated[
        str | None, typer.Option("--resist", metavar="ATTACK", help="matching: withstand who knows the algorithm.")
    ] = None,
    mark_primary: Annotated[
        bool,
        typer.Option("--mark-primary", help="Tell in the file which withheld cells are sensitive themselves."),
    ] = False,
    seed: Seed = 0,
    rounds: Annotated[
        int | None,
        typer.Option(
            "--rounds",
            metavar="N",
            min=0,
            help="Rounds of improvement: the same pattern on every machine, however fast.",
        ),
    ] = None,
    threads: Threads = 1,
    internal: Internal = False,
    insiders: Insiders = True,
    whole: Whole = False,
    allow_nothing_sensitive: NothingSensitive = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Withhold the sensitive cells, and others so that nobody can compute them.

    At the time limit the best safe pattern is returned with what is proven about its cost.
    """
    from cellguard.methods.suppress import suppress

    def progress(cost: float, bound: float) -> None:
        gap = f"within {100 * (cost - bound) / cost:.1f}% of the best" if 0 < bound <= cost else "a better pattern"
        note(f"cost {cost:,.6g}, at least {bound:,.6g}" if internal else gap, quiet=quiet)

    def run(given: Table) -> Release:
        return suppress(
            given,
            method=method,
            time_limit_s=time_limit,
            gap=gap,
            seed=seed,
            rounds=rounds,
            weights=None if weights == "table" else weights,
            power=power,
            resist=resist,
            progress=progress,
        )

    run_method(
        run,
        table,
        levels=levels,
        out=out,
        as_json=as_json,
        quiet=quiet,
        threads=threads,
        internal=internal,
        insiders=insiders,
        whole=whole,
        allow_nothing_sensitive=allow_nothing_sensitive,
        mark_primary=mark_primary,
    )

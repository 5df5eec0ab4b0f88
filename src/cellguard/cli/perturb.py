"""``cellguard perturb``: move every cell a little and keep the table additive."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from cellguard.cli._common import (
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
    base: Annotated[
        float | None, typer.Option("--base", metavar="NUMBER", help="Cells are drawn to multiples of this (5).")
    ] = None,
    distance: Annotated[
        float | None,
        typer.Option("--distance", metavar="NUMBER", help="Cells move by at most this, instead of a base."),
    ] = None,
    draw: Annotated[
        str,
        typer.Option("--draw", metavar="KIND", help="random; or as in the paper: nearest, relaxation or truth."),
    ] = "random",
    round_sensitive: Annotated[
        bool, typer.Option("--round-sensitive", help="Sensitive cells take a multiple of the base.")
    ] = False,
    given: Annotated[
        list[str] | None,
        typer.Option("--given", metavar="CELL=VALUE", help="A published value: index or codes with commas; repeat."),
    ] = None,
    levels: Levels = None,
    weights: Weights = "table",
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
    """Publish an additive table near the truth; the distance is published too, and leaves the levels open."""
    from cellguard.methods.perturb import perturb

    def method(loaded: Table) -> Release:
        return perturb(
            loaded,
            base,
            distance=distance,
            draw=draw,
            round_sensitive=round_sensitive,
            given=_given(given or []),
            time_limit_s=time_limit,
            seed=seed,
        )

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


def _given(entries: list[str]) -> dict[int | tuple[str, ...], float]:
    """Return prescribed values: ``6=25`` by index, ``N,f=25`` by codes in the order of the dimensions."""
    from cellguard.exceptions import InputError

    out: dict[int | tuple[str, ...], float] = {}
    for entry in entries:
        cell, sign, value = entry.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not sign or not cell or math.isnan(number):
            raise InputError(f"--given {entry}: a cell and its value are needed.", hint="6=25, or N,f=25 by codes.")
        out[int(cell) if cell.isdigit() else tuple(cell.split(","))] = number
    return out

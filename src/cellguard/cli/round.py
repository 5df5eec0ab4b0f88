"""``cellguard round``: controlled rounding from file to file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cellguard.cli import _common as shared
from cellguard.exceptions import FormatError, InputError

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["command", "read_bases"]


def command(
    path: shared.TableFile,
    base: Annotated[
        str,
        typer.Option("--base", metavar="NUMBER|FILE", help="The base; or a file with one base per cell, a line each."),
    ] = "5",
    step: Annotated[
        int | None,
        typer.Option(
            "--step", metavar="N", min=1, help="Cells move by less than N bases; the least possible if not given."
        ),
    ] = None,
    objective: Annotated[
        str, typer.Option("--objective", metavar="KIND", help="distance; unbiased or coins: each seed another table.")
    ] = "distance",
    kind: Annotated[
        str, typer.Option("--method", metavar="KIND", help="exact (a proof), areas (large tables), or auto.")
    ] = "auto",
    max_step: Annotated[int, typer.Option("--max-step", metavar="N", min=1, help="Largest step that is tried.")] = 5,
    keep_multiples: Annotated[
        bool, typer.Option("--keep-multiples", help="Sensitive multiples of the base may stay as they are.")
    ] = False,
    weights: shared.Weights = "table",
    levels: shared.Levels = None,
    time_limit: shared.TimeLimit = 300.0,
    gap: shared.Gap = 0.0,
    seed: shared.Seed = 0,
    threads: shared.Threads = 1,
    out: shared.Out = None,
    internal: shared.Internal = False,
    insiders: shared.Insiders = True,
    whole: shared.Whole = False,
    allow_nothing_sensitive: shared.NothingSensitive = False,
    as_json: shared.Json = False,
    quiet: shared.Quiet = False,
) -> None:
    """Round every cell to a multiple of a base so that the table still adds up.

    Sensitive cells stay as uncertain as their levels ask. What is published with the table: the base
    of each cell and the step, the number of bases within which every cell moved (1: zero-restricted).
    """
    from cellguard.methods.round import round as round_table

    bases = read_bases(base)

    def method(table: Table) -> Release:
        return round_table(
            table,
            bases,
            objective=objective,
            method=kind,
            step=step,
            max_step=max_step,
            keep_multiples=keep_multiples,
            time_limit_s=time_limit,
            gap=gap,
            seed=seed,
            threads=threads,
        )

    shared.run_method(
        method,
        path,
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


def read_bases(text: str) -> float | list[float]:
    """Read the base: a number, or a file with one per cell."""
    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not path.is_file():
        raise InputError(f"--base {text!r}: neither a number nor a file.", hint="as in --base 5.")
    out = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                out.append(float(line))
            except ValueError:
                raise FormatError.at(path, number, "a base is needed, one number per line.") from None
    return out

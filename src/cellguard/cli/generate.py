"""``cellguard generate``: seeded tables of the papers' kinds."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cellguard.cli._options import Json, Quiet
from cellguard.cli._printing import print_json, print_note
from cellguard.exceptions import InputError

__all__ = ["command"]


def command(
    kind: Annotated[
        str,
        Argument(
            metavar="KIND", show_default=False, help="hierarchical, onehier, frequency, geography, census or cube."
        ),
    ],
    out: Annotated[
        Path, Option(metavar="FILE", show_default=False, help="Where it goes: .jj, .jj.gz, .csv or .parquet.")
    ],
    seed: Annotated[int, Option(metavar="N", min=0, help="The same seed gives the same table.")] = 0,
    size: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE",
            help="A size of the kind, as in --size wards=100, --size sides=50,50,50 or --size branching=4x5,3. "
            "Repeatable.",
        ),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a table of one of the papers' kinds and write it.

    The same kind, seed and sizes give the same file.
    """
    from cellguard.data.generate import KINDS, generate

    start = time.perf_counter()
    parameters = inspect.signature(KINDS[kind]).parameters if kind in KINDS else {}
    sizes = dict(_size_option(text, parameters) for text in size or [])
    table = generate(kind, seed, **sizes)
    table.write(out)
    seconds = time.perf_counter() - start
    if as_json:
        made = {"kind": kind, "seed": seed, "sizes": sizes, "table": table.sizes, "out": str(out)}
        print_json(made | {"seconds": {"total": seconds}})
    else:
        print_note(f"written: {out}: {table}", quiet=quiet)


def _size_option(text: str, parameters: Any) -> tuple[str, Any]:
    """Return the name and the value of ``name=value``, read as the kind's own default is written."""
    name, equals, value = text.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise InputError(f"--size {text!r}: NAME=VALUE is needed.", hint="as in --size wards=100.")
    default = parameters[name].default if name in parameters else 0
    try:
        if name == "branching":
            return name, tuple(tuple(int(n) for n in dimension.split("x")) for dimension in value.split(","))
        if isinstance(default, tuple):
            return name, tuple(int(n) for n in value.split(","))
        whole = isinstance(default, int) or (default is None and name != "sensitive")
        return name, int(value) if whole else float(value)
    except ValueError:
        raise InputError(
            f"--size {text!r}: the value is not of the right kind.", hint="numbers, or numbers with commas."
        ) from None

"""``cellguard generate``: random tables of the kinds in the papers, from a seed."""

from __future__ import annotations

import inspect
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cellguard.cli.support.options import Json, Quiet
from cellguard.cli.support.printing import print_json, print_note
from cellguard.exceptions import InputError

__all__ = ["command"]


def command(
    kind: Annotated[
        str,
        Argument(
            metavar="KIND",
            show_default=False,
            help="hierarchical, onehier, frequency, geography, census, cube; or farms: records with a job.",
        ),
    ],
    out: Annotated[
        Path,
        Option(
            metavar="FILE",
            show_default=False,
            help="Output file: .jj, .jj.gz, .csv or .parquet; for farms, a folder.",
        ),
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
    """Generate a table of one of the kinds in the papers and write it.

    The same kind, seed and sizes give the same file.
    """
    from cellguard.datasets.generate import KINDS, generate

    start = time.perf_counter()
    if kind == "farms":
        _generate_farms(out, seed, size or [], as_json=as_json, quiet=quiet)
        return
    parameters = inspect.signature(KINDS[kind]).parameters if kind in KINDS else {}
    sizes = dict(_parse_size(text, parameters) for text in size or [])
    table = generate(kind, seed, **sizes)
    table.write(out)
    seconds = time.perf_counter() - start
    if as_json:
        made = {"kind": kind, "seed": seed, "sizes": sizes, "table": table.sizes, "out": str(out)}
        print_json(made | {"seconds": {"total": seconds}})
    else:
        print_note(f"written: {out}: {table}", quiet=quiet)


def _generate_farms(out: Path, seed: int, size: list[str], *, as_json: bool, quiet: bool) -> None:
    """Write the records of farms, their geography and a job into a folder."""
    from cellguard.datasets.farms import SHAPES, write_farms

    start = time.perf_counter()
    options: dict[str, Any] = {}
    for text in size:
        name, equals, value = text.partition("=")
        if not equals or name not in ("farms", "shape"):
            raise InputError(
                f"--size {text!r}: farms=NUMBER or shape=NAME is needed.", hint="as in --size shape=medium."
            )
        try:
            whole = value in SHAPES or tuple(int(part) for part in value.split(","))
        except ValueError:
            raise InputError(
                f"--size {text!r}: is not a number, nor a shape.", hint=f"shapes are {', '.join(SHAPES)} or 287,10,12."
            ) from None
        if name == "shape":
            options["shape"] = value if value in SHAPES else whole
        else:
            options["n"] = int(value)
    job = write_farms(out, seed=seed, **options)
    if as_json:
        made = {"kind": "farms", "seed": seed, "sizes": options, "job": str(job), "out": str(out)}
        print_json(made | {"seconds": {"total": time.perf_counter() - start}})
    else:
        print_note(f"written: {job}, with its records and geography", quiet=quiet)


def _parse_size(text: str, parameters: Any) -> tuple[str, Any]:
    """Return the name and the value of ``name=value``, with the type of the kind's default."""
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

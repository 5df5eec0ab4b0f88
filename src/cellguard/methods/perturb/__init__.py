"""Cell perturbation: an additive table near the truth."""

from __future__ import annotations

import math

from cellguard.exceptions import InputError
from cellguard.methods.method import Method, Option
from cellguard.methods.options import base_suggested_to_methods

__all__ = ["METHOD"]


def _prescribed_perturb_values(entries: list[str] | None) -> dict[int | tuple[str, ...], float]:
    """Return prescribed values as typed: ``6=25`` by index, ``N,f=25`` by codes in the order of the dimensions.

    >>> _prescribed_perturb_values(["6=25", "N,f=10"])
    {6: 25.0, ('N', 'f'): 10.0}
    """
    out: dict[int | tuple[str, ...], float] = {}
    for entry in entries or []:
        cell, sign, value = entry.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not sign or not cell or math.isnan(number):
            raise InputError(f"given {entry}: a cell and its value are needed.", hint="6=25, or N,f=25 by codes.")
        out[int(cell) if cell.isdigit() else tuple(cell.split(","))] = number
    return out


METHOD = Method(
    name="perturb",
    title="Cell perturbation",
    summary="Move every cell a little, towards multiples, and keep the table additive.",
    help="Publish an additive table near the truth; the distance is published too, and leaves the levels open.",
    publishes="Numbers were moved a little; every total is still the sum of its parts.",
    choose="The quickest way to an additive table for any levels; every cell is changed, and the distance is told.",
    note=lambda release, options: f"base {options['base']:g}",  # noqa: ARG005 - the base is an option
    options=(
        Option(
            name="base", kind=float, metavar="NUMBER", positive=True, from_table=base_suggested_to_methods,
            help="Cells are drawn to multiples of this (5).",
        ),
        Option(
            name="distance", kind=float, key=None, metavar="NUMBER",
            help="Cells move by at most this, instead of a base."
        ),
        Option(
            name="draw", default="random", key=None, metavar="KIND",
            choices=("random", "nearest", "relaxation", "truth"),
            help="Where cells are drawn to: random; or as in the paper nearest, relaxation or truth.",
        ),
        Option(
            name="round_sensitive", kind=bool, default=False, key=None,
            help="Sensitive cells take a multiple of the base.",
        ),
        Option(
            name="given", kind=list[str], key=None, metavar="CELL=VALUE", read=_prescribed_perturb_values,
            help="A value that is prescribed: by the cell's index, or its codes with commas; may be repeated.",
        ),
    ),
)  # fmt: skip

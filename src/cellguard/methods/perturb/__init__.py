"""Cell perturbation: an additive table near the truth."""

from __future__ import annotations

import math

from cellguard.exceptions import InputError
from cellguard.methods.method import Method, Option
from cellguard.methods.options import suggest_base

__all__ = ["METHOD"]


def _parse_prescribed_values(entries: list[str] | None) -> dict[int | tuple[str, ...], float]:
    """Return prescribed values as typed: ``6=25`` by index, ``N,f=25`` by codes in the order of the dimensions.

    >>> _parse_prescribed_values(["6=25", "N,f=10"])
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
    summary="Move cells by a small published distance; the table still adds up.",
    help="Publish an additive table near the truth. The distance is published too; it is large enough for all levels.",
    publishes="Numbers were moved a little; every total is still the sum of its parts.",
    choose="The fastest way to an additive table for any levels. Every cell changes, and the distance is published.",
    made_with=("rule", "key"),
    randomised=lambda value_of: True,  # noqa: ARG005 - coins decide on which side a cell lies for every draw
    note=lambda release, options: f"base {options['base']:g}",  # noqa: ARG005 - the base is an option
    options=(
        Option(
            name="base", kind=float, metavar="NUMBER", positive=True, from_table=suggest_base,
            instead="distance",
            help="Cells are drawn towards multiples of this number.",
        ),
        Option(
            name="distance", kind=float, least=0.0, only_given=True, metavar="NUMBER",
            help="Largest movement of a cell; replaces the base."
        ),
        Option(
            name="draw", default="random", only_given=True, metavar="KIND",
            choices=("random", "nearest", "relaxation", "truth"),
            help="Target of each cell: random, or the paper's nearest, relaxation or truth.",
        ),
        Option(
            name="between", kind=bool, default=False, only_given=True,
            help="Keep every cell between its adjacent multiples, as in (12). Attackers who know it halve the ranges.",
        ),
        Option(
            name="round_sensitive", kind=bool, default=False, only_given=True,
            help="Publish sensitive cells as multiples of the base.",
        ),
        Option(
            name="given", kind=list[str], only_given=True, metavar="CELL=VALUE", read=_parse_prescribed_values,
            job_read=_parse_prescribed_values,
            help="A prescribed value: the cell's index or its codes, with commas, and the value; may be repeated.",
        ),
        Option(
            name="areas", only_given=True, metavar="DIMENSION",
            help="Perturb each of the finest codes of this dimension separately and add them up: for large tables.",
        ),
    ),
)  # fmt: skip

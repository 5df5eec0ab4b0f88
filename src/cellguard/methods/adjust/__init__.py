"""Controlled tabular adjustment: the closest table in which every sensitive cell is away from the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from cellguard.exceptions import InputError
from cellguard.methods.method import Method, Option
from cellguard.methods.options import create_number_reader, keep_option_of_method

__all__ = ["METHOD"]

_SENSES = ("upper", "lower", "key", "optimal")


def _read_senses(text: str) -> Any:
    """Return the senses as typed: a word, or one number per sensitive cell, with commas or in a file.

    >>> _read_senses("Upper"), _read_senses("1,-1")
    ('upper', [1.0, -1.0])
    """
    if text.lower() in _SENSES:
        return text.lower()
    try:
        return create_number_reader("senses")(text)
    except InputError:  # neither: the function lists the allowed words
        return text


def _is_randomised(value_of: Callable[[str], Any]) -> bool:
    """Return whether senses, surplus or noise are drawn: given or optimal senses at the levels are not."""
    senses = value_of("senses")
    return (isinstance(senses, str) and senses == "key") or bool(value_of("surplus")) or bool(value_of("noise"))


METHOD = Method(
    name="adjust",
    title="Controlled tabular adjustment",
    summary="Publish the closest table in which every sensitive cell is at least its level from the truth.",
    help="Publish the closest additive table in which every sensitive cell is at least its level from the truth.",
    publishes="Numbers were changed a little; every total is still the sum of its parts.",
    choose="Plausible numbers that add up, in every cell, none of them marked. No single number can be relied on, "
    "and an informed attacker can compute many of the true values: see its attacks.",
    own_weights="inverse",
    made_with=("rule", "key", "unit", "weights"),
    randomised=_is_randomised,
    by_ranges=False,
    internal_file=True,
    note=lambda release, options: "attacked by scenarios, not by ranges",  # noqa: ARG005 - the same for every release
    options=(
        Option(
            name="norm", default="l1", choices=("l1", "l2", "linf", "l12"), metavar="NORM",
            help="Distance from the truth that is minimised: l1, l2, linf or l12.",
        ),
        Option(
            name="senses", default="key", choices=_SENSES, metavar="KIND|FILE", read=_read_senses,
            job_kind=list[Literal[1, -1]],
            help="Direction in which sensitive cells move: by a secret key, all upper, all lower, or optimal; or 1 "
            "(up) or -1 (down) for each: separated by commas or in a file on the command line, a list in a job.",
        ),
        Option(
            name="surplus", kind=float, default=1.0, least=0.0, metavar="SHARE",
            help="Width of the set of values that stays possible for a sensitive cell, in multiples of its levels.",
        ),
        Option(
            name="max_change", kind=float, default=0.5, least=0.0, metavar="SHARE",
            help="Largest change of cells that are not sensitive, as a share of the value, where a table allows it.",
        ),
        Option(
            name="noise", kind=float, default=0.0, least=0.0, only_given=True, metavar="SHARE",
            help="Largest additional random movement of a cell, as a share of its value.",
        ),
        Option(
            name="omega", kind=float, default=0.99, least=0.0, only_given=True, metavar="SHARE",
            help="Weight of the absolute changes in l12, between 0 and 1.",
        ),
        Option(
            name="squares", choices=("all", "inner", "margins", "sensitive"), only_given=True, metavar="CELLS",
            help="Cells whose squared changes count in l12: all, inner, margins or sensitive.",
        ),
        Option(
            name="square_weights", only_given=True, metavar="KIND",
            help="Weights of the squared changes in l12; default: the same as weights.",
        ),
        Option(
            name="integer", kind=bool, flag="--integer/--real", key="whole",
            help="Publish only whole numbers, or any numbers; default: as many decimals as the values have.",
        ),
        keep_option_of_method("Cells that stay unchanged"),
        Option(
            name="repair", default="senses", choices=("senses", "relations", "none"), metavar="HOW",
            help="If no table is feasible: flip some senses, relax relations, or none.",
        ),
        Option(
            name="solver", default="interior", choices=("interior", "simplex"), only_given=True, metavar="NAME",
            help="Algorithm that finds the closest table: interior (interior point), or simplex for l1 and linf.",
        ),
        Option(
            name="gap", kind=float, default=1e-3, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when the result is proven to be within this share of the optimum.",
        ),
        Option(
            name="weights", default="inverse", key=None, metavar="KIND",
            help="Cost of each cell: table, unit, inverse, value, sqrt or log.",
        ),
    ),
)  # fmt: skip

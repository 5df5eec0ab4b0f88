"""Controlled tabular adjustment: the closest table in which every sensitive cell is away from the truth."""

from __future__ import annotations

from cellguard.methods.method import Method, Option
from cellguard.methods.options import keep_option_of_method

__all__ = ["METHOD"]


METHOD = Method(
    name="adjust",
    title="Controlled tabular adjustment",
    summary="Publish the closest table in which sensitive cells are away from the truth.",
    help="Publish the closest additive table in which every sensitive cell is at least its level from the truth.",
    publishes="Numbers were changed a little; every total is still the sum of its parts.",
    choose="A whole table of plausible numbers that add up, none of them marked; but no single one can be relied on, "
    "and who knows how it was made computes many of them back: see its attacks.",
    own_weights="inverse",
    made_with=("rule", "seed", "unit", "weights"),
    by_ranges=False,
    internal_file=True,
    note=lambda release, options: "attacked by scenarios, not by ranges",  # noqa: ARG005 - the same for every release
    options=(
        Option(
            name="norm", default="l2", job_default="l1", choices=("l1", "l2", "linf", "l12"), metavar="NORM",
            help="Which distance from the truth is made least: l1, l2, linf or l12.",
        ),
        Option(
            name="senses", default="key", choices=("upper", "lower", "key", "optimal"), metavar="KIND",
            help="Sensitive cells go by a secret key, upper, lower, or as is optimal.",
        ),
        Option(
            name="surplus", kind=float, default=1.0, least=0.0, metavar="SHARE",
            help="What stays possible for a sensitive cell, in widths of its levels.",
        ),
        Option(
            name="omega", kind=float, default=0.99, least=0.0, key=None, metavar="SHARE",
            help="Share of the absolute changes in l12.",
        ),
        Option(
            name="squares", choices=("all", "inner", "margins", "sensitive"), key=None, metavar="CELLS",
            help="Whose squares count in l12: all, inner, margins or sensitive cells.",
        ),
        Option(
            name="square_weights", key=None, metavar="KIND",
            help="Weights of the squares in l12; as the weights unless given.",
        ),
        Option(
            name="integer", kind=bool, flag="--integer/--real", key="whole",
            help="Only whole numbers, or any; unless given as many decimals as the values.",
        ),
        keep_option_of_method("Stays as it is"),
        Option(
            name="repair", default="senses", choices=("senses", "relations", "none"), metavar="HOW",
            help="When no table fits: flip senses, relax relations, or none.",
        ),
        Option(
            name="gap", kind=float, default=1e-3, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when proven this close to the best.",
        ),
        Option(
            name="weights", default="inverse", key=None, metavar="KIND",
            help="Loss per cell: table, unit, inverse, value, sqrt or log.",
        ),
    ),
)  # fmt: skip

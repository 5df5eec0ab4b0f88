"""Controlled rounding: an additive table of multiples of a base."""

from __future__ import annotations

from cellguard.methods.method import Method, Option
from cellguard.methods.options import base_suggested_to_methods, bases_of_method_option, keep_option_of_method

__all__ = ["METHOD"]

METHOD = Method(
    name="round",
    title="Controlled rounding",
    summary="Round every cell to a multiple of a base; the table still adds up.",
    help="Round every cell to a multiple of a base so that the table still adds up.\n\n"
    "Sensitive cells stay as uncertain as their levels ask. What is published with the table: the base of each cell "
    "and the step, the number of bases within which every cell moved (1: zero-restricted).",
    publishes="Every number is a multiple of a base, and every total is still the sum of its parts.",
    choose="Easy to explain, and quick for counts; every cell is changed, and small ones by much.",
    note=lambda release, options: f"base {options['base']:g}",  # noqa: ARG005 - the base is an option
    options=(
        Option(
            name="base", default="5", metavar="NUMBER|FILE", read=bases_of_method_option, job_kind=float,
            job_default=None, positive=True, from_table=base_suggested_to_methods,
            help="The base, or on the command line a file with one per cell; unless given in a job, the least usual "
            "one that leaves room for every level.",
        ),
        Option(
            name="step", kind=int, least=1, metavar="N",
            help="Cells move by less than N bases; the least possible if not given.",
        ),
        keep_option_of_method("Goes to its nearest multiple"),
        Option(
            name="objective", default="distance", choices=("distance", "unbiased", "coins"), key=None, metavar="KIND",
            help="distance; unbiased or coins: each seed another table.",
        ),
        Option(
            name="method", default="auto", choices=("auto", "exact", "areas"), key=None, metavar="KIND",
            help="exact (a proof), areas (large tables), or auto."
        ),
        Option(
            name="max_step", kind=int, default=5, least=1, key=None, metavar="N", help="Largest step that is tried."
        ),
        Option(
            name="keep_multiples", kind=bool, default=False, key=None,
            help="Sensitive multiples of the base may stay as they are.",
        ),
        Option(
            name="gap", kind=float, default=0.0, job_default=1e-3, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when proven this close to the best.",
        ),
    ),
)  # fmt: skip

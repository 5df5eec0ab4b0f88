"""Controlled rounding: an additive table of multiples of a base."""

from __future__ import annotations

from cellguard.methods.method import Method, Option
from cellguard.methods.options import (
    create_number_reader,
    keep_option_of_method,
    parse_bases,
    suggest_base,
)

__all__ = ["METHOD"]

METHOD = Method(
    name="round",
    title="Controlled rounding",
    module="cellguard.methods.rounding.rounding",
    summary="Round every cell to a multiple of a base; the table still adds up.",
    help="Round every cell to a multiple of a base so that the table still adds up.\n\n"
    "Sensitive cells keep their levels. Published with the table are the base of each cell "
    "and the step: every cell moved by less than this number of bases (1: zero-restricted).",
    publishes="Every number is a multiple of a base, and every total is still the sum of its parts.",
    choose="Easy to explain, and fast for counts. Every cell changes, small ones by a large share.",
    made_with=("rule", "key"),
    randomised=lambda value_of: value_of("objective") != "distance",
    note=lambda release, options: f"base {options['base']:g}",  # noqa: ARG005 - the base is an option
    options=(
        Option(
            name="base", default="5", metavar="NUMBER|FILE", read=parse_bases, job_kind=float,
            job_default=None, positive=True, from_table=suggest_base,
            help="The base; on the command line also a file with one base per cell. Default in a job: the smallest "
            "usual base that is large enough for every level.",
        ),
        Option(
            name="step", kind=int, least=1, metavar="N",
            help="Cells move by less than N bases; default: the smallest feasible N.",
        ),
        keep_option_of_method("Cells that go to their nearest multiple"),
        Option(
            name="objective", default="distance", only_given=True, metavar="KIND",
            choices=("distance", "unbiased", "unbiased-plain", "coins"),
            help="Minimise the distance; or, with a key: unbiased, unbiased-plain (the paper's estimate) or coins.",
        ),
        Option(
            name="method", default="auto", choices=("auto", "exact", "areas"), key="search", only_given=True,
            metavar="KIND",
            help="Algorithm: exact (with a proof), areas (for large tables), or auto (which ends within 1% of the "
            "bound where the proof would take longer)."
        ),
        Option(
            name="shares_up", only_given=True, job_kind=list[float], metavar="SHARES|FILE",
            read=create_number_reader("shares_up"),
            help="Share of each residue 0 .. base - 1 that is rounded up, for the unbiased objectives; "
            "default: estimated by a first run.",
        ),
        Option(
            name="max_step", kind=int, default=5, least=1, only_given=True, metavar="N",
            help="Largest step that is tried.",
        ),
        Option(
            name="keep_multiples", kind=bool, default=False, only_given=True,
            help="Sensitive cells that are multiples of the base may be published unchanged.",
        ),
        Option(
            name="gap", kind=float, default=0.0, job_default=1e-3, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when the result is proven to be within this share of the optimum.",
        ),
    ),
)  # fmt: skip

"""Cell suppression: the cheapest pattern of withheld cells that hides every sensitive cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cellguard.methods.method import Method, Option

__all__ = ["METHOD"]


def _note_on_pattern(release: Any, options: Mapping[str, Any]) -> str:
    del options
    return f"{int(release.primary.sum())} primary, {int(release.secondary.sum())} secondary"


def _search_for_pattern(asked: Callable[[str], Any]) -> str:
    """Choose heuristic search if rounds are given: the same work on every machine. Otherwise also try to prove."""
    return "auto" if asked("rounds") is None else "heuristic"


_ROUNDS = 30
"""Rounds of a heuristic search in a job: takes seconds, and gains most of what many more rounds would."""


def _name_cells(name: str, what: str) -> Option:
    """Return an option that names cells by their codes."""
    return Option(
        name=name, kind=list[str], metavar="CODES", only_given=True, read=lambda typed: list(typed or ()),
        job_kind=list[str | list[str] | dict[str, str]],
        help=f"{what}: codes with commas (in a job also a list, or dimension = code); may be repeated.",
    )  # fmt: skip


METHOD = Method(
    name="suppress",
    title="Cell suppression",
    summary="Withhold the sensitive cells and the cheapest set of others that protects them.",
    help="Withhold the sensitive cells, and others so that no attacker can infer them too precisely.\n\n"
    "At the time limit, the best safe pattern is returned with the proven bound on its cost.",
    publishes="Sensitive cells are not published, nor are other cells from which they could be computed.",
    choose="Every published number is true. Readers see gaps, also in cells that are not sensitive.",
    made_with=("rule", "key"),
    randomised=lambda value_of: value_of("resist") is not None,
    columns=("status", "value"),
    marks_primary=True,
    measured_at_scale=True,
    note=_note_on_pattern,
    options=(
        Option(
            name="method", key="search", metavar="KIND", default="auto", job_default=_search_for_pattern,
            choices=("auto", "heuristic", "exact"),
            help="How to search for the pattern: heuristic, exact, or auto (heuristic first, then exact).",
        ),
        Option(
            name="rounds", kind=int, least=0, metavar="N",
            job_default=lambda asked: _ROUNDS if asked("search") == "heuristic" else None,
            help="Number of rounds of improvement; gives the same pattern on every machine.",
        ),
        Option(
            name="gap", kind=float, default=0.0, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when the result is proven to be within this share of the optimum.",
        ),
        Option(
            name="resist", choices=("matching",), metavar="ATTACK",
            help="matching: resist an informed attacker by a secret key; for two-way counts.",
        ),
        Option(
            name="accept", choices=("external",), metavar="ATTACKER",
            help="external: at the time limit also take a release that is shown safe against external attackers only.",
        ),
        Option(
            name="weights", default="table", key=None, metavar="KIND",
            read=lambda kind: None if kind == "table" else kind,
            help="Cost of each cell: table, unit, value, inverse, sqrt, log, frequency or power.",
        ),
        Option(
            name="power", kind=float, default=0.5, least=0.0, key=None, metavar="LAMBDA",
            help="Exponent of --weights power; 0 is the logarithm.",
        ),
        _name_cells("must_publish", "Cells that are published in every pattern"),
        _name_cells("prefer", "Cells that are welcome as secondaries: a thousandth of their cost"),
        _name_cells("already_suppressed", "Cells that stay withheld, because an earlier release withheld them"),
    ),
)  # fmt: skip

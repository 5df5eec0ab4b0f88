"""Cell suppression: the cheapest pattern of withheld cells behind which every sensitive one is hidden."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cellguard.methods.method import Method, Option

__all__ = ["METHOD"]


def _note_on_pattern(release: Any, options: Mapping[str, Any]) -> str:
    del options
    return f"{int(release.primary.sum())} primary, {int(release.secondary.sum())} secondary"


def _search_for_pattern(asked: Callable[[str], Any]) -> str:
    """Whoever counts rounds asks for the same work on every machine; others want the best, proven where it closes."""
    return "auto" if asked("rounds") is None else "heuristic"


_ROUNDS = 30
"""Of a heuristic search in a job: most of what many more would bring, in seconds."""


METHOD = Method(
    name="suppress",
    title="Cell suppression",
    summary="Withhold as few cells as safety allows.",
    help="Withhold the sensitive cells, and others so that nobody can compute them.\n\n"
    "At the time limit the best safe pattern is returned with what is proven about its cost.",
    publishes="Sensitive cells, and others without which they could be computed, are not published.",
    choose="Every number that is published is the true one. Readers see gaps, also in cells that are not sensitive.",
    columns=("status", "value"),
    marks_primary=True,
    note=_note_on_pattern,
    options=(
        Option(
            name="method", key="search", metavar="KIND", default="auto", job_default=_search_for_pattern,
            choices=("auto", "heuristic", "exact"),
            help="How the pattern is searched: heuristic, exact, or auto: the first, then the second.",
        ),
        Option(
            name="rounds", kind=int, least=0, metavar="N",
            job_default=lambda asked: _ROUNDS if asked("search") == "heuristic" else None,
            help="Rounds of improvement: the same pattern on every machine, however fast.",
        ),
        Option(
            name="gap", kind=float, default=0.0, least=0.0, below=1.0, metavar="SHARE",
            help="Stop when proven this close to the best.",
        ),
        Option(
            name="resist", choices=("matching",), metavar="ATTACK",
            help="matching: withstand who knows the algorithm, for two-way tables of counts. Keep the seed secret.",
        ),
        Option(
            name="weights", default="table", key=None, metavar="KIND",
            read=lambda kind: None if kind == "table" else kind,
            help="Cost per cell: table, unit, value, inverse, sqrt, log, frequency or power.",
        ),
        Option(
            name="power", kind=float, default=0.5, least=0.0, key=None, metavar="LAMBDA",
            help="Exponent of --weights power; 0 is the logarithm.",
        ),
    ),
)  # fmt: skip

"""The option by which totals and margins are kept."""

from __future__ import annotations

from cellguard.methods.method import Option
from cellguard.nouns.kept import Keep, kept_cells

__all__ = ["Keep", "keep_option", "kept_cells", "margins"]


def margins(typed: list[str] | None) -> list[list[str]]:
    """Read margins as they are typed: dimensions with commas."""
    return [entry.split(",") for entry in typed or []]


def keep_option(what: str) -> Option:
    """Return the option by which totals and margins are kept; `what` says how."""
    return Option(
        name="keep", kind=list[str], metavar="MARGIN", read=margins,
        job_kind=list[str | list[str] | dict[str, str]], job_default=(),
        help=f"{what}: total, a dimension, or several with commas (in a job a list); may be repeated.",
    )  # fmt: skip

"""Options that several methods have: the base of rounding and perturbation, and totals and margins that are kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cellguard.exceptions import FormatError, InputError
from cellguard.methods.method import Option

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = ["base_suggested_to_methods", "bases_of_method_option", "keep_option_of_method", "margins_of_method_option"]


def base_suggested_to_methods(table: Table) -> float:
    """Return the least of 5, 10, 50, 100, ... that is no smaller than any cell's lower and upper level together."""
    from cellguard.methods.demands import demanded_levels

    need = max(float(levels.width.max(initial=0.0)) for levels in demanded_levels(table))
    base = 5.0
    while base < need:
        base *= 2.0 if f"{base:e}".startswith("5") else 5.0
    return base


def bases_of_method_option(text: str) -> float | list[float]:
    """Read the base: a number, or a file with one per cell."""
    try:
        return float(text)
    except ValueError:
        path = Path(text)
    if not path.is_file():
        raise InputError(f"--base {text!r}: neither a number nor a file.", hint="as in --base 5.")
    out = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip():
            try:
                out.append(float(line))
            except ValueError:
                raise FormatError.at(path, number, "a base is needed, one number per line.") from None
    return out


def margins_of_method_option(typed: list[str] | None) -> list[list[str]]:
    """Read margins as they are typed: dimensions with commas."""
    return [entry.split(",") for entry in typed or []]


def keep_option_of_method(what: str) -> Option:
    """Return the option by which totals and margins are kept; `what` says how."""
    return Option(
        name="keep", kind=list[str], metavar="MARGIN", read=margins_of_method_option,
        job_kind=list[str | list[str] | dict[str, str]], job_default=(),
        help=f"{what}: total, a dimension, or several with commas (in a job a list); may be repeated.",
    )  # fmt: skip

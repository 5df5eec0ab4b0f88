"""Options that several methods share: the base of rounding and perturbation, and the totals and margins to keep."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cellguard.exceptions import FormatError, InputError
from cellguard.methods.method import Option

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = [
    "create_number_reader",
    "keep_option_of_method",
    "parse_bases",
    "parse_margins",
    "refuse_coarse_base",
    "suggest_base",
]  # fmt: skip

LEAST_BASE = 5.0
"""The usual base of counts, and the least that is suggested."""
MAX_LOST_SHARE = 0.5
"""A suggested base may be more than twice as large as this share of the positive cells."""

MAX_EXPECTED_CHANGE = 0.25
"""Rounding to a suggested base may change positive cells by this share of their value on average, as expected."""


def suggest_base(table: Table) -> float:
    """Return the least of 5, 10, 50, 100, ... that is no smaller than any cell's lower and upper level together."""
    from cellguard.methods.demands import list_required_levels

    need = max(float(levels.width.max(initial=0.0)) for levels in list_required_levels(table))
    base = LEAST_BASE
    while base < need:
        base *= 2.0 if f"{base:e}".startswith("5") else 5.0
    return base


def refuse_coarse_base(table: Table, base: float) -> None:
    """Refuse a suggested base that is too coarse for the table.

    That is so if most of its positive cells are nearer to zero than to the base, or if they would change too much on
    average: by a quarter of the base, as far as a value lies from the nearest multiple in the mean.
    """
    positive = table.values[table.values > 0]
    lost = float((positive < base / 2).mean()) if len(positive) else 0.0
    change = float((base / 4 / positive).mean()) if len(positive) else 0.0
    if base > LEAST_BASE and change > MAX_EXPECTED_CHANGE and lost <= MAX_LOST_SHARE:
        raise InputError(
            f"no base suits both the levels and the table: the levels need {base:,.0f}, and positive cells would "
            f"change by more than {100 * MAX_EXPECTED_CHANGE:g}% on average.",
            hint="give the base, or choose a method that leaves the other cells as they are, such as suppress.",
        )
    if base > LEAST_BASE and lost > MAX_LOST_SHARE:
        raise InputError(
            f"no base suits both the levels and the table: the levels need {base:,.0f}, and most positive cells are "
            "less than half of that.",
            hint="give the base, or choose a method that leaves the other cells as they are, such as suppress.",
        )


def parse_bases(text: str) -> float | list[float]:
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


def create_number_reader(name: str) -> Callable[[str | None], list[float] | None]:
    """Return a reader of typed numbers: separated by commas, or a file with one per line.

    >>> create_number_reader("shares_up")("0,0.5,1")
    [0.0, 0.5, 1.0]
    """

    def read(text: str | None) -> list[float] | None:
        if text is None:
            return None
        path = Path(text)
        entries = path.read_text(encoding="utf-8").split() if path.is_file() else text.split(",")
        try:
            return [float(entry) for entry in entries]
        except ValueError:
            what = "numbers with commas, or a file with one per line, are needed."
            raise InputError(f"--{name.replace('_', '-')}: {what}") from None

    return read


def parse_margins(typed: list[str] | None) -> list[list[str]]:
    """Read margins as typed: dimensions separated by commas."""
    return [entry.split(",") for entry in typed or []]


def keep_option_of_method(what: str) -> Option:
    """Return the option that keeps totals and margins; `what` says how."""
    return Option(
        name="keep", kind=list[str], metavar="MARGIN", read=parse_margins,
        job_kind=list[str | list[str] | dict[str, str]], job_default=(),
        help=f"{what}: total, a dimension, or several with commas (in a job a list); may be repeated.",
    )  # fmt: skip

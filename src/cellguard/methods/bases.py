"""Bases of rounding and perturbation: read from the command line, or suggested by a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cellguard.exceptions import FormatError, InputError

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = ["read_bases", "suggested_base"]


def suggested_base(table: Table) -> float:
    """Return the least of 5, 10, 50, 100, ... that is no smaller than any cell's lower and upper level together."""
    from cellguard.nouns.levels import attackers_of, required_levels

    need = 5.0
    for attacker in attackers_of(table):
        level = required_levels(table, attacker)
        need = max(need, float(level.width.max(initial=0.0)))
    base = 5.0
    while base < need:
        base *= 2.0 if f"{base:e}".startswith("5") else 5.0
    return base


def read_bases(text: str) -> float | list[float]:
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

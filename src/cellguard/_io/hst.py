"""``.hst``: a priori decisions about single cells."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cellguard._io.files import write_lines
from cellguard._io.words import parse_float, read_lines, strip_quotes
from cellguard.exceptions import FormatError

__all__ = ["Decision", "read_hst", "write_hst"]

_ARGUMENTS = {"S": 0, "U": 0, "P": 0, "C": 1, "W": 1, "PL": 2}
_HINT = "a line has the codes of a cell, then S, U, P, C or W with a number, or PL with two levels."


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One line: the cell's codes, the decision, and its numbers."""

    codes: tuple[str, ...]
    action: str
    """S safe, U unsafe, P published unchanged, W weight, PL protection levels."""
    numbers: tuple[float, ...] = ()
    place: str = ""
    """File and line, for messages."""


def read_hst(path: str | Path, n_codes: int, separator: str = ",") -> list[Decision]:
    """Read an a priori file of a table with `n_codes` dimensions."""
    decisions = []
    for number, line in read_lines(path):
        fields = [strip_quotes(f) for f in line.split(separator)]
        if len(fields) < n_codes + 1:
            raise FormatError.at(path, number, f"{n_codes} codes and a decision are needed.", hint=_HINT)
        action, arguments = fields[n_codes].upper(), [f for f in fields[n_codes + 1 :] if f]
        if action not in _ARGUMENTS:
            raise FormatError.at(path, number, f"unknown decision {action[:12]!r}.", hint=_HINT)
        if len(arguments) != _ARGUMENTS[action]:
            raise FormatError.at(path, number, f"{action} takes {_ARGUMENTS[action]} numbers.", hint=_HINT)
        numbers = tuple(parse_float(a, path, number, f"the number after {action}") for a in arguments)
        if any(x < 0 for x in numbers):
            raise FormatError.at(path, number, f"the number after {action} is below 0.")
        codes = tuple(f.strip() for f in fields[:n_codes])
        place = f"{path}:{number}"
        decisions.append(Decision(codes=codes, action="W" if action == "C" else action, numbers=numbers, place=place))
    return decisions


def write_hst(path: str | Path, decisions: Iterable[Decision]) -> None:
    """Write an a priori file, atomically."""
    rows = ([*(f'"{c}"' for c in d.codes), d.action, *(f"{x!r}" for x in d.numbers)] for d in decisions)
    write_lines(path, (",".join(row) for row in rows))

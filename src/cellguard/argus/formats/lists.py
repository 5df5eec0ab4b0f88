"""Small files about codes: labels (``.cdl``), hierarchies (``.hrc``, written here) and recodings (``.grc``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cellguard._io.files import write_lines
from cellguard._io.words import read_lines, strip_quotes
from cellguard.exceptions import FormatError

__all__ = ["Recoding", "read_argus_cdl_file", "read_grc", "write_argus_hrc_file"]


def read_argus_cdl_file(path: str | Path) -> dict[str, str]:
    """Read a code list: ``code,label`` per line. Blanks before a code belong to it."""
    labels: dict[str, str] = {}
    for number, line in read_lines(path):
        code, comma, label = line.partition(",")
        code = strip_quotes(code) if code.strip().startswith('"') else code.rstrip()
        if not comma or not code.strip():
            raise FormatError.at(path, number, "a code, a comma and a label are needed.")
        if code in labels:
            raise FormatError.at(path, number, f"code {code.strip()!r} is listed twice.")
        labels[code] = strip_quotes(label)
    return labels


def write_argus_hrc_file(path: str | Path, lines: Sequence[tuple[int, str]]) -> None:
    """Write a hierarchy, atomically: depth (0 below the total) and code of each line, parents first."""
    write_lines(path, (f"{'@' * depth}{code}" for depth, code in lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recoding:
    """A coarser set of codes: either groups with ranges of codes, or codes of a tree to collapse."""

    groups: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """New code, and the ranges it joins: first and last code, empty if the range is open."""
    collapsed: tuple[str, ...] = ()
    """Codes of a hierarchy whose parts are no longer published."""

    def get_new_code(self, code: str) -> str:
        """Return the new code of a code; the code itself if no range contains it.

        Codes are compared as text of equal width, so numbers are compared by value.

        >>> Recoding(groups=(("small", (("", "5"),)), ("big", (("6", ""),)))).get_new_code("12")
        'big'
        """
        for new, ranges in self.groups:
            for first, last in ranges:
                width = max(len(code), len(first), len(last))
                key = code.rjust(width)
                if first.rjust(width) <= key and (not last or key <= last.rjust(width)):
                    return new
        return code


def read_grc(path: str | Path) -> Recoding:
    """Read a recoding: ``new: a,b-c,-d`` per line, or ``<TREERECODE>`` and the codes to collapse."""
    lines = list(read_lines(path))
    if not lines:
        raise FormatError.at(path, None, "the file is empty.", hint="lines look like 'new: a,b-c,-d'.")
    if lines[0][1].strip().upper() == "<TREERECODE>":
        return Recoding(collapsed=tuple(line.strip() for _, line in lines[1:]))
    groups: dict[str, list[tuple[str, str]]] = {}
    for number, line in lines:
        new, colon, old = line.partition(":")
        if not colon or not new.strip() or not old.strip():
            raise FormatError.at(path, number, "lines look like 'new: a,b-c,-d'.")
        for part in old.split(","):
            groups.setdefault(new.strip(), []).append(_parse_code_range(part.strip(), path, number))
    return Recoding(groups=tuple((new, tuple(ranges)) for new, ranges in groups.items()))


def _parse_code_range(text: str, path: str | Path, number: int) -> tuple[str, str]:
    if not text or text == "-":
        raise FormatError.at(path, number, "a code or a range of codes is missing between commas.")
    first, dash, last = (p.strip() for p in text.partition("-"))
    return (first, last) if dash else (text, text)

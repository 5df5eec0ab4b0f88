"""Outlines: text files that give a tree by depth (indented text, and the ``.hrc`` files of tau-ARGUS)."""

from __future__ import annotations

import re
from pathlib import Path

from cellguard._io.files import decode_to_utf8, read_bytes
from cellguard.exceptions import FormatError

__all__ = ["Line", "parse_hrc_outline", "parse_indented_outline", "read_text"]

Line = tuple[int, str, str]
"""Depth (0 is the top of the outline), code, label (empty when there is none)."""

_MAX_BYTES = 256 << 20
_LABEL = re.compile(r"\t+|\s{2,}")


def read_text(path: str | Path) -> str:
    """Read a small text file, in UTF-8 or else in Latin-1."""
    raw = read_bytes(path, max_bytes=_MAX_BYTES)
    if b"\0" in raw[:4096]:
        raise FormatError.at(path, None, "is a binary file.", hint="a text file with one code per line is needed.")
    return decode_to_utf8(raw).decode("utf-8-sig")


def parse_hrc_outline(path: str | Path, lead: str = "@") -> list[Line]:
    """Read a ``.hrc`` file: one code per line, as many lead strings before it as its depth.

    Blanks after the lead strings belong to the code; the total is never listed.
    """
    if not lead:
        raise FormatError.at(path, None, "the lead string is empty.", hint='tau-ARGUS files use "@".')
    lines: list[Line] = []
    for number, text in enumerate(read_text(path).splitlines(), 1):
        code = text.rstrip()
        if not code:
            continue
        depth = 0
        while code.startswith(lead):
            code, depth = code[len(lead) :], depth + 1
        if not code.strip():
            raise FormatError.at(path, number, "there is no code after the lead strings.")
        above = lines[-1][0] if lines else -1
        if depth > above + 1:
            wrong = f"depth {depth} below a code of depth {above}."
            raise FormatError.at(path, number, wrong, hint="a code is one level below its parent.")
        lines.append((depth, code, ""))
    if not lines:
        raise FormatError.at(path, None, "the file is empty.", hint="one code per line is needed.")
    return lines


def parse_indented_outline(text: str, source: str | Path = "text") -> list[Line]:
    """Read an outline whose depth is the indentation; a tab or two blanks separate a code from its label."""
    lines: list[Line] = []
    indents: list[int] = []  # indentation of the line's ancestors and itself
    for number, raw in enumerate(text.expandtabs(8).splitlines() if "\t" not in text.strip() else text.splitlines(), 1):
        body = raw.strip()
        if not body:
            continue
        indent = len(raw.expandtabs(8)) - len(raw.expandtabs(8).lstrip())
        while indents and indents[-1] > indent:
            indents.pop()
        if not indents or indents[-1] < indent:
            if lines and not indents:
                raise FormatError.at(source, number, "is indented less than the first line.")
            if indents and len(indents) <= lines[-1][0]:
                raise FormatError.at(
                    source,
                    number,
                    "the indentation matches no line above.",
                    hint="children of one code start in one column.",
                )
            indents.append(indent)
        code, _, label = (_LABEL.sub("\t", body, count=1)).partition("\t")
        lines.append((len(indents) - 1, code, label.strip()))
    if not lines:
        raise FormatError.at(source, None, "the outline is empty.", hint="one code per line is needed.")
    return lines

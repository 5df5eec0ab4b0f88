"""Find the line of a key in a TOML file: the parser does not report it, and users need it to find a mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

__all__ = ["Places", "Where"]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_ENTRY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"]*"|'[^']*'""")

Where = tuple[str | int, ...]
"""A place in a job: names of sections and keys, numbers (from 0) in lists."""


class Places:
    r"""Line numbers of the tables and keys of a TOML text.

    >>> text = 'seed = 1\n[data]\nfile = "a.csv"\n[[rules]]\nrule = "zero"\n[[rules]]\np = 3'
    >>> places = Places(text)
    >>> places.find_line(("data", "file")), places.find_line(("rules", 1, "p")), places.find_line(("rules", 1, "q"))
    (3, 7, 6)
    """

    def __init__(self, text: str) -> None:
        self._lines: dict[Where, int] = {}
        for path, line in _find_places(text):
            for n in range(1, len(path) + 1):
                self._lines.setdefault(path[:n], line)

    def find_line(self, path: Sequence[str | int]) -> int | None:
        """Return the line of a key, or of the nearest enclosing section."""
        for n in range(len(path), 0, -1):
            found = self._lines.get(tuple(path[:n]))
            if found is not None:
                return found
        return None


def _find_places(text: str) -> Iterator[tuple[Where, int]]:
    here: Where = ()
    count: dict[Where, int] = {}
    inside = ""  # the quotes of a multi-line string
    for number, line in enumerate(text.splitlines(), start=1):
        quotes = [q for q in ('"""', "'''") if line.count(q) % 2]
        if inside:
            inside = "" if inside in quotes else inside
            continue
        header = _HEADER.match(line)
        if header:
            path = _number_key(_split_key(header[2]), count)
            if header[1] == "[[":
                count[path] = count.get(path, -1) + 1
                path = (*path, count[path])
            here = path
            yield here, number
        elif entry := _ENTRY.match(line):
            yield (*here, *_split_key(entry[1])), number
        inside = quotes[0] if quotes else ""


def _split_key(key: str) -> Where:
    return tuple(part.strip("\"'") for part in _PART.findall(key))


def _number_key(path: Where, count: dict[Where, int]) -> Where:
    """Add the index of the current entry after every array of tables in the path."""
    out: Where = ()
    for k, part in enumerate(path):
        out = (*out, part)
        if k < len(path) - 1 and out in count:
            out = (*out, count[out])
    return out

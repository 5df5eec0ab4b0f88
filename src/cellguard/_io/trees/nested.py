"""Hierarchies from columns: a correspondence table, or nested columns of the data, from coarse to fine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cellguard.exceptions import InputError

__all__ = ["derive_code_pairs"]

_HINT = "each code of a finer level belongs to one code of the coarser; is a row wrong, or the order of the columns?"


def derive_code_pairs(levels: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """Return (code, parent) pairs, the parent empty at the top, from columns of codes, the coarsest first.

    A blank code skips its level: branches may differ in depth. A code with only itself below it
    is one code, not two. A coarser code that is spelt like a finer one gets its column's name as a prefix.

    >>> derive_code_pairs({"A10": ["AZ", "AZ", "BE"], "A21": ["A", "A", "B"], "A88": ["01", "02", "05"]})
    [('AZ', ''), ('A', 'AZ'), ('01', 'A'), ('02', 'A'), ('BE', ''), ('B', 'BE'), ('05', 'B')]
    """
    names = list(levels)
    rows = list(dict.fromkeys(zip(*([code.strip() for code in levels[name]] for name in names), strict=True)))
    spelt = _name_codes(names, rows)
    parent: dict[str, tuple[str, str]] = {}
    for row in rows:
        above, up = "", ""
        for level, code in enumerate(row):
            name = spelt.get((level, code))
            if not code or name is None or name == above:
                continue
            known, column = parent.setdefault(name, (above, up))
            if known != above:
                raise InputError(
                    f"code {code!r} of {names[level]!r} stands under two parents, {known!r} of {column or 'the top'!r} "
                    f"and {above!r} of {up or 'the top'!r}.",
                    hint=_HINT,
                )
            above, up = name, names[level]
    return [(code, above) for code, (above, _) in parent.items()]


def _name_codes(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> dict[tuple[int, str], str]:
    """Return the name of each code of each level; leave out codes that only repeat at a finer level."""
    below: dict[tuple[int, str], set[str]] = {}
    for row in rows:
        for level, code in enumerate(row):
            if code:
                finer = next((c for c in row[level + 1 :] if c), None)
                below.setdefault((level, code), set()).add(code if finer is None else finer)
    taken: set[str] = set()
    out: dict[tuple[int, str], str] = {}
    for level in reversed(range(len(names))):
        mine = [code for at, code in below if at == level]
        for code in mine:
            if level < len(names) - 1 and below[level, code] == {code} and code in taken:
                continue  # the finer level has it
            name = code
            while name in taken:
                name = f"{names[level]} {name}"
            out[level, code] = name
        taken.update(out[level, code] for code in mine if (level, code) in out)
    return out

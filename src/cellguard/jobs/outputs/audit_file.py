"""The audit file: the range that every attacker can infer, with each range stored once.

Most respondents can infer the same ranges as an external attacker, so many attackers share a range. The file has
columns, not objects: ``cells`` has the codes of every cell checked against any attacker; ``ranges`` has each
different finding once, where ``cell`` is its index in ``cells``; an attacker has the indices of their findings in
``ranges``. All of it is confidential.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._io.files import read_bytes, write_text
from cellguard._types import FloatArray
from cellguard.exceptions import FormatError
from cellguard.model.table import Table

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit, Finding

__all__ = ["read_cell_ranges", "write_audit_file"]

_FORMAT = "cellguard audit 2"
_COLUMNS = ("lowest", "highest", "lower_level", "upper_level", "sliding_level", "safe", "exact")
_TRUTHS = ("safe", "exact")


def write_audit_file(path: Path, table: Table, audit: Audit) -> None:
    """Write the findings of an audit atomically, with one line per column and per attacker."""
    asked = np.unique(np.concatenate([np.zeros(0, np.int64), *(f.cells for f in audit.findings)]))
    rows = [np.column_stack([np.searchsorted(asked, f.cells), _audit_file_rows(f)]) for f in audit.findings]
    ranges, place = np.unique(
        np.concatenate([np.zeros((0, 1 + len(_COLUMNS))), *rows]), axis=0, return_inverse=True, equal_nan=True
    )
    ends = np.cumsum([len(found) for found in rows])[:-1]
    places = np.split(place.ravel(), ends) if rows else []
    head = {"format": _FORMAT, "confidential": True, **audit.summary()}
    columns = {"cell": ranges[:, 0].astype(int).tolist()}
    columns |= {name: _format_column(name, ranges[:, k]) for k, name in enumerate(_COLUMNS, start=1)}
    people = [{"name": f.attacker.name, "ranges": own.tolist()} for f, own in zip(audit.findings, places, strict=True)]
    lines = [f"{_format_compact(name)}: {_format_compact(value)}" for name, value in head.items()]
    lines += [f'"cells": {_block_of_audit_file("{}", table.cell_codes(asked).items())}']
    lines += [f'"ranges": {_block_of_audit_file("{}", columns.items())}']
    lines += [f'"attackers": {_block_of_audit_file("[]", people)}']
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n", private=True)


def _audit_file_rows(found: Finding) -> FloatArray:
    """Return a row for each cell checked against the attacker, with one column per name."""
    need = found.levels
    return np.column_stack([found.low, found.high, need.lower, need.upper, need.sliding, found.safe, found.exact])


def _format_column(name: str, values: FloatArray) -> list[Any]:
    if name in _TRUTHS:
        return (values != 0).tolist()  # type: ignore[no-any-return]
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _block_of_audit_file(signs: str, entries: Any) -> str:
    """Write a list, or an object given by its items, with one entry per line."""
    texts = [
        _format_compact(e) if signs == "[]" else f"{_format_compact(e[0])}: {_format_compact(list(e[1]))}"
        for e in entries
    ]
    return signs[0] + "".join(f"\n{text}," for text in texts)[:-1] + "\n" + signs[1]


def _format_compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def read_cell_ranges(path: Path, codes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the range that each attacker can infer for the cell with these codes, as the audit wrote it."""
    try:
        written = json.loads(read_bytes(path, max_bytes=1 << 30))
        if written["format"] != _FORMAT:
            raise ValueError
        cells, ranges = written["cells"], written["ranges"]
        if set(cells) != set(codes):
            return []
        names = list(cells)
        wanted = tuple(codes[name] for name in names)
        its = [k for k, found in enumerate(zip(*(cells[n] for n in names), strict=True)) if found == wanted]
        rows = {k for k, cell in enumerate(ranges["cell"]) if cell in its}
        return [
            {"attacker": person["name"], "cell": dict(codes), **{name: ranges[name][k] for name in _COLUMNS}}
            for person in written["attackers"]
            for k in person["ranges"]
            if k in rows
        ]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise FormatError.at(
            path, None, "is damaged, or of another version.", hint="protect the table again."
        ) from None

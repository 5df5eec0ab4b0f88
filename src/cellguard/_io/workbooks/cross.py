"""Cross tables in workbooks: codes of one dimension in the columns, read as one row per cell.

Two layouts have two header rows. Either the upper row names the dimension of the columns and the lower one has its
codes, or the upper row has the codes, merged over the measures in the lower one::

    Activity | Region |       |             Activity | North       |          | South       |
             | North  | South |                      | Enterprises | Turnover | Enterprises | Turnover

With one header row, a sheet is a cross table if a column of totals is the sum of the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["unfold_cross_table"]

_NUMERIC = 0.5
"""Share of the entries of a column that are numbers, from which on it is a column of figures."""
_TOTALS = ("total", "totals", "_t", "all", "sum", "insgesamt", "gesamt", "summe", "ensemble", "totale", "totaal")
_EQUAL = 1e-9
_VALUE, _DIMENSION = "value", "columns"
_MAX_HEADS = 4


class _Layout(NamedTuple):
    """Where the parts of a sheet are."""

    labels: int
    """Number of columns of labels on the left."""
    body: int
    """First row of figures."""
    heads: list[list[Any]]
    """Header rows, without titles."""


def unfold_cross_table(rows: Sequence[list[Any]]) -> list[list[Any]] | None:
    """Return the rows of a cross table with one row per cell, the header first; None if a sheet is no cross table."""
    layout = _find_layout(rows)
    if layout is None:
        return None
    upper, lower = layout.heads[-2:] if len(layout.heads) > 1 else ([], layout.heads[-1])
    right = lower[layout.labels :]
    if not all(map(_is_filled, right)):
        return None
    above = [value for value in upper[layout.labels :] if _is_filled(value)] if upper else []
    body = rows[layout.body :]
    if len(above) == 1 and _is_filled(upper[layout.labels]) and _are_different(right):
        names = _name_labels(layout, upper, lower)
        return _unfold(body, layout.labels, names, str(above[0]).strip(), [(str(c), _VALUE) for c in right])
    if len(above) > 1 and _is_filled(upper[layout.labels]):
        groups = _fill_right(upper[layout.labels :])
        pairs = list(zip(groups, map(str, right), strict=True))
        names = _name_labels(layout, upper, lower)
        return _unfold(body, layout.labels, names, _DIMENSION, pairs) if _are_measures(pairs) else None
    if not above and layout.labels == 1 and _has_total_of_others(body, right):
        names = _name_labels(layout, upper, lower)
        first, sign, second = _split_corner(names[0])
        names[0] = first
        return _unfold(body, 1, names, second if sign else _DIMENSION, [(str(c), _VALUE) for c in right])
    return None


def _find_layout(rows: Sequence[list[Any]]) -> _Layout | None:
    """Return the layout of a sheet with labels on the left, at least two columns of figures, and header rows above."""
    width = max(map(len, rows))
    padded = [[*row, *[None] * (width - len(row))] for row in rows]
    while width and not any(_is_filled(row[width - 1]) for row in padded):
        width -= 1
    body = next((k for k, row in enumerate(padded) if _count_numbers(row[:width]) >= 2), None)
    if body is None or not body > 0:
        return None
    numbers = [_share_of_numbers([row[i] for row in padded[body:]]) >= _NUMERIC for i in range(width)]
    labels = next((i for i, numeric in enumerate(numbers) if numeric), width)
    if labels == 0 or width - labels < 2 or not all(numbers[labels:]):
        return None
    heads = [row[:width] for row in padded[max(0, body - _MAX_HEADS) : body] if any(map(_is_filled, row[labels:width]))]
    for row, full in zip(rows, padded, strict=True):
        row[:] = full[:width]
    return _Layout(labels, body, heads) if heads and not _is_list_head(heads) else None


def _is_list_head(heads: Sequence[list[Any]]) -> bool:
    """Return whether numbers are in the header rows, as years are: then nothing tells codes from figures."""
    return any(isinstance(value, float) and not value.is_integer() for row in heads for value in row)


def _unfold(
    body: Sequence[list[Any]], labels: int, names: list[str], dimension: str, pairs: Sequence[tuple[str, str]]
) -> list[list[Any]] | None:
    """Return one row per label and code; `pairs` are the code and the measure of each column of figures."""
    measures = list(dict.fromkeys(measure for _, measure in pairs))
    head = [*names, dimension, *measures]
    if len({name.lower() for name in head}) != len(head):
        return None
    out: list[list[Any]] = [head]
    kept: list[Any] = [None] * labels
    for row in body:
        if _count_numbers(row[labels:]) == 0 and not any(map(_is_filled, row[labels:])):
            continue  # a footnote or a heading between the rows
        kept = [own if _is_filled(own) else before for own, before in zip(row[:labels], kept, strict=True)]
        cells: dict[str, dict[str, Any]] = {}
        for (code, measure), value in zip(pairs, row[labels:], strict=True):
            cells.setdefault(code.strip(), {})[measure] = value
        out += [[*kept, code, *(found.get(m) for m in measures)] for code, found in cells.items()]
    return out


def _name_labels(layout: _Layout, upper: Sequence[Any], lower: Sequence[Any]) -> list[str]:
    """Return the names of the columns of labels: from the lower header row, or the upper one."""
    found = []
    for i in range(layout.labels):
        own = next((row[i] for row in (lower, upper) if row and _is_filled(row[i])), f"rows {i + 1}" if i else "rows")
        found.append(str(own).strip())
    return found


def _split_corner(text: str) -> tuple[str, str, str]:
    """Split a corner such as "Activity / Region" into the names of rows and columns."""
    parts = re.split(r"\s*[/\\|]\s*", text, maxsplit=1)
    return (parts[0], "/", parts[1]) if len(parts) == 2 and all(parts) else (text, "", "")


def _fill_right(values: Sequence[Any]) -> list[str]:
    out: list[str] = []
    for value in values:
        out.append(str(value).strip() if _is_filled(value) else out[-1])
    return out


def _are_measures(pairs: Sequence[tuple[str, str]]) -> bool:
    """Return whether every code has the same measures, each once, and none of them is a total."""
    groups: dict[str, list[str]] = {}
    for code, measure in pairs:
        groups.setdefault(code, []).append(measure)
    first = next(iter(groups.values()))
    same = all(measures == first for measures in groups.values()) and len(set(first)) == len(first)
    return same and len(groups) > 1 and not any(measure.strip().lower() in _TOTALS for measure in first)


def _are_different(values: Sequence[Any]) -> bool:
    return len({str(value).strip() for value in values}) == len(values)


def _has_total_of_others(body: Sequence[list[Any]], names: Sequence[Any]) -> bool:
    """Return whether one column is called a total, and is the sum of the others in every row without gaps."""
    totals = [k for k, name in enumerate(names) if str(name).strip().lower() in _TOTALS]
    if len(totals) != 1 or len(names) < 3:
        return False
    checked = 0
    for row in body:
        figures = row[len(row) - len(names) :]
        if not all(map(_is_number, figures)):
            continue
        checked += 1
        total = float(figures[totals[0]])
        if abs(2 * total - sum(map(float, figures))) > _EQUAL * max(abs(total), 1.0) * len(names):
            return False
    return checked > 1


def _count_numbers(values: Sequence[Any]) -> int:
    return sum(map(_is_number, values))


def _share_of_numbers(values: Sequence[Any]) -> float:
    filled = [value for value in values if _is_filled(value)]
    return _count_numbers(filled) / len(filled) if filled else 0.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_filled(value: Any) -> bool:
    return value is not None and str(value).strip() != ""

"""Read a list of tables to be published: one row each, with population, indicator and spanning variables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cellguard.exceptions import FormatError, InputError, suggest_names

__all__ = ["ListedTable", "Spanning", "TableList", "read_table_list"]

_NAMES = {
    "table": ("table_name", "table", "name"),
    "population": ("field", "population"),
    "population_tree": ("hrc_field", "hrc_population", "population_hierarchy"),
    "indicator": ("indicator", "response", "value"),
    "indicator_tree": ("hrc_indicator", "indicator_hierarchy"),
}
"""Content of a column -> its names; spanning variables are spanning_1, hrc_spanning_1, spanning_2, ..."""
_SPANNING = re.compile(r"^(hrc_)?spanning_(\d+)$")
_ENDINGS = (".hrc", ".csv", ".txt", ".xlsx")


@dataclass(frozen=True)
class Spanning:
    """A spanning variable of a table, and the hierarchy to which it belongs."""

    variable: str
    tree: str | None = None

    @property
    def key(self) -> str:
        """What variables of one hierarchy have in common."""
        return self.tree or self.variable


@dataclass(frozen=True, kw_only=True)
class ListedTable:
    """One row of the list."""

    line: int
    name: str
    population: Spanning
    indicator: Spanning
    spanning: tuple[Spanning, ...]


@dataclass(frozen=True, kw_only=True)
class TableList:
    """A producer's list of tables."""

    path: Path
    tables: tuple[ListedTable, ...]
    files: Mapping[str, Path]
    """File of each hierarchy that was found."""


def read_table_list(path: str | Path, hierarchies: str | Path | None = None) -> TableList:
    """Read a list of tables; with a folder of hierarchies, refuse names without a file there."""
    from cellguard._io.frames import convert_to_texts, read_frame

    path = Path(path)
    frame = {name.strip().lower(): [x.strip() for x in convert_to_texts(c)] for name, c in read_frame(path).items()}
    columns = _find_columns(path, frame)
    numbers = sorted({int(found[2]) for name in frame if (found := _SPANNING.match(name))})
    if not numbers:
        raise FormatError.at(path, 1, "no column of spanning variables.", hint="name it spanning_1.")
    tables: list[ListedTable] = []
    lines: dict[str, int] = {}
    for i, name in enumerate(columns["table"]):
        if name in lines:
            raise FormatError.at(path, i + 2, f"table {name!r} is listed twice; see line {lines[name]} too.")
        lines[name] = i + 2
        tables.append(_read_row(path, i, columns, frame, numbers))
    if not tables:
        raise FormatError.at(path, None, "no table is listed.")
    _refuse_contradictions(path, tables)
    return TableList(path=path, tables=tuple(tables), files=_find_hierarchies(path, tables, hierarchies))


def _find_columns(path: Path, frame: Mapping[str, list[str]]) -> dict[str, list[str]]:
    rows = len(next(iter(frame.values()), []))
    out = {}
    for content, names in _NAMES.items():
        found = next((name for name in names if name in frame), None)
        if found is None and content in ("table", "indicator"):
            hint = suggest_names(names[0], frame) or f"it is called {names[0]}."
            raise FormatError.at(path, 1, f"no column of the {content}.", hint=hint)
        out[content] = frame[found] if found is not None else [""] * rows
    return out


def _read_row(
    path: Path, i: int, columns: Mapping[str, list[str]], frame: Mapping[str, list[str]], numbers: Sequence[int]
) -> ListedTable:
    row = {content: column[i] for content, column in columns.items()}
    for content in ("table", "indicator"):
        if not row[content]:
            raise FormatError.at(path, i + 2, f"the {content} has no name.")
    spanning = []
    for k in numbers:
        variable, tree = (frame.get(f"{before}spanning_{k}", [""] * (i + 1))[i] for before in ("", "hrc_"))
        if tree and not variable:
            raise FormatError.at(path, i + 2, f"hierarchy {tree!r} of spanning_{k} has no variable.")
        if variable:
            spanning.append(Spanning(variable, tree or None))
    if not spanning:
        raise FormatError.at(path, i + 2, f"table {row['table']!r} has no spanning variable.")
    keys = [one.key for one in spanning]
    again = next((key for key in keys if keys.count(key) > 1), None)
    if again is not None:
        raise FormatError.at(path, i + 2, f"table {row['table']!r} is crossed with {again!r} twice.")
    return ListedTable(
        line=i + 2, name=row["table"], spanning=tuple(spanning),
        population=Spanning(row["population"], row["population_tree"] or None),
        indicator=Spanning(row["indicator"], row["indicator_tree"] or None),
    )  # fmt: skip


def _refuse_contradictions(path: Path, tables: Sequence[ListedTable]) -> None:
    """Refuse a variable with two hierarchies: it would be undefined which of its cells are the same."""
    seen: dict[tuple[str, str], tuple[str | None, int]] = {}
    for table in tables:
        variables = [("spanning variable", one) for one in table.spanning]
        variables += [("indicator", table.indicator), ("population", table.population)]
        for kind, one in variables:
            tree, line = seen.setdefault((kind, one.variable), (one.tree, table.line))
            if tree != one.tree:
                words = [f"hierarchy {name!r}" if name else "no hierarchy" for name in (one.tree, tree)]
                raise FormatError.at(
                    path, table.line, f"{kind} {one.variable!r} has {words[0]}, and {words[1]} in line {line}."
                )


def _find_hierarchies(path: Path, tables: Sequence[ListedTable], folder: str | Path | None) -> dict[str, Path]:
    """Return the files of the hierarchies; refuse an unknown one if a folder is given."""
    place = path.parent if folder is None else Path(folder)
    if not place.is_dir():
        raise InputError(f"{place}: no such folder.", hint="--hierarchies names the folder of the hierarchies.")
    known = {file.name.partition(".")[0]: file for file in sorted(place.iterdir()) if file.suffix in _ENDINGS}
    found = {}
    for table in tables:
        for one in (*table.spanning, table.population, table.indicator):
            if one.tree is None:
                continue
            if one.tree in known:
                found[one.tree] = known[one.tree]
            elif folder is not None:
                hint = suggest_names(one.tree, known) or f"{place} has {', '.join(known) or 'no hierarchy'}."
                raise FormatError.at(path, table.line, f"hierarchy {one.tree!r} is not known.", hint=hint)
    return found

"""Releases in formats that other systems read: SDMX-CSV and PX files; and what the office keeps of every cell.

SDMX calls the status of a cell ``CONF_STATUS`` and tells by its code why a cell is withheld. For everybody it has one
code, C; the sender's own file tells primary confidentiality by rule and secondary, and holds the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cellguard._io.files import write_lines
from cellguard._io.frames import column_as_csv_texts, columns_beside_codes
from cellguard._types import FloatArray, IntArray
from cellguard.nouns.figures import decimals_of_table_figures
from cellguard.nouns.grid import empty_cells_of_table
from cellguard.nouns.release import Release, Suppression
from cellguard.nouns.table import Table

__all__ = [
    "TableView", "conf_status_for_exchange", "internal_exchange_of_release", "sdmx_exchange_of_release",
    "tables_of_release", "write_release_as_px",
]  # fmt: skip

FREE, CONFIDENTIAL, SMALL, ONE, TWO, CONCENTRATED, SECONDARY = "F", "C", "A", "O", "T", "M", "D"
"""Codes of CL_CONF_STATUS: free; confidential; primary: small counts, dominance by one unit, by two units, other
measures of concentration; secondary confidentiality set by the sender."""
_CODES = {
    CONCENTRATED: ("dominance", "p%", "prior-posterior"),
    TWO: ("dominance (2,",),
    ONE: ("dominance (1,",),
    SMALL: ("minimum frequency",),
}
"""Codes and how the names of their rules begin; of several, the last is the plainest reason."""
NORMAL, SUPPRESSED, CANNOT_EXIST = "A", "Q", "M"
"""Codes of CL_OBS_STATUS: normal value; missing, suppressed; missing, data cannot exist."""


class TableView(NamedTuple):
    """One table of a release."""

    table: Table
    """Where its codes are."""
    dims: tuple[int, ...]
    """Its dimensions."""
    rows: IntArray
    """Its cells in the table."""
    cells: IntArray
    """Its cells in the release."""

    def codes(self) -> dict[str, list[str]]:
        """Return the codes of its cells, by dimension."""
        codes = self.table.cell_codes(self.rows)
        return {name: codes[name] for name in (self.table.dimensions[d] for d in self.dims)}


def tables_of_release(
    release: Release, name: str, views: Sequence[tuple[str, Sequence[str]]] = ()
) -> dict[str, TableView]:
    """Return the tables of a release by name; linked ones, named with their dimensions by `views`, apart."""
    table = release.table
    if table.parts:
        whole = ((part, np.arange(part.table.n_cells)) for part in table.parts)
        return {p.name: TableView(p.table, tuple(range(len(p.table.dimensions))), own, p.cells) for p, own in whole}
    out = {}
    for title, dims in views if len(views) > 1 else ((name, table.dimensions),):
        others = [d for d, own in enumerate(table.dimensions) if own not in dims]
        cells = np.flatnonzero(~table.coordinates[:, others].any(axis=1))
        out[title] = TableView(table, tuple(table.dimensions.index(d) for d in dims), cells, cells)
    return out


# ---------------------------------------------------------------- SDMX


def conf_status_for_exchange(release: Release, *, internal: bool) -> NDArray[Any]:
    """Return the CONF_STATUS of each cell; why a cell is withheld, only if `internal`."""
    table = release.table
    out = np.full(table.n_cells, FREE, dtype=object)
    if not isinstance(release, Suppression):
        return out
    out[release.suppressed] = CONFIDENTIAL
    if not internal:
        return out
    for code, rules in _CODES.items() if table.flags is not None else ():
        cells = table.flags.by(*rules)
        out[cells[release.suppressed[cells]]] = code
    out[release.secondary] = SECONDARY
    return out


def sdmx_exchange_of_release(
    release: Release, tables: Mapping[str, TableView], dataflow: str, *, internal: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the columns of an SDMX-CSV file for each table; with true values and reasons if `internal`."""
    table, values = release.table, release.point_values()
    hidden = np.isnan(values)
    shown = table.values if internal else values
    status = np.where(hidden & ~internal, SUPPRESSED, np.where(empty_cells_of_table(table), CANNOT_EXIST, NORMAL))
    conf = conf_status_for_exchange(release, internal=internal)
    out = {}
    for title, view in tables.items():
        cells = view.cells
        about = {"OBS_VALUE": shown[cells], "OBS_STATUS": status[cells], "CONF_STATUS": conf[cells].tolist()}
        flow = {"DATAFLOW": [dataflow] * len(cells)}
        out[title] = columns_beside_codes(flow | view.codes(), about)
    return out


# ---------------------------------------------------------------- PX


def write_release_as_px(release: Release, view: TableView, path: Path, *, title: str) -> None:
    """Write one table of a release as a PX file: the last dimension is the heading, the others are the stub."""
    values = release.point_values()[view.cells]
    write_lines(path, _lines_of_px_exchange(view, values, title))


def _lines_of_px_exchange(view: TableView, values: FloatArray, title: str) -> Iterator[str]:
    table = view.table
    dims = [_quoted_for_exchange(table.dimensions[d]) for d in view.dims]
    digits = decimals_of_table_figures(values)
    yield 'CHARSET="ANSI";\nAXIS-VERSION="2013";\nCODEPAGE="utf-8";\nLANGUAGE="en";'
    yield f"DECIMALS={digits};\nSHOWDECIMALS={min(digits, 6)};"
    yield f'MATRIX={_quoted_for_exchange(table.name[:20])};\nSUBJECT-CODE="";\nSUBJECT-AREA="";'
    yield f'TITLE={_quoted_for_exchange(title)};\nCONTENTS={_quoted_for_exchange(title)};\nUNITS="";'
    if dims[:-1]:
        yield f"STUB={','.join(dims[:-1])};"
    yield f"HEADING={dims[-1]};"
    for d, name in zip(view.dims, dims, strict=True):
        labels = table.hierarchies[d].labels if table.hierarchies else table.codes[d]
        yield f"VALUES({name})={_list_quoted_for_exchange(labels)};"
        yield f"CODES({name})={_list_quoted_for_exchange(table.codes[d])};"
    yield 'DATASYMBOL1="not published";\nDATASYMBOL2="x";\nDATASYMBOLNIL="-";\nNOTE="x: withheld; -: no contributors.";'
    yield "DATA="
    grid = np.full([len(table.codes[d]) for d in view.dims], '"."', dtype=object)
    texts = [text or '".."' for text in column_as_csv_texts(values)]
    empty = empty_cells_of_table(table)[view.rows] & (values == 0)
    texts = ['"-"' if nothing else text for text, nothing in zip(texts, empty.tolist(), strict=True)]
    grid[tuple(table.coordinates[view.rows][:, list(view.dims)].T)] = np.array(texts, dtype=object)
    rows = grid.reshape(-1, grid.shape[-1])
    yield " \n".join(" ".join(row) for row in rows.tolist()) + " ;"


def _quoted_for_exchange(text: str) -> str:
    clean = "".join(" " if c < " " else "'" if c == '"' else c for c in text)
    return f'"{clean}"'


def _list_quoted_for_exchange(texts: Sequence[str]) -> str:
    return ",".join(_quoted_for_exchange(text) for text in texts)


# ---------------------------------------------------------------- what the office keeps


def internal_exchange_of_release(release: Release, protects: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """Return every cell with its true value, what is published, which rules flag it, and whom it protects.

    `protects` has the sensitive cells that each secondary one protects.
    """
    table = release.table
    reasons = ["; ".join(table.reasons(i)) if table.sensitive[i] else "" for i in range(table.n_cells)]
    columns: dict[str, Any] = {"true_value": table.values, **release.columns(mark_primary=True)}
    if table.counts is not None:
        columns["contributors"] = table.counts
    columns |= {"rules": reasons, "CONF_STATUS": conf_status_for_exchange(release, internal=True).tolist()}
    if isinstance(release, Suppression):
        columns["protects"] = _protected_cells_in_exchange(release.table, protects)
    return columns_beside_codes(table.cell_codes(), columns)


_NAMED = 5
"""So many sensitive cells are named; of more, their number is told."""


def _protected_cells_in_exchange(table: Table, protects: Mapping[int, Sequence[int]]) -> list[str]:
    out = [""] * table.n_cells
    for secondary, cells in protects.items():
        names = [table.label(cell) for cell in cells[:_NAMED]]
        more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
        out[secondary] = "; ".join(names) + more
    return out

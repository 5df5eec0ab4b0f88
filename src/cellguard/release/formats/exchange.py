"""Write releases in exchange formats, SDMX-CSV and PX files, and the office's own record of every cell.

SDMX calls the status of a cell ``CONF_STATUS``; its code says why a cell is withheld. Public files use only
code C. The sender's own file distinguishes primary (by rule) and secondary confidentiality, and holds the values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cellguard._io.files import write_lines
from cellguard._io.frames import format_csv_column, merge_codes_and_columns
from cellguard._types import FloatArray, IntArray
from cellguard.model.table import Table
from cellguard.release.figures import choose_decimals
from cellguard.release.grid import find_empty_cells
from cellguard.release.release import Release, order_cells

__all__ = [
    "TableView",
    "build_internal_columns",
    "build_sdmx_columns",
    "compute_conf_status",
    "list_release_tables",
    "write_release_as_px",
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
"""Codes, and the beginning of their rules' names; if several match, the last is the most specific reason."""
NORMAL, SUPPRESSED, CANNOT_EXIST = "A", "Q", "M"
"""Codes of CL_OBS_STATUS: normal value; missing, suppressed; missing, data cannot exist."""


class TableView(NamedTuple):
    """One table of a release."""

    table: Table
    """The table that has its codes."""
    dims: tuple[int, ...]
    """Its dimensions."""
    rows: IntArray
    """Indices of its cells in the table."""
    cells: IntArray
    """Indices of its cells in the release."""

    def list_codes(self) -> dict[str, list[str]]:
        """Return the codes of its cells, by dimension."""
        codes = self.table.cell_codes(self.rows)
        return {name: codes[name] for name in (self.table.dimensions[d] for d in self.dims)}


def list_release_tables(
    release: Release,
    name: str,
    views: Sequence[tuple[str, Sequence[str]]] = (),
    *,
    row_order: str = "canonical",
) -> dict[str, TableView]:
    """Return the tables of a release by name; linked ones, given by `views` with their dimensions, separately."""
    table = release.table
    if table.parts:
        whole = ((part, order_cells(part.table, row_order)) for part in table.parts)
        return {
            p.name: TableView(p.table, tuple(range(len(p.table.dimensions))), own, p.cells[own]) for p, own in whole
        }
    order = order_cells(table, row_order)
    out = {}
    for title, dims in views if len(views) > 1 else ((name, table.dimensions),):
        others = [d for d, own in enumerate(table.dimensions) if own not in dims]
        cells = order[~table.coordinates[order][:, others].any(axis=1)]
        out[title] = TableView(table, tuple(table.dimensions.index(d) for d in dims), cells, cells)
    return out


# ---------------------------------------------------------------- SDMX


def compute_conf_status(release: Release, *, internal: bool) -> NDArray[Any]:
    """Return the CONF_STATUS of each cell; include why a cell is withheld only if `internal`."""
    table = release.table
    out = np.full(table.n_cells, FREE, dtype=object)
    withheld = release.withheld
    out[withheld] = CONFIDENTIAL
    if not internal:
        return out
    for code, rules in _CODES.items() if table.flags is not None else ():
        cells = table.flags.find_flagged_by(*rules)
        out[cells[withheld[cells]]] = code
    out[release.secondary] = SECONDARY
    return out


def build_sdmx_columns(
    release: Release, tables: Mapping[str, TableView], dataflow: str, *, internal: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the columns of an SDMX-CSV file for each table; include true values and reasons only if `internal`."""
    table, values = release.table, release.get_point_values()
    hidden = np.isnan(values)
    shown = table.values if internal else values
    status = np.where(hidden & ~internal, SUPPRESSED, np.where(find_empty_cells(table), CANNOT_EXIST, NORMAL))
    conf = compute_conf_status(release, internal=internal)
    out = {}
    for title, view in tables.items():
        cells = view.cells
        about = {"OBS_VALUE": shown[cells], "OBS_STATUS": status[cells], "CONF_STATUS": conf[cells].tolist()}
        flow = {"DATAFLOW": [dataflow] * len(cells)}
        out[title] = merge_codes_and_columns(flow | view.list_codes(), about)
    return out


# ---------------------------------------------------------------- PX


def write_release_as_px(release: Release, view: TableView, path: Path, *, title: str) -> None:
    """Write one table of a release as a PX file: the last dimension is the heading, the others are the stub."""
    values = release.get_point_values()[view.cells]
    write_lines(path, _format_px_lines(view, values, title))


def _format_px_lines(view: TableView, values: FloatArray, title: str) -> Iterator[str]:
    table = view.table
    dims = [_quote_px_text(table.dimensions[d]) for d in view.dims]
    digits = choose_decimals(values)
    yield 'CHARSET="ANSI";\nAXIS-VERSION="2013";\nCODEPAGE="utf-8";\nLANGUAGE="en";'
    yield f"DECIMALS={digits};\nSHOWDECIMALS={min(digits, 6)};"
    yield f'MATRIX={_quote_px_text(table.name[:20])};\nSUBJECT-CODE="";\nSUBJECT-AREA="";'
    yield f'TITLE={_quote_px_text(title)};\nCONTENTS={_quote_px_text(title)};\nUNITS="";'
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
    texts = [text or '".."' for text in format_csv_column(values)]
    empty = find_empty_cells(table)[view.rows] & (values == 0)
    texts = ['"-"' if nothing else text for text, nothing in zip(texts, empty.tolist(), strict=True)]
    grid[tuple(table.coordinates[view.rows][:, list(view.dims)].T)] = np.array(texts, dtype=object)
    rows = grid.reshape(-1, grid.shape[-1])
    yield " \n".join(" ".join(row) for row in rows.tolist()) + " ;"


def _quote_px_text(text: str) -> str:
    clean = "".join(" " if c < " " else "'" if c == '"' else c for c in text)
    return f'"{clean}"'


def _list_quoted_for_exchange(texts: Sequence[str]) -> str:
    return ",".join(_quote_px_text(text) for text in texts)


# ---------------------------------------------------------------- what the office keeps


def build_internal_columns(release: Release, protects: Mapping[int, Sequence[int]]) -> dict[str, Any]:
    """Return every cell with its true value, its published value, the rules that flag it, and the cells it protects.

    `protects` lists the sensitive cells that each secondary suppression protects.
    """
    table = release.table
    reasons = ["; ".join(table.reasons(i)) if table.sensitive[i] else "" for i in range(table.n_cells)]
    columns: dict[str, Any] = {"true_value": table.values, **release.columns(mark_primary=True)}
    if table.counts is not None:
        columns["contributors"] = table.counts
    columns |= {"rules": reasons, "CONF_STATUS": compute_conf_status(release, internal=True).tolist()}
    if release.withholds_cells:
        columns["protects"] = _name_protected_cells(release.table, protects)
    return merge_codes_and_columns(table.cell_codes(), columns)


_NAMED = 5
"""Maximum number of sensitive cells to name; the others are counted."""


def _name_protected_cells(table: Table, protects: Mapping[int, Sequence[int]]) -> list[str]:
    out = [""] * table.n_cells
    for secondary, cells in protects.items():
        names = [table.label(cell) for cell in cells[:_NAMED]]
        more = f" and {len(cells) - _NAMED} more" if len(cells) > _NAMED else ""
        out[secondary] = "; ".join(names) + more
    return out

"""``<WRITETABLE>``: write the output formats of tau-ARGUS.

If a batch requests the status of each cell (AS+), tau-ARGUS writes the values of withheld cells
too; so do the intermediate and the JJ format. Such files are for internal use: only their owner may
read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

import numpy as np

from cellguard._io.files import write_lines
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.argus.formats.data import write_argus_columns
from cellguard.argus.formats.lists import write_argus_hrc_file
from cellguard.argus.formats.rda import Metadata, Variable, write_rda
from cellguard.argus.microdata import Made
from cellguard.model.table import Table
from cellguard.release.release import Release

__all__ = ["compute_status_letters", "is_internal_batch_output", "write_batch_output"]

CSV, PIVOT, CODE_VALUE, SBS, INTERMEDIATE, JJ = range(1, 7)
_STATUS = {"safe": 1, "rule": 3, "request": 4, "frequency": 5, "zero": 6, "manual": 9, "protected": 10}
_STATUS |= {"secondary": 11, "empty": 14}
"""Statuses of a cell in tau-ARGUS."""
_RULES = {
    "zero": ("zero",),
    "frequency": ("minimum frequency",),
    "request": ("request",),
    "rule": ("p%", "dominance", "prior-posterior"),
}
"""Prefixes of the names of its rules; earlier rules take precedence."""
_ENDINGS = {"round": "_Round", "adjust": "_CTA"}
"""Suffix that tau-ARGUS adds to the name of the variable, by method."""


def _compute_status_numbers(made: Made, release: Release | None) -> IntArray:
    """Return the tau-ARGUS status number of each cell."""
    table = made.table
    out = np.full(table.n_cells, _STATUS["safe"])
    out[table.fixed] = _STATUS["protected"]
    if table.counts is not None:
        out[table.counts == 0] = _STATUS["empty"]
    out[table.sensitive] = _STATUS["manual"]
    for kind, rules in _RULES.items() if table.flags is not None else ():
        cells = table.flags.find_flagged_by(*rules)
        out[cells[table.sensitive[cells]]] = _STATUS[kind]
    if release is not None:
        out[release.secondary] = _STATUS["secondary"]
    return out


def compute_status_letters(made: Made, release: Release | None) -> list[str]:
    """Return the status of each cell as a letter: s safe, u primary, x secondary, z empty or protected."""
    number = _compute_status_numbers(made, release)
    out = np.where((number >= _STATUS["rule"]) & (number <= _STATUS["manual"]), "u", "s")
    out = np.where(number == _STATUS["secondary"], "x", out)
    fixed = (number == _STATUS["empty"]) | (number == _STATUS["protected"])
    return [str(letter) for letter in np.where(fixed, "z", out)]


def _compute_business_letters(made: Made, release: Release | None) -> list[str]:
    """Return the status of each cell as a letter of structural business statistics.

    V is published, A withheld for too few contributors, B by a rule about one contributor (or by hand), C by one about
    several, D to protect others.
    """
    number = _compute_status_numbers(made, release)
    out = np.full(made.table.n_cells, "V", dtype=object)
    out[(number >= _STATUS["rule"]) & (number <= _STATUS["manual"])] = "B"
    out[_find_coalition_cells(made.table) & (number == _STATUS["rule"])] = "C"
    out[number == _STATUS["frequency"]] = "A"
    out[number == _STATUS["secondary"]] = "D"
    return [str(letter) for letter in out]


def _find_coalition_cells(table: Table) -> BoolArray:
    """Return the cells flagged only by a rule about several contributors together, such as dominance of two."""
    out = np.zeros(table.n_cells, bool)
    if table.flags is not None:
        out[table.flags.find_flagged_by("dominance")] = True
        out[table.flags.find_flagged_by("dominance (1,", "p%", "prior-posterior")] = False
    return out


def is_internal_batch_output(form: int, options: Mapping[str, bool]) -> bool:
    """Return whether a file contains true values of cells that are not published."""
    return form in (SBS, INTERMEDIATE, JJ) or (form in (PIVOT, CODE_VALUE) and options.get("AS", False))


def write_batch_output(
    path: Path, form: int, options: Mapping[str, bool], made: Made, release: Release | None
) -> list[Path]:
    """Write a table in one of the formats and return the files; only the owner can read an internal file."""
    files = [path]
    if form == JJ:
        made.table.write(path)
    elif form == INTERMEDIATE:
        files += _write_intermediate_of_batch(path, options, made, release)
    elif form == SBS:
        write_lines(path, _format_business_lines(made, release, options))
    elif form == CSV:
        write_lines(path, _format_matrix(made, release, options))
    else:
        write_lines(path, _format_cell_lines(made, release, options, form))
    if is_internal_batch_output(form, options):
        for file in files:
            file.chmod(0o600)
    return files


def _format_cells(made: Made, release: Release | None) -> list[str]:
    """Return the published text of each cell: a number, x if it is withheld, - if it is empty."""
    values = made.table.values if release is None else release.get_point_values()
    empty = _compute_status_numbers(made, release) == _STATUS["empty"]
    return [
        "-" if nothing else "x" if np.isnan(value) else f"{value:.{made.decimals}f}"
        for value, nothing in zip(values.tolist(), empty.tolist(), strict=True)
    ]


def _format_codes(made: Made) -> list[list[str]]:
    """Return the codes of each dimension in their written form."""
    return [[d.format_code(code) for code in d.hierarchy.codes] for d in made.dimensions]


def _format_cell_lines(made: Made, release: Release | None, options: Mapping[str, bool], form: int) -> Iterator[str]:
    """Return a line per cell: codes, value, and the requested extra columns."""
    quote = '"' if options.get("QU", True) else ""
    with_status = options.get("AS", False)
    name = made.response.name if made.response is not None else "Freq"
    ending = "" if release is None else _ENDINGS.get(release.method, "")
    changed = bool(ending)
    if options.get("FL", form == PIVOT):
        heads = [*(d.variable.name for d in made.dimensions)]
        heads.append(name + ending)
        heads += [f"{name}_Orig"] if with_status and changed else ["Status"] if with_status else []
        yield ",".join(f"{quote}{head}{quote}" for head in heads)
    codes, table = _format_codes(made), made.table
    status = _compute_status_numbers(made, release).tolist()
    shown, truth = _format_cells(made, release), _format_cells(made, None)
    for cell, place in enumerate(table.coordinates.tolist()):
        if options.get("SE", False) and status[cell] == _STATUS["empty"]:
            continue
        fields = [f"{quote}{codes[d][i]}{quote}" for d, i in enumerate(place)]
        if not with_status:
            fields.append(shown[cell])
        elif changed:
            fields += [shown[cell], truth[cell]]
        else:
            fields += [truth[cell], str(status[cell])]
        yield ",".join(fields)


def _format_business_lines(made: Made, release: Release | None, options: Mapping[str, bool]) -> Iterator[str]:
    """Return a line per cell that is not empty: codes, value, contributors, status, share of the largest in per cent.

    There is no header line; true values appear beside the status, as the receiving office requires.
    """
    quote = '"' if options.get("QU", True) else ""
    codes, table, status = _format_codes(made), made.table, _compute_business_letters(made, release)
    truth = _format_cells(made, None)
    top = getattr(table.statistics, "top", None)
    largest = np.zeros(table.n_cells) if top is None or not top.shape[1] else np.nan_to_num(top[:, 0])
    share = 100.0 * largest / np.where(table.values != 0, np.abs(table.values), np.inf)
    counts = np.full(table.n_cells, "", dtype=object) if table.counts is None else table.counts.astype(int).astype(str)
    for cell, place in enumerate(table.coordinates.tolist()):
        if truth[cell] != "-":
            fields = [f"{quote}{codes[d][i]}{quote}" for d, i in enumerate(place)]
            yield ",".join(
                [*fields, truth[cell], str(counts[cell]), f"{quote}{status[cell]}{quote}", f"{share[cell]:.1f}"]
            )


def _format_matrix(made: Made, release: Release | None, options: Mapping[str, bool]) -> Iterator[str]:
    """Return rows and columns: the last dimension across, the one before down, one block per other code."""
    quote = '"' if options.get("QU", True) else ""
    codes, shown = _format_codes(made), _format_cells(made, release)
    at = {tuple(place): cell for cell, place in enumerate(made.table.coordinates.tolist())}
    names = [d.variable.name for d in made.dimensions]
    if len(codes) == 1:
        for i, code in enumerate(codes[0]):
            yield f"{quote}{code}{quote},{shown[at[(i,)]]}"
        return
    for block in product(*(range(len(c)) for c in codes[:-2])):
        if block:
            yield ",".join(f"{quote}{names[d]}: {codes[d][i].strip()}{quote}" for d, i in enumerate(block))
        yield ",".join(["", *(f"{quote}{code}{quote}" for code in codes[-1])])
        for row, code in enumerate(codes[-2]):
            cells = (at[(*block, row, column)] for column in range(len(codes[-1])))
            yield ",".join([f"{quote}{code}{quote}", *(shown[cell] for cell in cells)])


# ---------------------------------------------------------------- intermediate: a ready table again


def _write_intermediate_of_batch(
    path: Path, options: Mapping[str, bool], made: Made, release: Release | None
) -> list[Path]:
    """Write the cells with all their attributes, and the metadata and hierarchies beside them."""
    table = made.table
    marks = {"s": "S", "u": "U", "x": "M", "z": "P"}
    status = [marks[letter] for letter in compute_status_letters(made, release)]
    response = made.response.name if made.response is not None else "Freq"
    columns: dict[str, list[str]] = {}
    variables: list[Variable] = []

    def add(variable: Variable, texts: list[str]) -> None:
        variables.append(variable)
        columns[variable.name] = texts

    def format_numbers(x: FloatArray) -> list[str]:
        return [repr(v) if not float(v).is_integer() else str(int(v)) for v in x.tolist()]

    files = [path.with_suffix(".rda")]
    for d, dimension in enumerate(made.dimensions):
        codes = dimension.hierarchy.codes
        file = path.with_name(f"{path.stem}_{dimension.variable.name}.hrc")
        depth = dimension.hierarchy.depth
        write_argus_hrc_file(file, [(int(depth[i]) - 1, code) for i, code in enumerate(codes) if i])
        files.append(file)
        described = Variable(
            name=dimension.variable.name, recodable=True, total_code=codes[0], hierarchical=True, hierarchy=file.name
        )
        add(described, [codes[i] for i in table.coordinates[:, d].tolist()])
    add(Variable(name=response, numeric=True, decimals=made.decimals), format_numbers(table.values))
    if not options.get("SO", False):
        if table.counts is not None:
            add(Variable(name=f"{response}_count", role="frequency"), format_numbers(table.counts))
        add(Variable(name=f"{response}_cost", numeric=True, role="cost"), format_numbers(table.weights))
        for k in range(table.statistics.top.shape[1] if table.statistics is not None else 0):
            add(Variable(name=f"{response}_top{k + 1}", role="top"), format_numbers(table.statistics.top[:, k]))
    add(Variable(name="status", role="status"), status)
    if not options.get("SO", False):
        add(Variable(name="lower", numeric=True, role="lower"), format_numbers(table.lower))
        add(Variable(name="upper", numeric=True, role="upper"), format_numbers(table.upper))
    metadata = Metadata(variables=tuple(variables), separator=";")
    write_argus_columns(path, metadata, columns)
    write_rda(files[0], metadata)
    return files

"""Propose a publication from several files: shared columns, totals, hierarchies by inclusion of codes.

Each file is a ready table, or says how codes nest (a correspondence table: one column per level).
Every guess is visible: the proposal is assembled once, and the job file lists what does not fit or is unknown.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.frames import convert_to_numbers, encode_frame_column, read_frame
from cellguard._io.toml import format_value
from cellguard.exceptions import CellguardError, InputError
from cellguard.jobs.definition.check import check_job
from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.proposal.guess import COUNTS, LARGEST, split_name
from cellguard.jobs.proposal.records import Draft, are_records, propose_job
from cellguard.jobs.proposal.text import Proposed, ProposedDimension, format_job
from cellguard.jobs.tables import tabulate_job
from cellguard.model.linked.lookalikes import Lookalike, find_lookalikes
from cellguard.model.linked.publication import Publication
from cellguard.model.trees import sort_codes
from cellguard.tabulation.template import find_total, is_template_period

__all__ = ["propose"]

_ENOUGH = 0.8
"""A file describes how the codes of a column nest if it has this share of them."""
_ALIKE = 0.6
"""Columns of two files are one dimension if they have this share of the shorter one's codes in common."""
_BESIDE = 1 << 20
"""Size limit of a correspondence table in bytes."""


def propose(paths: Sequence[Path], folder: Path) -> Draft:
    """Return a commented job for the publication of several tables, to be saved in a folder."""
    read = [_read_columns(path) for path in paths]
    tables = [one for one in read if not _is_correspondence(one)]
    levels = [one for one in read if _is_correspondence(one)]
    if not tables:
        raise InputError("none of the files is a table of cells.", hint="a table has a column of numbers.")
    if len(tables) == 1 and levels and are_records(tables[0].path):
        return propose_job(tables[0].path, folder, [one.path for one in levels])
    told: list[str] = []
    open_: list[str] = []
    for one in tables:
        _propose_roles_of_columns(one, told, open_)
    levels += _find_correspondences(paths)
    dimensions = _link_dimensions(tables, told)
    for dimension in dimensions:
        _propose_hierarchy(dimension, tables, levels, folder, told, open_)
    text = format_job(tables, dimensions, folder, open_)
    wrong, alike = _check_proposal(text, folder)
    told += [f"does not fit: {mistake}" for mistake in wrong] + [one.text for one in alike]
    if wrong or alike:
        open_ += [f"{one.what} {one.names[0]} and {one.names[1]}" for one in alike] + ["publication"] * bool(wrong)
        remarks = _format_remarks("What does not fit yet", wrong)
        remarks += _format_remarks("What looks alike and is not linked", [one.text for one in alike])
        text = format_job(tables, dimensions, folder, open_, remarks)
    return Draft(text, tuple(told), tuple(dict.fromkeys(open_)))


def _format_remarks(title: str, texts: Sequence[str]) -> str:
    """Return texts as comments of a job under a title; nothing if there are none."""
    lines = "".join(f"#   {line}\n" for text in texts for line in text.splitlines())
    return f"# {title}:\n{lines}" if lines else ""


# ---------------------------------------------------------------- looking at files


def _read_columns(path: Path) -> Proposed:
    """Read a file; a column with any entry that is not a number holds codes."""
    frame = read_frame(path)
    out = Proposed(path=path, codes={}, figures={}, rows=len(next(iter(frame.values()))) if frame else 0)
    for name, column in frame.items():
        seen = [code for code in encode_frame_column(column)[0] if code]
        if is_template_period(name) and len(seen) == 1:
            out.period = f"{name} {seen[0]}"
            continue
        try:
            found = convert_to_numbers(column, name)
            padded = any(len(code) > 1 and code[0] == "0" and code.isdigit() for code in seen)
            codes = padded or not len(found) or bool(np.isnan(found).all())
        except InputError:
            codes = True
        if codes:
            out.codes[name] = seen
            total = find_total(seen, letter=True)
            total = total or next((c for c in seen if c.lower().startswith("total")), None)
            if total is not None:
                out.totals[name] = total
        else:
            out.figures[name] = found
    return out


def _is_correspondence(file: Proposed) -> bool:
    """Return whether a file describes how codes nest: no totals, and each code has one code in the column before."""
    if file.totals or len(file.codes) + len(file.figures) < 2 or (file.figures and not file.codes):
        return False
    if any(not np.array_equal(x, np.round(x)) for x in file.figures.values()):
        return False
    frame = read_frame(file.path)
    index = [encode_frame_column(frame[name])[1] for name in frame]
    sizes = [len(np.unique(i)) for i in index]
    if sizes != sorted(sizes) or sizes[-1] != file.rows:
        return False
    return all(
        len(np.unique(np.column_stack([fine, coarse]), axis=0)) == len(np.unique(fine))
        for coarse, fine in pairwise(index)
    )


def _find_correspondences(paths: Sequence[Path]) -> list[Proposed]:
    """Return the correspondence tables beside the files."""
    out = []
    for path in sorted(paths[0].parent.glob("*.csv")):
        if path in paths or path.stat().st_size > _BESIDE:
            continue
        try:
            found = _read_columns(path)
            if _is_correspondence(found):
                out.append(found)
        except CellguardError:
            continue  # not a correspondence table
    return out


def _propose_roles_of_columns(file: Proposed, told: list[str], open_: list[str]) -> None:
    """Distinguish values, counts and largest contributions, by name and by size."""
    name = file.path.name
    figures = dict(file.figures)
    file.count = next((c for c in figures if "".join(split_name(c)) in COUNTS and _are_counts(figures[c])), None)
    file.top = [c for c in figures if any(word in c.lower() for word in LARGEST) and c != file.count]
    file.value = [c for c in figures if c != file.count and c not in file.top]
    if not file.value and file.count is not None:
        file.value = [file.count]
    if not file.value or not file.codes:
        raise InputError(f"{name}: there is no column of {'numbers' if file.codes else 'codes'}.")
    told.append(
        f"{name}: {', '.join(file.codes)} are dimensions, {', '.join(file.value)} the value"
        + (f", {file.count} the number of contributors" if file.count else "")
        + (f", {', '.join(file.top)} the largest contributions" if file.top else "")
        + (f"; {file.period}" if file.period else "")
    )
    if file.count is None:
        told.append(f"{name}: no column tells how many contributors a cell has: rules cannot look at it.")
        open_.append(f"contributors of {name}")
    told += [
        f"{name}: {column} has no code for the total; it is added up, called Total."
        for column in file.codes
        if column not in file.totals
    ]


def _are_counts(figures: Any) -> bool:
    return bool(np.array_equal(figures, np.round(figures)) and (figures >= 0).all())


# ---------------------------------------------------------------- what belongs together


def _link_dimensions(tables: Sequence[Proposed], told: list[str]) -> list[ProposedDimension]:
    """Link columns of the same name, and columns that share most of their codes."""
    out: list[ProposedDimension] = []
    for k, table in enumerate(tables):
        for column, codes in table.codes.items():
            own = set(codes) - {table.totals.get(column)}
            same = next((d for d in out if d.name == column), None)
            if same is None:
                near = (d for d in out if k not in d.columns)
                same = next(
                    (d for d in near if len(own & set(d.codes)) >= _ALIKE * min(len(own), len(d.codes)) > 0), None
                )
                if same is not None:
                    told.append(f"{table.path.name}: {column} has the codes of {same.name}: taken for the same.")
            if same is None:
                same = ProposedDimension(name=column, total=table.totals.get(column, "Total"))
                out.append(same)
            same.columns[k] = column
            same.codes |= dict.fromkeys(c for c in codes if c in own)
    return out


def _propose_hierarchy(
    dimension: ProposedDimension,
    tables: Sequence[Proposed],
    levels: Sequence[Proposed],
    folder: Path,
    told: list[str],
    open_: list[str],
) -> None:
    """Find how the codes of a dimension nest: by a file that includes them, or by how they begin."""
    codes = set(dimension.codes)
    best, share = None, 0.0
    for one in levels:
        listed = {c for column in one.codes.values() for c in column}
        listed |= {str(int(x)) for column in one.figures.values() for x in column}
        if len(codes & listed) > share * len(codes):
            best, share = one, len(codes & listed) / len(codes)
    if best is not None and share >= _ENOUGH:
        columns = ", ".join(format_value(name) for name in read_frame(best.path))
        dimension.lines = [f"hierarchy = {format_value(os.path.relpath(best.path, folder))}", f"levels = [{columns}]"]
        told.append(f"{dimension.name}: {best.path.name} says how {share:.0%} of its codes nest.")
        return
    nested = _derive_prefix_tree(sort_codes(dimension.codes))
    if nested is not None:
        dimension.lines = [f"hierarchy = {nested}    # codes that begin like others are below them"]
        told.append(f"{dimension.name}: codes that begin like others are below them.")
        open_.append(f"hierarchy of {dimension.name}")
        return
    if _check_codes_add_up(dimension, tables) is False:
        told.append(f"{dimension.name}: its codes do not simply add up to the total, and no file says how they nest.")
        open_.append(f"hierarchy of {dimension.name}")
        dimension.lines = ['# hierarchy = "codes.hrc"    # how its codes add up is unknown']


def _derive_prefix_tree(codes: Iterable[str]) -> str | None:
    """Return the tree of codes by their common beginnings, as TOML; None if most codes do not begin like another."""
    listed = list(codes)
    known = set(listed)
    above = {c: next((c[:k] for k in range(len(c) - 1, 0, -1) if c[:k] in known), None) for c in listed}
    if sum(up is not None for up in above.values()) < 0.5 * len(listed):
        return None
    below: dict[str | None, list[str]] = {}
    for code, up in above.items():
        below.setdefault(up, []).append(code)

    def build_branch(code: str) -> Any:
        kids = below.get(code, [])
        return {kid: build_branch(kid) for kid in kids} if not kids or any(kid in below for kid in kids) else kids

    return format_value({code: build_branch(code) for code in below[None]})


def _check_codes_add_up(dimension: ProposedDimension, tables: Sequence[Proposed]) -> bool | None:
    """Return whether the codes of a dimension add up to its total with all others at theirs; None if unknown."""
    for k, column in dimension.columns.items():
        table = tables[k]
        if column not in table.totals:
            continue
        frame = read_frame(table.path)
        at = np.ones(table.rows, bool)
        for other, total in table.totals.items():
            if other != column:
                seen, index = encode_frame_column(frame[other])
                at &= index == seen.index(total)
        seen, index = encode_frame_column(frame[column])
        top = at & (index == seen.index(table.totals[column]))
        value = convert_to_numbers(frame[table.value[0]], table.value[0])
        if top.any():
            return bool(np.isclose(value[at & ~top].sum(), value[top][0], rtol=1e-6))
    return None


def _check_proposal(text: str, folder: Path) -> tuple[list[str], list[Lookalike]]:
    """Assemble the proposal once; return what does not fit, and names that look alike and are not linked."""
    job = Job.model_validate(tomllib.loads(text))
    file = JobFile(path=folder / "job.toml", text=text, job=job)
    wrong = [mistake.text for mistake in check_job(job, folder, file.facts)]
    if wrong:
        return wrong, []
    try:
        parts = tabulate_job(file)
        alike = find_lookalikes(Publication.of(parts, tolerance=job.tolerance).table) if isinstance(parts, list) else []
    except CellguardError as error:
        return list(getattr(error, "mistakes", ())) or [error.message], []
    return [], alike

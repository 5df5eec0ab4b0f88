"""A publication from several files: shared columns, totals, hierarchies by inclusion of codes; what could not be told.

Each file is a table that is already added up, or says how codes nest (a correspondence table: a column per level).
Nothing is guessed in silence: the proposal is assembled once, and what does not fit stands in the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.frames import column_as_numbers, encode_frame_column, read_frame
from cellguard._io.toml import toml_value
from cellguard.data.template import is_template_period, total_among
from cellguard.exceptions import CellguardError, InputError
from cellguard.nouns.lookalikes import Lookalike, lookalikes
from cellguard.nouns.publication import Publication
from cellguard.publish.check import check_job
from cellguard.publish.guess import COUNTS, LARGEST, words_to_guess_by
from cellguard.publish.init import Draft
from cellguard.publish.model import Job
from cellguard.publish.proposal_text import Proposed, ProposedDimension, job_text
from cellguard.publish.read import JobFile
from cellguard.publish.tables import tabulated_by_job

__all__ = ["propose"]

_ENOUGH = 0.8
"""A file says how the codes of a column nest when it has this share of them."""
_ALIKE = 0.6
"""Columns of two files are one dimension when they share this share of the shorter one's codes."""
_BESIDE = 1 << 20
"""Files beside the tables that are larger than this are no correspondence tables."""


def propose(paths: Sequence[Path], folder: Path) -> Draft:
    """Return a commented job for the publication of several tables, to be saved in a folder."""
    read = [_columns_of_proposed_file(path) for path in paths]
    tables = [one for one in read if not _proposed_as_correspondence(one)]
    levels = [one for one in read if _proposed_as_correspondence(one)]
    if not tables:
        raise InputError("none of the files is a table of cells.", hint="a table has a column of numbers.")
    told: list[str] = []
    open_: list[str] = []
    for one in tables:
        _propose_roles_of_columns(one, told, open_)
    levels += _correspondences_beside_proposed(paths)
    dimensions = _proposed_dimensions(tables, told)
    for dimension in dimensions:
        _propose_hierarchy(dimension, tables, levels, folder, told, open_)
    text = job_text(tables, dimensions, folder, open_)
    wrong, alike = _mistakes_in_proposal(text, folder)
    told += [f"does not fit: {mistake}" for mistake in wrong] + [one.text for one in alike]
    if wrong or alike:
        open_ += [f"{one.what} {one.names[0]} and {one.names[1]}" for one in alike] + ["publication"] * bool(wrong)
        remarks = _remarks_of_proposal("What does not fit yet", wrong)
        remarks += _remarks_of_proposal("What looks alike and is not linked", [one.text for one in alike])
        text = job_text(tables, dimensions, folder, open_, remarks)
    return Draft(text, tuple(told), tuple(dict.fromkeys(open_)))


def _remarks_of_proposal(title: str, texts: Sequence[str]) -> str:
    """Return texts as remarks of a job under a title; nothing where there are none."""
    lines = "".join(f"#   {line}\n" for text in texts for line in text.splitlines())
    return f"# {title}:\n{lines}" if lines else ""


# ---------------------------------------------------------------- looking at files


def _columns_of_proposed_file(path: Path) -> Proposed:
    """Read a file; a column with anything that is no number holds codes."""
    frame = read_frame(path)
    out = Proposed(path=path, codes={}, figures={}, rows=len(next(iter(frame.values()))) if frame else 0)
    for name, column in frame.items():
        seen = [code for code in encode_frame_column(column)[0] if code]
        if is_template_period(name) and len(seen) == 1:
            out.period = f"{name} {seen[0]}"
            continue
        try:
            found = column_as_numbers(column, name)
            padded = any(len(code) > 1 and code[0] == "0" and code.isdigit() for code in seen)
            codes = padded or not len(found) or bool(np.isnan(found).all())
        except InputError:
            codes = True
        if codes:
            out.codes[name] = seen
            total = total_among(seen, letter=True)
            total = total or next((c for c in seen if c.lower().startswith("total")), None)
            if total is not None:
                out.totals[name] = total
        else:
            out.figures[name] = found
    return out


def _proposed_as_correspondence(file: Proposed) -> bool:
    """Say whether a file tells how codes nest: no totals, and each code of a column has one code in the one before."""
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


def _correspondences_beside_proposed(paths: Sequence[Path]) -> list[Proposed]:
    """Return correspondence tables that lie beside the files."""
    out = []
    for path in sorted(paths[0].parent.glob("*.csv")):
        if path in paths or path.stat().st_size > _BESIDE:
            continue
        try:
            found = _columns_of_proposed_file(path)
            if _proposed_as_correspondence(found):
                out.append(found)
        except CellguardError:
            continue  # whatever it is, it is none
    return out


def _propose_roles_of_columns(file: Proposed, told: list[str], open_: list[str]) -> None:
    """Tell values, counts and largest contributions apart, by name and by size."""
    name = file.path.name
    figures = dict(file.figures)
    file.count = next(
        (c for c in figures if "".join(words_to_guess_by(c)) in COUNTS and _proposed_as_counts(figures[c])), None
    )
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


def _proposed_as_counts(figures: Any) -> bool:
    return bool(np.array_equal(figures, np.round(figures)) and (figures >= 0).all())


# ---------------------------------------------------------------- what belongs together


def _proposed_dimensions(tables: Sequence[Proposed], told: list[str]) -> list[ProposedDimension]:
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
        columns = ", ".join(toml_value(name) for name in read_frame(best.path))
        dimension.lines = [f"hierarchy = {toml_value(os.path.relpath(best.path, folder))}", f"levels = [{columns}]"]
        told.append(f"{dimension.name}: {best.path.name} says how {share:.0%} of its codes nest.")
        return
    nested = _proposed_tree_by_beginnings(dimension.codes)
    if nested is not None:
        dimension.lines = [f"hierarchy = {nested}    # codes that begin like others are below them"]
        told.append(f"{dimension.name}: codes that begin like others are below them.")
        open_.append(f"hierarchy of {dimension.name}")
        return
    if _proposed_codes_add_up(dimension, tables) is False:
        told.append(f"{dimension.name}: its codes do not simply add up to the total, and no file says how they nest.")
        open_.append(f"hierarchy of {dimension.name}")
        dimension.lines = ['# hierarchy = "codes.hrc"    # how its codes add up could not be told']


def _proposed_tree_by_beginnings(codes: Iterable[str]) -> str | None:
    """Return the tree of codes of which most begin like another one, as TOML; None where they do not."""
    listed = list(codes)
    known = set(listed)
    above = {c: next((c[:k] for k in range(len(c) - 1, 0, -1) if c[:k] in known), None) for c in listed}
    if sum(up is not None for up in above.values()) < 0.5 * len(listed):
        return None
    below: dict[str | None, list[str]] = {}
    for code, up in above.items():
        below.setdefault(up, []).append(code)

    def drawn(code: str) -> Any:
        kids = below.get(code, [])
        return {kid: drawn(kid) for kid in kids} if not kids or any(kid in below for kid in kids) else kids

    return toml_value({code: drawn(code) for code in below[None]})


def _proposed_codes_add_up(dimension: ProposedDimension, tables: Sequence[Proposed]) -> bool | None:
    """Say whether the codes of a dimension add up to its total where all others are at theirs; None if nobody knows."""
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
        value = column_as_numbers(frame[table.value[0]], table.value[0])
        if top.any():
            return bool(np.isclose(value[at & ~top].sum(), value[top][0], rtol=1e-6))
    return None


def _mistakes_in_proposal(text: str, folder: Path) -> tuple[list[str], list[Lookalike]]:
    """Assemble the proposal once; return what does not fit, and what looks alike and is not linked."""
    job = Job.model_validate(tomllib.loads(text))
    file = JobFile(path=folder / "job.toml", text=text, job=job)
    wrong = [mistake.text for mistake in check_job(job, folder, file.facts)]
    if wrong:
        return wrong, []
    try:
        parts = tabulated_by_job(file)
        alike = lookalikes(Publication.of(parts, tolerance=job.tolerance).table) if isinstance(parts, list) else []
    except CellguardError as error:
        return list(getattr(error, "mistakes", ())) or [error.message], []
    return [], alike

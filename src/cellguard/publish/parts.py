"""The tables of a publication, from records or from files that are already added up; rules, and the one system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cellguard.exceptions import CellguardError, InputError, UnknownCodeError, did_you_mean
from cellguard.nouns.publication import Part, Publication
from cellguard.nouns.table import Table
from cellguard.publish.model import Job, RuleSection, TableSection
from cellguard.publish.read import JobFile

__all__ = ["assembled", "is_publication", "name_of", "parts_of", "rules_for"]


def is_publication(job: Job) -> bool:
    """Say whether the job publishes more than linked tables of one value from the records."""
    return bool(job.indicators or job.equations) or any(
        entry.file is not None or entry.where or entry.priority != 1.0 for entry in job.tables
    )


def name_of(entry: TableSection) -> str:
    """Return how a table is called."""
    return entry.name or " by ".join(entry.dimensions)


def parts_of(file: JobFile, hierarchy: Callable[[str], Any], options: dict[str, Any]) -> list[Part]:
    """Make every table of the publication; nothing is sensitive yet."""
    job = file.job
    from_records = [entry for entry in job.tables if entry.file is None]
    parts: list[Part] = []
    if from_records:
        from cellguard.data.tabulate.many import Asked, parts_of_records

        asked = [
            Asked(
                name=name_of(entry), dimensions=tuple(entry.dimensions), where=entry.where,
                indicators=tuple(entry.indicators), priority=entry.priority,
            )
            for entry in from_records
        ]  # fmt: skip
        used = {d for entry in from_records for d in entry.dimensions}
        columns = {i.name: i.value for i in job.indicators} or {job.data.value or "count": job.data.value}
        by = {name: hierarchy(name) for name in job.dimensions if name in used}
        parts += parts_of_records(str(file.file(str(job.data.file))), by, asked, columns, **options)
    wrong: list[str] = []
    for entry in job.tables:
        if entry.file is not None:
            try:
                parts += _ready(file, entry, hierarchy)
            except CellguardError as error:
                wrong.append(f"{entry.file}: {error}")
    if wrong:
        raise InputError("; ".join(wrong))
    return parts


def _ready(file: JobFile, entry: TableSection, hierarchy: Callable[[str], Any]) -> list[Part]:
    """Read one table that is already added up, an indicator at a time."""
    from cellguard._io.frames import read_frame

    job = file.job
    frame = read_frame(file.file(str(entry.file)))
    names = entry.indicators or [i.name for i in job.indicators] or [job.data.value or "value"]
    column_of = {i.name: i.value for i in job.indicators}
    own = {d: entry.columns.get(d, d) for d in entry.dimensions}
    _refuse_missing_columns(frame, own.values())
    dims = {column: _restricted(hierarchy(d), frame[column], entry.total.get(d)) for d, column in own.items()}
    parts = []
    for indicator in names:
        value = entry.value or column_of.get(indicator) or "value"
        table = Table.from_frame(
            frame, dims, value=value, counts=entry.count, top=entry.top, known_zeros=job.data.known_zeros,
            name=name_of(entry),
        )  # fmt: skip
        parts.append(
            Part(
                name=name_of(entry) if len(names) == 1 else f"{name_of(entry)} {indicator}",
                table=table,
                indicator=indicator,
                where=entry.where,
                dimensions={column: d for d, column in own.items() if column != d},
                priority=entry.priority,
            )
        )
    return parts


def _refuse_missing_columns(frame: Mapping[str, Any], wanted: Iterable[str]) -> None:
    for column in wanted:
        if column not in frame:
            raise UnknownCodeError(
                f"there is no column {column!r}.",
                hint=did_you_mean(column, frame) or f"the columns are {', '.join(frame)}.",
            )


def _restricted(given: Any, column: Any, total: str | None) -> Any:
    """Return the hierarchy of a table: the codes that it has, below the total as it calls it."""
    from cellguard._io.frames import texts
    from cellguard.nouns.hierarchy import Hierarchy

    present = list(dict.fromkeys(texts(column)))
    if isinstance(given, tuple):
        return Hierarchy.from_digits([c for c in present if c != total], levels=given, total=total or "Total")
    if given is None:
        root = total or "Total"
        return Hierarchy.flat([c for c in present if c != root], total=root)
    h = Hierarchy.of(given)
    if len(h.parents) > 1:  # several trees over the same leaves: every code is needed
        return h
    root = total or h.total
    keep = set(present) | {h.total}
    parent = h.parents[0]
    pairs = []
    for i, code in enumerate(h.codes):
        if i == 0 or code not in keep:
            continue
        up = int(parent[i])
        while up > 0 and h.codes[up] not in keep:
            up = int(parent[up])
        pairs.append((code, root if up == 0 else h.codes[up]))
    return Hierarchy.from_pairs(pairs, total=root)


# ---------------------------------------------------------------- rules, and the system


def rules_for(entry: RuleSection, part: Part, table_name: str) -> bool:
    """Say whether a rule holds for a table of the publication."""
    return (not entry.tables or table_name in entry.tables) and (
        not entry.indicators or part.indicator in entry.indicators
    )


def assembled(file: JobFile, parts: Sequence[Part]) -> Table:
    """Apply the rules table by table, and assemble the system: what one table flags is sensitive everywhere."""
    job = file.job
    flagged = []
    for part in parts:
        table = part.table
        mine = [entry.to_rule(table) for entry in job.rules if rules_for(entry, part, table.name)]
        rules = [rule for rule in mine if rule is not None]
        if rules:
            table = table.apply(*rules, lower_ratio=job.levels.lower_ratio)
        flagged.append(replace(part, table=table))
    found = Publication.of(flagged, equations=job.equations, tolerance=job.tolerance, name=job.name)
    return _with_shadows(found.table, {i.name: i.shadow_of for i in job.indicators if i.shadow_of})


def _with_shadows(table: Table, shadows: Mapping[str, str]) -> Table:
    """Make an indicator sensitive where the one that it is the shadow of is, at the same share of its value."""
    if not shadows:
        return table
    d = table.dimensions.index("indicator")
    others = np.delete(table.coordinates, d, axis=1)
    place = {(int(k), row.tobytes()): i for i, (k, row) in enumerate(zip(table.coordinates[:, d], others, strict=True))}
    sensitive, lower, upper = table.sensitive.copy(), table.lower.copy(), table.upper.copy()
    for name, of in shadows.items():
        mine, theirs = table.codes[d].index(name), table.codes[d].index(of)
        for cell in np.flatnonzero(table.sensitive & (table.coordinates[:, d] == theirs)).tolist():
            own = place.get((mine, others[cell].tobytes()))
            if own is None or table.fixed[own]:
                continue
            share = abs(table.values[own]) / max(abs(table.values[cell]), 1e-300)
            sensitive[own] = True
            lower[own] = max(lower[own], min(share * table.lower[cell], table.values[own] - table.lb[own]))
            upper[own] = max(upper[own], min(share * table.upper[cell], table.ub[own] - table.values[own]))
    return table.with_(sensitive=sensitive, lower=lower, upper=upper)

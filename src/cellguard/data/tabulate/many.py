"""Many tables and indicators from one set of records: each finest aggregate is computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cellguard._engine.space.cell_grid import keys_of, locate
from cellguard._io.frames import columns_of, to_frame
from cellguard._types import IntArray
from cellguard.data.tabulate.verb import tabulate
from cellguard.data.template import Template, TemplateTable
from cellguard.exceptions import CellguardError, InputError, PublicationError, UnknownCodeError, did_you_mean
from cellguard.nouns.assemble import derive_relations
from cellguard.nouns.publication import Part
from cellguard.nouns.table import Table

__all__ = ["Asked", "parts_of_records", "parts_of_template"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A table that is to be made from records."""

    name: str
    """How the publication calls it."""
    dimensions: tuple[str, ...]
    """Its dimensions; all margins are published."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Column -> code: only these records."""
    indicators: tuple[str, ...] = ()
    """What it shows; every indicator unless given."""
    priority: float = 1.0
    """How much more its cells cost."""


def parts_of_records(
    data: Any, by: Mapping[str, Any], asked: Sequence[Asked], indicators: Mapping[str, str | None], **options: Any
) -> list[Part]:
    """Make the tables of a publication from records.

    Parameters
    ----------
    data, by, options
        As for :func:`cellguard.tabulate`: the records, all dimensions with their hierarchies, and the roles of columns.
    asked
        The tables.
    indicators
        Name -> column to add up; None counts records.

    Examples
    --------
    >>> firms = {"region": ["N", "N", "S"], "size": ["a", "b", "a"], "x": [9, 8, 4], "y": [1, 2, 3]}
    >>> wanted = [Asked(name="r", dimensions=("region",)), Asked(name="rs", dimensions=("region", "size"))]
    >>> [(p.name, p.indicator, p.table.n_cells) for p in parts_of_records(firms, {"region": None, "size": None},
    ...                                                                   wanted, {"x": "x", "y": "y"})]
    [('r x', 'x', 3), ('rs x', 'x', 9), ('r y', 'y', 3), ('rs y', 'y', 9)]
    """
    for table in asked:
        for name in table.indicators:
            if name not in indicators:
                raise UnknownCodeError(
                    f"table {table.name!r}: there is no indicator {name!r}.", hint=did_you_mean(name, indicators)
                )
    if isinstance(data, Mapping):  # turned into a frame once, not for every indicator
        data = to_frame(columns_of(data))
    parts = []
    for indicator, column in indicators.items():
        together: dict[tuple[tuple[str, str], ...], list[Asked]] = defaultdict(list)
        for table in asked:
            if not table.indicators or indicator in table.indicators:
                together[tuple(sorted(table.where.items()))].append(table)
        for where, group in together.items():
            used = [d for d in by if any(d in table.dimensions for table in group)]
            linked = tabulate(
                data,
                {d: by[d] for d in used},
                column,
                tables=[t.dimensions for t in group],
                where=dict(where),
                **options,
            )
            single = len(indicators) == 1
            parts += [
                Part(
                    name=table.name if single else f"{table.name} {indicator}",
                    table=cut(linked, table.dimensions, table.name),
                    indicator=indicator,
                    where=table.where,
                    priority=table.priority,
                )
                for table in group
            ]
    return parts


def parts_of_template(
    data: Any, by: Mapping[str, Any], template: Template, indicators: Mapping[str, str | None], **options: Any
) -> list[Part]:
    """Make the tables that a template asks for from records.

    Cells that it does not list are not published. They are there all the same: what adds up to them can give
    others away, and one of them may be sensitive and be what is left when others are subtracted.
    """
    wanted = []
    wrong: list[CellguardError] = []
    only = next(iter(indicators)) if len(indicators) == 1 else None
    periods = {table.period for table in template.tables}
    for table in template.tables:
        indicator = table.indicator if table.indicator in indicators else only if not table.indicator else None
        if indicator is None:
            text = f"{template.source}: line {table.lines[0]}: there is no indicator {table.indicator!r}."
            wrong.append(UnknownCodeError(text, hint=did_you_mean(table.indicator, indicators)))
            continue
        where = {str(template.period): table.period} if len(periods) > 1 else {}
        wanted.append((table, indicator, where))
    if wrong:
        raise PublicationError.of(wrong)
    parts: list[Part] = []
    for table, indicator, where in wanted:
        asked = Asked(name=table.name, dimensions=table.dimensions, where=where, indicators=(indicator,))
        whole = parts_of_records(data, by, [asked], {indicator: indicators[indicator]}, **options)[0]
        name = table.name if len(indicators) == 1 else f"{table.name} {indicator}"
        cells, unknown = _listed(whole.table, table, template)
        wrong += unknown
        if not unknown:
            shown = restricted_to(whole.table, cells, table.name)
            parts.append(replace(whole, name=name, table=shown, source=template.source, lines=table.lines))
            parts.append(replace(whole, name=f"{name} (all cells)", hidden=True))
    if wrong:
        raise PublicationError.of(wrong)
    return parts


def _listed(table: Table, asked: TemplateTable, template: Template) -> tuple[IntArray, list[CellguardError]]:
    """Return the cells that a template lists, and rows that no table has a place for."""
    columns = []
    wrong: list[CellguardError] = []
    for d, dimension in enumerate(asked.dimensions):
        place = {code: k for k, code in enumerate(table.codes[d])}
        total = template.totals.get(dimension)
        if total is not None:
            place.setdefault(total, 0)
        found = np.array([place.get(row[d], -1) for row in asked.codes], np.int64)
        unknown: dict[str, int] = {}
        for row in np.flatnonzero(found < 0).tolist():
            unknown.setdefault(asked.codes[row][d], int(asked.lines[row]))
        for code, line in list(unknown.items())[:20]:
            text = f"{template.source}: line {line}: fits no table: {dimension!r} has no code {code!r}."
            wrong.append(UnknownCodeError(text, hint=did_you_mean(code, place)))
        columns.append(found)
    if wrong:
        return np.zeros(0, np.int64), wrong
    sizes = [len(codes) for codes in table.codes]
    rows = np.column_stack(columns).astype(np.int32)
    return locate(keys_of(table.coordinates, sizes), keys_of(rows, sizes), sizes), []


def cut(linked: Table, dimensions: Iterable[str], name: str) -> Table:
    """Return one of the tables that were made together: its cells are those at the total of all other dimensions."""
    mine = [linked.dimensions.index(d) for d in dimensions]
    others = [d for d in range(len(linked.dimensions)) if d not in mine]
    cells = np.flatnonzero(~linked.coordinates[:, others].any(axis=1))
    return restricted_to(linked, cells, name, mine)


def restricted_to(linked: Table, cells: IntArray, name: str, mine: Sequence[int] | None = None) -> Table:
    """Return the table of some cells, and of some dimensions: what adds up among them is what it knows."""
    mine = range(len(linked.dimensions)) if mine is None else mine
    if not linked.hierarchies or linked.statistics is None:
        raise InputError(f"table {name!r} was not made from records.")
    hierarchies = tuple(linked.hierarchies[d] for d in mine)
    coordinates = linked.coordinates[cells][:, mine]
    statistics = linked.statistics.take(cells)
    return Table.from_equations(
        linked.values[cells],
        derive_relations(hierarchies, coordinates),
        lb=linked.lb[cells],
        ub=linked.ub[cells],
        weights=linked.weights[cells],
        fixed=linked.fixed[cells],
        counts=statistics.count,
        integer=linked.integer,
        statistics=statistics,
        dimensions=tuple(linked.dimensions[d] for d in mine),
        codes=tuple(h.codes for h in hierarchies),
        hierarchies=hierarchies,
        coordinates=coordinates,
        name=name,
        library=linked.library,
    )

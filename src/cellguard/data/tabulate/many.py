"""Many tables and indicators from one set of records: each finest aggregate is computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cellguard.data.tabulate.verb import tabulate
from cellguard.exceptions import InputError, UnknownCodeError, did_you_mean
from cellguard.nouns.assemble import derive_relations
from cellguard.nouns.publication import Part
from cellguard.nouns.table import Table

__all__ = ["Asked", "parts_of_records"]


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


def cut(linked: Table, dimensions: Iterable[str], name: str) -> Table:
    """Return one of the tables that were made together: its cells are those at the total of all other dimensions."""
    mine = [linked.dimensions.index(d) for d in dimensions]
    others = [d for d in range(len(linked.dimensions)) if d not in mine]
    cells = np.flatnonzero(~linked.coordinates[:, others].any(axis=1))
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

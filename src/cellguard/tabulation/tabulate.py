"""``cg.tabulate``: make a table from records."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard.exceptions import InputError, raise_error_of_missing
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.linked.cross import add_cross
from cellguard.model.table import Table
from cellguard.tabulation.decode import (
    build_hierarchies,
    decode,
    is_digits_of_record_codes,
    number_contributors_in_records,
)
from cellguard.tabulation.engines.opened import Opened, detect_library, open_records
from cellguard.tabulation.margins import (
    CrossingMargins,
    compute_margins,
    find_cells_with_records,
    order_margins,
)
from cellguard.tabulation.people import People
from cellguard.tabulation.request import (
    KEPT_CONTRIBUTIONS,
    Finest,
    Records,
    Roles,
    Scale,
    check_columns_to_tabulate,
    check_records_to_tabulate,
)

if TYPE_CHECKING:
    from cellguard.model.sources.assemble import Crossings

__all__ = ["tabulate"]

_MOST_DECIMALS = 9
_log = logging.getLogger("cellguard")


def tabulate(
    data: Any,
    by: str | Sequence[str] | Mapping[str, Any],
    value: str | None = None,
    *,
    tables: Iterable[Sequence[str]] | None = None,
    crossings: Crossings | None = None,
    where: Mapping[str, str | Sequence[str]] | None = None,
    weight: str | None = None,
    holding: str | None = None,
    shadow: str | None = None,
    waiver: str | None = None,
    request: str | None = None,
    request_codes: Sequence[str] = ("1", "2"),
    cost: str | None = None,
    missing: Mapping[str, str | Sequence[str]] | None = None,
    skip_missing: bool = False,
    standalone: bool = False,
    leading_zeros: Sequence[str] = (),
    empty: str = "zero",
    known_zeros: bool = True,
    top: int = KEPT_CONTRIBUTIONS,
    total: str | Mapping[str, str] | None = None,
    decimal: str = ".",
    decimals: int | None = None,
    encoding: str | None = None,
    threads: int | None = None,
    memory_limit: str | None = None,
    **description: Any,
) -> Table:
    """Make a table from records.

    The records are not copied: DuckDB in this process reads frames and files, out of core; an
    Ibis table is aggregated by its own database. Margins are added up here. The table has the count
    and the largest contributions of every cell, so that rules can be applied (:meth:`Table.apply`).

    Parameters
    ----------
    data
        A pandas, polars or pyarrow frame, a dict of columns, the path of CSV or Parquet files (with
        wildcards), a DuckDB relation, or an Ibis table.
    by
        Columns of codes: names, or name -> hierarchy (a :class:`Hierarchy`, a tuple of them over the
        same leaves, nested dicts or lists, a file, whole numbers, the digits of each level of the codes
        as in ``(1, 2)``, or None for codes that simply add up).
    value
        Column to add up; None counts records.
    tables
        Linked tables, each the names of its dimensions; all margins of each are published. One table
        with all dimensions unless given.
    crossings
        What is published, when some margins are not: each names the dimensions that are not at their
        total, or their depths (see :meth:`Table.from_frame`).
    where
        Column -> code, or several: use only the records with these codes.
    weight
        Column of sampling weights, at least 0: values and counts are weighted.
    holding
        Column that says which records belong together: contributions are added up per holding
        before a rule uses them, separately in every margin. Without it each record is a contributor of its own.
    shadow
        Column whose contributions the rules use, instead of the value's.
    waiver
        Column of truth values: contributors who consented and need no protection.
    request
        Column that says which contributors requested protection: `request_codes` are the codes of
        the first and the second kind.
    cost
        Column to add up as the information lost with a cell; the value itself unless given.
    missing
        Dimension -> codes for "not known": they are placed directly below the total. Records
        without any code get the first of them; they are refused otherwise.
    skip_missing
        Leave out records without a value; they are refused otherwise.
    standalone
        Treat a record without a holding as its own holding; such records are refused otherwise.
    leading_zeros
        Dimensions whose codes lost leading zeros in the records: 7 is taken for 07 if the hierarchy has no 7 and only
        one such code. Codes that the hierarchy does not have are refused otherwise.
    empty
        How to treat cells without records: ``"zero"`` (published zeros, known to every attacker), or ``"drop"``:
        the same, but left out of the table, for wide tables with mostly empty cells.
    known_zeros
        Whether every attacker knows which cells have no records (:meth:`Table.with_known_zeros`).
    top
        Number of largest contributions of each cell to keep: n for dominance (n, k), the size
        of the coalition plus one for the p% and (p, q) rules. With more, attackers who contributed less are
        modelled more precisely.
    total
        Code of the total in dimensions whose hierarchy does not name it; or dimension -> code.
    decimals
        Number of decimals of the table: every weighted record is rounded to them before it is added up, so that all
        tables of the same records agree. As many as the records have, unless given.
    decimal, encoding
        For text files: decimal sign of numbers, and encoding (UTF-8, else Latin-1, unless given).
    threads, memory_limit
        For DuckDB; it uses all processors and most of the memory unless given.
    description
        Any other field of the table (`name`, `lb`, `ub`, `attackers`).

    Examples
    --------
    >>> firms = {"region": ["N", "N", "S", "S"], "size": ["big", "small", "big", "big"], "turnover": [90, 8, 40, 30]}
    >>> t = tabulate(firms, ["region", "size"], "turnover")
    >>> t
    Table(9 cells, 6 relations, 0 sensitive)
    >>> t.values.reshape(3, 3)  # (total, N, S) x (total, big, small)
    array([[168., 160.,   8.],
           [ 98.,  90.,   8.],
           [ 70.,  70.,   0.]])
    >>> import cellguard as cg
    >>> protected = t.apply(cg.PPercent(10))
    >>> [protected.label(i) for i in protected.sensitive_cells[:2]]
    ['(region=Total, size=small)', '(region=N, size=Total)']
    """
    dims = _read_dimensions(by)
    _check_tabulate_options(top, decimals)
    if empty not in {"zero", "drop"} or (empty == "drop" and crossings is not None):
        raise InputError(f"empty={empty!r}: 'zero' is needed, or 'drop' where all margins are published.")
    roles = Roles(
        dimensions=tuple(dims),
        value=value,
        shadow=shadow,
        weight=weight,
        holding=holding,
        waiver=waiver,
        request=request,
        request_codes=tuple(request_codes),
        cost=cost,
        decimal=decimal,
        decimals=decimals,
        skip_missing=skip_missing,
        standalone=standalone,
        leading_zeros=tuple(leading_zeros),
    )
    work = _Tabulation(
        roles=roles,
        dims=dims,
        missing={name: ((c,) if isinstance(c, str) else tuple(c)) for name, c in (missing or {}).items()},
        crossings=list_crossings(dims, tables, crossings),
        units=_count_largest_to_keep(
            int(top), measured=value is not None or shadow is not None, grouped=holding is not None
        ),
        total=total,
        drop=empty == "drop",
        known_zeros=known_zeros,
    )
    wanted = replace(roles, dimensions=tuple(dict.fromkeys([*roles.dimensions, *(where or {})])))
    if "library" not in description:
        description["library"] = detect_library(data)
    limits: dict[str, Any] = {"encoding": encoding, "threads": threads, "memory_limit": memory_limit}
    with closing(open_records(data, wanted.columns, **limits)) as records:
        if where:
            check_columns_to_tabulate(records.list_columns(), wanted)
            records.restrict_to(where)
        table = work.run(records, description)
    if not isinstance(data, Opened):  # the tables of a publication are linked, and crossed, when it is assembled
        table = add_cross(table)
    _log.info("tabulate: %d cells, %d relations", table.n_cells, table.n_relations)
    return table


def _count_largest_to_keep(top: int, *, measured: bool, grouped: bool) -> int:
    """Return how many of the largest contributions to keep; when only records are counted, each contributes 1."""
    return top if measured else max(top, KEPT_CONTRIBUTIONS) if grouped else 0


def _check_tabulate_options(top: int, decimals: int | None) -> None:
    if top < 0 or top != int(top):
        raise InputError(f"top={top!r}: a whole number of at least 0 is needed.")
    if decimals is not None and (decimals != int(decimals) or not 0 <= decimals <= _MOST_DECIMALS):
        raise InputError(f"decimals={decimals!r}: a whole number from 0 to {_MOST_DECIMALS} is needed.")


def _read_dimensions(by: str | Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(by, str):
        return {by: None}
    dims = dict(by) if isinstance(by, Mapping) else dict.fromkeys(by)
    if not dims:
        raise InputError("no dimension is named.", hint="by={'region': hierarchy, 'size': None}")
    return dims


def list_crossings(
    dims: Mapping[str, Any], tables: Iterable[Sequence[str]] | None, crossings: Crossings | None
) -> list[Any] | None:
    """Return the crossings to publish: the requested ones, or every margin of each linked table."""
    if tables is None:
        return None if crossings is None else list(crossings)
    if crossings is not None:
        raise InputError("tables and crossings exclude each other.", hint="tables publish all their margins.")
    out: dict[frozenset[str], tuple[str, ...]] = {}
    for table in tables:
        names = (table,) if isinstance(table, str) else tuple(table)
        raise_error_of_missing("dimension", names, dims, place="tables: ")
        for subset in chain.from_iterable(combinations(names, k) for k in range(len(names) + 1)):
            out.setdefault(frozenset(subset), subset)
    return list(out.values())


def select_largest_crossings(dims: Sequence[str], crossings: Sequence[Any] | None) -> list[tuple[str, ...]]:
    """Return the crossings that contain all others; the records are added up once for each of them."""
    if crossings is None:
        return [tuple(dims)]
    sets = [frozenset([c] if isinstance(c, str) else c) for c in crossings]
    for names in sets:
        raise_error_of_missing("dimension", names, dims, place="crossings: ")
    most = [s for s in dict.fromkeys(sets) if not any(s < other for other in sets)]
    return [tuple(d for d in dims if d in names) for names in most]


@dataclass(kw_only=True)
class _Tabulation:
    """One call of :func:`tabulate`, step by step."""

    roles: Roles
    dims: Mapping[str, Any]
    missing: Mapping[str, Sequence[str]]
    crossings: Sequence[Any] | None
    units: int
    total: str | Mapping[str, str] | None
    drop: bool
    known_zeros: bool
    people: People = field(default_factory=People)
    """The contributors; known once the records are read."""
    known: bool = False
    """Whether contributors have the same numbers in all crossings."""

    def run(self, records: Records, description: Mapping[str, Any]) -> Table:
        """Inspect the records, add them up, add the margins, make the table."""
        check_columns_to_tabulate(records.list_columns(), self.roles)
        facts = records.collect_facts(self.roles)
        check_records_to_tabulate(facts, self.roles, records)
        scales = self._choose_scales(facts)
        crossed = select_largest_crossings(tuple(self.dims), self.crossings)
        if len(crossed) > 1 and not records.numbered:
            records.number(self.roles.columns)
        parts, hierarchies = self._add_up(records, crossed, scales)
        own: list[CrossingMargins] = []
        if self.roles.shadow is not None:  # contributors know what they gave to the published values
            plain = replace(self, roles=replace(self.roles, shadow=None))
            own, _ = plain._add_up(records, crossed, plain._choose_scales(facts))
        negative = facts.negative.get("value", 0) > 0
        return self._build_table(parts, own, hierarchies, {"lb": -np.inf if negative else 0.0, **description})

    def _add_up(
        self, records: Records, crossed: Sequence[tuple[str, ...]], scales: Mapping[str, Scale]
    ) -> tuple[list[CrossingMargins], dict[str, Hierarchy]]:
        """Add up the records by every crossing, with all margins."""
        answers = [
            records.aggregate_finest(replace(self.roles, dimensions=names), scales, self.units) for names in crossed
        ]
        hierarchies = build_hierarchies(self.dims, self._collect_codes(crossed, answers), self.missing, self.total)
        self.people, self.known = records.people, records.numbered or self.roles.holding is not None
        number_contributors_in_records(answers, self.people)
        parts = [
            self._tabulate_part(names, finest, hierarchies, scales)
            for names, finest in zip(crossed, answers, strict=True)
        ]
        return parts, hierarchies

    def _choose_scales(self, facts: Any) -> dict[str, Scale]:
        looked_at = "shadow" if self.roles.shadow else "value"
        scales = {part: Scale.of(absolute, facts.records) for part, absolute in facts.absolute.items()}
        scales |= facts.scales
        scales["contributions"] = scales[looked_at]
        if self.roles.shadow or facts.negative.get("value", 0):
            scales["total"] = scales[looked_at]  # otherwise the total of the contributions is the value
        return scales

    def _collect_codes(self, crossed: Sequence[tuple[str, ...]], answers: Sequence[Finest]) -> dict[str, set[str]]:
        from cellguard._io.frames import encode_frame_column

        seen: dict[str, set[str]] = {name: set() for name in self.dims}
        for names, finest in zip(crossed, answers, strict=True):
            for d, name in enumerate(names):
                if self.dims[name] is None or is_digits_of_record_codes(self.dims[name]):
                    seen[name].update(encode_frame_column(finest.cells.column(f"d{d}"))[0])
        return seen

    def _tabulate_part(
        self, names: tuple[str, ...], finest: Finest, hierarchies: Mapping[str, Hierarchy], scales: Mapping[str, Scale]
    ) -> CrossingMargins:
        own = [hierarchies[name] for name in names]
        decoded = decode(finest, replace(self.roles, dimensions=names), own, self.missing, self.people)
        keys, statistics, cost = compute_margins(decoded, self.roles, own, scales, self.units)
        statistics = replace(statistics, people=self.people.list if self.known else "")
        order = np.argsort(keys)
        return CrossingMargins(
            dimensions=tuple(list(self.dims).index(name) for name in names),
            keys=keys[order],
            statistics=statistics.take(order),
            cost=None if cost is None else cost[order],
        )

    def _build_table(
        self,
        parts: Sequence[CrossingMargins],
        own: Sequence[CrossingMargins],
        hierarchies: Mapping[str, Hierarchy],
        fields: Mapping[str, Any],
    ) -> Table:
        from cellguard.model.sources.assemble import build_coordinates, build_relations

        sizes = [len(h) for h in hierarchies.values()]
        cells = find_cells_with_records(parts, sizes) if self.drop else build_coordinates(hierarchies, self.crossings)
        statistics, costs = order_margins(cells, sizes, parts)
        if own:
            statistics = replace(statistics, own=order_margins(cells, sizes, own)[0])
        T = build_relations(tuple(hierarchies.values()), cells, absent_is_zero=self.drop)
        table = Table.from_equations(
            statistics.value,
            T,
            weights=np.abs(statistics.value) if costs is None else costs,
            counts=statistics.count,
            integer=self.roles.value is None and self.roles.weight is None,
            whole=True,
            statistics=statistics,
            dimensions=tuple(hierarchies),
            codes=tuple(h.codes for h in hierarchies.values()),
            hierarchies=tuple(hierarchies.values()),
            coordinates=cells,
            **fields,
        )
        if not self.known_zeros:
            return table.with_(known_zeros=False)
        return table.with_known_zeros(statistics.count == 0)

"""Make many tables and indicators from one set of records; compute each finest aggregate once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cellguard._types import IntArray
from cellguard.exceptions import (
    CellguardError,
    InputError,
    PublicationError,
    UnknownCodeError,
    build_missing_errors,
    suggest_names,
)
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.linked.publication import Part
from cellguard.model.sources.assemble import build_relations
from cellguard.model.table import Table
from cellguard.tabulation.decode import is_digits_of_record_codes
from cellguard.tabulation.engines.gathered import Question, normalize_where
from cellguard.tabulation.engines.opened import Opened
from cellguard.tabulation.request import KEPT_CONTRIBUTIONS, NoRecordsError, Roles
from cellguard.tabulation.tabulate import list_crossings, select_largest_crossings, tabulate
from cellguard.tabulation.template import Template, TemplateTable

__all__ = ["AskedTable", "tabulate_parts", "tabulate_template"]

_ROLES = ("weight", "holding", "shadow", "waiver", "request", "cost")
"""Options of a tabulation that name columns."""


@dataclass(frozen=True, kw_only=True)
class AskedTable:
    """Specification of a table to be made from records."""

    name: str
    """Name of the table in the publication."""
    dimensions: tuple[str, ...]
    """Its dimensions; all margins are published."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Column -> code: use only these records; for a dimension, the code may also be a total of others."""
    indicators: tuple[str, ...] = ()
    """Its indicators; all indicators unless given."""
    priority: float = 1.0
    """Factor on the cost of its cells."""
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    """Dimension -> its own hierarchy over the same leaves, if it differs from that of other tables."""


def tabulate_parts(
    data: Any, by: Mapping[str, Any], asked: Sequence[AskedTable], indicators: Mapping[str, str | None], **options: Any
) -> list[Part]:
    """Make the tables of a publication from records, which are read once.

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
    >>> wanted = [AskedTable(name="r", dimensions=("region",)), AskedTable(name="rs", dimensions=("region", "size"))]
    >>> by, indicators = {"region": None, "size": None}, {"x": "x", "y": "y"}
    >>> parts = tabulate_parts(firms, by, wanted, indicators)
    >>> [(p.name, p.indicator, p.table.n_cells) for p in parts]
    [('r x', 'x', 3), ('rs x', 'x', 9), ('r y', 'y', 3), ('rs y', 'y', 9)]
    """
    parts, failures = _tabulate_possible_parts(data, by, asked, indicators, options)
    PublicationError.refuse(list(_describe_failures(failures, asked)))
    return parts


Failure = tuple[Sequence[AskedTable], CellguardError]
"""An error, and the tables that cannot be made because of it."""


def _tabulate_possible_parts(
    data: Any,
    by: Mapping[str, Any],
    asked: Sequence[AskedTable],
    indicators: Mapping[str, str | None],
    options: Mapping[str, Any],
) -> tuple[list[Part], list[Failure]]:
    """Make all tables that can be made; return the errors of the others."""
    wrong = [mistake for table in asked for mistake in _find_unknown_names(table, by, indicators)]
    PublicationError.refuse(wrong)
    limits = {name: options.get(name) for name in ("encoding", "threads", "memory_limit")}
    columns = _record_columns_to_tabulate(by, asked, indicators, options)
    failures: list[Failure] = []
    with closing(Opened(data, columns, **limits)) as records:
        PublicationError.refuse(
            list(build_missing_errors("column", columns, records.list_columns(), place="the records: "))
        )
        batches = []
        for indicator, column in indicators.items():
            for group in _group_tables(asked, indicator):
                try:
                    batches.append(_MadeTogether.of(group, by, indicator, column))
                except CellguardError as error:
                    failures.append((group, error))
        read = {name: options[name] for name in (*_ROLES, "decimal", "decimals", "skip_missing") if name in options}
        questions = [question for batch in batches for question in batch.list_questions()]
        records.plan_queries(questions, Roles(dimensions=(), **read), int(options.get("top", KEPT_CONTRIBUTIONS)))
        parts = []
        for batch in batches:
            try:
                parts += batch.build_parts(records, options, several=len(indicators) > 1)
            except CellguardError as error:
                failures.append((batch.tables, error))
    return parts, failures


def _deduplicate_failures(failures: Sequence[Failure]) -> Iterator[Failure]:
    """Yield each error once, with all tables that have it."""
    found: dict[str, Failure] = {}
    for tables, error in failures:
        before, _ = found.get(error.message, ((), error))
        found[error.message] = [*before, *(table for table in tables if table not in before)], error
    yield from found.values()


def _describe_failures(failures: Sequence[Failure], asked: Sequence[AskedTable]) -> Iterator[CellguardError]:
    """Yield each error once; name the tables that have it if others do not."""
    for tables, error in _deduplicate_failures(failures):
        names = ", ".join(repr(table.name) for table in tables)
        place = f"table{'s' if len(tables) > 1 else ''} {names}: " if len(tables) < max(len(asked), 2) else ""
        yield type(error)(place + error.message, hint=error.hint)


def _find_unknown_names(
    table: AskedTable, by: Mapping[str, Any], indicators: Mapping[str, Any]
) -> Iterator[CellguardError]:
    """Yield errors for indicators and dimensions of a table that are not described."""
    place = f"table {table.name!r}: "
    yield from build_missing_errors("indicator", table.indicators, indicators, place=place)
    yield from build_missing_errors("dimension", table.dimensions, by, place=place)


def _record_columns_to_tabulate(
    by: Mapping[str, Any], asked: Sequence[AskedTable], indicators: Mapping[str, str | None], options: Mapping[str, Any]
) -> list[str]:
    """Return every column that a table needs, each once."""
    used = {name for table in asked for name in (*table.dimensions, *table.where)}
    roles = (options.get(name) for name in _ROLES)
    wanted = [*(d for d in by if d in used), *(c for table in asked for c in table.where), *indicators.values(), *roles]
    return list(dict.fromkeys(column for column in wanted if column is not None))


def _group_tables(asked: Sequence[AskedTable], indicator: str) -> Iterator[list[AskedTable]]:
    """Yield the tables that show an indicator, by part of the population; tables with own hierarchies separately."""
    groups: dict[tuple[Any, ...], list[AskedTable]] = defaultdict(list)
    for k, table in enumerate(asked):
        if not table.indicators or indicator in table.indicators:
            groups[tuple(sorted(table.where.items())), k if table.hierarchies else -1].append(table)
    yield from groups.values()


@dataclass(frozen=True, kw_only=True)
class _MadeTogether:
    """Tables of one indicator and one part of the population, which are made together."""

    tables: Sequence[AskedTable]
    indicator: str
    column: str | None
    """Column to add up; None counts records."""
    by: Mapping[str, Any]
    """Their dimensions, restricted to the part of the population that they cover."""
    where: Mapping[str, str | list[str]]
    """Column -> codes of the records in it."""
    closed: Mapping[str, Sequence[str]]
    """Dimension -> codes that represent all codes below them."""

    @classmethod
    def of(
        cls, tables: Sequence[AskedTable], by: Mapping[str, Any], indicator: str, column: str | None
    ) -> _MadeTogether:
        own = {d: _extend_tree_to_records(given, by.get(d)) for d, given in tables[0].hierarchies.items()}
        by = {**by, **{d: tree for d, (tree, _) in own.items()}}
        covered = {c: _record_codes_below(c, code, by.get(c)) for c, code in tables[0].where.items()}
        used = [d for d in by if any(d in table.dimensions for table in tables)]
        return cls(
            tables=tables,
            indicator=indicator,
            column=column,
            by={d: covered[d][1] if d in covered else by[d] for d in used},
            where={c: codes for c, (codes, _) in covered.items()},
            closed={d: inner for d, (_, inner) in own.items() if inner},
        )

    def list_questions(self) -> Iterator[Question]:
        """Yield the queries to the records: each finest aggregate once."""
        for crossing in select_largest_crossings(
            tuple(self.by), list_crossings(self.by, [t.dimensions for t in self.tables], None)
        ):
            yield Question(crossing=crossing, value=self.column, where=normalize_where(self.where))

    def build_parts(self, records: Opened, options: Mapping[str, Any], *, several: bool) -> list[Part]:
        """Make the tables; if there are `several` indicators, add the indicator to each name."""
        made = self.build_tables(records, options)
        return [
            Part(
                name=f"{table.name} {self.indicator}" if several else table.name,
                table=one,
                indicator=self.indicator,
                where=table.where,
                priority=table.priority,
            )
            for table, one in zip(self.tables, made, strict=True)
        ]

    def build_tables(self, records: Opened, options: Mapping[str, Any]) -> list[Table]:
        """Make the tables."""
        try:
            linked = tabulate(
                records,
                self.by,
                self.column,
                tables=[table.dimensions for table in self.tables],
                where=self.where,
                **{"top": KEPT_CONTRIBUTIONS, **options},
            )
        except NoRecordsError as error:
            raise self._describe_empty_population(records) or error from None
        return [extract_linked_table(linked, table.dimensions, table.name, self.closed) for table in self.tables]

    def _describe_empty_population(self, records: Opened) -> CellguardError | None:
        """Return the error for a part of the population without records; name the code that no record has."""
        for column, code in self.tables[0].where.items():
            given = self.where[column]
            wanted = {given} if isinstance(given, str) else set(given)
            try:
                known = tabulate(records, column).codes[0][1:]
            except CellguardError:  # e.g. if records have no code
                known = ()
            if wanted.isdisjoint(known):
                text = f"where: no record has the code {code!r} of {column!r}."
                return UnknownCodeError(text, hint=suggest_names(code, known))
        where = ", ".join(f"{column} {code!r}" for column, code in self.tables[0].where.items())
        return InputError(f"where: there are no records with {where}.") if where else None


def _read_given_tree(given: Any) -> Hierarchy | None:
    """Return the hierarchy of a dimension; None if its codes are found in the records."""
    if given is None or is_digits_of_record_codes(given):
        return None
    several = isinstance(given, tuple) and all(isinstance(h, Hierarchy) for h in given)
    return Hierarchy.join(*given) if several else Hierarchy.of(given)


def _extend_tree_to_records(given: Any, others: Any) -> tuple[Any, Sequence[str]]:
    """Return the hierarchy of a table extended down to the codes of records, and the table's lowest codes.

    These are codes that have others below them in the hierarchy of the dimension, and represent them.
    """
    own, whole = _read_given_tree(given), _read_given_tree(others)
    if own is None or whole is None or len(own.parents) > 1:
        return given, ()
    ends = {whole.codes[i] for i in whole.leaves}
    inner = [code for code in (own.codes[i] for i in own.leaves) if code in whole.codes and code not in ends]
    pairs = [
        (h.codes[i], h.codes[int(h.parents[0][i])])
        for h in (own, *(whole.below(code) for code in inner))
        for i in range(1, len(h.codes))
    ]
    return (Hierarchy.from_pairs(pairs, total=own.total), inner) if inner else (given, ())


def _record_codes_below(column: str, code: str, given: Any) -> tuple[str | list[str], Any]:
    """Return the codes of records in a part of the population, and the hierarchy below it if there is one."""
    h = _read_given_tree(given)
    if h is None:
        return code, given
    if code not in h.codes:
        text = f"where: {column!r} has no code {code!r}."
        raise UnknownCodeError(text, hint=suggest_names(code, h.codes))
    part = h.below(code)
    return [part.codes[i] for i in part.leaves], part


def tabulate_template(
    data: Any, by: Mapping[str, Any], template: Template, indicators: Mapping[str, str | None], **options: Any
) -> list[Part]:
    """Make the tables that a template lists from records.

    Cells that it does not list are not published, but stay in the system: their sums can disclose
    others, and a sensitive cell among them may be the difference of published ones.
    """
    wanted = []
    wrong: list[CellguardError] = []
    only = next(iter(indicators)) if len(indicators) == 1 else None
    periods = {table.period for table in template.tables}
    for table in template.tables:
        indicator = table.indicator if table.indicator in indicators else only if not table.indicator else None
        if indicator is None:
            text = f"{template.source}: line {table.lines[0]}: there is no indicator {table.indicator!r}."
            wrong.append(UnknownCodeError(text, hint=suggest_names(table.indicator, indicators)))
            continue
        where = {str(template.period): table.period} if len(periods) > 1 else {}
        asked = AskedTable(name=table.name, dimensions=table.dimensions, where=where, indicators=(indicator,))
        wanted.append((table, asked))
    if wrong and not wanted:
        raise PublicationError.of(wrong)
    made, failures = _tabulate_possible_parts(data, by, [asked for _, asked in wanted], indicators, options)
    wrong += _locate_failures_in_template(failures, wanted, template)
    whole = {(part.indicator, part.table.name): part for part in made}
    parts: list[Part] = []
    for table, asked in wanted:
        if (part := whole.get((asked.indicators[0], asked.name))) is None:
            wrong += _find_unmatched_rows(table, by, template)
            continue
        cells, unknown = _select_template_cells(part.table, table, template)
        wrong += unknown
        if not unknown:
            shown = extract_part_table(part.table, cells, table.name)
            parts.append(replace(part, table=shown, source=template.source, lines=table.lines))
            parts.append(replace(part, name=f"{part.name} (all cells)", hidden=True))
    PublicationError.refuse(wrong)
    return parts


def _locate_failures_in_template(
    failures: Sequence[Failure], wanted: Sequence[tuple[TemplateTable, AskedTable]], template: Template
) -> Iterator[CellguardError]:
    """Yield each error once, with the first line of the template that has it."""
    for tables, error in _deduplicate_failures(failures):
        line = min(int(table.lines[0]) for table, asked in wanted if asked in tables)
        yield type(error)(f"{template.source}: line {line}: {error.message}", hint=error.hint)


def _find_unmatched_rows(table: TemplateTable, by: Mapping[str, Any], template: Template) -> list[CellguardError]:
    """Return errors for rows whose codes no hierarchy has, of a table that could not be made."""
    places = []
    for dimension in table.dimensions:
        h = _read_given_tree(by.get(dimension))
        places.append(None if h is None else {code: k for k, code in enumerate(h.codes)})
    return _encode_template_rows(table, places, template)[1]


def _select_template_cells(
    table: Table, asked: TemplateTable, template: Template
) -> tuple[IntArray, list[CellguardError]]:
    """Return the cells that a template lists, and errors for rows that fit no table."""
    places = [{code: k for k, code in enumerate(codes)} for codes in table.codes[: len(asked.dimensions)]]
    columns, wrong = _encode_template_rows(asked, places, template)
    return (np.zeros(0, np.int64), wrong) if wrong else (table.cells_at(np.column_stack(columns)), [])


def _encode_template_rows(
    asked: TemplateTable, places: Sequence[dict[str, int] | None], template: Template
) -> tuple[list[IntArray], list[CellguardError]]:
    """Return the code indices of a template's rows, and errors for rows with unknown codes."""
    columns = []
    wrong: list[CellguardError] = []
    for d, (dimension, place) in enumerate(zip(asked.dimensions, places, strict=True)):
        if place is None:
            continue
        total = template.totals.get(dimension)
        if total is not None:
            place.setdefault(total, 0)
        found = np.array([place.get(row[d], -1) for row in asked.codes], np.int64)
        unknown: dict[str, int] = {}
        for row in np.flatnonzero(found < 0).tolist():
            unknown.setdefault(asked.codes[row][d], int(asked.lines[row]))
        for code, line in list(unknown.items())[:20]:
            text = f"{template.source}: line {line}: fits no table: {dimension!r} has no code {code!r}."
            wrong.append(UnknownCodeError(text, hint=suggest_names(code, place)))
        columns.append(found)
    return columns, wrong


def extract_linked_table(
    linked: Table, dimensions: Iterable[str], name: str, closed: Mapping[str, Sequence[str]] | None = None
) -> Table:
    """Return one of the tables that were made together: the cells at the total of all other dimensions.

    `closed` has codes of some dimensions below which the table shows no cells.
    """
    mine = [linked.dimensions.index(d) for d in dimensions]
    others = [d for d in range(len(linked.dimensions)) if d not in mine]
    shown = ~linked.coordinates[:, others].any(axis=1)
    coarse = {}
    for dimension, codes in (closed or {}).items():
        d = linked.dimensions.index(dimension)
        coarse[d] = linked.hierarchies[d].collapse(below=codes)
        kept = np.isin(linked.codes[d], coarse[d].codes)
        shown &= kept[linked.coordinates[:, d]]
    return extract_part_table(linked, np.flatnonzero(shown), name, mine, coarse)


def extract_part_table(
    linked: Table,
    cells: IntArray,
    name: str,
    mine: Sequence[int] | None = None,
    coarse: Mapping[int, Hierarchy] | None = None,
) -> Table:
    """Return some cells and dimensions of a table made from records, with the relations among these cells.

    `coarse` has hierarchies without the codes that none of the cells has.
    """
    mine = range(len(linked.dimensions)) if mine is None else mine
    if not linked.hierarchies or linked.statistics is None:
        raise InputError(f"table {name!r} was not made from records.")
    hierarchies = tuple((coarse or {}).get(d, linked.hierarchies[d]) for d in mine)
    coordinates = linked.coordinates[cells][:, mine]
    for k, d in enumerate(mine):
        if d in (coarse or {}):
            place = {code: i for i, code in enumerate(hierarchies[k].codes)}
            coordinates[:, k] = np.array([place.get(code, -1) for code in linked.codes[d]])[coordinates[:, k]]
    statistics = linked.statistics.take(cells)
    return Table.from_equations(
        linked.values[cells],
        build_relations(hierarchies, coordinates),
        lb=linked.lb[cells],
        ub=linked.ub[cells],
        weights=linked.weights[cells],
        fixed=linked.fixed[cells],
        counts=statistics.count,
        integer=linked.integer,
        whole=linked.whole,
        known_zeros=linked.known_zeros,
        statistics=statistics,
        dimensions=tuple(linked.dimensions[d] for d in mine),
        codes=tuple(h.codes for h in hierarchies),
        hierarchies=hierarchies,
        coordinates=coordinates,
        name=name,
        library=linked.library,
    )

"""Many tables and indicators from one set of records: each finest aggregate is computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cellguard._types import IntArray
from cellguard.data.tabulate.decode import is_digits_of_record_codes
from cellguard.data.tabulate.gathered import Question, where_of_records
from cellguard.data.tabulate.opened import Opened
from cellguard.data.tabulate.request import NoRecordsError, Roles
from cellguard.data.tabulate.verb import crossings_to_tabulate, largest_crossings_to_tabulate, tabulate
from cellguard.data.template import Template, TemplateTable
from cellguard.exceptions import (
    CellguardError,
    InputError,
    PublicationError,
    UnknownCodeError,
    did_you_mean,
    errors_of_missing,
)
from cellguard.nouns.assemble import relations_from_hierarchies
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.publication import Part
from cellguard.nouns.table import Table

__all__ = ["AskedTable", "parts_tabulated_for_template", "parts_tabulated_from_records"]

_ROLES = ("weight", "holding", "shadow", "waiver", "request", "cost")
"""Options of a tabulation that name columns."""
_TOP = 3
"""How many large contributions a tabulation keeps unless told."""


@dataclass(frozen=True, kw_only=True)
class AskedTable:
    """A table that is to be made from records."""

    name: str
    """How the publication calls it."""
    dimensions: tuple[str, ...]
    """Its dimensions; all margins are published."""
    where: Mapping[str, str] = field(default_factory=dict)
    """Column -> code: only these records; of a dimension also a code that others add up to."""
    indicators: tuple[str, ...] = ()
    """What it shows; every indicator unless given."""
    priority: float = 1.0
    """How much more its cells cost."""
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    """Dimension -> its own hierarchy over the same leaves, where it is another than that of other tables."""


def parts_tabulated_from_records(
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
    >>> parts = parts_tabulated_from_records(firms, by, wanted, indicators)
    >>> [(p.name, p.indicator, p.table.n_cells) for p in parts]
    [('r x', 'x', 3), ('rs x', 'x', 9), ('r y', 'y', 3), ('rs y', 'y', 9)]
    """
    parts, failures = _parts_made_of_records(data, by, asked, indicators, options)
    PublicationError.refuse(list(_failed_to_tabulate_told(failures, asked)))
    return parts


Failure = tuple[Sequence[AskedTable], CellguardError]
"""What is wrong, and the tables that cannot be made for it."""


def _parts_made_of_records(
    data: Any,
    by: Mapping[str, Any],
    asked: Sequence[AskedTable],
    indicators: Mapping[str, str | None],
    options: Mapping[str, Any],
) -> tuple[list[Part], list[Failure]]:
    """Make all tables that can be made; return what is wrong with the others."""
    wrong = [mistake for table in asked for mistake in _names_unknown_to_records(table, by, indicators)]
    PublicationError.refuse(wrong)
    limits = {name: options.get(name) for name in ("encoding", "threads", "memory_limit")}
    columns = _record_columns_to_tabulate(by, asked, indicators, options)
    failures: list[Failure] = []
    with closing(Opened(data, columns, **limits)) as records:
        PublicationError.refuse(list(errors_of_missing("column", columns, records.columns(), place="the records: ")))
        batches = []
        for indicator, column in indicators.items():
            for group in _tables_tabulated_together(asked, indicator):
                try:
                    batches.append(_MadeTogether.of(group, by, indicator, column))
                except CellguardError as error:
                    failures.append((group, error))
        read = {name: options[name] for name in (*_ROLES, "decimal", "decimals", "skip_missing") if name in options}
        questions = [question for batch in batches for question in batch.questions()]
        records.gather(questions, Roles(dimensions=(), **read), int(options.get("top", _TOP)))
        parts = []
        for batch in batches:
            try:
                parts += batch.parts(records, options, several=len(indicators) > 1)
            except CellguardError as error:
                failures.append((batch.tables, error))
    return parts, failures


def _failed_to_tabulate_each_once(failures: Sequence[Failure]) -> Iterator[Failure]:
    """Yield each mistake once, with all tables that have it."""
    found: dict[str, Failure] = {}
    for tables, error in failures:
        before, _ = found.get(error.message, ((), error))
        found[error.message] = [*before, *(table for table in tables if table not in before)], error
    yield from found.values()


def _failed_to_tabulate_told(failures: Sequence[Failure], asked: Sequence[AskedTable]) -> Iterator[CellguardError]:
    """Yield each mistake once, naming the tables that have it where others have not."""
    for tables, error in _failed_to_tabulate_each_once(failures):
        names = ", ".join(repr(table.name) for table in tables)
        place = f"table{'s' if len(tables) > 1 else ''} {names}: " if len(tables) < max(len(asked), 2) else ""
        yield type(error)(place + error.message, hint=error.hint)


def _names_unknown_to_records(
    table: AskedTable, by: Mapping[str, Any], indicators: Mapping[str, Any]
) -> Iterator[CellguardError]:
    """Yield indicators and dimensions of a table that nobody has described."""
    place = f"table {table.name!r}: "
    yield from errors_of_missing("indicator", table.indicators, indicators, place=place)
    yield from errors_of_missing("dimension", table.dimensions, by, place=place)


def _record_columns_to_tabulate(
    by: Mapping[str, Any], asked: Sequence[AskedTable], indicators: Mapping[str, str | None], options: Mapping[str, Any]
) -> list[str]:
    """Return every column that a table needs, each once."""
    used = {name for table in asked for name in (*table.dimensions, *table.where)}
    roles = (options.get(name) for name in _ROLES)
    wanted = [*(d for d in by if d in used), *(c for table in asked for c in table.where), *indicators.values(), *roles]
    return list(dict.fromkeys(column for column in wanted if column is not None))


def _tables_tabulated_together(asked: Sequence[AskedTable], indicator: str) -> Iterator[list[AskedTable]]:
    """Yield the tables that show an indicator, by the part of the population they cover; those with own trees apart."""
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
    """What is added up; None counts records."""
    by: Mapping[str, Any]
    """Their dimensions, below the part of the population that they cover."""
    where: Mapping[str, str | list[str]]
    """Column -> codes of the records in it."""
    closed: Mapping[str, Sequence[str]]
    """Dimension -> codes that stand for all that is below them."""

    @classmethod
    def of(
        cls, tables: Sequence[AskedTable], by: Mapping[str, Any], indicator: str, column: str | None
    ) -> _MadeTogether:
        own = {d: _tree_down_to_records(given, by.get(d)) for d, given in tables[0].hierarchies.items()}
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

    def questions(self) -> Iterator[Question]:
        """Yield what the records will be asked: each finest aggregate once."""
        for crossing in largest_crossings_to_tabulate(
            tuple(self.by), crossings_to_tabulate(self.by, [t.dimensions for t in self.tables], None)
        ):
            yield Question(crossing=crossing, value=self.column, where=where_of_records(self.where))

    def parts(self, records: Opened, options: Mapping[str, Any], *, several: bool) -> list[Part]:
        """Make the tables; `several` indicators give each its name too."""
        made = self.added_up(records, options)
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

    def added_up(self, records: Opened, options: Mapping[str, Any]) -> list[Table]:
        """Make the tables."""
        try:
            linked = tabulate(
                records,
                self.by,
                self.column,
                tables=[table.dimensions for table in self.tables],
                where=self.where,
                **{"top": _TOP, **options},
            )
        except NoRecordsError as error:
            raise self._nobody(records) or error from None
        return [linked_table_of_records(linked, table.dimensions, table.name, self.closed) for table in self.tables]

    def _nobody(self, records: Opened) -> CellguardError | None:
        """Say which code of the part of the population no record has."""
        for column, code in self.tables[0].where.items():
            given = self.where[column]
            wanted = {given} if isinstance(given, str) else set(given)
            try:
                known = tabulate(records, column).codes[0][1:]
            except CellguardError:  # without any code, for one
                known = ()
            if wanted.isdisjoint(known):
                text = f"where: no record has the code {code!r} of {column!r}."
                return UnknownCodeError(text, hint=did_you_mean(code, known))
        where = ", ".join(f"{column} {code!r}" for column, code in self.tables[0].where.items())
        return InputError(f"where: there are no records with {where}.") if where else None


def _tree_given_for_records(given: Any) -> Hierarchy | None:
    """Return the hierarchy of a dimension; None where its codes are found in the records."""
    if given is None or is_digits_of_record_codes(given):
        return None
    several = isinstance(given, tuple) and all(isinstance(h, Hierarchy) for h in given)
    return Hierarchy.join(*given) if several else Hierarchy.of(given)


def _tree_down_to_records(given: Any, others: Any) -> tuple[Any, Sequence[str]]:
    """Return the hierarchy of a table down to the codes of records, and those of its codes that end it.

    These are codes that have others below them in the hierarchy of the dimension, and stand for them.
    """
    own, whole = _tree_given_for_records(given), _tree_given_for_records(others)
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
    """Return the codes of records in a part of the population, and the hierarchy below it where it has one."""
    h = _tree_given_for_records(given)
    if h is None:
        return code, given
    if code not in h.codes:
        text = f"where: {column!r} has no code {code!r}."
        raise UnknownCodeError(text, hint=did_you_mean(code, h.codes))
    part = h.below(code)
    return [part.codes[i] for i in part.leaves], part


def parts_tabulated_for_template(
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
        asked = AskedTable(name=table.name, dimensions=table.dimensions, where=where, indicators=(indicator,))
        wanted.append((table, asked))
    if wrong and not wanted:
        raise PublicationError.of(wrong)
    made, failures = _parts_made_of_records(data, by, [asked for _, asked in wanted], indicators, options)
    wrong += _template_lines_failed_to_tabulate(failures, wanted, template)
    whole = {(part.indicator, part.table.name): part for part in made}
    parts: list[Part] = []
    for table, asked in wanted:
        if (part := whole.get((asked.indicators[0], asked.name))) is None:
            wrong += _template_rows_not_tabulated(table, by, template)
            continue
        cells, unknown = _cells_tabulated_for_template(part.table, table, template)
        wrong += unknown
        if not unknown:
            shown = part_of_tabulated(part.table, cells, table.name)
            parts.append(replace(part, table=shown, source=template.source, lines=table.lines))
            parts.append(replace(part, name=f"{part.name} (all cells)", hidden=True))
    PublicationError.refuse(wrong)
    return parts


def _template_lines_failed_to_tabulate(
    failures: Sequence[Failure], wanted: Sequence[tuple[TemplateTable, AskedTable]], template: Template
) -> Iterator[CellguardError]:
    """Yield each mistake once, with the first line of the template that has it."""
    for tables, error in _failed_to_tabulate_each_once(failures):
        line = min(int(table.lines[0]) for table, asked in wanted if asked in tables)
        yield type(error)(f"{template.source}: line {line}: {error.message}", hint=error.hint)


def _template_rows_not_tabulated(
    table: TemplateTable, by: Mapping[str, Any], template: Template
) -> list[CellguardError]:
    """Return rows whose codes no hierarchy has, of a table that could not be made."""
    places = []
    for dimension in table.dimensions:
        h = _tree_given_for_records(by.get(dimension))
        places.append(None if h is None else {code: k for k, code in enumerate(h.codes)})
    return _tabulated_places_of_template_rows(table, places, template)[1]


def _cells_tabulated_for_template(
    table: Table, asked: TemplateTable, template: Template
) -> tuple[IntArray, list[CellguardError]]:
    """Return the cells that a template lists, and rows that no table has a place for."""
    places = [{code: k for k, code in enumerate(codes)} for codes in table.codes[: len(asked.dimensions)]]
    columns, wrong = _tabulated_places_of_template_rows(asked, places, template)
    return (np.zeros(0, np.int64), wrong) if wrong else (table.cells_at(np.column_stack(columns)), [])


def _tabulated_places_of_template_rows(
    asked: TemplateTable, places: Sequence[dict[str, int] | None], template: Template
) -> tuple[list[IntArray], list[CellguardError]]:
    """Return the codes of a template's rows by their number, and rows with codes that have none."""
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
            wrong.append(UnknownCodeError(text, hint=did_you_mean(code, place)))
        columns.append(found)
    return columns, wrong


def linked_table_of_records(
    linked: Table, dimensions: Iterable[str], name: str, closed: Mapping[str, Sequence[str]] | None = None
) -> Table:
    """Return one of the tables that were made together: its cells are those at the total of all other dimensions.

    `closed` has codes of some dimensions below which it shows nothing.
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
    return part_of_tabulated(linked, np.flatnonzero(shown), name, mine, coarse)


def part_of_tabulated(
    linked: Table,
    cells: IntArray,
    name: str,
    mine: Sequence[int] | None = None,
    coarse: Mapping[int, Hierarchy] | None = None,
) -> Table:
    """Return some cells, and dimensions, of a table made from records: what adds up among them is what it knows.

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
        relations_from_hierarchies(hierarchies, coordinates),
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

"""Aggregate all tables and indicators of a publication with one inspection of the records and one pass over them.

One query with grouping sets computes every finest aggregate, for every indicator and every part of the
population; each table then takes its result from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cellguard.tabulation.engines import sql
from cellguard.tabulation.request import Facts, Finest, Roles, Scale, sort_first_look

if TYPE_CHECKING:
    import pyarrow as pa

    from cellguard.tabulation.engines.duck import DuckRecords

__all__ = ["Gathered", "Question", "Where", "normalize_where"]

Where = tuple[tuple[str, tuple[str, ...]], ...]
"""The part of the population: columns, and the codes that records have there."""
_MOST_COLUMNS = 60
"""Maximum number of columns: a database numbers grouping sets by the bits of a whole number."""


def normalize_where(where: Mapping[str, str | Sequence[str]]) -> Where:
    """Return a part of the population in canonical form."""
    return tuple(
        sorted((column, (codes,) if isinstance(codes, str) else tuple(codes)) for column, codes in where.items())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A finest aggregate that a table will need."""

    crossing: tuple[str, ...]
    """Columns of codes."""
    value: str | None
    """Column to add up; None counts records."""
    where: Where
    """Of whom."""


@dataclass(kw_only=True)
class Gathered:
    """The results of all queries about some records."""

    records: DuckRecords
    """All records, numbered."""
    questions: Sequence[Question]
    roles: Roles
    """How numbers are read; each query has its own dimensions and value."""
    units: int
    """Number of largest contributions of a cell to keep."""
    _looked: list[dict[str, Any]] | None = field(default=None, init=False)
    _added: dict[frozenset[str], pa.Table] | None = field(default=None, init=False)
    _scales: dict[str | None, Scale] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, records: DuckRecords, questions: Sequence[Question], roles: Roles, units: int) -> Gathered | None:
        """Return an object for the results; None if one query cannot compute all of them."""
        special = (roles.weight, roles.holding, roles.shadow, roles.waiver, roles.request, roles.cost)
        made = cls(records=records, questions=questions, roles=roles, units=units)
        if any(special) or roles.skip_missing or len(made._codes) + len(made._parts) > _MOST_COLUMNS:
            return None
        return made if len(questions) > 1 else None

    # ------------------------------------------------------------------ what is asked

    @property
    def _values(self) -> list[str | None]:
        return list(dict.fromkeys(question.value for question in self.questions))

    @property
    def _codes(self) -> list[str]:
        """Columns of all crossings."""
        return list(dict.fromkeys(column for question in self.questions for column in question.crossing))

    @property
    def _parts(self) -> dict[str, list[str]]:
        """Columns that define parts of the population, with the codes that tables need."""
        out: dict[str, dict[str, None]] = {}
        for question in self.questions:
            for column, codes in question.where:
                out.setdefault(column, {}).update(dict.fromkeys(codes))
        return {column: list(codes) for column, codes in out.items()}

    def _format_value_sql(self, value: str | None) -> str:
        number = "1.0" if value is None else self.records.number_sql(value, self.roles.decimal)
        return sql.format_rounded_sql(number, self.roles.decimals)

    def _format_part_columns(self) -> list[str]:
        """Return SQL for the parts of the population; all other records form one group."""
        texts = {column: f"CAST({sql.quote_column(column)} AS VARCHAR)" for column in self._parts}
        return [
            f"CASE WHEN {texts[column]} IN ({sql.quote_texts(codes)}) THEN {texts[column]} END AS w{k}"
            for k, (column, codes) in enumerate(self._parts.items())
        ]

    # ------------------------------------------------------------------ the look

    def get_facts(self, roles: Roles, where: Where) -> Facts | None:
        """Return the facts about an indicator of some records before aggregation; None if they were not announced."""
        if not any(q.value == roles.value and q.where == where for q in self.questions):
            return None
        if self._looked is None:
            self._looked = self._look()
        names = [f"w{list(self._parts).index(column)}" for column, _ in where]
        rows = [
            row
            for row in self._looked
            if row["parts"] == frozenset(names)
            and all(row[name] in codes for name, (_, codes) in zip(names, where, strict=True))
        ]
        number = self._values.index(roles.value)
        added = {
            name.removesuffix(f"_{number}"): sum(row[name] or 0 for row in rows)
            for name in self._looked[0]
            if name.endswith(f"_value_{number}")
        }
        added["records"] = sum(row["records"] for row in rows)
        return sort_first_look(added)._replace(scales={"value": self._scale(roles.value)})

    def _look(self) -> list[dict[str, Any]]:
        """Inspect all records in one pass, by part of the population."""
        wanted = ["count(*) AS records"]
        for k, value in enumerate(self._values):
            if value is None:
                continue
            x, given = self.records.number_sql(value, self.roles.decimal), self.records.format_given_sql(value)
            wanted += sql.format_first_look_sql(f"value_{k}", x, given, x)
        place = {column: f"w{k}" for k, column in enumerate(self._parts)}
        sets = sorted({(), *(tuple(sorted(place[column] for column, _ in q.where)) for q in self.questions)})
        names = list(place.values())
        rows = self._group_records(wanted, names, sets, self._format_part_columns()).to_pylist()
        return [row | {"parts": _decode_grouping_set(row["grouping"], names)} for row in rows]

    def _group_records(
        self, wanted: Sequence[str], names: Sequence[str], sets: Sequence[Sequence[str]], columns: Sequence[str]
    ) -> pa.Table:
        listed = ", ".join(f"({', '.join(one)})" for one in sets)
        number = f"grouping_id({', '.join(names)})" if names else "0"
        select = ", ".join([*names, f"{number} AS grouping", *wanted])
        more = "".join(f", {column}" for column in columns)
        return self.records.run_sql(
            lambda all_: f"SELECT {select} FROM (SELECT *{more} FROM {all_}) GROUP BY GROUPING SETS ({listed})"
        )

    def _scale(self, value: str | None) -> Scale:
        """Return the scale for the exact sums of an indicator, the same in all tables."""
        if value not in self._scales:
            looked = self._looked or []
            whole = next(row for row in looked if not row["parts"])
            absolute = whole["records"] if value is None else whole[f"absolute_value_{self._values.index(value)}"]
            self._scales[value] = Scale.of(float(absolute), whole["records"])
        return self._scales[value]

    # ------------------------------------------------------------------ the pass

    def get_finest(self, roles: Roles, scales: Mapping[str, Scale], units: int, where: Where) -> Finest | None:
        """Return the records added up by some columns; None if that was not announced."""
        asked = Question(crossing=roles.dimensions, value=roles.value, where=where)
        if asked not in self.questions or (units and units != self.units):
            return None
        if self._added is None:
            self._added = dict(self._add())
        import pyarrow as pa
        import pyarrow.compute as pc

        parts = {column: f"w{k}" for k, column in enumerate(self._parts)}
        table = self._added[self._set(asked)]
        for column, codes in where:
            table = table.filter(pc.is_in(table.column(parts[column]), value_set=pa.array(codes)))
        k = self._values.index(roles.value)
        columns = {f"d{d}": table.column(f"c{self._codes.index(name)}") for d, name in enumerate(roles.dimensions)}
        columns |= {"records": table.column("records"), "n": table.column("records")}
        names = {"y0": f"y{k}_0", "y1": f"y{k}_1"} | ({"x0": f"x{k}_0", "x1": f"x{k}_1"} if "total" in scales else {})
        names |= {"top": f"top_{k}"} if units else {}
        return Finest(pa.table(columns | {name: table.column(own) for name, own in names.items()}), None, None)

    def _set(self, question: Question) -> frozenset[str]:
        """Return the columns that a query is grouped by."""
        parts = list(self._parts)
        crossed = (f"c{self._codes.index(column)}" for column in question.crossing)
        return frozenset([*crossed, *(f"w{parts.index(column)}" for column, _ in question.where)])

    def _add(self) -> Iterator[tuple[frozenset[str], pa.Table]]:
        """Add up all records, in one pass."""
        import pyarrow.compute as pc

        columns = [
            f"{sql.quote_column(column)} AS c{k}" for k, column in enumerate(self._codes)
        ] + self._format_part_columns()
        wanted = ["count(*) AS records"]
        looked = self._looked or []
        for k, value in enumerate(self._values):
            columns.append(f"{self._format_value_sql(value)} AS y{k}_")
            scale = self._scale(value)
            wanted += sql.format_exact_pair_sql(f"y{k}_", scale)
            if any(row.get(f"negative_value_{k}") for row in looked):
                wanted += sql.format_exact_pair_sql(f"x{k}_", scale, of=f"abs(y{k}_)")
            if self.units and value is not None:
                wanted.append(f"max({{x: abs(y{k}_), i: {self.records.who_sql}}}, {self.units}) AS top_{k}")
        sets = sorted({self._set(question) for question in self.questions}, key=sorted)
        names = [*(f"c{k}" for k in range(len(self._codes))), *(f"w{k}" for k in range(len(self._parts)))]
        found = self._group_records(wanted, names, [sorted(one) for one in sets], columns)
        number = found.column("grouping")
        for one in sets:
            bits = sum(1 << (len(names) - 1 - k) for k, name in enumerate(names) if name not in one)
            yield one, found.filter(pc.equal(number, bits))


def _decode_grouping_set(number: int, names: Sequence[str]) -> frozenset[str]:
    """Return the columns of a grouping set; a set bit means a column is absent, and the first column's is highest."""
    return frozenset(name for k, name in enumerate(names) if not number >> (len(names) - 1 - k) & 1)

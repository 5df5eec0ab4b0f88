"""Records in a database that Ibis supports (Spark, Trino, PostgreSQL, BigQuery, DuckDB, ...).

The same queries as in ``duck``, as expressions that Ibis translates to the database's own SQL. Only
the finest cells, their few largest contributions, and shared holdings leave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cellguard.exceptions import InputError
from cellguard.tabulation.people import People
from cellguard.tabulation.request import Facts, Finest, Roles, Scale, sort_first_look

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

__all__ = ["IbisRecords"]


class IbisRecords:
    """An Ibis table of records; the database that it belongs to does the work."""

    def __init__(self, table: ir.Table) -> None:
        self._table = table
        self._who: tuple[str, ...] | None = None
        """Columns that identify a record in every query; None until identities are needed."""
        self.people = People()

    @property
    def numbered(self) -> bool:
        """Whether a record is identified as the same person in every query."""
        return self._who is not None

    def number(self, columns: Sequence[str]) -> None:
        """Identify every record as one person in all later queries.

        Rows of a database have no number. All queries together see only the columns of a record, so records that are
        equal in all of them are in the same cells with the same amounts.
        """
        self._who = tuple(dict.fromkeys(columns))

    def list_columns(self) -> Sequence[str]:
        """Return the names of the columns."""
        return list(self._table.columns)

    def find_first_line(self, column: str, decimal: str, *, missing: bool) -> int | None:
        """Return None: rows of a database have no order."""
        del column, decimal, missing
        return None

    def restrict_to(self, where: Mapping[str, str | Sequence[str]]) -> None:
        """Leave out records with other codes."""
        codes = {column: [given] if isinstance(given, str) else list(given) for column, given in where.items()}
        self._table = self._table.filter(*(self._table[c].cast("string").isin(listed) for c, listed in codes.items()))

    def close(self) -> None:
        """Do nothing: no data were stored in the database."""

    def _run(self, expression: ir.Table) -> pa.Table:
        try:
            return expression.to_pyarrow()
        except Exception as error:  # noqa: BLE001  (every database has its own; their texts may hold records)
            raise InputError(
                f"the database could not add up the records ({type(error).__name__}).",
                hint="does the same query run in the database itself?",
            ) from None

    @staticmethod
    def _number(table: ir.Table, column: str, part: str) -> Any:
        kind = table.schema()[column]
        if not (kind.is_numeric() or kind.is_boolean()):
            raise InputError(f"column {column!r} ({part}) is of type {kind}.", hint="a column of numbers is needed.")
        return table[column].cast("float64")

    def _select_columns(self, roles: Roles) -> ir.Table:
        if not (roles.skip_missing and roles.value):
            return self._table
        x = self._number(self._table, roles.value, "value")
        return self._table.filter(x.notnull() & ~x.isnan())

    def collect_facts(self, roles: Roles) -> Facts:
        """Inspect the records in one pass."""
        t = self._select_columns(roles)
        wanted: dict[str, Any] = {"records": t.count()}
        weight = self._number(t, roles.weight, "weight") if roles.weight else None
        for part, column in roles.numeric.items():
            x = self._number(t, column, part)
            finite = x.notnull() & ~x.isnan() & ~x.isinf()
            weighted = x if weight is None or part == "weight" else x * weight
            wanted[f"missing_{part}"] = t.count(where=x.isnull() | x.isnan())
            wanted[f"bad_{part}"] = t.count(where=x.notnull() & x.isinf())
            wanted[f"negative_{part}"] = t.count(where=finite & (x < 0))
            wanted[f"absolute_{part}"] = weighted.abs().sum(where=finite).cast("float64")
            if part in ("value", "shadow"):
                wanted[f"plain_{part}"] = x.abs().sum(where=finite).cast("float64")
        if roles.holding:
            wanted["missing_holding"] = t.count(where=_find_holding_gaps(t[roles.holding]))
        return sort_first_look(self._run(t.aggregate(**wanted)).to_pylist()[0])

    def aggregate_finest(self, roles: Roles, scales: Mapping[str, Scale], units: int) -> Finest:
        """Add up the records, and keep enough of the largest contributions to fill `units` units."""
        asked = self.build_queries(roles, scales, units)
        return Finest(*(None if question is None else self._run(question) for question in asked))

    def build_queries(
        self, roles: Roles, scales: Mapping[str, Scale], units: int
    ) -> tuple[ir.Table, ir.Table | None, ir.Table | None]:
        """Return the queries: cells, large contributions, shared holdings."""
        import ibis

        items = self._name_columns(roles)
        if roles.holding:
            items = _build_holdings(roles, scales, items)
        codes = [f"d{i}" for i in range(len(roles.dimensions))]
        cells = items.group_by(codes).aggregate(**_build_measures(roles, scales, items))
        top = shared = None
        if units:
            alone = items.filter(items.cells == 1) if roles.holding else items
            order = [alone.x.desc()]
            order += [alone.w] if roles.weight else []
            order += [alone.r.desc()] if roles.request else []
            person = ["i"] if self.numbered and not roles.holding else []
            order += [alone.h] if roles.holding else [alone[name] for name in person]
            window = ibis.cumulative_window(group_by=codes, order_by=order)
            before = alone.w.sum().over(window) - alone.w if roles.weight else ibis.row_number().over(window)
            kept = [*codes, "x", *roles.select_present(weight="w", request="r", holding="h"), *person]
            ranked = alone.mutate(place=before)
            top = ranked.filter(ranked.place < units).select(kept)
        if roles.holding:
            kept = [*codes, "h", "sx", "n", *roles.select_present(waiver="q", request="r")]
            kept += ["ax", "wax", "sw"] if roles.weight else []
            shared = items.filter(items.cells > 1).select(kept)
        return cells, top, shared

    def _name_columns(self, roles: Roles) -> ir.Table:
        """Return the records with their columns named by their roles."""
        import ibis

        t = self._select_columns(roles)
        weight = self._number(t, roles.weight, "weight") if roles.weight else None
        one = ibis.literal(1.0)
        value = self._number(t, roles.value, "value") if roles.value else one
        if weight is None and roles.value:  # without weights, sum the contributions; with weights, what they represent
            value = _round_expression(value, roles.decimals)
        looked_at = self._number(t, roles.shadow, "shadow") if roles.shadow else value

        def apply_weight(x: Any) -> Any:
            return x if weight is None else weight * x

        columns: dict[str, Any] = {f"d{i}": t[name] for i, name in enumerate(roles.dimensions)}
        columns |= {
            "y": _round_expression(apply_weight(value), roles.decimals),
            "sx": looked_at,
            "x": looked_at.abs(),
            "wx": apply_weight(looked_at.abs()),
        }
        if roles.weight:
            columns["w"] = weight
        if roles.cost:
            columns["c"] = apply_weight(self._number(t, roles.cost, "cost"))
        if roles.holding:
            columns["h"] = self._build_holding(t, roles, looked_at if looked_at is not one else t[roles.holding])
        elif self._who is not None:
            columns["i"] = _record_as_text_in_ibis(t, self._who)
        if roles.waiver:
            columns["q"] = _convert_to_truth(t[roles.waiver])
        if roles.request:
            asked = t[roles.request].cast("string").strip()
            kinds = [(asked == code, kind) for kind, code in enumerate(roles.request_codes[:2], 1)]
            columns["r"] = ibis.cases(*kinds, else_=0)
        return t.select(**columns)

    def _build_holding(self, t: ir.Table, roles: Roles, order: Any) -> Any:
        """Return the holdings; a record without a holding is its own."""
        import ibis

        holding = t[roles.holding]
        if not roles.standalone:
            return holding
        number = ibis.row_number()
        if self._who is None:
            own = number.over(ibis.window(order_by=order)).cast("string")
        else:  # records that are equal in every column are still several records
            alike = _record_as_text_in_ibis(t, self._who)
            own = alike + "\x1f" + number.over(ibis.window(group_by=alike, order_by=order)).cast("string")
        return ibis.ifelse(_find_holding_gaps(holding), ibis.literal("\x1f") + own, holding.cast("string"))


def _record_as_text_in_ibis(t: ir.Table, columns: Sequence[str]) -> Any:
    """Join the columns of a record into one text."""
    import ibis

    return ibis.literal("\x1f").join([t[column].cast("string").fill_null("") for column in columns])


def _round_expression(x: Any, decimals: int | None) -> Any:
    """Round a number to `decimals` decimals; None leaves it unchanged."""
    return x if decimals is None else (x * 10.0**decimals).round().cast("float64") / 10.0**decimals


def _find_holding_gaps(holding: Any) -> Any:
    """Return which records have no holding."""
    return holding.isnull() | (holding.strip() == "") if holding.type().is_string() else holding.isnull()


def _convert_to_truth(x: Any) -> Any:
    if x.type().is_string():
        return x.strip().lower().isin(["1", "true", "t", "yes", "y"]).fill_null(False)
    return (x if x.type().is_boolean() else x != 0).fill_null(False)


def _build_exact_pair(x: Any, scale: Scale) -> tuple[Any, Any]:
    """Return the whole and the part of an exact sum (see :class:`Scale`), record by record."""
    whole = (x * scale.whole).round().cast("float64")
    part = ((x - whole / scale.whole) * (scale.whole * scale.part)).round().cast("float64")
    return whole, part


def _build_exact_total(x: Any, scale: Scale) -> Any:
    whole, part = _build_exact_pair(x, scale)
    return whole.sum().cast("float64") / scale.whole + part.sum().cast("float64") / (scale.whole * scale.part)


def _build_holdings(roles: Roles, scales: Mapping[str, Scale], records: ir.Table) -> ir.Table:
    """Return one row per cell and holding: its contribution, and in how many cells it is."""
    import ibis

    codes = [f"d{i}" for i in range(len(roles.dimensions))]
    looked = scales["contributions"]
    sums: dict[str, Any] = {
        "y": _build_exact_total(records.y, scales["value"]),
        "sx": _build_exact_total(records.sx, looked),
        "n": records.count(),
    }
    if roles.weight:
        sums |= {"ax": _build_exact_total(records.x, looked), "wax": _build_exact_total(records.wx, looked)}
        sums["sw"] = _build_exact_total(records.w, scales["weight"])
    if roles.cost:
        sums["c"] = _build_exact_total(records.c, scales["cost"])
    if roles.waiver:
        sums["q"] = records.q.all()
    if roles.request:
        sums["r"] = records.r.max()
    t = records.group_by([*codes, "h"]).aggregate(**sums)
    more: dict[str, Any] = {"x": t.sx.abs(), "cells": t.h.count().over(ibis.window(group_by="h"))}
    if roles.weight:
        mean = ibis.ifelse(t.ax > 0, t.wax / ibis.ifelse(t.ax > 0, t.ax, 1.0), t.sw / t.n)
        more |= {"w": mean, "wx": mean * t.sx.abs()}
    else:
        more["wx"] = t.sx.abs()
    return t.mutate(**more)


def _build_measures(roles: Roles, scales: Mapping[str, Scale], items: ir.Table) -> dict[str, Any]:
    """Return the aggregates of a cell."""
    alone = items.cells == 1 if roles.holding else None
    out: dict[str, Any] = {
        "records": items.n.sum().cast("int64") if roles.holding else items.count(),
        "n": items.count(where=alone),
    }
    wanted: list[tuple[str, Any, Scale, Any]] = [("y", items.y, scales["value"], None)]
    if "total" in scales:
        wanted.append(("x", items.wx, scales["total"], alone))
    if roles.weight:
        wanted.append(("w", items.w, scales["weight"], alone))
    if roles.cost:
        wanted.append(("c", items.c, scales["cost"], None))
    for name, x, scale, where in wanted:
        for half, column in enumerate(_build_exact_pair(x, scale)):
            out[f"{name}{half}"] = column.sum(where=where).cast("float64").fill_null(0.0)
    if roles.waiver:
        out["protected"] = items.x.max(where=~items.q if alone is None else ~items.q & alone)
    return out

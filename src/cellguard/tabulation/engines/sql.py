"""SQL of the queries for DuckDB; names and text are quoted only in this module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cellguard.tabulation.request import Roles, Scale

__all__ = [
    "format_exact_pair_sql",
    "format_first_look_sql",
    "format_holdings_sql",
    "format_measures_sql",
    "format_rounded_sql",
    "format_weighted_sql",
    "quote_column",
    "quote_text",
    "quote_texts",
]


def format_holdings_sql(roles: Roles, scales: Mapping[str, Scale], items: str) -> str:
    """Return SQL for one row per cell and holding: its contribution, and in how many cells it is."""
    codes = ", ".join(f"d{i}" for i in range(len(roles.dimensions)))
    looked = scales["contributions"]
    columns = [
        f"{format_exact_total_sql('y', scales['value'])} AS y",
        f"{format_exact_total_sql('sx', looked)} AS sx",
        "count(*) AS n",
    ]
    if roles.weight:
        columns += [f"{format_exact_total_sql('x', looked)} AS ax", f"{format_exact_total_sql('wx', looked)} AS wax"]
        columns.append(f"{format_exact_total_sql('w', scales['weight'])} AS sw")
    if roles.cost:
        columns.append(f"{format_exact_total_sql('c', scales['cost'])} AS c")
    if roles.waiver:
        columns.append("bool_and(q) AS q")
    if roles.request:
        columns.append("max(r) AS r")
    grouped = f"SELECT {codes}, h, {', '.join(columns)} FROM {items} GROUP BY {codes}, h"
    # A holding has the mean weight of its records, weighted by their contributions.
    mean = "CASE WHEN ax > 0 THEN wax / ax ELSE sw / n END"
    weights = f"{mean} AS w, {mean} * abs(sx) AS wx" if roles.weight else "abs(sx) AS wx"
    return f"SELECT *, abs(sx) AS x, {weights}, count(*) OVER (PARTITION BY h) AS cells FROM ({grouped})"


def format_measures_sql(roles: Roles, scales: Mapping[str, Scale]) -> list[str]:
    """Return SQL for the aggregates of a cell."""
    alone = " FILTER (cells = 1)" if roles.holding else ""
    out = [("CAST(sum(n) AS BIGINT)" if roles.holding else "count(*)") + " AS records", f"count(*){alone} AS n"]
    out += format_exact_pair_sql("y", scales["value"])
    if "total" in scales:
        out += format_exact_pair_sql("x", scales["total"], alone, of="wx")
    if roles.weight:
        out += format_exact_pair_sql("w", scales["weight"], alone)
    if roles.cost:
        out += format_exact_pair_sql("c", scales["cost"])
    if roles.waiver:
        also = " AND cells = 1" if roles.holding else ""
        out.append(f"max(x) FILTER (NOT q{also}) AS protected")
    return out


def format_exact_pair_sql(column: str, scale: Scale, where: str = "", *, of: str | None = None) -> list[str]:
    """Return SQL for the two halves of an exact sum (see :class:`Scale`)."""
    halves = enumerate(_format_exact_halves_sql(of or column, scale))
    return [f"coalesce(sum({half}){where}, 0) AS {column}{k}" for k, half in halves]


def _format_exact_halves_sql(x: str, scale: Scale) -> tuple[str, str]:
    whole = f"round({x} * {scale.whole!r})"
    return whole, f"round(({x} - {whole} / {scale.whole!r}) * {scale.whole * scale.part!r})"


def format_exact_total_sql(column: str, scale: Scale) -> str:
    """Return SQL for an exact sum."""
    whole, part = _format_exact_halves_sql(column, scale)
    return f"(sum({whole}) / {scale.whole!r} + sum({part}) / {scale.whole * scale.part!r})"


def format_first_look_sql(part: str, x: str, given: str, weighted: str) -> list[str]:
    """Return SQL that inspects numbers: how many are missing, invalid or negative, and their size."""
    return [
        f"count(*) FILTER (NOT {given}) AS missing_{part}",
        f"count(*) FILTER ({given} AND NOT coalesce(isfinite({x}), false)) AS bad_{part}",
        f"count(*) FILTER (isfinite({x}) AND {x} < 0) AS negative_{part}",
        f"coalesce(sum(abs({weighted})) FILTER (isfinite({x})), 0) AS absolute_{part}",
    ]


def format_rounded_sql(x: str, decimals: int | None) -> str:
    """Return SQL for a number rounded to `decimals` decimals; None leaves it unchanged."""
    return x if decimals is None else f"(round(({x}) * {10.0**decimals!r}) / {10.0**decimals!r})"


def format_weighted_sql(weight: str | None, x: str) -> str:
    """Return SQL for a number times its weight, if there is one."""
    return x if weight is None else f"{weight} * {x}"


def quote_column(column: str) -> str:
    """Return a column's name quoted for SQL."""
    return '"' + column.replace('"', '""') + '"'


def quote_text(words: str) -> str:
    """Return text quoted for SQL."""
    return "'" + str(words).replace("'", "''") + "'"


def quote_texts(words: str | Sequence[str]) -> str:
    """Return one or several texts as a SQL list."""
    return ", ".join(quote_text(word) for word in ([words] if isinstance(words, str) else words))

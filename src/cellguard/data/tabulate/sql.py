"""SQL of the questions that DuckDB is asked; names and text are quoted here, nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cellguard.data.tabulate.request import Roles, Scale

__all__ = [
    "column_in_sql",
    "exact_pair_in_sql",
    "first_look_in_sql",
    "holdings_in_sql",
    "measures_in_sql",
    "rounded_in_sql",
    "text_in_sql",
    "texts_in_sql",
    "weighted_in_sql",
]


def holdings_in_sql(roles: Roles, scales: Mapping[str, Scale], items: str) -> str:
    """Return SQL for one row per cell and holding: its contribution, and in how many cells it is."""
    codes = ", ".join(f"d{i}" for i in range(len(roles.dimensions)))
    looked = scales["contributions"]
    columns = [
        f"{exact_total_in_sql('y', scales['value'])} AS y",
        f"{exact_total_in_sql('sx', looked)} AS sx",
        "count(*) AS n",
    ]
    if roles.weight:
        columns += [f"{exact_total_in_sql('x', looked)} AS ax", f"{exact_total_in_sql('wx', looked)} AS wax"]
        columns.append(f"{exact_total_in_sql('w', scales['weight'])} AS sw")
    if roles.cost:
        columns.append(f"{exact_total_in_sql('c', scales['cost'])} AS c")
    if roles.waiver:
        columns.append("bool_and(q) AS q")
    if roles.request:
        columns.append("max(r) AS r")
    grouped = f"SELECT {codes}, h, {', '.join(columns)} FROM {items} GROUP BY {codes}, h"
    # A holding counts with the mean weight of its records, each as much as it contributes.
    mean = "CASE WHEN ax > 0 THEN wax / ax ELSE sw / n END"
    weights = f"{mean} AS w, {mean} * abs(sx) AS wx" if roles.weight else "abs(sx) AS wx"
    return f"SELECT *, abs(sx) AS x, {weights}, count(*) OVER (PARTITION BY h) AS cells FROM ({grouped})"


def measures_in_sql(roles: Roles, scales: Mapping[str, Scale]) -> list[str]:
    """Return SQL for what is added up in a cell."""
    alone = " FILTER (cells = 1)" if roles.holding else ""
    out = [("CAST(sum(n) AS BIGINT)" if roles.holding else "count(*)") + " AS records", f"count(*){alone} AS n"]
    out += exact_pair_in_sql("y", scales["value"])
    if "total" in scales:
        out += exact_pair_in_sql("x", scales["total"], alone, of="wx")
    if roles.weight:
        out += exact_pair_in_sql("w", scales["weight"], alone)
    if roles.cost:
        out += exact_pair_in_sql("c", scales["cost"])
    if roles.waiver:
        also = " AND cells = 1" if roles.holding else ""
        out.append(f"max(x) FILTER (NOT q{also}) AS protected")
    return out


def exact_pair_in_sql(column: str, scale: Scale, where: str = "", *, of: str | None = None) -> list[str]:
    """Return SQL for the two halves of an exact sum (see :class:`Scale`)."""
    halves = enumerate(_exact_halves_in_sql(of or column, scale))
    return [f"coalesce(sum({half}){where}, 0) AS {column}{k}" for k, half in halves]


def _exact_halves_in_sql(x: str, scale: Scale) -> tuple[str, str]:
    whole = f"round({x} * {scale.whole!r})"
    return whole, f"round(({x} - {whole} / {scale.whole!r}) * {scale.whole * scale.part!r})"


def exact_total_in_sql(column: str, scale: Scale) -> str:
    """Return SQL for an exact sum."""
    whole, part = _exact_halves_in_sql(column, scale)
    return f"(sum({whole}) / {scale.whole!r} + sum({part}) / {scale.whole * scale.part!r})"


def first_look_in_sql(part: str, x: str, given: str, weighted: str) -> list[str]:
    """Return SQL for what the first look tells of numbers: how many are missing, none, negative; and their size."""
    return [
        f"count(*) FILTER (NOT {given}) AS missing_{part}",
        f"count(*) FILTER ({given} AND NOT coalesce(isfinite({x}), false)) AS bad_{part}",
        f"count(*) FILTER (isfinite({x}) AND {x} < 0) AS negative_{part}",
        f"coalesce(sum(abs({weighted})) FILTER (isfinite({x})), 0) AS absolute_{part}",
    ]


def rounded_in_sql(x: str, decimals: int | None) -> str:
    """Return SQL for a number with so many decimals; None leaves it."""
    return x if decimals is None else f"(round(({x}) * {10.0**decimals!r}) / {10.0**decimals!r})"


def weighted_in_sql(weight: str | None, x: str) -> str:
    """Return SQL for a number times its weight, if there is one."""
    return x if weight is None else f"{weight} * {x}"


def column_in_sql(column: str) -> str:
    """Return a column's name as SQL quotes it."""
    return '"' + column.replace('"', '""') + '"'


def text_in_sql(words: str) -> str:
    """Return text as SQL quotes it."""
    return "'" + str(words).replace("'", "''") + "'"


def texts_in_sql(words: str | Sequence[str]) -> str:
    """Return one or several texts as SQL lists them."""
    return ", ".join(text_in_sql(word) for word in ([words] if isinstance(words, str) else words))

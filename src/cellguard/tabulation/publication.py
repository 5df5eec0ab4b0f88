"""``cg.tabulate_publication``: make a publication of many tables from records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cellguard.exceptions import InputError
from cellguard.model.linked.publication import Equation, Publication
from cellguard.tabulation.many import AskedTable, tabulate_parts, tabulate_template
from cellguard.tabulation.template import Template

__all__ = ["tabulate_publication"]

_KEYS = ("dimensions", "where", "indicators", "priority")


def tabulate_publication(
    data: Any,
    by: str | Sequence[str] | Mapping[str, Any],
    tables: Mapping[str, Sequence[str] | Mapping[str, Any]] | None = None,
    *,
    indicators: Mapping[str, str | None] | None = None,
    equations: Iterable[str | Equation] = (),
    template: str | Path | None = None,
    name: str = "publication",
    **options: Any,
) -> Publication:
    """Make a publication from records: all tables and indicators from one reading of them.

    Parameters
    ----------
    data, by, options
        As for :func:`cellguard.tabulate`: the records, all dimensions with their hierarchies, and the
        roles of columns (`weight`, `holding`, ...).
    tables
        Name -> its dimensions; or, if more must be specified, name -> ``{"dimensions": [...], "where": {...},
        "indicators": [...], "priority": 10}``. `where` is the part of the population that a table covers: a column
        and its code, or a dimension and any code of its hierarchy, as in ``{"region": "East"}``.
    indicators
        Name -> column to add up; None counts records. Records are counted unless given.
    equations
        Between indicators, as in ``"turnover = domestic + exports"``.
    template
        A file whose rows list the cells to be published: its tables are found from it.
    name
        Name of the publication in reports.

    Examples
    --------
    >>> import cellguard as cg
    >>> firms = {"region": ["N1", "N1", "N2", "S1"], "size": ["small", "large", "small", "large"],
    ...          "sector": ["a", "b", "a", "b"], "home": [9, 30, 4, 12], "abroad": [1, 60, 0, 8],
    ...          "all": [10, 90, 4, 20]}
    >>> found = cg.tabulate_publication(
    ...     firms, {"region": {"N": ["N1", "N2"], "S": ["S1"]}, "size": None, "sector": None},
    ...     {"by size": ["region", "size"],
    ...      "the north": {"dimensions": ["region", "sector"], "where": {"region": "N"}}},
    ...     indicators={"all": "all", "home": "home", "abroad": "abroad"}, equations=["all = home + abroad"],
    ... )
    >>> found
    Publication(6 tables, 72 distinct cells, 1 cluster, 0 sensitive)
    >>> found.apply(cg.MinFrequency(2))
    Publication(6 tables, 72 distinct cells, 1 cluster, 39 sensitive)
    """
    if (tables is None) == (template is None):
        raise InputError(
            "tables or a template are needed, and not both.", hint="tables={'by size': ['region', 'size']}"
        )
    dims = {by: None} if isinstance(by, str) else dict(by) if isinstance(by, Mapping) else dict.fromkeys(by)
    measured: Mapping[str, str | None] = indicators or {"count": None}
    if template is not None:
        listed = Template.read(template, dimensions=list(dims))
        parts = tabulate_template(data, dims, listed, measured, **options)
    else:
        asked = [_read_table_request(called, given) for called, given in (tables or {}).items()]
        parts = tabulate_parts(data, dims, asked, measured, **options)
    return Publication.of(parts, equations=equations, name=name)


def _read_table_request(name: str, given: Sequence[str] | Mapping[str, Any]) -> AskedTable:
    """Return the specification of a table from its dimensions, or from a mapping with more."""
    if not isinstance(given, Mapping):
        given = {"dimensions": [given] if isinstance(given, str) else given}
    if "dimensions" not in given or not set(given) <= set(_KEYS):
        raise InputError(f"table {name!r}: {', '.join(_KEYS)} can be said of it, and dimensions must.")
    return AskedTable(
        name=name,
        dimensions=tuple(given["dimensions"]),
        where=dict(given.get("where", {})),
        indicators=tuple(given.get("indicators", ())),
        priority=float(given.get("priority", 1.0)),
    )

"""Plan what is protected together: tables that are parts of others are merged, and clusters are formed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cellguard.exceptions import InputError
from cellguard.jobs.table_list.read import ListedTable, TableList, read_table_list
from cellguard.model.hierarchy import Hierarchy

__all__ = ["MergedTable", "TablePlan", "plan_tables"]


@dataclass(frozen=True, kw_only=True)
class MergedTable:
    """A table to protect: the listed tables that are parts of it."""

    members: tuple[ListedTable, ...]
    population: str
    """The population, or the hierarchy of populations."""
    indicator: str
    """The indicator, or the name of the tree of indicators."""
    dimensions: Mapping[str, tuple[str, ...]]
    """Hierarchy, or variable without one -> the variables of it, in the order of the list."""
    indicators: tuple[str, ...]
    """Indicators that it has."""

    @property
    def name(self) -> str:
        """The names of its members."""
        return ".".join(sorted(table.name for table in self.members))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TablePlan:
    """Tables that are protected together."""

    listed: TableList = field(repr=False)
    """What was read."""
    clusters: Mapping[str, tuple[MergedTable, ...]]
    """Name of each cluster -> its tables."""
    equations: tuple[str, ...] = ()
    """Equations between indicators, as given."""

    def __repr__(self) -> str:
        tables = sum(len(tables) for tables in self.clusters.values())
        return f"TablePlan({len(self.listed.tables)} tables become {tables} in {len(self.clusters)} clusters)"

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return {
            "listed": len(self.listed.tables),
            "tables": sum(len(tables) for tables in self.clusters.values()),
            "clusters": {name: [table.name for table in tables] for name, tables in self.clusters.items()},
        }

    def draw(self) -> str:
        """Return the picture of the plan (SVG)."""
        from cellguard.jobs.table_list.picture import draw_plan

        return draw_plan(self)

    def write_jobs(self, path: str | Path) -> list[Path]:
        """Write a job of the publication, or one for each population, and return the files."""
        from cellguard.jobs.table_list.job import write_jobs

        return write_jobs(self, Path(path))


def plan_tables(path: str | Path, *, hierarchies: str | Path | None = None, equations: Iterable[str] = ()) -> TablePlan:
    """Plan what must be protected together, from a producer's list of tables.

    Tables by variables of the same hierarchies are one table: that by municipalities contains that by regions. A table
    whose variables another one has too is part of it. Indicators of one tree, or of one equation, are one
    more dimension. Tables of the same population and indicator share cells and form a cluster.

    Parameters
    ----------
    path
        The list (.csv, .xlsx): columns ``table_name``, ``field`` (the population), ``indicator``, ``spanning_1``,
        ``spanning_2``, ... and the hierarchies ``hrc_field``, ``hrc_indicator``, ``hrc_spanning_1``, ...
    hierarchies
        Folder with a file for each hierarchy; names without a file are refused. Unless given, files beside the list
        are used where they are there.
    equations
        Equations between indicators, such as ``"turnover = domestic + exports"``; those of the indicators' trees unless
        given.
    """
    listed = read_table_list(path, hierarchies)
    given = tuple(equations) or tuple(_read_equations(listed))
    trees = _group_indicators(listed, given)
    groups: dict[tuple[str, str], list[ListedTable]] = {}
    for table in listed.tables:
        groups.setdefault((table.population.key, trees[table.indicator.variable]), []).append(table)
    several = len({population for population, _ in groups}) > 1
    clusters = {}
    for (population, indicator), tables in groups.items():
        name = f"{population}: {indicator}" if several else indicator
        clusters[name] = tuple(_merge_tables(tables, population, indicator))
    return TablePlan(listed=listed, clusters=clusters, equations=given)


def split_equation(equation: str) -> list[str]:
    """Return the indicators of an equation, the total first.

    >>> split_equation("turnover = domestic + exports")
    ['turnover', 'domestic', 'exports']
    """
    left, equals, right = equation.partition("=")
    names = [left.strip(), *(part.strip() for part in right.split("+"))]
    if not equals or not all(names):
        raise InputError(f"equation {equation!r} is not understood.", hint="as in turnover = domestic + exports.")
    return names


def _read_equations(listed: TableList) -> list[str]:
    """Return the equations of the indicators' trees, where their files are there."""
    known = {table.indicator.variable for table in listed.tables}
    trees = dict.fromkeys(table.indicator.tree for table in listed.tables if table.indicator.tree is not None)
    out = []
    for tree in (listed.files[name] for name in trees if name in listed.files):
        h = Hierarchy.read(tree)
        relations = h.relations()
        for r, total in enumerate(relations.totals.tolist()):
            parts = [h.codes[i] for i in relations.get_parts(r).tolist()]
            if {h.codes[total], *parts} <= known:
                out.append(f"{h.codes[total]} = {' + '.join(parts)}")
    return out


def _group_indicators(listed: TableList, equations: Sequence[str]) -> dict[str, str]:
    """Return the name under which the cells of each indicator are protected: its tree's, or its own."""
    group: dict[str, str] = {}
    for table in listed.tables:
        one = table.indicator
        group[one.variable] = one.variable if one.tree is None else one.tree.removeprefix("hrc_").upper()
    for equation in equations:
        names = split_equation(equation)
        unknown = next((name for name in names if name not in group), None)
        if unknown is not None:
            raise InputError(
                f"{listed.path}: equation {equation!r}: no table has the indicator {unknown!r}.",
                hint=f"the list has {', '.join(group)}.",
            )
        together = {group[name] for name in names}
        trees = {name for name in together if name not in group}
        new = min(trees) if trees else group[names[0]]
        group = {name: new if own in together else own for name, own in group.items()}
    return group


def _merge_tables(tables: Sequence[ListedTable], population: str, indicator: str) -> list[MergedTable]:
    """Merge tables whose variables are among those of another, the largest first."""
    sets: dict[frozenset[str], list[ListedTable]] = {}
    order = sorted(tables, key=lambda table: -len(table.spanning))
    for table in order:
        own = frozenset(one.key for one in table.spanning)
        home = next((keys for keys in sets if own <= keys), own)
        sets.setdefault(home, []).append(table)
    merged = []
    for members in sets.values():
        listed = sorted(members, key=lambda table: table.line)
        dimensions: dict[str, tuple[str, ...]] = {}
        for table in listed:
            for one in table.spanning:
                known = dimensions.get(one.key, ())
                dimensions[one.key] = known if one.variable in known else (*known, one.variable)
        indicators = tuple(dict.fromkeys(table.indicator.variable for table in listed))
        about: dict[str, Any] = {
            "population": population,
            "indicator": indicator,
            "dimensions": dimensions,
            "indicators": indicators,
        }
        merged.append(MergedTable(members=tuple(listed), **about))
    return sorted(merged, key=lambda table: table.members[0].line)

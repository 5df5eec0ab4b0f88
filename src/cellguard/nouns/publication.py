"""The publication: tables that share cells, protected and audited as one.

A cell is an indicator, a part of the population and a code in every dimension; the same cell in two tables is
one cell. Codes are linked by what they mean: a total by another name is the same total when it stands over
the same codes, and a code that a table does not have is at its total there. Equations between
indicators (``turnover = domestic + exports``) hold cell by cell. All of it is one linear system, so what the
methods protect and the audit attacks is the whole publication, not one table after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import CellguardError, InputError, PublicationError, errors_of_missing
from cellguard.nouns.meanings import Meanings
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.nouns.release import Release

__all__ = [
    "Equation", "Part", "Publication", "PublishedTable", "cells_shared_in_publication",
    "linked_tables_flagged_together", "publication_tables_by_name", "standing_of_publication_cells",
    "table_or_publication",
]  # fmt: skip

_log = logging.getLogger("cellguard")
INDICATOR = "indicator"
"""Name of the dimension that tells indicators apart, where there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """An indicator that is the sum of others, in every cell."""

    total: str
    """The indicator on the left."""
    terms: tuple[tuple[str, float], ...]
    """Indicators on the right, with their signs."""

    @classmethod
    def of(cls, given: Equation | str) -> Equation:
        """Read an equation as people write it.

        >>> Equation.of("turnover = domestic + exports").terms
        (('domestic', 1.0), ('exports', 1.0))
        """
        if isinstance(given, Equation):
            return given
        left, equals, right = given.partition("=")
        words = right.replace("+", " + ").replace("-", " - ").split()
        if words and words[0] not in "+-":
            words.insert(0, "+")
        well = equals and left.strip() and len(words) % 2 == 0 and words and set(words[::2]) <= {"+", "-"}
        if not well or set(words[1::2]) & {"+", "-"}:
            raise InputError(f"equation {given!r} is not understood.", hint='as in "turnover = domestic + exports".')
        signs = (1.0 if sign == "+" else -1.0 for sign in words[::2])
        made = cls(total=left.strip(), terms=tuple(zip(words[1::2], signs, strict=True)))
        if len(set(made.names)) < len(made.names):
            raise InputError(f"equation {given!r}: an indicator stands in it twice.", hint="name each of them once.")
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """Every indicator in it."""
        return (self.total, *(name for name, _ in self.terms))

    def __str__(self) -> str:
        first, *rest = ((" + " if sign > 0 else " - ") + name for name, sign in self.terms)
        return f"{self.total} = {first.removeprefix(' + ')}{''.join(rest)}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Part:
    """One table of a publication, as it came."""

    name: str
    """How the publication calls it."""
    table: Table = field(repr=False)
    """Its cells, codes and totals in their own layout; rules have been applied to it."""
    indicator: str = "value"
    """What its cells measure."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The part of the population it covers: dimension -> code; everybody unless given."""
    dimensions: Mapping[str, str] = field(default_factory=dict)
    """Its own name of a dimension -> the publication's, where they differ."""
    priority: float = 1.0
    """How much more it costs to withhold or change a cell of this table."""
    hidden: bool = False
    """Whether it is not published itself: it tells what unpublished cells add up to, and which are sensitive."""
    period: str = ""
    """The period it is about, where that is known: tables of different periods share no cell."""
    source: str = ""
    """The file it was read from, for messages."""
    sheet: str = ""
    """The table as it came, where that has several indicators: it is written with all of them side by side."""
    column: str = ""
    """How its values are called there."""
    lines: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """The line of each cell in that file; 0 where a cell has none."""
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """Where its cells stand in the publication's system."""

    def __post_init__(self) -> None:
        if not self.table.dimensions:
            raise InputError(f"table {self.name!r} has no dimensions.", hint="cells are linked by their codes.")
        if not (np.isfinite(self.priority) and self.priority > 0):
            raise InputError(f"table {self.name!r}: priority {self.priority!r} is not a number above 0.")

    def dimension(self, own: str) -> str:
        """Return the publication's name of a dimension of the table."""
        return self.dimensions.get(own, own)

    def rows(self) -> IntArray:
        """Return its cells in the order in which it is written: the rows of its file, then what was computed besides.

        Cells without contributors that had no row get none.
        """
        if not len(self.lines):
            return np.arange(self.table.n_cells)
        t = self.table
        empty = t.fixed & (t.lb == 0) & (t.ub == 0)
        listed = np.flatnonzero(self.lines > 0)
        return np.concatenate([listed[np.argsort(self.lines[listed])], np.flatnonzero((self.lines == 0) & ~empty)])

    def column_in_sheet(self, published: str) -> str:
        """Return the name of a published column where several indicators stand side by side.

        >>> part = Part(name="t exports", table=Table.from_leaves({"d": ["a"]}, [1]), sheet="t", column="exports")
        >>> part.column_in_sheet("value"), part.column_in_sheet("status")
        ('exports', 'exports_status')
        """
        return self.column if published == "value" else f"{self.column}_{published}"

    def place(self, cell: int) -> str:
        """Return how messages call the place of a cell: the table, and the line of its file."""
        line = f", line {self.lines[cell]}" if cell >= 0 and len(self.lines) and self.lines[cell] else ""
        return f"{self.name!r}" + (f" ({self.source}{line})" if self.source else "")

    def first_place(self, cells: BoolArray) -> str:
        """Return how messages call the first place of some cells: the table, and the first of their lines."""
        listed = np.flatnonzero(cells & (self.lines > 0)) if len(self.lines) else self.lines
        return self.place(int(listed[np.argmin(self.lines[listed])]) if len(listed) else -1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Publication:
    """Tables that share cells, as one system. Immutable; made by :meth:`of`.

    >>> a = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
    >>> b = Table.from_leaves({"region": ["N", "S"], "age": ["young", "old"]}, [[6, 1], [2, 3]])
    >>> Publication.of({"by sex": a, "by age": b})
    Publication(2 tables, 15 distinct cells, 1 cluster, 0 sensitive)
    """

    parts: tuple[Part, ...]
    """The tables."""
    equations: tuple[Equation, ...] = ()
    """What holds between indicators in every cell."""
    table: Table = field(repr=False)
    """The one system of distinct cells: what is protected and audited."""
    clusters: tuple[tuple[str, ...], ...] = ()
    """Names of the tables that hang together; clusters share nothing."""
    cluster_of: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """The cluster of each distinct cell."""
    tolerance: float = 1e-9
    """The share by which values of a shared cell may have differed."""

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Table | Part] | Iterable[Part],
        *,
        equations: Iterable[str | Equation] = (),
        tolerance: float = 1e-9,
        name: str = "publication",
    ) -> Publication:
        """Assemble a publication.

        Parameters
        ----------
        tables
            Name -> table, or parts where more must be said (indicator, population, names of dimensions).
        equations
            Between indicators, as in ``"turnover = domestic + exports"``.
        tolerance
            Values of a shared cell may differ by this share, as rounding makes them: all values are then moved to the
            nearest ones that add up. Larger differences are refused.
        name
            How reports call it.
        """
        from cellguard.nouns.distinct_cells import assemble

        if isinstance(tables, Mapping):
            given = [
                replace(entry, name=key) if isinstance(entry, Part) else Part(name=key, table=entry)
                for key, entry in tables.items()
            ]
        else:
            given = list(tables)
        if not given:
            raise InputError("a publication needs at least one table.")
        found, wrong = _checked_equations(given, equations)
        try:
            # what is wrong with some tables does not hide what is wrong with others
            meanings, fitting, misfits = Meanings.of(_linked_tables_of_period(given))
            wrong += misfits
            there = {part.indicator for part in fitting}
            whole = tuple(equation for equation in found if there.issuperset(equation.names))
            made = assemble(cls, fitting, whole, meanings, tolerance=tolerance, name=name)
        except CellguardError as error:
            raise PublicationError.of([*wrong, error]) from None
        PublicationError.refuse(wrong)
        return made

    def standing(self) -> FloatArray:
        """Return what each distinct cell weighs for readers: the priorities of all tables that show it, added up."""
        return standing_of_publication_cells(self.table)

    def with_table(self, table: Table) -> Publication:
        """Return the publication with its system changed (levels, weights, attackers): the cells stay."""
        return replace(self, table=table)

    def apply(self, *rules: Any, **options: Any) -> Publication:
        """Apply rules to every table, and assemble again: a cell that one table flags is sensitive everywhere."""
        parts = linked_tables_flagged_together([(part, rules) for part in self.parts], **options)
        return type(self).of(parts, equations=self.equations, tolerance=self.tolerance, name=self.table.name)

    def shared(self) -> dict[tuple[str, str], int]:
        """Return how many cells each two tables share, where they do."""
        return cells_shared_in_publication(self.parts)

    def cluster(self, number: int) -> tuple[Table, IntArray]:
        """Return the system of one cluster, and where its cells stand in the whole."""
        from cellguard.nouns.distinct_cells import restricted

        cells = np.flatnonzero(self.cluster_of == number)
        return restricted(self.table, cells), cells

    def __repr__(self) -> str:
        n, c = sum(not part.hidden for part in self.parts), len(self.clusters)
        return (
            f"Publication({n} table{'' if n == 1 else 's'}, {self.table.n_cells} distinct cells, "
            f"{c} cluster{'' if c == 1 else 's'}, {int(self.table.sensitive.sum())} sensitive)"
        )

    def _repr_html_(self) -> str:
        """Draw its tables and what they share, for a notebook."""
        from cellguard.nouns.pictures import publication_picture

        return publication_picture(self)


def linked_tables_flagged_together(given: Iterable[tuple[Part, Sequence[Any]]], **options: Any) -> list[Part]:
    """Apply to each table its rules; what a table lacks for them is told of all tables at once."""
    parts: list[Part] = []
    wrong: list[CellguardError] = []
    for part, rules in given:
        try:
            parts.append(replace(part, table=part.table.apply(*rules, **options)) if rules else part)
        except CellguardError as error:
            wrong.append(type(error)(f"table {part.place(-1)}: {error.message}", hint=error.hint))
    PublicationError.refuse(wrong)
    return parts


def _checked_equations(
    parts: Sequence[Part], equations: Iterable[str | Equation]
) -> tuple[tuple[Equation, ...], list[CellguardError]]:
    """Return the equations whose indicators are there, and whatever is wrong with names and periods."""
    wrong: list[CellguardError] = []
    names = [part.name for part in parts]
    wrong += [InputError(f"two tables are called {name!r}.") for name in dict.fromkeys(names) if names.count(name) > 1]
    found = []
    for given in equations:
        try:
            found.append(Equation.of(given))
        except InputError as error:
            wrong.append(error)
    known = list(dict.fromkeys(part.indicator for part in parts))
    for equation in found:
        wrong += errors_of_missing("indicator", equation.names, known, place=f"equation {equation}: ")
    return tuple(found), wrong + _refused_periods_of_linked_tables(parts)


def _linked_tables_of_period(parts: Sequence[Part]) -> list[Part]:
    """Return the tables of the first period, and those that say nothing of it: others share no cell with them."""
    first = next((part.period for part in parts if part.period), "")
    return [part for part in parts if part.period in ("", first)]


def _refused_periods_of_linked_tables(parts: Sequence[Part]) -> list[CellguardError]:
    """Refuse tables of different periods, unless each says which part of the population it covers."""
    dated = [part for part in parts if part.period]
    other = next((part for part in dated if part.period != dated[0].period), None)
    if other is None:
        return []
    one, two = (part.first_place(np.ones(len(part.lines), bool)) for part in (dated[0], other))
    text = f"{one} is about {dated[0].period}, {two} about {other.period}."
    return [InputError(text, hint="a publication has one period; or say where = {period = ...} of each table.")]


def cells_shared_in_publication(parts: Sequence[Part]) -> dict[tuple[str, str], int]:
    """Return how many cells each two tables share, where they do."""
    from scipy.sparse import csr_array

    sizes = [len(part.cells) for part in parts]
    columns = np.concatenate([part.cells for part in parts])
    table = np.repeat(np.arange(len(parts)), sizes)
    shape = (len(parts), int(columns.max(initial=-1)) + 1)
    shown = csr_array((np.ones(len(columns), np.int64), (table, columns)), shape=shape)
    both = (shown @ shown.T).tocoo()
    found = sorted((int(i), int(j), int(n)) for i, j, n in zip(*both.coords, both.data, strict=True) if i < j)
    return {(parts[i].name, parts[j].name): n for i, j, n in found}


def standing_of_publication_cells(table: Table) -> FloatArray:
    """Return the priorities of all tables that show a cell, added up; 1 for each cell where there are no tables."""
    if table.parts is None:
        return np.ones(table.n_cells)
    out = np.zeros(table.n_cells)
    for part in table.parts:
        out[part.cells] += part.priority
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedTable:
    """One table of a released publication, in the layout it came in."""

    part: Part
    """The table."""
    release: Release = field(repr=False)
    """The release of the whole publication."""

    def columns(self, *, mark_primary: bool = False) -> dict[str, Any]:
        """Return its codes as it spells them, and what is published of its cells."""
        from cellguard.nouns.sheets import sheet_of_part

        return sheet_of_part(self.part, self.release.columns(mark_primary=mark_primary)).columns

    def frame(self, like: Any = None) -> Any:
        """Return the table as a frame of the kind of `like`, or of the one that it was made from."""
        from cellguard._io.frames import frame_of_columns

        return frame_of_columns(self.columns(), self.part.table.library if like is None else like)


def publication_tables_by_name(release: Release) -> dict[str, PublishedTable]:
    """Return the tables of a released publication by name; none where the release is of one table."""
    return {part.name: PublishedTable(part=part, release=release) for part in release.table.parts or ()}


# ---------------------------------------------------------------------- protecting cluster by cluster

Verb = TypeVar("Verb", bound=Callable[..., "Release"])


def table_or_publication(verb: Verb) -> Verb:
    """Let a verb of a table take a publication: cluster by cluster, since they share nothing."""

    @wraps(verb)
    def both(table: Table | Publication, *args: Any, **options: Any) -> Release:
        system = table_given_to_verb(table, verb.__name__)
        if system.parts is not None:
            from cellguard.nouns.clusters import release_by_clusters
            from cellguard.nouns.lookalikes import lookalikes

            if isinstance(table, Publication):
                for one in lookalikes(system, [equation.names for equation in table.equations]):
                    _log.warning("%s: %s", verb.__name__, one.text)
            return release_by_clusters(both, system, args, options)
        begin = perf_counter()  # the log is told sizes, status and seconds, never a value
        _log.info("%s: %d cells, %d sensitive", verb.__name__, system.n_cells, int(system.sensitive.sum()))
        release = verb(system, *args, **options)
        _log.info("%s: %s after %.1f s", verb.__name__, release.status, perf_counter() - begin)
        return release

    return cast("Verb", both)


def table_given_to_verb(given: Any, verb: str) -> Table:
    """Return the table of what a verb was given; say how one is made from what is no table."""
    if isinstance(given, Publication):
        return given.table
    if isinstance(given, Table):
        return given
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}".removeprefix("builtins.")
    raise InputError(
        f"{verb}: a table is needed, not {kind}.",
        hint="records: cg.tabulate(frame, by=[...], value='...'); cells with totals: "
        "cg.Table.from_frame(frame, [...]); then table.apply(cg.PPercent(10)) says what is sensitive.",
    )

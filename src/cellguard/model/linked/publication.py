"""The publication: tables that share cells, protected and audited as one.

A cell is an indicator, a part of the population and a code in every dimension; the same cell in two tables is
one cell. Codes are linked by their meaning: a total with another name is the same total if it has the
same codes below it, and a dimension that a table lacks is at its total there. Equations between
indicators (``turnover = domestic + exports``) hold cell by cell. All of it is one linear system, so the
methods protect, and the audit attacks, the whole publication rather than one table after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cellguard._deprecation import OldName
from cellguard._hooks import call_hook
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import CellguardError, InputError, PublicationError, build_missing_errors
from cellguard.model.linked.meanings import Meanings
from cellguard.model.table import Table

__all__ = [
    "Equation",
    "Part",
    "Publication",
    "apply_rules_to_parts",
    "count_shared_cells",
    "sum_priorities",
]  # fmt: skip

INDICATOR = "indicator"
"""Name of the dimension that distinguishes indicators, if there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """An indicator that is the sum of others, in every cell."""

    total: str
    """The indicator on the left."""
    terms: tuple[tuple[str, float], ...]
    """Indicators on the right, with their signs."""

    @classmethod
    def of(cls, given: Equation | str) -> Equation:
        """Read an equation from text.

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
            raise InputError(f"equation {given!r}: an indicator occurs twice.", hint="name each of them once.")
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
    """One table of a publication, as given."""

    name: str
    """Name of the table in the publication."""
    table: Table = field(repr=False)
    """Its cells, codes and totals in its own layout; rules have been applied to it."""
    indicator: str = "value"
    """What its cells measure."""
    where: Mapping[str, str] = field(default_factory=dict)
    """The part of the population it covers: dimension -> code; the whole population unless given."""
    dimensions: Mapping[str, str] = field(default_factory=dict)
    """The table's name of a dimension -> the publication's name, where they differ."""
    priority: float = 1.0
    """Factor on the cost of withholding or changing a cell of this table."""
    hidden: bool = False
    """Whether it is not published; it then shows what unpublished cells add up to, and which are sensitive."""
    period: str = ""
    """Its reference period, if known: tables of different periods share no cell."""
    source: str = ""
    """The file it was read from, for messages."""
    sheet: str = ""
    """The original table, if it has several indicators: it is written with all of them side by side."""
    column: str = ""
    """Name of its values in that table."""
    lines: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """The line of each cell in that file; 0 where a cell has none."""
    cells: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """The index of each of its cells in the publication's system."""

    def __post_init__(self) -> None:
        if not self.table.dimensions:
            raise InputError(f"table {self.name!r} has no dimensions.", hint="cells are linked by their codes.")
        if not (np.isfinite(self.priority) and self.priority > 0):
            raise InputError(f"table {self.name!r}: priority {self.priority!r} is not a number above 0.")

    def dimension(self, own: str) -> str:
        """Return the publication's name of a dimension of the table."""
        return self.dimensions.get(own, own)

    def rows(self, row_order: str = "canonical") -> IntArray:
        """Return its cells in the order in which they are written (:data:`cellguard.release.release.ROW_ORDERS`).

        The input order is that of the rows of its file, followed by computed cells. Cells without contributors
        that had no row are left out.
        """
        t = self.table
        if not len(self.lines):
            return np.arange(t.n_cells) if row_order == "input" else t.sort_cells()
        empty = t.fixed & (t.lb == 0) & (t.ub == 0)
        if row_order != "input":
            cells = t.sort_cells()
            return np.asarray(cells[(self.lines[cells] > 0) | ~empty[cells]])
        listed = np.flatnonzero(self.lines > 0)
        return np.concatenate([listed[np.argsort(self.lines[listed])], np.flatnonzero((self.lines == 0) & ~empty)])

    def name_sheet_column(self, published: str) -> str:
        """Return the name of a published column of a table with several indicators side by side.

        >>> part = Part(name="t exports", table=Table.from_leaves({"d": ["a"]}, [1]), sheet="t", column="exports")
        >>> part.name_sheet_column("value"), part.name_sheet_column("status")
        ('exports', 'exports_status')
        """
        return self.column if published == "value" else f"{self.column}_{published}"

    def place(self, cell: int) -> str:
        """Return the place of a cell for messages: the table, and the line of its file."""
        line = f", line {self.lines[cell]}" if cell >= 0 and len(self.lines) and self.lines[cell] else ""
        return f"{self.name!r}" + (f" ({self.source}{line})" if self.source else "")

    def name_first_place(self, cells: BoolArray) -> str:
        """Return the first place of some cells for messages: the table, and the first of their lines."""
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
    """Equations between indicators that hold in every cell."""
    table: Table = field(repr=False)
    """The system of distinct cells, which is protected and audited."""
    clusters: tuple[tuple[str, ...], ...] = ()
    """Names of the tables of each cluster; clusters share no cell."""
    cluster_of: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    """The cluster of each distinct cell."""
    tolerance: float = 1e-9
    """The share by which values of a shared cell may differ."""
    different: tuple[tuple[str, ...], ...] = ()
    """Pairs of names of dimensions, indicators or codes that look alike and mean different things."""

    @classmethod
    def of(
        cls,
        tables: Mapping[str, Table | Part] | Iterable[Part],
        *,
        equations: Iterable[str | Equation] = (),
        tolerance: float = 1e-9,
        name: str = "publication",
        different: Iterable[Iterable[str]] = (),
    ) -> Publication:
        """Assemble a publication.

        Parameters
        ----------
        tables
            Name -> table, or parts if more must be specified (indicator, population, names of dimensions).
        equations
            Between indicators, as in ``"turnover = domestic + exports"``.
        tolerance
            Values of a shared cell may differ by this share, as after rounding: all values are then moved to the
            nearest ones that add up. Larger differences are refused.
        name
            Name of the publication in reports.
        different
            Pairs of names that look alike and mean different things: ``[("origin", "target")]``. Without it, a release
            that prints under one of the names what it withholds under the other is refused.
        """
        from cellguard.model.linked.distinct_cells import assemble

        if isinstance(tables, Mapping):
            given = [
                replace(entry, name=key) if isinstance(entry, Part) else Part(name=key, table=entry)
                for key, entry in tables.items()
            ]
        else:
            given = list(tables)
        if not given:
            raise InputError("a publication needs at least one table.")
        found, wrong = _check_equations(given, equations)
        try:
            # report the errors of all tables together
            meanings, fitting, misfits = Meanings.of(_select_period(given))
            wrong += misfits
            there = {part.indicator for part in fitting}
            whole = tuple(equation for equation in found if there.issuperset(equation.names))
            made = assemble(cls, fitting, whole, meanings, tolerance=tolerance, name=name)
        except CellguardError as error:
            raise PublicationError.of([*wrong, error]) from None
        PublicationError.refuse(wrong)
        return replace(made, different=tuple(tuple(pair) for pair in different))

    def sum_priorities(self) -> FloatArray:
        """Return the weight of each distinct cell for readers: the sum of the priorities of all tables that show it."""
        return sum_priorities(self.table)

    standing = OldName("sum_priorities")

    def replace_table(self, table: Table) -> Publication:
        """Return the publication with its system changed (levels, weights, attackers); the cells stay the same."""
        return replace(self, table=table)

    with_table = OldName("replace_table")

    def apply(self, *rules: Any, **options: Any) -> Publication:
        """Apply rules to every table and reassemble; a cell that one table flags is sensitive everywhere."""
        parts = apply_rules_to_parts([(part, rules) for part in self.parts], **options)
        same = {"equations": self.equations, "tolerance": self.tolerance, "different": self.different}
        return type(self).of(parts, name=self.table.name, **same)  # type: ignore[arg-type]

    def shared(self) -> dict[tuple[str, str], int]:
        """Return the number of cells that each pair of tables shares, if any."""
        return count_shared_cells(self.parts)

    def select_cluster(self, number: int) -> tuple[Table, IntArray]:
        """Return the system of one cluster, and the indices of its cells in the whole."""
        from cellguard.model.linked.distinct_cells import restrict_table

        cells = np.flatnonzero(self.cluster_of == number)
        return restrict_table(self.table, cells), cells

    cluster = OldName("select_cluster")

    def __repr__(self) -> str:
        n, c = sum(not part.hidden for part in self.parts), len(self.clusters)
        return (
            f"Publication({n} table{'' if n == 1 else 's'}, {self.table.n_cells} distinct cells, "
            f"{c} cluster{'' if c == 1 else 's'}, {int(self.table.sensitive.sum())} sensitive)"
        )

    def _repr_html_(self) -> str:
        """Draw its tables and what they share, for a notebook."""
        return str(call_hook("draw_publication", self))


def apply_rules_to_parts(given: Iterable[tuple[Part, Sequence[Any]]], **options: Any) -> list[Part]:
    """Apply to each table its rules; report what the tables lack for them, all tables at once."""
    parts: list[Part] = []
    wrong: list[CellguardError] = []
    for part, rules in given:
        try:
            parts.append(replace(part, table=part.table.apply(*rules, **options)) if rules else part)
        except CellguardError as error:
            wrong.append(type(error)(f"table {part.place(-1)}: {error.message}", hint=error.hint))
    PublicationError.refuse(wrong)
    return parts


def _check_equations(
    parts: Sequence[Part], equations: Iterable[str | Equation]
) -> tuple[tuple[Equation, ...], list[CellguardError]]:
    """Return the equations whose indicators exist, and the errors in names and periods."""
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
        wrong += build_missing_errors("indicator", equation.names, known, place=f"equation {equation}: ")
    return tuple(found), wrong + _check_periods(parts)


def _select_period(parts: Sequence[Part]) -> list[Part]:
    """Return the tables of the first period, and those without a period: others share no cell with them."""
    first = next((part.period for part in parts if part.period), "")
    return [part for part in parts if part.period in ("", first)]


def _check_periods(parts: Sequence[Part]) -> list[CellguardError]:
    """Refuse tables of different periods, unless each says which part of the population it covers."""
    dated = [part for part in parts if part.period]
    other = next((part for part in dated if part.period != dated[0].period), None)
    if other is None:
        return []
    one, two = (part.name_first_place(np.ones(len(part.lines), bool)) for part in (dated[0], other))
    text = f"{one} is about {dated[0].period}, {two} about {other.period}."
    return [InputError(text, hint="a publication has one period; or say where = {period = ...} of each table.")]


def count_shared_cells(parts: Sequence[Part]) -> dict[tuple[str, str], int]:
    """Return the number of cells that each pair of tables shares, if any."""
    from scipy.sparse import csr_array

    sizes = [len(part.cells) for part in parts]
    columns = np.concatenate([part.cells for part in parts])
    table = np.repeat(np.arange(len(parts)), sizes)
    shape = (len(parts), int(columns.max(initial=-1)) + 1)
    shown = csr_array((np.ones(len(columns), np.int64), (table, columns)), shape=shape)
    both = (shown @ shown.T).tocoo()
    found = sorted((int(i), int(j), int(n)) for i, j, n in zip(*both.coords, both.data, strict=True) if i < j)
    return {(parts[i].name, parts[j].name): n for i, j, n in found}


def sum_priorities(table: Table) -> FloatArray:
    """Return the sum of the priorities of all tables that show a cell; 1 for each cell if there are no tables."""
    if table.parts is None:
        return np.ones(table.n_cells)
    out = np.zeros(table.n_cells)
    for part in table.parts:
        out[part.cells] += part.priority
    return out


def require_table(given: Any, verb: str) -> Table:
    """Return the table from a verb's input; for other input, raise an error that explains how to make one."""
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

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
from dataclasses import dataclass, field, fields, replace
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cellguard.exceptions import InputError, UnknownCodeError, did_you_mean
from cellguard.nouns.meanings import Meanings
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from cellguard.nouns.release import Release

__all__ = ["Equation", "Part", "Publication", "PublishedTable", "published_tables", "takes_publications"]

IntArray = NDArray[np.int64]
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
        return cls(total=left.strip(), terms=tuple(zip(words[1::2], signs, strict=True)))

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
            Values of a shared cell may differ by this share, as rounding makes them; larger differences are refused.
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
        names = [part.name for part in given]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise InputError(f"two tables are called {twice!r}.")
        found = tuple(Equation.of(e) for e in equations)
        known = list(dict.fromkeys(part.indicator for part in given))
        for equation in found:
            for indicator in equation.names:
                if indicator not in known:
                    raise UnknownCodeError(
                        f"equation {equation}: there is no indicator {indicator!r}.",
                        hint=did_you_mean(indicator, known),
                    )
        meanings = Meanings.of(given)
        return assemble(cls, given, found, meanings, tolerance=tolerance, name=name)

    def with_table(self, table: Table) -> Publication:
        """Return the publication with its system changed (levels, weights, attackers): the cells stay."""
        return replace(self, table=table)

    def apply(self, *rules: Any, **options: Any) -> Publication:
        """Apply rules to every table, and assemble again: a cell that one table flags is sensitive everywhere."""
        parts = [replace(part, table=part.table.apply(*rules, **options)) for part in self.parts]
        return type(self).of(parts, equations=self.equations, name=self.table.name)

    def shared(self) -> dict[tuple[str, str], int]:
        """Return how many cells each two tables share, where they do."""
        out = {}
        for k, first in enumerate(self.parts):
            for second in self.parts[k + 1 :]:
                n = len(np.intersect1d(first.cells, second.cells))
                if n:
                    out[first.name, second.name] = n
        return out

    def cluster(self, number: int) -> tuple[Table, IntArray]:
        """Return the system of one cluster, and where its cells stand in the whole."""
        from cellguard.nouns.distinct_cells import restricted

        cells = np.flatnonzero(self.cluster_of == number)
        return restricted(self.table, cells), cells

    def __repr__(self) -> str:
        n, c = len(self.parts), len(self.clusters)
        return (
            f"Publication({n} table{'' if n == 1 else 's'}, {self.table.n_cells} distinct cells, "
            f"{c} cluster{'' if c == 1 else 's'}, {int(self.table.sensitive.sum())} sensitive)"
        )

    def _repr_html_(self) -> str:
        """Draw its tables and what they share, for a notebook."""
        from cellguard.nouns.pictures import publication_picture

        return publication_picture(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedTable:
    """One table of a released publication, in the layout it came in."""

    part: Part
    """The table."""
    release: Release = field(repr=False)
    """The release of the whole publication."""

    def columns(self, *, mark_primary: bool = False) -> dict[str, Any]:
        """Return its codes as it spells them, and what is published of its cells."""
        from cellguard._io.frames import beside

        cells, columns = self.part.cells, self.release.columns(mark_primary=mark_primary)
        published = {name: np.asarray(column)[cells] for name, column in columns.items()}
        return beside(self.part.table.cell_codes(), published)

    def frame(self, like: Any = None) -> Any:
        """Return the table as a frame of the kind of `like`, or of the one that it was made from."""
        from cellguard._io.frames import to_frame

        return to_frame(self.columns(), self.part.table.library if like is None else like)


def published_tables(release: Release) -> dict[str, PublishedTable]:
    """Return the tables of a released publication by name; none where the release is of one table."""
    return {part.name: PublishedTable(part=part, release=release) for part in release.table.parts or ()}


# ---------------------------------------------------------------------- protecting cluster by cluster

Verb = TypeVar("Verb", bound=Callable[..., "Release"])


def takes_publications(verb: Verb) -> Verb:
    """Let a verb of a table take a publication: cluster by cluster, since they share nothing."""

    @wraps(verb)
    def both(table: Table | Publication, *args: Any, **options: Any) -> Release:
        system = required_table(table, verb.__name__)
        if system.parts is None:
            return told(verb.__name__, system, lambda: verb(system, *args, **options))
        from cellguard.nouns.distinct_cells import clusters, restricted

        cluster_of, names = clusters(system, system.parts)

        def all_clusters() -> Release:
            made = []
            for number in range(len(names)):
                cells = np.flatnonzero(cluster_of == number)
                made.append((verb(restricted(system, cells), *args, **options), cells))
            return joined(system, made)

        return told(verb.__name__, system, all_clusters)

    return cast("Verb", both)


def required_table(given: Any, verb: str) -> Table:
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


def told(verb: str, table: Table, make: Callable[[], Release]) -> Release:
    """Make a release, and tell the log what happens: sizes, status and seconds, never a value."""
    begin = perf_counter()
    _log.info("%s: %d cells, %d sensitive", verb, table.n_cells, int(table.sensitive.sum()))
    release = make()
    _log.info("%s: %s after %.1f s", verb, release.status, perf_counter() - begin)
    return release


def joined(table: Table, made: Sequence[tuple[Release, IntArray]]) -> Release:
    """Put the releases of clusters together: one of the whole system."""
    from cellguard.nouns.release import Adjustment, Status

    first = made[0][0]
    if len(made) == 1:
        return replace(first, table=_with_attackers_of(table, made))
    worst = (Status.INFEASIBLE, Status.TIME_LIMIT, Status.FEASIBLE, Status.OPTIMAL)
    status = next(s for s in worst if any(release.status is s for release, _ in made))
    changed: dict[str, Any] = {
        "table": _with_attackers_of(table, made),
        "status": status,
        "objective": float(sum(release.objective for release, _ in made)),
        "bound": float(sum(release.bound for release, _ in made)),
        "explanation": " ".join(dict.fromkeys(r.explanation for r, _ in made if r.explanation)),
        "seconds": _added(release.seconds for release, _ in made),
        "details": _added(release.details for release, _ in made),
    }
    for f in fields(first):
        array = getattr(first, f.name)
        if isinstance(array, np.ndarray):
            whole = np.zeros(table.n_cells, array.dtype)
            for release, cells in made:
                whole[cells] = getattr(release, f.name)
            changed[f.name] = whole
    if isinstance(first, Adjustment):
        changed["internal"] = _joined_columns(table, made)
    steps = [getattr(release, "step", 1) for release, _ in made]
    if hasattr(first, "step"):
        changed["step"] = max(steps)  # what is published of the step holds for every cluster
    return replace(first, **changed)


def _joined_columns(table: Table, made: Sequence[tuple[Release, IntArray]]) -> dict[str, Any]:
    """Put together what made adjusted clusters, cell by cell."""
    out: dict[str, Any] = {}
    for release, cells in made:
        for name, column in getattr(release, "internal", {}).items():
            out.setdefault(name, np.zeros(table.n_cells, column.dtype))[cells] = column
    return out


def _with_attackers_of(table: Table, made: Sequence[tuple[Release, IntArray]]) -> Table:
    """Return the system with everybody that the clusters were protected against."""
    from cellguard.nouns.levels import with_respondents

    considered = any(release.table.insiders for release, _ in made)
    return with_respondents(table) if considered else table


def _added(figures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Add up the figures of clusters; what is no number is that of the first."""
    out: dict[str, Any] = {}
    for one in figures:
        for key, value in one.items():
            known = out.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool) and isinstance(known, int | float):
                out[key] = known + value
            else:
                out.setdefault(key, value)
    return out

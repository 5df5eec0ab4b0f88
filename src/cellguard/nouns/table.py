"""The table: cells, relations, what is known about them, and which are sensitive.

A table is arrays and a description, never an object per cell. Mathematically it is a vector
``a`` with ``T a = b`` and ``lb <= a <= ub``; everything a user reads is labels on top of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray
from cellguard.exceptions import LevelError, UnknownCodeError, did_you_mean, raise_error_of_missing
from cellguard.nouns.attacker import EXTERNAL, Attacker
from cellguard.nouns.checks import check_table
from cellguard.nouns.equations import equations_as_csr, levels_of_cells, mask_of_table_cells
from cellguard.nouns.levels import Levels, keep_level_widths_of_table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.data.rules import Rule
    from cellguard.nouns.assemble import Crossings
    from cellguard.nouns.hierarchy import Hierarchy

__all__ = ["Table"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Cells with relations, bounds, weights and sensitive cells. Immutable; see :meth:`with_`.

    >>> t = Table.from_equations([3, 4, 7], [[2, 0, 1]], sensitive=[0], upper=[2], lower=[2])
    >>> t
    Table(3 cells, 1 relation, 1 sensitive)
    >>> t.label(2)
    'cell 2'
    """

    values: FloatArray
    """The true value of each cell (confidential)."""
    relations: csr_array
    """One row per relation; the total has -1, its parts 1."""
    rhs: FloatArray
    """Right-hand side of each relation, nearly always 0."""
    lb: FloatArray
    """What every attacker knows: the cell is at least this."""
    ub: FloatArray
    """What every attacker knows: the cell is at most this (may be infinite)."""
    weights: FloatArray
    """Information lost when the cell is suppressed or moved by one unit."""
    fixed: BoolArray
    """Cells that must be published as they are."""
    sensitive: BoolArray
    """Cells that must be protected."""
    lower: FloatArray
    """Lower protection level of each cell, a distance; 0 where the cell is not sensitive."""
    upper: FloatArray
    """Upper protection level of each cell, a distance."""
    sliding: FloatArray
    """Sliding protection level of each cell: the width its range must have."""
    attackers: tuple[Attacker, ...] = (EXTERNAL,)
    """Everybody the release must withstand; the respondents join them (`insiders`)."""
    insiders: bool | None = None
    """Respondents as attackers: None, they join where the table knows its contributors, when it is protected or
    audited; True, they are among the attackers; False, they are not considered."""
    dimensions: tuple[str, ...] = ()
    """Names of the dimensions; empty for a table of raw equations."""
    codes: tuple[tuple[str, ...], ...] = ()
    """The codes of each dimension, totals included."""
    coordinates: Coordinates = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """One row per cell: the index of its code in each dimension."""
    hierarchies: tuple[Hierarchy, ...] = ()
    """The hierarchy of each dimension, when known: they imply the relations."""
    counts: FloatArray | None = None
    """Number of contributors of each cell, when known; infinite where others of a publication are known."""
    integer: bool = False
    """Whether the cells are counts, so that only whole numbers are possible: attackers know it too."""
    smallest_width: float | None = None
    """What a sensitive cell without levels asks for: of a count so many whole numbers (3 unless given), of a
    magnitude a range of this share of its value (0.1 unless given; :mod:`cellguard.nouns.levels`)."""
    name: str = "table"
    """How reports call the table."""
    statistics: Any = None
    """Statistics of the contributions (:class:`cellguard.data.rules.CellStatistics`), when made from microdata."""
    flags: Any = None
    """Which rule made each cell sensitive (:class:`cellguard.data.rules.Flags`), when rules did."""
    crosses: tuple[IntArray, ...] = ()
    """Of linked tables, for each indicator: the unpublished cells of their cross, as the cells that each counts in."""
    crosses_left_out: int = 0
    """How many crosses have so many cells that only the empty ones are looked at."""
    library: str | None = None
    """The library of the frame that it was made from (pandas, polars, pyarrow): releases come back as one of its."""
    parts: Any = None
    """The tables it was assembled from (:class:`cellguard.nouns.publication.Part`), when it is a publication."""
    _smallest: FloatArray | None = field(default=None, init=False, repr=False)

    # ------------------------------------------------------------------ construction

    def __post_init__(self) -> None:
        check_table(self)

    @classmethod
    def from_equations(
        cls,
        values: ArrayLike,
        relations: Any,
        *,
        rhs: ArrayLike | None = None,
        lb: ArrayLike = 0.0,
        ub: ArrayLike = np.inf,
        weights: ArrayLike | None = None,
        fixed: ArrayLike = (),
        sensitive: ArrayLike = (),
        lower: ArrayLike = 0.0,
        upper: ArrayLike = 0.0,
        sliding: ArrayLike = 0.0,
        **description: Any,
    ) -> Table:
        """Make a table from values and relations.

        Parameters
        ----------
        values
            One number per cell.
        relations
            A sparse or dense matrix, or a list of relations, each a list of cell indices whose
            **first** is the total of the others.
        rhs
            Right-hand sides, 0 unless given.
        lb, ub
            Bounds known to every attacker; one number or one per cell.
        weights
            Information loss per cell; the absolute values unless given.
        fixed, sensitive
            Indices of cells, or one truth value per cell.
        lower, upper, sliding
            Protection levels: one number, one per sensitive cell, or one per cell.
        description
            Any other field of the table (`name`, `attackers`, `counts`, ...).
        """
        a = np.asarray(values, dtype=np.float64).ravel()
        n = len(a)
        T = equations_as_csr(relations, n)
        return cls(
            values=a,
            relations=T,
            rhs=np.zeros(T.shape[0]) if rhs is None else np.asarray(rhs, np.float64),
            lb=np.broadcast_to(np.asarray(lb, np.float64), n),
            ub=np.broadcast_to(np.asarray(ub, np.float64), n),
            weights=np.abs(a) if weights is None else np.broadcast_to(np.asarray(weights, np.float64), n),
            fixed=mask_of_table_cells(fixed, n, "fixed"),
            sensitive=mask_of_table_cells(sensitive, n, "sensitive"),
            lower=levels_of_cells(lower, sensitive, n, "lower"),
            upper=levels_of_cells(upper, sensitive, n, "upper"),
            sliding=levels_of_cells(sliding, sensitive, n, "sliding"),
            **description,
        )

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        dims: Mapping[str, Any] | Sequence[str],
        *,
        value: str = "value",
        crossings: Crossings | None = None,
        missing: str = "zero",
        repair: str | None = None,
        total: str = "Total",
        status: str | None = None,
        lower: str | None = None,
        upper: str | None = None,
        sliding: str | None = None,
        weights: str | ArrayLike | None = None,
        lb: str | float = 0.0,
        ub: str | float = np.inf,
        counts: str | None = None,
        top: Sequence[str] = (),
        shadow: str | None = None,
        known_zeros: bool = True,
        tolerance: float = 0.0,
        **description: Any,
    ) -> Table:
        """Make a table from a frame with one row per cell.

        Totals that have no row are computed; a total that has one must be the sum of its parts.

        Parameters
        ----------
        frame
            A pandas, polars or pyarrow frame, or a dict of columns.
        dims
            Column of codes -> its hierarchy: a :class:`Hierarchy`, nested dicts or lists, a file, or
            None for codes that simply add up to the total. A list of names makes all of them flat.
        value
            Column of the cell values.
        crossings
            What is published, when not every margin is: each crossing names the dimensions that are
            not at their total, ``[("region", "sex"), ("region",), ()]``, or says how deep they go,
            ``{"region": 2, "sex": 1}``.
        missing
            What a cell without a row is: ``"zero"`` (an inner cell is 0), ``"error"``, or
            ``"unpublished"`` (the table consists of the listed cells only).
        repair
            ``"leaves"`` computes every total from its parts, whatever the frame says of it.
        total
            Code of the total in flat dimensions. Where a column does not have it, a code that is called like a
            total ("Ensemble", "_T", "All") and is the sum of the others is the total.
        status
            Column with s (safe), u or m (sensitive), z (fixed), or these words.
        lower, upper, sliding, counts
            Columns with protection levels and numbers of contributors.
        top, shadow
            Columns of the largest contributions, and of their total when they are those of another
            variable than the value: what rules look at (:func:`cellguard.data.rules.with_contributions`).
        known_zeros
            Whether everybody knows which cells have no contributor: those whose count is 0, of a table of counts
            those that are 0, and cells without a row. They are published as they are (:meth:`with_known_zeros`).
        tolerance
            Totals may differ from the sums of their parts by this share, as rounding makes them: values are then
            moved to the nearest ones that add up.
        weights, lb, ub
            Columns, or one number for all cells.
        description
            Any other field of the table (`name`, `attackers`, `integer`, ...).

        Examples
        --------
        >>> frame = {"region": ["N", "N", "S"], "sex": ["f", "m", "f"], "value": [3, 4, 5]}
        >>> t = Table.from_frame(frame, ["region", "sex"])
        >>> t
        Table(9 cells, 6 relations, 0 sensitive)
        >>> t.values.reshape(3, 3)  # (total, N, S) x (total, f, m)
        array([[12.,  8.,  4.],
               [ 7.,  3.,  4.],
               [ 5.,  5.,  0.]])
        """
        from cellguard.nouns.assemble import FrameReading, table_from_frame

        columns = {
            "status": status, "lower": lower, "upper": upper, "sliding": sliding,
            "weights": weights, "lb": lb, "ub": ub, "counts": counts,
        }  # fmt: skip
        reading = FrameReading(
            value=value, columns=columns, crossings=crossings, missing=missing, repair=repair, total=total,
            known_zeros=known_zeros, tolerance=tolerance,
        )  # fmt: skip
        table = table_from_frame(frame, dims, reading, **description)
        if not top and shadow is None:
            return table
        from cellguard.data.rules.contributions import with_contributions

        return with_contributions(table, frame, top=top, counts=counts, shadow=shadow, known_zeros=known_zeros)

    @classmethod
    def from_leaves(
        cls, dims: Mapping[str, Any], leaves: ArrayLike, *, crossings: Crossings | None = None, **fields: Any
    ) -> Table:
        """Make a table from the values of its leaf cells, one axis of the array per dimension.

        Parameters
        ----------
        dims
            Name of each dimension -> its hierarchy.
        leaves
            Values for all combinations of leaf codes, in the order of `Hierarchy.leaves`.
        crossings
            What is published, when not every margin is (see :meth:`from_frame`).
        fields
            Whatever :meth:`from_equations` takes: weights, sensitive, lower, upper, name, ...

        Examples
        --------
        >>> Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
        Table(9 cells, 6 relations, 0 sensitive)
        """
        from cellguard.nouns.assemble import table_from_leaves

        return table_from_leaves(dims, leaves, crossings=crossings, **fields)

    @classmethod
    def from_linked(cls, tables: Sequence[Table], **description: Any) -> Table:
        """Join tables that share cells: cells with the same codes become one cell.

        A dimension that a table does not have counts as its total there. Values of shared cells
        must agree; bounds are the tightest and levels the widest of the tables'.

        >>> a = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
        >>> b = Table.from_leaves({"region": ["N", "S"], "age": ["young", "old"]}, [[6, 1], [2, 3]])
        >>> Table.from_linked([a, b])  # three cells, the margin by region, are in both
        Table(15 cells, 11 relations, 0 sensitive)
        """
        from cellguard.nouns.linked import table_from_linked

        return table_from_linked(tables, **description)

    @classmethod
    def read(cls, path: str | Path) -> Table:
        """Read a table: a JJ file (``.jj``, ``.jj.gz``), or cells (``.csv``, ``.parquet``) with a description.

        The description is the TOML file of the same name beside the cells; see the manual.
        """
        from cellguard.nouns.store import read_stored_table

        return read_stored_table(path)

    @staticmethod
    def files(path: str | Path) -> list[Path]:
        """Return every file that :meth:`read` reads: the table's own, its description, and what that names."""
        from cellguard.nouns.store import files_of_stored_table

        return files_of_stored_table(path)

    def write(self, path: str | Path) -> None:
        """Write the table, atomically. It holds the true values: keep it internal.

        ``.jj`` and ``.jj.gz`` hold the numbers; ``.csv`` and ``.parquet``, with the TOML file written
        beside them, hold everything but the statistics of the contributions.
        """
        from cellguard.nouns.store import store_table

        store_table(self, path)

    def frame(self, like: Any = None) -> Any:
        """Return the cells as a frame of the kind of `like`, or of the one that the table was made from.

        Codes, value, and columns for whatever differs from the usual: status, weight, lb, ub, lower,
        upper, sliding, count.
        """
        from cellguard._io.frames import frame_of_columns
        from cellguard.nouns.store import table_as_columns

        return frame_of_columns(table_as_columns(self), self.library if like is None else like)

    def with_(self, **changes: Any) -> Table:
        """Return the table with some fields changed.

        >>> t = Table.from_equations([3, 4, 7], [[2, 0, 1]])
        >>> t.with_(weights=np.ones(3)).weights
        array([1., 1., 1.])
        """
        if self.insiders and not changes.keys() <= _WITHOUT_RESPONDENTS:
            # what respondents know and must not learn follows from the rest: they are found again when needed
            others = tuple(a for a in self.attackers if not a.derived)
            changes = {"attackers": others, **changes}
        out = replace(self, **changes)
        if self._smallest is not None:
            keep_level_widths_of_table(self._smallest, out, changes.keys())
        return out

    def with_known_zeros(self, empty: ArrayLike) -> Table:
        """Return the table in which cells are known to be empty: they are published, and everybody knows the zero.

        Who looks around knows which cells have no contributor; one that is withheld hides nothing. Sensitive cells
        stay as they are.

        >>> t = Table.from_equations([3, 0, 3], [[2, 0, 1]]).with_known_zeros([1])
        >>> t.fixed, t.ub
        (array([False,  True, False]), array([inf,  0., inf]))
        """
        known = mask_of_table_cells(empty, self.n_cells, "empty") & ~self.sensitive & (self.values == 0)
        lb, ub = np.where(known, 0.0, self.lb), np.where(known, 0.0, self.ub)
        return self.with_(fixed=self.fixed | known, lb=lb, ub=ub)

    def with_levels(self, lower: float, upper: float, *, sliding: float = 0.0) -> Table:
        """Return the table with levels that are fractions of the sensitive cells' values.

        Symmetric levels make the true value the midpoint of most ranges; baena2018 recommends
        asymmetric ones, 5% down and 20% up: ``table.with_levels(0.05, 0.20)``. A level is cut
        where the known bounds leave less room.
        """
        for name, share in (("lower", lower), ("upper", upper), ("sliding", sliding)):
            if not (np.isfinite(share) and share >= 0):
                raise LevelError(f"{name} level {share!r}: a fraction of the value, at least 0, is needed.")
        a = np.where(self.sensitive, np.abs(self.values), 0.0)
        lo = np.minimum(lower * a, self.values - self.lb)
        up = np.minimum(upper * a, self.ub - self.values)
        return self.with_(lower=lo, upper=up, sliding=np.minimum(sliding * a, self.ub - self.lb))

    def with_weights(self, kind: str) -> Table:
        """Return the table with weights by the values: unit, value, inverse, sqrt or log; `table` keeps its own.

        >>> Table.from_equations([3, 4, 7], [[2, 0, 1]]).with_weights("unit").weights
        array([1., 1., 1.])
        """
        if kind == "table":
            return self
        from cellguard.nouns.publication import standing_of_publication_cells
        from cellguard.nouns.weights import weights_by_value

        # a cell of a publication counts in every table that shows it, by the table's priority
        return self.with_(weights=standing_of_publication_cells(self) * weights_by_value(kind, self.values))

    def apply(self, *rules: Rule | Callable[[Any], Any], lower_ratio: float = 1.0) -> Table:
        """Return the table with the cells that the rules flag made sensitive (:func:`cellguard.data.rules.apply`).

        >>> import cellguard as cg
        >>> t = Table.from_equations([2, 5, 7], [[2, 0, 1]], integer=True).apply(cg.MinFrequency(3))
        >>> t.sensitive_cells
        array([0])
        >>> t.reasons(0)
        ('minimum frequency (3): fewer than 3 contributors',)
        """
        from cellguard.data.rules import apply

        return apply(self, *rules, lower_ratio=lower_ratio)

    # ------------------------------------------------------------------ what it is

    def reasons(self, cell: int) -> tuple[str, ...]:
        """Return which rules made the cell sensitive and why, without showing any contribution."""
        return () if self.flags is None else tuple(self.flags.of(cell))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.values)

    @property
    def n_relations(self) -> int:
        """Number of relations."""
        return int(self.relations.shape[0])

    @property
    def sizes(self) -> dict[str, int]:
        """How many cells, sensitive cells and relations."""
        return {"cells": self.n_cells, "sensitive": int(self.sensitive.sum()), "relations": self.n_relations}

    @property
    def sensitive_cells(self) -> IntArray:
        """Indices of the sensitive cells."""
        return np.flatnonzero(self.sensitive)

    @property
    def inner(self) -> BoolArray:
        """Which cells nothing adds up to."""
        out = np.ones(self.n_cells, bool)
        out[self.relations.indices[self.relations.data < 0]] = False
        return out

    def bounds(self, attacker: Attacker = EXTERNAL) -> tuple[FloatArray, FloatArray]:
        """What the attacker knows of each cell before the release: the tighter of both bounds."""
        lo, hi = self.lb, self.ub
        if len(attacker.cells):
            lo, hi = lo.copy(), hi.copy()
            lo[attacker.cells] = np.maximum(lo[attacker.cells], attacker.lb)
            hi[attacker.cells] = np.minimum(hi[attacker.cells], attacker.ub)
        return lo, hi

    def levels(self, attacker: Attacker = EXTERNAL) -> Levels:
        """What must be protected against the attacker: his own levels, or the table's."""
        if attacker.sensitive is not None:
            return Levels(
                cells=attacker.sensitive, lower=attacker.lower, upper=attacker.upper, sliding=attacker.sliding
            )
        s = self.sensitive_cells
        return Levels(cells=s, lower=self.lower[s], upper=self.upper[s], sliding=self.sliding[s])

    def cell_codes(self, cells: ArrayLike | None = None) -> dict[str, list[str]]:
        """Codes of the cells, one list per dimension; the cell's index when there are none."""
        index = np.arange(self.n_cells) if cells is None else np.atleast_1d(np.asarray(cells))
        if not self.dimensions:
            return {"cell": [str(i) for i in index]}
        out = {}
        for d, dimension in enumerate(self.dimensions):
            codes = np.asarray(self.codes[d], dtype=object)
            out[dimension] = codes[self.coordinates[index, d]].tolist()
        return out

    def codes_of(self, cell: int) -> dict[str, str]:
        """Return the code of a cell in each dimension; :meth:`cell` finds it by them."""
        if not self.dimensions:
            return {"cell": str(cell)}
        own = zip(self.dimensions, self.codes, self.coordinates[cell], strict=True)
        return {dimension: codes[code] for dimension, codes, code in own}

    def cells_at(self, coordinates: ArrayLike) -> IntArray:
        """Return the cell at each row of indices of codes, one for each dimension; -1 where there is none."""
        from cellguard._engine.space.cell_grid import keys_on_cell_grid, places_on_cell_grid

        sizes = [len(codes) for codes in self.codes]
        wanted = np.asarray(coordinates, np.int32)
        return places_on_cell_grid(keys_on_cell_grid(self.coordinates, sizes), keys_on_cell_grid(wanted, sizes), sizes)

    def cell(self, codes: Mapping[str, str]) -> int:
        """Return the index of the cell with these codes; dimensions that are left out are at their total.

        >>> t = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
        >>> t.label(t.cell({"region": "S"}))
        '(region=S, sex=Total)'
        """
        raise_error_of_missing("dimension", codes, self.dimensions)
        match = np.ones(self.n_cells, dtype=bool)
        for d, dimension in enumerate(self.dimensions):
            code = codes.get(dimension, self.codes[d][0])
            if code not in self.codes[d]:
                hint = did_you_mean(code, self.codes[d])
                raise UnknownCodeError(f"dimension {dimension!r}: unknown code {code!r}.", hint=hint)
            match &= self.coordinates[:, d] == self.codes[d].index(code)
        found = np.flatnonzero(match)
        if len(found) != 1:
            shown = ", ".join(f"{d}={c}" for d, c in codes.items())
            raise UnknownCodeError(f"the table does not publish a cell ({shown}).")
        return int(found[0])

    def label(self, cell: int) -> str:
        """Name of a cell for messages: its codes, never its value."""
        if not self.dimensions:
            return f"cell {cell}"
        return "(" + ", ".join(f"{d}={code}" for d, code in self.codes_of(cell).items()) + ")"

    def cells_of_relation(self, relation: int) -> tuple[IntArray, FloatArray]:
        """Return the cells of a relation and their coefficients."""
        span = slice(self.relations.indptr[relation], self.relations.indptr[relation + 1])
        return self.relations.indices[span], self.relations.data[span]

    def relation_label(self, relation: int) -> str:
        """Name of a relation for messages: its total and its parts."""
        cells, signs = self.cells_of_relation(relation)
        total, parts = cells[signs < 0], cells[signs > 0]
        if len(total) != 1:
            shown = " ".join(
                f"{'+' if s > 0 else '-'} {self.label(int(c))}" for c, s in zip(cells[:4], signs[:4], strict=True)
            )
            return shown + (" ..." if len(cells) > 4 else "")
        shown = " + ".join(self.label(int(c)) for c in parts[:3])
        more = f" + {len(parts) - 3} more" if len(parts) > 3 else ""
        return f"{self.label(int(total[0]))} = {shown}{more}"

    def __repr__(self) -> str:
        m, s = self.n_relations, int(self.sensitive.sum())
        return f"Table({self.n_cells} cells, {m} relation{'' if m == 1 else 's'}, {s} sensitive)"

    def _repr_html_(self) -> str:
        """Draw the table with its true values, sensitive cells marked: for the office's own notebook."""
        from cellguard.nouns.pictures import table_picture

        return table_picture(self)


_WITHOUT_RESPONDENTS = {"attackers", "insiders", "weights", "name", "flags", "parts", "crosses", "crosses_left_out"}
"""Fields that change nothing in what respondents know or must not learn."""

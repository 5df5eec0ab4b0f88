"""The table: cells, relations, prior knowledge about them, and which cells are sensitive.

A table consists of arrays and a description, never of one object per cell. Mathematically it is a vector
``a`` with ``T a = b`` and ``lb <= a <= ub``; everything a user reads is a label on top of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._deprecation import OldName
from cellguard._hooks import call_hook
from cellguard._quantities import Ratio, Share, check_share
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.model.checks import check_table
from cellguard.model.levels import add_respondents, keep_level_widths_of_table
from cellguard.model.parts.protection import ProtectedCells
from cellguard.model.sources.equations import convert_relations, expand_levels, mask_of_table_cells

if TYPE_CHECKING:
    from cellguard.model.sources.assemble import Crossings
    from cellguard.rules import Rule

__all__ = ["Table"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(ProtectedCells):
    """Cells with relations, bounds, weights and sensitive cells. Immutable; see :meth:`with_`.

    Its fields form four parts. Each builds on the one before it and has its own module (:mod:`cellguard.model.parts`):

    - structure (:class:`~cellguard.model.parts.structure.Structure`): cells, codes, relations;
    - contents (:class:`~cellguard.model.parts.contents.Contents`): values, weights, what every attacker knows;
    - protection (:class:`~cellguard.model.parts.protection.ProtectedCells`): sensitive cells, levels, attackers;
    - origin, here: its name, the records and the publication from which it was made.

    >>> t = Table.from_equations([3, 4, 7], [[2, 0, 1]], sensitive=[0], upper=[2], lower=[2])
    >>> t
    Table(3 cells, 1 relation, 1 sensitive)
    >>> t.label(2)
    'cell 2'
    """

    name: str = "table"
    """Name of the table in reports."""
    statistics: Any = None
    """Statistics of the contributions (:class:`cellguard.rules.CellStatistics`), when made from microdata."""
    crosses: tuple[IntArray, ...] = ()
    """For each indicator of linked tables: the unpublished cells of their cross, as the cells each contributes to."""
    crosses_left_out: int = 0
    """Number of crosses that are too large, so that only their empty cells are used."""
    library: str | None = None
    """Library of the source frame (pandas, polars, pyarrow); releases return frames of the same library."""
    parts: Any = None
    """The tables of a publication (:class:`cellguard.model.linked.publication.Part`), if it is one."""

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
        T = convert_relations(relations, n)
        return cls(
            values=a,
            relations=T,
            rhs=np.zeros(T.shape[0]) if rhs is None else np.asarray(rhs, np.float64),
            lb=np.broadcast_to(np.asarray(lb, np.float64), n),
            ub=np.broadcast_to(np.asarray(ub, np.float64), n),
            weights=np.abs(a) if weights is None else np.broadcast_to(np.asarray(weights, np.float64), n),
            fixed=mask_of_table_cells(fixed, n, "fixed"),
            sensitive=mask_of_table_cells(sensitive, n, "sensitive"),
            lower=expand_levels(lower, sensitive, n, "lower"),
            upper=expand_levels(upper, sensitive, n, "upper"),
            sliding=expand_levels(sliding, sensitive, n, "sliding"),
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
        known_zeros: bool | None = True,
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
            not at their total, ``[("region", "sex"), ("region",), ()]``, or gives their depths,
            ``{"region": 2, "sex": 1}``.
        missing
            How to treat a cell without a row: ``"zero"`` (an inner cell is 0), ``"error"``, or
            ``"unpublished"`` (the table consists of the listed cells only).
        repair
            ``"leaves"`` computes every total from its parts and ignores the frame's value.
        total
            Code of the total in flat dimensions. If a column does not have it, a code that is named like a
            total ("Ensemble", "_T", "All") and is the sum of the others is the total.
        status
            Column with s (safe), u or m (sensitive), z (fixed), or these words.
        lower, upper, sliding, counts
            Columns with protection levels and numbers of contributors.
        top, shadow
            Columns of the largest contributions, and of their total when they are those of another
            variable than the value: what rules look at (:func:`cellguard.rules.add_contributions`).
        known_zeros
            Whether every attacker knows which cells have no contributor: cells with a count of 0, zero cells of a
            table of counts, and cells without a row. They are published unchanged (:meth:`with_known_zeros`), and
            attackers assume that a withheld cell is not empty. None: only for a table of counts.
        tolerance
            Totals may differ from the sums of their parts by this share, as after rounding: values are then
            moved to the nearest ones that add up.
        weights, lb, ub
            Columns, or one number for all cells.
        description
            Any other field of the table (`name`, `attackers`, `integer`, ...). Values that are all whole are taken
            for whole numbers unless `integer` is given.

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
        from cellguard.model.sources.assemble import FrameReading, build_from_frame

        columns = {
            "status": status, "lower": lower, "upper": upper, "sliding": sliding,
            "weights": weights, "lb": lb, "ub": ub, "counts": counts,
        }  # fmt: skip
        reading = FrameReading(
            value=value, columns=columns, crossings=crossings, missing=missing, repair=repair, total=total,
            known_zeros=known_zeros, tolerance=tolerance,
        )  # fmt: skip
        description = {"whole": "integer" not in description, **description}
        table = build_from_frame(frame, dims, reading, **description)
        if not top and shadow is None:
            return table
        options = {"top": top, "counts": counts, "shadow": shadow, "known_zeros": known_zeros is not False}
        full: Table = call_hook("add_contributions", table, frame, **options)
        return full

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
            Any argument of :meth:`from_equations`: weights, sensitive, lower, upper, name, ...

        Examples
        --------
        >>> Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
        Table(9 cells, 6 relations, 0 sensitive)
        """
        from cellguard.model.sources.assemble import build_from_leaves

        return build_from_leaves(dims, leaves, crossings=crossings, **fields)

    @classmethod
    def from_linked(cls, tables: Sequence[Table], **description: Any) -> Table:
        """Join tables that share cells: cells with the same codes become one cell.

        A dimension that a table lacks counts as its total there. Values of shared cells
        must agree; bounds are the tightest and levels the widest of all tables.

        >>> a = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
        >>> b = Table.from_leaves({"region": ["N", "S"], "age": ["young", "old"]}, [[6, 1], [2, 3]])
        >>> Table.from_linked([a, b])  # three cells, the margin by region, are in both
        Table(15 cells, 11 relations, 0 sensitive)
        """
        from cellguard.model.linked.join import build_from_linked

        return build_from_linked(tables, **description)

    @classmethod
    def read(cls, path: str | Path) -> Table:
        """Read a table: a JJ file (``.jj``, ``.jj.gz``), or cells (``.csv``, ``.parquet``) with a description.

        The description is the TOML file of the same name next to the cells; see the manual.
        """
        from cellguard.model.sources.store import read_stored_table

        return read_stored_table(path)

    @staticmethod
    def files(path: str | Path) -> list[Path]:
        """Return every file that :meth:`read` reads: the table, its description, and the files that it names."""
        from cellguard.model.sources.store import list_table_files

        return list_table_files(path)

    def write(self, path: str | Path) -> None:
        """Write the table, atomically. It holds the true values: only its owner may read the files (mode 0600).

        ``.jj`` and ``.jj.gz`` hold the numbers; ``.csv`` and ``.parquet``, with the TOML file written
        next to them, hold everything but the statistics of the contributions.
        """
        from cellguard.model.sources.store import store_table

        store_table(self, path)

    def frame(self, like: Any = None) -> Any:
        """Return the cells as a frame of the same library as `like`, or as the table's source frame.

        Codes, value, and columns for fields that differ from their defaults: status, weight, lb, ub, lower,
        upper, sliding, count.
        """
        from cellguard._io.frames import build_frame
        from cellguard.model.sources.store import build_columns

        return build_frame(build_columns(self), self.library if like is None else like)

    def with_(self, **changes: Any) -> Table:
        """Return the table with some fields changed. All other fields keep their values.

        What was derived from the table follows a change that may affect it: respondents among the attackers, and what
        the rules of publication reveal, are derived again. A change that names `attackers` or `insiders` decides
        itself who attacks; derived knowledge that it affects is then removed until the table is protected or audited.

        >>> t = Table.from_equations([3, 4, 7], [[2, 0, 1]])
        >>> t.with_(weights=np.ones(3)).weights
        array([1., 1., 1.])
        """
        independent = changes.keys() <= _INDEPENDENT_FIELDS
        out = replace(self, **(changes if independent else {**self._get_given_fields(), **changes}))
        if independent:
            object.__setattr__(out, "_given", self._given)
        if self._smallest is not None:
            keep_level_widths_of_table(self._smallest, out, changes.keys())
        decided = independent or bool(changes.keys() & {"attackers", "insiders"})
        return add_respondents(out) if self._is_derived and not decided else out

    @property
    def _is_derived(self) -> bool:
        """Whether it has respondents among its attackers, or what the rules of publication reveal."""
        return self.has_public_knowledge or any(attacker.derived for attacker in self.attackers)

    def _get_given_fields(self) -> dict[str, Any]:
        """Return the fields that were changed by deriving attackers and public knowledge, as they were before."""
        given = dict(self._given or {})
        if self.insiders:
            given["attackers"] = tuple(attacker for attacker in self.attackers if not attacker.derived)
        return given

    def with_known_zeros(self, empty: ArrayLike) -> Table:
        """Return the table in which some cells are known to be empty; their zeros are published and known to attackers.

        Local observers know which cells have no contributor, so withholding one hides nothing. Sensitive cells
        are unchanged. Every attacker then assumes that a withheld cell is not empty (`known_zeros`).

        >>> t = Table.from_equations([3, 0, 3], [[2, 0, 1]]).with_known_zeros([1])
        >>> t.fixed, t.ub
        (array([False,  True, False]), array([inf,  0., inf]))
        """
        known = mask_of_table_cells(empty, self.n_cells, "empty") & ~self.sensitive & (self.values == 0)
        lb, ub = np.where(known, 0.0, self.lb), np.where(known, 0.0, self.ub)
        return self.with_(fixed=self.fixed | known, lb=lb, ub=ub, known_zeros=True)

    def apply_public_knowledge(self, *, lb: FloatArray, ub: FloatArray, fixed: BoolArray) -> Table:
        """Return the table with what the rules of publication reveal.

        See :func:`cellguard.attackers.add_public_knowledge`. :meth:`with_` removes it when a field that it depends on
        may change.
        """
        changes: dict[str, Any] = {
            "lb": lb, "ub": ub, "fixed": fixed,
            "lower": np.minimum(self.lower, np.maximum(self.values - lb, 0.0)),
            "upper": np.minimum(self.upper, np.maximum(ub - self.values, 0.0)),
            "sliding": np.minimum(self.sliding, ub - lb),
        }  # fmt: skip
        out = replace(self, **changes, attackers=tuple(a.reduce_levels(self.values, lb, ub) for a in self.attackers))
        object.__setattr__(out, "_given", {name: getattr(self, name) for name in changes})
        if self._smallest is not None:
            keep_level_widths_of_table(self._smallest, out)
        return out

    with_public_knowledge = OldName("apply_public_knowledge")

    def remove_public_knowledge(self) -> Table:
        """Return the table with its original bounds and attackers, before any were derived."""
        if self._given is None:
            return self
        given = tuple(attacker for attacker in self.attackers if not attacker.derived)
        return self.with_(known_zeros=self.known_zeros, attackers=given)

    without_public_knowledge = OldName("remove_public_knowledge")

    def with_levels(self, lower: Share, upper: Share, *, sliding: Share = 0.0) -> Table:
        """Return the table with levels that are shares (0 to 1) of the sensitive cells' values.

        Symmetric levels make the true value the midpoint of most ranges; baena2018 recommends
        asymmetric ones, 5% down and 20% up: ``table.with_levels(0.05, 0.20)``. A level is reduced
        where the known bounds leave less slack.
        """
        for name, share in (("lower", lower), ("upper", upper), ("sliding", sliding)):
            check_share(f"{name} level", share)
        a = np.where(self.sensitive, np.abs(self.values), 0.0)
        lo = np.minimum(lower * a, self.values - self.lb)
        up = np.minimum(upper * a, self.ub - self.values)
        return self.with_(lower=lo, upper=up, sliding=np.minimum(sliding * a, self.ub - self.lb))

    def with_weights(self, kind: str) -> Table:
        """Return the table with weights from its values: unit, value, inverse, sqrt or log; `table` keeps the weights.

        >>> Table.from_equations([3, 4, 7], [[2, 0, 1]]).with_weights("unit").weights
        array([1., 1., 1.])
        """
        if kind == "table":
            return self
        from cellguard.model.linked.publication import sum_priorities
        from cellguard.model.weights import compute_weights

        # a cell of a publication counts once for every table that shows it, weighted by the table's priority
        return self.with_(weights=sum_priorities(self) * compute_weights(kind, self.values))

    def apply(self, *rules: Rule | Callable[[Any], Any], lower_ratio: Ratio = 1.0) -> Table:
        """Return the table with the cells that the rules flag marked as sensitive (:func:`cellguard.rules.apply`).

        >>> import cellguard as cg
        >>> t = Table.from_equations([2, 5, 7], [[2, 0, 1]], integer=True).apply(cg.MinFrequency(3))
        >>> t.sensitive_cells
        array([0])
        >>> t.reasons(0)
        ('minimum frequency (3): fewer than 3 contributors',)
        """
        flagged: Table = call_hook("apply_rules", self, *rules, lower_ratio=lower_ratio)
        return flagged

    # ------------------------------------------------------------------ what it is

    def __repr__(self) -> str:
        m, s = self.n_relations, int(self.sensitive.sum())
        return f"Table({self.n_cells} cells, {m} relation{'' if m == 1 else 's'}, {s} sensitive)"

    def _repr_html_(self) -> str:
        """Draw the table with its true values and sensitive cells marked, for the office's own notebook."""
        return str(call_hook("draw_table", self))


_INDEPENDENT_FIELDS = {"attackers", "insiders", "weights", "name", "flags", "parts", "crosses", "crosses_left_out"}
"""Fields that affect neither what the rules of publication reveal nor what respondents know or must not learn."""

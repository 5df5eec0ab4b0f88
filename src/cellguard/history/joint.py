"""One linear system over all releases that share a population.

The cells of the new release come first, then those of earlier releases, then one cell for the surplus of each
inequality. What was published fixes cells, what was withheld is free within public knowledge, and links and derived
statistics are relations. The range engine and the audit then decide, as for one release.

Earlier releases never lower a level: they are not prior knowledge of the kind that a release need not protect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cellguard._engine.space.groups import find_groups
from cellguard._tolerances import MEANT_TO_BE_SAME
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.history.cells import JointCells, join_cells
from cellguard.history.complete import complete_values
from cellguard.history.derived import Derived, FigureCounts, Figures, add_figures, compute_figures, move_figures
from cellguard.history.earlier import EarlierRelease, History, describe_structure, find_published
from cellguard.history.links import add_links
from cellguard.history.periods import find_previous
from cellguard.history.rows import Rows
from cellguard.model.levels import add_respondents, get_smallest_widths, keep_level_widths_of_table
from cellguard.model.table import Table
from cellguard.release.release import Release, Status

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.model.attacker import Attacker

__all__ = ["JointRelease", "JointSystem", "join_release", "join_table"]

SURPLUS = "link"
"""Code of the surplus cells in the dimension of releases."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class JointRelease(Release):
    """What readers have of all linked releases together; made for the audit, never written."""

    method: ClassVar[str] = "joint"
    low: FloatArray = field(repr=False)
    """Lower end of what readers know about each cell."""
    high: FloatArray = field(repr=False)
    """Upper end of what readers know about each cell."""
    unchanged: BoolArray = field(repr=False)
    """Cells published with their true value although a release claims a range around it."""
    surplus: BoolArray = field(repr=False)
    """Cells that stand for the surplus of an inequality."""
    system: Any = None
    """The system (:class:`JointSystem`)."""

    def _get_published_interval(self) -> tuple[FloatArray, FloatArray]:
        return self.low, self.high

    def get_point_values(self) -> FloatArray:
        """Return the published values; NaN where readers do not know a cell exactly."""
        return np.where(find_published(self.low, self.high), self.table.values, np.nan)

    def find_unchanged(self) -> BoolArray:
        """Return which cells a release claims a range for and publishes unchanged."""
        return self.unchanged

    @property
    def withheld(self) -> BoolArray:
        """Cells that readers do not know exactly."""
        return ~find_published(self.low, self.high)

    def filter_disclosed(self, cells: IntArray) -> IntArray:
        """Return those of the cells with only one possible value that no release publishes."""
        return cells[(self.withheld & ~self.surplus)[cells]]

    def _check_numbers(self) -> None:
        self._check_truth_inside(MEANT_TO_BE_SAME)


@dataclass(frozen=True, kw_only=True, eq=False)
class JointSystem:
    """The cells and relations of a new table, of what was released earlier, and of derived statistics."""

    table: Table = field(repr=False)
    """All cells with their relations; those of the new table come first, under their own numbers."""
    low: FloatArray = field(repr=False)
    """Lower end of what earlier releases say about each cell."""
    high: FloatArray = field(repr=False)
    """Upper end of what earlier releases say about each cell."""
    surplus: BoolArray = field(repr=False)
    """Cells that stand for the surplus of an inequality."""
    n_new: int
    """Number of cells of the new table."""
    names: tuple[str, ...]
    """Names of the linked releases."""
    shown_by: tuple[BoolArray, ...] = field(repr=False)
    """For each linked release: which cells it publishes with their value."""
    in_earlier: BoolArray = field(repr=False)
    """Cells that an earlier release has, published or withheld."""
    withheld_before: BoolArray = field(repr=False)
    """Cells of the new table that the newest other version withholds."""
    figures: tuple[Figures, ...] = ()
    """Derived figures that are published with the new table."""
    counts: FigureCounts = field(default_factory=FigureCounts)
    """How many figures tie withheld cells."""

    @property
    def published(self) -> BoolArray:
        """Cells that earlier releases publish with their value."""
        return find_published(self.low, self.high)

    def name_releases(self, cells: IntArray, free: BoolArray) -> list[str]:
        """Return the names of the releases that publish cells in relations with the given ones.

        Relations reach on through `free` cells.
        """
        near = self.find_near(cells, free)
        pairs = zip(self.names, self.shown_by, strict=True)
        return [name for name, shown in pairs if (shown & near).any()]

    def find_near(self, cells: IntArray, free: BoolArray) -> BoolArray:
        """Return the cells that share a relation with the given ones, also through `free` cells."""
        T = self.table.relations
        n, m = self.table.n_cells, T.shape[0]
        row, cell = T.tocoo().coords
        through = free[cell]
        group = find_groups(cell[through], n + row[through], n + m)
        rows = np.isin(group[n:], group[cells])
        out = np.zeros(n, bool)
        out[cell[rows[row]]] = True
        out[cells] = True
        return out


def join_release(release: Release, earlier: Any = None, derived: Sequence[Derived | Figures] = ()) -> JointRelease:
    """Return a release together with what was published before it and beside it, for the audit."""
    if not release.by_ranges:
        raise InputError(
            f"a release by {release.method} cannot be audited with earlier releases: ranges do not apply to it.",
            hint="audit it alone, and publish no other release of the same data.",
        )
    release = replace(release, table=add_respondents(release.table))
    low, high = release.published_bounds()
    history = History.from_any(earlier)
    system = join_table(release.table, history, derived, shown=find_published(low, high))
    n, table = system.n_new, system.table
    both = [np.maximum(system.low, _extend(low, table.n_cells, -np.inf))]
    both.append(np.minimum(system.high, _extend(high, table.n_cells, np.inf)))
    unchanged = np.zeros(table.n_cells, bool)
    unchanged[:n] = release.find_unchanged()
    return JointRelease(
        table=table, status=Status.FEASIBLE, objective=0.0, options={"source": "joint", "method": release.method},
        low=both[0], high=both[1], unchanged=unchanged, surplus=system.surplus, system=system,
    )  # fmt: skip


def _extend(array: FloatArray, n: int, filler: float) -> FloatArray:
    return np.concatenate([array, np.full(n - len(array), filler)])


def join_table(
    table: Table, history: History, derived: Sequence[Derived | Figures] = (), *, shown: BoolArray | None = None
) -> JointSystem:
    """Return the system of a new table, of earlier releases, and of derived statistics.

    Parameters
    ----------
    table
        The new table, with what attackers know of it.
    history
        Earlier releases and their links.
    derived
        Statistics that are published with the new table, or their figures.
    shown
        Cells that the new release publishes; unless given, any cell that need not be published may be withheld.
    """
    return _Assembly.of(add_respondents(table), history, shown).build(derived)


@dataclass(kw_only=True, eq=False)
class _Assembly:
    """A system while it is put together."""

    table: Table
    history: History
    new: EarlierRelease
    cells: JointCells
    known: BoolArray
    """Cells that readers know exactly."""
    fields: dict[str, Any]
    """Arrays with one entry per cell."""

    @classmethod
    def of(cls, table: Table, history: History, shown: BoolArray | None) -> _Assembly:
        """Return the distinct cells of all releases with all that is known and required about them."""
        new = EarlierRelease(
            name="this release", period=history.period, population=history.population, **describe_structure(table),
            low=table.lb, high=table.ub, values=table.values, sensitive=table.sensitive, lower=table.lower,
            upper=table.upper, sliding=table.sliding, widths=get_smallest_widths(table),
        )  # fmt: skip
        cells = join_cells(new, history)
        fields = _join_fields(new, history, cells)
        known = find_published(fields["low"], fields["high"])
        known[: new.n_cells] |= table.fixed if shown is None else shown
        return cls(table=table, history=history, new=new, cells=cells, known=known, fields=fields)

    def build(self, derived: Sequence[Derived | Figures]) -> JointSystem:
        """Return the system with links and figures, restricted to what the new release is tied to."""
        values, n = self.fields["values"], len(self.fields["values"])
        rows = Rows(n_cells=n, whole=bool(self.fields["counted"].all()))
        add_links(rows, self.cells, self.history, values, self.known)
        for number, (earlier, place) in enumerate(zip(self.history.releases, self.cells.place, strict=True), 1):
            for published in earlier.figures:
                moved, below = move_figures(published, place, self.cells, number)
                if len(moved.cells):
                    add_figures(rows, moved, self.cells, values, self.known, below)
        figures, counts = [], FigureCounts()
        for one in derived:
            own = one if isinstance(one, Figures) else compute_figures(one, self.table, self.cells, values)
            counts = counts.add(add_figures(rows, own, self.cells, values, self.known))
            figures.append(own)
        T, rhs, surplus = self._stack_relations(rows)
        keep_rows, keep = self._find_linked(T, rows.count)
        return self._finish(T[keep_rows], rhs[keep_rows], surplus, keep, (tuple(figures), counts))

    def _stack_relations(self, rows: Rows) -> tuple[csr_array, FloatArray, FloatArray]:
        """Return the relations of all releases, followed by links and figures, over all cells."""
        from scipy.sparse import csr_array, vstack

        links, sides, least = rows.build()
        n = links.shape[1]
        blocks, rhs = [], []
        for one, place in zip((self.new, *self.history.releases), (None, *self.cells.place), strict=True):
            T = one.relations.tocoo()
            row, cell = T.coords
            column = cell if place is None else place[cell]
            lost = np.zeros(T.shape[0], bool)
            lost[row[column < 0]] = True  # a code without a correspondence: what it adds up to is not known
            inside = ~lost[row]
            blocks.append(csr_array((T.data[inside], (row[inside], column[inside])), shape=(T.shape[0], n)))
            rhs.append(np.where(lost, 0.0, one.rhs))
        return csr_array(vstack([*blocks, links])), np.concatenate([*rhs, sides]), least

    def _find_linked(self, T: csr_array, n_links: int) -> tuple[IntArray, IntArray]:
        """Return the relations and cells that the new release is tied to through cells that readers do not know.

        Time grows with what is linked, not with the number of releases.
        """
        del n_links
        n, m = T.shape[1], T.shape[0]
        known = np.concatenate([self.known, np.zeros(n - len(self.known), bool)])
        row, cell = T.tocoo().coords
        free = ~known[cell]
        group = find_groups(cell[free], n + row[free], n + m)
        own = cell < self.new.n_cells
        touched = np.unique(np.concatenate([group[n + row[own]], group[: self.new.n_cells]]))
        own_rows = np.arange(m) < self.new.relations.shape[0]
        has_free = np.bincount(row[free], minlength=m) > 0
        rows = own_rows | (has_free & np.isin(group[n:], touched))
        keep = np.zeros(n, bool)
        keep[: self.new.n_cells] = True
        keep[cell[rows[row]]] = True
        return np.flatnonzero(rows), np.flatnonzero(keep)

    def _finish(
        self, T: csr_array, rhs: FloatArray, least: FloatArray, keep: IntArray, figures: tuple[Any, FigureCounts]
    ) -> JointSystem:
        """Return the system of the kept cells as a table."""
        f, n_cells = self.fields, len(self.known)
        extra = len(least)
        lb, ub = np.concatenate([f["lb"], least]), np.concatenate([f["ub"], np.full(extra, np.inf)])
        low = np.concatenate([f["low"], np.full(extra, -np.inf)])
        high = np.concatenate([f["high"], np.full(extra, np.inf)])
        values = np.concatenate([f["values"], np.full(extra, np.nan)])
        surplus = np.arange(n_cells + extra) >= n_cells
        whole = bool(f["counted"].all())
        counted = np.concatenate([f["counted"], np.full(extra, whole)])
        T, lb, ub, low, high, values, surplus, counted = (
            T[:, keep], lb[keep], ub[keep], low[keep], high[keep], values[keep], surplus[keep], counted[keep],
        )  # fmt: skip
        real = keep[keep < n_cells]
        values = complete_values(T, rhs, (np.maximum(lb, low), np.minimum(ub, high)), values, counted)
        fill = np.zeros(int(surplus.sum()))
        sensitive = np.concatenate([f["sensitive"][real], fill > 0])
        sensitive &= ~self._find_accepted(real, sensitive, find_published(low, high))
        levels = {name: np.concatenate([f[name][real], fill]) * sensitive for name in ("lower", "upper", "sliding")}
        levels["lower"] = np.minimum(levels["lower"], np.maximum(values - lb, 0.0))  # as prior knowledge allows
        levels["upper"] = np.minimum(levels["upper"], np.maximum(ub - values, 0.0))
        levels["sliding"] = np.minimum(levels["sliding"], ub - lb)
        n = self.new.n_cells
        fixed, weights = np.zeros(len(values), bool), np.zeros(len(values))
        fixed[:n], weights[:n] = self.table.fixed & ~sensitive[:n], self.table.weights
        mixed = counted.any() and not counted.all()
        joint = Table(
            values=values, relations=T, rhs=rhs, lb=lb, ub=ub, weights=weights, fixed=fixed, sensitive=sensitive,
            **levels, attackers=_translate_attackers(self, real, sensitive), insiders=False,
            integer=bool(counted.all()), counted=counted if mixed else None, whole=self.table.whole,
            known_zeros=False, name=self.table.name,
            smallest_width=self.table.smallest_width, crosses=self.table.crosses,
            crosses_left_out=self.table.crosses_left_out, **self._describe(keep),
        )  # fmt: skip
        keep_level_widths_of_table(np.concatenate([f["widths"][real], fill]), joint)
        return JointSystem(
            table=joint, low=low, high=high, surplus=surplus, n_new=n,
            names=tuple(one.name for one in self.history.releases), shown_by=self._list_shown(keep, n_cells),
            figures=figures[0], counts=figures[1], in_earlier=self._find_in_earlier(keep),
            withheld_before=self._find_withheld_before(),
        )  # fmt: skip

    def _describe(self, keep: IntArray) -> dict[str, Any]:
        """Return dimensions, codes and coordinates for labels."""
        versions = self.cells.codes[0]
        codes = ((*versions, SURPLUS), *self.cells.codes[1:])
        rows = np.zeros((len(keep), len(codes)), np.int32)
        real = keep < len(self.known)
        rows[real] = self.cells.coordinates[keep[real]]
        rows[~real, 0] = len(versions)
        return {"dimensions": self.cells.dimensions, "codes": codes, "coordinates": rows}

    def _find_accepted(self, real: IntArray, sensitive: BoolArray, published: BoolArray) -> BoolArray:
        """Return the sensitive cells that are accepted as known."""
        out = sensitive & published & self.history.accept
        if self.history.accepted:
            at = np.flatnonzero(sensitive)
            out[at] |= [self.cells.label(int(real[k])) in self.history.accepted for k in at.tolist()]
        return np.asarray(out)

    def _find_in_earlier(self, keep: IntArray) -> BoolArray:
        """Return which of the kept cells an earlier release has."""
        there = np.zeros(len(self.known), bool)
        for place in self.cells.place:
            there[place[place >= 0]] = True
        out = np.zeros(len(keep), bool)
        real = keep < len(there)
        out[real] = there[keep[real]]
        return out

    def _find_withheld_before(self) -> BoolArray:
        """Return the cells of the new table that the preceding period, or else the last release, withholds."""
        n = self.new.n_cells
        before = find_previous(self.history.period, self.cells.periods)
        other = [version for version in self.cells.version_of if version != 0]
        version = self.cells.get_newest_version(before) if before else other[-1] if other else None
        if version is None:
            return np.zeros(n, bool)
        place = self.cells.find(np.arange(n), version)
        return np.asarray(np.where(place >= 0, ~self.known[place], False))

    def _list_shown(self, keep: IntArray, n_cells: int) -> tuple[BoolArray, ...]:
        """Return for each earlier release which of the kept cells it publishes."""
        out = []
        for one, place in zip(self.history.releases, self.cells.place, strict=True):
            shown = np.zeros(max(n_cells, int(keep.max(initial=-1)) + 1), bool)
            shown[place[one.published & (place >= 0)]] = True
            out.append(shown[keep])
        return tuple(out)


def _join_fields(new: EarlierRelease, history: History, cells: JointCells) -> dict[str, Any]:
    """Return what is known and required about each distinct cell: the tightest bounds and the widest levels."""
    n = len(cells.coordinates)
    out: dict[str, Any] = {
        "values": np.full(n, np.nan), "low": np.full(n, -np.inf), "high": np.full(n, np.inf),
        "lb": np.full(n, -np.inf), "ub": np.full(n, np.inf), "sensitive": np.zeros(n, bool),
        "counted": np.zeros(n, bool), **{name: np.zeros(n) for name in ("lower", "upper", "sliding", "widths")},
    }  # fmt: skip
    own = slice(0, new.n_cells)
    for name in ("values", "sensitive", "counted", "lower", "upper", "sliding", "widths"):
        out[name][own] = getattr(new, name)
    out["lb"][own], out["ub"][own] = new.low, new.high  # of the new table, what attackers know before it
    for one, place in zip(history.releases, cells.place, strict=True):
        _check_values(one, place, out["values"], cells)
        mine = place >= 0
        to = place[mine]
        out["values"][to] = np.where(np.isnan(out["values"][to]), one.values[mine], out["values"][to])
        np.maximum.at(out["low"], to, one.low[mine])
        np.minimum.at(out["high"], to, one.high[mine])
        out["counted"][to] |= one.counted[mine]
        older = mine if not history.reopen else mine & ~((place < new.n_cells) & (place >= 0))
        out["sensitive"][place[older]] |= one.sensitive[older]
        for name in ("lower", "upper", "sliding", "widths"):
            level = np.where(one.sensitive, getattr(one, name), 0.0)
            np.maximum.at(out[name], place[older], level[older])
    value = out["values"]
    for name, better in (("low", np.minimum), ("high", np.maximum)):
        near = np.abs(out[name] - value) <= MEANT_TO_BE_SAME * np.maximum(1.0, np.abs(value))
        out[name] = np.where(near, better(out[name], value), out[name])  # printed values may be off by rounding
    return out


def _check_values(one: EarlierRelease, place: IntArray, values: FloatArray, cells: JointCells) -> None:
    """Refuse an earlier release that contradicts what is known about a cell."""
    here = np.where(place >= 0, values[place], np.nan)
    slack = MEANT_TO_BE_SAME * np.maximum(1.0, np.abs(here))
    off = (one.low > here + slack) | (one.high < here - slack)
    if off.any():
        first = int(place[np.argmax(off)])
        raise InputError(
            f"release {one.name!r} published other values for {int(off.sum())} cells, such as {cells.label(first)}.",
            hint="if values are revised, say by how many per cent at most (revision_percent); if a code changed its "
            "meaning, give a correspondence; if it measures something else, name another period or population.",
        )


def _translate_attackers(joint: _Assembly, real: IntArray, sensitive: BoolArray) -> tuple[Attacker, ...]:
    """Return the attackers of the new table in the joint system.

    A contributor need not be kept from earlier values of the cells to which they contribute: those are theirs too.
    """
    out: list[Attacker] = []
    n = joint.new.n_cells
    earlier = np.flatnonzero(sensitive[: len(real)] & (np.arange(len(real)) >= n))
    if not len(earlier):
        return joint.table.attackers
    codes = joint.cells.coordinates[:, 1:]
    _, group = np.unique(codes, axis=0, return_inverse=True)
    group = np.asarray(group).ravel()
    of_earlier = group[real[earlier]]
    new = np.flatnonzero(sensitive[:n])
    for attacker in joint.table.attackers:
        if not attacker.derived:
            out.append(attacker)
            continue
        mine = new if attacker.only is None else attacker.only
        others = earlier[~np.isin(of_earlier, group[attacker.cells])]
        out.append(replace(attacker, only=np.concatenate([mine, others])))
    return tuple(out)

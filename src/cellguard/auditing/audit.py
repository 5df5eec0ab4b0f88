"""The audit: what every attacker can compute from a release, regardless of who made it.

The audit uses only the published intervals, the relations, the known bounds and the levels; it imports no method.
A cell is safe when tables exist that agree with everything the attacker knows and in which the cell reaches its
levels (the witnesses). It is unsafe when a proven bound shows that no such tables exist. If neither can be shown, the
cell is unknown, and a release with such a cell is not safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.clock import Deadline, now
from cellguard._engine.ranges.witnesses.shown import ShownMovements
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.auditing.adjusted import join_findings, view_as_pattern
from cellguard.auditing.finding import Finding
from cellguard.auditing.inference import AuditQuestion, audit_movements, audit_ranges, compute_range
from cellguard.auditing.witnesses import Proof, write_witnesses
from cellguard.exceptions import InputError
from cellguard.model.levels import add_respondents, list_attackers
from cellguard.model.parts.cells import find_cell
from cellguard.model.table import Table
from cellguard.release.readers.read_release import check_release_to_audit
from cellguard.release.release import Release

if TYPE_CHECKING:
    from cellguard.history.derived import Derived, Figures
    from cellguard.history.earlier import EarlierRelease, History

__all__ = ["Audit", "Finding", "audit"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Audit:
    """The result of an audit, attacker by attacker.

    >>> from cellguard.datasets.examples import salazar2004_figure2
    >>> found = audit(salazar2004_figure2()["suppress"], exact=True)
    >>> found.summary()
    {'safe': False, 'checked': 1, 'exact': 0, 'unsafe': 1}
    >>> cells, low, high = found.ranges["external"]
    >>> low.tolist(), high.tolist()
    ([5.0], [30.0])
    """

    release: Release = field(repr=False)
    """What was audited."""
    findings: tuple[Finding, ...] = field(repr=False)
    """One per attacker."""
    ranges_exact: bool = False
    """Whether the ranges are exact, or only as wide as the verdicts needed."""
    integer: bool = False
    """Whether only tables of whole numbers were considered possible."""
    with_cross: bool = False
    """Whether linked tables have an unpublished cross that the attackers knew to be non-negative."""
    seconds: float = 0.0
    """How long the audit took."""

    def _collect_cells(self, chosen: Sequence[BoolArray]) -> IntArray:
        found = [f.cells[which] for f, which in zip(self.findings, chosen, strict=True)]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))

    @property
    def safe(self) -> bool:
        """Whether every cell provably reaches its levels against every attacker; false if none was checked."""
        return self.checked > 0 and all(bool(f.safe.all()) for f in self.findings)

    @property
    def verdict(self) -> str:
        """``"safe"``, ``"not safe"``, or ``"nothing checked"``: no cell was marked sensitive."""
        return "nothing checked" if self.checked == 0 else "safe" if self.safe else "not safe"

    @property
    def checked(self) -> int:
        """Number of cells to be protected against at least one attacker."""
        return len(self._collect_cells([np.ones(len(f.cells), bool) for f in self.findings]))

    @property
    def exact(self) -> int:
        """Number of those whose value an attacker can compute exactly."""
        return len(self._collect_cells([f.exact for f in self.findings]))

    @property
    def unsafe(self) -> int:
        """Number of those that are not shown safe against every attacker."""
        return len(self.unsafe_cells)

    @property
    def unknown(self) -> int:
        """Number of those for which neither safety nor a violation could be proven."""
        return len(self._collect_cells([f.unknown for f in self.findings]))

    @property
    def unsafe_cells(self) -> IntArray:
        """Indices of the cells that are not shown safe against every attacker."""
        return self._collect_cells([~f.safe for f in self.findings])

    @property
    def disclosed(self) -> IntArray:
        """All cells, sensitive or not, that are not published and that an attacker still knows exactly."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(f.disclosed for f in self.findings)]))

    @property
    def ranges(self) -> dict[str, tuple[IntArray, FloatArray, FloatArray]]:
        """Cells, lower and upper ends of their ranges, by the attacker's name."""
        return {f.attacker.name: (f.cells, f.low, f.high) for f in self.findings}

    def range(self, cell: int | Mapping[str, str] | Sequence[str], attacker: str | None = None) -> tuple[float, float]:
        """Return the range of one cell against an attacker (by default the first), given by number or by codes.

        The audit computes ranges of the cells to protect. For another cell, such as a secondary suppression, the range
        is computed now.

        >>> from cellguard.datasets.examples import minami2019_figure2
        >>> found = audit(minami2019_figure2(), exact=True)
        >>> found.range({"M": "M1", "P": "P1"}), found.range(("M1", "P1"))
        ((0.0, 17.0), (0.0, 17.0))
        """
        table = self.release.table
        place = find_cell(table, cell)
        for f in self.findings:
            at = np.flatnonzero(f.cells == place)
            if attacker in (None, f.attacker.name) and len(at):
                return float(f.low[at[0]]), float(f.high[at[0]])
        known = {a.name: a for a in (*(f.attacker for f in self.findings), *list_attackers(table))}
        name = attacker or next(iter(known))
        if name not in known:
            raise InputError(f"attacker {name!r} is not known.", hint=f"known are {', '.join(known)}.")
        return compute_range(self.release, place, known[name], integer=self.integer)

    @property
    def witnesses(self) -> dict[str, Proof]:
        """The tables that prove safety, by the attacker's name (confidential)."""
        distinct = {id(f.witnesses): f for f in self.findings}
        tables = {key: f.build_tables(self.release.table) for key, f in distinct.items()}
        return {f.attacker.name: f.build_proof(self.release.table, tables[id(f.witnesses)]) for f in self.findings}

    def midpoints(self) -> dict[str, float]:
        """Return where the middle of the ranges lies, as shares of the cells with a bounded range (baena2018 table 4).

        Ranges are scaled to a width of 100 with the truth at 0. A middle of 0 reveals the truth to an attacker who
        takes the average. The ranges must be exact.

        >>> from cellguard.datasets.examples import minami2019_figure2
        >>> audit(minami2019_figure2(), exact=True).midpoints()
        {'-50': 0.0, '(-50,0)': 0.0, '0': 0.0, '(0,50)': 1.0, '50': 0.0}
        """
        if not self.ranges_exact:
            raise InputError("midpoints need exact ranges.", hint="audit(release, exact=True).")
        known = [f for f in self.findings if not f.attacker.derived]  # of respondents only verdicts are computed
        place = np.concatenate([_locate_midpoints(f, self.release.table) for f in known] or [np.zeros(0)])
        place = place[np.isfinite(place)]
        near = 1e-4
        classes = {
            "-50": place < -50 + near,
            "(-50,0)": (place >= -50 + near) & (place < -near),
            "0": np.abs(place) <= near,
            "(0,50)": (place > near) & (place <= 50 - near),
            "50": place > 50 - near,
        }
        return {name: float(inside.mean()) if len(place) else 0.0 for name, inside in classes.items()}

    def __repr__(self) -> str:
        people = f"{len(self.findings)} attacker{'' if len(self.findings) == 1 else 's'}"
        wrong = f", {self.unsafe} unsafe" if self.unsafe else ""
        cells = f"{self.checked} cell{'' if self.checked == 1 else 's'}"
        return f"Audit({self.verdict}: {cells} checked against {people}{wrong})"

    def _repr_html_(self) -> str:
        """Draw the verdict and its figures for a notebook: no value, no range."""
        from cellguard.release.pictures import draw_figures

        counted = {"cells checked": self.checked, "known exactly": self.exact, "not shown safe": self.unsafe}
        about = {"attackers": len(self.findings), "only whole numbers held possible": self.integer}
        return draw_figures(f"Audit: {self.verdict}", counted | about)

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        out: dict[str, Any] = {"safe": self.safe, "checked": self.checked, "exact": self.exact, "unsafe": self.unsafe}
        if self.unknown:
            out["unknown"] = self.unknown
        if self.release.table.crosses_left_out:
            out["crosses_not_audited"] = self.release.table.crosses_left_out
        return out

    def save_witnesses(self, path: str | Path) -> None:
        """Write the tables that prove safety, for ``cellguard verify``; they are confidential."""
        write_witnesses(path, self.release, list(self.witnesses.values()), integer=self.integer)


def audit(
    release: Release,
    *,
    exact: bool | None = None,
    integer: bool | None = None,
    everywhere: bool = True,
    cross: bool = True,
    jobs: int | None = None,
    time_limit_s: float = float("inf"),
    shown: ShownMovements | None = None,
    earlier: History | Sequence[Release | EarlierRelease] | None = None,
    derived: Sequence[Derived | Figures] = (),
) -> Audit:
    """Compute what every attacker of the table can infer from a release.

    Parameters
    ----------
    release
        A release of any kind; only what it publishes is used.
    exact
        Compute both ends of every range. Otherwise the search stops where the verdict is known. Unless given, both
        ends are computed for tables of counts with up to
        :data:`cellguard.auditing.inference.WHOLE_CELLS` cells: of larger ones that takes hours.
    integer
        The attacker knows that all values are whole numbers; unless given, as the table says.
    everywhere
        Protect every sensitive cell against all respondents who do not know it; by default only cells near
        what a respondent knows, against which methods plan first.
    cross
        For linked tables that share dimensions in a cycle: the attacker knows that nothing in their unpublished cross
        is negative (up to 50,000 cells of it; over real numbers, and not for respondents).
    jobs
        Parts of the table to search at the same time, through joblib: one by default, or what an enclosing
        ``joblib.parallel_config`` (threads, processes, a Dask or Ray cluster) sets.
    time_limit_s
        For the whole audit. Cells still open at the limit are unknown, hence not safe.
    shown
        Movements that a search has shown to be possible. They are checked before programs are solved, and the
        movements that the audit finds are added.
    earlier
        Earlier releases that show the same cells, or a :class:`cellguard.History` that says which periods they
        are about and how they are linked. The audit is then of all of them together: the cells of this release
        come first, followed by the linked cells of earlier ones, which must stay protected too. Unless given,
        those with which the release was made.
    derived
        Statistics that are published with the release (:class:`cellguard.Derived`).
    """
    earlier = release.earlier if earlier is None else earlier
    if earlier is not None or derived or release.figures:
        from cellguard.history.joint import join_release

        release = join_release(release, earlier, derived or release.figures)
    begin, deadline = now(), Deadline.from_limit(time_limit_s)
    if release.by_ranges:  # scenarios attack the other kinds, not what respondents know
        release = replace(release, table=add_respondents(release.table))
    else:  # distances are measured within the bounds that were given
        release = replace(release, table=release.table.remove_public_knowledge())
    check_release_to_audit(release)
    table = release.table
    if integer and not (table.values == np.rint(table.values)).all():
        raise InputError("the table holds numbers that are not whole.", hint="leave the option `integer` out.")
    question = AuditQuestion(exact=exact, integer=integer, everywhere=everywhere)
    options: dict[str, Any] = {"question": question, "jobs": jobs, "time_limit_s": deadline.left}
    seen = release if cross else replace(release, table=table.with_(crosses=()))
    if not release.by_ranges:
        findings: Sequence[Finding] = [audit_movements(release, attacker) for attacker in list_attackers(table)]
        pattern = view_as_pattern(table, release.get_point_values())
        if pattern is not None:  # ranges attack the unchanged cells
            findings = join_findings(findings, audit_ranges(pattern, None, options))
    else:
        findings = audit_ranges(seen, shown, options)
    whole = table.integer if integer is None else integer
    return Audit(
        release=release, findings=tuple(findings), ranges_exact=question.needs_ends(table), integer=whole,
        with_cross=cross and bool(table.crosses), seconds=now() - begin,
    )  # fmt: skip


def _locate_midpoints(finding: Finding, table: Table) -> FloatArray:
    """Return where the middle of each range lies if its width is 100 and the truth is 0; NaN if it has no middle."""
    a = table.values[finding.cells]
    with np.errstate(invalid="ignore", divide="ignore"):
        width = finding.high - finding.low
        middle = 100.0 * ((finding.low + finding.high) / 2 - a) / width
    return np.where(np.isfinite(width) & (width > 0), middle, np.nan)

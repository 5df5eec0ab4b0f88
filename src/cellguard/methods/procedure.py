"""The contract of a method: solve a problem, repair what the audit does not accept, explain why nothing is possible.

:class:`cellguard.methods.protection.Protection` calls these three steps; a method knows nothing about clusters, rounds
or its caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from cellguard._engine.ranges.witnesses.shown import ShownMovements
from cellguard._types import IntArray
from cellguard.model.weights import WEIGHTS

if TYPE_CHECKING:
    from cellguard._engine.clock import Deadline
    from cellguard.auditing.audit import Audit
    from cellguard.methods.limits import Limits
    from cellguard.methods.method import Method
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["Candidate", "Completed", "Problem", "Procedure"]

CELL_OPTIONS = ("must_publish", "prefer", "already_suppressed")
"""Options that name cells of the whole system, by number or by truth values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A connected table with the attackers to plan against."""

    table: Table
    """The table; its attackers say which cells must keep which levels."""
    shown: ShownMovements = field(default_factory=ShownMovements)
    """Movements that were shown possible in earlier searches and audits of the same table."""
    start: Release | None = None
    """The best release so far, which a search may go on from."""
    last: Release | None = None
    """The last release that was found against fewer attackers; it may not be safe."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A release that the audit has not accepted yet, or the statement that there is none."""

    release: Release
    """What would be published; `release.published` says whether there is anything."""
    problem: Problem
    """What was solved."""
    state: Any = None
    """What the method needs to repair or explain its result."""
    audit_s: float = 0.0
    """Seconds that its audit needs, as far as they were measured: a late release is better than none."""
    fallback: Release | None = None
    """An earlier, dearer release of the same search, if the audit does not accept this one."""
    partial: Release | None = None
    """A release that was found and is not shown safe against every attacker, if there is nothing better."""
    unproven: tuple[str, ...] = ()
    """Attackers against whom `partial` is not shown safe (:mod:`cellguard.methods.partial`)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Completed:
    """A candidate that was changed until movements show every level against every respondent."""

    candidate: Candidate
    """The candidate; the audit has not accepted it yet."""
    attacker: IntArray
    """Number of the attacker of each level that was not met before."""
    cell: IntArray
    """Its cell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Procedure:
    """The steps of a method, with the options that the user chose as fields."""

    method: ClassVar[Method]
    """Its entry in the registry."""
    plans_near_respondents: ClassVar[bool] = False
    """Whether to plan from the start against respondents near each cell, or only against those that the audit finds."""
    repairs_every_finding: ClassVar[bool] = False
    """Whether `repair` fixes everything that the audit finds, or only what was planned against."""
    accept: str | None = None
    """What to publish if nothing is shown safe against everyone in time: nothing, or what is safe for `external`."""
    max_repairs: ClassVar[int] = 3
    """Maximum number of repairs before the method gives up."""
    not_confirmed: ClassVar[str] = "nothing was found that the audit accepts."
    """The explanation in that case."""

    def prepare(self, table: Table) -> Table:
        """Return the table as changed by the options: weights, fixed cells, known bounds."""
        return table

    def solve(self, problem: Problem, limits: Limits) -> Candidate:
        """Return the best release found against the problem's attackers."""
        raise NotImplementedError

    def repair(self, candidate: Candidate, findings: Audit, limits: Limits) -> Candidate | None:
        """Return a candidate that fixes what the audit found and keeps what it accepted; None if there is none."""
        del candidate, findings, limits
        return None

    def complete(self, candidate: Candidate, deadline: Deadline) -> Completed | None:
        """Return a candidate in which movements show every level against every respondent; None if there is none."""
        del candidate, deadline
        return None

    def explain(self, candidate: Candidate, limits: Limits) -> str:
        """Explain in the user's labels why no release is possible."""
        del limits
        return candidate.release.explanation

    def get_quick(self) -> Self | None:
        """Return the same procedure with options that find some release as early as possible; None if all are."""
        return None

    def get_rough(self) -> Self | None:
        """Return the same procedure with options that find a rough release quickly; None if there are none."""
        return None

    def restrict_to(self, system: Table, cells: IntArray) -> Self:
        """Return the procedure for one cluster: options that name cells of the system name those of the cluster."""
        options = {f.name: getattr(self, f.name) for f in fields(self)}
        return replace(self, **_restrict_options(options, system, cells))


def _restrict_options(options: Mapping[str, Any], system: Table, cells: IntArray) -> dict[str, Any]:
    """Return the options that change for one cluster."""
    out: dict[str, Any] = {}
    place = np.full(system.n_cells, -1, np.int64)
    place[cells] = np.arange(len(cells))
    for name in CELL_OPTIONS:
        given = np.asarray(options.get(name, ()))
        if given.size == 0:
            continue
        if given.dtype == bool and given.shape == (system.n_cells,):
            out[name] = given[cells]
        else:
            index = given.ravel().astype(np.int64)
            inside = (index >= 0) & (index < system.n_cells)  # the method refuses other numbers
            local = place[index[inside]]
            out[name] = np.concatenate([local[local >= 0], index[~inside]])
    weights = options.get("weights")
    if isinstance(weights, str) and weights in WEIGHTS and any(part.priority != 1.0 for part in system.parts or ()):
        weights = system.with_weights(weights).weights  # a cluster does not know the tables' priorities
    if weights is not None and not isinstance(weights, str):
        out["weights"] = np.broadcast_to(np.asarray(weights, np.float64), system.n_cells)[cells]
    return out

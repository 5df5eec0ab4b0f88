"""From a table to a release: the one loop that runs every method.

1. Split a publication into clusters, which share nothing; each gets its share of the time.
2. Derive the attackers of a table once: those it names, and its respondents.
3. The method solves against them, the audit checks the result, and the method repairs what the audit found. If the
   table has respondents, repeat this against what they can still compute
   (:mod:`cellguard.methods.respondents`).
4. Linked tables may have an unpublished cross: repair last what attackers learn from it, in reserved time.
5. Publish nothing that the audit does not accept. If the limit ends the search before, say against whom the best
   candidate is shown safe; publish it only if the user accepts that (:mod:`cellguard.methods.partial`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cellguard._engine.threads import limit_blas_threads
from cellguard._types import IntArray
from cellguard.exceptions import InputError
from cellguard.methods.attempt import refuse_candidate, solve_confirmed, solve_explained
from cellguard.methods.limits import Limits, Progress
from cellguard.methods.partial import CROSS, label_partial, restrict_accepted
from cellguard.methods.procedure import Candidate, Problem
from cellguard.methods.respondents import RespondentRounds
from cellguard.model.levels import add_respondents
from cellguard.model.linked.clusters import ClustersLeftError, Keeper, run_clusters_of_tables
from cellguard.model.linked.lookalikes import Lookalike, find_lookalikes, refuse_lookalike_disclosures
from cellguard.model.linked.publication import Publication, require_table
from cellguard.release.publication import join_releases_of_clusters

if TYPE_CHECKING:
    from cellguard._engine.clock import Deadline
    from cellguard.methods.procedure import Procedure
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["Protection", "choose_insiders"]

_log = logging.getLogger("cellguard")

CROSS_TIME_SHARE = 0.15
"""Share of the time reserved for the cross of linked tables, if it is large and no respondent attacks them.

With respondents there is a safe release early; how long its cross takes is measured."""
LARGE_CROSS_CELLS = 50_000
"""A cross with this many cells gets the whole share; a smaller one gets less, in proportion."""
MAX_CROSS_REPAIRS = 8
CROSS_DISCLOSES = (
    "an attacker who knows that nothing in the unpublished cross of the linked tables is negative comes closer to a "
    "sensitive cell than its levels allow, or was not shown unable to."
)

Given: TypeAlias = "Table | Publication"


@dataclass(frozen=True, kw_only=True, eq=False)
class Protection:
    """Protect a table or a publication by one method, within one time limit.

    >>> import cellguard as cg
    >>> from cellguard.methods.suppress.suppress import SuppressProcedure
    >>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4])
    >>> Protection(procedure=SuppressProcedure(), limits=Limits()).run(table)
    Suppression(optimal, 3 cells: 1 published, 2 withheld)
    """

    procedure: Procedure
    """The steps of the method, with the options of this call."""
    limits: Limits
    """Limits of the whole call."""
    keeper: Keeper | None = None
    """Stores the releases of clusters, so that an interrupted run can continue with the others."""
    insiders: bool | None = None
    """Whether respondents are attackers; None: as the table says."""

    def run(self, given: Given) -> Release:
        """Return the release of a table or a publication, or one that explains why there is none."""
        system = choose_insiders(require_table(given, self.procedure.method.name), self.insiders)
        if system.parts is None:
            return self._protect_table(system)
        alike = self._warn_of_lookalikes(given) if isinstance(given, Publication) else []
        release = restrict_accepted(self._protect_clusters(system))
        if release.published:
            refuse_lookalike_disclosures(release, alike)
        return release

    def _protect_table(self, table: Table) -> Release:
        """Protect one connected table."""
        name = self.procedure.method.name  # the log has sizes, status and seconds, never a value
        _log.info("%s: %d cells, %d sensitive", name, table.n_cells, int(table.sensitive.sum()))
        with limit_blas_threads():
            release = self._solve_and_repair(self.procedure.prepare(table))
        _log.info("%s: %s after %.1f s", name, release.status, self.limits.spent_s)
        return release

    def _solve_and_repair(self, table: Table) -> Release:
        if not self.procedure.method.by_ranges:  # the audit requires only the method's own check
            given = table.remove_public_knowledge()
            return solve_explained(self.procedure, Problem(table=given), self.limits).release
        table = add_respondents(table)
        share = _get_cross_time_share(table)
        confirmed = None
        if any(attacker.derived for attacker in table.attackers):
            rounds = RespondentRounds(self.procedure, self.limits, self._repair_cross if share else None)
            candidate = rounds.run(table)
            confirmed = rounds.confirmed
        else:
            searching = self.limits.start_again((1 - share) * self.limits.time_limit_s) if share else self.limits
            candidate = solve_confirmed(self.procedure, Problem(table=table), searching)
        candidate = self._repair_cross(candidate, self.limits.last_word)
        if confirmed is not None and not candidate.release.published:
            candidate = confirmed
        return label_partial(candidate, self.procedure.accept, self.limits).release

    def _repair_cross(self, candidate: Candidate, until: Deadline) -> Candidate:
        """Return a candidate that the audit accepts with the cross of linked tables, or one without a release."""
        table = candidate.release.table
        if not table.crosses or not table.sensitive.any():
            return candidate
        for _ in range(MAX_CROSS_REPAIRS):
            if not candidate.release.published:
                return candidate
            found = candidate.release.audit(exact=False, time_limit_s=until.get_seconds_at_least())
            if found.safe or not found.checked:
                return candidate
            repaired = self.procedure.repair(candidate, found, self.limits)
            if repaired is None:
                break
            candidate = repaired
        return refuse_candidate(candidate, CROSS_DISCLOSES, unproven=(CROSS,))

    # ------------------------------------------------------------------ clusters

    def _protect_clusters(self, system: Table) -> Release:
        """Protect each cluster of a publication, those with most sensitive cells first, and join the releases."""
        from cellguard.model.linked.distinct_cells import list_cluster_cells, restrict_table

        cells_of = list_cluster_cells(system)
        if len(cells_of) == 1:
            release = self._restrict_to(system, cells_of[0]).run(restrict_table(system, cells_of[0]))
            return join_releases_of_clusters(system, [(release, cells_of[0])])
        keeper, made = self.keeper, {}
        for number in range(len(cells_of)):
            if keeper is not None and (found := keeper.load(number)) is not None:
                made[number] = found
        left = [number for number in range(len(cells_of)) if number not in made]
        if keeper is not None and hasattr(keeper, "should_protect"):  # users' own keepers may not have it
            left = [number for number in left if keeper.should_protect(number)]
        # the largest first: other workers do the small ones meanwhile
        left.sort(key=lambda k: (-int(system.sensitive[cells_of[k]].sum()), -len(cells_of[k]), k))
        for number, release in self._run_clusters(system, left, cells_of):
            made[number] = release
            if keeper is not None:
                keeper.save(number, release)
        if len(made) < len(cells_of):
            raise ClustersLeftError
        return join_releases_of_clusters(system, [(made[k], cells) for k, cells in enumerate(cells_of)])

    def _run_clusters(
        self, system: Table, numbers: list[int], cells_of: list[IntArray]
    ) -> Iterator[tuple[int, Release]]:
        """Yield the number and release of each cluster when it is finished."""
        from cellguard.model.linked.distinct_cells import restrict_table

        effort = np.array([_estimate_effort(system, cells_of[k]) for k in numbers])
        limits = {"time_limit_s": self.limits.time_limit_s, "progress": self.limits.progress}
        silent = replace(self, limits=replace(self.limits, progress=None))  # processes cannot receive a callback
        tasks = (
            (k, restrict_table(system, cells_of[k]), {"protection": silent._restrict_to(system, cells_of[k]), **limits})
            for k in numbers
        )
        return run_clusters_of_tables(_protect_cluster, (), tasks, effort, limits)

    def _restrict_to(self, system: Table, cells: IntArray) -> Protection:
        """Return the protection of one cluster."""
        return replace(self, procedure=self.procedure.restrict_to(system, cells), keeper=None)

    def _warn_of_lookalikes(self, publication: Publication) -> list[Lookalike]:
        """Log which codes look alike in a publication but are not linked, and return them."""
        linked = [equation.names for equation in publication.equations]
        found = find_lookalikes(publication.table, linked, publication.different)
        for one in found:
            _log.warning("%s: %s", self.procedure.method.name, one.text)
        return found


def _protect_cluster(
    table: Table, *, protection: Protection, time_limit_s: float, progress: Progress | None = None
) -> Release:
    """Protect one cluster within its own time limit."""
    limits = replace(protection.limits.start_again(time_limit_s), progress=progress)
    return replace(protection, limits=limits).run(table)


def _estimate_effort(system: Table, cells: IntArray) -> float:
    """Return the estimated effort of a cluster: most time goes to those with many sensitive cells."""
    return float(1.0 + system.sensitive[cells].sum() * np.log2(2.0 + len(cells)))


def _get_cross_time_share(table: Table) -> float:
    """Return the share of the time reserved for the cross; 0 if there is nothing to do."""
    if not table.crosses or not table.sensitive.any():
        return 0.0
    return CROSS_TIME_SHARE * min(1.0, sum(map(len, table.crosses)) / LARGE_CROSS_CELLS)


def choose_insiders(table: Table, insiders: bool | None) -> Table:
    """Return the table with respondents as attackers or without them; None: as the table says."""
    if insiders is None:
        return table
    if not insiders:
        outside = tuple(attacker for attacker in table.attackers if not attacker.derived)
        return table.with_(insiders=False, attackers=outside)
    if table.statistics is None and not any(attacker.derived for attacker in table.attackers):
        raise InputError(
            "insiders: the contributors of the table are not known.",
            hint="make it from records (cg.tabulate), or name their columns: cg.Table.from_frame(top=...).",
        )
    return table if table.insiders else table.with_(insiders=None)

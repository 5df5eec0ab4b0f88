"""Protecting a publication cluster by cluster: they share nothing, so they can run at the same time, anywhere.

Clusters run one after the other, or as many at a time as an enclosing ``joblib.parallel_config`` says (threads,
processes, a Dask or Ray cluster). The time limit is for all of them. Who keeps what is done
(:func:`cluster_releases_kept_by`) is told of each as it is finished, so that a run that was stopped goes on with the
clusters that are left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from cellguard._types import FloatArray, IntArray
from cellguard.nouns.table import Table
from cellguard.nouns.weights import WEIGHTS

if TYPE_CHECKING:
    from cellguard.nouns.release import Release

__all__ = ["Keeper", "cluster_releases_kept_by", "release_by_clusters", "run_clusters_of_tables"]

Found = TypeVar("Found")

_CELLS = ("must_publish", "prefer", "already_suppressed")
"""Options of verbs that name cells of the whole system, by number or by truth values."""
_LEAST_S = 1.0
"""No cluster gets less time than this: a limit that is reached at once finds nothing."""


class Keeper(Protocol):
    """Keeps the releases of clusters until all are there."""

    def load(self, number: int) -> Release | None:
        """Return the release of a cluster, if it was made before."""

    def save(self, number: int, release: Release) -> None:
        """Keep the release of a cluster."""


_KEEPER: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextmanager
def cluster_releases_kept_by(keeper: Keeper) -> Iterator[None]:
    """Let somebody keep the releases of clusters that are made in this context."""
    token = _KEEPER.set(keeper)
    try:
        yield
    finally:
        _KEEPER.reset(token)


def release_by_clusters(
    verb: Callable[..., Release], system: Table, args: Sequence[Any], options: dict[str, Any]
) -> Release:
    """Protect each cluster of a publication by a verb, and put the releases together."""
    from cellguard.nouns.distinct_cells import cells_of_clusters, restricted

    cells_of = cells_of_clusters(system)
    if len(cells_of) == 1:
        own = _options_for_table_cluster(options, system, cells_of[0])
        return _release_joined_from_clusters(
            system, [(verb(restricted(system, cells_of[0]), *args, **own), cells_of[0])]
        )
    keeper = _KEEPER.get()
    made = {k: found for k in range(len(cells_of)) if keeper is not None and (found := keeper.load(k)) is not None}
    left = [k for k in range(len(cells_of)) if k not in made]
    # the largest first: whoever works beside it has the small ones meanwhile
    left.sort(key=lambda k: (-int(system.sensitive[cells_of[k]].sum()), -len(cells_of[k]), k))
    tasks = (
        (k, restricted(system, cells_of[k]), _options_for_table_cluster(options, system, cells_of[k])) for k in left
    )
    effort = np.array([_effort_of_table_cluster(system, cells_of[k]) for k in left])
    for number, release in run_clusters_of_tables(verb, args, tasks, effort, options):
        made[number] = release
        if keeper is not None:
            keeper.save(number, release)
    return _release_joined_from_clusters(system, [(made[k], cells) for k, cells in enumerate(cells_of)])


def _effort_of_table_cluster(system: Table, cells: IntArray) -> float:
    """Return what a cluster may take of the time: most goes to those with many sensitive cells."""
    return float(1.0 + system.sensitive[cells].sum() * np.log2(2.0 + len(cells)))


def run_clusters_of_tables(
    verb: Callable[..., Found],
    args: Sequence[Any],
    tasks: Iterable[tuple[int, Any, dict[str, Any]]],
    effort: FloatArray,
    options: Mapping[str, Any],
) -> Iterator[tuple[int, Found]]:
    """Yield what a verb makes of each cluster as it is finished, within the time limit of all of them.

    A task is a cluster's number, what the verb is given of it, and its options.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    limit, begin = options.get("time_limit_s"), time.monotonic()
    workers = max(1, min(effective_n_jobs(None), len(effort)))
    if workers == 1:
        for k, (number, table, own) in enumerate(tasks):
            if limit is not None:  # what one cluster does not need is left for the others
                spent = time.monotonic() - begin
                own["time_limit_s"] = _seconds_for_table_cluster(
                    float(limit) - spent, float(effort[k] / effort[k:].sum()), float(limit)
                )
            yield number, verb(table, *args, **own)
        return
    shares = _time_shares_of_table_clusters(effort, workers)
    prepared = []
    for (number, table, own), share in zip(tasks, shares.tolist(), strict=True):
        own.pop("progress", None)  # nobody listens in another process
        if limit is not None:
            own["time_limit_s"] = _seconds_for_table_cluster(float(limit), share, float(limit))
        prepared.append(delayed(_release_of_numbered_cluster)(verb, number, table, tuple(args), own))
    yield from Parallel(n_jobs=None, return_as="generator_unordered")(prepared)


def _time_shares_of_table_clusters(effort: FloatArray, workers: int) -> FloatArray:
    """Return which share of the time each cluster may take, so that the last one ends within it.

    Whoever is free takes the next: five clusters of one size on two cores are three rounds.

    >>> _time_shares_of_table_clusters(np.ones(5), 2).round(2).tolist()
    [0.33, 0.33, 0.33, 0.33, 0.33]
    """
    busy = np.zeros(workers)
    for one in effort.tolist():
        busy[np.argmin(busy)] += one
    return np.asarray(effort / max(float(busy.max()), 1e-300))


def _seconds_for_table_cluster(seconds: float, share: float, limit: float) -> float:
    return min(limit, max(share * seconds, _LEAST_S))


def _release_of_numbered_cluster(
    verb: Callable[..., Found], number: int, given: Any, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[int, Found]:
    return number, verb(given, *args, **options)


def _options_for_table_cluster(options: Mapping[str, Any], system: Table, cells: IntArray) -> dict[str, Any]:
    """Return the options of a verb for one cluster: what names cells of the whole system names those of the cluster."""
    out = dict(options)
    place = np.full(system.n_cells, -1, np.int64)
    place[cells] = np.arange(len(cells))
    for name in _CELLS:
        given = np.asarray(options.get(name, ()))
        if given.size == 0:
            continue
        if given.dtype == bool and given.shape == (system.n_cells,):
            out[name] = given[cells]
        else:
            index = given.ravel().astype(np.int64)
            inside = (index >= 0) & (index < system.n_cells)  # the verb says what it thinks of the others
            local = place[index[inside]]
            out[name] = np.concatenate([local[local >= 0], index[~inside]])
    weights = options.get("weights")
    if isinstance(weights, str) and weights in WEIGHTS and any(part.priority != 1.0 for part in system.parts or ()):
        weights = system.with_weights(weights).weights  # a kind of weight knows nothing of priorities
    if weights is not None and not isinstance(weights, str):
        out["weights"] = np.broadcast_to(np.asarray(weights, np.float64), system.n_cells)[cells]
    return out


def _release_joined_from_clusters(table: Table, made: Sequence[tuple[Release, IntArray]]) -> Release:
    """Put the releases of clusters together: one of the whole system."""
    from cellguard.nouns.release import Status

    first = made[0][0]
    if len(made) == 1:
        return replace(first, table=_table_with_attackers_of_clusters(table, made))
    worst = (Status.INFEASIBLE, Status.TIME_LIMIT, Status.FEASIBLE, Status.OPTIMAL)
    status = next(s for s in worst if any(release.status is s for release, _ in made))
    changed: dict[str, Any] = {
        "table": _table_with_attackers_of_clusters(table, made),
        "status": status,
        "objective": float(sum(release.objective for release, _ in made)),
        "bound": float(sum(release.bound for release, _ in made)),
        "explanation": " ".join(dict.fromkeys(r.explanation for r, _ in made if r.explanation)),
        "seconds": _added_figures_of_clusters(release.seconds for release, _ in made),
        "details": _added_figures_of_clusters(release.details for release, _ in made),
    }
    for name, array in first.cell_arrays().items():
        changed[name] = np.zeros(table.n_cells, array.dtype)
        for release, cells in made:
            changed[name][cells] = getattr(release, name)
    if hasattr(first, "internal"):
        changed["internal"] = _release_columns_from_clusters(table, made)
    if hasattr(first, "step"):  # what is published of the step holds for every cluster
        changed["step"] = max(getattr(release, "step", 1) for release, _ in made)
    return replace(first, **changed)


def _release_columns_from_clusters(table: Table, made: Sequence[tuple[Release, IntArray]]) -> dict[str, Any]:
    """Put together what made the releases of clusters, cell by cell."""
    out: dict[str, Any] = {}
    for release, cells in made:
        for name, column in getattr(release, "internal", {}).items():
            out.setdefault(name, np.zeros(table.n_cells, column.dtype))[cells] = column
    return out


def _table_with_attackers_of_clusters(table: Table, made: Sequence[tuple[Release, IntArray]]) -> Table:
    """Return the system with everybody that the clusters were protected against, and what these know of each cell."""
    from cellguard.nouns.levels import table_with_respondent_attackers

    lb, ub = table.lb.copy(), table.ub.copy()
    for release, cells in made:
        lb[cells], ub[cells] = release.table.lb, release.table.ub
    if (lb != table.lb).any() or (ub != table.ub).any():
        table = table.with_(lb=lb, ub=ub)

    considered = any(release.table.insiders for release, _ in made)
    return table_with_respondent_attackers(table) if considered else table


def _added_figures_of_clusters(figures: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
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

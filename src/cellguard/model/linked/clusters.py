"""Protect a publication cluster by cluster. Clusters share no cell, so they can run in parallel on any machine.

Clusters run one after the other, or in parallel if an enclosing ``joblib.parallel_config`` says so (threads,
processes, a Dask or Ray cluster). The time limit covers all of them. A :class:`Keeper` receives each finished
release, so that a run that was stopped can resume with the remaining clusters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from cellguard._types import FloatArray

if TYPE_CHECKING:
    from cellguard.release.release import Release

__all__ = ["ClustersLeftError", "Keeper", "run_clusters_of_tables"]

Found = TypeVar("Found")

_LEAST_S = 1.0
"""Minimum time of a cluster in seconds: with less, a method finds nothing."""


class Keeper(Protocol):
    """Stores the releases of clusters until all are finished."""

    def load(self, number: int) -> Release | None:
        """Return the release of a cluster, if it was already made."""

    def save(self, number: int, release: Release) -> None:
        """Store the release of a cluster."""

    def should_protect(self, number: int) -> bool:
        """Return whether this process protects a cluster; others may be left to other processes."""


class ClustersLeftError(Exception):
    """Clusters were left to other processes, so there is no release of the whole publication."""


def run_clusters_of_tables(
    verb: Callable[..., Found],
    args: Sequence[Any],
    tasks: Iterable[tuple[int, Any, dict[str, Any]]],
    effort: FloatArray,
    options: Mapping[str, Any],
) -> Iterator[tuple[int, Found]]:
    """Yield the result of a verb for each cluster when it is finished, within the time limit of all clusters.

    A task is a cluster's number, the verb's input for it, and its options.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    limit, begin = options.get("time_limit_s"), time.monotonic()
    workers = max(1, min(effective_n_jobs(None), len(effort)))
    if workers == 1:
        for k, (number, table, own) in enumerate(tasks):
            if limit is not None:  # time that one cluster does not need is left for the others
                spent = time.monotonic() - begin
                own["time_limit_s"] = _limit_cluster_seconds(
                    float(limit) - spent, float(effort[k] / effort[k:].sum()), float(limit)
                )
            yield number, verb(table, *args, **own)
        return
    shares = _share_out_time(effort, workers)
    prepared = []
    for (number, table, own), share in zip(tasks, shares.tolist(), strict=True):
        own.pop("progress", None)  # the callback cannot be reached from another process
        if limit is not None:
            own["time_limit_s"] = _limit_cluster_seconds(float(limit), share, float(limit))
        prepared.append(delayed(_release_of_numbered_cluster)(verb, number, table, tuple(args), own))
    yield from Parallel(n_jobs=None, return_as="generator_unordered")(prepared)


def _share_out_time(effort: FloatArray, workers: int) -> FloatArray:
    """Return the share of the time that each cluster may take, so that the last one ends within the limit.

    A free worker takes the next cluster: five clusters of one size on two cores need three rounds.

    >>> _share_out_time(np.ones(5), 2).round(2).tolist()
    [0.33, 0.33, 0.33, 0.33, 0.33]
    """
    busy = np.zeros(workers)
    for one in effort.tolist():
        busy[np.argmin(busy)] += one
    return np.asarray(effort / max(float(busy.max()), 1e-300))


def _limit_cluster_seconds(seconds: float, share: float, limit: float) -> float:
    return min(limit, max(share * seconds, _LEAST_S))


def _release_of_numbered_cluster(
    verb: Callable[..., Found], number: int, given: Any, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[int, Found]:
    return number, verb(given, *args, **options)

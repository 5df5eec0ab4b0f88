"""How many cores the engine uses, for parallel tasks and for linear algebra.

Compiled loops and solvers release the interpreter lock while they work, so the threads of one process share the
work without copying a table. In linear algebra, threads make small factorizations slower (much slower when other
processes use the cores), and the last digits depend on the number of threads. So one thread is the default; only
large factorizations get more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

__all__ = ["count_cores", "limit_blas_threads", "run_on_threads"]

_Result = TypeVar("_Result")


@cache
def _get_blas_controller() -> Any:
    import scipy.linalg  # noqa: F401 - its library must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def limit_blas_threads(n: int = 1) -> AbstractContextManager[Any]:
    """Return a context in which matrix products and factorizations use `n` threads."""
    limit: AbstractContextManager[Any] = _get_blas_controller().limit(limits=n)
    return limit


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def run_on_threads(threads: int, tasks: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Run tasks on `threads` threads and return their results, in the order of the tasks.

    Tasks must not depend on each other's progress: then the number of threads changes only the time.

    >>> run_on_threads(2, [lambda: 1, lambda: 2, lambda: 3])
    [1, 2, 3]
    """
    if threads <= 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(min(threads, len(tasks)))
    try:
        waiting = [pool.submit(task) for task in tasks]
        return [one.result() for one in waiting]
    finally:  # after Ctrl-C nothing waits for tasks that have begun
        pool.shutdown(wait=False, cancel_futures=True)

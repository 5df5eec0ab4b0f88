"""How many cores are used: by what can be done side by side, and by the linear algebra.

Compiled loops and solvers leave the interpreter to others while they work, so threads of one process share the
work without copying a table. In the linear algebra threads make small factors slower, much slower when other
processes use the cores, and the last digits depend on their number. So one thread is the rule; only large
factors get more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["all_cores", "blas_threads", "on_one_blas_thread", "tasks_on_threads"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@cache
def _blas_controller() -> Any:
    import scipy.linalg  # noqa: F401 - its library must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def blas_threads(n: int = 1) -> AbstractContextManager[Any]:
    """Return a context in which matrix products and factors use so many threads."""
    limit: AbstractContextManager[Any] = _blas_controller().limit(limits=n)
    return limit


def on_one_blas_thread(verb: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a verb work with one thread per matrix product, as it is measured; inside it may ask for more."""

    @wraps(verb)
    def limited(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with blas_threads():
            return verb(*args, **kwargs)

    return limited


def all_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def tasks_on_threads(threads: int, tasks: Sequence[Callable[[], _Result]]) -> list[_Result]:
    """Do tasks on so many threads and return what they return, in their order.

    Tasks must not depend on each other's progress: then the number of threads changes nothing but the time.

    >>> tasks_on_threads(2, [lambda: 1, lambda: 2, lambda: 3])
    [1, 2, 3]
    """
    if threads <= 1 or len(tasks) <= 1:
        return [task() for task in tasks]
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(min(threads, len(tasks)))
    try:
        waiting = [pool.submit(task) for task in tasks]
        return [one.result() for one in waiting]
    finally:  # after Ctrl-C nobody waits for what has begun
        pool.shutdown(wait=False, cancel_futures=True)

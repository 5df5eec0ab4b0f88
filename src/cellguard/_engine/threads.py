"""How many cores the linear algebra uses.

Threads make small factors slower, much slower when other processes use the cores, and the last digits
depend on their number. So one thread is the rule; only large factors get more.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["blas_threads"]


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - its library must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def blas_threads(n: int = 1) -> AbstractContextManager[Any]:
    """Return a context in which matrix products and factors use so many threads."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=n)
    return limit

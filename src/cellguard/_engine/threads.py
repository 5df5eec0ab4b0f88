"""How many cores the linear algebra uses.

Threads make small factors slower, much slower when other processes use the cores, and the last digits
depend on their number. So one thread is the rule; only large factors get more.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["blas_threads", "on_one_blas_thread"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401 - its library must be loaded to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def blas_threads(n: int = 1) -> AbstractContextManager[Any]:
    """Return a context in which matrix products and factors use so many threads."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=n)
    return limit


def on_one_blas_thread(verb: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a verb work with one thread per matrix product, as it is measured; inside it may ask for more."""

    @wraps(verb)
    def limited(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        with blas_threads():
            return verb(*args, **kwargs)

    return limited

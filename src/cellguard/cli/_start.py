"""A quick start: what every verb imports and none uses is put off."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import LazyLoader, find_spec, module_from_spec

__all__ = ["put_off", "uncollected"]


def put_off(name: str) -> None:
    """Let a module be loaded when something of it is asked for, not when it is imported.

    scipy looks at every name of numpy once, and so imports numpy's compiler of Fortran: a fifth of the start.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None:
        return
    spec.loader = LazyLoader(spec.loader)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    parent, _, own = name.rpartition(".")
    setattr(sys.modules[parent], own, module)


@contextmanager
def uncollected() -> Iterator[None]:
    """Load libraries without looking for garbage among what they define: a third of the time, and none is found."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # what is loaded stays; later collections need not look at it
        gc.enable()

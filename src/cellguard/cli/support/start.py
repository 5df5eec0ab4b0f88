"""Start quickly: defer imports that every command triggers and none uses."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import Any

__all__ = ["pause_garbage_collection", "put_off_at_command_start", "register_lazy_class", "start_quickly"]

_UNUSED = ("numpy.f2py", "numpy.testing", "numpy.polynomial")
"""Modules that numpy loads because scipy looks at all its names."""


def start_quickly(*, asks_for_help: bool, verb: bool) -> None:
    """Defer modules that libraries load without need."""
    if asks_for_help:
        register_lazy_class("rich.markdown", "Markdown")
        register_lazy_class("rich.traceback", "Traceback")
    elif verb:
        for name in _UNUSED:
            put_off_at_command_start(name)


def put_off_at_command_start(name: str) -> None:
    """Load a module when one of its attributes is used, not when it is imported.

    scipy looks at every name of numpy once, and so imports numpy's Fortran compiler and its tests: a third of the
    start-up time.
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


def register_lazy_class(module: str, name: str) -> None:
    """Make a class importable without its module, which is loaded when the class is instantiated.

    The rich help text needs neither Markdown nor tracebacks, whose parsers are most of what it would load.
    """
    if module in sys.modules:
        return

    def make_instance(_: type, *args: Any, **options: Any) -> Any:
        if getattr(sys.modules.get(module), "__spec__", None) is None:
            sys.modules.pop(module, None)
        return getattr(import_module(module), name)(*args, **options)

    instead = ModuleType(module)
    setattr(instead, name, type(name, (), {"__new__": make_instance}))
    sys.modules[module] = instead


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Load libraries without garbage collection, which takes a third of the time and finds nothing."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # loaded objects stay; later collections need not scan them
        gc.enable()

"""A quick start: what every verb imports and none uses is put off."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType
from typing import Any

__all__ = ["put_off_at_command_start", "stand_in_at_start", "start_quickly", "uncollected_start"]

_UNUSED = ("numpy.f2py", "numpy.testing", "numpy.polynomial")
"""What scipy has numpy load by looking at all its names; other libraries load as much again."""


def start_quickly(*, asks_for_help: bool, verb: bool) -> None:
    """Leave out what the help, or a verb, has others load for nothing."""
    if asks_for_help:
        stand_in_at_start("rich.markdown", "Markdown")
        stand_in_at_start("rich.traceback", "Traceback")
    elif verb:
        for name in _UNUSED:
            put_off_at_command_start(name)


def put_off_at_command_start(name: str) -> None:
    """Let a module be loaded when something of it is asked for, not when it is imported.

    scipy looks at every name of numpy once, and so imports numpy's compiler of Fortran and its tests: a third of the
    start.
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


def stand_in_at_start(module: str, name: str) -> None:
    """Let a class of a module be imported without the module, which is loaded when one is made.

    Help in rich text needs neither Markdown nor tracebacks, whose parsers are most of what it would load.
    """
    if module in sys.modules:
        return

    def made(_: type, *args: Any, **options: Any) -> Any:
        if getattr(sys.modules.get(module), "__spec__", None) is None:
            sys.modules.pop(module, None)
        return getattr(import_module(module), name)(*args, **options)

    instead = ModuleType(module)
    setattr(instead, name, type(name, (), {"__new__": made}))
    sys.modules[module] = instead


@contextmanager
def uncollected_start() -> Iterator[None]:
    """Load libraries without looking for garbage among what they define: a third of the time, and none is found."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # what is loaded stays; later collections need not look at it
        gc.enable()

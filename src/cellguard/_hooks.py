"""Functions that a lower package calls and a higher package provides.

A convenience method such as ``table.apply(rule)`` belongs to a class of a low package, but its work is done in a higher
one. The low package calls it here by name; :mod:`cellguard` says which module provides it. The module is imported
at the first call, so that imports go downward only.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

__all__ = ["call_hook", "register_providers"]

_PROVIDERS: dict[str, str] = {}
"""Name of a hook -> where its function is, as ``module:function``."""


def register_providers(providers: Mapping[str, str]) -> None:
    """Say which function provides each hook, as ``module:function``."""
    _PROVIDERS.update(providers)


def call_hook(name: str, /, *arguments: Any, **options: Any) -> Any:
    """Call the function that provides a hook; import its module at the first call."""
    module, _, function = _PROVIDERS[name].partition(":")
    return getattr(import_module(module), function)(*arguments, **options)

"""Former names of public methods, which keep working for a while and warn."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = ["OldName"]


class OldName:
    """A former name of a method: works as before, and warns with the new name.

    >>> class Key:
    ...     def make_generator(self):
    ...         return "numbers"
    ...
    ...     generator = OldName("make_generator")
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     Key().generator()
    'numbers'
    >>> print(caught[0].message)
    Key.generator is now Key.make_generator.
    """

    def __init__(self, new: str) -> None:
        self._new = new
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: object, owner: type) -> Any:
        message = f"{owner.__name__}.{self._old} is now {owner.__name__}.{self._new}."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(owner if instance is None else instance, self._new)

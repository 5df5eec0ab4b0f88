"""The methods, in the order in which they are listed. A new one is a package next to the others and an entry here."""

from __future__ import annotations

from cellguard.exceptions import UnknownCodeError, raise_if_unknown
from cellguard.methods.adjust import METHOD as ADJUST
from cellguard.methods.intervals import METHOD as INTERVALS
from cellguard.methods.method import Method
from cellguard.methods.perturb import METHOD as PERTURB
from cellguard.methods.rounding import METHOD as ROUND
from cellguard.methods.suppress import METHOD as SUPPRESS

__all__ = ["METHODS", "get_method"]

METHODS: dict[str, Method] = {method.name: method for method in (SUPPRESS, ADJUST, INTERVALS, ROUND, PERTURB)}
"""Name -> method."""


def get_method(name: str) -> Method:
    """Return the method of this name, or raise an error that lists the names."""
    raise_if_unknown("method", name.lower(), METHODS, UnknownCodeError)
    return METHODS[name.lower()]

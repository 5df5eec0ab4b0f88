"""cellguard makes statistical tables safe to publish, and proves it.

>>> import cellguard as cg
>>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4])
>>> table
Table(3 cells, 1 relation, 1 sensitive)

Everything public is listed in ``__all__``; modules load when they are first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "Attacker": "attacker",
    "Audit": "audit",
    "CellStatistics": "rules",
    "CellguardError": "exceptions",
    "CountRule": "attack",
    "Custom": "rules",
    "Dominance": "rules",
    "Hierarchy": "hierarchy",
    "InputError": "exceptions",
    "Manual": "rules",
    "MinFrequency": "rules",
    "PPercent": "rules",
    "PriorPosterior": "rules",
    "Publication": "publication",
    "Release": "release",
    "Request": "rules",
    "Status": "release",
    "Table": "table",
    "Zero": "rules",
    "adjust": "adjust",
    "attack": "attack",
    "audit": "audit",
    "compare": "compare",
    "insiders": "insiders",
    "intervals": "intervals",
    "matching_attack": "attack",
    "perturb": "perturb",
    "read_release": "foreign",
    "round": "rounding",
    "suppress": "suppress",
    "tabulate": "tabulate",
    "verify": "witnesses",
    "with_insiders": "insiders",
}
"""Public name -> the module that defines it."""
_MODULES = ("examples", "generate")
"""Public modules: ``cg.examples.salazar2004_figure1()``, ``cg.generate.cube(seed=1)``."""

__all__ = list(_EXPORTS)

if TYPE_CHECKING:
    from cellguard.adjust import adjust as adjust
    from cellguard.attack import CountRule as CountRule
    from cellguard.attack import attack as attack
    from cellguard.attack import matching_attack as matching_attack
    from cellguard.attacker import Attacker as Attacker
    from cellguard.audit import Audit as Audit
    from cellguard.audit import audit as audit
    from cellguard.compare import compare as compare
    from cellguard.exceptions import CellguardError as CellguardError
    from cellguard.exceptions import InputError as InputError
    from cellguard.foreign import read_release as read_release
    from cellguard.hierarchy import Hierarchy as Hierarchy
    from cellguard.insiders import insiders as insiders
    from cellguard.insiders import with_insiders as with_insiders
    from cellguard.intervals import intervals as intervals
    from cellguard.perturb import perturb as perturb
    from cellguard.publication import Publication as Publication
    from cellguard.release import Release as Release
    from cellguard.release import Status as Status
    from cellguard.rounding import round as round
    from cellguard.rules import CellStatistics as CellStatistics
    from cellguard.rules import Custom as Custom
    from cellguard.rules import Dominance as Dominance
    from cellguard.rules import Manual as Manual
    from cellguard.rules import MinFrequency as MinFrequency
    from cellguard.rules import PPercent as PPercent
    from cellguard.rules import PriorPosterior as PriorPosterior
    from cellguard.rules import Request as Request
    from cellguard.rules import Zero as Zero
    from cellguard.suppress import suppress as suppress
    from cellguard.table import Table as Table
    from cellguard.tabulate import tabulate as tabulate
    from cellguard.witnesses import verify as verify


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"cellguard.{name}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'cellguard' has no attribute {name!r}")
    module = import_module(f"cellguard.{_EXPORTS[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])


class _Package(ModuleType):
    """The package itself. ``cellguard.audit`` is the verb, also once the module of that name is loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _EXPORTS):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package

"""cellguard makes statistical tables safe to publish, and proves it.

>>> import cellguard as cg
>>> table = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0], lower=[4], upper=[4])
>>> table
Table(3 cells, 1 relation, 1 sensitive)

Everything public is listed in ``__all__``; modules load when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_EXPORTS = {
    "Attacker": "nouns.attacker",
    "Audit": "check.audit",
    "CellStatistics": "data.rules",
    "CellguardError": "exceptions",
    "CountRule": "check.attack",
    "Custom": "data.rules",
    "Dominance": "data.rules",
    "Hierarchy": "nouns.hierarchy",
    "InputError": "exceptions",
    "Manual": "data.rules",
    "MinFrequency": "data.rules",
    "PPercent": "data.rules",
    "Part": "nouns.publication",
    "PriorPosterior": "data.rules",
    "Publication": "nouns.publication",
    "Release": "nouns.release",
    "Request": "data.rules",
    "Status": "nouns.release",
    "Table": "nouns.table",
    "Zero": "data.rules",
    "adjust": "methods.adjust.verb",
    "attack": "check.attack",
    "audit": "check.audit",
    "compare": "methods.compare",
    "insiders": "data.insiders",
    "intervals": "methods.intervals.verb",
    "matching_attack": "check.attack",
    "perturb": "methods.perturb.verb",
    "read_release": "check.read_release",
    "round": "methods.round.verb",
    "suppress": "methods.suppress.verb",
    "tabulate": "data.tabulate",
    "tabulate_publication": "data.tabulate.publication",
    "verify": "check.witnesses",
    "with_insiders": "data.insiders",
}
"""Public name -> the module that defines it."""
_MODULES = {"examples": "data.examples", "generate": "data.generate", "rules": "data.rules"}
"""Public modules: ``cg.examples.salazar2004_figure1()``, ``cg.generate.cube(seed=1)``."""

__all__ = list(_EXPORTS)

if TYPE_CHECKING:
    from cellguard.check.attack import CountRule as CountRule
    from cellguard.check.attack import attack as attack
    from cellguard.check.attack import matching_attack as matching_attack
    from cellguard.check.audit import Audit as Audit
    from cellguard.check.audit import audit as audit
    from cellguard.check.read_release import read_release as read_release
    from cellguard.check.witnesses import verify as verify
    from cellguard.data.insiders import insiders as insiders
    from cellguard.data.insiders import with_insiders as with_insiders
    from cellguard.data.rules import CellStatistics as CellStatistics
    from cellguard.data.rules import Custom as Custom
    from cellguard.data.rules import Dominance as Dominance
    from cellguard.data.rules import Manual as Manual
    from cellguard.data.rules import MinFrequency as MinFrequency
    from cellguard.data.rules import PPercent as PPercent
    from cellguard.data.rules import PriorPosterior as PriorPosterior
    from cellguard.data.rules import Request as Request
    from cellguard.data.rules import Zero as Zero
    from cellguard.data.tabulate import tabulate as tabulate
    from cellguard.data.tabulate.publication import tabulate_publication as tabulate_publication
    from cellguard.exceptions import CellguardError as CellguardError
    from cellguard.exceptions import InputError as InputError
    from cellguard.methods.adjust.verb import adjust as adjust
    from cellguard.methods.compare import compare as compare
    from cellguard.methods.intervals.verb import intervals as intervals
    from cellguard.methods.perturb.verb import perturb as perturb
    from cellguard.methods.round.verb import round as round
    from cellguard.methods.suppress.verb import suppress as suppress
    from cellguard.nouns.attacker import Attacker as Attacker
    from cellguard.nouns.hierarchy import Hierarchy as Hierarchy
    from cellguard.nouns.publication import Part as Part
    from cellguard.nouns.publication import Publication as Publication
    from cellguard.nouns.release import Release as Release
    from cellguard.nouns.release import Status as Status
    from cellguard.nouns.table import Table as Table


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"cellguard.{_MODULES[name]}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'cellguard' has no attribute {name!r}")
    module = import_module(f"cellguard.{_EXPORTS[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])

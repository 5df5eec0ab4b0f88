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

from cellguard._hooks import register_providers

__version__ = "0.2.0"

_EXPORTS = {
    "Attacker": "model.attacker",
    "Audit": "auditing.audit",
    "CellStatistics": "rules",
    "CellguardError": "exceptions",
    "CountRule": "attacks",
    "Custom": "rules",
    "Derived": "history.derived",
    "Differences": "differencing.differences",
    "Dominance": "rules",
    "EarlierRelease": "history.earlier",
    "Hierarchy": "model.hierarchy",
    "History": "history.earlier",
    "InputError": "exceptions",
    "Key": "model.key",
    "Manual": "rules",
    "MinFrequency": "rules",
    "PPercent": "rules",
    "Part": "model.linked.publication",
    "PriorPosterior": "rules",
    "PublicRanges": "published.ranges",
    "Publication": "model.linked.publication",
    "Release": "release.release",
    "Request": "rules",
    "Status": "release.release",
    "Table": "model.table",
    "TablePlan": "jobs.table_list.plan",
    "Zero": "rules",
    "adjust": "methods.adjust.adjust",
    "apply_apriori": "rules",
    "attack": "attacks",
    "audit": "auditing.audit",
    "compare": "methods.compare",
    "compare_patterns": "auditing.patterns",
    "find_differences": "differencing.differences",
    "insiders": "attackers.respondents",
    "intervals": "methods.intervals.intervals",
    "matching_attack": "attacks",
    "perturb": "methods.perturb.perturb",
    "plan_tables": "jobs.table_list.plan",
    "public_ranges": "published.ranges",
    "read_release": "release.readers.read_release",
    "round": "methods.rounding.rounding",
    "suppress": "methods.suppress.suppress",
    "tabulate": "tabulation",
    "tabulate_publication": "tabulation.publication",
    "verify": "auditing.witnesses",
    "with_insiders": "attackers.respondents",
}
"""Public name -> the module that defines it."""
_MODULES = {"examples": "datasets.examples", "generate": "datasets.generate", "rules": "rules"}
"""Public modules: ``cg.examples.salazar2004_figure1()``, ``cg.generate.cube(seed=1)``."""

register_providers(
    {
        "add_contributions": "cellguard.rules.contributions:add_contributions",
        "apply_rules": "cellguard.rules.apply:apply",
        "audit": "cellguard.auditing.audit:audit",
        "derive_attackers": "cellguard.attackers.derive:derive_attackers",
        "draw_hierarchy": "cellguard.release.pictures:draw_hierarchy",
        "draw_publication": "cellguard.release.pictures:draw_publication",
        "draw_table": "cellguard.release.pictures:draw_table",
        "explain_cell": "cellguard.auditing.why:explain_cell",
    }
)

__all__ = list(_EXPORTS)

if TYPE_CHECKING:
    from cellguard.attackers.respondents import insiders as insiders
    from cellguard.attackers.respondents import with_insiders as with_insiders
    from cellguard.attacks import CountRule as CountRule
    from cellguard.attacks import attack as attack
    from cellguard.attacks import matching_attack as matching_attack
    from cellguard.auditing.audit import Audit as Audit
    from cellguard.auditing.audit import audit as audit
    from cellguard.auditing.patterns import compare_patterns as compare_patterns
    from cellguard.auditing.witnesses import verify as verify
    from cellguard.differencing.differences import Differences as Differences
    from cellguard.differencing.differences import find_differences as find_differences
    from cellguard.exceptions import CellguardError as CellguardError
    from cellguard.exceptions import InputError as InputError
    from cellguard.history.derived import Derived as Derived
    from cellguard.history.earlier import EarlierRelease as EarlierRelease
    from cellguard.history.earlier import History as History
    from cellguard.jobs.table_list.plan import TablePlan as TablePlan
    from cellguard.jobs.table_list.plan import plan_tables as plan_tables
    from cellguard.methods.adjust.adjust import adjust as adjust
    from cellguard.methods.compare import compare as compare
    from cellguard.methods.intervals.intervals import intervals as intervals
    from cellguard.methods.perturb.perturb import perturb as perturb
    from cellguard.methods.rounding.rounding import round as round
    from cellguard.methods.suppress.suppress import suppress as suppress
    from cellguard.model.attacker import Attacker as Attacker
    from cellguard.model.hierarchy import Hierarchy as Hierarchy
    from cellguard.model.key import Key as Key
    from cellguard.model.linked.publication import Part as Part
    from cellguard.model.linked.publication import Publication as Publication
    from cellguard.model.table import Table as Table
    from cellguard.published.ranges import PublicRanges as PublicRanges
    from cellguard.published.ranges import public_ranges as public_ranges
    from cellguard.release.readers.read_release import read_release as read_release
    from cellguard.release.release import Release as Release
    from cellguard.release.release import Status as Status
    from cellguard.rules import CellStatistics as CellStatistics
    from cellguard.rules import Custom as Custom
    from cellguard.rules import Dominance as Dominance
    from cellguard.rules import Manual as Manual
    from cellguard.rules import MinFrequency as MinFrequency
    from cellguard.rules import PPercent as PPercent
    from cellguard.rules import PriorPosterior as PriorPosterior
    from cellguard.rules import Request as Request
    from cellguard.rules import Zero as Zero
    from cellguard.rules import apply_apriori as apply_apriori
    from cellguard.tabulation import tabulate as tabulate
    from cellguard.tabulation.publication import tabulate_publication as tabulate_publication


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"cellguard.{_MODULES[name]}")
    if name not in _EXPORTS:
        raise AttributeError(f"module 'cellguard' has no attribute {name!r}")
    module = import_module(f"cellguard.{_EXPORTS[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_EXPORTS])

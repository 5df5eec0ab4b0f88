"""Decisions about single cells: lines of the job and of the file of decisions that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cellguard._io.argus.hst import Decision, read_hst, write_hst
from cellguard.exceptions import CellguardError, InputError
from cellguard.publish.check import Mistake
from cellguard.web.projects import Project

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = ["FILE", "decide", "decisions_of"]

FILE = "decisions.hst"
_ACTIONS = {"publish": "P", "withhold": "W"}
_CHEAP = 0.0
"""What it costs to withhold a cell that may be withheld."""


def decisions_of(project: Project, raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what was decided by hand so far."""
    rules = raw.get("rules")
    manual = [r for r in rules if _is_manual(r)] if isinstance(rules, list) else []
    out = [{"decision": "protect", "codes": cell} for rule in manual for cell in rule.get("cells", [])]
    dimensions = list(raw.get("dimensions", {})) if isinstance(raw.get("dimensions"), dict) else []
    words = {action: name for name, action in _ACTIONS.items()}
    try:
        lines = _lines(project, len(dimensions))
    except CellguardError:
        return out
    out += [
        {"decision": words[line.action], "codes": dict(zip(dimensions, line.codes, strict=True))}
        for line in lines
        if line.action in words
    ]
    return out


def decide(project: Project, table: Table, codes: Mapping[str, str], decision: str) -> list[Mistake]:
    """Decide of one cell; what was decided of it before is forgotten. Returns what is wrong with it."""
    cell = table.cell(codes)
    whole = {d: found[0] for d, found in table.cell_codes([cell]).items()}
    by_hand = {"decision": "protect", "codes": whole} in decisions_of(project, project.raw())
    if decision == "publish" and table.sensitive[cell] and not by_hand:
        raise InputError("the cell is sensitive: it cannot be published as it is.", hint="change the rules instead.")
    if any("," in code or '"' in code for code in whole.values()) and decision in _ACTIONS:
        raise InputError("a code of this cell holds a comma or a quote: the file of decisions cannot name it.")
    raw = project.raw()
    rules = [left for rule in raw.get("rules", []) if (left := _without(rule, whole)) is not None]
    lines = [line for line in _lines(project, len(table.dimensions)) if line.codes != tuple(whole.values())]
    if decision == "protect":
        rules = _with_cell(rules, whole)
    elif decision in _ACTIONS:
        costs = (_CHEAP,) if decision == "withhold" else ()
        lines.append(Decision(codes=tuple(whole.values()), action=_ACTIONS[decision], numbers=costs))
    named = [rule for rule in rules if rule.get("rule") == "a_priori" and rule.get("file") == FILE]
    if lines and not named:
        rules.append({"rule": "a_priori", "file": FILE})
    if not lines:
        rules = [rule for rule in rules if rule not in named]
    write_hst(project.folder / FILE, lines)
    return project.change("rules", {"rules": rules})


def _is_manual(rule: Any) -> bool:
    return isinstance(rule, dict) and rule.get("rule") == "manual"


def _without(rule: dict[str, Any], codes: Mapping[str, str]) -> dict[str, Any] | None:
    """Take a cell out of a rule by hand; the rule goes with its last cell."""
    if not _is_manual(rule):
        return rule
    left = [cell for cell in rule.get("cells", []) if {**dict.fromkeys(codes), **cell} != dict(codes)]
    return {**rule, "cells": left} if left else None


def _with_cell(rules: list[dict[str, Any]], codes: Mapping[str, str]) -> list[dict[str, Any]]:
    for k, rule in enumerate(rules):
        if _is_manual(rule):
            return [*rules[:k], {**rule, "cells": [*rule.get("cells", []), dict(codes)]}, *rules[k + 1 :]]
    return [*rules, {"rule": "manual", "cells": [dict(codes)], "percent": 20}]


def _lines(project: Project, dimensions: int) -> list[Decision]:
    path = project.folder / FILE
    if path.is_symlink() or not path.is_file() or not dimensions:
        return []
    return read_hst(path, dimensions)

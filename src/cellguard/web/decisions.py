"""Decisions about single cells: lines of the job and of the file of decisions that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cellguard._io.argus.hst import Decision, read_hst, write_hst
from cellguard.exceptions import CellguardError, InputError
from cellguard.web.projects import Project

if TYPE_CHECKING:
    from cellguard.nouns.table import Table
    from cellguard.publish.check import Mistake

__all__ = ["FILE", "decide", "decision_of"]

FILE = "decisions.hst"
_ACTIONS = {"publish": "P", "withhold": "W"}
_CHEAP = 0.0
"""What it costs to withhold a cell that may be withheld."""


def decision_of(project: Project, table: Table, cell: int) -> str:
    """Return what was decided of a cell by hand; "none" where nothing was."""
    whole = table.codes_of(cell)
    totals = _totals_in_decision(table)
    try:
        raw, lines = project.raw(), _decision_lines(project, len(table.dimensions))
    except CellguardError:
        return "none"
    rules = raw.get("rules")
    manual = [rule for rule in rules if _is_decided_by_hand(rule)] if isinstance(rules, list) else []
    if any(totals | named == whole for rule in manual for named in rule.get("cells", [])):
        return "protect"
    words = {action: name for name, action in _ACTIONS.items()}
    found = [words[line.action] for line in lines if line.action in words and line.codes == tuple(whole.values())]
    return found[-1] if found else "none"


def decide(project: Project, flagged: Callable[[], Table], codes: Mapping[str, str], decision: str) -> list[Mistake]:
    """Decide of one cell; what was decided of it before is forgotten. Returns what is wrong with it.

    `flagged` makes the table of the job as it is now: a decision without the effect that was asked for is taken back.
    """
    table = flagged()
    cell = table.cell(codes)
    whole = table.codes_of(cell)
    before = decision_of(project, table, cell)
    if decision == "publish" and table.sensitive[cell] and before != "protect":
        raise InputError("the cell is sensitive: it cannot be published as it is.", hint="change the rules instead.")
    if any("," in code or '"' in code for code in whole.values()) and decision in _ACTIONS:
        raise InputError("a code of this cell holds a comma or a quote: the file of decisions cannot name it.")
    text, lines = project.text(), _decision_lines(project, len(table.dimensions))
    wrong = _write_decision(project, table, whole, decision, lines)
    if not wrong and decision == "protect":
        try:
            effect = bool(flagged().sensitive[cell])
        except CellguardError:
            effect = False
        if not effect:
            project.write_text(text)
            write_hst(project.folder / FILE, lines)
            raise InputError("this cell cannot be named in a rule of its own.", hint="mark it in a file of decisions.")
    return wrong


def _write_decision(
    project: Project, table: Table, whole: dict[str, str], decision: str, before: list[Decision]
) -> list[Mistake]:
    totals = _totals_in_decision(table)
    rules = [
        left
        for rule in project.raw().get("rules", [])
        if (left := _decision_taken_back(rule, whole, totals)) is not None
    ]
    lines = [line for line in before if line.codes != tuple(whole.values())]
    if decision == "protect":
        # tables of a publication have only some of the dimensions: what is left out is at its total
        rules = _rules_with_decision(rules, {d: code for d, code in whole.items() if code != totals[d]} or whole)
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


def _totals_in_decision(table: Table) -> dict[str, str]:
    return {d: codes[0] for d, codes in zip(table.dimensions, table.codes, strict=True)}


def _is_decided_by_hand(rule: Any) -> bool:
    return isinstance(rule, dict) and rule.get("rule") == "manual"


def _decision_taken_back(rule: dict[str, Any], whole: dict[str, str], totals: dict[str, str]) -> dict[str, Any] | None:
    """Take a cell out of a rule by hand; the rule goes with its last cell."""
    if not _is_decided_by_hand(rule):
        return rule
    left = [named for named in rule.get("cells", []) if totals | named != whole]
    return {**rule, "cells": left} if left else None


def _rules_with_decision(rules: list[dict[str, Any]], codes: Mapping[str, str]) -> list[dict[str, Any]]:
    for k, rule in enumerate(rules):
        if _is_decided_by_hand(rule):
            return [*rules[:k], {**rule, "cells": [*rule.get("cells", []), dict(codes)]}, *rules[k + 1 :]]
    return [*rules, {"rule": "manual", "cells": [dict(codes)], "percent": 20}]


def _decision_lines(project: Project, dimensions: int) -> list[Decision]:
    path = project.folder / FILE
    if path.is_symlink() or not path.is_file() or not dimensions:
        return []
    return read_hst(path, dimensions)

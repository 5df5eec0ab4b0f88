"""Decisions about single cells, stored in the job and in the decision file that it names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cellguard._io.hst import Decision, read_hst, write_hst
from cellguard.exceptions import CellguardError, InputError
from cellguard.web.projects import Project

if TYPE_CHECKING:
    from cellguard.jobs.definition.check import Mistake
    from cellguard.model.table import Table

__all__ = ["FILE", "decide", "get_decision"]

FILE = "decisions.hst"
_ACTIONS = {"publish": "P", "withhold": "W"}
_CHEAP = 0.0
"""Cost of withholding a cell that may be withheld."""


def get_decision(project: Project, table: Table, cell: int) -> str:
    """Return the decision about a cell; "none" if there is none."""
    whole = table.cell_codes(int(cell))
    totals = _list_totals(table)
    try:
        raw, lines = project.read_raw(), _list_decisions(project, len(table.dimensions))
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
    """Decide about one cell, replacing any earlier decision. Return the mistakes of the decision.

    `flagged` makes the current table of the job: a decision without the intended effect is reverted.
    """
    table = flagged()
    cell = table.cell(codes)
    whole = table.cell_codes(int(cell))
    before = get_decision(project, table, cell)
    if decision == "publish" and table.sensitive[cell] and before != "protect":
        raise InputError("the cell is sensitive: it cannot be published unchanged.", hint="change the rules instead.")
    if any("," in code or '"' in code for code in whole.values()) and decision in _ACTIONS:
        raise InputError("a code of this cell holds a comma or a quote: the file of decisions cannot name it.")
    text, lines = project.read_text(), _list_decisions(project, len(table.dimensions))
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
    totals = _list_totals(table)
    rules = [
        left
        for rule in project.read_raw().get("rules", [])
        if (left := _remove_decision(rule, whole, totals)) is not None
    ]
    lines = [line for line in before if line.codes != tuple(whole.values())]
    if decision == "protect":
        # tables of a publication have only some of the dimensions: the others are at their totals
        rules = _add_decision(rules, {d: code for d, code in whole.items() if code != totals[d]} or whole)
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


def _list_totals(table: Table) -> dict[str, str]:
    return {d: codes[0] for d, codes in zip(table.dimensions, table.codes, strict=True)}


def _is_decided_by_hand(rule: Any) -> bool:
    return isinstance(rule, dict) and rule.get("rule") == "manual"


def _remove_decision(rule: dict[str, Any], whole: dict[str, str], totals: dict[str, str]) -> dict[str, Any] | None:
    """Remove a cell from a manual rule; remove the rule with its last cell."""
    if not _is_decided_by_hand(rule):
        return rule
    left = [named for named in rule.get("cells", []) if totals | named != whole]
    return {**rule, "cells": left} if left else None


def _add_decision(rules: list[dict[str, Any]], codes: Mapping[str, str]) -> list[dict[str, Any]]:
    for k, rule in enumerate(rules):
        if _is_decided_by_hand(rule):
            return [*rules[:k], {**rule, "cells": [*rule.get("cells", []), dict(codes)]}, *rules[k + 1 :]]
    return [*rules, {"rule": "manual", "cells": [dict(codes)], "percent": 20}]


def _list_decisions(project: Project, dimensions: int) -> list[Decision]:
    path = project.folder / FILE
    if path.is_symlink() or not path.is_file() or not dimensions:
        return []
    return read_hst(path, dimensions)

"""Rules of a publication: which hold for a table, in the table's own names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cellguard.exceptions import CellguardError, PublicationError, UnknownCodeError, did_you_mean
from cellguard.nouns.publication import Part
from cellguard.publish.rule_sections import AprioriSection, ManualSection, RuleSection

__all__ = ["local_rules"]


def local_rules(rules: Sequence[RuleSection], parts: Sequence[Part]) -> list[list[RuleSection]]:
    """Return the rules of each table; a code that no table has is refused."""
    wrong = [mistake for entry in rules for mistake in _unknown_codes(entry, parts)]
    PublicationError.refuse(wrong)
    found = []
    for part in parts:
        named = (entry for entry in rules if not isinstance(entry, AprioriSection) and _rule_holds(entry, part))
        found.append([local for entry in named if (local := _local_rule(entry, part)) is not None])
    return found


def _rule_holds(entry: RuleSection, part: Part) -> bool:
    named = not entry.tables or part.table.name in entry.tables
    return named and (not entry.indicators or part.indicator in entry.indicators)


def _local_rule(entry: RuleSection, part: Part) -> RuleSection | None:
    """Return the rule for one table: its own names of dimensions, and the codes it has; None where nothing is left."""
    own = {
        part.dimension(name): (name, set(codes))
        for name, codes in zip(part.table.dimensions, part.table.codes, strict=True)
    }
    only: dict[str, Any] = {}
    for dimension, given in entry.only.items():
        wanted = {given} if isinstance(given, str) else set(given)
        if dimension in own:
            name, codes = own[dimension]
            only[name] = sorted(wanted & codes)
            if not only[name]:
                return None
        elif part.where.get(dimension) not in wanted:
            return None  # its cells are at the total of this dimension
    excluding: dict[str, Any] = {}
    for dimension, given in entry.excluding.items():
        wanted = {given} if isinstance(given, str) else set(given)
        if dimension in own:
            name, codes = own[dimension]
            excluding[name] = sorted(wanted & codes)
        elif part.where.get(dimension) in wanted:
            return None
    changes: dict[str, Any] = {"only": only, "excluding": {d: c for d, c in excluding.items() if c}}
    if isinstance(entry, ManualSection):
        cells = [cell for given in entry.cells if (cell := _local_cell(given, part, own)) is not None]
        if not cells:
            return None
        changes["cells"] = cells
    return entry.model_copy(update=changes)


def _local_cell(given: Mapping[str, str], part: Part, own: Mapping[str, tuple[str, set[str]]]) -> dict[str, str] | None:
    """Return a cell in the names of the table, if it stands there."""
    out = {}
    for dimension, code in given.items():
        if dimension in own and code in own[dimension][1]:
            out[own[dimension][0]] = code
        elif part.where.get(dimension) != code:
            return None
    covered = all(given.get(dimension) == code for dimension, code in part.where.items())
    return out if covered else None


def _unknown_codes(entry: RuleSection, parts: Sequence[Part]) -> Iterator[CellguardError]:
    """Yield codes of a rule that no table has."""
    named = [(d, c) for place in (entry.only, entry.excluding) for d, cs in place.items() for c in _listed_codes(cs)]
    if isinstance(entry, ManualSection):
        named += [(d, c) for cell in entry.cells for d, c in cell.items()]
    for dimension, code in dict.fromkeys(named):
        known = {part.where[dimension] for part in parts if dimension in part.where}
        for part in parts:
            for name, codes in zip(part.table.dimensions, part.table.codes, strict=True):
                known.update(codes if part.dimension(name) == dimension else ())
        if code not in known:
            text = f"rule {entry.rule}: no table has the code {code!r} of {dimension!r}."
            yield UnknownCodeError(text, hint=did_you_mean(code, known))


def _listed_codes(codes: str | Sequence[str]) -> Sequence[str]:
    return [codes] if isinstance(codes, str) else codes

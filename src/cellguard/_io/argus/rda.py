"""``.rda``: the variables of a microdata file, or of a ready table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from cellguard._io.argus.words import int_of, lines_of, quoted, unquoted, words
from cellguard._io.files import write_lines
from cellguard.exceptions import FormatError, UnknownCodeError, did_you_mean

__all__ = ["Metadata", "Variable", "read_rda", "write_rda"]

_TAG = re.compile(r"<([A-Za-z]+)>([^<>]*)")
_ROLES = {
    "WEIGHT": "weight",
    "HOLDING": "holding",
    "REQUEST": "request",
    "SHADOW": "shadow",
    "COST": "cost",
    "COSTVAR": "cost",
    "LOWERPL": "lower",
    "UPPERPL": "upper",
    "FREQUENCY": "frequency",
    "MAXSCORE": "top",
    "STATUS": "status",
}
_HINT = "an .rda file lists variables, each with its tags on the lines below, such as <RECODEABLE> or <NUMERIC>."


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A column of the data and what its tags say."""

    name: str
    start: int | None = None
    """First column, from 1; None in a file with separators."""
    width: int | None = None
    missing: tuple[str, ...] = ()
    """Codes that stand for "not known"."""
    role: str = ""
    """What the variable is for: weight, holding, request, shadow, cost, lower, upper, frequency, top, status."""
    recodable: bool = False
    """Whether it is a dimension."""
    numeric: bool = False
    decimals: int = 0
    total_code: str = ""
    code_list: str = ""
    """File with labels (``.cdl``)."""
    hierarchical: bool = False
    levels: tuple[int, ...] = ()
    """Digits of each level."""
    hierarchy: str = ""
    """File with the hierarchy (``.hrc``)."""
    lead: str = "@"
    distance: tuple[int, ...] = ()
    request_codes: tuple[str, ...] = ()
    """Codes that stand for a request of the first and of the second kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The variables in the order of the file, and how it is written."""

    variables: tuple[Variable, ...]
    separator: str = ""
    """What parts the columns; empty for fixed width."""
    safe: str = "S"
    unsafe: str = "U"
    protect: str = "P"
    source: str = field(default="", compare=False)

    def __getitem__(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name.lower() == name.lower():
                return variable
        hint = did_you_mean(name, [v.name for v in self.variables])
        raise UnknownCodeError(f"{self.source or 'metadata'}: there is no variable {name!r}.", hint=hint)

    def with_role(self, role: str) -> list[Variable]:
        """Return the variables with a role, in order."""
        return [v for v in self.variables if v.role == role]


def read_rda(path: str | Path, *, table: bool = False) -> Metadata:
    """Read an ``.rda`` file; `table` says that it describes a ready table, whose columns have no width."""
    head: dict[str, str] = {}
    variables: list[Variable] = []
    for number, line in lines_of(path):
        if line.lstrip().startswith("<"):
            for tag, argument in _tags_of_line(line, path, number):
                if variables and tag not in ("SEPARATOR", "SAFE", "UNSAFE", "PROTECT"):
                    variables[-1] = _with_tag(variables[-1], tag, argument, path, number)
                else:
                    head[tag] = _header_text(tag, argument, path, number)
        else:
            variables.append(_variable_of_line(words(line), path, number, table=table, fixed="SEPARATOR" not in head))
    if not variables:
        raise FormatError.at(path, None, "describes no variable.", hint=_HINT)
    names = [v.name.lower() for v in variables]
    if len(set(names)) != len(names):
        raise FormatError.at(path, None, f"variable {next(n for n in names if names.count(n) > 1)!r} is listed twice.")
    texts = {"safe": head.get("SAFE", "S"), "unsafe": head.get("UNSAFE", "U"), "protect": head.get("PROTECT", "P")}
    # A ready table always has separators; tau-ARGUS takes ";" when none is named.
    separator = head.get("SEPARATOR", ";" if table else "")
    return Metadata(variables=tuple(variables), separator=separator, source=str(path), **texts)


def _tags_of_line(line: str, path: str | Path, number: int) -> Iterator[tuple[str, str]]:
    if _TAG.sub("", line).strip():
        raise FormatError.at(path, number, "tags look like <NAME> value.", hint=_HINT)
    for match in _TAG.finditer(line):
        yield match.group(1).upper(), match.group(2).strip()


def _header_text(tag: str, argument: str, path: str | Path, number: int) -> str:
    if tag not in ("SEPARATOR", "SAFE", "UNSAFE", "PROTECT"):
        raise FormatError.at(path, number, f"<{tag}> stands before the first variable.", hint=_HINT)
    text = unquoted(argument)
    if not text:
        raise FormatError.at(path, number, f"<{tag}> needs a text.")
    if tag == "SEPARATOR" and text.lower() in ("\\t", "tab"):
        return "\t"
    return text


def _variable_of_line(parts: list[str], path: str | Path, number: int, *, table: bool, fixed: bool) -> Variable:
    name, rest = parts[0], parts[1:]
    if table:
        return Variable(name=name, missing=tuple(rest))
    wanted = 2 if fixed else 1
    if len(rest) < wanted or len(rest) > wanted + 2:
        what = "name, first column, width" if fixed else "name, width"
        raise FormatError.at(path, number, f"a variable has {what} and up to two missing codes.", hint=_HINT)
    places = [int_of(text, path, number, "the place or width of a variable") for text in rest[:wanted]]
    if min(places) < 1:
        raise FormatError.at(path, number, "columns and widths are counted from 1.")
    start, width = (places[0], places[1]) if fixed else (None, places[0])
    return Variable(name=name, start=start, width=width, missing=tuple(rest[wanted:]))


def _with_tag(variable: Variable, tag: str, argument: str, path: str | Path, number: int) -> Variable:
    """Return the variable with what one tag says."""
    if tag in _ROLES:
        codes = tuple(words(argument)) if tag == "REQUEST" else variable.request_codes
        return replace(variable, role=_ROLES[tag], request_codes=codes)
    if tag in ("RECODEABLE", "RECODABLE"):
        return replace(variable, recodable=True)
    if tag in ("NUMERIC", "HIERARCHICAL"):
        return replace(variable, **cast("dict[str, Any]", {tag.lower(): True}))
    if tag in ("HIERLEVELS", "DISTANCE"):
        digits = tuple(int_of(w, path, number, f"<{tag}>") for w in words(argument))
        if tag == "DISTANCE":
            return replace(variable, distance=digits)
        if variable.width is not None and sum(digits) != variable.width:
            raise FormatError.at(path, number, f"<HIERLEVELS> sum to {sum(digits)}; the width is {variable.width}.")
        return replace(variable, levels=tuple(d for d in digits if d))
    if tag == "DECIMALS":
        return replace(variable, decimals=int_of(argument, path, number, "<DECIMALS>"))
    texts = {"TOTCODE": "total_code", "CODELIST": "code_list", "HIERCODELIST": "hierarchy", "HIERLEADSTRING": "lead"}
    if tag in texts:
        return replace(variable, **cast("dict[str, Any]", {texts[tag]: unquoted(argument)}))
    known = [*_ROLES, *texts, "RECODEABLE", "NUMERIC", "HIERARCHICAL", "HIERLEVELS", "DISTANCE", "DECIMALS"]
    raise FormatError.at(path, number, f"unknown tag <{tag}>.", hint=did_you_mean(tag, known) or _HINT)


def write_rda(path: str | Path, metadata: Metadata) -> None:
    """Write an ``.rda`` file, atomically."""
    table = all(v.width is None for v in metadata.variables)
    lines = [f"<SEPARATOR> {quoted(metadata.separator)}"] if metadata.separator else []
    if table:
        lines += [f"<{t.upper()}> {quoted(getattr(metadata, t))}" for t in ("safe", "unsafe", "protect")]
    for v in metadata.variables:
        places = [str(p) for p in (v.start, v.width) if p is not None]
        lines.append(" ".join([v.name, *places, *(quoted(m) for m in v.missing)]))
        lines += [f"   {tag}" for tag in _tags_of_variable(v)]
    write_lines(path, lines)


def _tags_of_variable(v: Variable) -> Iterator[str]:
    if v.recodable:
        yield "<RECODEABLE>"
    if v.total_code:
        yield f"<TOTCODE> {quoted(v.total_code)}"
    if v.code_list:
        yield f"<CODELIST> {quoted(v.code_list)}"
    if v.hierarchical:
        yield "<HIERARCHICAL>"
    if v.levels:
        yield f"<HIERLEVELS> {' '.join(map(str, v.levels))}"
    if v.hierarchy:
        yield f"<HIERCODELIST> {quoted(v.hierarchy)}"
        yield f"<HIERLEADSTRING> {quoted(v.lead)}"
    if v.distance:
        yield f"<DISTANCE> {' '.join(map(str, v.distance))}"
    if v.numeric:
        yield "<NUMERIC>"
    if v.decimals:
        yield f"<DECIMALS> {v.decimals}"
    if v.role:
        tag = next(tag for tag, role in _ROLES.items() if role == v.role)
        yield f"<{tag}> {' '.join(map(quoted, v.request_codes))}".rstrip()

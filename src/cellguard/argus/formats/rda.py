"""``.rda``: the variables of a microdata file, or of a ready table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cellguard._io.files import write_lines
from cellguard._io.words import parse_int, quote_word, read_lines, split_words, strip_quotes
from cellguard.exceptions import FormatError, UnknownCodeError, suggest_names

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
_MARKS = {"RECODEABLE": "recodable", "RECODABLE": "recodable", "NUMERIC": "numeric", "HIERARCHICAL": "hierarchical"}
_TEXTS = {"TOTCODE": "total_code", "CODELIST": "code_list", "HIERCODELIST": "hierarchy", "HIERLEADSTRING": "lead"}
_KNOWN = (*_ROLES, *_TEXTS, "RECODEABLE", "NUMERIC", "HIERARCHICAL", "HIERLEVELS", "DISTANCE", "DECIMALS")
_OF_FILE = ("SEPARATOR", "SAFE", "UNSAFE", "PROTECT")
"""Tags that apply to the whole file."""
_HINT = "an .rda file lists variables, each with its tags on the lines below, such as <RECODEABLE> or <NUMERIC>."


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A column of the data, with its tags."""

    name: str
    start: int | None = None
    """First column, from 1; None in a file with separators."""
    width: int | None = None
    missing: tuple[str, ...] = ()
    """Codes for "not known"."""
    role: str = ""
    """Role of the variable: weight, holding, request, shadow, cost, lower, upper, frequency, top, status."""
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
    request_codes: tuple[str, ...] = ()
    """Codes for a request of the first and of the second kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The variables in the order of the file, and its format."""

    variables: tuple[Variable, ...]
    separator: str = ""
    """Separator of the columns; empty for fixed width."""
    safe: str = "S"
    unsafe: str = "U"
    protect: str = "P"
    source: str = field(default="", compare=False)

    def __getitem__(self, name: str) -> Variable:
        for variable in self.variables:
            if variable.name.lower() == name.lower():
                return variable
        hint = suggest_names(name, [v.name for v in self.variables])
        raise UnknownCodeError(f"{self.source or 'metadata'}: there is no variable {name!r}.", hint=hint)

    def select_role(self, role: str) -> list[Variable]:
        """Return the variables with a role, in order."""
        return [v for v in self.variables if v.role == role]


def read_rda(path: str | Path, *, table: bool = False) -> Metadata:
    """Read an ``.rda`` file; `table` says that it describes a ready table, whose columns have no width."""
    head: dict[str, str] = {}
    variables: list[Variable] = []
    for number, line in read_lines(path):
        if line.lstrip().startswith("<"):
            for tag, argument in _split_tags(line, path, number):
                if variables and tag not in _OF_FILE:
                    variables[-1] = _apply_tag(variables[-1], tag, argument, path, number)
                else:
                    head[tag] = _parse_header_text(tag, argument, path, number)
        else:
            variables.append(
                _parse_variable(split_words(line), path, number, table=table, fixed="SEPARATOR" not in head)
            )
    if not variables:
        raise FormatError.at(path, None, "describes no variable.", hint=_HINT)
    names = [v.name.lower() for v in variables]
    if len(set(names)) != len(names):
        raise FormatError.at(path, None, f"variable {next(n for n in names if names.count(n) > 1)!r} is listed twice.")
    letters = {tag.lower(): head[tag] for tag in ("SAFE", "UNSAFE", "PROTECT") if tag in head}
    # A ready table always has separators; tau-ARGUS takes ";" when none is named.
    separator = head.get("SEPARATOR", ";" if table else "")
    return Metadata(variables=tuple(variables), separator=separator, source=str(path), **letters)


def _split_tags(line: str, path: str | Path, number: int) -> Iterator[tuple[str, str]]:
    if _TAG.sub("", line).strip():
        raise FormatError.at(path, number, "tags look like <NAME> value.", hint=_HINT)
    for match in _TAG.finditer(line):
        yield match.group(1).upper(), match.group(2).strip()


def _parse_header_text(tag: str, argument: str, path: str | Path, number: int) -> str:
    if tag not in _OF_FILE:
        raise FormatError.at(path, number, f"<{tag}> stands before the first variable.", hint=_HINT)
    text = strip_quotes(argument)
    if not text:
        raise FormatError.at(path, number, f"<{tag}> needs a text.")
    if tag == "SEPARATOR" and text.lower() in ("\\t", "tab"):
        return "\t"
    return text


def _parse_variable(parts: list[str], path: str | Path, number: int, *, table: bool, fixed: bool) -> Variable:
    name, rest = parts[0], parts[1:]
    if table:
        return Variable(name=name, missing=tuple(rest))
    wanted = 2 if fixed else 1
    if len(rest) < wanted or len(rest) > wanted + 2:
        what = "name, first column, width" if fixed else "name, width"
        raise FormatError.at(path, number, f"a variable has {what} and up to two missing codes.", hint=_HINT)
    places = [parse_int(text, path, number, "the place or width of a variable") for text in rest[:wanted]]
    if min(places) < 1:
        raise FormatError.at(path, number, "columns and widths are counted from 1.")
    start, width = (places[0], places[1]) if fixed else (None, places[0])
    return Variable(name=name, start=start, width=width, missing=tuple(rest[wanted:]))


def _apply_tag(variable: Variable, tag: str, argument: str, path: str | Path, number: int) -> Variable:
    """Return the variable with one tag applied."""
    says: dict[str, Any]
    if tag in _ROLES:
        says = {"role": _ROLES[tag]} | ({"request_codes": tuple(split_words(argument))} if tag == "REQUEST" else {})
    elif tag in _MARKS:
        says = {_MARKS[tag]: True}
    elif tag in _TEXTS:
        says = {_TEXTS[tag]: strip_quotes(argument)}
    elif tag == "DECIMALS":
        says = {"decimals": parse_int(argument, path, number, "<DECIMALS>")}
    elif tag in ("HIERLEVELS", "DISTANCE"):
        digits = tuple(parse_int(w, path, number, f"<{tag}>") for w in split_words(argument))
        if tag == "DISTANCE":  # costs by distance are treated as equal costs
            return variable
        if variable.width is not None and sum(digits) != variable.width:
            raise FormatError.at(path, number, f"<HIERLEVELS> sum to {sum(digits)}; the width is {variable.width}.")
        says = {"levels": tuple(d for d in digits if d)}
    else:
        raise FormatError.at(path, number, f"unknown tag <{tag}>.", hint=suggest_names(tag, _KNOWN) or _HINT)
    return replace(variable, **says)


def write_rda(path: str | Path, metadata: Metadata) -> None:
    """Write the ``.rda`` file of a ready table, atomically."""
    lines = [f"<{tag}> {quote_word(getattr(metadata, tag.lower()))}" for tag in _OF_FILE]
    for v in metadata.variables:
        lines.append(" ".join([v.name, *(quote_word(m) for m in v.missing)]))
        lines += [f"   {tag}" for tag in _format_variable_tags(v)]
    write_lines(path, lines)


def _format_variable_tags(v: Variable) -> Iterator[str]:
    if v.recodable:
        yield "<RECODEABLE>"
    if v.total_code:
        yield f"<TOTCODE> {quote_word(v.total_code)}"
    if v.hierarchical:
        yield "<HIERARCHICAL>"
    if v.hierarchy:
        yield f"<HIERCODELIST> {quote_word(v.hierarchy)}"
        yield f"<HIERLEADSTRING> {quote_word(v.lead)}"
    if v.numeric:
        yield "<NUMERIC>"
    if v.decimals:
        yield f"<DECIMALS> {v.decimals}"
    if v.role:
        yield f"<{next(tag for tag, role in _ROLES.items() if role == v.role)}>"

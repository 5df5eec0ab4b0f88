"""``.arb``: a batch, command by command. An unknown command is an error, never ignored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cellguard._io.words import parse_float, parse_int, read_lines, split_words, strip_quotes
from cellguard.exceptions import FormatError, suggest_names

__all__ = [
    "Apriori", "Command", "Note", "Open", "Read", "Recode", "SafetyRules", "SpecifyTable", "Suppress", "WriteTable",
    "read_arb",
]  # fmt: skip

_COMMAND = re.compile(r"\s*<([A-Za-z]+)>\s*(.*)")
_CALL = re.compile(r"\s*([A-Za-z]+)\s*\(([^()]*)\)\s*")
_RULES = {"P": (1, 3), "NK": (2, 2), "FREQ": (2, 2), "ZERO": (1, 1), "REQ": (4, 4), "WGT": (1, 1), "MIS": (1, 1)}
_RULES["MAN"] = (1, 1)
_OPENED = {"OPENMICRODATA": "microdata", "OPENTABLEDATA": "table", "OPENMETADATA": "metadata"}
_METHODS = ("GH", "MOD", "OPT", "NET", "RND", "CTA")
_OPTIONS = ("HL", "SO", "AR", "HI", "AS", "SE", "FL", "QU", "TR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The base of all commands."""

    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Open(Command):
    """``<OPENMICRODATA>``, ``<OPENTABLEDATA>`` or ``<OPENMETADATA>``."""

    kind: str
    """microdata, table or metadata."""
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecifyTable(Command):
    """``<SPECIFYTABLE> "e1""e2"|"response"|"shadow"|"cost",lambda``."""

    dimensions: tuple[str, ...]
    response: str
    """Empty for a table of frequencies."""
    shadow: str = ""
    cost: str = ""
    """A variable, or -1 frequency, -2 unity, -3 distance; empty for the response."""
    power: float = 1.0
    """The lambda that transforms costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetyRules(Command):
    """``<SAFETYRULE>``: names with their numbers, in order."""

    rules: tuple[tuple[str, tuple[float, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Command):
    """``<READMICRODATA>`` or ``<READTABLE> [0|1|2]``."""

    kind: str
    totals: int = 0
    """0: totals are given, 1: they are computed, 2: the table need not be additive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recode(Command):
    """``<RECODE> table, variable, "file.grc"|level``."""

    table: int
    variable: str
    path: str = ""
    level: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Apriori(Command):
    """``<APRIORI> "file",table,"separator"``."""

    path: str
    table: int
    separator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress(Command):
    """``<SUPPRESS> METHOD(table, ...)``."""

    method: str
    table: int
    """0 means all tables, linked."""
    arguments: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTable(Command):
    """``<WRITETABLE> (table, format, options, "file")``."""

    table: int
    format: int
    """1 CSV, 2 CSV for pivot tables, 3 code-value, 4 SBS, 5 intermediate, 6 JJ."""
    options: tuple[tuple[str, bool], ...]
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Command):
    """A command about the program itself: logbook, solver, silent, clear, versioninfo, gointeractive."""

    name: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    path: str | Path
    line: int

    def raise_error(self, message: str, hint: str | None = None) -> FormatError:
        return FormatError.at(self.path, self.line, message, hint=hint)

    def parse_whole(self, text: str, what: str, least: int = 0) -> int:
        number = parse_int(text, self.path, self.line, what)
        if number < least:
            raise self.raise_error(f"{what} is below {least}.")
        return number

    def number(self, text: str, what: str) -> float:
        return parse_float(text, self.path, self.line, what)


def read_arb(path: str | Path) -> list[Command]:
    """Read the commands of a batch; ``//`` starts a comment."""
    commands = []
    for number, line in read_lines(path):
        text = re.sub(r'("[^"]*")|(//.*)', lambda m: m.group(1) or "", line).rstrip()
        if not text.strip():
            continue
        at = _Place(path, number)
        match = _COMMAND.fullmatch(text)
        if match is None:
            raise at.raise_error("a line starts with a command such as <OPENMICRODATA>.")
        name, rest = match.group(1).upper(), match.group(2).strip()
        if name not in _PARSERS:
            raise at.raise_error(f"unknown command <{name}>.", suggest_names(name, _PARSERS))
        commands.append(_PARSERS[name](name, rest, at))
    if not commands:
        raise FormatError.at(path, None, "there is no command in the file.")
    return commands


def _parse_file_name(text: str, at: _Place) -> str:
    name = strip_quotes(text)
    if not name:
        raise at.raise_error("a file name is missing.")
    return name


def _open_of_arb(name: str, rest: str, at: _Place) -> Command:
    return Open(line=at.line, kind=_OPENED[name], path=_parse_file_name(rest, at))


def _parse_specify_table(_: str, rest: str, at: _Place) -> Command:
    parts = [p.strip() for p in rest.split("|")]
    if len(parts) < 2 or len(parts) > 4:
        raise at.raise_error('a table is "dimension""dimension"|"response"|"shadow"|"cost".')
    given, response, shadow, costs = (*parts, "", "")[:4]
    dimensions = tuple(split_words(given.replace('""', '" "')))
    if not dimensions:
        raise at.raise_error("a table needs a dimension.")
    cost, _, power = costs.partition(",")
    return SpecifyTable(
        line=at.line,
        dimensions=dimensions,
        response="" if strip_quotes(response).lower() == "<freq>" else strip_quotes(response),
        shadow=strip_quotes(shadow),
        cost=strip_quotes(cost),
        power=at.number(power, "lambda") if power.strip() else 1.0,
    )


def _parse_safety_rule(_: str, rest: str, at: _Place) -> Command:
    rules = []
    for text in rest.split("|"):
        if not text.strip():
            continue
        call = _CALL.fullmatch(text)
        if call is None:
            raise at.raise_error("a rule looks like P(10,1), NK(1,85) or FREQ(3,20).")
        name = call.group(1).upper()
        if name not in _RULES:
            raise at.raise_error(f"unknown rule {name}.", suggest_names(name, _RULES))
        numbers = tuple(at.number(n, f"a number of rule {name}") for n in call.group(2).split(","))
        least, most = _RULES[name]
        if not least <= len(numbers) <= most:
            raise at.raise_error(f"rule {name} takes {least if least == most else f'{least} to {most}'} numbers.")
        rules.append((name, numbers))
    return SafetyRules(line=at.line, rules=tuple(rules))


def _read_line_of_arb_file(name: str, rest: str, at: _Place) -> Command:
    if name == "READMICRODATA":
        return Read(line=at.line, kind="microdata")
    if rest[:1] not in ("", "0", "1", "2") or rest[1:].strip().upper() not in ("", "T", "F"):
        raise at.raise_error("<READTABLE> takes 0, 1 or 2.")
    return Read(line=at.line, kind="table", totals=int(rest[:1] or 0))


def _split_fields(rest: str, at: _Place, least: int) -> list[str]:
    """Split at commas outside quotes."""
    fields = [m.group(1).strip() for m in re.finditer(r'((?:"[^"]*"|[^,"])*)(?:,|$)', rest)][:-1]
    if len(fields) < least:
        raise at.raise_error(f"{least} arguments are needed, {len(fields)} are there.")
    return fields


def _recode_of_arb(_: str, rest: str, at: _Place) -> Command:
    table, variable, target = _split_fields(rest, at, 3)[:3]
    number, name, target = at.parse_whole(table, "the table's number", 1), strip_quotes(variable), strip_quotes(target)
    if target.isdigit():
        return Recode(line=at.line, table=number, variable=name, level=int(target))
    return Recode(line=at.line, table=number, variable=name, path=_parse_file_name(target, at))


def _parse_apriori(_: str, rest: str, at: _Place) -> Command:
    path, table, separator = _split_fields(rest, at, 3)[:3]
    number = at.parse_whole(table, "the table's number", 1)
    return Apriori(
        line=at.line, path=_parse_file_name(path, at), table=number, separator=strip_quotes(separator) or ","
    )


def _suppress_of_arb(_: str, rest: str, at: _Place) -> Command:
    call = _CALL.fullmatch(rest) or re.fullmatch(r"\s*([A-Za-z]+)\s*()", rest)
    if call is None:
        raise at.raise_error("a method looks like MOD(1,5,1,1,1) or OPT(1,10).")
    method = call.group(1).upper()
    if method not in _METHODS:
        raise at.raise_error(f"unknown method {method}.", f"known are {', '.join(_METHODS)}.")
    numbers = [n for n in call.group(2).split(",") if n.strip()]
    table = at.parse_whole(numbers[0], "the table's number") if numbers else 1
    arguments = tuple(at.number(n, f"an argument of {method}") for n in numbers[1:])
    return Suppress(line=at.line, method=method, table=table, arguments=arguments)


def _write_table_of_arb(_: str, rest: str, at: _Place) -> Command:
    inner = re.fullmatch(r"\((.*)\)", rest)
    if inner is None:
        raise at.raise_error('a table is written with (table, format, options, "file").')
    table, kind, options, path = _split_fields(inner.group(1), at, 4)[:4]
    form = at.parse_whole(kind, "the format", 1)
    if form > 6:
        raise at.raise_error(f"unknown format {form}.", "1 CSV, 2 pivot, 3 code-value, 4 SBS, 5 intermediate, 6 JJ.")
    return WriteTable(
        line=at.line,
        table=at.parse_whole(table, "the table's number", 1),
        format=form,
        options=_write_options_of_arb(strip_quotes(options), at),
        path=_parse_file_name(path, at),
    )


def _write_options_of_arb(text: str, at: _Place) -> tuple[tuple[str, bool], ...]:
    compact = text.replace(" ", "").upper()
    found = re.findall(r"([A-Z]{2})([+-])", compact)
    if "".join(name + sign for name, sign in found) != compact:
        raise at.raise_error("options are pairs of letters with + or -, such as AS+FL-.")
    for name, _ in found:
        if name not in _OPTIONS:
            raise at.raise_error(f"unknown option {name}.", f"known are {', '.join(_OPTIONS)}.")
    return tuple((name, sign == "+") for name, sign in found)


def _note_of_arb(name: str, rest: str, at: _Place) -> Command:
    return Note(line=at.line, name=name, argument=strip_quotes(rest))


_PARSERS: dict[str, Callable[[str, str, _Place], Command]] = {
    **dict.fromkeys(_OPENED, _open_of_arb),
    "SPECIFYTABLE": _parse_specify_table,
    "SAFETYRULE": _parse_safety_rule,
    **dict.fromkeys(("READMICRODATA", "READTABLE"), _read_line_of_arb_file),
    "RECODE": _recode_of_arb,
    **dict.fromkeys(("APRIORI", "APRIORY"), _parse_apriori),
    "SUPPRESS": _suppress_of_arb,
    "WRITETABLE": _write_table_of_arb,
    **dict.fromkeys(("LOGBOOK", "SOLVER", "SILENT", "CLEAR", "VERSIONINFO", "GOINTERACTIVE"), _note_of_arb),
}

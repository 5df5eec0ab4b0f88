"""TOML: read with cellguard's own errors, and written, which the standard library does not do."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cellguard._io.files import read_bytes
from cellguard.exceptions import FormatError

__all__ = ["format_document", "format_key", "format_section_lines", "format_value", "parse_toml", "read_toml_text"]

_MAX_BYTES = 16 << 20


def read_toml_text(path: Path, called: object) -> str:
    """Read a text in UTF-8; errors call it `called`."""
    try:
        return read_bytes(path, max_bytes=_MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError.at(called, None, "is not text in UTF-8.", hint="save it again as UTF-8.") from None


def parse_toml(text: str, called: object) -> dict[str, Any]:
    """Return the content of a TOML text; errors call it `called`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "put texts in quotes and lists in [ ]."
        raise FormatError.at(called, None, f"is not TOML: {error}.", hint=hint) from None
    except RecursionError:
        raise FormatError.at(called, None, "is nested too deeply.") from None


def format_key(name: str) -> str:
    """Return a key: bare where TOML allows it, else in quotes."""
    plain = name and all(c.isascii() and (c.isalnum() or c in "-_") for c in name)
    return name if plain else f'"{_escape_text(name)}"'


def format_value(value: Any) -> str:
    """Return a value as TOML; floats in their shortest exact form.

    >>> format_value({"region": "N", "digits": [1, 2.5], "on": True})
    '{region = "N", digits = [1, 2.5], on = true}'
    """
    if isinstance(value, str):
        if value.count("\n") > 1:
            return '"""\n' + "\n".join(_escape_text(line) for line in value.split("\n")) + '"""'
        return f'"{_escape_text(value)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(format_value(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{format_key(k)} = {format_value(v)}" for k, v in value.items()) + "}"
    return repr(value)


def format_document(content: Mapping[str, Any], *, nested: tuple[str, ...] = ()) -> str:
    """Return a document: single entries, then a section for each mapping and each entry of a list of mappings.

    Parameters
    ----------
    nested
        Mappings in which every entry is a section of its own, as in ``[dimensions.region]``.

    >>> print(format_document({"rules": [{"p": 10}], "seed": 1, "dims": {"a b": {}}}, nested=("dims",)))
    seed = 1
    <BLANKLINE>
    [[rules]]
    p = 10
    <BLANKLINE>
    [dims."a b"]
    <BLANKLINE>
    """
    lines = [
        f"{format_key(name)} = {format_value(value)}" for name, value in content.items() if not _is_toml_section(value)
    ]
    for name, value in content.items():
        if _is_toml_section(value):
            lines += format_section_lines(name, value, nested)
    return "\n".join(lines).lstrip("\n") + "\n"


def _is_toml_section(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
    )


def format_section_lines(name: str, value: Any, nested: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of a section, or of each of its entries: those of a list, and of a `nested` mapping."""
    key = format_key(name)
    if isinstance(value, list):
        heads = [(f"[[{key}]]", entry) for entry in value]
    elif name in nested:
        heads = [(f"[{key}.{format_key(inner)}]", entry) for inner, entry in value.items()]
    else:
        heads = [(f"[{key}]", value)]
    for head, entry in heads:
        yield ""
        yield head
        yield from (f"{format_key(k)} = {format_value(v)}" for k, v in entry.items())


def _escape_text(text: str) -> str:
    out = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}" for c in out)

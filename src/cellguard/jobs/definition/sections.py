"""The base of all sections of a job: strict shapes, no unknown keys, a description under every key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field

from cellguard._quantities import MAX_RATIO

__all__ = [
    "Amount",
    "Codes",
    "Count",
    "FileName",
    "Percent",
    "Positive",
    "Ratio",
    "Seconds",
    "Section",
    "Share",
    "list_named_files",
    "make_code_list",
]  # fmt: skip

NAMES_A_FILE = "names a file"
"""Marks a key of a job whose text is the name of a file or folder, relative to the job."""
FileName = Annotated[str, NAMES_A_FILE]
Codes = dict[str, str | list[str]]
Percent = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A part of a whole in per cent; the rules refuse a share in its place."""
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
"""A part of a whole, 0 to 1."""
Ratio = Annotated[float, Field(ge=0, le=MAX_RATIO, allow_inf_nan=False)]
"""One level divided by another."""
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""A quantity in the units of the values."""
Count = Annotated[float, Field(ge=0, multiple_of=1, allow_inf_nan=False)]
"""A whole number of units, which may be written with decimals."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A section of a job file."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, strict=True)


def make_code_list(codes: str | list[str]) -> list[str]:
    """Return codes as a list; a single code may be given without one."""
    return [codes] if isinstance(codes, str) else codes


Place = tuple[str | int, ...]


def list_named_files(section: type[Section], raw: Any) -> Iterator[tuple[Place, str]]:
    """Yield the place and text of every file name in the content of a section, regardless of its shape.

    The section marks the keys that name files (:data:`FileName`), so that no separate list can become outdated.
    """
    if not isinstance(raw, Mapping):
        return
    for name, field in section.model_fields.items():
        if name in raw:
            kind = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
            for place, text in _list_files_in_value(kind, raw[name]):
                yield (name, *place), text


def _list_files_in_value(kind: Any, value: Any) -> Iterator[tuple[Place, str]]:
    """Yield the file names in a value of the given type; for a union, those of every branch."""
    inner = get_args(kind)
    if get_origin(kind) is Annotated:
        if isinstance(value, str) and any(mark is NAMES_A_FILE for mark in inner[1:]):
            yield (), value
        yield from _list_files_in_value(inner[0], value)
    elif isinstance(kind, type) and issubclass(kind, Section):
        yield from list_named_files(kind, value)
    elif get_origin(kind) is list and isinstance(value, list):
        entries = ((k, entry) for k, entry in enumerate(value))
        yield from (
            ((k, *place), text) for k, entry in entries for place, text in _list_files_in_value(inner[0], entry)
        )
    elif get_origin(kind) is dict and isinstance(value, Mapping):
        for key, entry in value.items():
            yield from (((key, *place), text) for place, text in _list_files_in_value(inner[1], entry))
    elif get_origin(kind) not in (list, dict):
        found = (pair for branch in inner for pair in _list_files_in_value(branch, value))
        yield from dict.fromkeys(found)

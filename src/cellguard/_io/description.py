"""The description of a table beside its cells: a small TOML file that says what the columns mean.

::

    name = "turnover"
    value = "turnover"            # column of the values, "value" unless given
    missing = "zero"              # a cell without a row: zero, error, or unpublished
    count = "n_obs"               # numbers of contributors, "count" unless given
    top = ["max1", "max2"]        # largest contributions, top1, top2, ... unless given
    known_zeros = true            # everybody knows which cells have no contributor

    [columns]                     # only where names differ from status, lower, upper, sliding, weight, lb, ub, count
    status = "flag"

    [dimensions.region]
    hierarchy = "regions.hrc"     # or outline, digits; nothing for codes that simply add up to the total

    [dimensions.sex]
    total = "Total"

Nothing in it is evaluated; the files it names must be in its own folder or below.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cellguard._io.files import write_lines
from cellguard._io.toml import format_section_lines, format_value, parse_toml
from cellguard._io.trees.outline import read_text
from cellguard.exceptions import FormatError, suggest_names

__all__ = ["AttackerEntry", "Description", "DimensionEntry", "read_description", "write_description"]


def _validate_file_name(name: str) -> str:
    parts = PurePosixPath(name.replace("\\", "/"))
    if not name or parts.is_absolute() or ".." in parts.parts or ":" in name:
        raise ValueError("a file in the folder of the description, or below it, is needed")
    return name


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class DimensionEntry(_Entry):
    """One dimension: how its codes add up."""

    total: str | None = None
    """Code of the total."""
    file: str | None = None
    """A file with the hierarchy: .hrc, .txt (indented), .csv or .parquet (code and parent, or a column per level)."""
    levels: list[str] | None = None
    """Columns of that file, the coarsest first, where not all of them are levels."""
    outline: str | None = None
    """The hierarchy itself, as indented text."""
    digits: list[int] | None = None
    """Digits of each level of the codes."""
    codes: list[str] | None = None
    """All codes, the total first."""
    parents: list[list[int]] | None = None
    """For each tree, the index of each code's parent among `codes`: -1 for the root, -2 for codes outside the tree."""
    labels: list[str] | None = None
    """Meaning of each of the `codes`."""

    check_file = field_validator("file")(lambda name: None if name is None else _validate_file_name(name))


class AttackerEntry(_Entry):
    """One attacker: what they know about some cells, numbered from 0 in the order of the file."""

    name: str
    cells: list[int] = Field(default_factory=list)
    lb: list[float] = Field(default_factory=list)
    ub: list[float] = Field(default_factory=list)
    sensitive: list[int] | None = None
    lower: list[float] = Field(default_factory=list)
    upper: list[float] = Field(default_factory=list)
    sliding: list[float] = Field(default_factory=list)


class Description(_Entry):
    """What the columns of a file of cells mean."""

    name: str | None = None
    """Name of the table in reports; the file's name unless given."""
    integer: bool = False
    """Whether the cells are counts."""
    whole: bool | None = None
    """Whether values that are all whole are taken for whole numbers; unless given, where `integer` is not."""
    smallest_width: float | None = None
    """Protection that a sensitive cell without levels needs; the usual one unless given."""
    insiders: bool | None = None
    """False leaves respondents out of the attackers."""
    value: str = "value"
    """Column of the values."""
    missing: Literal["zero", "error", "unpublished"] = "zero"
    """What a cell without a row is."""
    known_zeros: bool | Literal["counts"] = True
    """Whether everybody knows which cells have no contributor; ``"counts"``: only in tables of counts."""
    repair: Literal["leaves"] | None = None
    """Whether to compute totals, regardless of those in the file."""
    crossings: list[list[str] | dict[str, int]] | None = None
    """What is published, when not every margin is."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Columns with names other than the usual ones."""
    top: list[str] = Field(default_factory=list)
    """Columns of the largest contributions, the largest first; top1, top2, ... unless given."""
    dimensions: dict[str, DimensionEntry] = Field(default_factory=dict)
    """Column of codes -> the dimension; none for raw equations."""
    relations: str | None = None
    """File with the relations, where the dimensions do not imply them."""
    n_relations: int = Field(0, ge=0)
    """Number of relations in that file."""
    rhs: list[tuple[int, float]] = Field(default_factory=list)
    """Right-hand sides that are not 0."""
    attackers: list[AttackerEntry] = Field(default_factory=list)
    """Attackers besides the external one."""

    check_relations = field_validator("relations")(lambda name: None if name is None else _validate_file_name(name))


def read_description(path: str | Path) -> Description:
    """Read and check a description."""
    raw = parse_toml(read_text(path), path)
    try:
        return Description.model_validate(_accept_job_keys(_convert_pairs_to_tuples(raw)))
    except ValidationError as error:
        raise _describe_mistake(path, error) from None


def _convert_pairs_to_tuples(raw: dict[str, Any]) -> dict[str, Any]:
    """Convert lists to tuples: TOML has only lists, and pairs are checked as pairs."""
    if isinstance(raw.get("rhs"), list):
        raw["rhs"] = [tuple(pair) if isinstance(pair, list) else pair for pair in raw["rhs"]]
    return raw


def _accept_job_keys(raw: dict[str, Any]) -> dict[str, Any]:
    """Accept the names that jobs use: `count` of the table, `hierarchy` of a dimension."""
    if isinstance(raw.get("count"), str) and isinstance(raw.get("columns", {}), dict):
        raw["columns"] = {"counts": raw.pop("count"), **raw.get("columns", {})}
    for entry in raw["dimensions"].values() if isinstance(raw.get("dimensions"), dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("hierarchy"), str) and "file" not in entry:
            entry["file"] = entry.pop("hierarchy")
    return raw


def _describe_mistake(path: str | Path, error: ValidationError) -> FormatError:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    if first["type"] == "extra_forbidden":
        models: dict[str, type[BaseModel]] = {"dimensions": DimensionEntry, "attackers": AttackerEntry}
        model = models.get(str(first["loc"][0]), Description)
        hint = suggest_names(str(first["loc"][-1]), model.model_fields)
        return FormatError.at(path, None, f"{place}: unknown entry.", hint=hint)
    return FormatError.at(path, None, f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}.")


def write_description(path: str | Path, description: Description, *, about: str) -> None:
    """Write a description, atomically, readable by its owner only; leave out entries that equal the default."""
    entries = description.model_dump(exclude_defaults=True)
    sections = {name: entries.pop(name) for name in ("columns", "dimensions", "attackers") if name in entries}
    lines = [f"# What the columns of {about} mean, for cellguard."]
    lines += [f"{key} = {format_value(value)}" for key, value in entries.items()]
    for name, entry in sections.items():
        lines += format_section_lines(name, entry, nested=("dimensions",))
    write_lines(path, lines, private=True)  # attackers are described with what they know

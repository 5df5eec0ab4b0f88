"""Reading a job file: every mistake at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from cellguard._io.facts import ReadOnce
from cellguard._io.toml import parse_toml, read_toml_text
from cellguard.exceptions import InputError, did_you_mean
from cellguard.publish.check import Mistake, check_job
from cellguard.publish.method_sections import METHOD_SECTIONS
from cellguard.publish.model import Job
from cellguard.publish.places import Places, Where
from cellguard.publish.rule_sections import RULE_SECTIONS
from cellguard.publish.sections import Section

__all__ = ["JobError", "JobFile", "examine_job", "read_job"]


class JobError(InputError):
    """A job file with mistakes; `mistakes` lists all of them."""

    def __init__(self, path: Path, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(mistakes)
        count = "1 mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
        super().__init__(
            "\n  ".join([f"{path}: {count} in the job.", *mistakes]),
            hint="cellguard init writes a job with every section explained.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """A job that was read: what it says, and where its files are."""

    path: Path
    """The file; relative names in it start from its folder."""
    text: str
    """The file as it was read."""
    job: Job
    facts: ReadOnce = field(default_factory=ReadOnce, compare=False, repr=False)
    """Of the files that were read: their hashes and encodings."""

    @property
    def folder(self) -> Path:
        """Where the outputs go."""
        return self.path.parent / self.job.output.folder

    def file(self, name: str) -> Path:
        """Return the path of a file that the job names."""
        return self.path.parent / name


def read_job(path: str | Path) -> JobFile:
    """Read a job file and check it; raises :class:`JobError` with every mistake and its line."""
    path = Path(path)
    text = read_toml_text(path, path)
    raw = parse_toml(text, path)
    facts = ReadOnce()
    job, mistakes = examine_job(raw, path.parent, facts)
    if mistakes or job is None:
        raise JobError(path, list(_section_mistakes_in_words(mistakes, Places(text))))
    return JobFile(path=path, text=text, job=job, facts=facts)


def examine_job(raw: dict[str, Any], folder: Path, facts: ReadOnce) -> tuple[Job | None, list[Mistake]]:
    """Return the job that the content of a file makes, if its shape is right, and every mistake in it."""
    try:
        job = Job.model_validate(raw)
    except ValidationError as error:  # what has the right shape is checked all the same: one run shows everything
        mistakes = _shape_mistakes_of_job(error)
        return None, mistakes + _check_rest_of_job(raw, folder, facts, mistakes)
    return job, check_job(job, folder, facts)


def _check_rest_of_job(raw: dict[str, Any], folder: Path, facts: ReadOnce, wrong: Iterable[Mistake]) -> list[Mistake]:
    """Check the rest of a job after cutting out what is wrong; what depends on it is left alone."""
    cut = {mistake.path[:1] for mistake in wrong}
    rest = {key: value for key, value in raw.items() if (key,) not in cut}
    if ("data",) in cut:
        return []
    try:
        job = Job.model_validate(rest)
    except ValidationError:
        return []
    found = check_job(job, folder, facts, without={str(p[0]) for p in cut if p})
    return [mistake for mistake in found if mistake.path[:1] not in cut]


def _section_mistakes_in_words(mistakes: Iterable[Mistake], places: Places) -> Iterable[str]:
    placed = [(places.line(mistake.path) or 0, mistake) for mistake in mistakes]
    for line, mistake in sorted(placed, key=lambda item: item[0]):
        where = f"line {line}, " if line else ""
        name = ".".join(str(part) if isinstance(part, str) else f"{part + 1}" for part in mistake.path) or "the job"
        hint = f" Hint: {mistake.hint}" if mistake.hint else ""
        yield f"{where}{name}: {mistake.text}{hint}"


# ---------------------------------------------------------------- what pydantic found, in our words

_TEXTS = {
    "missing": "is needed.",
    "string_type": "a text in quotes is needed.",
    "bool_type": "true or false is needed.",
    "int_type": "a whole number is needed.",
    "int_from_float": "a whole number is needed.",
    "float_type": "a number is needed.",
    "finite_number": "a finite number is needed.",
    "list_type": "a list in [ ] is needed.",
    "dict_type": "a table is needed.",
    "model_type": "a section is needed.",
    "model_attributes_type": "a section is needed.",
    "too_short": "may not be empty or shorter than {min_length}.",
    "too_long": "may not be longer than {max_length}.",
    "greater_than": "a number above {gt} is needed.",
    "greater_than_equal": "a number of at least {ge} is needed.",
    "less_than": "a number below {lt} is needed.",
    "less_than_equal": "a number of at most {le} is needed.",
    "string_pattern_mismatch": "letters, digits, dots, dashes and blanks only, beginning with a letter or digit.",
}


def _shape_mistakes_of_job(error: ValidationError) -> list[Mistake]:
    found: dict[Where, Mistake] = {}
    for entry in error.errors(include_url=False, include_input=True):
        tag, path = _section_path_without_tag(
            tuple(part for part in entry["loc"] if not _is_branch_in_section_path(part))
        )
        kind, context = entry["type"], entry.get("ctx", {})
        hint = None
        if kind.startswith("union_tag"):
            path, text, hint = _unknown_tag_of_section(path, context)
        elif tag is not None and kind == "missing":
            path, text = path[:-1], f"{tag} needs {path[-1]}."
        elif kind == "extra_forbidden":
            text, hint = _unknown_key_in_section(path, tag)
        elif kind == "literal_error":
            text = f"must be one of {context.get('expected', '')}."
            if isinstance(entry["input"], str):
                hint = did_you_mean(
                    entry["input"], [w.strip(" '") for w in context.get("expected", "").replace(" or ", ",").split(",")]
                )
        else:
            text = _TEXTS.get(kind, f"{entry['msg'].lower()}.").format(**context)
        found.setdefault(path, Mistake(path, text, hint))
    return list(found.values())


_UNIONS: dict[str, tuple[str, Mapping[str, type[Section]]]] = {
    "rules": ("rule", RULE_SECTIONS),
    "method": ("name", METHOD_SECTIONS),
}
"""Section -> the key that says of which kind it is, and the kinds."""


def _section_path_without_tag(path: Where) -> tuple[str | None, Where]:
    """Take out the kind that pydantic puts into the path of a rule or method: ``("rules", 0, "zero", "upper")``."""
    at = {"rules": 2, "method": 1}.get(str(path[0])) if path else None
    if at is None or len(path) <= at or path[at] not in _UNIONS[str(path[0])][1]:
        return None, path
    return str(path[at]), path[:at] + path[at + 1 :]


def _unknown_tag_of_section(path: Where, context: Mapping[str, Any]) -> tuple[Where, str, str | None]:
    key, kinds = _UNIONS[str(path[0])]
    if "tag" not in context:
        return (*path, key), "is needed.", f"one of {', '.join(kinds)}."
    return (*path, key), f"must be one of {', '.join(kinds)}.", did_you_mean(str(context["tag"]), kinds)


def _unknown_key_in_section(path: Where, tag: str | None) -> tuple[str, str]:
    key = str(path[-1])
    if tag is None:
        known = _keys_of_section(path[:-1])
        return "there is no such key.", did_you_mean(key, known) or f"known are {', '.join(sorted(known))}."
    kinds = _UNIONS[str(path[0])][1]
    known = list(kinds[tag].model_fields)
    owners = [name for name, section in kinds.items() if key in section.model_fields]
    hint = f"it belongs to {' and '.join(owners)}." if owners else did_you_mean(key, known)
    return f"{tag} has no {key}.", hint or f"it has {', '.join(sorted(known))}."


def _is_branch_in_section_path(part: str | int) -> bool:
    """Tell the names pydantic gives to the branches of a union, as in ``str`` or ``list[any]``."""
    return isinstance(part, str) and (part in ("str", "float", "int") or "[" in part)


def _keys_of_section(path: Sequence[str | int]) -> list[str]:
    """Return the keys that a section at this path may have."""
    model: type[Section] = Job
    for part in path:  # the name of a dimension or the number of a rule leads to the same section
        field = model.model_fields.get(str(part))
        model = (None if field is None else _section_within(field.annotation)) or model
    return list(model.model_fields)


def _section_within(annotation: Any) -> type[Section] | None:
    """Return the section inside ``list[Section]``, ``dict[str, Section]`` or ``Section | None``."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(_section_within, get_args(annotation))), None)

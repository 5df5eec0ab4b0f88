"""Read a job file, and report all its mistakes at once, each with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from cellguard._io.facts import ReadOnce
from cellguard._io.toml import parse_toml, read_toml_text
from cellguard._quantities import MAX_RATIO, suggest_share
from cellguard.exceptions import InputError, suggest_names
from cellguard.jobs.definition.check import Mistake, check_job
from cellguard.jobs.definition.method_sections import METHOD_SECTIONS
from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.places import Places, Where
from cellguard.jobs.definition.rule_sections import RULE_SECTIONS
from cellguard.jobs.definition.sections import Section

__all__ = ["JobError", "JobFile", "inspect_job", "read_job"]


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
    """A job that was read: its content, and where its files are."""

    path: Path
    """The file; relative names in it refer to its folder."""
    text: str
    """The content of the file."""
    job: Job
    facts: ReadOnce = field(default_factory=ReadOnce, compare=False, repr=False)
    """Hashes and encodings of the files that were read."""

    @property
    def folder(self) -> Path:
        """The folder of the outputs."""
        return self.path.parent / self.job.output.folder

    def resolve_path(self, name: str) -> Path:
        """Return the path of a file that the job names."""
        return self.path.parent / name


def read_job(path: str | Path) -> JobFile:
    """Read a job file and check it; raises :class:`JobError` with every mistake and its line."""
    path = Path(path)
    text = read_toml_text(path, path)
    raw = parse_toml(text, path)
    facts = ReadOnce()
    job, mistakes = inspect_job(raw, path.parent, facts)
    if mistakes or job is None:
        raise JobError(path, list(_describe_mistakes(mistakes, Places(text))))
    return JobFile(path=path, text=text, job=job, facts=facts)


def inspect_job(raw: dict[str, Any], folder: Path, facts: ReadOnce) -> tuple[Job | None, list[Mistake]]:
    """Return the job in the content of a file, if its shape is right, and every mistake in it."""
    try:
        job = Job.model_validate(raw)
    except ValidationError as error:  # other sections are still checked, so that one run reports everything
        mistakes = _list_shape_mistakes(error)
        return None, mistakes + _check_rest_of_job(raw, folder, facts, mistakes)
    return job, check_job(job, folder, facts)


def _check_rest_of_job(raw: dict[str, Any], folder: Path, facts: ReadOnce, wrong: Iterable[Mistake]) -> list[Mistake]:
    """Check the rest of a job after cutting out wrong sections; checks that depend on these are skipped."""
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


def _describe_mistakes(mistakes: Iterable[Mistake], places: Places) -> Iterable[str]:
    placed = [(places.find_line(mistake.path) or 0, mistake) for mistake in mistakes]
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
    "multiple_of": "a whole number is needed.",
    "string_pattern_mismatch": "letters, digits, dots, dashes and blanks only, beginning with a letter or digit.",
}


def _list_shape_mistakes(error: ValidationError) -> list[Mistake]:
    found: dict[Where, Mistake] = {}
    for entry in error.errors(include_url=False, include_input=True):
        tag, path = _drop_tag(tuple(part for part in entry["loc"] if not _is_branch_in_section_path(part)))
        kind, context = entry["type"], entry.get("ctx", {})
        hint = None
        if kind.startswith("union_tag"):
            path, text, hint = _describe_unknown_tag(path, context)
        elif tag is not None and kind == "missing":
            path, text = path[:-1], f"{tag} needs {path[-1]}."
        elif kind == "extra_forbidden":
            text, hint = _describe_unknown_key(path, tag)
        elif kind == "literal_error":
            text = f"must be one of {context.get('expected', '')}."
            if isinstance(entry["input"], str):
                hint = suggest_names(
                    entry["input"], [w.strip(" '") for w in context.get("expected", "").replace(" or ", ",").split(",")]
                )
        else:
            text = _TEXTS.get(kind, f"{entry['msg'].lower()}.").format(**context)
            if kind == "less_than_equal" and context["le"] <= MAX_RATIO:  # a percentage where a share is needed
                hint = suggest_share(entry["input"])
        found.setdefault(path, Mistake(path, text, hint))
    return list(found.values())


_UNIONS: dict[str, tuple[str, Mapping[str, type[Section]]]] = {
    "rules": ("rule", RULE_SECTIONS),
    "method": ("name", METHOD_SECTIONS),
}
"""Section -> the key that names its kind, and the kinds."""


def _drop_tag(path: Where) -> tuple[str | None, Where]:
    """Remove the kind that pydantic puts into the path of a rule or method: ``("rules", 0, "zero", "upper")``."""
    at = {"rules": 2, "method": 1}.get(str(path[0])) if path else None
    if at is None or len(path) <= at or path[at] not in _UNIONS[str(path[0])][1]:
        return None, path
    return str(path[at]), path[:at] + path[at + 1 :]


def _describe_unknown_tag(path: Where, context: Mapping[str, Any]) -> tuple[Where, str, str | None]:
    key, kinds = _UNIONS[str(path[0])]
    if "tag" not in context:
        return (*path, key), "is needed.", f"one of {', '.join(kinds)}."
    return (*path, key), f"must be one of {', '.join(kinds)}.", suggest_names(str(context["tag"]), kinds)


def _describe_unknown_key(path: Where, tag: str | None) -> tuple[str, str]:
    key = str(path[-1])
    if tag is None:
        known = _list_section_keys(path[:-1])
        return "there is no such key.", suggest_names(key, known) or f"known are {', '.join(sorted(known))}."
    kinds = _UNIONS[str(path[0])][1]
    known = list(kinds[tag].model_fields)
    owners = [name for name, section in kinds.items() if key in section.model_fields]
    hint = f"it belongs to {' and '.join(owners)}." if owners else suggest_names(key, known)
    return f"{tag} has no {key}.", hint or f"it has {', '.join(sorted(known))}."


def _is_branch_in_section_path(part: str | int) -> bool:
    """Return whether pydantic gave this name to a branch of a union, such as ``str`` or ``list[any]``."""
    return isinstance(part, str) and (part in ("str", "float", "int") or "[" in part)


def _list_section_keys(path: Sequence[str | int]) -> list[str]:
    """Return the keys that a section at this path may have."""
    model: type[Section] = Job
    for part in path:  # the name of a dimension or the number of a rule leads to the same section
        field = model.model_fields.get(str(part))
        model = (None if field is None else _find_section(field.annotation)) or model
    return list(model.model_fields)


def _find_section(annotation: Any) -> type[Section] | None:
    """Return the section inside ``list[Section]``, ``dict[str, Section]`` or ``Section | None``."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(_find_section, get_args(annotation))), None)

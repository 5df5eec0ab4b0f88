"""``[method]`` of a job: one section per method, generated from the method's declared options."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from cellguard.jobs.definition.sections import FileName, Section
from cellguard.methods.method import SAME, Method, Option, replace_none_word
from cellguard.methods.registry import METHODS
from cellguard.model.table import Table

__all__ = ["METHOD_SECTIONS", "MethodName", "MethodSection", "MethodUnion", "build_field"]

Weights = Literal["table", "unit", "inverse", "value", "sqrt", "log"]
_DEFAULT = "suppress"


class MethodSection(Section):
    """How the table is protected."""

    name: str = _DEFAULT
    """Which method."""
    weights: Weights = "table"
    """Information lost per cell: taken from the table (its values, or the cost column), or derived from the value."""
    key: FileName | None = None
    """File with the secret key for random draws, relative to the job file; default: a new key is drawn.
    Only its owner may be able to read it, and it must have at least 16 bytes."""

    @property
    def method(self) -> Method:
        """The method itself."""
        return METHODS[self.name]

    def get_asked(self, key: str) -> Any:
        """Return the job's value of an option; None if it is not given, or if the method does not have it."""
        return getattr(self, key, None)

    def collect_options(self, table: Table | None = None) -> dict[str, Any]:
        """Return every option of the method, with defaults; a given table supplies those that depend on it."""
        out = {}
        for option in self.method.options:
            if option.job_key is None:
                continue
            given = getattr(self, option.job_key)
            if given is None and option.only_given:
                continue
            if given is not None and option.job_read is not None:
                out[option.name] = option.job_read(given)
            else:
                out[option.name] = option.get_job_default(self.get_asked) if given is None else replace_none_word(given)
        if out.get("resist", "") is None:
            del out["resist"]  # without an attack to resist, the option does not apply
        return out if table is None else self.method.fill_options(out, table)


def build_field(option: Option, default: Any = None) -> tuple[Any, Any]:
    """Return the type and the description of an option as a field of a section; None means not given."""
    kind = option.kind if option.job_kind is SAME else option.job_kind
    if option.choices:
        words: Any = Annotated[Literal[option.choices], BeforeValidator(option.match_choice)]
        kind = words if option.job_kind is SAME else words | option.job_kind
    bounds: dict[str, Any] = {"gt": 0} if option.positive else {}
    bounds |= {name: limit for name, limit in (("ge", option.least), ("lt", option.below)) if limit is not None}
    if kind is float:
        bounds["allow_inf_nan"] = False
    if bounds:
        kind = Annotated[kind, Field(**bounds)]
    return kind | None, Field(default=default, description=option.help)


def _build_method_section(method: Method) -> type[MethodSection]:
    fields: dict[str, Any] = {o.job_key: build_field(o) for o in method.options if o.job_key is not None}
    name: Any = (Literal[method.name], Field(default=method.name, description=method.publishes))
    made: type[MethodSection] = create_model(
        f"{method.name.capitalize()}Section", __base__=MethodSection, __doc__=method.publishes, name=name, **fields
    )
    return made


METHOD_SECTIONS = {name: _build_method_section(method) for name, method in METHODS.items()}
"""Name of a method -> its section."""


def _read_method_name(raw: Any) -> Any:
    return raw.get("name", _DEFAULT) if isinstance(raw, Mapping) else getattr(raw, "name", None)


if TYPE_CHECKING:  # both are generated from the registry, which the type checker cannot follow
    MethodName = str
    MethodUnion = MethodSection
else:
    MethodName = Literal[tuple(METHODS)]
    MethodUnion = Annotated[
        reduce(or_, (Annotated[section, Tag(name)] for name, section in METHOD_SECTIONS.items())),
        Discriminator(_read_method_name),
    ]

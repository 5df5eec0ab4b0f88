"""``[method]`` of a job: one section per method, made from what the method says of its options."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, create_model

from cellguard.methods.method import SAME, Method, Option, method_option_as_given
from cellguard.methods.registry import METHODS
from cellguard.nouns.table import Table
from cellguard.publish.sections import Section

__all__ = ["METHOD_SECTIONS", "MethodName", "MethodSection", "MethodUnion"]

Weights = Literal["table", "unit", "inverse", "value", "sqrt", "log"]
_DEFAULT = "suppress"


class MethodSection(Section):
    """How the table is protected."""

    name: str = _DEFAULT
    """Which method."""
    weights: Weights = "table"
    """Information lost per cell: the table's (its values, or the cost column), or by the value."""

    @property
    def method(self) -> Method:
        """The method itself."""
        return METHODS[self.name]

    def asked(self, key: str) -> Any:
        """Return what the job says about an option; None if nothing, or if the method does not have it."""
        return getattr(self, key, None)

    def options(self, table: Table | None = None) -> dict[str, Any]:
        """Return every option of the method, defaults filled in; those that follow from the table, if it is there."""
        out = {}
        for option in self.method.options:
            if option.job_key is not None:
                given = getattr(self, option.job_key)
                out[option.name] = option.job_value(self.asked) if given is None else method_option_as_given(given)
        if out.get("resist", "") is None:
            del out["resist"]  # nothing to withstand is no option of a pattern
        return out if table is None else self.method.filled(out, table)


def _section_field_of_option(option: Option) -> tuple[Any, Any]:
    kind = option.kind if option.job_kind is SAME else option.job_kind
    if option.choices:
        kind = Annotated[Literal[option.choices], BeforeValidator(option.choice_meant)]
    bounds: dict[str, Any] = {"gt": 0} if option.positive else {}
    bounds |= {name: limit for name, limit in (("ge", option.least), ("lt", option.below)) if limit is not None}
    if kind is float:
        bounds["allow_inf_nan"] = False
    if bounds:
        kind = Annotated[kind, Field(**bounds)]
    return kind | None, Field(default=None, description=option.help)


def _section_of_method(method: Method) -> type[MethodSection]:
    fields: dict[str, Any] = {o.job_key: _section_field_of_option(o) for o in method.options if o.job_key is not None}
    name: Any = (Literal[method.name], Field(default=method.name, description=method.publishes))
    made: type[MethodSection] = create_model(
        f"{method.name.capitalize()}Section", __base__=MethodSection, __doc__=method.publishes, name=name, **fields
    )
    return made


METHOD_SECTIONS = {name: _section_of_method(method) for name, method in METHODS.items()}
"""Name of a method -> its section."""


def _method_named_in_section(raw: Any) -> Any:
    return raw.get("name", _DEFAULT) if isinstance(raw, Mapping) else getattr(raw, "name", None)


if TYPE_CHECKING:  # both are made from the registry, which types cannot follow
    MethodName = str
    MethodUnion = MethodSection
else:
    MethodName = Literal[tuple(METHODS)]
    MethodUnion = Annotated[
        reduce(or_, (Annotated[section, Tag(name)] for name, section in METHOD_SECTIONS.items())),
        Discriminator(_method_named_in_section),
    ]

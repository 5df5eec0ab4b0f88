"""The description of a method: its name, function, options, and the texts that describe it.

The command line, job files, the comparison, reports and the contract tests are built from this; see
:data:`cellguard.methods.registry.METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from cellguard._options import SAME, Option, replace_none_word
from cellguard.exceptions import CellguardError, InputError, raise_if_unknown

if TYPE_CHECKING:
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["SAME", "Method", "Option", "replace_none_word"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to protect tables."""

    name: str
    """Name of the function: ``cg.NAME``, ``cellguard NAME``, ``[method] name = NAME``."""
    title: str
    """Its name in the methodology."""
    summary: str
    """One line for the command line's help."""
    help: str
    """What it does, for its own help."""
    publishes: str
    """A sentence for readers of the release."""
    choose: str
    """A sentence for users who choose a method: what it is good for, and what it costs."""
    options: tuple[Option, ...] = ()
    """Its options, besides the limits that all methods have."""
    module: str = ""
    """Where the function is, unless in ``cellguard.methods.NAME.NAME``."""
    kind: str = ""
    """Its kind of release in :data:`cellguard.release.release.KINDS`, if it does not have the method's name."""
    own_weights: str | None = None
    """Kind of weights that it uses by default; None: the table's."""
    made_with: tuple[str, ...] = ("rule",)
    """Options of the release that the function found or drew itself: needed to reproduce the release."""
    by_ranges: bool = True
    """Whether safe means wide ranges; otherwise scenarios attack it, and respondents are no attackers."""
    columns: tuple[str, ...] = ("value",)
    """Columns of its files for a cell, after the codes."""
    marks_primary: bool = False
    """Whether its file can distinguish sensitive cells from those that protect them."""
    internal_file: bool = False
    """Whether it can write internal data next to the release."""
    measured_at_scale: bool = False
    """Whether its memory and time were measured on large tables, so that jobs can estimate them."""
    randomised: Callable[[Callable[[str], Any]], bool] | None = None
    """Whether a release with given option values hides anything by chance; None: the function takes no key."""
    note: Callable[[Release, Mapping[str, Any]], str] | None = None
    """A remark in comparisons, from the release and its options."""

    @property
    def one_number(self) -> bool:
        """Whether it publishes one number per cell, or none: formats and layouts can hold it."""
        return "value" in self.columns

    @property
    def release_kind(self) -> type[Release]:
        """What it publishes; loaded on first use. An external method that names no kind has the general one."""
        from cellguard.release.release import KINDS, Release

        return KINDS.get(self.kind or self.name, Release)

    @property
    def verb(self) -> Callable[..., Release]:
        """The function that protects; loaded on first use."""
        module = import_module(self.module or f"cellguard.methods.{self.name}.{self.name}")
        verb: Callable[..., Release] = getattr(module, self.name)
        return verb

    @property
    def takes_key(self) -> bool:
        """Whether the function has the argument `key`."""
        return self.randomised is not None

    def is_randomised(self, options: Mapping[str, Any]) -> bool:
        """Return whether a release with these options, others at their defaults, hides anything by chance."""

        def get_value(name: str) -> Any:
            option = self.get_option(name)
            return options.get(name, None if option is None else option.default)

        return self.randomised is not None and self.randomised(get_value)

    def has_option(self, name: str) -> bool:
        """Return whether the function has a keyword of this name."""
        return name in signature(self.verb).parameters

    def get_option(self, name: str) -> Option | None:
        """Return an option by its name; None if the method does not have it."""
        return next((option for option in self.options if option.name == name), None)

    def match_choice(self, name: str, value: Any) -> Any:
        """Return the choice of an option that matches a word regardless of case."""
        option = self.get_option(name)
        return value if option is None else option.match_choice(value)

    def require_choices(self, kind: type[CellguardError] = InputError, /, **given: str) -> None:
        """Refuse a word that is not a choice of its option, with an error of this kind."""
        for option in self.options:
            if option.name in given:
                raise_if_unknown(option.name, given[option.name], option.choices, kind)

    def fill_options(self, options: Mapping[str, Any], table: Table) -> dict[str, Any]:
        """Return the options, completed with those that follow from the table."""
        out = dict(options)
        for option in self.options:
            replaced = option.instead is not None and out.get(option.instead) is not None
            if option.from_table is not None and out.get(option.name) is None and not replaced:
                out[option.name] = option.from_table(table)
        return out

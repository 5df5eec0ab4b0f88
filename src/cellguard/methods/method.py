"""What a method says of itself: its name, its verb, its options, and the words in which others speak of it.

The command line, job files, the comparison, reports and the contract suite are made from this; see
:data:`cellguard.methods.registry.METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, cast

from cellguard.exceptions import CellguardError, InputError, raise_if_unknown

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["SAME", "Method", "Option", "method_option_as_given", "method_options_in_any_case"]

Verb = TypeVar("Verb", bound=Callable[..., Any])

SAME: Any = type("Same", (), {"__repr__": lambda _: "SAME"})()
"""Stands for "as in the verb"."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One choice that a method leaves to its user."""

    name: str
    """Keyword of the verb."""
    help: str
    """What it decides, in one sentence: for the command line, editors of job files and the manual."""
    kind: Any = str
    """bool, int, float, str or list[str]: as it is typed."""
    default: Any = None
    """Of the verb and the command line."""
    choices: tuple[str, ...] = ()
    """The words it may be; ``none`` stands for None."""
    least: float | None = None
    """Smallest number it may be."""
    below: float | None = None
    """It must be below this number."""
    positive: bool = False
    """It must be above 0."""
    flag: str | None = SAME
    """On the command line; None: not there."""
    metavar: str | None = None
    """What stands for its value in the help."""
    key: str | None = SAME
    """In a job's [method]; None: not there."""
    job_kind: Any = SAME
    """Its type in a job, where that is richer than what is typed."""
    job_default: Any = SAME
    """In a job, where that is another; a function is asked, with what the job says about other options."""
    read: Callable[[Any], Any] | None = None
    """Turns what was typed on the command line into what the verb takes."""
    from_table: Callable[[Table], Any] | None = None
    """Its value for a table where none is given, in jobs and comparisons."""

    @property
    def job_key(self) -> str | None:
        """Its name in a job; None if it is not there."""
        return self.name if self.key is SAME else self.key

    def job_value(self, asked: Callable[[str], Any]) -> Any:
        """Return its default in a job; `asked` tells what the job says about another option, None if nothing."""
        default = self.default if self.job_default is SAME else self.job_default
        return default(asked) if callable(default) else default

    def typed(self, value: Any) -> Any:
        """Return what the verb takes for what was typed."""
        return self.read(value) if self.read is not None else method_option_as_given(self.choice_meant(value))

    def choice_meant(self, value: Any) -> Any:
        """Return the choice of an option that was meant, however its letters were written: the papers' L2 is l2.

        >>> Option(name="norm", help="Which distance.", choices=("l1", "l2")).choice_meant("L2")
        'l2'
        """
        small = value.lower() if isinstance(value, str) else None
        return next((word for word in self.choices if word.lower() == small), value)


def method_option_as_given(value: Any) -> Any:
    """Return the value; the word ``none`` is None."""
    return None if isinstance(value, str) and value == "none" else value


def method_options_in_any_case(method: Method) -> Callable[[Verb], Verb]:
    """Let a verb take the words of its options as :meth:`Option.choice_meant` reads them."""

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def called(*args: Any, **given: Any) -> Any:
            meant = {o.name: o.choice_meant(given[o.name]) for o in method.options if o.choices and o.name in given}
            return verb(*args, **{**given, **meant})

        return cast("Verb", called)

    return decorate


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to protect tables."""

    name: str
    """Of the verb: ``cg.NAME``, ``cellguard NAME``, ``[method] name = NAME``."""
    title: str
    """Its name in the methodology."""
    summary: str
    """A line of the command line's help."""
    help: str
    """What it does, for its own help."""
    publishes: str
    """A sentence for readers of the release."""
    choose: str
    """A sentence for who has to choose a method: what it is good for, and what it costs."""
    options: tuple[Option, ...] = ()
    """What can be chosen, besides the limits that all methods have."""
    module: str = ""
    """Where the verb is, unless in ``cellguard.methods.NAME.verb``."""
    own_weights: str | None = None
    """Kind of weights it uses unless told otherwise; None: the table's."""
    made_with: tuple[str, ...] = ("rule",)
    """Options of the release that the verb found or drew itself: needed to make it again."""
    by_ranges: bool = True
    """Safe means wide ranges; otherwise it is attacked by scenarios, and respondents are no attackers."""
    columns: tuple[str, ...] = ("value",)
    """What its files hold of a cell, behind the codes."""
    marks_primary: bool = False
    """Its file can tell sensitive cells from those that protect them."""
    internal_file: bool = False
    """It can write what must stay inside beside the release."""
    note: Callable[[Release, Mapping[str, Any]], str] | None = None
    """A remark in comparisons, of the release and the options it was made with."""

    @property
    def one_number(self) -> bool:
        """Whether it publishes one number of a cell, or none: formats and layouts have a place for it."""
        return "value" in self.columns

    @property
    def verb(self) -> Callable[..., Release]:
        """The function that protects; loaded on first use."""
        module = import_module(self.module or f"cellguard.methods.{self.name}.verb")
        verb: Callable[..., Release] = getattr(module, self.name)
        return verb

    def option(self, name: str) -> Option | None:
        """Return an option by its name; None if the method does not have it."""
        return next((option for option in self.options if option.name == name), None)

    def require_choices(self, kind: type[CellguardError] = InputError, /, **given: str) -> None:
        """Refuse a word that its option does not offer, by an error of this kind."""
        for option in self.options:
            if option.name in given:
                raise_if_unknown(option.name, given[option.name], option.choices, kind)

    def filled(self, options: Mapping[str, Any], table: Table) -> dict[str, Any]:
        """Return the options with those that follow from the table, where none are given."""
        out = dict(options)
        for option in self.options:
            if option.from_table is not None and out.get(option.name) is None:
                out[option.name] = option.from_table(table)
        return out

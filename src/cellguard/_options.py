"""The definition of an option: Python, the command line, job files and the manual are generated from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["SAME", "Option", "replace_none_word"]

SAME: Any = type("Same", (), {"__repr__": lambda _: "SAME"})()
"""Means "as in the function"."""


@dataclass(frozen=True, kw_only=True)
class Option:
    """One choice that a method or an attack leaves to its user."""

    name: str
    """Keyword of the function."""
    help: str
    """What it decides, in one sentence: for the command line, editors of job files and the manual."""
    kind: Any = str
    """bool, int, float, str or list[str]: the type of the typed value."""
    default: Any = None
    """Default of the function and the command line."""
    choices: tuple[str, ...] = ()
    """The allowed words; ``none`` means None."""
    least: float | None = None
    """Smallest allowed number."""
    below: float | None = None
    """The number must be below this."""
    positive: bool = False
    """The number must be above 0."""
    flag: str | None = SAME
    """Name on the command line; None: not available there."""
    metavar: str | None = None
    """Placeholder for its value in the help."""
    key: str | None = SAME
    """Name in a job's [method] or [attack]; None: not available there."""
    job_kind: Any = SAME
    """Its type in a job, if that is richer than the typed value."""
    job_default: Any = SAME
    """Default in a job, if different; a function receives what the job says about other options."""
    read: Callable[[Any], Any] | None = None
    """Converts what was typed on the command line into what the function takes."""
    job_read: Callable[[Any], Any] | None = None
    """Converts what a job says into what the function takes."""
    only_given: bool = False
    """A job passes it on only if given: otherwise the function's default holds, and job records do not change."""
    instead: str | None = None
    """Another option that replaces it: if that one is given, this one does not follow from the table."""
    from_table: Callable[[Table], Any] | None = None
    """Computes its default for a table, in jobs and comparisons."""

    @property
    def job_key(self) -> str | None:
        """Its name in a job; None if it is not available there."""
        return self.name if self.key is SAME else self.key

    def get_job_default(self, asked: Callable[[str], Any]) -> Any:
        """Return its default in a job; `asked` returns what the job says about another option, None if nothing."""
        default = self.default if self.job_default is SAME else self.job_default
        return default(asked) if callable(default) else default

    def convert_typed(self, value: Any) -> Any:
        """Return what the function takes for what was typed."""
        return self.read(value) if self.read is not None else replace_none_word(self.match_choice(value))

    def match_choice(self, value: Any) -> Any:
        """Return the choice that matches a word regardless of case: L2 in the papers is l2.

        >>> Option(name="norm", help="Which distance.", choices=("l1", "l2")).match_choice("L2")
        'l2'
        """
        small = value.lower() if isinstance(value, str) else None
        return next((word for word in self.choices if word.lower() == small), value)


def replace_none_word(value: Any) -> Any:
    """Return the value; the word ``none`` becomes None."""
    return None if isinstance(value, str) and value == "none" else value

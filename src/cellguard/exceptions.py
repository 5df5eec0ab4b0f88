"""Errors that cellguard raises.

::

    CellguardError
    ├── InputError (ValueError)          something the user gave is wrong
    │   ├── FormatError                  a file does not follow its grammar
    │   ├── AdditivityError              a relation does not hold
    │   ├── LevelError                   a protection level that no release can meet
    │   ├── PublicationError             tables that do not fit together
    │   └── ReleaseError                 a release that does not fit its table
    ├── UnknownCodeError (KeyError)      a code, column or name that does not exist
    └── InternalError                    a fault of cellguard itself; please report it

No message ever shows the value of a cell or of a record: say which cell (its labels), which
relation, what is allowed, and end with a hint. Reaching a limit is a status of the
release, not an exception.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType

__all__ = [
    "AdditivityError",
    "CellguardError",
    "FormatError",
    "InputError",
    "InternalError",
    "LevelError",
    "PublicationError",
    "ReleaseError",
    "UnknownCodeError",
    "build_missing_errors",
    "place_of_exception",
    "raise_error_of_missing",
    "raise_if_unknown",
    "suggest_names",
]  # fmt: skip


class CellguardError(Exception):
    """Base of every error of cellguard; ``hint`` is printed after the message.

    ``internal`` helps to find the mistake but may reveal something about the values: only users who request it see it.
    """

    def __init__(self, message: str, *, hint: str | None = None, internal: str | None = None) -> None:
        self.message = message
        self.hint = hint
        self.internal = internal
        super().__init__(message if hint is None else f"{message}\nHint: {hint}")

    def __str__(self) -> str:
        return str(self.args[0])


class InputError(CellguardError, ValueError):
    """Something the user gave is wrong."""


class FormatError(InputError):
    """A file does not follow its grammar."""

    @classmethod
    def at(cls, path: object, line: int | None, message: str, *, hint: str | None = None) -> FormatError:
        """Return the error that names the place: ``file:line: message``."""
        place = str(path) if line is None else f"{path}:{line}"
        return cls(f"{place}: {message}", hint=hint)


class AdditivityError(InputError):
    """A relation of the table does not hold."""

    totals: tuple[tuple[str, ...], ...] = ()
    """Codes of the totals that are not the sums of their parts, the worst first: for callers that know their lines."""


class LevelError(InputError):
    """A protection level that no release can meet."""


class PublicationError(InputError):
    """Tables of a publication that do not fit together; `mistakes` lists everything that is wrong."""

    def __init__(self, mistakes: Iterable[CellguardError]) -> None:
        given = list(mistakes)
        self.mistakes = tuple(one.message for one in given)
        count = "1 mistake" if len(given) == 1 else f"{len(given)} mistakes"
        hint = next((one.hint for one in given if one.hint), None)
        super().__init__("\n  ".join([f"{count} in the publication.", *self.mistakes]), hint=hint)

    @classmethod
    def of(cls, mistakes: Iterable[CellguardError]) -> CellguardError:
        """Return one error for all mistakes: a single one is returned unchanged."""
        found = [
            inner
            for one in mistakes
            for inner in ([InputError(m, hint=one.hint) for m in one.mistakes] if isinstance(one, cls) else [one])
        ]
        return found[0] if len(found) == 1 else cls(found)

    @classmethod
    def refuse(cls, mistakes: Sequence[CellguardError]) -> None:
        """Raise one error for all mistakes, if there are any."""
        if mistakes:
            raise cls.of(mistakes)


class ReleaseError(InputError):
    """A release does not fit its table, or contradicts it."""


class UnknownCodeError(CellguardError, KeyError):
    """A code, column or name that does not exist."""


class InternalError(CellguardError):
    """A fault of cellguard itself."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"internal error: {message}",
            hint="this is a fault of cellguard; please report it with the command that caused it.",
        )


def suggest_names(name: str, known: Iterable[str]) -> str | None:
    """Return a hint with the known names nearest to ``name``, or None.

    >>> suggest_names("turnovr", ["turnover", "region"])
    "did you mean 'turnover'?"
    """
    near = get_close_matches(name, list(known), n=3)
    return "did you mean " + " or ".join(repr(n) for n in near) + "?" if near else None


def raise_if_unknown(what: str, word: object, known: Iterable[str], kind: type[CellguardError] = InputError) -> None:
    """Refuse a word that is not known; the hint gives the nearest known one, or all of them.

    >>> raise_if_unknown("norm", "l3", ["l1", "l2"])
    Traceback (most recent call last):
    cellguard.exceptions.InputError: norm 'l3' is not known.
    Hint: known are l1, l2.
    """
    words = list(known)
    if word not in words:
        near = next(filter(None, (suggest_names(case, words) for case in (str(word), str(word).upper()))), None)
        raise kind(f"{what} {word!r} is not known.", hint=near or f"known are {', '.join(words)}.")


def raise_error_of_missing(what: str, names: Iterable[object], known: Collection[str], *, place: str = "") -> None:
    """Refuse the first name that does not exist; the hint gives the nearest one, or some of those that do.

    >>> raise_error_of_missing("column", ["regoin"], ["region", "size"], place="firms.csv: ")
    Traceback (most recent call last):
    cellguard.exceptions.UnknownCodeError: firms.csv: there is no column 'regoin'.
    Hint: did you mean 'region'?
    """
    for error in build_missing_errors(what, names, known, place=place):
        raise error


def build_missing_errors(
    what: str, names: Iterable[object], known: Collection[str], *, place: str = ""
) -> Iterator[UnknownCodeError]:
    """Yield an error for each name that does not exist, for callers that report all of them at once."""
    for name in dict.fromkeys(names):
        if name not in known:
            some = f"known are {', '.join(list(known)[:12])}." if known else None
            yield UnknownCodeError(f"{place}there is no {what} {name!r}.", hint=suggest_names(str(name), known) or some)


def place_of_exception(error: BaseException) -> str:
    """Name the kind and the place of an unexpected error; its text could hold a confidential value."""
    place: TracebackType | None = error.__traceback__
    here = "an unknown place"
    while place is not None:
        path = Path(place.tb_frame.f_code.co_filename)
        if "cellguard" in path.parts:
            inside = path.parts[len(path.parts) - path.parts[::-1].index("cellguard") :]
            here = f"{'/'.join(inside)}:{place.tb_lineno}"
        place = place.tb_next
    return f"{type(error).__name__} in {here}"

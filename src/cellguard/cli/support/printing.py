"""Printing, progress and errors of the commands."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cellguard._io.plain import convert_to_plain_json
from cellguard.exceptions import CellguardError

if TYPE_CHECKING:
    from cellguard.model.attacker import Attacker

__all__ = [
    "JobsFailedError",
    "NoSafeReleaseError",
    "create_progress_printer",
    "format_attackers",
    "format_summary",
    "print_error",
    "print_json",
    "print_note",
    "print_pairs",
    "print_summary",
    "redirect_library_output",
]  # fmt: skip


class NoSafeReleaseError(CellguardError):
    """The method ended without a release that the audit confirms: exit code 2."""

    def __init__(self, message: str, *, hint: str | None = None, summary: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.summary = summary
        """The JSON object, if it is not printed yet."""


class JobsFailedError(CellguardError):
    """One of several jobs failed; the line of each job tells why."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("some jobs failed.")
        self.exit_code = exit_code
        """The largest exit code of the jobs."""


# ---------------------------------------------------------------- printing


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(convert_to_plain_json(value), allow_nan=False), flush=True)


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """Print names and figures in two columns on standard output."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs.items():
        grid.add_row(name.replace("_", " "), _format_seconds(value) if name == "seconds" else _format_figure(value))
    console = Console(highlight=False)
    console.print(escape(title), style="bold")
    console.print(grid)


def print_summary(title: str, summary: Mapping[str, Any], *, as_json: bool, **instead: Any) -> None:
    """Print the result of a command: a JSON object for programs, pairs for people, with `instead` replacing entries."""
    if as_json:
        print_json(summary)
    else:
        print_pairs(title, {**summary, **instead})


def format_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary for people, with the gap in per cent, or a note that it is unknown."""
    from cellguard.release.figures import format_percentage

    shown = dict(summary)
    if "gap" in shown:
        shown["gap"] = format_percentage(float("nan") if shown["gap"] is None else float(shown["gap"]))
    if "status" in shown:
        shown["status"] = str(shown["status"]).replace("_", " ")
    return shown


def format_attackers(attackers: Sequence[Attacker]) -> list[str]:
    """Return the names of attackers for people; respondents, of whom there may be thousands, are only counted."""
    respondents = sum(attacker.derived for attacker in attackers)
    people = f"{respondents:,} respondent{'' if respondents == 1 else 's'}"
    return [*(a.name for a in attackers if not a.derived), *([people] if respondents else [])]


def _format_seconds(value: Any) -> str:
    """Return the total and partial times as text."""
    parts = value if isinstance(value, Mapping) else {"": value}
    return ", ".join(f"{name} {seconds:.2f}".strip().replace("_", " ") for name, seconds in parts.items())


def _format_figure(value: Any) -> str:
    from rich.markup import escape

    value = convert_to_plain_json(value)
    if value is None:
        return "-"
    if isinstance(value, bool | int | float):
        from cellguard.release.figures import format_short_figure

        return format_short_figure(value, 6)
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {_format_figure(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "\n".join(_format_figure(item) for item in value)
    return escape(str(value))


def print_note(text: str, *, quiet: bool = False) -> None:
    """Print a line of progress on standard error."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def print_error(error: CellguardError, *, as_json: bool, internal: bool = False) -> None:
    """Print an error on standard error, and with ``--json`` as an object on standard output too."""
    print(f"cellguard: {error}", file=sys.stderr, flush=True)
    if internal and error.internal is not None:
        print(f"Internal: {error.internal}", file=sys.stderr, flush=True)
    if as_json:
        print_json({"error": type(error).__name__, "message": error.message, "hint": error.hint})


@contextmanager
def redirect_library_output(wanted: bool) -> Iterator[None]:
    """Redirect the output of libraries, including compiled ones, to standard error."""
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def create_progress_printer(*, internal: bool, quiet: bool) -> Callable[[float, float], None]:
    """Return the callback for a method's objective and bound; without `internal` it prints only the gap."""

    def tell(objective: float, bound: float) -> None:
        near = 0 < bound <= objective
        words = f"within {100 * (objective - bound) / objective:.1f}% of the best" if near else "a better one"
        print_note(f"objective {objective:,.6g}, at least {bound:,.6g}" if internal else words, quiet=quiet)

    return tell

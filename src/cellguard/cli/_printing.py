"""What the verbs share: printing, progress, errors."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cellguard._io.plain import plain_json
from cellguard.exceptions import CellguardError

if TYPE_CHECKING:
    from cellguard.nouns.attacker import Attacker

__all__ = [
    "NoSafeReleaseError", "only_json_on_stdout", "print_error", "print_json", "print_note", "print_pairs",
    "print_summary", "printed_attackers", "printed_in_words", "printed_progress",
]  # fmt: skip


class NoSafeReleaseError(CellguardError):
    """The method ended without a release that the audit confirms: exit code 2."""

    def __init__(self, message: str, *, hint: str | None = None, summary: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.summary = summary
        """The JSON object, where it is not printed yet."""


# ---------------------------------------------------------------- printing


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print(json.dumps(plain_json(value), allow_nan=False), flush=True)


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """Print names and figures in two columns on standard output."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid

    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs.items():
        grid.add_row(name.replace("_", " "), _printed_seconds(value) if name == "seconds" else _printed_figure(value))
    console = Console(highlight=False)
    console.print(escape(title), style="bold")
    console.print(grid)


def print_summary(title: str, summary: Mapping[str, Any], *, as_json: bool, **instead: Any) -> None:
    """Print what a verb found: an object for programs, pairs for people, who are told `instead` what they can read."""
    if as_json:
        print_json(summary)
    else:
        print_pairs(title, {**summary, **instead})


def printed_in_words(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return a summary for people: a gap in per cent, or that there is none to tell."""
    from cellguard.nouns.figures import figure_in_per_cent

    shown = dict(summary)
    if "gap" in shown:
        shown["gap"] = figure_in_per_cent(float("nan") if shown["gap"] is None else float(shown["gap"]))
    if "status" in shown:
        shown["status"] = str(shown["status"]).replace("_", " ")
    return shown


def printed_attackers(attackers: Sequence[Attacker]) -> list[str]:
    """Return the names of attackers for people: respondents, of whom there may be thousands, by their number."""
    respondents = sum(attacker.derived for attacker in attackers)
    people = f"{respondents:,} respondent{'' if respondents == 1 else 's'}"
    return [*(a.name for a in attackers if not a.derived), *([people] if respondents else [])]


def _printed_seconds(value: Any) -> str:
    """Write seconds, in all and of the parts, as a clock tells them."""
    parts = value if isinstance(value, Mapping) else {"": value}
    return ", ".join(f"{name} {seconds:.2f}".strip().replace("_", " ") for name, seconds in parts.items())


def _printed_figure(value: Any) -> str:
    from rich.markup import escape

    value = plain_json(value)
    if value is None:
        return "-"
    if isinstance(value, bool | int | float):
        from cellguard.nouns.figures import figure

        return figure(value, 6)
    if isinstance(value, dict):
        return ", ".join(f"{key.replace('_', ' ')} {_printed_figure(item)}" for key, item in value.items())
    if isinstance(value, list):
        return "\n".join(_printed_figure(item) for item in value)
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
def only_json_on_stdout(wanted: bool) -> Iterator[None]:
    """Send to standard error what libraries print meanwhile, compiled ones included."""
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


def printed_progress(*, internal: bool, quiet: bool) -> Callable[[float, float], None]:
    """Return what a method tells its objective and bound; without `internal` only how far they are apart."""

    def tell(objective: float, bound: float) -> None:
        near = 0 < bound <= objective
        words = f"within {100 * (objective - bound) / objective:.1f}% of the best" if near else "a better one"
        print_note(f"objective {objective:,.6g}, at least {bound:,.6g}" if internal else words, quiet=quiet)

    return tell

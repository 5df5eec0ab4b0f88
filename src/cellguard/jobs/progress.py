"""Progress of long work: a bar on a terminal, plain lines elsewhere, nothing with ``quiet``.

Plain lines may end up in a log: they report phases and gaps, never a sum of values.
"""

from __future__ import annotations

import logging
import sys
import time
from math import isfinite
from types import TracebackType
from typing import Any, Self, TextIO

from cellguard._tolerances import NO_DISTANCE
from cellguard.release.figures import format_percentage

__all__ = ["Progress"]

_log = logging.getLogger("cellguard")


class Progress:
    """Report the progress of a job; a context manager.

    Parameters
    ----------
    quiet
        Report nothing.
    stream
        Where to write; standard error unless given.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._begin = time.monotonic()
        self._limit: float | None = None
        self._last = ""
        if not quiet and self._stream.isatty():
            self._bar = _create_progress_bar(self._stream)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            if self._task is not None and error is None:
                self._bar.update(self._task, total=1, completed=1, limit=None)
            self._bar.stop()

    def begin_phase(self, name: str, *, limit_s: float | None = None) -> None:
        """Begin a phase; `limit_s` is its time limit in seconds."""
        self._begin, self._limit = time.monotonic(), limit_s
        _log.info("job: %s", name)
        if self._bar is not None:
            if self._task is not None:
                self._bar.update(self._task, total=1, completed=1, limit=None)
            self._task = self._bar.add_task(name, total=None, figures="", limit=limit_s)
        else:
            self._print_line(name)

    def note(self, text: str) -> None:
        """Write a message on its own line."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            self._print_line(text)

    def tell(self, incumbent: float, bound: float) -> None:
        """Report the best result so far and its proven bound."""
        known = isfinite(incumbent) and isfinite(bound) and incumbent > 0 and bound > NO_DISTANCE * incumbent
        gap = max(0.0, (incumbent - bound) / incumbent) if known else 1.0
        if self._bar is not None and self._task is not None:  # the cost itself is a sum of withheld values
            self._bar.update(self._task, figures=f"gap {format_percentage(gap)}" if known else "no bound yet")
        elif known and f"{gap:.2f}" != self._last:
            self._last = f"{gap:.2f}"
            spent = time.monotonic() - self._begin
            self._print_line(
                f"  gap {format_percentage(gap)} after {spent:.0f} s{_format_seconds_left(self._limit, spent, ', ')}"
            )

    def _print_line(self, text: str) -> None:
        if not self._quiet:
            print(text, file=self._stream, flush=True)


def _format_seconds_left(limit_s: float | None, spent_s: float, before: str = "") -> str:
    """Return how long a phase may still take, if it has a limit."""
    return "" if limit_s is None else f"{before}at most {max(0.0, limit_s - spent_s):.0f} s left"


def _create_progress_bar(stream: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Remaining(ProgressColumn):
        """Count down to the time limit of a phase."""

        def render(self, task: Any) -> Text:
            return Text(_format_seconds_left(task.fields["limit"], task.elapsed or 0.0), style="dim")

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=10),
        TimeElapsedColumn(),
        Remaining(),
        TextColumn("{task.fields[figures]}"),
    )
    return Bar(*columns, console=Console(file=stream), transient=False)

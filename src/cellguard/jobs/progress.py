"""Progress of long work: a bar on a terminal, plain lines elsewhere, nothing when asked to be quiet.

Plain lines may end up in a log: they tell phases and gaps, never a sum of values.
"""

from __future__ import annotations

import sys
import time
from math import isfinite
from types import TracebackType
from typing import Any, Self, TextIO

__all__ = ["Progress"]


class Progress:
    """What a job tells while it runs; a context manager.

    Parameters
    ----------
    quiet
        Tell nothing.
    stream
        Where to tell it; standard error unless given.
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._quiet = quiet
        self._bar: Any = None
        self._task: Any = None
        self._begin = time.monotonic()
        self._last = ""
        if not quiet and self._stream.isatty():
            self._bar = _bar(self._stream)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            if self._task is not None and error is None:
                self._bar.update(self._task, total=1, completed=1, limit="")
            self._bar.stop()

    def phase(self, name: str, *, limit_s: float | None = None) -> None:
        """Begin a phase; `limit_s` is how long it may take at most."""
        self._begin = time.monotonic()
        if self._bar is not None:
            if self._task is not None:
                self._bar.update(self._task, total=1, completed=1, limit="")
            limit = "" if limit_s is None else f"at most {limit_s:.0f} s"
            self._task = self._bar.add_task(name, total=None, figures="", limit=limit)
        else:
            self._line(name)

    def note(self, text: str) -> None:
        """Tell something in a line of its own."""
        if self._bar is not None:
            self._bar.console.print(text, highlight=False, markup=False)
        else:
            self._line(text)

    def tell(self, incumbent: float, bound: float) -> None:
        """Tell the best result so far and its proven bound."""
        gap = (incumbent - bound) / abs(incumbent) if isfinite(incumbent) and isfinite(bound) and incumbent else 1.0
        if self._bar is not None and self._task is not None:
            figures = f"best {incumbent:,.6g}  bound {bound:,.6g}  gap {100 * gap:.1f}%"
            self._bar.update(self._task, figures=figures)
        elif bound > 0 and f"{gap:.2f}" != self._last:
            self._last = f"{gap:.2f}"
            self._line(f"  gap {100 * gap:.1f}% after {time.monotonic() - self._begin:.0f} s")

    def _line(self, text: str) -> None:
        if not self._quiet:
            print(text, file=self._stream, flush=True)


def _bar(stream: TextIO) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(bar_width=10),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[limit]}[/]"),
        TextColumn("{task.fields[figures]}"),
    )
    return Bar(*columns, console=Console(file=stream), transient=False)

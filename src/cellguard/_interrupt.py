"""Ctrl-C on the command line: one line and an exit code, never a traceback."""

from __future__ import annotations

import signal
import sys

__all__ = ["BEST_KEPT", "INTERRUPTED", "listen_for_interrupt", "report_interrupt", "was_interrupted"]

INTERRUPTED = 130
"""Exit code that shells expect of a program that Ctrl-C ended: 128 plus the number of the signal."""
BEST_KEPT = "stopped by Ctrl-C: going on with the best release so far"
"""Message when a method has a release to return."""
_seen: list[int] = []
"""Signals received: a library may turn the interrupt into an error of its own."""


def listen_for_interrupt() -> None:
    """Record from now on that Ctrl-C was pressed; it still raises KeyboardInterrupt."""
    signal.signal(signal.SIGINT, _note_interrupt)


def _note_interrupt(number: int, frame: object) -> None:
    del frame
    _seen.append(number)
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Return whether Ctrl-C was pressed since :func:`listen_for_interrupt`."""
    return bool(_seen)


def report_interrupt() -> int:
    """Report in one line that Ctrl-C ended the work, and return the exit code."""
    sys.stderr.write("cellguard: stopped by Ctrl-C.\n")
    sys.stderr.flush()
    return INTERRUPTED

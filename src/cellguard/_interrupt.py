"""Ctrl-C on the command line: one line and an exit code, never a traceback."""

from __future__ import annotations

import signal
import sys

__all__ = ["BEST_KEPT", "INTERRUPTED", "exit_code_of_interrupt", "listen_for_interrupt", "was_interrupted"]

INTERRUPTED = 130
"""What shells expect of a program that Ctrl-C ended: 128 and the number of the signal."""
BEST_KEPT = "stopped by Ctrl-C: going on with the best release so far"
"""What is said when a method had something to return."""
_seen: list[int] = []
"""The signals that came: a library may turn the interrupt into an error of its own."""


def listen_for_interrupt() -> None:
    """Remember, from now on, that Ctrl-C was pressed; it still raises KeyboardInterrupt."""
    signal.signal(signal.SIGINT, _note_interrupt)


def _note_interrupt(number: int, frame: object) -> None:
    del frame
    _seen.append(number)
    raise KeyboardInterrupt


def was_interrupted() -> bool:
    """Whether Ctrl-C was pressed since the process listens."""
    return bool(_seen)


def exit_code_of_interrupt() -> int:
    """Say in one line that Ctrl-C ended the work, and return the exit code."""
    sys.stderr.write("cellguard: stopped by Ctrl-C.\n")
    sys.stderr.flush()
    return INTERRUPTED

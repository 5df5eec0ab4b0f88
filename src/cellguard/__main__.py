"""``python -m cellguard``, and the command ``cellguard``."""

from __future__ import annotations

import sys

__all__ = ["console"]


def console() -> None:
    """Run the command line as a process of its own."""
    from cellguard._interrupt import INTERRUPTED, exit_code_of_interrupt, listen_for_interrupt, was_interrupted

    try:
        listen_for_interrupt()
        _guard_main_stdout()
        from cellguard.cli import main  # takes a while: Ctrl-C may come here too

        code = main()
    except BaseException as error:
        if not (isinstance(error, KeyboardInterrupt) or (was_interrupted() and not isinstance(error, SystemExit))):
            raise
        code = exit_code_of_interrupt()
    if code == INTERRUPTED:
        _exit_after_interrupt(code)
    sys.exit(code)


def _guard_main_stdout() -> None:
    """Let nobody but ourselves write to standard output.

    A solver's library prints where it stumbles, whatever it is told: a line among JSON, with a number of the table.
    """
    import os

    try:
        own = os.dup(1)
    except OSError:  # closed by whoever started us
        return
    out = sys.stdout
    sys.stdout = os.fdopen(own, "w", buffering=1, encoding=out.encoding, errors=out.errors)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def _exit_after_interrupt(code: int) -> None:
    """End the process now, after what was registered for its end.

    The interpreter remembers an interrupt that passed through ``exec``, and would end by the signal
    although it was handled; threads that a library left behind could print their own complaints.
    """
    import atexit
    import os
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    console()

"""``python -m cellguard``, and the command ``cellguard``."""

from __future__ import annotations

import sys

__all__ = ["console"]


def console() -> None:
    """Run the command line as a separate process."""
    from cellguard._interrupt import INTERRUPTED, listen_for_interrupt, report_interrupt, was_interrupted

    try:
        listen_for_interrupt()
        _guard_main_stdout()
        from cellguard.cli import main

        code = main()
    except BaseException as error:
        if not (isinstance(error, KeyboardInterrupt) or (was_interrupted() and not isinstance(error, SystemExit))):
            raise
        code = report_interrupt()
    if code == INTERRUPTED:
        _terminate_process(code)
    sys.exit(code)


def _guard_main_stdout() -> None:
    """Keep libraries from writing to standard output.

    A solver may print a failure even with output switched off: that puts a line with a value of the table among JSON.
    """
    import os

    try:
        own = os.dup(1)
    except OSError:  # closed by the parent process
        return
    out = sys.stdout
    sys.stdout = os.fdopen(own, "w", buffering=1, encoding=out.encoding, errors=out.errors)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def _terminate_process(code: int) -> None:
    """End the process now, after running the registered exit functions.

    The interpreter remembers an interrupt that passed through ``exec``, and would end by the signal
    although it was handled; threads that a library left behind could print their own errors.
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

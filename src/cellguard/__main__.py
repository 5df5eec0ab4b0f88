"""``python -m cellguard``, and the command ``cellguard``."""

from __future__ import annotations

import sys

__all__ = ["console"]


def console() -> None:
    """Run the command line as a process of its own."""
    from cellguard._interrupt import INTERRUPTED, interrupted, listen, was_interrupted

    try:
        listen()
        from cellguard.cli import main  # takes a while: Ctrl-C may come here too

        code = main()
    except BaseException as error:
        if not (isinstance(error, KeyboardInterrupt) or (was_interrupted() and not isinstance(error, SystemExit))):
            raise
        code = interrupted()
    if code == INTERRUPTED:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> None:
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

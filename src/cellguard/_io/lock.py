"""A lock on a folder: one process at a time works in it, and its death gives the lock back."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cellguard.exceptions import InputError

__all__ = ["locked", "wait_for_lock"]

_ATTEMPTS = 100
_PATIENCE_S = 10.0
"""So long a line waits for its turn; who holds a file longer than that has died."""


@contextmanager
def locked(folder: Path, *, busy: str) -> Iterator[None]:
    """Hold the lock of a folder, which is made where it is not there; `busy` is said where somebody else holds it."""
    handle = _lock_taken(folder, busy)
    try:
        yield
    finally:
        os.close(handle)


def _lock_taken(folder: Path, busy: str) -> int:
    """Return the open file that is the lock. Who ends his work removes it: then one begins again."""
    path = folder / "lock"
    for _ in range(_ATTEMPTS):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except FileNotFoundError:
            continue
        if not _hold_lock(handle):
            os.close(handle)
            raise InputError(busy, hint="wait until it has ended, or give this one a folder of its own.")
        try:
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)
    raise InputError(busy)


def wait_for_lock(handle: int) -> None:
    """Wait until nobody else holds an open file, and hold it until it is closed."""
    begun = time.monotonic()
    while not _hold_lock(handle) and time.monotonic() - begun < _PATIENCE_S:
        time.sleep(0.01)


def _hold_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":  # pragma: no cover
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

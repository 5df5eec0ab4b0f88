"""A lock on a folder: one process at a time works in it, and the lock ends with the process."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cellguard.exceptions import InputError

__all__ = ["lock_folder", "wait_for_lock"]

_ATTEMPTS = 100
_PATIENCE_S = 10.0
"""Seconds that a line waits for its turn; a process that holds a file for longer counts as dead."""


@contextmanager
def lock_folder(folder: Path, *, busy: str) -> Iterator[None]:
    """Hold the lock of a folder, which is created if missing; raise an error with the text `busy` if it is taken."""
    handle = _take_lock(folder, busy)
    try:
        yield
    finally:
        os.close(handle)


def _take_lock(folder: Path, busy: str) -> int:
    """Return the open lock file. A process that finishes removes the file: then try again."""
    path = folder / "lock"
    for _ in range(_ATTEMPTS):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except FileNotFoundError:
            continue
        if not _hold_lock(handle):
            os.close(handle)
            raise InputError(busy, hint="wait until the other run has ended, or use another folder for this one.")
        try:
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)
    raise InputError(busy)


def wait_for_lock(handle: int) -> None:
    """Wait until no other process holds an open file, and hold it until it is closed."""
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

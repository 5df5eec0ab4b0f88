"""The ledger of a project: an append-only file of what was released and signed, by whom and when.

Every line holds the hash of the line before it, so that a changed or removed line is detected.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellguard._io.files import read_bytes
from cellguard._io.lock import wait_for_lock
from cellguard.exceptions import InputError

__all__ = ["FILE", "add_to_ledger", "get_head", "hold_ledger", "list_broken_lines", "read_entries", "refuse_growth"]

FILE = "ledger.jsonl"
_FIRST = "0" * 64
_MAX_BYTES = 64 << 20


def add_to_ledger(folder: Path, what: str, facts: Mapping[str, Any], *, after: str | None = None) -> None:
    """Add a line to the ledger of a folder; create the ledger if there is none.

    Parameters
    ----------
    folder
        The folder of the ledger.
    what
        What happened: "released" or "signed".
    facts
        Facts to record. Never a cell value.
    after
        The last line must still have this hash (:func:`get_head`); otherwise nothing is added.
    """
    with hold_ledger(folder) as ledger:
        if after is not None and ledger.head != after:
            raise _build_growth_error(folder)
        ledger.add(what, facts)


@dataclass
class HeldLedger:
    """A ledger that only this process may change."""

    handle: int
    head: str
    """Hash of the last line."""

    def add(self, what: str, facts: Mapping[str, Any]) -> None:
        """Add a line in one write, so that a killed process leaves a whole line or a torn one without an end."""
        when = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        text = json.dumps({"when": when, "what": what, **facts, "before": self.head}, ensure_ascii=False)
        content = (text + "\n").encode()
        while content:
            content = content[os.write(self.handle, content) :]
        os.fsync(self.handle)
        self.head = _hash_line(text)


@contextmanager
def hold_ledger(folder: Path) -> Iterator[HeldLedger]:
    """Hold the ledger of a folder; what a killed process left unfinished at its end is removed first."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    if path.is_symlink():
        raise InputError(f"{FILE}: is a symbolic link.", hint="remove it.")
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        wait_for_lock(handle)  # two jobs in a folder may end at the same time
        content = read_bytes(path, max_bytes=_MAX_BYTES)
        torn = len(content) - (content.rfind(b"\n") + 1)
        if torn:
            os.ftruncate(handle, len(content) - torn)
        yield HeldLedger(handle, get_head(folder))
    finally:
        os.close(handle)


def get_head(folder: Path) -> str:
    """Return the hash of the last line of a ledger: it changes with every entry."""
    lines = _read_lines(folder / FILE)
    return _hash_line(lines[-1]) if lines else _FIRST


def refuse_growth(ledger: HeldLedger, head: str, folder: Path) -> None:
    """Refuse to go on if another run has recorded a release since the ledger was read."""
    if ledger.head != head:
        raise _build_growth_error(folder)


def _build_growth_error(folder: Path) -> InputError:
    return InputError(
        f"{folder / FILE}: another run recorded a release while this one was running; nothing was written.",
        hint="run the job again: it is then protected together with that release.",
    )


def list_broken_lines(folder: Path) -> list[int]:
    """Return the numbers of the lines that are not JSON, or do not follow from the line before."""
    before, out = _FIRST, []
    for number, line in enumerate(_read_lines(folder / FILE), 1):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.get("before") != before:
            out.append(number)
        before = _hash_line(line)
    return out


def read_entries(folder: Path) -> tuple[list[dict[str, Any]], bool]:
    """Return the lines of the ledger, oldest first, and whether none of them was changed or removed."""
    out: list[dict[str, Any]] = []
    before, whole = _FIRST, True
    for line in _read_lines(folder / FILE):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            whole = False
            continue
        whole = whole and found.get("before") == before
        before = _hash_line(line)
        out.append(found)
    return out, whole


def _read_lines(path: Path) -> list[str]:
    if path.is_symlink() or not path.is_file():
        return []
    text = read_bytes(path, max_bytes=_MAX_BYTES).decode("utf-8", "replace")
    lines = text.split("\n")  # a line may contain other separators
    return lines[:-1]  # what follows the last end of line is empty, or was left by a killed process


def _hash_line(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()

"""The ledger of a project: what was released and signed, by whom and when, in a file that only grows.

Every line holds the fingerprint of the one before it: a line that is changed or taken out later is seen.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cellguard._io.files import read_bytes
from cellguard._io.lock import wait_for_lock
from cellguard.exceptions import InputError

__all__ = ["FILE", "add_to_ledger", "ledger_entries"]

FILE = "ledger.jsonl"
_FIRST = "0" * 64
_MAX_BYTES = 64 << 20


def add_to_ledger(folder: Path, what: str, facts: Mapping[str, Any]) -> None:
    """Add a line to the ledger of a folder; the first one makes it.

    Parameters
    ----------
    folder
        The folder of the job.
    what
        What happened: "released" or "signed".
    facts
        What is to be kept of it. No value of a cell belongs here.
    """
    path = folder / FILE
    if path.is_symlink():
        raise InputError(f"{FILE}: is a symbolic link.", hint="remove it.")
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        wait_for_lock(handle)  # two jobs of a folder may end at once
        lines = _ledger_lines(path)
        line = {
            "when": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "what": what,
            **facts,
            "before": _fingerprint_of_ledger_line(lines[-1]) if lines else _FIRST,
        }
        stream.write(json.dumps(line, ensure_ascii=False) + "\n")


def ledger_entries(folder: Path) -> tuple[list[dict[str, Any]], bool]:
    """Return the lines of the ledger, the oldest first, and whether none was changed or taken out between them."""
    out: list[dict[str, Any]] = []
    before, whole = _FIRST, True
    for line in _ledger_lines(folder / FILE):
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            whole = False
            continue
        whole = whole and found.get("before") == before
        before = _fingerprint_of_ledger_line(line)
        out.append(found)
    return out, whole


def _ledger_lines(path: Path) -> list[str]:
    if path.is_symlink() or not path.is_file():
        return []
    return read_bytes(path, max_bytes=_MAX_BYTES).decode("utf-8", "replace").splitlines()


def _fingerprint_of_ledger_line(line: str) -> str:
    return hashlib.sha256(line.encode()).hexdigest()

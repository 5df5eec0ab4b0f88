"""The versions of a project's job: every change can be undone, and a page that shows an older version is noticed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cellguard._io.files import write_text
from cellguard.exceptions import CellguardError, InputError

if TYPE_CHECKING:
    from cellguard.web.projects import Project

__all__ = [
    "StaleJobError",
    "count_versions",
    "get_version",
    "record",
    "refuse_stale",
    "restore_next",
    "restore_previous",
]

_FILE = "history.json"
_DECISIONS = "decisions.hst"
_MAX_VERSIONS = 100
_TOGETHER_S = 3.0
"""Changes to one page within this many seconds are one step: fields are saved while a user types."""


class StaleJobError(CellguardError):
    """The job has changed since the page that sends a change was loaded."""


def get_version(project: Project) -> str:
    """Return the fingerprint of the job and its decisions."""
    state = _read_state(project)
    content = "\0".join([state["job"], state["decisions"] or ""])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def refuse_stale(project: Project, seen: str | None) -> None:
    """Raise an error if the job is no longer the version that a page has seen; scripts may send no version."""
    if seen and seen != get_version(project):
        raise StaleJobError(
            "this project was changed in another window since this page was loaded; nothing was overwritten.",
            hint="load the page again, then repeat your change.",
        )


@contextmanager
def record(project: Project, part: str) -> Iterator[None]:
    """Record the version before a change, so that the change can be undone; `part` is the page that makes it."""
    before = _read_state(project)
    yield
    if _read_state(project) == before:
        return
    past, now = _read_steps(project, "past"), time.time()
    together = past and past[-1]["part"] == part and now - past[-1]["when"] < _TOGETHER_S
    if together:
        past[-1]["when"] = now
    else:
        past.append(before | {"part": part, "when": now})
    project.keep(_FILE, {"past": past[-_MAX_VERSIONS:], "future": []})


def count_versions(project: Project) -> dict[str, Any]:
    """Return how many steps can be undone and repeated, and which page the next one of each changes."""
    past, future = _read_steps(project, "past"), _read_steps(project, "future")
    return {
        "undo": len(past),
        "redo": len(future),
        "undo_part": past[-1]["part"] if past else None,
        "redo_part": future[-1]["part"] if future else None,
    }


def restore_previous(project: Project) -> str:
    """Undo the last change; return the page that it had changed."""
    return _move(project, "past", "future")


def restore_next(project: Project) -> str:
    """Repeat the change that was undone last; return the page that it changes."""
    return _move(project, "future", "past")


def _move(project: Project, source: str, target: str) -> str:
    steps = {name: _read_steps(project, name) for name in ("past", "future")}
    if not steps[source]:
        raise InputError("there is nothing to undo." if source == "past" else "there is nothing to repeat.")
    wanted = steps[source].pop()
    steps[target].append(_read_state(project) | {"part": wanted["part"], "when": 0.0})
    project.write_text(wanted["job"])
    path = project.folder / _DECISIONS
    if wanted["decisions"] is not None:
        write_text(path, wanted["decisions"])
    elif path.is_file() and not path.is_symlink():
        path.unlink()
    project.keep(_FILE, steps)
    return str(wanted["part"])


def _read_state(project: Project) -> dict[str, Any]:
    path = project.folder / _DECISIONS
    decisions = path.read_text(encoding="utf-8") if path.is_file() and not path.is_symlink() else None
    return {"job": project.read_text(), "decisions": decisions}


def _read_steps(project: Project, name: str) -> list[dict[str, Any]]:
    """Return the saved steps, the latest last; damaged ones are left out."""
    kept = project.read_kept(_FILE) or {}
    found = kept.get(name)
    if not isinstance(found, list):
        return []
    known = {"job", "decisions", "part", "when"}
    return [step for step in found if isinstance(step, dict) and known <= set(step) and isinstance(step["job"], str)]

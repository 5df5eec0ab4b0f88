"""Long work in the background: one process for each, one at a time per project; the others wait.

The process reports progress as lines of JSON on its standard output, and stops on a line on its standard input;
it ends when the server does. Its reports are saved in the project, for users who return later.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from cellguard.exceptions import InputError
from cellguard.web.projects import Project

__all__ = ["Solve", "Solves"]

_MAX_EVENTS = 5000
_MAX_WAITING = 20


@dataclass(eq=False)
class Solve:
    """One piece of long work."""

    number: int
    project: Project
    kind: str
    limit_s: float
    """For a comparison: time limit of each method in seconds."""
    state: str = "waiting"
    """waiting, running, stopping; or its outcome: done, refused (not safe), failed, stopped."""
    events: list[dict[str, Any]] = field(default_factory=list)
    begun: float = 0.0
    ended: float = 0.0
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running", "stopping")

    def collect_facts(self) -> dict[str, Any]:
        """Return the work as a JSON object."""
        seconds = (self.ended or time.time()) - self.begun if self.begun else 0.0
        return {
            "number": self.number,
            "kind": self.kind,
            "state": self.state,
            "seconds": seconds,
            "events": list(self.events),
        }


class Solves:
    """All background work of the server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Solve] = deque()
        self._last: dict[tuple[str, str], Solve] = {}
        self._running: dict[str, Solve] = {}
        self._count = 0
        self._closed = False

    def begin(self, project: Project, kind: str, *, limit_s: float) -> Solve:
        """Begin work, or queue it until the project's current work is done."""
        with self._lock:
            if len(self._waiting) >= _MAX_WAITING:
                raise InputError("too much work is waiting already.", hint="stop some of it, or wait.")
            last = self._last.get((project.id, kind))
            if last is not None and last.state == "waiting":
                return last
            self._count += 1
            solve = Solve(self._count, project, kind, limit_s)
            self._last[project.id, kind] = solve
            self._waiting.append(solve)
        self._start_what_can()
        return solve

    def get_last(self, project: Project, kind: str) -> dict[str, Any] | None:
        """Return the latest work of a kind: of this server, or saved by an earlier one."""
        solve = self._last.get((project.id, kind))
        return solve.collect_facts() if solve is not None else project.read_kept(f"{kind}.json")

    def get_current(self, project: Project, kind: str) -> Solve | None:
        """Return the latest work of a kind that this server began."""
        return self._last.get((project.id, kind))

    def is_busy(self, project: Project) -> bool:
        """Return whether work is running or waiting in a project."""
        with self._lock:
            return project.id in self._running or any(solve.project.id == project.id for solve in self._waiting)

    def stop(self, project: Project, kind: str) -> None:
        """Ask work to end with its best safe result; drop waiting work."""
        with self._lock:
            solve = self._last.get((project.id, kind))
            if solve is None or solve.over:
                return
            if solve.state == "waiting":
                self._waiting.remove(solve)
                solve.state = "stopped"
                running = self._running.get(project.id)
                if running is not None and running.kind == kind:  # the page shows the running work
                    self._last[project.id, kind] = running
                return
            solve.state = "stopping"
        _tell_worker_to_stop(solve.process)

    def close(self) -> None:
        """End all work; unfinished work leaves only its checkpoints."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            running = list(self._running.values())
        for solve in running:
            if solve.process is not None:
                solve.process.kill()
                solve.process.wait()

    def _start_what_can(self) -> None:
        with self._lock:
            if self._closed:
                return
            for solve in list(self._waiting):
                if solve.project.id in self._running:
                    continue
                self._waiting.remove(solve)
                self._running[solve.project.id] = solve
                solve.state, solve.begun = "running", time.time()
                threading.Thread(target=self._follow, args=(solve,), daemon=True).start()

    def _follow(self, solve: Solve) -> None:
        """Start the process of a piece of work and listen to it until it ends."""
        words = [sys.executable, "-m", "cellguard.web.worker", solve.kind, str(solve.project.path), str(solve.limit_s)]
        with subprocess.Popen(  # noqa: S603 - our own module, and a path below the folder that was given
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # warnings of libraries may show values
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C at the terminal is for the server, which then ends it
        ) as process:
            solve.process = process
            state = "failed"
            for line in process.stdout or ():
                state = _note_worker_event(solve, line) or state
            process.wait()
        if state == "failed" and not any("error" in event for event in solve.events):
            state = "stopped" if solve.state == "stopping" else "failed"
            solve.events.append({"error": {"message": "the process ended before its time.", "hint": None}})
        solve.ended, solve.state = time.time(), state
        with self._lock:
            self._running.pop(solve.project.id, None)
        if solve.project.path.is_file() and not self._closed:
            solve.project.keep(f"{solve.kind}.json", solve.collect_facts())
        self._start_what_can()


def _note_worker_event(solve: Solve, line: str) -> str | None:
    """Record a report of the process; return its outcome if it has ended."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    if not isinstance(event, dict):
        return None
    ended = event.pop("ended", None)
    if len(solve.events) < _MAX_EVENTS or ended is not None:
        solve.events.append(event | {"t": round(time.time() - solve.begun, 3)})
    return ended if isinstance(ended, str) else None


def _tell_worker_to_stop(process: subprocess.Popen[str] | None) -> None:
    if process is not None and process.stdin is not None:
        with suppress(OSError, ValueError):  # it has just ended
            process.stdin.write("stop\n")
            process.stdin.flush()

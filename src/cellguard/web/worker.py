"""The process of one piece of long work: ``python -m cellguard.web.worker protect|compare JOB SECONDS``.

It runs the job as ``cellguard protect`` does, tells its progress as lines of JSON, stops as Ctrl-C does when a line
"stop" arrives, and ends at once when its server is gone.
"""

from __future__ import annotations

import _thread
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from cellguard._io.plain import plain_json
from cellguard.exceptions import CellguardError, place_of_exception
from cellguard.publish.progress import Progress

__all__ = ["run_as_worker"]

_OFTEN_S = 0.1
"""A curve needs no more points than this in its first minute, and fewer later."""


class Lines(Progress):
    """Progress as lines of JSON; best cost and bound are confidential, and so is this stream."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self._out = sys.stdout
        self._told, self._begin_s = 0.0, time.monotonic()
        self._lock = threading.Lock()
        self.stopped = False

    def say(self, **event: Any) -> None:
        """Write a line."""
        with self._lock:
            self._out.write(json.dumps(plain_json(event), allow_nan=False) + "\n")
            self._out.flush()

    def phase(self, name: str, *, limit_s: float | None = None) -> None:
        """Tell that a phase begins."""
        self.say(phase=name, limit_s=limit_s)

    def note(self, text: str) -> None:
        """Tell something."""
        self.say(note=text)

    def tell(self, incumbent: float, bound: float) -> None:
        """Tell the best result so far and its proven bound, not too often.

        Once the word to stop has come, every search ends with its first safe pattern: a method that plans again,
        because a respondent could still compute something, searches again.
        """
        now = time.monotonic()
        if now - self._told >= max(_OFTEN_S, (now - self._begin_s) / 600):
            self._told = now
            self.say(best=incumbent, bound=bound if bound > 0 else None)
        if self.stopped:
            raise KeyboardInterrupt


def run_as_worker(kind: str, path: str, limit_s: float) -> int:
    """Do the work; what is told last says how it ended. `limit_s` is for each method of a comparison."""
    lines = Lines()
    sys.stdout = sys.stderr  # nothing else may write between the lines
    threading.Thread(target=_listen_to_web_server, args=(lines,), daemon=True).start()
    try:
        made = (
            _protect_in_worker(Path(path), lines)
            if kind == "protect"
            else _compare_in_worker(Path(path), lines, limit_s)
        )
        lines.say(ended="done", result=made)
    except KeyboardInterrupt:
        lines.say(ended="stopped")
    except CellguardError as error:
        summary = getattr(error, "summary", None)
        ended = "refused" if summary else "failed"
        lines.say(ended=ended, error={"message": error.message, "hint": error.hint}, result=summary)
    except MemoryError:
        lines.say(ended="failed", error={"message": "the memory of this machine is not enough.", "hint": None})
    except Exception as error:  # noqa: BLE001 - its text could hold a value
        lines.say(ended="failed", error={"message": f"internal error: {place_of_exception(error)}", "hint": None})
    return 0


def _listen_to_web_server(lines: Lines) -> None:
    """Wait for the word to stop; the end of the stream means that the server is gone."""
    for line in sys.stdin:
        if line.strip() == "stop":
            lines.stopped = True
            _thread.interrupt_main()
    os._exit(1)


def _protect_in_worker(path: Path, lines: Lines) -> dict[str, Any]:
    from cellguard.publish import read_job
    from cellguard.publish.run import run

    outcome = run(read_job(path), progress=lines)
    return outcome.summary(internal=True) | {"folder": os.path.relpath(outcome.folder, path.parent)}


def _compare_in_worker(path: Path, lines: Lines, limit_s: float) -> dict[str, Any]:
    from cellguard.methods.compare import compare
    from cellguard.publish import read_job
    from cellguard.publish.flags import flagged_by_job
    from cellguard.publish.tables import tabulated_by_job

    file = read_job(path)
    lines.phase("tabulate")
    made = tabulated_by_job(file)
    lines.phase("flag")
    table = flagged_by_job(made, file)
    found = compare(table, time_limit_s=limit_s, seed=file.job.seed, progress=lines.phase)
    return {"rows": list(found.rows)}


if __name__ == "__main__":
    sys.exit(run_as_worker(sys.argv[1], sys.argv[2], float(sys.argv[3])))

"""The worker process of a piece of long work: ``python -m cellguard.web.worker protect|compare JOB SECONDS``.

It runs the job like ``cellguard protect``, reports progress as lines of JSON, stops as on Ctrl-C when a line
"stop" arrives, and ends at once when its server has ended.
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

from cellguard._io.plain import convert_to_plain_json
from cellguard.exceptions import CellguardError, place_of_exception
from cellguard.jobs.progress import Progress

__all__ = ["run_as_worker"]

_OFTEN_S = 0.1
"""Largest number of points of the progress curve in its first minute; later there are fewer."""


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
            self._out.write(json.dumps(convert_to_plain_json(event), allow_nan=False) + "\n")
            self._out.flush()

    def begin_phase(self, name: str, *, limit_s: float | None = None) -> None:
        """Report the start of a phase."""
        self.say(phase=name, limit_s=limit_s)

    def note(self, text: str) -> None:
        """Report a message."""
        self.say(note=text)

    def tell(self, incumbent: float, bound: float) -> None:
        """Report the best result so far and its proven bound, at a limited rate.

        After the line "stop", every search ends with its first safe pattern: a method that plans again,
        because a respondent could still infer a value, searches again.
        """
        now = time.monotonic()
        if now - self._told >= max(_OFTEN_S, (now - self._begin_s) / 600):
            self._told = now
            self.say(best=incumbent, bound=bound if bound > 0 else None)
        if self.stopped:
            raise KeyboardInterrupt


def run_as_worker(kind: str, path: str, limit_s: float) -> int:
    """Do the work; the last report gives the outcome. `limit_s` is the time limit of each method of a comparison."""
    lines = Lines()
    sys.stdout = sys.stderr  # no library may write between the lines of JSON
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
    """Wait for the line "stop"; the end of the stream means that the server has ended."""
    for line in sys.stdin:
        if line.strip() == "stop":
            lines.stopped = True
            _thread.interrupt_main()
    os._exit(1)


def _protect_in_worker(path: Path, lines: Lines) -> dict[str, Any]:
    from cellguard.jobs import read_job
    from cellguard.jobs.runner import run

    outcome = run(read_job(path), progress=lines)
    return outcome.summary(internal=True) | {"folder": os.path.relpath(outcome.folder, path.parent)}


def _compare_in_worker(path: Path, lines: Lines, limit_s: float) -> dict[str, Any]:
    from cellguard.jobs import read_job
    from cellguard.jobs.flags import flag_job
    from cellguard.jobs.tables import tabulate_job
    from cellguard.methods.compare import compare

    file = read_job(path)
    lines.begin_phase("tabulate")
    made = tabulate_job(file)
    lines.begin_phase("flag")
    table = flag_job(made, file)
    found = compare(table, time_limit_s=limit_s, seed=file.job.seed, progress=lines.begin_phase)
    return {"rows": list(found.rows)}


if __name__ == "__main__":
    sys.exit(run_as_worker(sys.argv[1], sys.argv[2], float(sys.argv[3])))

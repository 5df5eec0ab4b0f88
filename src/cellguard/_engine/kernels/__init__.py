"""Compiled loops (numba, cached on disk): plain arrays in and out, called only by their neighbours above."""

from __future__ import annotations

from cellguard._engine import clock

with clock.stopped():
    from numba.core import event


class _Compiling(event.Listener):
    """Compiling, and loading what was compiled before, does not count against a time limit."""

    def on_start(self, event: object) -> None:  # noqa: ARG002
        clock.stop()

    def on_end(self, event: object) -> None:  # noqa: ARG002
        clock.resume()


event.register("numba:compiler_lock", _Compiling())

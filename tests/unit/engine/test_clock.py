"""The clock of time limits."""

from __future__ import annotations

from cellguard._engine import clock


def test_a_share_of_the_time_that_is_left() -> None:
    begin = clock.now()
    assert begin + 5 <= clock.until(0.5, begin + 10) <= begin + 6
    assert clock.until(0.5, begin - 1) == begin - 1

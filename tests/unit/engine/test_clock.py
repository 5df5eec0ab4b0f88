"""The clock of time limits."""

from __future__ import annotations

import pickle
import time

import pytest

from cellguard._engine import clock
from cellguard._engine.clock import NEVER, Deadline


def test_a_share_of_the_time_that_is_left():
    begin = clock.now()
    assert begin + 5 <= Deadline(begin + 10).take_share(0.5).at <= begin + 6
    assert Deadline(begin - 1).take_share(0.5).at == begin - 1
    assert NEVER.take_share(0.5) == NEVER


def test_a_deadline_that_has_passed_leaves_a_moment_where_a_solver_must_be_told_some():
    late = Deadline.from_limit(-3.0)
    assert late.passed
    assert late.left == 0.0
    assert late.get_seconds_at_least() == clock.MOMENT_S
    assert late.get_seconds_at_least(2.0) == 2.0
    assert late.move_later(10.0).left == pytest.approx(7.0, abs=0.5)
    assert NEVER.choose_earlier(4.0).left == pytest.approx(4.0, abs=0.5)


def test_a_deadline_travels_to_machines_whose_clocks_started_at_another_time(monkeypatch):
    sent = pickle.dumps((Deadline.from_limit(100.0), NEVER))
    started_later = clock.now
    monkeypatch.setattr(clock, "now", lambda: started_later() - 5000.0)
    arrived, never = pickle.loads(sent)
    assert arrived.left == pytest.approx(100.0, abs=1.0)
    assert never == NEVER
    assert time.time() > 0

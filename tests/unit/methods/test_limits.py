"""The limits that all verbs share."""

from __future__ import annotations

import inspect

import pytest

import cellguard as cg
from cellguard.methods.limits import Limits
from cellguard.methods.registry import METHODS


def test_what_cannot_be_is_refused():
    for option in ({"time_limit_s": -1.0}, {"time_limit_s": float("nan")}, {"gap": -0.1}):
        with pytest.raises(cg.InputError, match=next(iter(option))):
            Limits(**option)


def test_the_last_word_is_within_what_a_limit_may_be_missed_by():
    limits = Limits(time_limit_s=100.0)
    assert limits.deadline.at < limits.last_word.at <= limits.deadline.at + 0.05 * 100.0 + 2.0
    assert limits.take_share(0.5).deadline.at == pytest.approx(limits.begin + 50.0)
    assert Limits(time_limit_s=float("inf")).deadline.left > 1e8


def test_progress_is_told_to_who_wants_to_know():
    told: list[tuple[float, float]] = []
    Limits(progress=lambda *figures: told.append(figures)).tell(2.0, 1.0)
    Limits().tell(2.0, 1.0)
    assert told == [(2.0, 1.0)]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_verb_takes_the_same_limits(method):
    takes = inspect.signature(method.verb).parameters
    assert {"time_limit_s", "seed", "threads", "progress"} <= set(takes)
    assert takes["time_limit_s"].default == 60.0


@pytest.mark.parametrize("name", METHODS)
def test_every_verb_reports_its_progress_the_same_way(name):
    relations = [[2, 0, 1], [5, 3, 4], [8, 6, 7], [6, 0, 3], [7, 1, 4], [8, 2, 5]]
    values = [30, 41, 71, 62, 20, 82, 92, 61, 153]
    table = cg.Table.from_equations(values, relations, sensitive=[0], lower=[2], upper=[2])
    told: list[tuple[float, float]] = []
    release = METHODS[name].verb(table, time_limit_s=30, progress=lambda *figures: told.append(figures))
    assert release.published
    assert told, "nothing was told"
    assert told[-1][0] == pytest.approx(release.objective)


@pytest.mark.parametrize("threads", [0, -1, 100_000])
def test_absurd_numbers_of_threads_are_refused(threads):
    with pytest.raises(cg.InputError, match="threads"):
        Limits(threads=threads)

"""Large tables: windows instead of programs over all cells, and a pattern that is not lost."""

import numpy as np
import pytest

import cellguard as cg
from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.ranges.search.known_movements import choose_witnesses, stack_movements
from cellguard._engine.ranges.witnesses.shown import ShownMovements
from cellguard.datasets import generate
from cellguard.methods.limits import Limits
from cellguard.methods.suppress import repair, suppress
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search.neighbourhoods import LargeSearch, protect_in_windows
from cellguard.release.release import Status, Suppression


@pytest.fixture
def table():
    return generate.hierarchical(3, branching=((4, 4), (4, 3), (3,)), sensitive=0.15, zeros=0.05)


@pytest.fixture
def _every_table_is_large(monkeypatch):
    monkeypatch.setattr(suppress, "_LARGE", 10)
    monkeypatch.setattr(repair, "MAX_WHOLE_CELLS", 10)


@pytest.mark.usefixtures("_every_table_is_large")
def test_a_pattern_is_not_lost_because_the_search_took_all_of_the_time(table, monkeypatch):
    monkeypatch.setattr(Limits, "last_word", property(lambda _: Deadline.from_limit(0.0)))
    monkeypatch.setattr(suppress, "_AUDIT_RATIO", 1e6)
    release = cg.suppress(table, rounds=1, time_limit_s=300)
    assert release.published
    assert release.audit().safe


@pytest.mark.usefixtures("_every_table_is_large")
def test_the_first_pattern_is_returned_if_the_audit_refuses_the_last_one(table, monkeypatch):
    def improve(self, deadline, max_rounds=None):
        self.best = self.problem.forced.copy()  # sensitive cells alone are never safe here
        self.cost = 0.0

    monkeypatch.setattr(LargeSearch, "improve", improve)
    monkeypatch.setattr(suppress.SuppressProcedure, "repair", lambda *_: None)
    release = cg.suppress(table, rounds=1, time_limit_s=300)
    assert release.published
    assert release.secondary.any()
    assert release.audit().safe


@pytest.mark.usefixtures("_every_table_is_large")
def test_what_the_audit_found_is_repaired_in_windows(table):
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=table.sensitive)
    found = release.audit(exact=False)
    assert not found.safe
    more = repair.repair_pattern(release.suppressed, found, NEVER, ShownMovements())
    again = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=more)
    assert again.audit(exact=False).safe


def test_movements_in_windows_prove_a_pattern_without_a_program(table, monkeypatch):
    from cellguard._engine.ranges import parts
    from cellguard._engine.ranges.search import range_search

    monkeypatch.setattr(range_search, "LARGE", 10)
    monkeypatch.setattr(parts, "LARGE", 10)
    shown = ShownMovements()
    problem = SuppressionProblem.of(table, forced=table.sensitive, shown=shown)
    pattern = protect_in_windows(problem, NEVER)
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=pattern)
    with_movements = release.audit(exact=False, shown=shown)
    without = release.audit(exact=False)
    assert with_movements.safe
    assert without.safe
    assert sum(f.programs for f in with_movements.findings) == 0


def test_a_window_search_gives_up_at_the_deadline(table):
    problem = SuppressionProblem.of(table, forced=table.sensitive)
    assert protect_in_windows(problem, Deadline.from_limit(0.0)) is None


def test_the_movement_that_goes_far_enough_is_chosen_and_others_are_dropped():
    moves = stack_movements(
        [(np.array([0, 1]), np.array([1.0, -1.0])), (np.array([0, 2]), np.array([1.0, -1.0]))], 4
    )  # fmt: skip
    broken = stack_movements([(np.array([0]), np.array([1.0]))], 4)
    relations = stack_movements([(np.arange(4), np.ones(4))], 4)
    slack = np.array([9.0, 2.0, 9.0, 9.0])
    need = np.array([5.0, 0.0, 0.0, 0.0])
    chosen = choose_witnesses(moves, relations, (slack, slack), (np.zeros(4, np.int64), 1), (need, need))
    assert chosen.high.tolist() == [9.0, 0.0, 0.0, 0.0]
    assert chosen.low.tolist() == [-9.0, 0.0, 0.0, 0.0]
    assert len(chosen.pool) == 2  # up and down by the second movement
    assert set(chosen.pool[0][0].tolist()) == {0, 2}
    nothing = choose_witnesses(broken, relations, (slack, slack), (np.zeros(4, np.int64), 1), (need, need))
    assert not nothing.pool
    assert (nothing.high_row == -1).all()

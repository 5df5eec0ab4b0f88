import numpy as np
import pytest

import cellguard as cg
from cellguard.auditing.audit import audit
from cellguard.exceptions import InputError, LevelError, ReleaseError
from cellguard.release.release import Adjustment, Intervals, Perturbation, Rounding, Status, Suppression


def square(**changes):
    """A 2 x 2 table with totals; the first inner cell is sensitive."""
    options = {"sensitive": [4], "lower": 3, "upper": 3} | changes
    return cg.Table.from_leaves({"r": ["1", "2"], "c": ["1", "2"]}, [[20, 50], [8, 19]], **options)


def suppression(table, cells):
    hidden = np.zeros(table.n_cells, bool)
    hidden[list(cells)] = True
    return Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden)


INNER = (4, 5, 7, 8)


def test_a_safe_pattern_is_safe_and_proven():
    found = audit(suppression(square(), INNER))
    assert found.safe
    assert found.summary() == {"safe": True, "checked": 1, "exact": 0, "unsafe": 0}
    assert found.unsafe_cells.tolist() == []
    assert cg.verify(found.release, list(found.witnesses.values())).accepted


def test_a_sensitive_cell_alone_is_disclosed_without_a_program():
    found = audit(suppression(square(), [4]))
    assert found.summary() == {"safe": False, "checked": 1, "exact": 1, "unsafe": 1}
    assert found.findings[0].programs == 0
    assert found.disclosed.tolist() == [4]
    assert found.findings[0].low.tolist() == found.findings[0].high.tolist() == [20]


def test_disclosed_cells_that_are_not_sensitive_are_named():
    table = cg.Table.from_equations([20, 50, 70, 5, 6, 11], [[2, 0, 1], [5, 3, 4]], sensitive=[0], upper=[4])
    found = audit(suppression(table, [0, 1, 3]))
    assert found.safe
    assert found.disclosed.tolist() == [3]


def test_a_level_that_is_missed_is_unsafe_with_its_exact_range():
    found = audit(suppression(square(lower=3, upper=9), INNER), exact=True)
    assert found.summary() == {"safe": False, "checked": 1, "exact": 0, "unsafe": 1}
    assert (found.findings[0].low.tolist(), found.findings[0].high.tolist()) == ([1], [28])
    assert found.unsafe_cells.tolist() == [4]


def test_a_sensitive_cell_without_levels_may_not_be_known_exactly():
    assert not audit(suppression(square(lower=0, upper=0), [4])).safe
    assert audit(suppression(square(lower=0, upper=0), INNER)).safe


def test_a_fixed_cell_is_not_sensitive():
    with pytest.raises(LevelError, match="cannot be fixed"):
        square(lower=0, upper=0, fixed=[4])


def test_sliding_level_is_a_width():
    table = square(lower=0, upper=0)
    low, high = (e[0] for e in audit(suppression(table, INNER), exact=True).ranges["external"][1:])
    width = high - low
    for level, safe in ((width, True), (width + 1, False)):
        sliding = np.where(table.sensitive, level, 0.0)
        assert audit(suppression(table.with_(sliding=sliding), INNER)).safe is safe


def test_every_attacker_is_withstood_with_his_own_bounds_and_levels():
    insider = cg.Attacker(name="insider", cells=[7], lb=[7.0], ub=[9.0])
    other = cg.Attacker(name="other", sensitive=[8], upper=[2.0], lower=[2.0])
    assert audit(suppression(square(attackers=()), INNER)).safe  # no attacker named: the external one
    found = audit(suppression(square(lower=0.5, upper=0.5, attackers=(insider, other)), INNER), exact=True)
    assert found.safe
    assert found.checked == 2
    assert set(found.ranges) == {"external", "insider", "other"}
    _, low, high = found.ranges["insider"]
    assert high[0] - low[0] == 2


def test_kinds_of_release():
    table = square()
    a = table.values
    common = {"table": table, "status": Status.FEASIBLE, "objective": 0.0}
    assert audit(Intervals(**common, lower=a - 3, upper=a + 3)).safe
    assert not audit(Intervals(**common, lower=a - 1, upper=a + 1)).safe
    rounded = np.array([96, 32, 64, 72, 24, 48, 24, 8, 16.0])
    assert audit(Rounding(**common, values=rounded, base=np.full(9, 8.0))).safe
    assert not audit(Rounding(**common, values=rounded, base=np.full(9, 2.0), step=3)).safe
    moved = np.array([0, 0, 0, 0, 1, -1, 0, -1, 1.0])
    assert audit(Perturbation(**common, values=a + moved, distance=np.full(9, 4.0))).safe
    assert not audit(Perturbation(**common, values=a + moved, distance=np.full(9, 3.0))).safe
    assert not audit(Perturbation(**common, values=a, distance=np.full(9, 3.0))).safe  # published as it is


def test_an_adjusted_table_is_judged_by_its_distance():
    table = square()
    common = {"table": table, "status": Status.FEASIBLE, "objective": 0.0}
    cycle = np.zeros(9)
    cycle[list(INNER)] = [1, -1, -1, 1]
    for distance, safe in ((3, True), (-3, True), (2.9, False), (0, False)):
        release = Adjustment(**common, values=table.values + distance * cycle)
        found = audit(release)
        assert found.safe is safe
        assert found.exact == (distance == 0)
        assert cg.verify(release, []).accepted is safe


def test_midpoints_need_exact_ranges():
    release = suppression(square(), INNER)
    with pytest.raises(InputError, match="exact"):
        audit(release).midpoints()
    assert sum(audit(release, exact=True).midpoints().values()) == 1.0


def test_a_symmetric_interval_gives_its_middle_away():
    table = square()
    lower, upper = table.values.copy(), table.values.copy()
    lower[list(INNER)] -= 4
    upper[list(INNER)] += 4
    release = Intervals(table=table, status=Status.FEASIBLE, objective=0.0, lower=lower, upper=upper)
    assert audit(release, exact=True).midpoints()["0"] == 1.0


# ---------------------------------------------------------------- bad input


def test_a_primary_cell_left_published_is_refused():
    with pytest.raises(ReleaseError, match=r"\(r=1, c=1\): the cell is sensitive, but published"):
        audit(suppression(square(), [5, 7, 8]))


def test_a_release_of_another_table_is_refused():
    table = square()
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=np.ones(4, bool))
    with pytest.raises(ReleaseError, match="4 cells"):
        audit(release)


def test_published_values_that_contradict_the_relations_are_refused():
    table = square()
    values = np.array([95, 30, 70, 70, 20, 50, 25, 10, 20.0])
    with pytest.raises(ReleaseError, match="do not hold in what is published"):
        audit(Rounding(table=table, status=Status.FEASIBLE, objective=0.0, values=values, base=np.full(9, 5.0)))


@pytest.mark.parametrize("shift", [6.0, np.nan])
def test_intervals_that_exclude_the_truth_are_refused(shift):
    table = square()
    lower = table.values.copy()
    lower[5] += shift
    upper = lower + 1
    with pytest.raises(ReleaseError, match=r"\(r=1, c=2\)"):
        audit(Intervals(table=table, status=Status.FEASIBLE, objective=0.0, lower=lower, upper=upper))


def test_an_adjusted_value_outside_the_known_bounds_is_refused():
    table = square(ub=120.0)
    cycle = np.zeros(9)
    cycle[list(INNER)] = [-21, 21, 21, -21]
    with pytest.raises(ReleaseError, match="outside the known bounds"):
        audit(Adjustment(table=table, status=Status.FEASIBLE, objective=0.0, values=table.values + cycle))


def test_whole_number_ranges_need_whole_numbers():
    table = cg.Table.from_equations([2.5, 5, 7.5], [[2, 0, 1]], sensitive=[0], upper=[1])
    with pytest.raises(InputError, match="not whole"):
        audit(suppression(table, [0, 1]), integer=True)


def test_no_message_shows_a_value():
    table = cg.Table.from_leaves({"r": ["1", "2"]}, [123456789, 5], sensitive=[1], upper=7)
    with pytest.raises(ReleaseError) as caught:
        audit(suppression(table, [2]))
    assert "123456789" not in str(caught.value)

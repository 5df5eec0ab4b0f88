"""Counts beside other indicators: they stay whole numbers, whatever stands beside them."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.auditing.witnesses import verify
from cellguard.exceptions import InputError
from cellguard.model.levels import compute_required_levels
from cellguard.model.linked.publication import Part, Publication

DIMS = {"r": ["a", "b", "c"], "c": ["x", "y", "z"]}
PEOPLE = np.array([[3, 2, 5], [1, 4, 6], [7, 6, 4]])


def publication(equations=()):
    people = cg.Table.from_leaves(DIMS, PEOPLE, integer=True, insiders=False).apply(cg.MinFrequency(3))
    turnover = cg.Table.from_leaves(DIMS, 10.25 * PEOPLE, insiders=False)
    turnover = turnover.with_(sensitive=turnover.values == 10.25).with_levels(0.2, 0.2)
    parts = [
        Part(name="people", table=people, indicator="people"),
        Part(name="turnover", table=turnover, indicator="turnover"),
    ]
    if equations:
        both = cg.Table.from_leaves(DIMS, 11.25 * PEOPLE, insiders=False)
        parts.append(Part(name="both", table=both, indicator="both"))
    return Publication.of(parts, equations=equations)


@pytest.mark.parametrize("method", [cg.suppress, cg.intervals])
def test_counts_beside_turnover_are_whole(method):
    made = publication()
    table = made.table
    assert not table.integer
    assert table.counted.sum() == 16
    asked = compute_required_levels(table)
    assert asked.width[table.count_cells[asked.cells]].min() >= 2
    release = method(made, time_limit_s=10)
    found = release.audit()
    assert found.safe
    cells, low, high = found.ranges["external"]
    counts = table.counted[cells]
    assert (high - low)[counts].min() >= 2
    assert low[counts].min() >= 1
    lo, _ = release.published_bounds()
    assert (lo[counts.nonzero()[0]] == np.rint(lo[counts.nonzero()[0]])).all()
    assert verify(release, list(found.witnesses.values())).accepted
    if method is cg.intervals:
        assert (release.lower[table.counted] == np.rint(release.lower[table.counted])).all()
        assert (release.upper[table.counted] == np.rint(release.upper[table.counted])).all()


def test_an_equation_between_counts_and_others_keeps_the_counts_whole():
    made = publication(["both = people + turnover"])
    release = cg.suppress(made, time_limit_s=10)
    assert made.table.counted is not None
    if release.published:  # what only broken counts would show is not called safe
        found = release.audit()
        assert not found.safe or verify(release, list(found.witnesses.values())).accepted


def test_which_cells_are_counts_is_stored(tmp_path):
    table = publication().table
    table.write(tmp_path / "t.csv")
    back = cg.Table.read(tmp_path / "t.csv")
    assert np.array_equal(back.counted, table.counted)


def test_counts_are_whole_numbers():
    with pytest.raises(InputError, match="not a whole number") as caught:
        cg.Table.from_leaves(DIMS, PEOPLE + 0.5, integer=True)
    assert "5.5" not in str(caught.value)

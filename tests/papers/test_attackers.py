"""What the papers say an attacker computes."""

import pytest

from cellguard.auditing.audit import audit
from cellguard.datasets.examples import minami2019_figure2, minami2019_table1, salazar2004_figure2


# rounded to 20 with base 5, of whole numbers 16 to 24 are possible: a cell moves by less than its base
@pytest.mark.parametrize(
    ("method", "low", "high"),
    [("suppress", 5, 30), ("intervals", 20, 26), ("round", 16, 24), ("perturb", 21, 31)],
)
def test_salazar2004_figure_2(method, low, high):
    release = salazar2004_figure2()[method]
    found = audit(release, exact=True)
    cells, lows, highs = found.ranges["external"]
    assert [release.table.label(i) for i in cells] == ["(activity=II, region=C)"]
    assert (lows[0], highs[0]) == (low, high)


@pytest.mark.parametrize("integer", [False, True])
def test_minami2019_example_1(integer):
    found = audit(minami2019_figure2(), exact=True, integer=integer)
    _, lows, highs = found.ranges["external"]
    assert (lows.tolist(), highs.tolist()) == ([0], [17])
    assert found.safe


def test_minami2019_table_1_has_ten_candidates():
    for k in range(10):
        release = minami2019_table1(k)
        hidden = release.table.with_(sensitive=release.suppressed, sliding=8.0 * release.suppressed)
        found = audit(type(release)(table=hidden, status=release.status, objective=0, suppressed=release.suppressed),
                      integer=True)  # fmt: skip
        _, lows, highs = found.ranges["external"]
        assert (highs - lows).tolist() == [9, 9, 9, 9]

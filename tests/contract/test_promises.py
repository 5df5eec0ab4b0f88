"""Every method x kinds of tables: what is returned as a success every audit accepts, from the written file alone, too.

Published bounds contain the truth; numbers add up, inside the bounds everybody knows; a sensitive cell is never
published as it is. What cannot be done is said with a reason.
"""

import numpy as np
import pytest

import cellguard as cg
from cellguard.methods.registry import METHODS
from cellguard.model.levels import compute_required_levels
from cellguard.release.release import Intervals, Release
from cellguard.testing import assert_additive
from contract.kinds import EVERY_METHOD, LEVELS, STRANGE, TABLES, grid, protect, read_again

ALWAYS = {"suppress", "intervals"}
"""Methods that find a release of every ordinary table; the others may say, honestly, that there is none."""


def promises_are_kept(method, table: cg.Table, path) -> bool:
    """Protect a table and check every promise; tell whether there is a release."""
    try:
        release = protect(method, table)
    except cg.CellguardError as error:  # levels that this method cannot meet are refused with a reason and a hint
        assert error.hint, error.message  # noqa: PT017
        return False
    if not release.published:
        assert release.explanation
        return False
    found = cg.audit(release)
    assert found.safe
    assert found.integer is table.integer
    if method.by_ranges:
        assert cg.audit(release, exact=True).safe
    again = cg.audit(read_again(release, path))
    assert again.safe
    assert again.checked == found.checked >= len(compute_required_levels(table).cells) > 0
    the_truth_is_inside(release)
    never_the_truth(release)
    if not isinstance(release, Intervals):
        assert_additive(release)
    return True


def the_truth_is_inside(release: Release) -> None:
    lo, hi = release.published_bounds()
    a = release.table.values
    assert (lo <= a + 1e-9 * np.abs(a)).all()
    assert (hi >= a - 1e-9 * np.abs(a)).all()


def never_the_truth(release: Release) -> None:
    table, point = release.table, release.get_point_values()
    told = table.sensitive & np.isfinite(point)
    if isinstance(release, Intervals):
        lo, hi = release.published_bounds()
        assert (hi[told] > lo[told]).all()
    else:
        a = table.values[told]
        assert (np.abs(point[told] - a) > 1e-9 * np.maximum(1.0, np.abs(a))).all()
        shown, near = np.isfinite(point), 1e-9 * np.maximum(1.0, np.abs(table.values))
        assert (point >= table.given_lb - near)[shown].all()
        assert (point <= table.ub + near)[shown].all()


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("kind", TABLES)
@EVERY_METHOD
def test_ordinary_tables(method, kind, levels, tmp_path):
    table = LEVELS[levels](TABLES[kind]())
    assert table.sensitive.any()
    assert promises_are_kept(method, table, tmp_path / "release.csv") or method.name not in ALWAYS


@pytest.mark.parametrize("kind", STRANGE)
@EVERY_METHOD
def test_strange_tables(method, kind, tmp_path):
    assert promises_are_kept(method, STRANGE[kind](), tmp_path / "release.csv") or method.name != "suppress"


@EVERY_METHOD
def test_nobody_refuses_everything(method, tmp_path):
    """A method that refused every table would keep every promise."""
    assert promises_are_kept(method, grid(), tmp_path / "release.csv")


def test_every_method_is_in_the_suite():
    assert set(METHODS) > ALWAYS

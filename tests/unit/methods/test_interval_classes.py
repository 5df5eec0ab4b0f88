"""Partitions no value had a part in, and strides that programs of whole numbers can make."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.methods.intervals.grid import _interval_piece
from cellguard.methods.intervals.lattice import Width, interval_grain, interval_pieces


@pytest.mark.parametrize(("lower", "upper"), [(0.0, np.inf), (-np.inf, np.inf), (0.0, 61.0), (3.0, 11.0)])
def test_every_value_of_a_piece_has_the_same_piece(lower, upper):
    values = np.arange(max(lower, -40.0), min(upper, 80.0) + 1.0)
    n = len(values)
    x, y = _interval_piece(values, np.full(n, lower), np.full(n, upper), np.full(n, 8.0), np.full(n, 0.4))
    assert ((x <= values) & (values <= y)).all()
    for first in np.unique(x):
        assert len(np.unique(y[x == first])) == 1
    whole = (y - x)[(x >= values[0]) & (y <= values[-1])]
    assert (whole >= min(8.0, upper - lower)).all()


def test_every_value_of_a_class_has_the_same_class():
    values = np.arange(0.0, 3000.0)
    n = len(values)
    width = Width(np.full(n, 1.0), np.full(n, 0.2), np.zeros(n), np.zeros(n))
    x, y, stride = interval_pieces(values, np.zeros(n), np.full(n, np.inf), width, np.full(n, 0.3))
    assert ((x <= values) & (values <= y)).all()
    assert (stride % interval_grain(stride) == 0).all()
    for first in np.unique(x):
        assert len(np.unique(y[x == first])) == 1
        last = y[x == first][0]
        assert last - first >= 0.2 * last - 1.0


def test_respondents_are_hidden_from_by_movements_that_they_do_not_know():
    """Who knew a cell that rode along computed the leader: everything was then withheld."""
    rng = np.random.default_rng(8)
    n = 150
    records = {
        "region": rng.choice(["N", "S", "W", "E"], n, p=[0.45, 0.3, 0.2, 0.05]).tolist(),
        "sector": rng.choice(["f", "m", "k"], n, p=[0.6, 0.3, 0.1]).tolist(),
        "x": np.ceil(np.exp(rng.normal(5, 1.2, n))).tolist(),
    }
    table = cg.tabulate(records, ["region", "sector"], "x").apply(cg.MinFrequency(3)).with_levels(0, 0, sliding=0.2)
    release = cg.intervals(table, seed=1)
    assert release.audit().safe
    assert release.details["cells_replaced"] < table.n_cells / 2
    assert release.details["mended"] == 0


def test_the_survey_of_the_demonstration_is_protected_at_once(tmp_path):
    """All of its 672 cells were opened, or none in time."""
    from cellguard.publish import read_job
    from cellguard.publish.flags import flagged_by_job
    from cellguard.publish.survey import write_survey
    from cellguard.publish.tables import tabulated_by_job

    file = read_job(write_survey(tmp_path))
    table = flagged_by_job(tabulated_by_job(file), file)
    release = cg.intervals(table, seed=1, time_limit_s=20)
    assert release.audit().safe
    assert release.details["promised"] == release.details["asked"] == 22
    assert release.details["cells_replaced"] < table.n_cells / 3

"""Partitions no value had a part in, and strides that programs of whole numbers can make."""

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.methods.intervals.lattice import Width, compute_grain, find_pieces
from cellguard.release.count_classes import ClassRule, cut_classes, cut_even_classes


@pytest.mark.parametrize(("lower", "upper"), [(0.0, np.inf), (-np.inf, np.inf), (0.0, 61.0), (3.0, 11.0)])
def test_every_value_of_a_piece_has_the_same_piece(lower, upper):
    values = np.arange(max(lower, -40.0), min(upper, 80.0) + 1.0)
    n = len(values)
    x, y = cut_even_classes(values, np.full(n, lower), np.full(n, upper), np.full(n, 8.0), np.full(n, 0.4))
    assert ((x <= values) & (values <= y)).all()
    for first in np.unique(x):
        assert len(np.unique(y[x == first])) == 1
    whole = (y - x + 1)[(x >= values[0]) & (y <= values[-1])]
    assert (whole >= min(8.0, upper - lower + 1)).all()
    assert ((x <= values[0]) | np.isin(x - 1, y)).all()  # no two overlap


def test_every_value_of_a_class_has_the_same_class():
    values = np.arange(0.0, 3000.0)
    n = len(values)
    width = Width(np.full(n, 1.0), np.full(n, 0.2), np.zeros(n), np.zeros(n))
    x, y, stride = find_pieces(values, np.zeros(n), np.full(n, np.inf), width, np.full(n, 0.3))
    assert ((x <= values) & (values <= y)).all()
    assert (stride % compute_grain(stride) == 0).all()
    for first in np.unique(x):
        assert len(np.unique(y[x == first])) == 1
        last = y[x == first][0]
        assert last - first >= 0.2 * last - 1.0


@pytest.mark.parametrize(
    "shares", [(0.1, 0.1, 0.0, 1.0), (0.05, 0.2, 0.0, 1.0), (0.0, 0.0, 0.0, 2.0), (0.0, 0.0, 0.1, 4.0)]
)
@pytest.mark.parametrize(("start", "stop"), [(0.0, np.inf), (1.0, np.inf), (1.0, 38.0), (1.0, 2.0)])
def test_classes_of_counts_are_a_partition_and_as_wide_as_every_value_asks(shares, start, stop):
    values = np.arange(start, min(stop, 400.0) + 1.0)
    n = len(values)
    rule = ClassRule(*(np.full(n, share) for share in shares))
    seen = set()
    for draw in (0.0, 0.35, 0.7, 0.99):
        x, y = cut_classes(values, np.full(n, start), np.full(n, stop), rule, np.full(n, draw))
        assert ((x <= values) & (values <= y)).all()
        assert (x[1:] == np.where(y[:-1] == values[:-1], values[1:], x[:-1])).all()
        assert ((y - x >= rule.compute_width(values)) | (y - x == stop - start)).all()
        seen.add(float(y[0]))
    assert len(seen) >= 2 or stop < 10


@pytest.mark.parametrize("percent", [0.0951, 0.0962, 0.0987, 0.1])
def test_the_shares_of_count_classes_are_those_of_a_public_list(percent):
    """A share that follows from one table's levels would tell the values from which these were computed."""
    table = cg.Table.from_equations([40, 500, 300, 840], [[3, 0, 1, 2]], sensitive=[0], integer=True)
    table = table.with_(lower=40 * percent * table.sensitive, upper=40 * percent * table.sensitive)
    rule = ClassRule.from_table(table)
    assert (rule.lower.tolist(), rule.upper.tolist()) == ([0.1] * 4, [0.1] * 4)


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
    release = cg.intervals(table, key=key(1))
    assert release.audit().safe
    assert release.details["cells_replaced"] < table.n_cells / 2
    assert release.details["mended"] == 0


def test_the_survey_of_the_demonstration_is_protected_at_once(tmp_path):
    """All of its 672 cells were opened, or none in time."""
    from cellguard.datasets.survey import write_survey
    from cellguard.jobs import read_job
    from cellguard.jobs.flags import flag_job
    from cellguard.jobs.tables import tabulate_job

    file = read_job(write_survey(tmp_path))
    table = flag_job(tabulate_job(file), file)
    release = cg.intervals(table, key=key(1), time_limit_s=20)
    assert release.audit().safe
    assert release.details["promised"] == release.details["asked"] == 22
    assert release.details["cells_replaced"] < table.n_cells / 3

"""The printed tables: their printed margins, patterns and figures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cellguard import examples
from cellguard.exceptions import UnknownCodeError


def test_salazar2004_figure1():
    t = examples.salazar2004_figure1()
    assert t.values.reshape(4, 4)[0].tolist() == [190, 45, 101, 44]
    assert t.values.reshape(4, 4)[:, 0].tolist() == [190, 80, 49, 61]
    assert [t.label(i) for i in t.sensitive_cells] == ["(activity=II, region=C)"]
    assert (t.lower[11], t.upper[11], t.sliding[11]) == (10, 12, 0)


def test_salazar2004_figure2():
    patterns = examples.salazar2004_figure2()
    t = examples.salazar2004_figure1()
    assert list(patterns) == ["suppress", "intervals", "round", "perturb"]
    for name in ("round", "perturb"):
        v = patterns[name].get_point_values()
        assert np.abs(t.relations @ v).max() == 0
        assert np.abs(v - t.values).max() <= 5
    assert (patterns["round"].get_point_values() % 5 == 0).all()
    assert [t.label(i) for i in np.flatnonzero(patterns["suppress"].suppressed)] == [
        "(activity=II, region=A)",
        "(activity=II, region=C)",
        "(activity=III, region=A)",
        "(activity=III, region=C)",
    ]
    lo, hi = patterns["intervals"].published_bounds()
    assert ((lo <= t.values) & (t.values <= hi)).all()
    assert (lo[11], hi[11]) == (20, 26)


def test_salazar2004_figure5():
    t = examples.salazar2004_figure5()
    assert (t.n_cells, t.n_relations) == (13 * 7, 13 * 3 + 2 * 7)
    assert t.values[0] == 1_250_098
    r = examples.salazar2004_figure5_rounded()
    assert (r.values % 5 == 0).all()
    assert np.abs(r.values - t.values).max() < 5
    assert r.values[0] == 1_250_095


def test_castro2004_figures():
    t = examples.castro2004_figure1()
    assert t.values.reshape(4, 5)[0].tolist() == [136, 28, 37, 34, 37]
    assert t.upper[t.sensitive_cells].tolist() == [3, 4, 2, 5]
    assert int(t.fixed.sum()) == 8
    sums = {name: np.abs(z).sum() for name, z in examples.castro2004_figure1_deviations().items()}
    assert sums == {"z": 36, "z1": 46, "z2": 68}
    two = examples.castro2004_figure2_deviations()
    for z in [*examples.castro2004_figure1_deviations().values(), *two.values()]:
        assert np.abs(t.relations @ z).max() < 1e-12
        assert (z[t.sensitive] >= t.upper[t.sensitive]).all()
    assert round(float(np.linalg.norm(two["l2"])), 2) == 12.12
    assert examples.castro2004_figure3().values.tolist() == [12, 8, 20]


def test_minami2019_figures():
    frequency, magnitude = examples.minami2019_figure1()
    assert frequency.values.reshape(4, 6)[0].tolist() == [361, 130, 73, 46, 90, 22]
    assert magnitude.values.reshape(4, 6)[:, 0].tolist() == [8620, 2290, 2892, 3438]
    assert (magnitude.counts == frequency.values).all()
    r = examples.minami2019_figure2()
    assert r.table.values.reshape(4, 4)[0].tolist() == [291, 77, 83, 131]
    assert np.flatnonzero(r.primary).tolist() == [5]
    assert int(r.secondary.sum()) == 3
    for k in range(10):
        r = examples.minami2019_table1(k)
        assert r.table.values.reshape(5, 5)[0].tolist() == [192, 51, 46, 62, 33]
        assert r.table.values[r.suppressed].tolist() == [14 + k, 9 - k, 9 - k, k]


def test_the_cube_has_no_zero_restricted_rounding():
    t = examples.unroundable_cube()
    odd = np.flatnonzero(t.values % 2 == 1)
    assert len(odd) == 16  # every margin is even, hence stays as it is
    T = t.relations[:, odd].toarray()
    T = T[np.abs(T).sum(axis=1) > 0]
    for up in itertools.product((-1, 1), repeat=len(odd)):
        assert (T @ np.array(up)).any()


def test_every_example_loads_by_name():
    for name in examples.TABLES:
        assert examples.load(name).n_cells
    with pytest.raises(UnknownCodeError, match="did you mean 'castro2004-figure3' or 'castro2004-figure1'"):
        examples.load("castro2004-figure")

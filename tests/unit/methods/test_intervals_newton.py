"""Newton steps of the intervals on systems without an inverse: an interior point ends, it does not crash."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import LinAlgError

import cellguard as cg
from builders import key
from cellguard.methods.intervals.narrowest import interior


def repeated_relations():
    """Every relation three times: the reduced system has no full rank."""
    rows = [[2, 0, 1], [5, 3, 4], [8, 6, 7], [6, 0, 3], [7, 1, 4], [8, 2, 5]] * 3
    a = [50, 70, 120, 60, 80, 140, 110, 150, 260]
    return cg.Table.from_equations(a, rows, sensitive=[0], lower=5, upper=5)


def apart():
    """Sensitive cells that share no relation with anything, beside one that does."""
    return cg.Table.from_equations([50, 70, 120, 9, 33], [[2, 0, 1]], sensitive=[0, 3, 4], lower=3, upper=3)


def equal():
    """a = b = c: one degree of freedom, and rows that say the same."""
    return cg.Table.from_equations([40, 40, 40], [[0, 1], [1, 2], [0, 2]], sensitive=[1], lower=4, upper=4)


def scales():
    """A thousandth beside a million million: pivots of nothing."""
    return cg.Table.from_leaves(
        {"a": ["x", "y", "z"], "b": ["u", "v"]},
        [[0.001, 1e12], [3.5, 0.002], [7e11, 12.0]],
        sensitive=[4, 7],
        lower=[0.0004, 1.0],
        upper=[0.0004, 1.0],
    )


def nearly_fixed():
    """All margins fixed: whatever one inner cell does, the others must do exactly."""
    table = cg.Table.from_leaves(
        {"a": ["x", "y"], "b": ["u", "v"]}, [[20, 50], [80, 19]], sensitive=[4], lower=3, upper=3
    )
    return table.with_(fixed=(table.coordinates == 0).any(axis=1))


def weightless():
    """Widths that cost nothing: no curvature in the objective."""
    return repeated_relations().with_(weights=np.zeros(9))


SINGULAR = [repeated_relations, apart, equal, scales, nearly_fixed, weightless]


@pytest.mark.parametrize("position", ["classes", "narrowest"])
@pytest.mark.parametrize("made", SINGULAR, ids=lambda made: made.__name__)
def test_systems_without_an_inverse_end_in_a_safe_release_or_a_reason(made, position):
    release = cg.intervals(made(), position=position, key=key(1), time_limit_s=10)
    if release.published:
        assert release.audit().safe
        assert (release.lower <= made().values).all()
        assert (release.upper >= made().values).all()
    else:
        assert release.explanation


@pytest.mark.parametrize("after", [0, 2])
def test_a_step_that_the_linear_algebra_refuses_ends_the_search(monkeypatch, after):
    steps = []
    original = interior.NewtonState.take_step

    def step(self):
        steps.append(1)
        if len(steps) > after:
            raise LinAlgError("singular matrix")
        return original(self)

    monkeypatch.setattr(interior.NewtonState, "take_step", step)
    rng = np.random.default_rng(4)
    table = cg.Table.from_leaves({d: list("pqrs") for d in "abc"}, rng.integers(20, 90, (4, 4, 4)))  # no network
    inner = np.flatnonzero((table.coordinates > 0).all(axis=1))[[0, 9, 33]]
    table = table.with_(sensitive=np.isin(np.arange(table.n_cells), inner)).with_levels(0.1, 0.1)
    release = cg.intervals(table, position="narrowest", time_limit_s=10)
    assert steps
    assert release.audit().safe if release.published else release.explanation

"""cg.adjust: options, errors, statuses."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard.adjust import NORMS
from cellguard.exceptions import CellguardError, InputError, UnknownCodeError


def small(**changes):
    """3 x 3 with totals; two sensitive cells."""
    a = np.array([20, 50, 10, 80, 8, 19, 22, 49, 17, 32, 12, 61, 45, 101, 44, 190], dtype=float)
    cell = np.arange(16).reshape(4, 4)
    rows = [[r[-1], *r[:-1]] for r in cell] + [[c[-1], *c[:-1]] for c in cell.T]
    given = {"sensitive": [0, 6], "lower": [4, 5], "upper": [6, 3], **changes}
    return cg.Table.from_equations(a, rows, **given)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("senses", ["upper", "lower", "key", [1, -1], [-1, 1]])
def test_safe_additive_and_proven(norm, senses):
    release = cg.adjust(small(), norm=norm, senses=senses)
    assert release.status is cg.Status.OPTIMAL
    assert release.gap < 1e-7
    assert release.audit().safe
    z = release.values - release.table.values
    expected = {"upper": [1, 1], "lower": [-1, -1]}.get(senses, senses) if isinstance(senses, str) else senses
    assert senses == "key" or (np.sign(z[[0, 6]]) == expected).all()


def test_senses_one_per_cell():
    table = small()
    per_cell = np.zeros(16)
    per_cell[[0, 6]] = [1, -1]
    assert cg.adjust(table, senses=per_cell).objective == cg.adjust(table, senses=[1, -1]).objective


def test_a_side_without_level_is_not_taken():
    table = small(upper=[6, 0])
    z = cg.adjust(table, senses="upper").values - table.values
    assert z[0] >= 6 - 1e-9
    assert z[6] <= -5 + 1e-9


def test_key_senses_depend_on_the_secret_and_nothing_else():
    inner = [0, 1, 2, 4, 5, 6, 8, 9, 10]
    table = small(sensitive=inner, lower=1, upper=1)

    def signs(t, seed):
        return np.sign(cg.adjust(t, senses="key", seed=seed).values - t.values)[inner].tolist()

    assert signs(table, 1) == signs(table.with_(weights=np.ones(16)), 1)
    assert len({tuple(signs(table, seed)) for seed in range(8)}) > 1


def test_the_same_cell_has_the_same_key_sense_in_every_table():
    from cellguard.adjust.senses import fixed_senses, needs

    def table(dimensions, codes, coordinates):
        n = len(coordinates)
        return cg.Table.from_equations(
            np.full(n, 5.0),
            np.zeros((0, n)),
            sensitive=range(n),
            lower=1,
            upper=1,
            dimensions=dimensions,
            codes=codes,
            coordinates=np.array(coordinates, np.int32),
        )

    one = table(("region",), (("Total", "A", "B", "C", "D", "E"),), [[i] for i in range(6)])
    two = table(("sex", "region"), (("Total", "F"), ("Total", "A", "B", "C", "D", "E")), [[0, i] for i in range(6)])
    for seed in range(5):
        first, second = (fixed_senses(t, needs(t), "key", seed) for t in (one, two))
        assert (first == second).all()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"norm": "l3"}, UnknownCodeError),
        ({"weights": "inverted"}, UnknownCodeError),
        ({"weights": [1.0, 2.0]}, InputError),
        ({"weights": np.r_[-1.0, np.ones(15)]}, InputError),
        ({"weights": np.r_[np.nan, np.ones(15)]}, InputError),
        ({"senses": "up"}, UnknownCodeError),
        ({"senses": [1, 1, 1]}, InputError),
        ({"senses": [1, 0]}, InputError),
        ({"norm": "l12", "omega": 1.5}, InputError),
        ({"norm": "l12", "square_weights": -1.0}, InputError),
    ],
)
def test_wrong_options_are_refused(options, error):
    with pytest.raises(error) as caught:
        cg.adjust(small(), **options)
    assert isinstance(caught.value, CellguardError)


def test_no_sensitive_cell_gives_the_table_itself():
    table = small(sensitive=[], lower=0, upper=0)
    release = cg.adjust(table)
    assert release.status is cg.Status.OPTIMAL
    assert (release.values == table.values).all()
    assert "no cell" in release.explanation


def test_everything_else_fixed_is_infeasible():
    table = small(fixed=[i for i in range(16) if i not in (0, 6)])
    release = cg.adjust(table)
    assert release.status is cg.Status.INFEASIBLE
    assert not release.published
    assert release.explanation


def test_levels_that_conflict_with_bounds_are_infeasible():
    table = small(
        ub=np.where(np.arange(16) == 3, 81.0, np.inf),
        lb=np.where(np.arange(16) == 0, 0, [20, 50, 10, 80, 8, 19, 22, 49, 17, 32, 12, 61, 45, 101, 44, 190]),
        lower=[4, 0],
    )
    release = cg.adjust(table)  # the first cell must rise by 6, its row's total by at most 1, and no part may fall
    assert release.status is cg.Status.INFEASIBLE


def test_no_bounds_at_all():
    release = cg.adjust(small(lb=-np.inf, ub=np.inf), norm="l1")
    assert release.status is cg.Status.OPTIMAL


def test_weights_of_zero_are_free_movements():
    weights = np.ones(16)
    weights[-4:] = 0.0
    for norm in NORMS:
        release = cg.adjust(small(), norm=norm, weights=weights)
        assert release.status is cg.Status.OPTIMAL, norm


def test_the_same_input_gives_the_same_bytes():
    first, second = (cg.adjust(small(), norm="l12").values for _ in range(2))
    assert first.tobytes() == second.tobytes()

"""cg.adjust: options, errors, statuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard.adjust import NORMS, PLAIN
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
    release = cg.adjust(small(), norm=norm, senses=senses, surplus=0, integer=False)
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
    first, second = (cg.adjust(table, senses=senses, seed=1) for senses in (per_cell, [1, -1]))
    assert first.values.tobytes() == second.values.tobytes()


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
    # the first cell must rise by 6, its row's total by at most 1, and no part may fall
    assert cg.adjust(table, repair=None, **PLAIN).status is cg.Status.INFEASIBLE
    release = cg.adjust(table, **PLAIN)
    assert release.details["flipped"] == 1
    assert release.status is cg.Status.FEASIBLE


def test_no_bounds_at_all():
    release = cg.adjust(small(lb=-np.inf, ub=np.inf), norm="l1", **PLAIN)
    assert release.status is cg.Status.OPTIMAL


def test_weights_of_zero_are_free_movements():
    weights = np.ones(16)
    weights[-4:] = 0.0
    for norm in NORMS:
        release = cg.adjust(small(), norm=norm, weights=weights, **PLAIN)
        assert release.status is cg.Status.OPTIMAL, norm


def test_the_same_input_gives_the_same_bytes():
    first, second = (cg.adjust(small(), norm="l12", seed=5).values for _ in range(2))
    assert first.tobytes() == second.tobytes()


# ---------------------------------------------------------------- structures that leave little to choose


def two_by_two_with_fixed_margins():
    a = [5, 7, 12, 6, 8, 14, 11, 15, 26]
    rows = [[2, 0, 1], [5, 3, 4], [8, 6, 7], [6, 0, 3], [7, 1, 4], [8, 2, 5]]
    return cg.Table.from_equations(a, rows, fixed=[2, 5, 6, 7, 8], sensitive=[0], lower=1, upper=1)


DEGENERATE = {
    "no relation": lambda: cg.Table.from_equations([5, 7], np.zeros((0, 2)), sensitive=[0], lower=1, upper=1),
    "one cell": lambda: cg.Table.from_equations([5], np.zeros((0, 1)), sensitive=[0], lower=1, upper=1),
    "a cell aside": lambda: cg.Table.from_equations([5, 7, 12, 9], [[2, 0, 1]], sensitive=[3], lower=1, upper=1),
    "fixed margins": two_by_two_with_fixed_margins,
    "a = b": lambda: cg.Table.from_equations([5, 5], [[0, 1]], sensitive=[0], lower=1, upper=1),
    "two parts": lambda: cg.Table.from_equations([5, 7, 12], [[2, 0, 1]], fixed=[2], sensitive=[0], lower=1, upper=1),
    "both parts": lambda: cg.Table.from_equations(
        [5, 7, 12], [[2, 0, 1]], fixed=[2], sensitive=[0, 1], lower=1, upper=1
    ),
}


@pytest.mark.parametrize("kind", DEGENERATE)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("senses", ["upper", "lower", "key", "optimal"])
@pytest.mark.parametrize("integer", [False, True])
def test_tables_with_hardly_any_relation(kind, norm, senses, integer):
    table = DEGENERATE[kind]()
    for repair in ("senses", "relations"):
        options = {"senses": senses, "integer": integer, "repair": repair, "time_limit_s": 10}
        release = cg.adjust(table, norm=norm, **options)
        assert release.published or (kind, repair) == ("both parts", "relations")
        assert not release.published or release.audit().safe


@pytest.mark.parametrize("repair", [None, "senses", "relations"])
def test_a_sensitive_cell_that_the_fixed_ones_determine(repair):
    table = cg.Table.from_equations(
        [5, 7, 12, 3, 4, 7], [[2, 0, 1], [5, 3, 4]], fixed=[1, 2], sensitive=[0], lower=1, upper=1
    )
    release = cg.adjust(table, repair=repair, integer=True)
    if repair == "relations":
        assert release.audit().safe
        assert (release.values == np.rint(release.values)).all()
    else:
        assert release.status is cg.Status.INFEASIBLE
        assert "cell 0" in release.explanation


def test_what_does_not_stand_the_audit_is_not_returned(monkeypatch):
    from cellguard._engine.adjuster import Adjuster

    solve = Adjuster.solve
    monkeypatch.setattr(
        Adjuster, "solve", lambda self, *a, **k: replace(found := solve(self, *a, **k), z=0.5 * found.z)
    )
    release = cg.adjust(small(), **PLAIN)
    assert not release.published
    assert "does not stand its own check" in release.explanation
    with pytest.raises(cg.CellguardError):
        release.audit()


def test_an_interrupted_search_returns_the_best_so_far(monkeypatch):
    from cellguard._engine.senses import Senses

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Senses, "mixed", interrupt)
    release = cg.adjust(small(), norm="l1", senses="optimal")
    assert release.published
    assert release.status is cg.Status.TIME_LIMIT
    assert release.audit().safe
    monkeypatch.setattr(Senses, "solve", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cg.adjust(small(), norm="l1", senses="optimal")

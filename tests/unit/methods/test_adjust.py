"""cg.adjust: options, errors, statuses."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import cellguard as cg
from builders import key, table_with_margins
from cellguard.exceptions import CellguardError, InputError, UnknownCodeError
from cellguard.methods.adjust import METHOD
from cellguard.methods.adjust.adjust import PLAIN

NORMS = METHOD.get_option("norm").choices


def small(**changes):
    """3 x 3 with totals; two sensitive cells."""
    given = {"sensitive": [0, 6], "lower": [4, 5], "upper": [6, 3], **changes}
    return table_with_margins([[20, 50, 10], [8, 19, 22], [17, 32, 12]], **given)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("senses", ["upper", "lower", "key", [1, -1], [-1, 1]])
def test_safe_additive_and_proven(norm, senses):
    release = cg.adjust(small(), norm=norm, senses=senses, surplus=0, integer=False)
    assert release.status is cg.Status.OPTIMAL
    assert release.gap < 1e-7
    assert release.audit().safe
    assert np.abs(release.table.relations @ release.values - release.table.rhs).max() < 1e-6
    assert (release.values >= release.table.lb - 1e-6).all()
    assert (release.values <= release.table.ub + 1e-6).all()
    z = release.values - release.table.values
    expected = {"upper": [1, 1], "lower": [-1, -1]}.get(senses, senses) if isinstance(senses, str) else senses
    assert senses == "key" or (np.sign(z[[0, 6]]) == expected).all()


def test_senses_one_per_cell():
    table = small()
    per_cell = np.zeros(16)
    per_cell[[0, 6]] = [1, -1]
    first, second = (cg.adjust(table, senses=senses, key=key(1)) for senses in (per_cell, [1, -1]))
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
        return np.sign(cg.adjust(t, senses="key", key=key(seed)).values - t.values)[inner].tolist()

    assert signs(table, 1) == signs(table.with_(weights=np.ones(16)), 1)
    assert len({tuple(signs(table, seed)) for seed in range(8)}) > 1


def test_the_same_cell_has_the_same_key_sense_in_every_table():
    from cellguard._engine.space.reduce import reduce
    from cellguard.methods.adjust.senses import choose_senses, needs_of_adjustment

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
        first, second = (
            choose_senses(t, needs_of_adjustment(t), "key", key(seed), reduce(t.relations, ~t.fixed))
            for t in (one, two)
        )
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
    first, second = (cg.adjust(small(), norm="l12", key=key(5)).values for _ in range(2))
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
    from cellguard._engine.closest.adjuster import Adjuster

    solve = Adjuster.solve
    monkeypatch.setattr(
        Adjuster, "solve", lambda self, *a, **k: replace(found := solve(self, *a, **k), z=0.5 * found.z)
    )
    release = cg.adjust(small(), **PLAIN)
    assert not release.published
    assert "does not pass its own check" in release.explanation
    with pytest.raises(cg.CellguardError):
        release.audit()


def test_an_interrupted_search_returns_the_best_so_far(monkeypatch):
    from cellguard._engine.closest.directions import Senses

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Senses, "decide_by_program", interrupt)
    release = cg.adjust(small(), norm="l1", senses="optimal")
    assert release.published
    assert release.status is cg.Status.TIME_LIMIT
    assert release.audit().safe
    monkeypatch.setattr(Senses, "solve", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cg.adjust(small(), norm="l1", senses="optimal")


# ---------------------------------------------------------------- the grid, the surplus, what is kept


def frame_table(order=None, *, scale=1.0):
    rng = np.random.default_rng(5)
    rows = [(f"r{i}", f"c{j}", float(v)) for i in range(5) for j in range(4) for v in [rng.integers(20, 400) * scale]]
    rows = rows if order is None else [rows[k] for k in order]
    frame = {"r": [x[0] for x in rows], "c": [x[1] for x in rows], "value": [x[2] for x in rows]}
    table = cg.Table.from_frame(frame, ["r", "c"])
    sensitive = [table.cell({"r": f"r{i}", "c": f"c{i % 4}"}) for i in range(5)]
    return table.with_(sensitive=np.isin(np.arange(table.n_cells), sensitive)).with_levels(0.1, 0.1)


@pytest.mark.parametrize(("scale", "unit"), [(1.0, 1.0), (0.01, 0.01), (1000.0, 1000.0), (np.pi, 0.0)])
@pytest.mark.parametrize("norm", NORMS)
def test_published_values_lie_on_the_grid_of_the_true_ones(scale, unit, norm):
    release = cg.adjust(frame_table(scale=scale), norm=norm, key=key(2))
    assert release.options["unit"] == unit
    assert release.audit().safe
    if unit:
        assert all(Fraction(repr(float(x))) % Fraction(repr(unit)) == 0 for x in release.values)
        exact = [Fraction(repr(float(x))) for x in release.values]
        T = release.table.relations
        for r in range(T.shape[0]):
            span = slice(T.indptr[r], T.indptr[r + 1])
            assert sum(int(c) * exact[i] for i, c in zip(T.indices[span], T.data[span], strict=True)) == 0


def test_sensitive_cells_do_not_stop_at_their_levels():
    table = frame_table(scale=0.01)
    moved = [
        np.abs(cg.adjust(table, norm="l1", key=key(s)).values - table.values)[table.sensitive] for s in range(1, 30)
    ]
    share = np.array(moved) / table.values[table.sensitive]
    assert (share > 0.1 - 1e-9).all()
    assert (share < 0.25).all()
    assert 0.13 < share.mean() < 0.17  # uniform between one level and two
    assert (np.abs(share - 0.1) < 1e-3).mean() < 0.1
    known = np.array(
        [
            np.abs(cg.adjust(table, norm="l1", senses="upper", key=key(s)).values - table.values)[table.sensitive]
            for s in range(1, 30)
        ]
    )
    assert 0.21 < (known / table.values[table.sensitive]).mean() < 0.27  # a known sense asks for 2.75 times as much


def test_the_secret_is_drawn_and_recorded_and_repeats_the_release():
    table = frame_table()
    first, second = cg.adjust(table), cg.adjust(table)
    assert first.options["key"] != second.options["key"]
    again = cg.adjust(table, key=first.options["key"])
    assert again.values.tobytes() == first.values.tobytes()


def test_the_order_of_the_rows_does_not_matter():
    order = np.random.default_rng(1).permutation(20)
    one, other = (cg.adjust(frame_table(o), norm="l1", key=key(7)) for o in (None, order))
    values = {one.table.label(i): one.values[i] for i in range(one.table.n_cells)}
    assert values == {other.table.label(i): other.values[i] for i in range(other.table.n_cells)}


def test_surplus_that_does_not_fit_is_given_up_and_told():
    table = cg.Table.from_equations(
        [10, 10, 20], [[2, 0, 1]], sensitive=[0], lower=2, upper=2, lb=[7.9, 8, 20], ub=[12.1, 12, 20]
    )
    release = cg.adjust(table, surplus=4, key=key(3), integer=False)
    assert release.published
    assert release.audit().safe
    tight = table.with_(lb=np.array([0.0, 8, 20]), ub=np.array([30.0, 12, 20]))  # the other part has no room for more
    release = cg.adjust(tight, surplus=4, key=key(3), integer=False)
    assert release.published
    assert "surplus" in release.explanation
    assert release.status is cg.Status.FEASIBLE


def test_kept_totals_and_margins_stay():
    table = frame_table()
    margin = np.flatnonzero(table.coordinates[:, 1] == 0)
    release = cg.adjust(table, keep=["total", ["r"]], key=key(1))
    assert (release.values[margin] == table.values[margin]).all()
    assert release.audit().safe
    assert release.details["kept"] == 6
    assert np.flatnonzero(release.table.fixed & ~table.fixed).tolist() == margin.tolist()  # the audit knows them
    cell = {"r": "r0"}
    assert cg.adjust(table, keep=[cell], key=key(1)).values[table.cell(cell)] == table.values[table.cell(cell)]
    both = cg.adjust(table, keep=["r", "c"], key=key(1))
    assert both.published
    assert (both.values == table.values)[(table.coordinates == 0).any(axis=1)].all()


def test_what_cannot_be_kept_is_refused():
    table = frame_table()
    with pytest.raises(InputError, match="sensitive"):
        cg.adjust(table, keep=[int(table.sensitive_cells[0])])
    with pytest.raises(UnknownCodeError, match="did you mean"):
        cg.adjust(table, keep=["totals"])
    with pytest.raises(InputError):
        cg.adjust(table, keep=[1000])
    with pytest.raises(InputError):
        cg.adjust(small(), keep=["total"])
    for wrong in (-1.0, np.nan):
        with pytest.raises(InputError):
            cg.adjust(table, surplus=wrong)


@pytest.mark.parametrize("seed", range(6))
def test_values_of_very_different_sizes_are_published_soundly_or_not_at_all(seed):
    rng = np.random.default_rng(seed)
    leaves = np.round(10 ** rng.uniform(-3, 12, (4, 4)), 3)
    table = cg.Table.from_leaves({"a": list("wxyz"), "b": list("pqrs")}, leaves)
    sensitive = np.isin(np.arange(table.n_cells), rng.choice(table.n_cells, 5, replace=False))
    table = table.with_(sensitive=sensitive).with_levels(0.1, 0.1)
    for norm in NORMS:
        release = cg.adjust(table, norm=norm, key=key(1), time_limit_s=5)
        if release.published:
            assert release.audit().safe
            assert cg.verify(release, []).accepted
        else:
            assert release.explanation


@pytest.mark.parametrize("integer", [None, False])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_noise_moves_what_needs_not_move_and_keeps_everything_else(integer, norm):
    table = frame_table()
    plain = cg.adjust(table, norm=norm, integer=integer, key=key(1))
    noisy = cg.adjust(table, norm=norm, integer=integer, key=key(1), noise=0.03)
    assert noisy.audit().safe
    assert cg.verify(noisy, []).accepted
    assert noisy.objective > plain.objective
    others = ~table.sensitive
    assert (noisy.values != table.values)[others].mean() > 0.7
    if integer is None:
        assert (noisy.values == np.rint(noisy.values)).all()
    assert noisy.options["noise"] == 0.03


def test_real_numbers_leave_untouched_cells_as_they_are():
    table = cg.Table.from_equations(
        [4e10, 0.1, 0, 4e10 + 0.1, 3.3], [[3, 0, 1, 2]], sensitive=[4], lower=1, upper=1, lb=-np.inf
    )
    release = cg.adjust(table, integer=False, key=key(1))
    assert (release.values[:4] == table.values[:4]).all()

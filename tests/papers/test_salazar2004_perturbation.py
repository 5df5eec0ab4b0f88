"""Cell perturbation as salazar2004 section 4 has it: rounding relaxed, prescribed values, sensitive cells rounded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellguard as cg
from builders import key
from cellguard import examples
from cellguard.cli import main
from cellguard.release.release import Perturbation

CLOSE = 1e-6
SENSITIVE = examples.salazar2004_figure1().cell({"activity": "II", "region": "C"})


def figure_1() -> cg.Table:
    """The table of figure 1 with levels that a base of 5 can meet, and unit weights."""
    table = examples.salazar2004_figure1()
    at = 1.0 * (np.arange(table.n_cells) == SENSITIVE)
    return table.with_(lower=at, upper=2 * at, weights=np.ones(table.n_cells))


def two_way(seed: int, *, sensitive: int = 2) -> cg.Table:
    rng = np.random.default_rng(seed)
    leaves = rng.integers(3, 40, (3, 3))
    table = cg.Table.from_leaves({"r": list("abc"), "s": list("xyz")}, leaves, weights=1.0, integer=True)
    inner = np.flatnonzero((table.coordinates > 0).all(axis=1) & (table.values % 5 != 0))
    cells = np.isin(np.arange(table.n_cells), rng.permutation(inner)[:sensitive])
    return table.with_(sensitive=cells, lower=1.0 * cells, upper=1.0 * cells, insiders=False)


def test_relaxed_rounding_of_figure_5_is_rounding():
    """Section 5: the relaxation of the integer models gave whole solutions for all tables of this kind."""
    table = examples.salazar2004_figure5()
    table = table.with_(weights=np.ones(table.n_cells))
    rounding, relaxed = cg.round(table, base=5), cg.perturb(table, base=5, draw="relaxation")
    assert relaxed.status == "optimal"
    assert relaxed.objective == pytest.approx(rounding.objective) == 132
    assert (relaxed.values % 5 == 0).all()
    # towards the nearest multiple costs more: the distance of its table is not what it makes least
    nearest = cg.perturb(table, base=5, draw="nearest")
    assert np.abs(nearest.values - table.values).sum() > 132


def test_relaxed_rounding_of_figure_1_is_pattern_c():
    relaxed = cg.perturb(figure_1(), base=5, draw="relaxation")
    assert relaxed.objective == pytest.approx(16)
    np.testing.assert_allclose(relaxed.values, examples.salazar2004_figure2()["round"].values)
    assert relaxed.audit().safe


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_relaxation_never_costs_more_than_rounding(seed):
    table = two_way(seed)
    rounding = cg.round(table, base=5, step=1)
    relaxed = cg.perturb(table, base=5, draw="relaxation")
    if rounding.published:
        assert relaxed.published
        assert relaxed.objective <= rounding.objective + CLOSE
    if relaxed.published:
        assert relaxed.bound <= relaxed.objective + CLOSE
        assert relaxed.audit().safe
        assert (relaxed.values != table.values)[table.sensitive].all()


def test_sensitive_cells_take_a_multiple_and_the_others_stay_near_themselves():
    """Constraints (1) for the sensitive cells, and the distance |v - a| for all."""
    table = figure_1()
    release = cg.perturb(table, base=5, draw="truth", round_sensitive=True)
    assert release.status == "optimal"
    assert release.values[SENSITIVE] in (20, 25)
    assert release.objective == pytest.approx(np.abs(release.values - table.values).sum())
    # one cell moves by 2, and three more must follow it
    assert release.objective == 8
    assert release.audit().safe


def test_a_prescribed_value_is_published():
    """Section 4: "the published values in each sensitive cell must be equal to some given values", as the ceiling."""
    release = cg.perturb(figure_1(), base=5, draw="truth", given={SENSITIVE: 25})
    assert (release.status, release.values[SENSITIVE]) == ("optimal", 25)
    assert release.objective == 9  # 3 for the cell, and its row and column follow
    assert release.audit().safe


def test_a_prescribed_value_by_codes():
    table = two_way(3)
    cell = int(table.sensitive_cells[0])
    codes = tuple(str(c[0]) for c in table.cell_codes(np.array([cell])).values())
    value = float(np.ceil(table.values[cell] / 5) * 5)
    assert cg.perturb(table, base=5, given={codes: value}).values[cell] == value


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({SENSITIVE: 22}, "must not be published unchanged"),
        ({0: 200}, "farther from the truth"),
        ({0: np.nan}, "finite number"),
        ({99: 1}, "no cell 99"),
        ({("II",): 1}, "2 codes"),
    ],
)
def test_values_that_cannot_be_prescribed_are_refused(cells, words):
    with pytest.raises(cg.InputError, match=words):
        cg.perturb(figure_1(), base=5, given=cells)


def test_cells_stay_between_the_multiples_next_to_them_where_12_asks_for_it():
    """(12): v in [floor a, ceiling a]. Without it cells go as far as the distance that is published."""
    outside, refused = 0, []
    for seed in range(1, 9):
        table = two_way(seed)
        within = cg.perturb(table, base=5, between=True, key=key(seed))
        if not within.published:  # who knows the rule finds a sensitive cell between two multiples
            refused.append(seed)
            continue
        floor, ceiling = np.floor(table.values / 5) * 5, np.ceil(table.values / 5) * 5
        assert (within.values >= floor).all()
        assert (within.values <= ceiling).all()
        assert (within.values != table.values)[table.sensitive].all()
        assert within.audit().safe
        free = cg.perturb(table, base=5, key=key(seed))
        outside += int(((free.values < floor) | (free.values > ceiling)).any())
    assert outside > 0
    assert refused == [6, 8]


def test_attackers_know_that_cells_stayed_between_their_multiples(tmp_path):
    """A 7 published as 6 lies between 5 and 10: with levels of 3 it is safe within a distance of 5, and not by (12)."""
    table = cg.Table.from_leaves({"r": ["a", "b"]}, [7.0, 9.0], integer=True)
    cells = np.array([False, True, False])
    table = table.with_(sensitive=cells, lower=3.0 * cells, upper=3.0 * cells, insiders=False)
    free = Perturbation(
        table=table, status=cg.Status.FEASIBLE, objective=0.0, values=np.array([15.0, 6.0, 9.0]),
        distance=np.full(3, 5.0), base=np.full(3, 5.0),
    )  # fmt: skip
    within = replace(free, between=True)
    assert free.published_bounds()[0][1] == 1
    assert [ends[1] for ends in within.published_bounds()] == [6, 9]
    assert free.audit().safe
    assert not within.audit().safe
    within.save(tmp_path / "release.csv", allow_unsafe=True)
    read = {name: cg.read_release(table, tmp_path / "release.csv", base=5, method="perturb", between=name == "between")
            for name in ("between", "free")}  # fmt: skip
    assert not read["between"].audit().safe
    assert within.get_published_parameters() == {"distance": 5.0, "between": True}


def test_a_distance_has_no_multiples():
    with pytest.raises(cg.InputError, match="multiples of a base"):
        cg.perturb(figure_1(), distance=5, draw="relaxation")
    with pytest.raises(cg.InputError, match="multiples of a base"):
        cg.perturb(figure_1(), distance=5, between=True)


def test_the_command_line_has_all_of_it(tmp_path, capsys):
    file = tmp_path / "t.jj"
    figure_1().write(file)
    out = tmp_path / "v.csv"
    words = ["perturb", str(file), "--base", "5", "--no-insiders", "--out", str(out), "--quiet", "--json"]
    assert main([*words, "--draw", "truth", "--given", f"{SENSITIVE}=25"]) == 0
    assert out.read_text().splitlines()[1 + SENSITIVE].endswith(("25", "25.0"))
    assert main([*words, "--draw", "relaxation"]) == 0
    assert main([*words, "--given", "6"]) == 1
    assert main([*words, "--given", "six=x"]) == 1
    capsys.readouterr()

"""Ranges from public data alone: against plain linear programs, against enumeration, and what is refused."""

import json

import numpy as np
import pytest
from scipy.optimize import linprog

import cellguard as cg
from cellguard._engine.clock import Deadline
from cellguard._engine.ranges.search.ends import search_ends
from cellguard._engine.ranges.sight import Sight
from cellguard.cli import main


def make_published(rng, shape=(3, 3), most=9, share=0.5):
    """A two-way table with totals of which some cells are withheld: the frame, the grid, and what is withheld."""
    inner = rng.integers(0, most, shape).astype(float)
    grid = np.zeros((shape[0] + 1, shape[1] + 1))
    grid[1:, 1:] = inner
    grid[1:, 0], grid[0, 1:], grid[0, 0] = inner.sum(axis=1), inner.sum(axis=0), inner.sum()
    withheld = rng.random(grid.shape) < share
    rows, columns = np.indices(grid.shape)
    names = np.array(["Total", *"abcdefgh"])
    frame = {
        "r": names[rows.ravel()].tolist(),
        "c": names[columns.ravel()].tolist(),
        "value": [None if w else v for v, w in zip(grid.ravel().tolist(), withheld.ravel().tolist(), strict=True)],
    }
    return frame, grid, withheld


def relations_of(shape):
    """Rows of the sums of a grid with totals first."""
    n = shape[0] * shape[1]
    number, out = np.arange(n).reshape(shape), []
    for lines in (number, number.T):
        for line in lines:
            row = np.zeros(n)
            row[line[0]], row[line[1:]] = -1.0, 1.0
            out.append(row)
    return np.array(out)


def plain_ranges(grid, withheld, tolerance=0.0, extra=()):
    """The ends of every withheld cell, a linear program each."""
    T, v, w = relations_of(grid.shape), grid.ravel(), withheld.ravel()
    bounds = [(0, None) if hidden else (x, x) for x, hidden in zip(v, w, strict=True)]
    A = np.vstack([T, -T, *(row for row, _ in extra)])
    b = np.concatenate([np.full(2 * len(T), tolerance), *([most] for _, most in extra)])
    ends = []
    for cell in np.flatnonzero(w):
        cost = np.zeros(len(v))
        cost[cell] = 1.0
        low, high = (linprog(s * cost, A_ub=A, b_ub=b, bounds=bounds, method="highs") for s in (1, -1))
        ends.append((low.fun if low.status == 0 else -np.inf, -high.fun if high.status == 0 else np.inf))
    return np.array(ends).reshape(-1, 2)


@pytest.mark.parametrize("seed", range(25))
def test_ranges_are_those_of_plain_programs(seed):
    rng = np.random.default_rng([33, seed])
    tolerance = float(rng.choice([0.0, 0.0, 1.5]))
    frame, grid, withheld = make_published(rng, shape=(3, 4), share=rng.uniform(0.2, 0.8))
    found = cg.public_ranges(frame, tolerance=tolerance)
    plain = plain_ranges(grid, withheld, tolerance)
    order = np.lexsort((found.published.cells[found.cells][:, 1], found.published.cells[found.cells][:, 0]))
    assert len(found.cells) == withheld.sum()
    assert np.allclose(found.low[order], plain[:, 0], atol=1e-6)
    assert np.allclose(found.high[order], plain[:, 1], atol=1e-6)
    assert found.attained.all()
    if tolerance == 0:
        assert (found.exact[order] == (plain[:, 1] - plain[:, 0] < 1e-6)).all()


@pytest.mark.parametrize("seed", range(12))
def test_exact_ones_need_no_ranges(seed):
    rng = np.random.default_rng([34, seed])
    frame = make_published(rng, share=0.45)[0]
    quick, whole = cg.public_ranges(frame, exact_only=True), cg.public_ranges(frame)
    assert quick.programs == 0
    assert not (quick.exact & ~whole.exact).any()
    assert (quick.low <= whole.low + 1e-6).all()
    assert (quick.high >= whole.high - 1e-6).all()


@pytest.mark.parametrize("seed", range(12))
def test_ranges_of_counts_are_those_of_enumeration(seed):
    rng = np.random.default_rng([35, seed])
    frame, grid, withheld = make_published(rng, shape=(2, 3), most=3, share=0.5)
    withheld[0, 0] = False
    frame["value"][0] = grid[0, 0]
    T, v, w = relations_of(grid.shape), grid.ravel(), withheld.ravel()
    cells = np.flatnonzero(w)
    inner = [i for i in cells if i % 4 and i >= 4][:6]
    for i in set(cells) - set(inner):  # at most six inner cells, so that all tables can be listed
        if i % 4 and i >= 4:
            w[i] = False
            frame["value"][i] = v[i]
    cells = np.flatnonzero(w)
    values = np.stack(np.meshgrid(*[np.arange(grid[0, 0] + 1)] * len(inner)), -1).reshape(-1, len(inner))
    tables = np.tile(v, (len(values), 1))
    tables[:, inner] = values
    shaped = tables.reshape(-1, 3, 4)
    sums = np.where(w.reshape(3, 4)[1:, 0], shaped[:, 1:, 1:].sum(axis=2), shaped[:, 1:, 0])
    shaped[:, 1:, 0] = sums
    shaped[:, 0, 1:] = np.where(w.reshape(3, 4)[0, 1:], shaped[:, 1:, 1:].sum(axis=1), shaped[:, 0, 1:])
    possible = tables[(np.abs(tables @ T.T) < 1e-9).all(axis=1)][:, cells]
    found = cg.public_ranges(frame, integer=True)
    order = np.lexsort((found.published.cells[found.cells][:, 1], found.published.cells[found.cells][:, 0]))
    assert np.array_equal(found.low[order], possible.min(axis=0))
    assert np.array_equal(found.high[order], possible.max(axis=0))
    assert np.array_equal(found.exact[order], possible.min(axis=0) == possible.max(axis=0))


def test_large_systems_are_searched_like_small_ones():
    """The search that pushes many variables together finds the ends of plain programs."""
    rng = np.random.default_rng(36)
    frame, grid, withheld = make_published(rng, shape=(8, 8), most=50, share=0.7)
    found = cg.public_ranges(frame)
    plain = plain_ranges(grid, withheld)
    order = np.lexsort((found.published.cells[found.cells][:, 1], found.published.cells[found.cells][:, 0]))
    assert np.allclose(found.low[order], plain[:, 0], atol=1e-5)
    assert np.allclose(found.high[order], plain[:, 1], atol=1e-5)


def test_no_time_leaves_ranges_that_are_too_wide_and_says_so():
    from scipy.sparse import csr_array

    T = csr_array(relations_of((6, 6)))
    point = np.ones(36)
    point[:6], point[::6], point[0] = 5, 5, 25
    system = Sight(T, np.zeros(36), np.full(36, 30.0), point).build_system()
    ends = search_ends(system, Deadline.from_limit(0.0))
    assert ends.find_open(1).any()
    done = search_ends(system, Deadline.from_limit(60.0))
    assert not done.find_open(1).any()
    assert (ends.high_bound >= done.high_bound - 1e-9).all()


# ---------------------------------------------------------------------- what else is known

YEARS = {
    "time": ["2024", "Q1", "Q2", "Q3", "Q4"],
    "value": [100, 20, None, 30, None],
}


def test_quarters_and_years_are_a_hierarchy():
    years = cg.Hierarchy.from_nested(["Q1", "Q2", "Q3", "Q4"], total="2024")
    found = cg.public_ranges(YEARS, {"time": years})
    assert found.low.tolist() == [0, 0]
    assert found.high.tolist() == [50, 50]
    known = cg.public_ranges({**YEARS, "value": [100, 20, None, 30, 15]}, {"time": years})
    assert known.exact.tolist() == [True]
    assert known.low.tolist() == [35]


def test_a_mean_with_its_count_bounds_the_sum():
    years = cg.Hierarchy.from_nested(["Q1", "Q2", "Q3", "Q4"], total="2024")
    frame = {**YEARS, "mean": ["", "", "1.33", "", ""], "n": [None, None, 3, None, None]}
    found = cg.public_ranges(frame, {"time": years}, value="value", ratios={"mean": "n"})
    assert np.allclose(found.low, [3.975, 50 - 4.005])
    assert np.allclose(found.high, [4.005, 50 - 3.975])
    whole = cg.public_ranges(frame, {"time": years}, value="value", ratios={"mean": "n"}, integer=True)
    assert whole.low.tolist() == whole.high.tolist() == [4, 46]


def test_a_cell_without_contributors_is_zero_and_exact_ones_are_counted_by_contributors():
    frame = {"c": ["Total", "a", "b", "d"], "value": [9, None, None, 2], "n": [None, 1, 0, 4]}
    found = cg.public_ranges(frame, count="n")
    assert found.low.tolist() == found.high.tolist() == [7, 0]
    assert found.summary()["known_exactly_by_contributors"] == {"1": 1, "2": 0, "3 and more": 0, "unknown": 0}


def test_a_growth_rate_is_a_further_sum(tmp_path):
    """Q4 is 10% above Q2, rounded to whole per cent: with Q2 + Q4 = 50 both are nearly known."""
    years = cg.Hierarchy.from_nested(["Q1", "Q2", "Q3", "Q4"], total="2024")
    (tmp_path / "sums.csv").write_text(
        "sum,time,coefficient,lower,upper\nleast,Q4,1,0,\nleast,Q2,-1.095,,\nmost,Q4,1,,0\nmost,Q2,-1.105,,\n"
    )
    found = cg.public_ranges(YEARS, {"time": years}, knowledge=tmp_path / "sums.csv")
    assert np.allclose(found.low, [50 / 2.105, 50 * 1.095 / 2.095])
    assert np.allclose(found.high, [50 / 2.095, 50 * 1.105 / 2.105])


def test_rounded_figures_leave_what_rounding_leaves():
    frame = {"c": ["Total", "a", "b", "d"], "value": [90, None, 40, 20]}
    found = cg.public_ranges(frame, rounded_to=10)
    assert found.low.tolist() == [15]
    assert found.high.tolist() == [45]
    assert found.exact.tolist() == [True]  # as exactly as the printed figures allow


def test_marked_cells_are_withheld_whatever_is_printed():
    frame = {"c": ["Total", "a", "b"], "value": [9, 0, 4], "status": ["", "N", ""]}
    assert cg.public_ranges(frame).low.tolist() == [5]


def test_cells_without_a_row_are_unpublished_or_zero_or_withheld():
    frame = {"r": ["Total", "Total", "a", "a"], "c": ["Total", "x", "Total", "x"], "value": [9, 7, None, 4]}
    codes = {"r": ["a", "b"], "c": ["x", "y"]}
    assert np.isinf(cg.public_ranges(frame, codes).high[0])
    assert cg.public_ranges(frame, codes, missing="withheld").summary()["withheld"] == 6
    assert cg.public_ranges({**frame, "value": [4, 4, None, 4]}, codes, missing="zero").exact.all()


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("c,value\nTotal,9\na,4\nb,4\n", r"p.csv: the parts of \(c=Total\) \(line 2\) do not add up"),
        ("c,value\nTotal,9\na,12\nb,\n", r"no table agrees"),
        ("c,value\nTotal,9\na,1\na,2\n", r"p.csv:4: \(c=a\) is listed twice"),
        ("c,value\nTotal,9\na,4x\nb,4\n", r"p.csv:3: column 'value' holds something that is not a number"),
        ("c,value\nTotal,9\n,4\nb,4\n", r"p.csv:3: column 'c' has no code"),
        ("c,d\nTotal,9\n", r"p.csv:1: no column of values"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(cg.InputError, match=message):
        cg.public_ranges(tmp_path / "p.csv")


def test_a_tolerance_accepts_what_does_not_quite_add_up(tmp_path):
    frame = {"c": ["Total", "a", "b"], "value": [10, 4, 5]}
    with pytest.raises(cg.InputError, match="do not add up") as caught:
        cg.public_ranges(frame)
    assert "a tolerance of 1 " in caught.value.hint
    assert cg.public_ranges(frame, tolerance=1).summary()["withheld"] == 0


def test_an_unknown_code_of_further_sums_is_refused_with_its_line(tmp_path):
    (tmp_path / "sums.csv").write_text("sum,c,coefficient,lower,upper\ns,a,1,0,4\ns,z,1,,\n")
    frame = {"c": ["Total", "a", "b"], "value": [10, None, None]}
    with pytest.raises(cg.InputError, match=r"sums.csv:3: column 'c'"):
        cg.public_ranges(frame, knowledge=tmp_path / "sums.csv")


# ---------------------------------------------------------------------- the command


def test_the_command_prints_and_writes_ranges(tmp_path, capsys):
    (tmp_path / "p.csv").write_text("region,size,turnover\nTotal,Total,9\nTotal,s,:\nTotal,l,4\n")
    words = ["ranges", str(tmp_path / "p.csv"), "--value", "turnover", "--dimension", "size", "--dimension", "region"]
    assert main([*words, "--out", str(tmp_path / "out.csv"), "--json", "--quiet"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["withheld"] == summary["known_exactly"] == 1
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == "s,Total,5,5,yes,yes"
    assert main(words) == 0
    assert "known exactly" in capsys.readouterr().out
    assert main(["ranges", str(tmp_path / "nothing.csv")]) == 1

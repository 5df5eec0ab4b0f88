"""The judge is judged: its programs agree with each other, and it sees what is wrong on purpose."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import cellguard as cg
from adversary import counts, optima
from adversary.campaign import run_case
from adversary.cases import Case
from adversary.checker import judge
from adversary.generator import VALUES, case
from adversary.meaning import list_needs
from adversary.options import LEFT_OUT, VERBS, draw
from adversary.programs import Possible, exact_reach, reach
from adversary.widths import least_width
from adversary.written import read

# ---------------------------------------------------------------------- programs


def random_world(rng):
    n, m = int(rng.integers(3, 9)), int(rng.integers(1, 4))
    rows = [
        {int(j): Fraction(int(rng.integers(-2, 4)) or 1) for j in rng.choice(n, 3, replace=False)} for _ in range(m)
    ]
    down = [None if rng.random() < 0.2 else -Fraction(int(rng.integers(0, 10))) for _ in range(n)]
    up = [None if rng.random() < 0.2 else Fraction(int(rng.integers(0, 10))) for _ in range(n)]
    return Possible(rows, down, up)


def by_scipy(world, cell, sign, distance):
    n = len(world.down)
    A = np.array([[float(row.get(j, 0)) for j in range(n)] for row in world.rows])
    box = [[None if b is None else float(b) for b in ends] for ends in zip(world.down, world.up, strict=True)]
    end = 1 if sign > 0 else 0
    near = min if sign > 0 else max
    box[cell][end] = near(sign * distance, sign * distance if box[cell][end] is None else box[cell][end])
    cost = np.zeros(n)
    cost[cell] = -sign
    return -linprog(cost, A_eq=A, b_eq=np.zeros(len(A)), bounds=box).fun


@pytest.mark.parametrize("seed", range(8))
def test_float_program_exact_simplex_and_scipy_agree(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        world = random_world(rng)
        cell, sign = int(rng.integers(len(world.down))), int(rng.choice([-1, 1]))
        distance = int(rng.integers(1, 12))
        found, true = reach(world, cell, sign, Fraction(distance)), exact_reach(world, cell, sign, Fraction(distance))
        assert float(true) == pytest.approx(by_scipy(world, cell, sign, distance), abs=1e-7)
        assert found.share * distance == pytest.approx(float(true), abs=1e-6)
        assert found.proven == (None if true >= distance else true)


def test_whole_numbers_reach_less_than_fractions():
    rows = [{0: Fraction(2), 1: Fraction(3)}]  # 2 x + 3 y stays: whole movements are (3, -2) and its multiples
    down, up = [Fraction(-2)] * 2, [Fraction(2)] * 2
    assert reach(Possible(rows, down, up), 0, 1, Fraction(2)).proven is None
    assert reach(Possible(rows, down, up, whole=True), 0, 1, Fraction(2)).proven == 0
    wide = Possible(rows, [Fraction(-9)] * 2, [Fraction(9)] * 2, whole=True)
    assert reach(wide, 0, 1, Fraction(1)).proven is None  # it jumps by 3, over the 1 that is asked


def test_thousandths_beside_millions_of_millions():
    rows = [{0: Fraction(1), 1: Fraction(1), 2: Fraction(-1)}]
    huge, tiny = Fraction(10**12), Fraction(1, 10**4)
    world = Possible(rows, [-tiny, -huge, Fraction(0)], [tiny, huge, Fraction(0)])
    assert reach(world, 0, 1, tiny).proven is None
    assert reach(world, 0, 1, tiny * 2).proven == tiny


# ---------------------------------------------------------------------- what is asked


def test_what_is_asked_where_no_level_says():
    count = cg.Table.from_equations([2, 5, 7], [[2, 0, 1]], sensitive=[0], integer=True)
    magnitude = cg.Table.from_equations([20, 50, 70], [[2, 0, 1]], sensitive=[0])
    zero = cg.Table.from_equations([0, 70, 70], [[2, 0, 1]], sensitive=[0])
    assert [list_needs(t, t.attackers[0])[0].width for t in (count, magnitude, zero)] == [2, 2, 7]


def test_levels_of_counts_are_whole_and_end_where_knowledge_ends():
    table = cg.Table.from_equations([3, 5, 8], [[2, 0, 1]], sensitive=[0], lower=1.2, upper=0.3, integer=True)
    (need,) = list_needs(table, table.attackers[0])
    assert (need.lower, need.upper) == (2, 1)
    table = cg.Table.from_equations([2, 5, 7], [[2, 0, 1]], sensitive=[0], lower=1.2, upper=0.3, integer=True)
    (need,) = list_needs(table, table.attackers[0])
    assert (need.lower, need.upper) == (1, 1)  # a count that is withheld is not 0
    (need,) = list_needs(table, cg.Attacker(name="who", cells=[0], lb=[1], ub=[2]))
    assert (need.lower, need.upper, need.width) == (1, 0, 1)


# ---------------------------------------------------------------------- releases made wrong on purpose


@pytest.fixture
def table():
    leaves = [[20, 50, 10, 31], [8, 19, 22, 5], [17, 32, 12, 40]]
    return cg.Table.from_leaves({"r": ["1", "2", "3"], "c": list("abcd")}, leaves, sensitive=[13], lower=3, upper=4)


def kinds(table, release, tmp_path, **options):
    release.save(tmp_path / "release.csv", allow_unsafe=True)
    return {v.kind for v in judge(table, release, read(tmp_path / "release.csv", table), options)}


def test_too_few_withheld(table, tmp_path):
    release = cg.suppress(table, method="heuristic", rounds=1)
    assert not kinds(table, release, tmp_path)
    alone = replace(release, suppressed=table.sensitive)
    assert "exact" in kinds(table, alone, tmp_path)


def test_narrow_intervals(table, tmp_path):
    release = cg.intervals(table, position="narrowest")
    lower, upper = (
        (1 - share) * table.values + share * end for share, end in ((0.5, release.lower), (0.5, release.upper))
    )
    assert {"level"} <= kinds(table, replace(release, lower=lower, upper=upper), tmp_path)
    away = replace(release, lower=release.lower + 100, upper=release.upper + 100)
    path = tmp_path / "away.csv"
    path.write_text("r,c,lower,upper\n" + "".join(
        f"{r},{c},{lo},{up}\n" for r, c, lo, up in zip(*table.cell_codes().values(), away.lower, away.upper, strict=True)
    ))  # fmt: skip
    assert "truth" in {v.kind for v in judge(table, away, read(path, table), {})}


def test_no_multiples(table, tmp_path):
    release = cg.round(table, base=5)
    values = np.array(release.values)
    values[:5] += [1, 1, 0, 0, 0]
    path = tmp_path / "moved.csv"
    codes = zip(*table.cell_codes().values(), strict=True)
    path.write_text("r,c,value\n" + "".join(f"{r},{c},{v}\n" for (r, c), v in zip(codes, values, strict=True)))
    assert {"multiple", "additive"} <= {v.kind for v in judge(table, release, read(path, table), {})}


def test_a_pattern_that_gives_itself_away():
    """The figure of the paper: who knows the algorithm narrows what the pattern alone leaves open."""
    found = []
    for seed in range(30):
        table = cg.generate.frequency(seed, rows=3, columns=3, threshold=5, width=6)
        release = cg.suppress(table, time_limit_s=2)
        if release.published:
            found += list(counts.matching(release, release.suppressed.tolist(), 5))
    assert found


# ---------------------------------------------------------------------- everything is drawn


def test_every_option_of_every_verb_is_drawn():
    import inspect

    made = Case(
        cg.Table.from_leaves({"a": ["1", "2"], "b": ["1", "2"]}, [[1, 2], [3, 9]], sensitive=[4], integer=True), ()
    )
    made = replace(made, threshold=3)
    plain = replace(made, threshold=None)
    for method, verb in VERBS.items():
        drawn = set()
        for seed in range(400):
            drawn |= set(draw(method, np.random.default_rng(seed), made if seed % 2 else plain))
        assert set(inspect.signature(verb).parameters) - LEFT_OUT <= drawn, method


def test_all_kinds_of_tables_come_up():
    seen = {word for number in range(300) for word in case(5, number).what}
    assert seen >= {
        *VALUES,
        "crossed",
        "linked",
        "raw",
        "degenerate",
        "ready",
        "publication",
        "records",
        "frequency",
        "insiders",
        "counted",
        "added up",
        "employees",
        "shadow",
        "indicators",
        "threshold",
        "zeros known",
        "zeros sensitive",
        "zeros not known",
    }
    assert seen >= {"percent", "sliding", "zero", "one-sided", "fixed", "integer", "infinite", "better", "own levels"}


def test_a_level_that_is_missed_by_a_hair_may_be_called_infeasible():
    """A respondent leaves a total 2e-6 short of its level: refusing is honest, and publishing is no violation."""
    outcome = run_case(907459332, 30, ("suppress", "intervals"), edition=1)
    assert outcome.figures["suppress: infeasible checked"] == 1
    assert outcome.found == []


def test_a_bound_of_whole_intervals_above_the_optimum_is_noticed():
    """The program is in whole numbers: over real ones the least width of counts is smaller, and no bound could be held to it."""
    table = cg.Table.from_leaves(
        {"r": ["a", "b"], "c": ["x", "y"]}, [[7, 9], [4, 12]], sensitive=[4, 8], lower=2, upper=3, integer=True
    )
    release = cg.intervals(table, position="narrowest", seed=1)
    least = least_width(release.table)
    assert least is not None
    assert release.bound <= least + 1e-6
    assert least <= release.objective + 1e-6
    figures = Counter()
    assert list(optima.honest(table, release, {}, np.random.default_rng(1), figures)) == []
    assert figures["intervals: full program in whole numbers"] == 1
    wrong = replace(release, bound=least + 2, objective=least + 2)
    assert [v.kind for v in optima.honest(table, wrong, {}, np.random.default_rng(1), figures)] == ["bound"]

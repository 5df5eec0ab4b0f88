"""Every rule on cells that can be computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard.exceptions import InputError, LevelError, UnknownCodeError
from cellguard.rules import CellStatistics, Verdict, apply_apriori


def cell(*contributions: float, weights: tuple[float, ...] | None = None, **more) -> CellStatistics:
    """One cell with these contributions."""
    x = np.sort(np.array(contributions, dtype=float))[::-1]
    total = x.sum() if weights is None else float(np.dot(contributions, weights))
    w = None if weights is None else np.array([weights])[:, np.argsort(-np.array(contributions), kind="stable")]
    n = np.array([float(len(x))])
    fields = {
        "value": np.array([total]),
        "total": np.array([total]),
        "count": n,
        "weight": n if weights is None else np.array([float(sum(weights))]),
        "top": x[None, :],
        "top_weights": w,
        "units": 9,
    }
    return CellStatistics(**{**fields, **more})


def table(values=(10.0, 20.0, 30.0), **more) -> cg.Table:
    return cg.Table.from_equations(values, [[2, 0, 1]], **more)


def crossed(**more) -> cg.Table:
    """A row of three codes and their total, with a dimension."""
    fields = {
        "dimensions": ("region",),
        "codes": (("Total", "A", "B", "C"),),
        "coordinates": np.arange(4, dtype=np.int32)[:, None],
        "counts": np.array([9.0, 2.0, 3.0, 4.0]),
    }
    return cg.Table.from_equations([60, 10, 20, 30], [[0, 1, 2, 3]], **{**fields, **more})


# ---------------------------------------------------------------- dominance


def test_dominance_worked_case():
    unsafe, upper, _ = cg.Dominance(1, 85).evaluate(cell(300, 20, 10))
    assert unsafe[0]
    assert upper[0] == pytest.approx(22.94, abs=0.005)
    assert 330 + upper[0] == pytest.approx(352.94, abs=0.005)


def test_dominance_two_largest():
    # 100 * (50 + 30) / 100 = 80 > 75; level 80/0.75 - 100
    unsafe, upper, _ = cg.Dominance(2, 75).evaluate(cell(50, 30, 20))
    assert unsafe[0]
    assert upper[0] == pytest.approx(80 / 0.75 - 100)


def test_dominance_at_the_limit_is_safe():
    assert not cg.Dominance(2, 80).evaluate(cell(50, 30, 20)).unsafe[0]
    assert not cg.Dominance(1, 10).evaluate(cell(*[0.1] * 10)).unsafe[0]  # 0.1 summed ten times is not 1


# ---------------------------------------------------------------- p% and prior-posterior


def test_p_percent():
    # X - x1 - x2 = 5 < 10% of 100: level 10 - 5
    unsafe, upper, _ = cg.PPercent(10).evaluate(cell(100, 40, 3, 2))
    assert unsafe[0]
    assert upper[0] == pytest.approx(5)
    assert not cg.PPercent(5).evaluate(cell(100, 40, 3, 2)).unsafe[0]  # exactly 5: no violation


def test_p_percent_with_a_coalition():
    # two others together: the rest is 3 + 2 = 5 instead of 10 + 3 + 2
    x = cell(100, 40, 10, 3, 2)
    assert not cg.PPercent(10).evaluate(x).unsafe[0]
    unsafe, upper, _ = cg.PPercent(10, coalition=2).evaluate(x)
    assert unsafe[0]
    assert upper[0] == pytest.approx(10 + 150 - 155)


def test_p_percent_lone_respondent():
    unsafe, upper, _ = cg.PPercent(15).evaluate(cell(80))
    assert unsafe[0]
    assert upper[0] == pytest.approx(12)


def test_prior_posterior():
    # 0.15*100 + 0.5*((100+40) - 160) = 5 > 0; level (15/50)*100 - 20 = 10
    unsafe, upper, _ = cg.PriorPosterior(15, 50).evaluate(cell(100, 40, 20))
    assert unsafe[0]
    assert upper[0] == pytest.approx(10)
    assert not cg.PriorPosterior(15, 100).evaluate(cell(100, 40, 20)).unsafe[0]  # that is p% with 15


def test_p_percent_is_prior_posterior_with_q_100():
    x = cell(100, 30, 5, 2)
    assert cg.PPercent(12).evaluate(x).upper == pytest.approx(cg.PriorPosterior(12, 100).evaluate(x).upper)


def test_prior_posterior_with_a_coalition():
    unsafe, upper, _ = cg.PriorPosterior(10, 40, coalition=2).evaluate(cell(100, 50, 30, 20))
    assert unsafe[0]
    assert upper[0] == pytest.approx(25 + 180 - 200)


# ---------------------------------------------------------------- weights


def test_weights_fill_the_places_from_the_top():
    # 100 counts 1.5 times, 40 then fills the half place that is left: S2 = 100*1.5 + 40*0.5
    x = cell(100, 40, 20, weights=(1.5, 3.0, 2.0))
    assert x.largest(1)[0] == pytest.approx(100)
    assert x.largest(2)[0] == pytest.approx(170)
    assert x.largest(3)[0] == pytest.approx(210)
    assert x.total[0] == pytest.approx(310)
    unsafe, upper, _ = cg.Dominance(2, 50).evaluate(x)
    assert unsafe[0]
    assert upper[0] == pytest.approx(2 * 170 - 310)


def test_weights_in_the_p_percent_rule():
    # x1 = 100 twice fills both places: 0.1*100 + 200 - (200 + 9*1) = 1
    unsafe, upper, _ = cg.PPercent(10).evaluate(cell(100, 9, weights=(2.0, 1.0)))
    assert unsafe[0]
    assert upper[0] == pytest.approx(1)


def test_weights_below_one():
    # 0.5 of 100 and 0.5 of 60 fill the first place
    assert cell(100, 60, 10, weights=(0.5, 4.0, 1.0)).largest(1)[0] == pytest.approx(80)


def test_weighted_frequency_counts_the_population_where_asked():
    rule = cg.MinFrequency(3, basis="weights")
    assert not rule.evaluate(cell(5, 4, weights=(2.0, 2.0))).unsafe[0]
    assert rule.evaluate(cell(5, 4, weights=(1.0, 1.5))).unsafe[0]
    assert cg.MinFrequency(3).evaluate(cell(5, 4, weights=(2.0, 2.0))).unsafe[0]


# ---------------------------------------------------------------- waivers


def test_a_waiver_of_the_largest_protects_the_next():
    # without waivers: 10 + 140 - 150 = 0, safe. The second (40) is to be protected: 4 + 140 - 150 < 0
    assert not cg.PPercent(10).evaluate(cell(100, 40, 10)).unsafe[0]
    lonely = cell(100, 40, 3, protected=np.array([40.0]))
    unsafe, upper, _ = cg.PPercent(10).evaluate(lonely)
    assert unsafe[0]
    assert upper[0] == pytest.approx(4 + 140 - 143)


def test_a_protected_respondent_beyond_the_top_takes_the_last_place():
    # places: 100 and the protected 10 instead of 60
    x = cell(100, 60, 10, 1, protected=np.array([10.0]))
    assert x.sum_largest(2)[0] == pytest.approx(110)
    assert not cg.PPercent(50).evaluate(x).unsafe[0]


@pytest.mark.parametrize("rule", [cg.PPercent(10), cg.Dominance(1, 50), cg.PriorPosterior(5, 50), cg.MinFrequency(5)])
def test_a_cell_whose_contributors_all_waived_is_safe(rule):
    assert not rule.evaluate(cell(100, 1, protected=np.array([np.nan]))).unsafe[0]


# ---------------------------------------------------------------- shadow


def test_a_shadow_variable_gives_the_same_share_of_the_published_value():
    x = cell(100, 40, 3, 2, value=np.array([1450.0]), shadow=True)
    assert cg.PPercent(10).evaluate(x).upper[0] == pytest.approx(5 / 145 * 1450)
    assert cg.MinFrequency(5, percent=10).evaluate(x).upper[0] == pytest.approx(145)


# ---------------------------------------------------------------- frequency, zero, manual, request


def test_minimum_frequency():
    unsafe, upper, _ = cg.MinFrequency(3, percent=20).evaluate(cell(30, 20))
    assert unsafe[0]
    assert upper[0] == pytest.approx(10)
    assert not cg.MinFrequency(3).evaluate(cell(1, 1, 1)).unsafe[0]
    assert not cg.MinFrequency(3).evaluate(cell()).unsafe[0]


def test_zero():
    unsafe, upper, lower = cg.Zero(7).evaluate(cell(0, 0))
    assert unsafe[0]
    assert (upper[0], lower[0]) == (7, 0)
    assert not cg.Zero(7).evaluate(cell()).unsafe[0]
    assert not cg.Zero(7).evaluate(cell(1)).unsafe[0]


def test_request():
    asked = cell(70, 30, request=np.array([1], np.int8))
    assert cg.Request(60, 40, percent=10).evaluate(asked).unsafe[0]
    assert cg.Request(60, 40, percent=10).evaluate(asked).upper[0] == pytest.approx(10)
    assert not cg.Request(70, 40).evaluate(asked).unsafe[0]
    assert cg.Request(99, 69).evaluate(cell(70, 30, request=np.array([2], np.int8))).unsafe[0]
    assert not cg.Request(1, 1).evaluate(cell(70, 30, request=np.array([0], np.int8))).unsafe[0]
    assert cg.Request(90, 90, min_frequency=3).evaluate(asked).unsafe[0]


def test_manual_by_index_codes_and_names():
    t = crossed()
    for cells in ([1], [("A",)], [{"region": "A"}]):
        flagged = t.apply(cg.Manual(cells))
        assert flagged.sensitive_cells.tolist() == [1]
        assert flagged.upper[1] == pytest.approx(2)
    with pytest.raises(UnknownCodeError, match="'D'"):
        t.apply(cg.Manual([("D",)]))
    with pytest.raises(InputError, match="outside"):
        t.apply(cg.Manual([4]))


def test_own_rule():
    t = crossed()
    assert t.apply(lambda cells: 0.1 * cells.value * (cells.count == 3)).sensitive_cells.tolist() == [2]
    flagged = t.apply(cg.Custom(lambda c: np.where(c.count == 3, 0.1 * c.value, 0), "threes", "exactly three"))
    assert flagged.sensitive_cells.tolist() == [2]
    assert flagged.reasons(2) == ("threes: exactly three",)
    with pytest.raises(InputError, match="one number per cell"):
        t.apply(cg.Custom(lambda _: 1.0))
    asymmetric = t.apply(cg.Custom(lambda c: Verdict(c.count == 2, 0 * c.value + 4, 0 * c.value + 1)))
    assert (asymmetric.lower[1], asymmetric.upper[1]) == (1, 4)


# ---------------------------------------------------------------- together, in a table


def test_several_rules_take_the_largest_level():
    t = crossed().apply(cg.MinFrequency(3, percent=10), cg.Manual([1, 2], percent=20))
    assert t.sensitive_cells.tolist() == [1, 2]
    assert t.upper[1] == t.lower[1] == pytest.approx(2)
    assert t.reasons(1) == ("minimum frequency (3): fewer than 3 contributors", "manual: marked by hand")
    assert t.reasons(0) == ()
    assert t.flags.count_by_rule() == {"minimum frequency (3)": 1, "manual": 2}


def test_rules_add_up_over_calls():
    t = crossed().apply(cg.MinFrequency(3, percent=10)).apply(cg.Manual([2]))
    assert t.sensitive_cells.tolist() == [1, 2]
    assert len(t.flags.names) == 2


def test_asymmetric_levels():
    t = crossed().apply(cg.Manual([2], percent=20), lower_ratio=0.25)
    assert (t.lower[2], t.upper[2]) == (pytest.approx(1), pytest.approx(4))


def test_levels_are_cut_at_the_known_bounds():
    t = crossed(ub=np.array([np.inf, 12, 100, 100])).apply(cg.Manual([1, 2], percent=150))
    assert (t.lower[1], t.upper[1]) == (10, 2)
    assert (t.lower[2], t.upper[2]) == (20, 30)


def test_exceptions_per_dimension():
    t = crossed()
    assert t.apply(cg.MinFrequency(5).only(region=["A", "C"])).sensitive_cells.tolist() == [1, 3]
    assert t.apply(cg.MinFrequency(5).excluding(region="A")).sensitive_cells.tolist() == [2, 3]
    with pytest.raises(UnknownCodeError, match="did you mean 'region'"):
        t.apply(cg.MinFrequency(5).only(regio="A"))
    with pytest.raises(UnknownCodeError, match="has no code 'X'"):
        t.apply(cg.MinFrequency(5).only(region="X"))


def test_a_table_of_counts_needs_no_statistics():
    assert table(integer=True).apply(cg.MinFrequency(15)).sensitive_cells.tolist() == [0]


def test_what_is_refused():
    with pytest.raises(InputError, match="does not know its contributors"):
        table().apply(cg.PPercent(10))
    with pytest.raises(InputError, match="2 largest contributions"):
        crossed().apply(cg.PPercent(10))
    with pytest.raises(InputError, match="no rule"):
        crossed().apply()
    with pytest.raises(InputError, match="not a rule"):
        crossed().apply("p%")
    with pytest.raises(InputError, match="not a rule"):
        crossed().apply(cg.PPercent)
    with pytest.raises(InputError, match="who asked"):
        crossed().apply(cg.Request(50))
    with pytest.raises(LevelError):
        crossed().apply(cg.MinFrequency(3), lower_ratio=-1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: cg.PPercent(0),
        lambda: cg.PPercent(float("nan")),
        lambda: cg.PPercent(10, coalition=0),
        lambda: cg.Dominance(0, 80),
        lambda: cg.Dominance(1, 101),
        lambda: cg.PriorPosterior(50, 50),
        lambda: cg.MinFrequency(0),
        lambda: cg.MinFrequency(3, percent=-1),
        lambda: cg.Zero(-1),
        lambda: cg.Manual([0], percent=-5),
        lambda: cg.Request(101),
    ],
)
def test_parameters_out_of_range(make):
    with pytest.raises(InputError):
        make()


# ---------------------------------------------------------------- a priori


class Line:
    def __init__(self, code, action, *numbers):
        self.codes, self.action, self.numbers, self.place = (code,), action, numbers, "decisions.hst:1"


def test_a_priori_decisions():
    t = crossed().apply(cg.MinFrequency(3, percent=10))
    t = apply_apriori(
        t, [Line("A", "S"), Line("B", "U"), Line("B", "PL", 3.0, 4.0), Line("C", "P"), Line("Total", "W", 77.0)]
    )
    assert t.sensitive_cells.tolist() == [2]
    assert (t.lower[2], t.upper[2]) == (3, 4)
    assert t.fixed.tolist() == [False, False, False, True]
    assert t.weights[0] == 77
    assert t.reasons(2) == ("a priori: marked by hand",)


def test_a_priori_file(tmp_path):
    (tmp_path / "a.hst").write_text("B;U\nC;P\n")
    t = apply_apriori(crossed(), tmp_path / "a.hst", separator=";", percent=10)
    assert t.sensitive_cells.tolist() == [2]
    assert t.upper[2] == pytest.approx(2)


def test_a_priori_mistakes():
    t = crossed().apply(cg.MinFrequency(3, percent=10))
    with pytest.raises(UnknownCodeError, match=r"decisions.hst:1: 'region' has no code 'D'"):
        apply_apriori(t, [Line("D", "S")])
    with pytest.raises(LevelError, match="cannot be published"):
        apply_apriori(t, [Line("A", "P")])
    with pytest.raises(LevelError, match="takes no level"):
        apply_apriori(t, [Line("C", "PL", 1.0, 1.0)])


def test_statistics_of_some_cells():
    stats = CellStatistics.of([10, 20, 30], [1, 2, 3], [[9, 1], [5, 15], [7, 8]])
    part = stats.take([2, 0])
    assert part.total.tolist() == [30, 10]
    assert part.top.tolist() == [[8, 7], [9, 1]]
    with pytest.raises(InputError, match="do not fit"):
        CellStatistics.of([1], [1, 2], [[1]])


# ---------------------------------------------------------------- frames of cells


def cells_frame(**changes) -> dict:
    frame = {
        "region": ["Total", "A", "B", "C"],
        "value": [60.0, 10.0, 50.0, 0.0],
        "n": [7, 2, 5, 0],
        "top1": [20.0, 9.0, 20.0, None],
        "top2": [9.0, 1.0, 9.0, None],
        "s": [160.0, 20.0, 140.0, None],
    }
    return {**frame, **changes}


def test_a_frame_of_cells_with_contributions():
    t = cg.Table.from_frame(cells_frame(), ["region"], counts="n", top=["top2", "top1"])
    assert t.statistics.top.tolist() == [[20, 9], [9, 1], [20, 9], [0, 0]]
    assert t.fixed.tolist() == [False, False, False, True]
    assert t.apply(cg.PPercent(10)).sensitive_cells.tolist() == [1]
    shadowed = cg.Table.from_frame(cells_frame(), ["region"], counts="n", top=["top1"], shadow="s")
    assert shadowed.apply(cg.Dominance(1, 20)).upper[1] == pytest.approx((45 - 20) / 20 * 10)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_file_of_cells_brings_its_contributions_along(tmp_path, ending):
    firms = {"r": ["A", "A", "B", "B", "B"], "x": [9.0, 1.0, 5.0, 5.0, 4.0]}
    t = cg.tabulate(firms, ["r"], "x")
    t.write(tmp_path / f"t{ending}")
    again = cg.Table.read(tmp_path / f"t{ending}")
    assert np.array_equal(again.statistics.top, t.statistics.top)
    rules = (cg.PPercent(20), cg.Dominance(1, 80))
    assert again.apply(*rules).upper.tolist() == t.apply(*rules).upper.tolist()


def test_contributions_that_are_not_known_are_refused():
    with pytest.raises(InputError, match=r"region=B\): its largest contributions are missing"):
        cg.Table.from_frame(cells_frame(top1=[20, 9, None, None]), ["region"], counts="n", top=["top1"])
    without_total = {k: v[1:] for k, v in cells_frame().items()}
    with pytest.raises(InputError, match=r"region=Total\).* its largest contributions are missing"):
        cg.Table.from_frame(without_total, ["region"], counts="n", top=["top1"])
    with pytest.raises(InputError, match="number of contributors is missing"):
        cg.Table.from_frame(cells_frame(), ["region"], top=["top1"])
    with pytest.raises(UnknownCodeError, match="did you mean"):
        cg.Table.from_frame(cells_frame(), ["region"], counts="n", top=["top"])

"""Tables that share cells, as one system."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import cellguard as cg
from cellguard.exceptions import AdditivityError, InputError, PublicationError, UnknownCodeError
from cellguard.model.linked.publication import Equation, Part, Publication

REGIONS = cg.Hierarchy.from_nested({"East": ["E1", "E2"], "West": ["W1", "W2"]})
LEAVES = np.array([[30.0, 7, 21], [12, 40, 9], [25, 18, 33], [16, 27, 50]])


def by_sector(**fields) -> cg.Table:
    return cg.Table.from_leaves({"region": REGIONS, "sector": ["a", "b", "c"]}, LEAVES, **fields)


def by_size(**fields) -> cg.Table:
    sizes = np.array([[20.0, 38], [31, 30], [46, 30], [50, 43]])
    return cg.Table.from_leaves({"region": REGIONS, "size": ["small", "large"]}, sizes, **fields)


def test_the_same_cell_in_two_tables_is_one():
    found = Publication.of({"sector": by_sector(), "size": by_size()})
    assert found.table.n_cells == 7 * 4 + 7 * 3 - 7
    assert found.shared() == {("sector", "size"): 7}
    assert found.clusters == (("sector", "size"),)
    for part in found.parts:
        assert np.array_equal(found.table.values[part.cells], part.table.values)


def test_totals_link_by_what_they_mean():
    east = cg.Table.from_leaves(
        {"nuts": cg.Hierarchy.from_nested(["E1", "E2"], total="Total_EAST"), "sector": ["a", "b", "c"]}, LEAVES[:2]
    )
    part = Part(name="east", table=east, dimensions={"nuts": "region"})
    found = Publication.of([Part(name="all", table=by_sector()), part])
    assert found.table.n_cells == 28  # all of its cells are in the first table: Total_EAST is East
    inner = found.table.cell({"region": "East", "sector": "a"})
    assert found.parts[1].cells[east.cell({"sector": "a"})] == inner


def test_a_total_by_another_name_over_fewer_codes_is_the_total_when_its_value_is():
    few = cg.Table.from_leaves({"region": cg.Hierarchy.from_nested(["E1", "E2", "W1"], total="Ensemble")}, [3, 4, 5])
    all_ = cg.Table.from_leaves(
        {"region": ["E1", "E2", "W1", "W2"], "sex": ["f", "m"]}, [[1, 2], [2, 2], [2, 3], [0, 0]]
    )
    found = Publication.of({"all": all_, "few": few})
    assert found.table.n_cells == all_.n_cells


def test_a_table_for_a_part_of_the_population():
    east = cg.Table.from_leaves({"sector": ["a", "b", "c"]}, LEAVES[:2].sum(axis=0))
    found = Publication.of(
        [Part(name="all", table=by_sector()), Part(name="east", table=east, where={"region": "East"})]
    )
    assert found.table.n_cells == 28
    other = Part(name="young", table=east, where={"age": "young"})
    assert Publication.of([Part(name="all", table=by_sector()), other]).table.n_cells == 28 + 4


def test_a_total_that_is_an_inner_code_elsewhere_must_be_said_to_be_that_part():
    coarse = cg.Table.from_leaves(
        {"region": ["East", "West"], "sector": ["a", "b", "c"]}, [LEAVES[:2].sum(axis=0), LEAVES[2:].sum(axis=0)]
    )
    below = {"region": cg.Hierarchy.from_nested(["E1", "E2"], total="East"), "sector": ["a", "b", "c"]}
    east = Part(name="east", table=cg.Table.from_leaves(below, LEAVES[:2]), source="east.csv")
    every = Part(name="all", table=coarse, source="all.csv")
    # the values agree, but North is not National because both are called N and happen to be equal
    with pytest.raises(InputError) as caught:
        Publication.of([every, east])
    assert str(caught.value).splitlines() == [
        "dimension 'region': 'East' is the total of 'east' (east.csv) and an inner code of 'all' (all.csv).",
        (
            'Hint: if the table covers that part only, say where = {region = "East"}; '
            "otherwise give its total a code of its own."
        ),
    ]
    told = Publication.of([every, replace(east, where={"region": "East"})])
    assert told.shared() == {("all", "east"): 4}
    # a third table that lists its parts says what it means
    assert Publication.of([every, east, Part(name="fine", table=by_sector())]).shared()["all", "east"] == 4


def test_extra_totals_that_do_not_nest():
    coast = cg.Hierarchy.from_nested({"Coast": ["E1", "W1"], "Inland": ["E2", "W2"]})
    other = cg.Table.from_leaves({"region": coast, "sector": ["a", "b", "c"]}, LEAVES[[0, 2, 1, 3]])
    found = Publication.of({"first": by_sector(), "second": other})
    assert found.table.n_cells == 28 + 2 * 4
    assert np.abs(found.table.relations @ found.table.values).max() < 1e-9


def test_relations_between_tables_are_known_too():
    # the leaves are in one table, the regions in another: neither knows the sum alone
    fine = cg.Table.from_leaves({"region": ["E1", "E2", "W1", "W2"]}, LEAVES.sum(axis=1))
    coarse = cg.Table.from_leaves(
        {"region": REGIONS.collapse(1), "sector": ["a", "b", "c"]}, [[42, 47, 30], [41, 45, 83]]
    )
    deep = cg.Table.from_leaves(
        {"region": REGIONS, "age": ["y", "o"]}, np.stack([LEAVES.sum(axis=1), np.zeros(4)], axis=1)
    )
    found = Publication.of({"fine": fine, "coarse": coarse, "deep": deep})
    east = [found.table.cell({"region": r}) for r in ("East", "E1", "E2")]
    row = np.zeros(found.table.n_cells)
    row[east] = [-1, 1, 1]
    assert (found.table.relations.toarray() == row).all(axis=1).any()


def test_assembling_leaves_the_tables_as_they_are():
    # the leaves come first in the system, then the regions above them: relations are sorted there, not in the table
    first = cg.Table.from_leaves({"region": ["E1", "E2", "W1", "W2"], "sector": ["a", "b", "c"]}, LEAVES)
    second = by_sector()
    before = second.relations.toarray()
    found = Publication.of({"first": first, "second": second})
    assert np.array_equal(second.relations.toarray(), before)
    again = Publication.of({part.name: part.table for part in found.parts})
    assert np.array_equal(again.table.relations.toarray(), found.table.relations.toarray())


# ---------------------------------------------------------------- indicators


def indicators() -> dict[str, cg.Table]:
    exports = np.round(LEAVES * 0.4)
    dims = {"region": REGIONS, "sector": ["a", "b", "c"]}
    return {
        "turnover": cg.Table.from_leaves(dims, LEAVES),
        "exports": cg.Table.from_leaves(dims, exports),
        "domestic": cg.Table.from_leaves(dims, LEAVES - exports),
    }


def test_equations_hold_cell_by_cell():
    parts = [Part(name=n, table=t, indicator=n) for n, t in indicators().items()]
    found = Publication.of(parts, equations=["turnover = domestic + exports"])
    assert found.table.n_cells == 3 * 28
    assert len(found.clusters) == 1
    apart = Publication.of(parts)
    assert len(apart.clusters) == 3
    assert found.table.n_relations == apart.table.n_relations + 28


def test_a_table_with_fewer_indicators_beside_tables_with_all_of_them():
    parts = [Part(name=n, table=t, indicator=n) for n, t in indicators().items()]
    crossed = cg.Table.from_leaves(
        {"sector": ["a", "b", "c"], "size": ["small", "large"]}, [[40.0, 43], [50, 42], [57, 56]]
    )
    east = cg.Table.from_leaves(
        {"region": cg.Hierarchy.from_nested(["E1", "E2"]), "size": ["small", "large"]}, [[20.0, 38], [31, 30]]
    )
    more = [
        Part(name="crossed", table=crossed, indicator="turnover"),
        *(Part(name=f"east {n}", table=east, indicator=n, where={"region": "East"}) for n in ("turnover", "capital")),
    ]
    found = Publication.of([*parts, *more], equations=["turnover = domestic + exports"])
    assert found.table.n_cells == 3 * 28 + (12 - 4) + (9 - 3) + 9
    assert np.abs(found.table.relations @ found.table.values - found.table.rhs).max() < 1e-9
    assert np.diff(found.table.relations.indptr).min() > 1


def test_an_equation_that_does_not_hold_names_the_cell_not_the_size():
    tables = indicators() | {"domestic": by_sector()}
    parts = [Part(name=n, table=t, indicator=n) for n, t in tables.items()]
    with pytest.raises(
        AdditivityError, match=r"turnover = domestic \+ exports does not hold in 28 of 28 cells"
    ) as caught:
        Publication.of(parts, equations=["turnover = domestic + exports"])
    assert "region=Total" in str(caught.value)


@pytest.mark.parametrize("text", ["", "a", "a = ", "= b", "a = b c", "a = b +", "a = + + b"])
def test_equations_that_are_not_understood(text):
    with pytest.raises(InputError, match="not understood"):
        Equation.of(text)


def test_an_unknown_indicator_gets_a_hint():
    with pytest.raises(UnknownCodeError, match="did you mean 'turnover'"):
        Publication.of([Part(name="t", table=by_sector(), indicator="turnover")], equations=["turnovr = turnover"])


# ---------------------------------------------------------------- what is wrong


def test_a_shared_cell_with_two_values_is_refused_with_both_places():
    wrong = by_size()
    values = wrong.values.copy()
    values *= 2  # still additive
    with pytest.raises(
        InputError, match=r"\(region=Total.*different values in 'sector' and 'size', and so have 6 others"
    ):
        Publication.of({"sector": by_sector(), "size": wrong.with_(values=values)})


def test_a_shared_cell_with_two_numbers_of_contributors_is_refused_with_both_places():
    first, second = by_sector(), by_size()
    counts = np.full(second.n_cells, 9.0)
    counts[second.cell({"region": "E1"})] = 2.0
    tables = {"sector": first.with_(counts=np.full(first.n_cells, 9.0)), "size": second.with_(counts=counts)}
    with pytest.raises(InputError, match=r"region=E1.*different numbers of contributors in 'sector' and 'size'\."):
        Publication.of(tables)
    assert Publication.of(tables | {"size": second}).table.n_cells == 42


def test_rounded_values_are_moved_to_the_nearest_that_add_up():
    first, second = by_sector(), by_size()
    off = second.with_(values=second.values * (1 + 2e-4))  # every value a little larger: still additive
    with pytest.raises(InputError, match="different values"):
        Publication.of({"sector": first, "size": off}, tolerance=1e-5)
    found = Publication.of({"sector": first, "size": off}, tolerance=1e-3)
    assert np.abs(found.table.relations @ found.table.values).max() < 1e-6
    for part in found.parts:
        assert np.allclose(found.table.values[part.cells], part.table.values, rtol=2e-3)
    assert not found.table.integer
    assert found.apply(cg.Manual([0], 10)).table.sensitive.any()  # the tolerance is kept


def test_a_table_with_rounded_totals_is_read_within_a_tolerance():
    frame = {"region": ["Total", "N", "S", "W"], "value": [100, 33, 33, 33]}
    with pytest.raises(AdditivityError):
        cg.Table.from_frame(frame, ["region"])
    table = cg.Table.from_frame(frame, ["region"], tolerance=0.02)
    assert table.values[0] == pytest.approx(table.values[1:].sum())
    assert np.allclose(table.values, [100, 33, 33, 33], rtol=0.02)
    with pytest.raises(AdditivityError, match="1 of 1 relations do not hold"):
        cg.Table.from_frame(frame, ["region"], tolerance=0.001)


def test_zeros_and_signs_survive_reconciliation():
    frame = {"region": ["Total", "N", "S", "W"], "value": [-10, -14, 0, 5]}
    table = cg.Table.from_frame(frame, ["region"], tolerance=0.1, lb=-np.inf)
    assert table.values[2] == 0
    assert np.array_equal(np.sign(table.values), [-1, -1, 0, 1])


def test_compare_takes_a_publication():
    sector = by_sector(sensitive=[9], lower=3, upper=3)
    found = Publication.of({"sector": sector, "size": by_size()})
    rows = cg.compare(found, ["suppress", "round"], time_limit_s=3).rows
    assert [row["safe"] for row in rows] == [True, True]


def test_a_code_above_and_below_another():
    first = cg.Table.from_leaves({"r": cg.Hierarchy.from_nested({"A": ["B", "C"]})}, [1, 2])
    second = cg.Table.from_leaves({"r": cg.Hierarchy.from_nested({"B": ["A", "D"]})}, [1, 2])
    with pytest.raises(InputError, match=r"above .* in one table and below it in another"):
        Publication.of({"first": first, "second": second})


# ---------------------------------------------------------------- protected as one


def plain_range(table, suppressed, cell) -> tuple[float, float]:
    """The attacker's two linear programs, without any of the engine."""
    a = table.values
    bounds = [(0, None) if s else (v, v) for s, v in zip(suppressed, a, strict=True)]
    ends = []
    for sign in (1, -1):
        c = np.zeros(len(a))
        c[cell] = sign
        got = linprog(c, A_eq=table.relations, b_eq=table.rhs, bounds=bounds, method="highs")
        ends.append(np.inf if got.status == 3 else sign * got.fun)
    return ends[0], abs(ends[1]) if np.isinf(ends[1]) else ends[1]


def test_one_by_one_leaves_open_what_the_publication_closes():
    size = by_size()
    cell = by_sector().cell({"region": "E1"})  # a margin: it is in both tables
    sector = by_sector(sensitive=[cell], lower=3, upper=3)
    alone = cg.suppress(sector, time_limit_s=5)
    assert alone.audit().safe
    found = Publication.of({"sector": sector, "size": size})
    pattern = np.zeros(found.table.n_cells, bool)
    pattern[found.parts[0].cells] = alone.suppressed
    low, high = plain_range(found.table, pattern, found.parts[0].cells[cell])
    assert high - low < 1e-6  # the second table gives the withheld margin away
    release = cg.suppress(found, time_limit_s=5)
    assert release.audit().safe
    low, high = plain_range(found.table, release.suppressed, found.parts[0].cells[cell])
    assert high - low >= 6 - 1e-6


def cheap(table: cg.Table, column: str) -> cg.Table:
    """Make one column of a table the cheapest to withhold, and the margin of its rows."""
    away = table.coordinates > 0
    code = np.array(table.codes[1])[table.coordinates[:, 1]]
    return table.with_(weights=np.where(away[:, 0] & ((code == column) | ~away[:, 1]), 1.0, 1000.0))


def test_going_round_until_nothing_changes_leaves_open_what_the_publication_closes():
    """As rtauargus does: what one table withholds is sensitive in the next, at a tiny level, until all agree.

    The margin x1 can grow in the first table because x2 can shrink, in the second because x3 can; in both at once
    neither can: x3 hangs on a cell of 0.5 in the first, x2 on one of 0.5 in the second.
    """
    rows = ["x1", "x2", "x3"]
    first = cheap(cg.Table.from_leaves({"x": rows, "y": ["y1", "y2"]}, [[40, 30], [50, 20], [0.5, 60]]), "y1")
    second = cheap(cg.Table.from_leaves({"x": rows, "z": ["z1", "z2"]}, [[35, 35], [0.5, 69.5], [45, 15.5]]), "z1")
    marked = np.arange(first.n_cells) == first.cell({"x": "x1"})
    asked = first.with_(sensitive=marked, lower=3.0 * marked, upper=3.0 * marked)
    found = Publication.of({"first": asked, "second": second})
    hidden, before = found.table.sensitive.copy(), np.zeros(found.table.n_cells, bool)
    while not np.array_equal(hidden, before):
        before = hidden.copy()
        for part in found.parts:
            carried = hidden[part.cells]
            level = np.where(found.table.sensitive[part.cells], 3.0, 0.01 * carried)
            alone = cg.suppress(part.table.with_(sensitive=carried, lower=level, upper=level), time_limit_s=5)
            assert alone.audit().safe
            hidden[part.cells] |= alone.suppressed
    cell = int(found.table.sensitive_cells[0])
    low, high = plain_range(found.table, hidden, cell)
    assert (low, high) == pytest.approx((35, 71))  # 73 was asked for
    release = cg.suppress(found, time_limit_s=5)
    assert release.audit().safe
    assert plain_range(found.table, release.suppressed, cell)[1] >= 73 - 1e-6
    assert release.suppressed.sum() < hidden.sum()


def test_an_equation_gives_away_what_tables_alone_protect():
    tables = indicators()
    marked = np.arange(28) == by_sector().cell({"region": "E1", "sector": "a"})
    asked = tables["turnover"].with_(sensitive=marked, lower=3.0 * marked, upper=3.0 * marked)
    parts = [Part(name=n, table=t, indicator=n) for n, t in (tables | {"turnover": asked}).items()]
    found = Publication.of(parts, equations=["turnover = domestic + exports"])
    alone = cg.suppress(asked, time_limit_s=5)
    assert alone.audit().safe
    hidden = np.zeros(found.table.n_cells, bool)
    hidden[found.parts[0].cells] = alone.suppressed
    cell = int(found.table.sensitive_cells[0])
    assert plain_range(found.table, hidden, cell) == pytest.approx((30, 30))
    release = cg.suppress(found, time_limit_s=5)
    low, high = plain_range(found.table, release.suppressed, cell)
    assert (30 - low, high - 30) >= (3 - 1e-6, 3 - 1e-6)


def test_whatever_is_wrong_between_tables_is_told_at_once():
    other = cg.Hierarchy.from_nested(["E1", "W1"], total="East")
    parts = [
        Part(name="sector", table=by_sector(), source="sector.csv"),
        Part(name="size", table=by_size().with_(values=2 * by_size().values), source="size.csv"),
        Part(name="form", table=cg.Table.from_leaves({"form": ["p", "q"], "kind": ["k", "l"]}, [[1, 2], [3, 4]])),
        Part(name="coast", table=cg.Table.from_leaves({"form": other}, [3, 9])),
        Part(name="land", table=cg.Table.from_leaves({"form": {"East": ["x", "y"], "q": ["z"]}}, [3, 9, 4])),
        Part(name="old", table=by_size(), period="2023"),
        Part(name="new", table=by_size(), period="2024"),
    ]
    with pytest.raises(PublicationError) as caught:
        Publication.of(parts, equations=["value = valu", "value = = value"])
    told = "\n".join(caught.value.mistakes)
    for text in (
        "there is no indicator 'valu'", "equation 'value = = value' is not understood",
        "'old' is about 2023, 'new' about 2024", "'East' is the total of 'coast' and an inner code of 'land'",
        "different values in 'sector' (sector.csv) and 'size' (size.csv)",
    ):  # fmt: skip
        assert text in told


def test_every_method_takes_a_publication_and_tables_come_back_as_they_came(tmp_path):
    east = cg.Hierarchy.from_nested(["E1", "E2"], total="Total_EAST")
    apart = cg.Table.from_leaves({"colour": ["red", "blue", "green"], "k": ["x", "y"]}, [[5, 9], [8, 7], [6, 9]])
    apart = apart.with_(
        sensitive=np.arange(12) == 4, lower=(np.arange(12) == 4) * 2.0, upper=(np.arange(12) == 4) * 2.0
    )
    part = Part(
        name="east", table=cg.Table.from_leaves({"nuts": east, "sector": ["a", "b", "c"]}, LEAVES[:2]),
        dimensions={"nuts": "region"},
    )  # fmt: skip
    main = Part(name="all", table=by_sector(sensitive=[9], lower=3, upper=3))
    other = Part(name="other", table=apart, indicator="people")
    found = Publication.of([main, part, other])
    assert found.clusters == (("all", "east"), ("other",))
    methods = {
        "suppress": lambda p: cg.suppress(p, time_limit_s=5),
        "adjust": lambda p: cg.adjust(p, norm="l1", repair="senses"),
        "intervals": lambda p: cg.intervals(p, time_limit_s=5),
        "round": lambda p: cg.round(p, base=10),
        "perturb": lambda p: cg.perturb(p, base=10),
    }
    for name, method in methods.items():
        release = method(found)
        assert release.published, name
        assert release.audit().safe, name
        assert list(release.tables) == ["all", "east", "other"]
        frame = release.tables["east"].frame()
        assert frame.column_names[:2] == ["nuts", "sector"]
        assert frame["nuts"].to_pylist()[0] == "Total_EAST"
        release.save(tmp_path / name)
        assert sorted(p.name for p in (tmp_path / name).iterdir()) == ["all.csv", "east.csv", "other.csv"]


def counted(silent: str) -> dict[str, cg.Table]:
    """Two tables that share their regions, in one of which a firm is alone and another is one of two."""
    cells = {
        "size": (("a", "b"), [50.0, 90, 120, 130, 140, 150], [1, 9, 8, 7, 9, 2], [50.0, 30, 40, 40, 50, 140]),
        "form": (("p", "q"), [60.0, 80, 125, 125, 145, 145], [5, 5, 7, 8, 5, 6], [30.0, 30, 40, 40, 50, 50]),
    }
    tables = {}
    for name, (codes, x, n, top) in cells.items():
        inner = [(r, c) for r in "NSW" for c in codes]
        rows = [(r, c) for r in ("Total", *"NSW") for c in ("Total", *codes)]
        below = [[k for k, (a, b) in enumerate(inner) if r in (a, "Total") and c in (b, "Total")] for r, c in rows]
        frame = {"region": [r for r, _ in rows], name: [c for _, c in rows]}
        frame |= {"x": [sum(x[k] for k in some) for some in below], "n": [sum(n[k] for k in some) for some in below]}
        frame["top"] = [max(top[k] for k in some) for some in below]
        told = {} if name == silent else {"counts": "n", "top": ["top"]}
        made = cg.Table.from_frame(frame, ["region", name], value="x", **told)
        tables[name] = made.apply(cg.MinFrequency(3, percent=10)) if told else made
    return tables


@pytest.mark.parametrize("silent", ["", "form"])
def test_a_table_that_does_not_tell_its_contributors_does_not_dismiss_those_of_others(silent):
    found = Publication.of(counted(silent))
    people = [a for a in cg.with_insiders(found.table).attackers if a.derived]
    alone, pair = (found.table.cell(codes) for codes in ({"region": "N", "size": "a"}, {"region": "W", "size": "b"}))
    own = [dict(zip(a.cells.tolist(), zip(a.lb.tolist(), a.ub.tolist(), strict=True), strict=True)) for a in people]
    assert any(mine.get(alone) == (50.0, 50.0) for mine in own)
    assert sorted(mine[pair][0] for mine in own if pair in mine) == [10.0, 140.0]
    release = cg.suppress(found, time_limit_s=5)
    assert any(a.derived for a in release.table.attackers)
    assert release.audit().safe

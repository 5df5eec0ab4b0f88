"""Hierarchies: every way to make one, what they say, and what they refuse."""

from __future__ import annotations

import time

import numpy as np
import pytest

from cellguard import Hierarchy
from cellguard.exceptions import FormatError, InputError, UnknownCodeError

REGIONS = {"North": ["N1", "N2"], "South": ["S1", "S2", "S3"]}
CODES = ("Total", "North", "N1", "N2", "South", "S1", "S2", "S3")


@pytest.fixture
def regions():
    return Hierarchy.from_nested(REGIONS)


def test_every_constructor_gives_the_same_tree(regions, tmp_path):
    rows = [
        ("North", ""),
        ("N1", "North"),
        ("N2", "North"),
        ("South", None),
        ("S1", "South"),
        ("S2", "South"),
        ("S3", "South"),
    ]
    frame = {"code": [c for c, _ in rows], "parent": [p for _, p in rows]}
    hrc = tmp_path / "region.hrc"
    hrc.write_text("North\n@N1\n@N2\nSouth\n@S1\n@S2\n@S3\n")
    outline = "North\n  N1\n  N2\nSouth\n  S1\n  S2\n  S3\n"
    (tmp_path / "region.txt").write_text(outline)
    made = [
        Hierarchy.from_frame(frame),
        Hierarchy.from_hrc(hrc),
        Hierarchy.from_text(outline),
        Hierarchy.read(tmp_path / "region.txt"),
        Hierarchy.of(str(hrc)),
        Hierarchy.of(REGIONS),
        Hierarchy.from_nested([{"North": {"N1": None, "N2": {}}}, {"South": ("S1", "S2", "S3")}]),
    ]
    assert regions.codes == CODES
    for h in made:
        assert h == regions


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_from_frame_of_each_library(library, regions):
    data = {"code": list(CODES[1:]), "parent": ["Total", "North", "North", "Total", "South", "South", "South"]}
    if library == "pandas":
        frame = pytest.importorskip("pandas").DataFrame(data)
    elif library == "polars":
        frame = pytest.importorskip("polars").DataFrame(data)
    else:
        frame = pytest.importorskip("pyarrow").table(data)
    assert Hierarchy.from_frame(frame) == regions


def test_digits_add_missing_parents():
    h = Hierarchy.from_digits(["111", "112", "21", "2"], levels=[1, 1, 1])
    assert h.codes == ("Total", "1", "11", "111", "112", "2", "21")
    assert h.depth.tolist() == [0, 1, 2, 3, 3, 1, 2]
    with pytest.raises(InputError, match="has 4 digits"):
        Hierarchy.from_digits(["1111"], levels=[1, 1, 1])


def test_matrix_sums_leaves(regions):
    sums = regions.build_matrix() @ np.array([1.0, 2, 4, 8, 16])
    assert sums.tolist() == [31, 3, 1, 2, 28, 4, 8, 16]
    assert [regions.codes[i] for i in regions.leaves] == ["N1", "N2", "S1", "S2", "S3"]


def test_relations(regions):
    r = regions.relations()
    assert r.totals.tolist() == [0, 1, 4]
    assert [r.get_parts(i).tolist() for i in range(3)] == [[1, 4], [2, 3], [5, 6, 7]]


def test_a_parent_with_one_child_keeps_its_relation():
    h = Hierarchy.from_nested({"A": ["A1"], "B": ["B1", "B2"]})
    assert (h.build_matrix() @ np.array([1.0, 2, 4])).tolist() == [7, 1, 1, 6, 2, 4]


def test_total_alone_and_total_named_in_the_outline():
    assert Hierarchy.flat([]).codes == ("Total",)
    assert Hierarchy.flat([]).leaves.tolist() == [0]
    assert Hierarchy.from_text("All\n  a\n  b").codes == ("All", "a", "b")


def test_labels(regions):
    h = Hierarchy.from_text("A\tAgriculture\n  A1\tCrops\nB  Mining")
    assert h.labels == ("Total", "Agriculture", "Crops", "Mining")
    assert regions.with_labels({"N1": "Upper valley"}).labels[2] == "Upper valley"
    with pytest.raises(UnknownCodeError, match="Hint: did you mean 'N1'"):
        regions.with_labels({"N11": "x"})


def test_join_keeps_the_relations_of_each_tree(regions):
    coast = Hierarchy.from_nested({"Coast": ["N1", "S1", "S2"], "Inland": ["N2", "S3"]})
    h = Hierarchy.join(regions, coast)
    r = h.relations()
    named = {h.codes[t]: set() for t in r.totals}
    for i, t in enumerate(r.totals):
        named[h.codes[t]].add(tuple(h.codes[c] for c in r.get_parts(i)))
    assert named["Total"] == {("North", "South"), ("Coast", "Inland")}
    assert named["Coast"] == {("N1", "S1", "S2")}
    assert (h.build_matrix() @ np.ones(5)).tolist() == [5, 2, 1, 1, 3, 1, 1, 1, 3, 2]
    assert "2 trees" in repr(h)


def test_join_may_group_inner_codes_again_and_refuses_other_leaves(regions):
    again = Hierarchy.from_nested({"All": ["North", "South"]}, total="Total")
    assert len(Hierarchy.join(regions, again).codes) == 9
    with pytest.raises(InputError, match="the same leaves"):
        Hierarchy.join(regions, Hierarchy.from_nested({"Coast": ["N1", "S1"]}))
    with pytest.raises(UnknownCodeError, match="not a code of the first tree"):
        Hierarchy.join(regions, Hierarchy.flat(["N1"], total="Totl"))


def test_join_lists_a_shared_relation_once(regions):
    assert len(Hierarchy.join(regions, regions).relations().totals) == 3


def test_collapse_and_recode(regions):
    coarse = regions.collapse(1)
    assert coarse.codes == ("Total", "North", "South")
    assert regions.recode(["N2", "South", "Total"], to=coarse) == ["North", "South", "Total"]
    assert regions.collapse(below=["South"]).codes == ("Total", "North", "N1", "N2", "South")
    assert regions.collapse() == regions
    assert regions.collapse(0).codes == ("Total",)
    with pytest.raises(InputError, match="level -1"):
        regions.collapse(-1)


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Hierarchy.from_nested({"A": ["x"], "B": ["x"]}), InputError, "two parents, 'A' and 'B'"),
        (lambda: Hierarchy.flat(["a", "a"]), InputError, "listed twice"),
        (lambda: Hierarchy.from_nested({"A": {"A": None}}), InputError, "two parents"),
        (lambda: Hierarchy.from_nested({"A": ["Total"]}), InputError, "total="),
        (lambda: Hierarchy.from_nested({"A": 3}), InputError, "a dict or a list"),
        (lambda: Hierarchy.from_frame({"code": ["a", "b", "c"], "parent": ["b", "a", "Total"]}), InputError, "cycle"),
        (lambda: Hierarchy.from_frame({"code": ["a", "b", "c"], "parent": ["b", "c", "a"]}), InputError, "cycle"),
        (lambda: Hierarchy.from_frame({"code": ["North", "N"], "parent": [None, "Nort"]}), UnknownCodeError, "mean 'North'"),
        (lambda: Hierarchy.from_frame({"code": ["a"], "up": [None]}), UnknownCodeError, "no column 'parent'"),
        (lambda: Hierarchy.from_frame({"code": ["a", None], "parent": [None, "a"]}), InputError, "no code"),
        (lambda: Hierarchy.from_frame(17), InputError, "not a frame"),
        (lambda: Hierarchy.from_digits(["1"], levels=[]), InputError, "at least one level"),
        (lambda: Hierarchy.from_text(""), FormatError, "empty"),
        (lambda: Hierarchy.from_text("a\n    b\n  c"), FormatError, ":3: the indentation"),
        (lambda: Hierarchy.from_text("  a\nb"), FormatError, ":2: is indented less"),
        (lambda: Hierarchy(("T", "a"), np.array([1, 0])), InputError, "exactly one root"),
        (lambda: Hierarchy(("T", "a", "b"), np.array([-1, 2, 1])), InputError, "cycle"),
        (lambda: Hierarchy(("T", "a"), np.array([-1, 5])), InputError, "outside"),
        (lambda: Hierarchy((), np.zeros((1, 0))), InputError, "needs a parent"),
        (lambda: Hierarchy.flat(["a"]).index(["b"]), UnknownCodeError, "unknown code 'b'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(make, error, says):
    with pytest.raises(error, match=says):
        make()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"\0\1\2", "binary"),
        (b"A\n@@B\n", ":2: depth 2"),
        (b"A\n@\n", ":2: there is no code"),
        (b"@A\n", ":1: depth 1"),
    ],
)
def test_malformed_hrc(tmp_path, content, says):
    path = tmp_path / "bad.hrc"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=says):
        Hierarchy.from_hrc(path)


def test_hrc_blanks_are_part_of_the_code_and_the_lead_may_be_long(tmp_path):
    path = tmp_path / "x.hrc"
    path.write_text(" 1\n::11\n")
    assert Hierarchy.from_hrc(path, lead="::").codes == ("Total", " 1", "11")


def test_repr_is_short_for_large_trees():
    h = Hierarchy.from_nested({f"A{i}": [f"A{i}.{j}" for j in range(50)] for i in range(50)})
    text = repr(h)
    assert text.splitlines()[0] == "Hierarchy(2551 codes, 2500 leaves, depth 2)"
    assert len(text.splitlines()) < 60
    assert "more" in text


def test_equal_hierarchies_hash_alike(regions):
    assert len({regions, Hierarchy.from_nested(REGIONS)}) == 1
    assert regions != "regions"
    assert len(regions) == 8


def test_a_chain_of_a_hundred_thousand_levels_is_refused_at_once():
    pairs = [(f"c{i}", f"c{i - 1}" if i else "Total") for i in range(100_000)]
    begin = time.process_time()
    with pytest.raises(InputError, match="100,000 levels lie below the total; at most 100 are possible"):
        Hierarchy.from_pairs(pairs)
    assert time.process_time() - begin < 5


def test_the_deepest_tree_that_is_possible_works():
    h = Hierarchy.from_pairs([(f"c{i}", f"c{i - 1}" if i else "Total") for i in range(100)])
    assert h.n_levels == 101
    assert h.build_matrix().nnz == 101
    assert repr(h).count("\n") >= 100


def test_a_long_cycle_is_found_at_once():
    n = 100_001
    begin = time.process_time()
    with pytest.raises(InputError, match="cycle"):
        Hierarchy(("Total", *map(str, range(n))), [-1, *range(2, n + 1), 1])
    assert time.process_time() - begin < 5


# ---------------------------------------------------------------- columns for the levels


def test_a_correspondence_table(tmp_path):
    expected = Hierarchy.from_nested({"AZ": {"A": ["01", "02"]}, "BE": {"B": ["05"], "C": ["10", "11"]}})
    rows = [("AZ", "A", "01"), ("AZ", "A", "02"), ("BE", "B", "05"), ("BE", "C", "10"), ("BE", "C", "11")]
    text = "\n".join(["A10,A21,A88", *(",".join(row) for row in rows)]) + "\n"
    (tmp_path / "corr.csv").write_text(text)
    assert Hierarchy.read(tmp_path / "corr.csv") == expected
    (tmp_path / "corr.csv").write_text(
        "no;A10;A21;A88\n" + "\n".join(f"{i};" + ";".join(r) for i, r in enumerate(rows))
    )
    assert Hierarchy.read(tmp_path / "corr.csv", levels=["A10", "A21", "A88"]) == expected
    with pytest.raises(UnknownCodeError, match="there is no column 'A22'"):
        Hierarchy.read(tmp_path / "corr.csv", levels=["A10", "A22"])


def test_levels_that_are_blank_or_repeat_a_code():
    frame = {"a": ["A", "A", "B", "C"], "b": ["A1", "", "B", "C"], "c": ["x", "y", "B", "z"]}
    h = Hierarchy.from_levels(frame)
    # y hangs below A directly, B is one code at all levels, and C (level b) has only z below it
    up = {code: h.codes[p] for code, p in zip(h.codes, h.parents[0].tolist(), strict=True) if p >= 0}
    assert up == {"A": "Total", "A1": "A", "x": "A1", "y": "A", "B": "Total", "C": "Total", "z": "C"}


def test_codes_of_two_levels_that_are_spelt_alike():
    h = Hierarchy.from_levels({"region": ["1", "1", "2"], "town": ["1", "2", "3"]})
    assert h.codes == ("Total", "region 1", "1", "2", "region 2", "3")


def test_a_code_under_two_parents_is_told_with_both():
    with pytest.raises(InputError, match="code '05' of 'A88' stands under two parents, 'A' of 'A21' and 'B' of 'A21'"):
        Hierarchy.from_levels({"A21": ["A", "B"], "A88": ["05", "05"]})
    with pytest.raises(InputError, match="code 'x' stands under two parents, 'A' and 'B'"):
        Hierarchy.from_pairs([("A", "Total"), ("B", "Total"), ("x", "A"), ("x", "B")])


@pytest.mark.parametrize(
    "head", ["code,parent", "Code,Parent", "child,parent", "id,parent_id", "CODE,PARENT_CODE", "code,parent,label"]
)
def test_code_lists_by_any_of_their_names(tmp_path, regions, head):
    more = "," if "label" in head else ""
    rows = ["North,", "N1,North", "N2,North", "South,", "S1,South", "S2,South", "S3,South"]
    (tmp_path / "list.csv").write_text("\n".join([head, *(row + more for row in rows)]) + "\n")
    assert Hierarchy.read(tmp_path / "list.csv") == regions


def test_one_column_is_no_hierarchy(tmp_path):
    (tmp_path / "list.csv").write_text("region\nN\nS\n")
    with pytest.raises(InputError, match="one column is not a hierarchy"):
        Hierarchy.read(tmp_path / "list.csv")


def test_zeros_that_a_spreadsheet_dropped_are_suggested():
    h = Hierarchy.flat(["01", "07", "70", "007"])
    with pytest.raises(UnknownCodeError, match="unknown code '7'") as error:
        h.index(["7"])
    assert error.value.hint == "'7' may be '07': spreadsheet programs drop leading zeros."

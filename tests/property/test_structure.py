"""Hierarchies, cross-tabulations and files, for whatever Hypothesis thinks of."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from builders import sums_of_leaves
from cellguard import Hierarchy, Table
from cellguard.exceptions import CellguardError

# a file with NUL characters is refused as a binary one
codes = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=5).filter(
    lambda c: c != "Total"
)


@st.composite
def hierarchies(draw, most=9, names=codes):
    """Return a tree in which any code may hang under any earlier one."""
    listed = draw(st.lists(names, min_size=1, max_size=most, unique=True))
    known = ["Total"]
    pairs = []
    for code in listed:
        pairs.append((code, draw(st.sampled_from(known))))
        known.append(code)
    return Hierarchy.from_pairs(pairs)


plain = st.sampled_from([f"c{i}" for i in range(12)])


@given(hierarchies())
def test_sums_of_leaves_obey_the_relations(h):
    sums = h.build_matrix() @ np.arange(1.0, len(h.leaves) + 1) ** 2
    totals, indptr, parts = h.relations()
    assert np.array_equal(np.add.reduceat(sums[parts], indptr[:-1]), sums[totals])
    assert sums[0] == (np.arange(1.0, len(h.leaves) + 1) ** 2).sum()


@given(hierarchies(names=plain))
def test_every_constructor_agrees(h):
    up = [h.codes[p] for p in h.parents[0, 1:]]
    assert Hierarchy.from_frame({"code": list(h.codes[1:]), "parent": up}) == h
    assert Hierarchy.from_pairs(zip(h.codes[1:], up, strict=True)) == h
    outline = "\n".join(" " * d + c for c, d in zip(h.codes[1:], h.depth[1:], strict=True))
    assert Hierarchy.from_text(outline, total="Total") == h


@given(hierarchies(names=plain), st.integers(0, 4))
def test_collapsing_keeps_what_is_above(h, level):
    coarse = h.collapse(level)
    assert coarse.codes == tuple(c for c, d in zip(h.codes, h.depth, strict=True) if d <= level)
    again = h.recode(h.codes, to=coarse)
    assert all(a == c for a, c in zip(again, h.codes, strict=True) if c in coarse.codes)
    assert set(again) == set(coarse.codes)


@settings(max_examples=80)
@given(st.data())
def test_relations_span_whatever_is_published(data):
    dims = {name: data.draw(hierarchies(most=4, names=plain)) for name in "abc"[: data.draw(st.integers(1, 3))]}
    crossing = st.lists(st.sampled_from(list(dims)), unique=True).map(tuple)
    chosen = data.draw(st.none() | st.lists(crossing, min_size=1, max_size=5))
    if chosen is not None and data.draw(st.booleans()):
        chosen = [{name: data.draw(st.integers(1, 3)) for name in c} for c in chosen]
    shape = [len(h.leaves) for h in dims.values()]
    leaves = np.arange(np.prod(shape)).reshape(shape) % 7
    table = Table.from_leaves(dims, leaves, crossings=chosen)
    rows = sums_of_leaves(table)
    assert np.array_equal(rows @ leaves.ravel(), table.values)
    rank = np.linalg.matrix_rank(table.relations.toarray()) if table.n_relations else 0
    assert table.n_cells - rank == np.linalg.matrix_rank(rows)


@given(hierarchies(most=6), hierarchies(most=4), st.randoms(use_true_random=False), st.data())
def test_rows_in_any_order_give_the_same_table(one, two, random, data):
    shape = (len(one.leaves), len(two.leaves))
    leaves = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    )
    table = Table.from_leaves({"x": one, "y": two}, leaves.reshape(shape))
    rows = [
        (one.codes[i], two.codes[j], v)
        for (i, j), v in zip(((i, j) for i in one.leaves for j in two.leaves), leaves.tolist(), strict=True)
        if v
    ]
    random.shuffle(rows)
    frame = {"x": [r[0] for r in rows], "y": [r[1] for r in rows], "value": [r[2] for r in rows]}
    assume(rows)
    again = Table.from_frame(frame, {"x": one, "y": two})
    assert np.array_equal(table.values, again.values)
    assert (table.relations != again.relations).nnz == 0


numbers = st.floats(0, 1e60, allow_subnormal=False)


@settings(max_examples=30)
@given(hierarchies(most=6), st.data(), st.sampled_from(["csv", "parquet"]))
def test_files_keep_every_code_and_every_bit(h, data, ending):
    n = len(h.leaves)
    leaves = data.draw(st.lists(numbers, min_size=n, max_size=n))
    dimension = data.draw(codes)
    weights = data.draw(st.lists(numbers, min_size=len(h), max_size=len(h)))
    table = Table.from_leaves({dimension: h}, leaves, weights=weights, name=data.draw(st.text(max_size=5)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.{ending}"
        table.write(path)
        again = Table.read(path)
    assert np.array_equal(table.values[h.leaves], again.values[h.leaves])
    np.testing.assert_allclose(again.values, table.values, rtol=2e-15)  # totals are added up again when read
    assert np.array_equal(table.weights, again.weights)
    assert table.hierarchies == again.hierarchies
    assert (table.dimensions, table.name) == (again.dimensions, again.name)


CELLS = b"region,sex,value,status,lower\nN1,f,1.5,s,0\nN2,m,77.125,u,1\nS1,f,4,s,0\nTotal,Total,82.625,s,0\n"
TOML = b'name = "t"\n[dimensions.region]\noutline = """\nN\n  N1\n  N2\nS1\n"""\n[dimensions.sex]\n'


@settings(max_examples=150)
@given(st.data())
def test_damaged_files_are_refused_clearly_or_read(data):
    files = {"t.csv": CELLS, "t.toml": TOML}
    victim = data.draw(st.sampled_from(sorted(files)))
    content = bytearray(files[victim])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, max(len(content) - 1, 0)))
        kind = data.draw(st.sampled_from(["cut", "change", "insert", "repeat"]))
        if kind == "cut":
            del content[at:]
        elif kind == "change" and content:
            content[at] = data.draw(st.integers(0, 255))
        elif kind == "insert":
            content[at:at] = data.draw(st.binary(max_size=4))
        else:
            content[at:at] = content[at : at + 20]
    files[victim] = bytes(content)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_bytes(text)
        said = ""
        try:
            Table.read(Path(folder) / "t.csv")
        except CellguardError as error:
            said = str(error)
    assert "77.125" not in said


@given(st.binary(max_size=200), st.sampled_from(["x.hrc", "x.txt", "x.csv", "x.parquet"]))
def test_any_bytes_are_no_hierarchy_or_one(content, name):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        with suppress(CellguardError):
            Hierarchy.read(path)

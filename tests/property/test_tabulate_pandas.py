"""Totals, counts and largest contributions of larger tables, against pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cellguard as cg


def random_hierarchy(rng: np.random.Generator, prefix: str) -> cg.Hierarchy:
    """A tree with leaves at different depths."""
    parents, codes = [-1], ["Total"]
    for i in range(int(rng.integers(3, 25))):
        # a code hangs below the total or below a recent one, so that trees are bushy and deep
        parents.append(int(rng.integers(0, len(codes))) if rng.random() < 0.5 else 0)
        codes.append(f"{prefix}{i}")
    frame = {"code": codes[1:], "parent": [codes[p] for p in parents[1:]]}
    return cg.Hierarchy.from_frame(frame, total="Total")


def exploded(frame: pd.DataFrame, hierarchies: dict[str, cg.Hierarchy]) -> pd.DataFrame:
    """Every record once for each cell it belongs to."""
    for name, h in hierarchies.items():
        M = h.build_matrix().tocoo()
        links = pd.DataFrame(
            {name: np.array(h.codes)[h.leaves[M.coords[1]]], f"{name}_": np.array(h.codes)[M.coords[0]]}
        )
        frame = frame.merge(links, on=name)
    return frame


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32 - 1), holdings=st.booleans())
def test_three_dimensions_against_pandas(seed, holdings):
    rng = np.random.default_rng(seed)
    names = ["region", "nace", "size"]
    hierarchies = {name: random_hierarchy(rng, name[0]) for name in names}
    n = int(rng.integers(200, 600))
    frame = pd.DataFrame({name: rng.choice(np.array(h.codes)[h.leaves], n) for name, h in hierarchies.items()})
    frame["x"] = rng.lognormal(2, 2, n).round(2)
    frame["who"] = rng.integers(0, n // 3, n) if holdings else np.arange(n)
    table = cg.tabulate(frame, hierarchies, "x", holding="who" if holdings else None)

    every = exploded(frame, hierarchies)
    keys = [f"{name}_" for name in names]
    sums = every.groupby(keys)["x"].sum()
    per = every.groupby([*keys, "who"])["x"].sum()
    count = per.groupby(keys).size()
    ranked = per.sort_values(ascending=False, kind="stable")
    place = ranked.groupby(keys).cumcount()

    codes = table.cell_codes()
    index = pd.MultiIndex.from_arrays([codes[name] for name in names], names=keys)
    assert table.values == pytest.approx(sums.reindex(index, fill_value=0.0).to_numpy(), rel=1e-12, abs=1e-9)
    assert np.array_equal(table.counts, count.reindex(index, fill_value=0).to_numpy())
    for k in range(3):
        largest = ranked[place == k].droplevel("who").reindex(index, fill_value=0.0).to_numpy()
        column = table.statistics.top[:, k] if table.statistics.top.shape[1] > k else 0 * largest
        assert column == pytest.approx(largest, rel=1e-12)

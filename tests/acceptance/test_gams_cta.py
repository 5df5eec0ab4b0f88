"""Controlled tabular adjustment of Cox, Kelly and Patil (2005), as the GAMS model `cta` solves it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import cellguard as cg

DIMENSIONS = ("plane", "row", "column")


@pytest.fixture(scope="module")
def table(acceptance) -> cg.Table:
    """Return 5 x 9 x 3 cells with totals; 24 sensitive; empty cells stay empty."""
    with acceptance("gams_cta/table.csv").open() as file:
        rows = list(csv.DictReader(file))
    codes = {d: sorted({row[d] for row in rows} - {"total"}) for d in DIMENSIONS}
    leaves = np.zeros([len(codes[d]) for d in DIMENSIONS])
    for row in rows:
        if "total" not in [row[d] for d in DIMENSIONS]:
            leaves[tuple(codes[d].index(row[d]) for d in DIMENSIONS)] = float(row["value"])
    made = cg.Table.from_leaves(codes, leaves, weights=1.0)
    labels = made.cell_codes(np.arange(made.n_cells))
    place = {key: i for i, key in enumerate(zip(*(labels[d] for d in DIMENSIONS), strict=True))}
    level = np.zeros(made.n_cells)
    for row in rows:
        cell = place[tuple("Total" if row[d] == "total" else row[d] for d in DIMENSIONS)]
        assert made.values[cell] == float(row["value"])
        level[cell] = float(row["level"] or 0.0)
    return made.with_(sensitive=level > 0, lower=level, upper=level, fixed=made.values == 0)


def test_the_closest_table_with_optimal_directions_costs_2420(table: cg.Table, acceptance) -> None:
    release = cg.adjust(table, norm="l1", weights="unit", senses="optimal", surplus=0, gap=0.0, time_limit_s=60)
    assert release.status is cg.Status.OPTIMAL
    assert release.objective == pytest.approx(2420.0)
    assert release.bound == pytest.approx(2420.0, rel=1e-6)
    with acceptance("gams_cta/expected_adjustment.csv").open() as file:
        assert sum(abs(float(row["adjustment"])) for row in csv.DictReader(file)) == 2420.0


def test_senses_fixed_beforehand_cost_more(table: cg.Table) -> None:
    for senses in ("upper", "lower"):
        release = cg.adjust(table, norm="l1", weights="unit", senses=senses, surplus=0)
        assert not release.published or release.objective > 2420.0

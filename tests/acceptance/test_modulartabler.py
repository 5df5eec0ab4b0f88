"""Exact suppression: the optima that the tests of the R package modulartabler expect."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import cellguard as cg


@pytest.mark.parametrize(("name", "optimum"), [("test-prior-constraints", 136.0), ("test-high-dim", 246.0)])
def test_the_optimum_is_proven(acceptance, name: str, optimum: float) -> None:
    table = cg.Table.read(acceptance(f"modulartabler/{name}.jj"))
    release = cg.suppress(table, gap=0.0, time_limit_s=60)
    assert release.status is cg.Status.OPTIMAL
    assert (release.objective, release.bound) == (optimum, optimum)
    assert release.audit().safe
    with acceptance(f"modulartabler/{name}.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    withheld = np.array([row["suppress_pattern"] == "1" for row in rows])
    assert float(table.weights[withheld & ~table.sensitive].sum()) == optimum


def test_three_by_three_of_fischetti_and_salazar(acceptance) -> None:
    with acceptance("modulartabler/fischetti_3x3.csv").open() as file:
        rows = list(csv.DictReader(file))
    counts = np.array([float(row["count"]) for row in rows]).reshape(3, 3)
    dims = {name: sorted({row[name] for row in rows}) for name in ("region", "activity")}
    table = cg.Table.from_leaves(dims, counts, integer=True)
    inner = (table.coordinates > 0).all(axis=1)
    sensitive = inner & (table.values <= 9)
    table = table.with_(weights=table.values, sensitive=sensitive, sliding=np.where(sensitive, 1.0, 0.0))
    release = cg.suppress(table, gap=0.0)
    assert release.status is cg.Status.OPTIMAL
    assert release.objective == 51.0
    assert release.suppressed[inner].tolist() == [row["withheld"] == "1" for row in rows]


@pytest.mark.parametrize(("level", "most"), [("upper", 2), ("lower", 2), ("sliding", 4)])
def test_levels_beyond_what_is_known_are_refused(level: str, most: int) -> None:
    """A = 2, B = 4, Total = 6, A sensitive; attackers know every value up to itself either way."""

    def make(amount: float) -> cg.Table:
        return cg.Table.from_equations([2, 4, 6], [[2, 0, 1]], ub=[4, 8, 12], sensitive=[0], **{level: [amount]})

    with pytest.raises(cg.exceptions.LevelError, match=level):
        make(most + 1)
    release = cg.suppress(make(most))
    assert release.status is cg.Status.OPTIMAL
    assert release.suppressed.tolist() == [True, True, False]

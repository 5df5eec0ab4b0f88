"""Perturbation area by area: the finest areas by themselves, the others by addition (salazar2004 section 5)."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from builders import key
from cellguard.exceptions import InputError
from cellguard.model.areas import split_into_areas


def make_census(wards=3, districts=1):
    """Return a small census with sensitive counts in wards and one sensitive sum."""
    table = cg.generate.census(1, wards=wards, districts=districts)
    areas = split_into_areas(table, "area")
    small = (table.values > 0) & (table.values < 4) & areas.finest
    small[np.flatnonzero(~areas.finest & (table.values > 20))[:2]] = True
    return table.with_(sensitive=small, sliding=np.where(small, 4.0, 0.0), weights=np.ones(table.n_cells))


def test_a_census_is_perturbed_area_by_area_and_adds_up():
    table = make_census()
    areas = split_into_areas(table, "area")
    release = cg.perturb(table, base=5, areas="area", key=key(16))
    assert release.published
    assert cg.audit(release).safe
    assert not (table.relations @ release.values).any()
    assert (release.values == np.rint(release.values)).all()
    assert (np.abs(release.values - table.values)[areas.finest] <= 5).all()
    assert (release.values != table.values)[table.sensitive].all()
    # a sum may be as far from the truth as its wards together, and the release says so
    total = int(np.argmax(areas.sums.sum(axis=1)))
    assert release.distance[total] == 5 * 3
    again = cg.perturb(table, base=5, areas="area", key=key(16))
    assert (again.values == release.values).all()


def test_every_area_is_solved_where_the_whole_table_is_not():
    """The whole-number program of this census does not end; its 60 wards do, one by one."""
    table = cg.generate.census(1, wards=60, districts=4)
    release = cg.perturb(table, base=5, areas="area", time_limit_s=60)
    assert release.published
    assert str(release.status) == "optimal"
    assert not (table.relations @ release.values).any()


def test_a_sum_that_must_move_is_drawn_until_it_moves():
    codes = {"area": ["N", "S"], "sex": ["f", "m"]}
    table = cg.Table.from_leaves(codes, [[10.0, 11.0], [13.0, 17.0]], weights=1.0, integer=True)
    total = table.cell({"sex": "f"})
    sensitive = np.arange(table.n_cells) == total
    table = table.with_(sensitive=sensitive, sliding=np.where(sensitive, 3.0, 0.0))
    for seed in range(12):
        release = cg.perturb(table, base=5, areas="area", key=key(seed))
        assert release.values[total] != table.values[total]


def test_the_written_file_is_read_with_the_distances_of_sums(tmp_path):
    table = make_census(2, 1)
    release = cg.perturb(table, base=5, areas="area")
    release.save(tmp_path / "census.csv")
    assert release.get_published_parameters() == {"distance": 5.0, "areas": "area"}
    back = cg.read_release(table, tmp_path / "census.csv", method="perturb", distance=5, areas="area")
    assert (back.distance == release.distance)[~release.table.fixed].all()
    assert cg.audit(back).safe


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"areas": "region"}, "areas 'region' is not known"),
        ({"areas": "area", "round_sensitive": True}, "sums of areas are not rounded"),
        ({"areas": "area", "given": {0: 5}}, "is a sum of areas"),
    ],
)
def test_what_areas_cannot_do_is_refused(options, why):
    with pytest.raises(InputError, match=why):
        cg.perturb(make_census(2, 1), base=5, **options)

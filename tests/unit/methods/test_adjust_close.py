"""Adjusted tables that people can use: close to the truth, with senses that stay secret."""

from __future__ import annotations

import numpy as np
import pytest

import cellguard as cg
from cellguard import generate
from cellguard.methods.adjust.change_limit import ChangeLimit
from cellguard.methods.registry import METHODS
from cellguard.model.key import Key


def key(number: int) -> Key:
    return Key.from_public_number(number)


@pytest.fixture(scope="module")
def table() -> cg.Table:
    return generate.hierarchical(2, branching=((3, 4), (3, 4)), sensitive=0.12)


def measure_changes(release) -> tuple[float, float]:
    """Return the mean change of all cells, and the largest of those that are not sensitive, as shares."""
    a, x = release.table.values, release.values
    positive = a > 0
    change = np.abs(x - a)[positive] / a[positive]
    return float(change.mean()), float(change[~release.table.sensitive[positive]].max())


def test_the_mean_change_is_at_most_twice_the_optimum_of_the_paper(table):
    plain = cg.adjust(table, norm="l1", senses="optimal", surplus=0, integer=False, time_limit_s=3)
    best, _ = measure_changes(plain)
    for number in range(3):
        release = cg.adjust(table, key=key(number), integer=False)
        mean, largest = measure_changes(release)
        assert release.audit().safe
        assert mean <= 2 * best
        assert largest <= 0.5 + 1e-9
        assert release.details["beyond_max_change"] == 0
        assert release.details["bits"] > 5
        assert not release.details["far_from_truth"]


def test_keys_lead_to_different_senses_and_the_same_key_to_the_same_bytes(table):
    first, again, other = (cg.adjust(table, key=key(k)) for k in (1, 1, 2))
    assert first.values.tobytes() == again.values.tobytes()
    s = table.sensitive_cells
    assert (np.sign(first.values - table.values)[s] != np.sign(other.values - table.values)[s]).any()


def test_a_tighter_limit_of_changes_is_kept_or_said_to_be_relaxed(table):
    free, tight = (cg.adjust(table, key=key(1), max_change=share) for share in (None, 0.08))
    assert "beyond_max_change" not in free.details
    _, largest = measure_changes(tight)
    assert (largest <= 0.08 + 1e-9) == (tight.details["beyond_max_change"] == 0)
    assert largest <= 0.08 + 1e-9 or "more than 8%" in tight.explanation


def test_a_useless_release_says_so():
    leaves = np.array([[100.0, 4.0], [4.0, 3.0]])
    t = cg.Table.from_leaves({"x": ["a", "b"], "y": ["c", "d"]}, leaves)
    large = np.where(t.values == 100.0, 60.0, 0.0)
    t = t.with_(sensitive=large > 0, lower=large, upper=large)
    release = cg.adjust(t, key=key(1), integer=False)
    assert release.published
    assert release.details["far_from_truth"]
    assert "far from the truth" in release.explanation
    assert release.summary()["far_from_truth"] is True


def test_a_limit_that_would_disclose_a_cell_is_noticed():
    # the total and the other part are within 1%: what is left is known to within a tenth of the level
    t = cg.Table.from_equations([100, 2, 102], [[2, 0, 1]], sensitive=[0], lower=[20], upper=[20])
    most = np.where(t.sensitive, np.inf, 0.01 * t.values)
    narrow = ChangeLimit(share=0.01, least=0.0, most=most)
    wide = ChangeLimit(share=0.5, least=0.0, most=np.where(t.sensitive, np.inf, 0.5 * t.values))
    assert narrow.is_disclosive(t, t.values, 5.0)
    assert wide.is_disclosive(t, t.values, 5.0) is False


def test_there_is_one_default_norm():
    option = METHODS["adjust"].get_option("norm")
    assert option.default == option.get_job_default(lambda _: None) == "l1"
    t = cg.Table.from_equations([12, 8, 20], [[2, 0, 1]], sensitive=[2], upper=[4], lower=[4])
    assert cg.adjust(t, key=key(1)).options["norm"] == "l1"
    assert cg.compare(t, ["adjust"], time_limit_s=5).releases["adjust"].options["norm"] == "l1"


def test_decimals_counts_candidates_that_contain_the_truth(table):
    from cellguard.attacks.decimals import DecimalIntruder

    release = cg.adjust(table, key=key(3))
    seen = DecimalIntruder(release)
    a = table.values[seen.cells]
    inside = (seen.first <= a) & (a <= seen.last)
    assert inside.any(axis=0).mean() > 0.7  # some cells are pushed further than level and surplus
    assert cg.attack(release, "B1", replications=2).distribution["0"] == 0.0

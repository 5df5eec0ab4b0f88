"""Every method: what the audit calls safe carries witnesses that fractions alone accept."""

from dataclasses import replace

import numpy as np
import pytest

import cellguard as cg
from cellguard.nouns.release import Adjustment


def table():
    leaves = [[20, 50, 10, 31], [8, 19, 22, 5], [17, 32, 12, 40]]
    rows, columns = ["I", "II", "III"], ["A", "B", "C", "D"]
    return cg.Table.from_leaves({"activity": rows, "region": columns}, leaves, sensitive=[13], lower=3, upper=4)


METHODS = {
    "suppress": lambda t: cg.suppress(t, method="heuristic", time_limit_s=2),
    "intervals": cg.intervals,
    "round": lambda t: cg.round(t, base=5),
    "perturb": lambda t: cg.perturb(t, base=5),
    "adjust": lambda t: cg.adjust(t, norm="l1"),
}


@pytest.mark.parametrize("method", METHODS)
def test_safe_releases_carry_witnesses_that_are_accepted(method, tmp_path):
    release = METHODS[method](table())
    found = cg.audit(release)
    assert found.safe
    assert found.unknown == 0
    proofs = list(found.witnesses.values())
    assert cg.verify(release, proofs).accepted
    release.save(tmp_path / "release.csv")
    options = {
        "round": {"base": 5.0, "step": getattr(release, "step", 1)},
        "perturb": {"distance": 5.0},
        "adjust": {"method": "adjust"},
    }.get(method, {})
    again = cg.read_release(table(), tmp_path / "release.csv", **options)
    assert cg.audit(again).safe
    assert cg.verify(again, proofs).accepted


@pytest.mark.parametrize("method", METHODS)
def test_the_audit_is_independent_of_the_method(method):
    """The same release, told by nobody that it is safe, with levels nobody asked for."""
    release = METHODS[method](table())
    greedy = table().with_(upper=np.where(table().sensitive, 60.0, 0.0), lower=np.where(table().sensitive, 5.0, 0.0))
    found = cg.audit(replace(release, table=greedy))
    if not isinstance(release, Adjustment):
        assert not found.safe
    assert cg.verify(found.release, list(found.witnesses.values())).accepted is found.safe

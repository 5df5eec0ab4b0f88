"""Every method: what the audit calls safe carries witnesses that fractions alone accept."""

from dataclasses import replace

import numpy as np

import cellguard as cg
from cellguard.release.release import Adjustment
from contract.kinds import EVERY_METHOD, protect, read_again


def table():
    leaves = [[20, 50, 10, 31], [8, 19, 22, 5], [17, 32, 12, 40]]
    rows, columns = ["I", "II", "III"], ["A", "B", "C", "D"]
    return cg.Table.from_leaves({"activity": rows, "region": columns}, leaves, sensitive=[13], lower=3, upper=4)


@EVERY_METHOD
def test_safe_releases_carry_witnesses_that_are_accepted(method, tmp_path):
    release = protect(method, table())
    found = cg.audit(release)
    assert found.safe
    assert found.unknown == 0
    proofs = list(found.witnesses.values())
    assert cg.verify(release, proofs).accepted
    again = read_again(release, tmp_path / "release.csv")
    assert cg.audit(again).safe
    assert cg.verify(again, proofs).accepted


@EVERY_METHOD
def test_the_audit_is_independent_of_the_method(method):
    """The same release, told by nobody that it is safe, with levels nobody asked for."""
    release = protect(method, table())
    greedy = table().with_(upper=np.where(table().sensitive, 60.0, 0.0), lower=np.where(table().sensitive, 5.0, 0.0))
    found = cg.audit(replace(release, table=greedy))
    if not isinstance(release, Adjustment):
        assert not found.safe
    assert cg.verify(found.release, list(found.witnesses.values())).accepted is found.safe

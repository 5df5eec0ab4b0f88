import numpy as np

import cellguard as cg
from cellguard.datasets.examples import salazar2004_figure1
from cellguard.jobs.checkpoint import Checkpoints


def round_trip(tmp_path, value):
    first = Checkpoints(tmp_path, "k").run_step("x", lambda: value)
    again = Checkpoints(tmp_path, "k").run_step("x", lambda: None)
    assert (first[1], again[1]) == (False, True)
    return again[0]


def test_a_release_and_its_audit_survive(tmp_path):
    table = salazar2004_figure1().apply(cg.Manual([6], percent=20), lower_ratio=0.5)
    release = cg.intervals(table)
    audit = round_trip(tmp_path, release.audit(exact=True))
    assert audit.safe
    assert audit.release.table is not None
    np.testing.assert_array_equal(audit.release.lower, release.lower)
    np.testing.assert_array_equal(audit.release.table.lower, table.lower)
    assert audit.release.table.reasons(6) == table.reasons(6)
    assert audit.release.table.hierarchies == table.hierarchies
    assert audit.release.summary() == release.summary()
    assert audit.witnesses.keys() == {"external"}


def test_the_table_is_kept_once(tmp_path):
    audit = round_trip(tmp_path, cg.intervals(salazar2004_figure1()).audit())
    assert audit.findings[0].attacker is audit.release.table.attackers[0]


def test_another_key_counts_for_nothing(tmp_path):
    Checkpoints(tmp_path, "a").run_step("x", lambda: 1)
    assert Checkpoints(tmp_path, "b").run_step("x", lambda: 2) == (2, False)

"""The list of tables of rtauargus: 12 tables become 4 in 2 clusters."""

import cellguard as cg

EXPECTED = {"to_pizza": ["T1.T2", "T3.T4.T5.T6"], "LETTUCE": ["T11.T7.T9", "T10.T12.T8"]}


def test_twelve_tables_become_four_in_two_clusters(acceptance):
    path = acceptance("rtauargus_metadata/metadata_pizza_lettuce.csv")
    plan = cg.plan_tables(path)
    assert plan.summary() == {"listed": 12, "tables": 4, "clusters": EXPECTED}
    again = cg.plan_tables(path, equations=["to_lettuce = to_batavia + to_arugula"])
    assert again.summary()["clusters"] == EXPECTED

"""The simulated zonings of diffman: 34,695 ids in 199 and 406 areas that do not nest."""

import cellguard as cg


def test_intersections_and_small_ones(acceptance):
    found = cg.find_differences(acceptance("diffman/t_ex.csv.gz"), ["z1", "z2"], minimum=11)
    told = found.summary()
    assert (told["pieces"], told["small_pieces"], told["records_in_small_pieces"]) == (622, 249, 1097)
    assert (told["disclosed_pieces"], told["disclosed_records"]) == (196, 866)
    assert all(0 < difference.count < 11 for difference in found.found)

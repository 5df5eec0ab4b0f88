"""What is said when no intervals of counts are found."""

from __future__ import annotations

import cellguard as cg
from cellguard.methods.intervals import count_search
from cellguard.model.key import Key


def test_a_cube_of_small_counts_is_refused_for_the_right_reason(monkeypatch):
    monkeypatch.setattr(count_search, "MAX_ROUNDS", 3)
    cube = cg.generate.cube(1, sides=(4, 4, 4), threshold=4)
    release = cg.intervals(cube, key=Key.from_public_number(4), time_limit_s=60)
    assert not release.published
    assert "none of 3 draws" in release.explanation
    assert "d1=" in release.explanation
    assert "limit was reached" not in release.explanation

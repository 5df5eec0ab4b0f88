"""The same table, options and seed give the same public bytes as when they were recorded.

What changes them on purpose records them anew (``python tests/recorded/record.py``) and says so in the changelog.
"""

import json

import pytest

from recorded.record import RECORDED, describe_release
from recorded.releases import RELEASES

KNOWN = json.loads(RECORDED.read_text())


def test_every_release_is_recorded():
    assert set(KNOWN) == set(RELEASES)
    assert sum("sha256" in entry for entry in KNOWN.values()) >= 60


@pytest.mark.parametrize("name", list(RELEASES))
def test_a_release_has_the_bytes_that_were_recorded(name):
    assert describe_release(name) == KNOWN[name]

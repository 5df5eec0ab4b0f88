"""The clock of time limits stands still while loops are compiled, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cellguard._engine import clock

FIRST_RUN = """
import cellguard as cg
table = cg.Table.from_equations(
    [1, 2, 4, 7, 5, 4, 6, 15, 9, 3, 2, 14, 15, 9, 12, 36],
    [[3, 0, 1, 2], [7, 4, 5, 6], [11, 8, 9, 10], [15, 12, 13, 14],
     [12, 0, 4, 8], [13, 1, 5, 9], [14, 2, 6, 10], [15, 3, 7, 11]],
    sensitive=[6], lower=[4], upper=[4],
)
print(cg.suppress(table, time_limit_s=3).status.value)
"""


@pytest.mark.slow
def test_a_first_run_does_not_end_at_its_limit_because_it_compiles(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_RUN], env=environment, capture_output=True, text=True, check=False
    )
    assert ran.stdout.strip() == "optimal", ran.stderr


def test_stops_are_nested_and_the_clock_goes_on() -> None:
    begin = clock.now()
    with clock.stopped(), clock.stopped():
        time.sleep(0.2)
        assert clock.now() - begin < 0.1
    assert clock.now() - begin < 0.1
    time.sleep(0.2)
    assert clock.now() - begin >= 0.2


def test_a_stop_that_fails_ends() -> None:
    with pytest.raises(ValueError, match="no"), clock.stopped():
        raise ValueError("no")
    begin = clock.now()
    time.sleep(0.01)
    assert clock.now() > begin

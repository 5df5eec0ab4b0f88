"""What all tests share: the benchmark tables of the field, and how Hypothesis searches."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # what tests share is imported by its name: builders, contract, adversary
CSPLIB = Path(os.environ.get("CELLGUARD_CSPLIB", ROOT.parent / "shared" / "csplib"))

# A run that was started in the background hears no Ctrl-C, and what it starts would not either: tests send it.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Every run draws new examples; `--hypothesis-seed` repeats them, and CI uses a fixed seed.
# HYPOTHESIS_PROFILE=explore draws many more.
settings.register_profile("default", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def csplib() -> Callable[[str], Path]:
    """Return the file of a CSPLIB table; the test is skipped where the library is not there."""

    def find(name: str) -> Path:
        path = CSPLIB / f"{name}.jj.gz"
        if not path.is_file():
            pytest.skip(f"CSPLIB is not there ({path}); set CELLGUARD_CSPLIB")
        return path

    return find

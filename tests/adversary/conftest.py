"""The adversary's modules import each other as ``adversary.*``, here and in ``make adversary``."""

import sys
from pathlib import Path

TESTS = str(Path(__file__).resolve().parents[1])
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)

"""Where other projects' test cases are: data beside the repository, not part of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ACCEPTANCE = Path(os.environ.get("CELLGUARD_ACCEPTANCE", ROOT.parent / "shared" / "acceptance"))


@pytest.fixture(scope="session")
def acceptance() -> Callable[[str], Path]:
    """Return a file of the acceptance data; the test is skipped where it is not there."""

    def find(name: str) -> Path:
        path = ACCEPTANCE / name
        if not path.is_file():
            pytest.skip(f"the acceptance data are not there ({path}); set CELLGUARD_ACCEPTANCE")
        return path

    return find

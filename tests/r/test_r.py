"""The page for users of R runs in R."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "r.md"


def has_r() -> bool:
    """Say whether R and reticulate are there."""
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", 'quit(status = !requireNamespace("reticulate", quietly = TRUE))']
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not has_r(), reason="R and reticulate are not there")
def test_the_page_for_users_of_r_runs(tmp_path):
    blocks = re.findall(r"```r\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 5
    script = tmp_path / "page.R"
    script.write_text("\n".join(blocks), encoding="utf-8")
    paths = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "RETICULATE_PYTHON": sys.executable, "PYTHONPATH": paths}
    done = subprocess.run(
        ["Rscript", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Suppression(" in done.stdout
    assert (tmp_path / "release.csv").read_text().startswith("region,sector,status,value")

"""A small office: sixty firms, two dimensions, a job."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cellguard.jobs import read_job
from cellguard.jobs.runner import Outcome, run

JOB = """\
name = "small"
insiders = true

[data]
file = "firms.csv"
value = "turnover"

[dimensions.region]
hierarchy = "region.txt"

[dimensions.sector]

[[rules]]
rule = "p_percent"
p = 10

[method]
name = "suppress"
rounds = 2

[output]
folder = "out"
formats = ["csv", "parquet", "xlsx", "jj"]
"""


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """Return a folder with data, a hierarchy and a job."""
    rng = np.random.default_rng(3)
    regions = rng.choice(["N1", "N2", "S1", "S2"], 90, p=[0.4, 0.2, 0.3, 0.1])
    sectors = rng.choice(["A", "B", "=C", "D"], 90, p=[0.4, 0.3, 0.2, 0.1])
    turnover = np.ceil(np.exp(rng.normal(8, 1.4, 90))).astype(int)
    lines = [f"{r},{s},{t}" for r, s, t in zip(regions, sectors, turnover, strict=True)]
    (tmp_path / "firms.csv").write_text("\n".join(["region,sector,turnover", *lines]) + "\n")
    (tmp_path / "region.txt").write_text("Total\n  North\n    N1\n    N2\n  South\n    S1\n    S2\n")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


@pytest.fixture
def outcome(office: Path) -> Outcome:
    """Return what the office's job came to."""
    return run(read_job(office / "job.toml"))

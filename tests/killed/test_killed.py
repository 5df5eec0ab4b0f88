"""A run killed at any moment leaves no partial and no unsafe release, and its successor ends where it would have."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

JOB = """\
name = "small"
seed = 1
[data]
file = "firms.csv"
value = "turnover"
[dimensions.region]
[dimensions.sector]
[[rules]]
rule = "p_percent"
p = 10
[method]
rounds = 3
[output]
folder = "out"
formats = ["csv", "parquet", "xlsx", "jj"]
report = false
"""


def test_sigkill_at_twenty_random_moments(tmp_path):
    rng = np.random.default_rng(8)
    regions = rng.choice([f"R{i}" for i in range(6)], 150)
    sectors = rng.choice(list("ABCDE"), 150)
    turnover = np.ceil(np.exp(rng.normal(8, 1.5, 150))).astype(int)
    lines = [f"{r},{s},{t}" for r, s, t in zip(regions, sectors, turnover, strict=True)]
    (tmp_path / "firms.csv").write_text("\n".join(["region,sector,turnover", *lines]) + "\n")
    (tmp_path / "job.toml").write_text(JOB)
    killer = Path(__file__).with_name("killer.py")
    words = [sys.executable, str(killer), str(tmp_path), "20", "5"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["killed"] == 20
    assert found["resumed"] >= 1

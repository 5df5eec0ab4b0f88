"""A run killed at any moment leaves no partial and no unsafe release, and its successor ends where it would have."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from builders import write_columns, write_job


def test_sigkill_at_twenty_random_moments(tmp_path):
    rng = np.random.default_rng(8)
    columns = {"region": rng.choice([f"R{i}" for i in range(6)], 150), "sector": rng.choice(list("ABCDE"), 150)}
    columns["turnover"] = np.ceil(np.exp(rng.normal(8, 1.5, 150))).astype(int)
    write_columns(tmp_path / "firms.csv", columns)
    output = {"folder": "out", "formats": ["csv", "parquet", "xlsx", "jj"], "report": False}
    write_job(tmp_path, "region", "sector", method={"rounds": 3}, output=output)
    killer = Path(__file__).with_name("killer.py")
    words = [sys.executable, str(killer), str(tmp_path), "20", "5"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert found["killed"] == 20
    assert found["resumed"] >= 1

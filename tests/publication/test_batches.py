"""The batches of tau-ARGUS that rtauargus writes, as they are: primaries and secondaries of the published optimum.

The files are those of a public example (see ``shared/publication/argus``); without them the tests are skipped.
"""

import csv
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from cellguard.argus import run_batch

FOLDER = Path(os.environ.get("CELLGUARD_PUBLICATION", Path(__file__).resolve().parents[3] / "shared" / "publication"))
pytestmark = pytest.mark.skipif(not (FOLDER / "argus").is_dir(), reason="the example's files are not here")


@pytest.mark.parametrize(("batch", "primary", "secondary"), [("ex2", 77, 64), ("ex2n", 75, 62)])
def test_a_batch_of_rtauargus_runs_unchanged_to_the_published_optimum(batch, primary, secondary, tmp_path):
    """ex2 has a line with a tiny level for a sensitive zero, ex2n leaves it out."""
    for path in (FOLDER / "argus").iterdir():
        shutil.copyfile(path, tmp_path / path.name)
    outcome = run_batch(tmp_path / f"{batch}.arb")
    facts = outcome.results[0].summarize()
    assert outcome.safe
    assert (facts["primary"], facts["secondary"], facts["status"]) == (primary, secondary, "optimal")
    with (tmp_path / "ex2_out.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))
    told = Counter(row[-2] for row in rows)
    assert told["B"] == primary
    assert told["D"] == secondary
    assert any(float(row[-1]) > 50 for row in rows if row[-2] == "B")

"""One pass over a file tells its hash and its encoding; a job makes no second one."""

import gzip
import hashlib
from pathlib import Path

import pytest

from builders import write_job
from cellguard._io import facts
from cellguard.jobs import read_job
from cellguard.jobs.runner import run


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("text", "utf8"), [("né\n" * 3, True), ("n\n", True)])
def test_the_hash_is_of_the_bytes_and_the_encoding_of_the_text(tmp_path: Path, packed: bool, text: str, utf8: bool):
    for encoding, expected in (("utf-8", utf8), ("latin-1", text.isascii())):
        raw = text.encode(encoding)
        path = tmp_path / ("a.csv.gz" if packed else "a.csv")
        path.write_bytes(gzip.compress(raw) if packed else raw)
        found = facts.read_file_facts(path)
        assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
        assert found.utf8 is expected


def test_what_cannot_be_unpacked_is_hashed_all_the_same(tmp_path: Path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" * 99)[:-6] + b"\0" * 99)
    assert facts.read_file_facts(path).digest == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_file_that_changed_is_read_again(tmp_path: Path):
    path, known = tmp_path / "a.csv", facts.ReadOnce()
    path.write_text("a\n")
    first = known.get_facts(path)
    assert known.get_facts(path) is first
    path.write_bytes(b"\xe9\xe9\n")
    assert known.get_facts(path).digest != first.digest
    assert known.get_encoding([path]) == "latin-1"


def test_a_job_reads_its_data_once_for_hash_and_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    rows = [f"r{k % 2},t{k},{k + 10}" for k in range(6)]
    (tmp_path / "firms.csv").write_bytes("\n".join(["region,town,turnover", *rows, "r0,Zürich,7"]).encode("latin-1"))
    job = write_job(
        tmp_path, nothing_sensitive="publish", dimensions={"town": {"levels": ["region", "town"]}},
        rules=[{"rule": "min_frequency", "n": 1}], output={"folder": "out", "report": False},
    )  # fmt: skip
    passes = []
    plain = facts.read_file_facts
    monkeypatch.setattr(facts, "read_file_facts", lambda path: passes.append(path.name) or plain(path))
    monkeypatch.setattr("cellguard.tabulation.engines.duck._is_utf8", lambda _: pytest.fail("another look for it"))
    outcome = run(read_job(job))
    assert passes == ["firms.csv"]
    assert "Zürich" in outcome.release.table.codes[0]

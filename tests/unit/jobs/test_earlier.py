"""The ledger speaks: a table that was published before, or shares cells with an earlier release, is reported first."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.jobs import read_job
from cellguard.jobs.outputs.earlier import RepeatedReleaseError, find_earlier, hash_cells
from cellguard.jobs.outputs.ledger import read_entries
from cellguard.jobs.outputs.signing import KEY_FILE
from cellguard.jobs.runner import run

KEY = b"k" * 40


def change_job(office, old, new, name="job.toml"):
    text = (office / "job.toml").read_text()
    assert old in text
    (office / name).write_text(text.replace(old, new))
    return office / name


def test_another_release_of_the_same_table_is_refused_before_anything_is_written(outcome, office, capsys):
    before = {path.name: path.read_bytes() for path in (office / "out" / "public").iterdir()}
    job = change_job(office, 'name = "suppress"\nrounds = 2', 'name = "intervals"')
    assert main(["protect", str(job)]) == 1
    told = capsys.readouterr().err
    assert "cells of this table were published before: out of " in told
    count = int(np.count_nonzero(outcome.release.table.values))
    assert f"({count:,} shared cells)" in told
    assert "--again" in told
    assert {path.name: path.read_bytes() for path in (office / "out" / "public").iterdir()} == before
    assert len(read_entries(office)[0]) == 1
    assert main(["protect", str(job), "--again"]) == 0
    assert "protect" in json.loads((office / "out" / "internal" / "timing.json").read_text())["resumed"]
    assert len(read_entries(office)[0]) == 2


def test_a_job_can_confirm_it(outcome, office):
    job = change_job(office, "[output]", "[ledger]\nagain = true\n\n[output]")
    text = job.read_text().replace('name = "suppress"\nrounds = 2', 'name = "intervals"')
    job.write_text(text)
    run(read_job(job), folder=office / "elsewhere")
    assert len(read_entries(office)[0]) == 2


def test_the_same_files_again_are_reported_and_written(outcome, office, capsys):
    assert main(["protect", str(office / "job.toml")]) == 0
    assert "the same files were released before: out" in capsys.readouterr().err


def test_cells_of_another_table_of_the_same_records_are_found(outcome, office):
    change_job(office, 'name = "small"', 'name = "small"\nnothing_sensitive = "publish"')
    job = change_job(office, '[dimensions.region]\nhierarchy = "region.txt"\n', "", "one.toml")
    with pytest.raises(RepeatedReleaseError, match=r"out of .* \(5 shared cells\)"):
        run(read_job(job), folder=office / "other")
    assert not (office / "other" / "public").exists()


def test_a_renamed_column_hides_nothing(outcome, office):
    (office / "firms.csv").write_text((office / "firms.csv").read_text().replace("region,", "area,", 1))
    job = change_job(office, "[dimensions.region]", "[dimensions.area]", "renamed.toml")
    with pytest.raises(RepeatedReleaseError, match="shared cells"):
        run(read_job(job), folder=office / "other")


def test_other_data_with_the_same_codes_are_another_table(outcome, office):
    lines = (office / "firms.csv").read_text().splitlines()
    changed = [f"{head},{int(last) * 2 + 13}" for head, _, last in (line.rpartition(",") for line in lines[1:])]
    (office / "next.csv").write_text("\n".join([lines[0], *changed]) + "\n")
    job = change_job(office, "firms.csv", "next.csv", "next.toml")
    run(read_job(job), folder=office / "next")
    assert len(read_entries(office)[0]) == 2


def test_the_ledger_holds_no_value_and_says_what_it_cannot_compare(outcome, office, capsys):
    line = read_entries(office)[0][0]
    path = office / "ledger.cells" / f"{line['cells']}.npy"
    assert path.stat().st_mode & 0o777 == 0o600
    hashes = np.load(path)
    assert not np.isin(hashes.view(np.float64), outcome.release.table.values).any()
    shutil.copy(path, office / "kept")
    path.unlink()
    job = change_job(office, 'name = "suppress"\nrounds = 2', 'name = "intervals"', "other.toml")
    with pytest.raises(RepeatedReleaseError, match="missing or damaged"):
        run(read_job(job), folder=office / "other")
    (office / KEY_FILE).write_text("1" * 64)
    with pytest.raises(RepeatedReleaseError, match="another key"):
        run(read_job(job), folder=office / "other")


def test_hashes_do_not_depend_on_names_or_order():
    one = cg.Table.from_leaves({"r": ["a", "b"], "s": ["x", "y"]}, [[1, 2], [3, 4]])
    two = cg.Table.from_leaves({"size": ["y", "x"], "region": ["b", "a"]}, [[4, 2], [3, 1]])
    assert np.array_equal(hash_cells(one, KEY), hash_cells(two, KEY))
    assert not np.isin(hash_cells(one, KEY), hash_cells(one, b"o" * 40)).any()
    assert len(hash_cells(one, KEY)) == 9


def test_without_a_ledger_nothing_was_published(tmp_path):
    assert find_earlier(tmp_path, hash_cells(cg.Table.from_leaves({"r": ["a"]}, [1]), KEY), "x") == []

"""Runs that ended early: Ctrl-C, kills, full disks, other data; one run in a folder at a time."""

import json
import stat

import numpy as np
import pytest

from cellguard.cli import main
from cellguard.exceptions import CellguardError, InputError
from cellguard.jobs import read_job
from cellguard.jobs.outputs.manifest import check_manifest
from cellguard.jobs.outputs.writer import Folders
from cellguard.jobs.progress import Progress
from cellguard.jobs.runner import run
from cellguard.release.release import Suppression


class Impatient(Progress):
    """Somebody who presses Ctrl-C as soon as there is a result."""

    def tell(self, incumbent, bound):  # noqa: ARG002 - told, not heard
        raise KeyboardInterrupt


def test_ctrl_c_ends_with_the_best_safe_result(office):
    outcome = run(read_job(office / "job.toml"), progress=Impatient(quiet=True))
    assert outcome.audit.safe
    manifest = json.loads((office / "out" / "internal" / "manifest.json").read_text())
    assert manifest["repeatable"] is False
    assert check_manifest(office / "out" / "public" / "manifest.json")["accepted"]


def test_an_unbroken_run_is_repeatable(outcome, office):
    assert json.loads((office / "out" / "internal" / "manifest.json").read_text())["repeatable"] is True


def run_on_a_full_disk(office, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    file = read_job(office / "job.toml")
    with monkeypatch.context() as patch:
        patch.setattr("cellguard.jobs.outputs.writer.write_public_files", fail)
        with pytest.raises(OSError, match="No space"):
            run(file)


def test_a_run_goes_on_from_its_checkpoints(office, monkeypatch):
    run_on_a_full_disk(office, monkeypatch)
    assert not (office / "out" / "public").exists()
    assert stat.S_IMODE((office / "out" / ".work").stat().st_mode) == 0o700
    assert run(read_job(office / "job.toml")).resumed == ("tabulate", "flag", "protect", "audit")


def test_a_run_that_found_no_release_is_tried_again(office, monkeypatch, capsys):
    from dataclasses import replace

    from cellguard.jobs import runner as running
    from cellguard.release.release import Status

    def none(table, job, tell, **options):
        return replace(
            found(table, job, tell, **options), status=Status.TIME_LIMIT, objective=float("nan"), explanation="late."
        )

    found = running.protect_table
    with monkeypatch.context() as patch:
        patch.setattr(running, "protect_table", none)
        assert main(["protect", str(office / "job.toml")]) == 2
    assert "raise limits.time_limit_s (now" in capsys.readouterr().err
    assert not (office / "out").exists()  # a table of true values is not left behind
    assert run(read_job(office / "job.toml")).resumed == ()


def test_checkpoints_of_other_data_or_damaged_ones_count_for_nothing(office, monkeypatch):
    run_on_a_full_disk(office, monkeypatch)
    (office / "out" / ".work" / "protect.npz").write_bytes(b"PK\x03\x04 damaged")
    text = (office / "firms.csv").read_text()
    (office / "firms.csv").write_text(text + "N1,A,1\n")
    assert run(read_job(office / "job.toml")).resumed == ()


def test_a_folder_of_somebody_else_is_not_replaced(office, capsys):
    (office / "out" / "public").mkdir(parents=True)
    (office / "out" / "public" / "index.html").write_text("my web site")
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 1
    assert "was not written by cellguard" in capsys.readouterr().err
    assert (office / "out" / "public" / "index.html").read_text() == "my web site"


def ready_table(folder):
    """A job for a table that is already added up; its description names a hierarchy."""
    (folder / "regions.hrc").write_text("North\n@N1\n@N2\nSouth\n@S1\n@S2\n")
    (folder / "cells.toml").write_text('[dimensions.region]\nfile = "regions.hrc"\n[dimensions.size]\n')
    lines = [
        f"{r},{s},{20 + 7 * i + 3 * j}" for i, r in enumerate(["N1", "N2", "S1", "S2"]) for j, s in enumerate("abc")
    ]
    (folder / "cells.csv").write_text("\n".join(["region,size,value", *lines]) + "\n")
    (folder / "job.toml").write_text(
        'name = "cells"\n[data]\ntable = "cells.csv"\n'
        '[[rules]]\nrule = "manual"\ncells = [{region = "N1", size = "a"}]\npercent = 20\n'
        '[method]\nrounds = 1\n[output]\nfolder = "out"\n'
    )
    return folder / "job.toml"


def killed_after(step, job, monkeypatch):
    """Run a job that ends, as by a kill, when `step` begins."""

    def ended(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"cellguard.jobs.runner.{step}", ended)
        with pytest.raises(KeyboardInterrupt):
            run(read_job(job))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("regions.hrc", "North\n@N1\n@N2\nSouth\n@S1\n@S2\n", "North\n@N1\n@S1\nSouth\n@N2\n@S2\n"),
        ("cells.toml", "[dimensions.size]\n", '[dimensions.size]\ntotal = "all"\n'),
        ("cells.csv", "N1,a,20", "N1,a,21"),
    ],
)
def test_every_file_that_is_read_counts_when_a_run_goes_on(tmp_path, monkeypatch, name, old, new):
    job = ready_table(tmp_path)
    killed_after("write_outputs", job, monkeypatch)
    assert list((tmp_path / "out" / ".work").glob("*.npz"))
    text = (tmp_path / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    outcome = run(read_job(job))
    assert outcome.resumed == ()
    fresh = run(read_job(job), folder=tmp_path / "other")
    assert outcome.release.table.codes == fresh.release.table.codes
    assert np.array_equal(outcome.release.table.values, fresh.release.table.values)
    listed = json.loads((tmp_path / "out" / "internal" / "manifest.json").read_text())["inputs"]
    assert {path.rpartition("/")[2] for path in listed} == {"cells.csv", "cells.toml", "regions.hrc"}


def test_files_that_change_places_count_too(office, monkeypatch):
    text = (
        (office / "job.toml")
        .read_text()
        .replace("[dimensions.sector]", '[dimensions.sector]\nhierarchy = "sector.txt"')
    )
    (office / "job.toml").write_text(text)
    (office / "sector.txt").write_text("All\n  A\n  B\n  =C\n  D\n")
    killed_after("write_outputs", office / "job.toml", monkeypatch)
    one, other = (office / "region.txt").read_text(), (office / "sector.txt").read_text()
    (office / "region.txt").write_text(other)
    (office / "sector.txt").write_text(one)
    with pytest.raises(CellguardError, match="codes that the hierarchy does not have"):
        run(read_job(office / "job.toml"))


def test_inputs_that_change_during_the_run_are_noticed(office, monkeypatch):
    audited = Suppression.audit

    def and_changed(self, **options):
        (office / "region.txt").write_text("Total\n  N1\n  N2\n  S1\n  S2\n")
        return audited(self, **options)

    monkeypatch.setattr(Suppression, "audit", and_changed)
    with pytest.raises(InputError, match=r"region\.txt: changed while the job was running; nothing was written"):
        run(read_job(office / "job.toml"))
    assert not (office / "out" / "public").exists()


@pytest.mark.parametrize("name", [".work", "public", "internal"])
def test_a_link_in_the_folder_of_the_outputs_is_refused(office, tmp_path_factory, name, capsys):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "manifest.json").write_text("{}")
    (office / "out").mkdir()
    (office / "out" / name).symlink_to(elsewhere, target_is_directory=True)
    for words in (["protect", str(office / "job.toml")], ["protect", str(office / "job.toml"), "--fresh"]):
        assert main(words) == 1
        assert "is a symbolic link" in capsys.readouterr().err
    assert [path.name for path in elsewhere.iterdir()] == ["manifest.json"]


def test_a_second_run_in_the_same_folder_says_so_and_stops(office, capsys):
    with Folders(office / "out").enter():
        for words in (["protect", str(office / "job.toml")], ["protect", str(office / "job.toml"), "--fresh"]):
            assert main(words) == 1
            assert "another run is at work in this folder" in capsys.readouterr().err
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 0


def test_the_lock_of_a_dead_process_holds_nobody_up(office):
    work = office / "out" / ".work"
    work.mkdir(parents=True)
    (work / "lock").write_text("")
    (work / "tabulate.npz").write_text("what an earlier run left")
    assert run(read_job(office / "job.toml"), fresh=True).audit.safe
    assert not work.exists()

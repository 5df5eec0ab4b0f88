"""The ledger: lines are only added, and one that is changed or taken out is seen."""

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.jobs.outputs.ledger import FILE, add_to_ledger, read_entries
from cellguard.jobs.outputs.manifest import hash_for_manifest


@pytest.fixture
def folder(tmp_path):
    add_to_ledger(tmp_path, "released", {"release": "first", "method": "suppress"})
    add_to_ledger(tmp_path, "signed", {"release": "first", "who": "Å. Meyer"})
    add_to_ledger(tmp_path, "released", {"release": "second", "method": "round"})
    return tmp_path


def test_lines_stand_in_their_order_and_only_the_owner_reads_them(folder):
    lines, whole = read_entries(folder)
    assert [(line["what"], line["release"]) for line in lines] == [
        ("released", "first"),
        ("signed", "first"),
        ("released", "second"),
    ]
    assert lines[1]["who"] == "Å. Meyer"
    assert whole
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", ["changed", "taken out", "no line"])
def test_damage_is_seen(folder, damage):
    path = folder / FILE
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if damage == "changed":
        lines[1] = lines[1].replace("Meyer", "Mayer")
    elif damage == "taken out":
        del lines[1]
    else:
        lines[1] = "none\n"
    path.write_text("".join(lines), encoding="utf-8")
    assert not read_entries(folder)[1]


def test_a_folder_without_a_ledger_has_no_lines(tmp_path):
    assert read_entries(tmp_path) == ([], True)


def test_no_line_goes_through_a_symbolic_link(tmp_path):
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="symbolic link"):
        add_to_ledger(tmp_path, "released", {})
    assert not (tmp_path / "elsewhere").exists()


def test_every_release_of_a_job_stands_in_the_ledger_beside_it(office, capsys):
    assert main(["protect", str(office / "job.toml"), "--quiet"]) == 0
    assert main(["protect", str(office / "job.toml"), "--quiet", "--out", str(office / "again")]) == 0
    lines, whole = read_entries(office)
    assert whole
    assert [(line["what"], line["release"], line["method"]) for line in lines] == [
        ("released", "out", "suppress"),
        ("released", "again", "suppress"),
    ]
    assert lines[0]["manifest"] == hash_for_manifest(office / "out" / "internal" / "manifest.json")


def test_a_ledger_that_cannot_be_written_is_told_and_the_release_is_there(office, capsys):
    (office / FILE).symlink_to(office / "elsewhere")
    assert main(["protect", str(office / "job.toml")]) == 0
    assert "ledger was not written" in capsys.readouterr().err
    assert (office / "out" / "public" / "manifest.json").is_file()


def test_lines_that_come_at_once_stand_one_after_the_other(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: add_to_ledger(tmp_path, "released", {"release": str(k)}), range(40)))
    lines, whole = read_entries(tmp_path)
    assert whole
    assert sorted(int(line["release"]) for line in lines) == list(range(40))

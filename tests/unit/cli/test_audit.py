import json
import stat
from pathlib import Path

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.model.table import Table
from cellguard.release.release import Status, Suppression


@pytest.fixture
def files(tmp_path):
    """A table, a safe suppression of it, and where the witnesses go."""
    table = Table.from_leaves(
        {"region": ["N", "S"], "sex": ["f", "m"]}, [[20, 50], [8, 19]], sensitive=[4], lower=3, upper=3
    )
    table.write(tmp_path / "table.csv")
    hidden = np.zeros(9, bool)
    hidden[[4, 5, 7, 8]] = True
    Suppression(table=table, status=Status.OPTIMAL, objective=0.0, suppressed=hidden).save(tmp_path / "release.csv")
    return [str(tmp_path / name) for name in ("table.csv", "release.csv", "witnesses.json")]


def run(capsys, *words):
    code = main([str(w) for w in words])
    return code, capsys.readouterr()


def test_audit_then_verify(files, capsys):
    table, release, witnesses = files
    code, printed = run(capsys, "audit", table, release, "--json", "--witnesses", witnesses)
    assert code == 0
    assert json.loads(printed.out)["audit"] == {"safe": True, "checked": 1, "exact": 0, "unsafe": 0}
    code, printed = run(capsys, "verify", table, release, witnesses, "--json")
    assert code == 0
    assert json.loads(printed.out)["accepted"] is True


def test_verify_refuses_an_altered_digit(files, capsys, tmp_path):
    table, release, witnesses = files
    assert run(capsys, "audit", table, release, "--witnesses", witnesses)[0] == 0
    content = json.loads((tmp_path / "witnesses.json").read_text())
    first = content["tables"][0]
    cell = next(iter(first))
    first[cell] = first[cell][:-1] + str((int(first[cell][-1]) + 1) % 10)
    (tmp_path / "witnesses.json").write_text(json.dumps(content))
    code, printed = run(capsys, "verify", table, release, witnesses, "--json")
    assert code == 2
    assert json.loads(printed.out)["accepted"] is False


def test_verify_without_witnesses_proves_nothing(files, capsys):
    table, release, _ = files
    assert run(capsys, "verify", table, release)[0] == 2


def test_an_unsafe_release_ends_with_2_and_its_ranges(files, capsys, tmp_path):
    table, release, _ = files
    ranges = tmp_path / "ranges.csv"
    code, printed = run(capsys, "audit", table, release, "--levels", "0.1,0.9", "--exact", "--ranges", ranges, "--json")
    assert code == 2
    found = json.loads(printed.out)
    assert found["audit"] == {"safe": False, "checked": 1, "exact": 0, "unsafe": 1}
    assert sum(found["midpoints"].values()) == 1
    lines = ranges.read_text().splitlines()
    assert lines[0] == "region,sex,attacker,low,high,lower_level,upper_level,sliding_level,verdict"
    assert lines[1] == "N,f,external,1,28,2,18,0,unsafe"


def test_bounds_of_the_attacker_are_an_option(files, capsys):
    table, release, _ = files
    assert run(capsys, "audit", table, release, "--bounds", "1,inf")[0] == 0
    assert run(capsys, "audit", table, release, "--bounds", "0.2,0.2")[0] == 2
    code, printed = run(capsys, "audit", table, release, "--bounds", "half")
    assert code == 1
    assert "two shares" in printed.err


def test_a_rounded_table_needs_its_base(files, capsys, tmp_path):
    table, _, _ = files
    true = Table.read(table)
    path = tmp_path / "rounded.csv"
    release = cg.round(true, base=5)  # 20 is a multiple, and moves
    release.save(path)
    code, printed = run(capsys, "audit", table, path, "--json")
    assert code == 1
    assert json.loads(printed.out)["error"] == "InputError"
    step = str(release.step)
    assert run(capsys, "audit", table, path, "--base", "5", "--step", step, "--integer", "--exact")[0] == 0
    bases = tmp_path / "bases.txt"
    bases.write_text("5\n" * 9)
    assert run(capsys, "audit", table, path, "--method", "round", "--base", bases, "--step", step)[0] == 0
    kept = tmp_path / "kept.csv"
    cg.round(true, base=5, keep_multiples=True).save(kept)
    assert run(capsys, "audit", table, kept, "--base", "5")[0] == 2  # the sensitive 20 stands there as it is
    assert run(capsys, "audit", table, kept, "--base", "5", "--keep-multiples")[0] == 0


def test_a_primary_cell_left_published_is_wrong_input(files, capsys, tmp_path):
    table, _, _ = files
    path = tmp_path / "answer.csv"
    true = Table.read(table)
    path.write_text("value\n" + "\n".join("*" if i == 5 else f"{v:g}" for i, v in enumerate(true.values)) + "\n")
    code, printed = run(capsys, "audit", table, path, "--method", "suppress")
    assert code == 1
    assert "sensitive, but published" in printed.err


def test_a_file_of_witnesses_that_is_none(files, capsys, tmp_path):
    table, release, witnesses = files
    (tmp_path / "witnesses.json").write_text("[1, 2]")
    code, printed = run(capsys, "verify", table, release, witnesses)
    assert code == 1
    assert "not a file of witnesses" in printed.err


def test_witnesses_and_ranges_are_their_owners(files, capsys, tmp_path):
    table, release, witnesses = files
    ranges = tmp_path / "ranges.csv"
    assert run(capsys, "audit", table, release, "--exact", "--witnesses", witnesses, "--ranges", ranges)[0] == 0
    assert [stat.S_IMODE(Path(path).stat().st_mode) for path in (witnesses, ranges)] == [0o600, 0o600]


def test_a_difference_is_told_inside_only(capsys, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("region,value\nTotal,500\nN,250\nS,37.5\n")  # W, 212.5, is missing
    path.with_suffix(".toml").write_text("[dimensions.region]\n")
    for words in (["info", str(path)], ["info", str(path), "--json"], ["suppress", str(path)]):
        assert main(words) == 1
        shown = capsys.readouterr()
        assert "(region=Total) = (region=N) + (region=S)" in shown.err
        assert "212.5" not in shown.err + shown.out
    assert main(["info", str(path), "--internal"]) == 1
    assert "off by 212.5" in capsys.readouterr().err

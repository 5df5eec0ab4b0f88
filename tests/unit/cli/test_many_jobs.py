"""Several jobs in one call: failures stop nothing, unchanged jobs are skipped, one JSON line per job."""

import json
import shutil

import pytest

from cellguard.cli import main

FIRMS = "region,turnover\n" + "".join(f"R{i % 4},{(i * 37) % 400 + 5}\n" for i in range(60)) + "R4,900\nR4,3\n"
JOB = """\
name = "{name}"
[data]
file = "firms-{name}.csv"
value = "turnover"
[dimensions.region]
[[rules]]
rule = "p_percent"
p = 10
[method]
name = "suppress"
rounds = 0
[output]
folder = "out-{name}"
report = false
"""


@pytest.fixture
def folder(tmp_path):
    for name in ("a", "b"):  # two populations: the ledger would refuse the second release of one
        (tmp_path / f"firms-{name}.csv").write_text(
            FIRMS.replace("R", name.upper()) + ("B1,77\n" if name == "b" else "")
        )
        (tmp_path / f"{name}.toml").write_text(JOB.format(name=name))
    return tmp_path


def _run(capsys, *words):
    code = main(["protect", *map(str, words), "--quiet"])
    return code, {
        json.loads(line)["job"].rsplit("/")[-1]: json.loads(line) for line in capsys.readouterr().out.splitlines()
    }


def test_several_jobs_run_and_unchanged_ones_are_skipped(folder, capsys):
    jobs = folder / "a.toml", folder / "b.toml"
    code, first = _run(capsys, *jobs, "--workers", "2", "--summary", folder / "night.html")
    assert code == 0
    assert {name: (line["exit_code"], line["result"]["audit"]["safe"]) for name, line in first.items()} == {
        "a.toml": (0, True),
        "b.toml": (0, True),
    }
    page = (folder / "night.html").read_text()
    assert "2 protected" in page
    (folder / "b.toml").write_text(JOB.format(name="b").replace("p = 10", "p = 15"))
    code, second = _run(capsys, *jobs, "--only-changed", "--again")  # b shows its cells otherwise
    assert code == 0
    assert second["a.toml"]["skipped"]
    assert not second["b.toml"]["skipped"]
    assert second["b.toml"]["reason"] == "the job changed"


def test_a_change_of_an_input_or_of_the_release_is_noticed(folder):
    from cellguard.jobs import read_job
    from cellguard.jobs.unchanged import find_change

    path = folder / "a.toml"
    assert find_change(read_job(path)) == "there is no release yet"
    assert main(["protect", str(path), "--quiet"]) == 0
    assert find_change(read_job(path)) is None
    published = folder / "out-a" / "public" / "a.csv"
    text = published.read_text()
    published.write_text(text + " ")
    assert "release changed" in find_change(read_job(path))
    published.write_text(text)
    (folder / "firms-a.csv").write_text(FIRMS.replace("R", "A") + "A1,6\n")
    assert find_change(read_job(path)) == "inputs changed: firms-a.csv"


def test_a_broken_job_does_not_stop_the_others(folder, capsys):
    (folder / "broken.toml").write_text("name = \n")
    code, lines = _run(capsys, folder / "broken.toml", folder / "a.toml")
    assert code == 1
    assert lines["broken.toml"]["exit_code"] == 1
    assert "broken.toml" in lines["broken.toml"]["message"]
    assert lines["a.toml"]["exit_code"] == 0
    assert (folder / "out-a" / "public" / "a.csv").is_file()


def test_jobs_that_share_a_folder_and_options_of_one_job_are_refused(folder, capsys):
    shutil.copy(folder / "a.toml", folder / "c.toml")
    assert main(["protect", str(folder / "a.toml"), str(folder / "c.toml")]) == 1
    assert "both write into" in capsys.readouterr().err
    assert main(["protect", str(folder / "a.toml"), str(folder / "b.toml"), "--out", str(folder / "x")]) == 1
    assert "--out: is for a single job" in capsys.readouterr().err
    assert not (folder / "out-a").exists()


def test_infinite_and_absurd_limits_are_refused(folder, capsys):
    for key, value in (
        ("time_limit_s", "inf"),
        ("time_limit_s", "1e12"),
        ("time_limit_s", "-1.0"),
        ("threads", "99999"),
    ):
        (folder / "a.toml").write_text(JOB.format(name="a") + f"[limits]\n{key} = {value}\n")
        assert main(["protect", str(folder / "a.toml"), "--quiet"]) == 1
        assert f"limits.{key}" in capsys.readouterr().err
        assert not (folder / "out-a").exists()


def test_what_was_written_on_request_is_not_called_safe(tmp_path):
    from cellguard.cli.support.many import JobResult

    said = {"unsafe": True}, {"accepted": "shown safe against external attackers"}, {"unsafe": False}
    verdicts = [JobResult(job=tmp_path / "a.toml", exit_code=0, summary=summary).verdict for summary in said]
    assert verdicts == ["NOT SAFE, written on request", "safe against some attackers, written on request", "safe"]

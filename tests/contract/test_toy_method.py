"""A method is a registry entry: a sixth one is picked up by the command line, jobs, the comparison, the report, the
manual's list and this suite."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from builders import write_job
from cellguard.data.examples import salazar2004_figure1

TOY = """
import sys

from cellguard.methods.method import Method, Option
from cellguard.methods.registry import METHODS

METHODS["blank"] = Method(
    name="blank",
    module="toy",
    title="Blanking",
    summary="Withhold every cell that can be withheld.",
    help="Withhold every cell that is not fixed.",
    publishes="Nothing but what everybody knows is published.",
    choose="Never.",
    options=(Option(name="shade", help="How dark.", choices=("light", "dark"), default="dark"),),
)


def blank(table, *, shade="dark", time_limit_s=60.0, seed=0, threads=1, progress=None):
    from cellguard.nouns.release import Status, Suppression

    options = {"shade": shade, "time_limit_s": time_limit_s, "seed": seed}
    hidden = table.sensitive | ~table.fixed
    release = Suppression(table=table, status=Status.FEASIBLE, objective=0.0, suppressed=hidden, options=options)
    bare = [table.label(int(cell)) for found in release.audit().findings for cell in found.cells[~found.safe]]
    if bare:
        why = f"{bare[0]} cannot be hidden."
        return Suppression(
            table=table, status=Status.INFEASIBLE, objective=float("nan"), suppressed=hidden, options=options, explanation=why
        )
    return release


if __name__ == "__main__":
    sys.modules["toy"] = sys.modules["__main__"]
    from cellguard.cli import main

    sys.exit(main())
"""


def _run(folder, *words):
    return subprocess.run(
        [sys.executable, "toy.py", *map(str, words)], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_registered_method_is_a_verb_a_job_and_a_row(tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    listed = _run(tmp_path, "--help")
    assert "Withhold every cell that can be withheld." in listed.stdout
    salazar2004_figure1().write(tmp_path / "t.jj")
    ran = _run(tmp_path, "blank", "t.jj", "--shade", "light", "--json", "--quiet")
    printed = json.loads(ran.stdout)
    assert (ran.returncode, printed["audit"]["safe"]) == (0, True), ran.stderr
    compared = _run(
        tmp_path, "compare", "t.jj", "--methods", "blank,suppress", "--time-limit", "5", "--json", "--quiet"
    )
    assert [row["safe"] for row in json.loads(compared.stdout)["methods"]] == [True, True]


def test_a_registered_method_runs_from_a_job(tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    rows = [f"{r},{s},{10 * r + s + k}" for r in range(4) for s in range(4) for k in range(1 + (r + s) % 5)]
    (tmp_path / "firms.csv").write_text("region,size,turnover\n" + "\n".join(rows) + "\n")
    rules = [{"rule": "min_frequency", "n": 3}]
    write_job(tmp_path, "region", "size", rules=rules, method={"name": "blank", "shade": "light"})
    ran = _run(tmp_path, "protect", "job.toml", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert "Nothing but what everybody knows" in (tmp_path / "out" / "public" / "report.html").read_text()
    write_job(tmp_path, "region", "size", rules=rules, method={"name": "blank", "shadow": "light"})
    ran = _run(tmp_path, "protect", "job.toml", "--quiet")
    assert ran.returncode == 1
    assert "blank has no shadow" in ran.stderr


def test_a_registered_method_is_in_the_contract_suite(tmp_path):
    """A process of its own, in which the registry has the entry before the suite is collected."""
    (tmp_path / "toy.py").write_text(TOY)
    suite = [str(Path(__file__).with_name(f"test_{name}.py")) for name in ("contract", "promises")]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "toy", "-p", "no:cacheprovider", "-k", "[blank", *suite]
    ran = subprocess.run(
        words, env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert int(re.search(r"(\d+) passed", ran.stdout)[1]) > 35

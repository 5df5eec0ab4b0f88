"""A method is a registry entry: a sixth one is picked up by the command line, jobs, the comparison, the report, the
manual's list and this suite."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from builders import write_job
from cellguard.datasets.examples import salazar2004_figure1

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
    kind="suppress",
    options=(Option(name="shade", help="How dark.", choices=("light", "dark"), default="dark"),),
)


def blank(table, *, shade="dark", time_limit_s=60.0, seed=0, threads=1, progress=None):
    from cellguard.release.release import Status, Suppression

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


BANDS = """
import sys
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from cellguard.methods.limits import Limits
from cellguard.methods.method import Method, Option
from cellguard.methods.procedure import Candidate, Procedure
from cellguard.methods.protection import Protection
from cellguard.methods.registry import METHODS
from cellguard.release.formats.registry import FORMATS, FileFormat
from cellguard.release.release import KINDS, Release, Status


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Bands(Release):
    method: ClassVar[str] = "bands"
    one_number: ClassVar[bool] = False
    extra_columns: ClassVar[tuple[str, ...]] = ("band",)
    band: np.ndarray
    width: float = 1.0

    def _get_published_interval(self):
        return self.band * self.width, (self.band + 1) * self.width

    def get_point_values(self):
        return (self.band + 0.5) * self.width

    def columns(self, *, mark_primary=False):
        return {"band": self.band}

    def get_published_parameters(self):
        return {"width": self.width}

    def describe_safety(self):
        return "Every cell is published as the band in which it lies."

    def count_cells(self, cells=slice(None), *, mark_primary):
        return {"bands": len(self.band[cells])}

    @classmethod
    def get_texts_of_columns(cls, table, columns):
        return [f"band {k:g}" for k in columns["band"]], np.full(table.n_cells, "interval", dtype=object)

    @classmethod
    def read(cls, file, told):
        band = file.read_numbers(file.others["band"], np.nan)
        return cls.from_file(file.table, band=band, width=float(told.others["width"]))


METHOD = METHODS["bands"] = Method(
    name="bands", module="bands", title="Bands", summary="Publish the band of each cell.", help="Publish bands.",
    publishes="Every cell is published as one of equal bands.", choose="For maps.", columns=("band",),
    options=(Option(name="width", kind=float, default=50.0, positive=True, help="How wide each band is."),),
)
KINDS["bands"] = Bands


def save_lines(output, path):
    names, columns = zip(*output.whole.columns.items())
    path.write_text("".join("|".join(map(str, row)) + "\\n" for row in [names, *zip(*columns)]))


def write_lines(output, folder):
    save_lines(output, output.get_path(folder, output.name, ".lines"))


FORMATS["lines"] = FileFormat(name="lines", write=write_lines, save=save_lines, endings=(".lines",))


@dataclass(frozen=True, kw_only=True, eq=False)
class BandsProcedure(Procedure):
    method: ClassVar[Method] = METHOD
    width: float = 50.0

    def solve(self, problem, limits):
        band = np.floor(problem.table.values / self.width)
        made = Bands(
            table=problem.table, status=Status.FEASIBLE, objective=self.width, band=band, width=self.width,
            options={"width": self.width, "time_limit_s": limits.time_limit_s, "seed": limits.seed},
        )
        return Candidate(release=made, problem=problem)

    def repair(self, candidate, findings, limits):
        wider = BandsProcedure(width=2 * candidate.release.width)
        return wider.solve(candidate.problem, limits)


def bands(table, *, width=50.0, time_limit_s=60.0, seed=0, threads=1, progress=None):
    limits = Limits(time_limit_s=time_limit_s, seed=seed, threads=threads, progress=progress)
    return Protection(procedure=BandsProcedure(width=width), limits=limits).run(table)


if __name__ == "__main__":
    sys.modules["bands"] = sys.modules["__main__"]
    from cellguard.cli import main

    sys.exit(main())
"""


def run_bands(folder, *words):
    return subprocess.run(
        [sys.executable, "bands.py", *map(str, words)], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def office(tmp_path):
    (tmp_path / "bands.py").write_text(BANDS)
    rows = [
        f"r{r},s{s},{10 * r + 7 * s + 3 * k + 1}" for r in range(4) for s in range(4) for k in range(1 + (r + s) % 5)
    ]
    (tmp_path / "firms.csv").write_text("region,size,turnover\n" + "\n".join(rows) + "\n")
    return tmp_path


def write_bands_job(folder, **more):
    rules = [{"rule": "min_frequency", "n": 3, "percent": 5}]
    sections = {"rules": rules, "method": {"name": "bands", "width": 20.0}, "output": {"folder": "out", **more}}
    write_job(folder, "region", "size", **sections)


def test_a_registered_kind_of_release_is_written_read_and_audited_by_a_job(office):
    write_bands_job(office, formats=["csv", "lines", "xlsx"])
    ran = run_bands(office, "protect", "job.toml", "--quiet")
    assert ran.returncode == 0, ran.stderr
    public = office / "out" / "public"
    head, first, *_ = next(public.glob("*.lines")).read_text().splitlines()
    assert head == "region|size|band"
    assert first.count("|") == 2
    report = (public / "report.html").read_text()
    assert "Every cell is published as one of equal bands." in report
    assert "Every cell is published as the band in which it lies." in report
    assert "band 0" in report
    table = next(public.glob("*.csv"))
    ran = run_bands(office, "audit", "job.toml", table, "--json", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["safe"] is True
    write_bands_job(office, formats=["px"])
    ran = run_bands(office, "protect", "job.toml", "--quiet")
    assert ran.returncode == 1
    assert "px holds one number" in ran.stderr


def test_a_registered_kind_of_release_is_a_command_and_a_row(office):
    salazar2004_figure1().write(office / "t.jj")
    ran = run_bands(office, "bands", "t.jj", "--width", "40", "--out", "t.lines", "--json", "--quiet")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["audit"]["safe"] is True
    assert (office / "t.lines").is_file()
    ran = run_bands(office, "compare", "t.jj", "--methods", "bands", "--time-limit", "5", "--json", "--quiet")
    assert [row["safe"] for row in json.loads(ran.stdout)["methods"]] == [True], ran.stderr


def test_the_page_offers_and_shows_a_registered_kind_and_format(office):
    write_bands_job(office, formats=["csv"])
    assert run_bands(office, "protect", "job.toml", "--quiet").returncode == 0
    look = """
import bands, json
from pathlib import Path
from cellguard.jobs.definition.read import read_job
from cellguard.jobs.runner import run
from cellguard.web.routes.choices import list_choices
from cellguard.web.routes.released import read_released_cells
file = read_job("job.toml")
table = run(file).release.table
texts, kinds = read_released_cells(table, Path("out/public"), file.job)
offered = list_choices()
print(json.dumps([offered["formats"], [m["name"] for m in offered["methods"]], texts[0], int(kinds[0])]))
"""
    ran = subprocess.run([sys.executable, "-c", look], cwd=office, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    formats, methods, text, _ = json.loads(ran.stdout)
    assert "lines" in formats
    assert "bands" in methods
    assert text.startswith("band ")

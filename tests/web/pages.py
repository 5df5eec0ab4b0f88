"""What the tests of the page share: a folder with data, a server, and pictures."""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import httpx

from cellguard.datasets.survey import write_survey

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def served(folder, *options):
    """Run `cellguard serve` as its user does; gives a client of its interface with the link."""
    words = [sys.executable, "-m", "cellguard", "serve", str(folder), "--no-open", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            link = server.stdout.readline().strip()
            base, token = link.split("/enter?token=")
            with httpx.Client(base_url=base, headers={"authorization": f"Bearer {token}"}, timeout=60) as client:
                client.link, client.token, client.base, client.server = link, token, base, server
                yield client
        finally:
            server.terminate()
            server.wait(timeout=20)


def survey_in(folder, n=2000):
    """Write the survey of the demonstration, without a job."""
    write_survey(folder, n=n)
    (folder / "job.toml").unlink(missing_ok=True)
    return folder


def project_in(folder, name="demo", *, client=None, n=2000):
    """Make a project with its own copy of the survey, with a job that is solved in a moment."""
    survey_in(folder, n)
    place = folder / name
    place.mkdir()
    (place / "job.toml").write_text(JOB, encoding="utf-8")
    return place


JOB = """\
name = "turnover"
seed = 1

[data]
file = "../enterprises.csv"
value = "turnover"
holding = "holding"

[dimensions.region]
hierarchy = "../regions.hrc"

[dimensions.size]

[[rules]]
rule = "p_percent"
p = 10

[[rules]]
rule = "min_frequency"
n = 3
percent = 10

[method]
name = "suppress"
rounds = 3

[output]
folder = "release"
formats = ["csv", "xlsx"]
"""


def tables_in(folder):
    """Write two tables that are already added up and share the margin of regions."""
    cells = {("N", "small"): (2, 40, 30), ("N", "large"): (5, 300, 90), ("S", "small"): (9, 200, 40)}
    cells |= {("S", "large"): (6, 500, 100), ("W", "small"): (8, 250, 50), ("W", "large"): (7, 420, 80)}
    other = {"a": 0.4, "b": 0.6}
    for name, second, codes in (("size", "size", ("small", "large")), ("form", "form", tuple(other))):
        lines = [f"region,{second},n_obs,turnover,max"]
        for region in ("Total", "N", "S", "W"):
            for code in ("Total", *codes):
                own = [
                    v
                    for (r, s), v in cells.items()
                    if region in ("Total", r) and (name == "form" or code in ("Total", s))
                ]
                share = other.get(code, 1.0)
                n, total, top = sum(v[0] for v in own), sum(v[1] for v in own), max(v[2] for v in own)
                lines.append(f"{region},{code},{max(1, round(n * share))},{total * share:g},{top * share:g}")
        (folder / f"by_{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def wait_for(client, project, kind="protect", seconds=120):
    """Wait until work has ended; returns how."""
    import time

    for _ in range(int(seconds / 0.1)):
        found = client.get(f"/api/projects/{project}/work/{kind}").json()
        if found["state"] not in ("waiting", "running", "stopping"):
            return found
        time.sleep(0.1)
    raise AssertionError("the work did not end")


PICTURES = os.environ.get("CELLGUARD_PICTURES")


def picture(page, name):
    """Keep a picture of the page where somebody asked for them: CELLGUARD_PICTURES=FOLDER."""
    if PICTURES:
        Path(PICTURES).mkdir(exist_ok=True)
        page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)

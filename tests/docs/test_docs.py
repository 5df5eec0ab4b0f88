"""The manual is built without warnings, its examples run, and its lists of pages, verbs and keys are complete."""

import doctest
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cellguard.cli import VERBS, main
from cellguard.jobs.definition.method_sections import METHOD_SECTIONS
from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.read import read_job
from cellguard.jobs.definition.rule_sections import RULE_SECTIONS
from cellguard.papers import EXPERIMENTS

DOCS = Path(__file__).resolve().parents[2] / "docs"
TESTED_ELSEWHERE = {"data"}
PAGES = sorted(p for p in DOCS.rglob("*.md") if p.parent.name not in TESTED_ELSEWHERE and not p.is_symlink())


@pytest.mark.parametrize("page", [p for p in PAGES if ">>>" in p.read_text()], ids=lambda p: p.stem)
def test_python_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, page.stem, str(page), 0)
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", [p for p in PAGES if "```console\n$ " in p.read_text()], ids=lambda p: p.stem)
def test_commands_of_the_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ cellguard (.*)$", page.read_text(), re.MULTILINE)
    assert commands
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    assert list(tmp_path.rglob("public/report.html"))


def test_every_page_is_in_the_contents():
    contents = (DOCS.parent / "mkdocs.yml").read_text()
    assert len(PAGES) > 10
    for page in DOCS.rglob("*.md"):
        assert str(page.relative_to(DOCS)) in contents


def test_the_manual_is_built_without_warnings(tmp_path):
    """A dead link, a missing page or anchor, or a name that is not in the code is a warning: strict mode fails."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=DOCS.parent, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "reference" / "job" / "index.html").stat().st_size > 10_000


def test_links_of_the_readme_exist():
    text = (DOCS.parent / "README.md").read_text()
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(links) > 5
    assert [link for link in links if "://" not in link and not (DOCS.parent / link).exists()] == []


def test_every_package_is_in_the_architecture():
    packages = [p.name for p in (DOCS.parent / "src" / "cellguard").iterdir() if p.is_dir() and p.name != "__pycache__"]
    assert len(packages) > 15
    text = (DOCS / "architecture.md").read_text()
    assert [name for name in packages if f"`{name}`" not in text] == []


def test_every_verb_is_explained_and_every_explained_verb_exists():
    text = "\n".join(page.read_text() for page in DOCS.rglob("*.md"))
    for verb in VERBS:
        assert f"cellguard {verb}" in text, verb
    assert set(re.findall(r"^\| `cellguard (\w+)`", text, re.MULTILINE)) <= set(VERBS)


def test_every_key_is_on_the_page_of_jobs():
    text = (DOCS / "reference" / "job.md").read_text()
    keys = {*Job.model_fields, *METHOD_SECTIONS, *RULE_SECTIONS} - {"dimensions", "rules", "tables", "attackers"}
    for field in Job.model_fields.values():
        keys |= set(getattr(field.annotation, "model_fields", {}))
    for section in (*METHOD_SECTIONS.values(), *RULE_SECTIONS.values()):
        keys |= set(section.model_fields)
    for key in keys:
        assert key in text, key


def test_the_tables_of_keys_and_commands_are_those_of_the_code():
    made = runpy.run_path(str(DOCS / "reference_tables.py"))
    assert len(made["PAGES"]) == 2
    for page in made["PAGES"]:
        assert page.read_text("utf-8") == made["build_page"](page), "write it again: python docs/reference_tables.py"


def test_the_job_on_its_page_is_one(tmp_path):
    from cellguard.datasets.survey import write_survey

    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "reference" / "job.md").read_text(), re.DOTALL)
    path = write_survey(tmp_path, n=500, job=text)
    assert read_job(path).job.name == "turnover"


def test_every_public_name_is_in_the_reference():
    import cellguard as cg

    text = (DOCS / "reference" / "python.md").read_text()
    named = {line.split(".")[-1] for line in text.splitlines() if line.startswith(":::")}
    assert set(cg.__all__) <= named


def test_the_picture_of_the_packages_is_of_this_code():
    made = runpy.run_path(str(DOCS / "architecture_picture.py"))
    assert made["PICTURE"].read_text() == made["draw"](), "draw it anew: python docs/architecture_picture.py"


def test_what_the_table_of_papers_names_is_there():
    """Every test and experiment of the page exists, and every experiment is on it."""
    page, tests = (DOCS / "papers.md").read_text(encoding="utf-8"), DOCS.parent / "tests"
    named = set(re.findall(r"\b((?:unit|papers|property)/[\w/]+\.py)(?:::(\w+))?", page))
    assert len(named) > 20
    for file, name in named:
        assert re.search(rf"^def {name}\b" if name else r"^def test_", (tests / file).read_text(), re.MULTILINE), file
    papers = "castro2004", "castro2012", "salazar2004", "baena2018", "minami2019"
    assert all(f"## {paper}: " in page for paper in papers)
    assert {name for name in EXPERIMENTS if f"`{name}`" not in page} == set()
    assert all(
        experiment in EXPERIMENTS for experiment in re.findall(r"`((?:\w+\d{4}|adjustment|resistance)-\w+)`", page)
    )


def test_the_table_of_papers_has_every_item_with_its_status():
    """The counts at the top of the page are those of its rows, and what is complete names a test."""
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    items = {"castro2004": 23, "castro2012": 32, "salazar2004": 36, "baena2018": 18, "minami2019": 22}
    states = ("complete", "partly", "different", "missing")
    total = dict.fromkeys(states, 0)
    for paper, n in items.items():
        section = page.split(f"## {paper}: ")[1].split("\n## ")[0]
        rows = [line.strip("|").split(" | ") for line in section.splitlines() if re.match(r"\| \d+ \|", line)]
        assert [int(row[0]) for row in rows] == list(range(1, n + 1)), paper
        found = {state: sum(row[3] == state for row in rows) for state in states}
        assert sum(found.values()) == n, paper
        assert all(".py" in row[4] for row in rows if row[3] == "complete"), paper
        stated = re.search(rf"^\| {paper} \| (.*) \|$", page, re.MULTILINE)
        assert stated is not None
        assert [int(x) for x in stated[1].split(" | ")] == [n, *found.values()], paper
        total = {state: total[state] + found[state] for state in states}
    assert f"| all | {sum(items.values())} | " + " | ".join(str(x) for x in total.values()) + " |" in page


def test_reports_hold_the_manual_s_page_on_what_safe_means():
    made = runpy.run_path(str(DOCS / "safe_page.py"))
    assert made["PAGE"].read_text("utf-8") == made["page"](), "write it anew: python docs/safe_page.py"

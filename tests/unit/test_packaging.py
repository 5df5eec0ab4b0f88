"""What offices install: the image, the workflows, the recipe and the wheel are described without contradictions."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from cellguard import __version__

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _read_container_lines():
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_image_runs_without_root_and_reports_its_health():
    lines = _read_container_lines()
    final = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM")) :]
    words = [line.split(maxsplit=1) for line in final]
    users = [rest for word, rest in words if word == "USER"]
    assert users
    assert users[-1] not in ("root", "0")
    assert any(word == "HEALTHCHECK" and "/health" in rest for word, rest in words)
    assert any(word == "ENTRYPOINT" and "cellguard" in rest for word, rest in words)
    assert not any("apt-get" in rest for _, rest in words)  # no compiler in what runs
    copied = {name for line in lines if line.startswith("COPY") for name in line.split()[1:-1]}
    assert all((ROOT / name).exists() for name in copied)


def test_workflows_are_sound_and_cover_every_supported_python():
    found = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert set(found) == {"tests", "wheels", "docs", "release"}
    for name, flow in found.items():
        assert flow["permissions"] == {"contents": "read"}, name
        for job in flow["jobs"].values():
            assert "uses" in job or all(("uses" in step) != ("run" in step) for step in job["steps"])
            for step in job.get("steps", ()):
                assert "@" in step.get("uses", "@"), "an action has a version"
    pythons = set(found["tests"]["jobs"]["systems"]["strategy"]["matrix"]["python"])
    named = {c.rsplit(" ", 1)[1] for c in PROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert pythons == named


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load(re.sub(r"\$\{\{.*?\}\}", "x", (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()))
    assert recipe["context"]["version"] == __version__
    asked = {line.split()[0].removeprefix("python-") for line in recipe["requirements"]["run"]} - {"python"}
    needed = {re.match(r"[\w-]+", line).group() for line in PROJECT["project"]["dependencies"]}
    assert asked == needed - {"pymetis"}  # not on conda-forge for every system; the core orders without it


def test_the_list_of_components_is_json_once_filled_in():
    text = (ROOT / "packaging" / "sbom.cdx.json.in").read_text()
    filled = json.loads(re.sub(r"@\w+@", "1.0", text))
    assert {part["name"] for part in filled["components"]} == {"nanobind", "robin-map"}
    assert "SKBUILD_METADATA_DIR" in (ROOT / "CMakeLists.txt").read_text()

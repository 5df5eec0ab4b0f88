"""Manifests: these files, this audit, safe; nothing secret in the public one."""

import json

import pytest

from cellguard.cli import main
from cellguard.jobs.outputs.manifest import check_manifest, hash_for_manifest


def changed_manifest(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return check_manifest(path)


@pytest.mark.parametrize("folder", ["public", "internal"])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda m: m.update(outputs={}), "lists no file that was published"),
        (lambda m: m.update(outputs={k: {} for k in m["outputs"]}), "lists no file that was published"),
        (lambda m: m.update(safe=False), "although the audit refused it"),
        (lambda m: m.pop("safe"), "although the audit refused it"),
        (lambda m: m.update(safe="yes"), "although the audit refused it"),
        (lambda m: m.update(unsafe=True), "although the audit refused it"),
    ],
)
def test_a_manifest_without_files_or_not_safe_is_refused(outcome, office, folder, change, says):
    found = changed_manifest(office / "out" / folder / "manifest.json", change)
    assert not found["accepted"]
    assert any(says in problem for problem in found["problems"]), found["problems"]


def test_the_audit_of_a_manifest_must_be_there_and_say_safe(outcome, office):
    internal = office / "out" / "internal"
    path, audit = internal / "manifest.json", internal / "audit.json"
    original = path.read_text()
    found = changed_manifest(path, lambda m: m.update(audit=None))
    assert "the audit is not the one that the manifest tells of." in found["problems"]
    path.write_text(original)
    found = changed_manifest(path, lambda m: m["outputs"]["."].pop("audit.json"))
    assert "the manifest does not list the audit." in found["problems"]
    path.write_text(original)
    facts = json.loads(audit.read_text())
    audit.write_text(json.dumps(facts | {"safe": False, "unsafe": 1}))

    def adapted(manifest):
        manifest["outputs"]["."]["audit.json"] = hash_for_manifest(audit)
        manifest["audit"] |= {"safe": False, "unsafe": 1}

    found = changed_manifest(path, adapted)
    assert found["problems"] == ["the audit does not call the release safe."]


def test_a_manifest_excuses_no_file_but_those_that_tell_seconds(outcome, office):
    (office / "out" / "public" / "more.csv").write_text("cell,value\n0,212.5\n")
    for folder in ("public", "internal"):
        path = office / "out" / folder / "manifest.json"
        found = changed_manifest(path, lambda m: m.update(not_hashed=["more.csv"]))
        assert any("more.csv: is not in the manifest." in problem for problem in found["problems"])


def test_a_link_in_place_of_an_output_is_refused(outcome, office):
    release = office / "out" / "public" / "small.csv"
    release.rename(office / "elsewhere.csv")
    release.symlink_to(office / "elsewhere.csv")
    found = check_manifest(office / "out" / "public" / "manifest.json")
    assert found["problems"] == ["small.csv: the output is a symbolic link."]


def test_manifest_is_verified_and_sees_changes(outcome, office, capsys):
    internal = office / "out" / "internal" / "manifest.json"
    for path in (internal, office / "out" / "public" / "manifest.json"):
        assert check_manifest(path)["accepted"]
    assert main(["verify", str(internal), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"]
    release = office / "out" / "public" / "small.csv"
    release.write_text(release.read_text().replace("withheld", "published", 1))
    (office / "firms.csv").write_text("gone\n")
    (office / "out" / "public" / "extra.csv").write_text("")
    found = check_manifest(internal)["problems"]
    assert found == [
        "small.csv: the output has changed.",
        "extra.csv: is not in the manifest.",
        "firms.csv: the input has changed.",
    ]
    assert main(["verify", str(internal)]) == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"format": "cellguard manifest 1"}',
        '{"format": "cellguard manifest 1", "outputs": {"../../..": {"x": "y"}}}',
    ],
)
def test_a_damaged_manifest_is_wrong_input(text, tmp_path, capsys):
    (tmp_path / "manifest.json").write_text(text)
    assert main(["verify", str(tmp_path / "manifest.json")]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_public_manifest_tells_no_secret(outcome, office):
    manifest = json.loads((office / "out" / "public" / "manifest.json").read_text())
    assert not manifest.keys() & {"seed", "options", "inputs"}

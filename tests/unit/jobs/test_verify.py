"""``cellguard verify MANIFEST``: hashes, release, witnesses and signature together."""

from __future__ import annotations

import gzip
import json

import pytest

from builders import convert_to_rows, write_columns
from cellguard.cli import main
from cellguard.exceptions import InputError
from cellguard.jobs import read_job
from cellguard.jobs.outputs.manifest import check_manifest, hash_for_manifest
from cellguard.jobs.outputs.signing import KEY_FILE, KEY_VARIABLE
from cellguard.jobs.outputs.verify import verify_manifest
from cellguard.jobs.runner import run


def rewrite_hashes(root):
    """Write every hash anew, as somebody does who changed the files."""
    public, internal = root / "public", root / "internal"
    for folder, listed in ((public, {".": public}), (internal, {".": internal, "../public": public})):
        content = json.loads((folder / "manifest.json").read_text())
        for name, place in listed.items():
            content["outputs"][name] = {file: hash_for_manifest(place / file) for file in content["outputs"][name]}
        (folder / "manifest.json").write_text(json.dumps(content))


def fill_in(root, name="small.csv"):
    """Publish what was withheld."""
    path = root / "public" / name
    truth = {(r["region"], r["sector"]): r["true_value"] for r in convert_to_rows(root / "internal" / "cells.csv")}
    rows = convert_to_rows(path)
    for row in rows:
        if row["status"] == "withheld":
            row |= {"status": "published", "value": truth[row["region"], row["sector"]]}
    write_columns(path, {column: [row[column] for row in rows] for column in rows[0]})


def manifest_of(office):
    return office / "out" / "internal" / "manifest.json"


def test_a_release_is_proven_and_signed(outcome, office, capsys):
    found = verify_manifest(manifest_of(office))
    assert found["problems"] == []
    assert found["proven"] >= outcome.audit.checked > 3  # a cell counts once for each attacker
    assert found["signed"] is True
    assert found["verdict"] == "hashes, proofs and signature agree"
    assert main(["verify", str(manifest_of(office)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == found["verdict"]
    assert verify_manifest(office / "out" / "public" / "manifest.json") == found


def test_rewritten_hashes_do_not_hide_what_was_filled_in(outcome, office, capsys):
    fill_in(office / "out")
    rewrite_hashes(office / "out")
    assert check_manifest(manifest_of(office))["accepted"]
    assert verify_manifest(manifest_of(office))["problems"] == ["the signature does not fit the manifest."]
    (office / KEY_FILE).unlink()
    found = verify_manifest(manifest_of(office))
    assert not found["accepted"]
    assert found["signed"] is None
    assert main(["verify", str(manifest_of(office))]) == 2


def test_the_public_report_must_be_that_of_the_release(outcome, office):
    """Its hash was all that was checked: a report that spells out a withheld value passed once hashes were rewritten."""
    path = outcome.folder / "public" / "report.html"
    path.write_text(path.read_text().replace("</h1>", " (the withheld cell is 12,345)</h1>", 1))
    rewrite_hashes(outcome.folder)
    (office / KEY_FILE).unlink()
    found = verify_manifest(manifest_of(office))
    assert not found["accepted"]
    assert any("report.html" in problem for problem in found["problems"])


def test_nonsense_witnesses_prove_nothing(outcome, office):
    (office / KEY_FILE).unlink()
    path = office / "out" / "internal" / "witnesses.json.gz"
    content = json.loads(gzip.decompress(path.read_bytes()))
    content["tables"] = [dict.fromkeys(table, "1") for table in content["tables"]]
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    rewrite_hashes(office / "out")
    found = verify_manifest(manifest_of(office))
    assert not found["accepted"]
    assert any(problem.startswith("witnesses: ") for problem in found["problems"])


@pytest.mark.parametrize("name", ["small.xlsx", "small.parquet"])
def test_every_format_must_show_the_release_that_is_proven(outcome, office, name):
    (office / KEY_FILE).unlink()
    path = office / "out" / "public" / name
    path.write_bytes(path.read_bytes() + b"212")
    rewrite_hashes(office / "out")
    found = verify_manifest(manifest_of(office))
    assert not found["accepted"]
    assert name in found["problems"][0]


def test_without_a_key_it_says_that_nothing_is_signed(outcome, office):
    (office / KEY_FILE).unlink()
    found = verify_manifest(manifest_of(office))
    assert found["accepted"]
    assert found["verdict"] == "hashes and proofs agree; not signed"


def test_a_key_inside_the_release_does_not_count(outcome, office):
    (office / KEY_FILE).rename(office / "out" / KEY_FILE)
    assert verify_manifest(manifest_of(office))["signed"] is None


def test_a_signature_of_another_key_or_none_is_refused(outcome, office):
    (office / KEY_FILE).write_text("0" * 64)
    assert verify_manifest(manifest_of(office))["problems"] == ["the signature was made with another key."]
    (office / "out" / "internal" / "signature.json").unlink()
    assert verify_manifest(manifest_of(office))["problems"] == ["the signature is missing or damaged."]


def test_internal_files_that_tell_seconds_are_signed_too(outcome, office):
    path = office / "out" / "internal" / "report.html"
    path.write_text(path.read_text() + " ")
    assert check_manifest(manifest_of(office))["accepted"]
    assert not verify_manifest(manifest_of(office))["accepted"]


def test_inputs_that_were_archived_leave_hashes_and_signature(outcome, office):
    (office / "firms.csv").rename(office / "archived")
    found = verify_manifest(manifest_of(office))
    assert found["accepted"]
    assert found["proven"] is None
    (office / KEY_FILE).unlink()
    assert not verify_manifest(manifest_of(office))["accepted"]


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [(None, 0, "no such key"), ("short", 0o600, "too short"), ("0" * 64, 0o644, "others may read")],
)
def test_a_bad_key_is_told_before_anything_is_written(office, monkeypatch, text, mode, says):
    key = office / "key"
    if text is not None:
        key.write_text(text)
        key.chmod(mode)
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    with pytest.raises(InputError, match=says):
        run(read_job(office / "job.toml"))
    assert not (office / "out" / "public").exists()


def test_the_key_of_the_office_is_used_where_it_is_named(office, monkeypatch):
    key = office / "key"
    key.write_text("1" * 40)
    key.chmod(0o600)
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    run(read_job(office / "job.toml"))
    assert not (office / KEY_FILE).exists()
    assert verify_manifest(manifest_of(office))["signed"] is True


@pytest.mark.parametrize("method", ["intervals", 'round"\nbase = 5000 #', 'perturb"\nbase = 5000 #', "adjust"])
def test_releases_of_every_kind_are_proven(office, method):
    text = (office / "job.toml").read_text()
    text = text.replace('name = "suppress"\nrounds = 2', f'name = "{method}"')
    text = text if method == "intervals" else text.replace('"xlsx"', '"xlsx", "px", "sdmx"')
    (office / "job.toml").write_text(text)
    run(read_job(office / "job.toml"))
    found = verify_manifest(manifest_of(office))
    assert found["problems"] == []
    assert found["proven"] > 3


def test_a_job_perturbs_area_by_area_and_its_files_are_verified(office):
    text = (office / "job.toml").read_text()
    text = text.replace('name = "suppress"\nrounds = 2', 'name = "perturb"\nbase = 5000\nareas = "region"')
    (office / "job.toml").write_text(text)
    outcome = run(read_job(office / "job.toml"))
    assert outcome.audit.safe
    assert outcome.release.areas == "region"
    found = verify_manifest(manifest_of(office))
    assert found["problems"] == []


def test_linked_tables_are_proven(office):
    lines = (office / "firms.csv").read_text().splitlines()
    sizes = ["size", *(("small", "large")[k % 3 == 0] for k in range(len(lines) - 1))]
    (office / "firms.csv").write_text("".join(f"{s},{line}\n" for s, line in zip(sizes, lines, strict=True)))
    tables = '[[tables]]\ndimensions = ["region", "sector"]\n[[tables]]\ndimensions = ["region", "size"]\n'
    text = (office / "job.toml").read_text().replace("[[rules]]", f"[dimensions.size]\n\n{tables}\n[[rules]]")
    (office / "job.toml").write_text(text.replace('"xlsx"', '"xlsx", "px", "sdmx"'))
    run(read_job(office / "job.toml"))
    found = verify_manifest(manifest_of(office))
    assert found["problems"] == []
    assert found["verdict"] == "hashes, proofs and signature agree"


def test_a_release_without_a_plain_file_is_proven_from_the_internal_cells(office):
    text = (office / "job.toml").read_text().replace('["csv", "parquet", "xlsx", "jj"]', '["xlsx", "px"]')
    (office / "job.toml").write_text(text)
    run(read_job(office / "job.toml"))
    assert verify_manifest(manifest_of(office))["verdict"] == "hashes, proofs and signature agree"

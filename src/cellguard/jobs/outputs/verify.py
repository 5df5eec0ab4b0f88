"""Verify a release from its folder: hashes, manifest, published files, witnesses and signature together.

Hashes alone only detect accidents: an attacker who changes a file can also replace its hash. So the table is
made again from the inputs, the release is read from the published files, the witnesses must prove it safe by
exact arithmetic, and every published file must be what that release gives.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from cellguard._io.toml import parse_toml, read_toml_text
from cellguard.auditing.audit import Audit, Finding
from cellguard.auditing.witnesses import list_audited_attackers, read_witnesses, verify
from cellguard.exceptions import CellguardError
from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.flags import flag_job
from cellguard.jobs.outputs.joint_proof import prove_joint
from cellguard.jobs.outputs.manifest import PUBLIC, check_manifest, collect_versions, hash_unlisted_files, read_manifest
from cellguard.jobs.outputs.signing import check_signature, find_key
from cellguard.jobs.outputs.writer import describe_outcome, write_public_files
from cellguard.jobs.report.page import write_report
from cellguard.jobs.runner import Outcome
from cellguard.jobs.tables import tabulate_job
from cellguard.methods.partial import ACCEPTED, leave_out
from cellguard.model.levels import add_respondents
from cellguard.model.table import Table
from cellguard.release.readers.manifest_facts import read_manifest_beside
from cellguard.release.readers.read_release import read_release
from cellguard.release.readers.read_tables import FIGURES
from cellguard.release.release import Release, Suppression

__all__ = ["verify_manifest"]

_WITNESSES = "witnesses.json.gz"
_NOT_COMPARED = {"manifest.json", FIGURES}
"""Public files whose hashes alone are checked; the signature proves the hashes."""
_INTERNAL_COLUMNS = ("true_value", "contributors", "rules", "CONF_STATUS", "protects")
"""Columns of the internal file of cells that are not published."""
_TOLD_FACTS = ("method", "base", "step", "distance", "areas", "keep_multiples", "between", "keep")
"""Facts of a manifest with which its files are read."""


def verify_manifest(path: Path, file: JobFile | None = None) -> dict[str, Any]:
    """Check everything that a manifest claims.

    Parameters
    ----------
    path
        The manifest of a release. Of a public one with the internal folder beside it, that one's is checked.
    file
        The job that made the release; read from the internal folder unless given.

    Returns
    -------
    The figures of :func:`~cellguard.jobs.outputs.manifest.check_manifest`, and: `proven`, the number of cells that the
    witnesses prove safe (None where that was not checked); `signed`, whether the signature is right (None where there
    is no key); `verdict`, all of it in a sentence.
    """
    beside = path.parent.parent / "internal" / "manifest.json"
    manifest = read_manifest(path)
    if PUBLIC not in manifest["outputs"]:
        if path.parent.name == "public" and beside.is_file():
            return verify_manifest(beside, file)
        found = check_manifest(path)
        return _add_verdict(
            {**found, "proven": None, "signed": None}, "hashes agree; the internal files prove the rest"
        )
    found = {**check_manifest(path), "proven": None, "signed": None}
    problems: list[str] = found["problems"]
    found["signed"], unsigned = _check_release_signature(path.parent)
    problems += [unsigned] if unsigned else []
    if not problems and found["inputs_missing"] and not found["signed"]:
        problems.append("inputs are missing, and nothing is signed: the witnesses cannot be checked.")
    if not problems and not found["inputs_missing"]:
        found["proven"], wrong = _prove_release(path.parent, manifest, file)
        problems += wrong
    agreed = [
        "hashes",
        *(["proofs"] if found["proven"] is not None else []),
        *(["signature"] if found["signed"] else []),
    ]
    text = f"{', '.join(agreed[:-1])} and {agreed[-1]} agree" if len(agreed) > 1 else "hashes agree"
    text += "" if found["proven"] is not None else "; proofs not checked: inputs are missing"
    text += f"; not shown safe against everyone: {manifest['accepted']}" if "accepted" in manifest else ""
    return _add_verdict(found, text + ("" if found["signed"] else "; not signed"))


def _add_verdict(found: dict[str, Any], agreed: str) -> dict[str, Any]:
    accepted = not found["problems"]
    return {**found, "accepted": accepted, "verdict": agreed if accepted else "refused"}


def _check_release_signature(internal: Path) -> tuple[bool | None, str]:
    """Return whether a release is signed (None without a key), and what is wrong."""
    key = find_key(internal.parent)
    if key is None:
        return None, ""
    wrong = check_signature(internal, key, hash_unlisted_files(internal))
    return not wrong, wrong


def _prove_release(internal: Path, manifest: Mapping[str, Any], file: JobFile | None) -> tuple[int | None, list[str]]:
    """Return the number of cells that the witnesses prove safe, and the problems of witnesses and published files."""
    try:
        file = _read_released_job(internal, manifest) if file is None else file
        table = _leave_out_accepted(flag_job(tabulate_job(file), file), manifest)
        release = _read_published(table, internal)
        if "accepted" in manifest:
            release = replace(release, details={**release.details, ACCEPTED: str(manifest["accepted"])})
        if release.withholds_cells and "resist" in manifest.get("options", {}):
            release = replace(cast("Suppression", release), conceal=True)
        problems = list(_find_unlike_files(release, file, internal, manifest))
        witnesses = internal / _WITNESSES
        needed = release.by_ranges and bool(table.sensitive.any())  # an adjusted table is its own witness
        if needed and _WITNESSES not in manifest["outputs"]["."]:
            return None, [*problems, "there are no witnesses: nothing proves the release safe."]
        proofs, whole = read_witnesses(witnesses, n_cells=table.n_cells) if needed else ([], False)
        found = verify(release, proofs, integer=whole)
        jointly, wrong = 0, list[str]()
        if file.job.ledger.remembers or file.job.derived:
            jointly, wrong = prove_joint(release, file, internal, manifest)
        problems += wrong
    except (CellguardError, OSError, ValueError) as error:
        text = error.message if isinstance(error, CellguardError) else type(error).__name__
        return None, [f"the release cannot be checked against its inputs: {text}"]
    told = manifest.get("audit") or {}
    if not found.problems and found.checked == 0 and told.get("checked"):
        problems.append("the audit checked sensitive cells, and the table has none.")
    return max(found.checked, jointly), [*problems, *(f"witnesses: {text}" for text in found.problems[:20])]


def _leave_out_accepted(table: Table, manifest: Mapping[str, Any]) -> Table:
    """Return the table without the attackers against whom the manifest claims nothing."""
    left_out = manifest.get("not_shown_against", ()) if "accepted" in manifest else ()
    return leave_out(add_respondents(table), tuple(str(name) for name in left_out)) if left_out else table


def _read_released_job(internal: Path, manifest: Mapping[str, Any]) -> JobFile:
    """Return the job that made a release, with file names relative to its original folder."""
    place = manifest.get("job_folder")
    folder = (internal / place if isinstance(place, str) else internal.parent.parent).resolve()
    text = read_toml_text(internal / "job.toml", "job.toml")
    return JobFile(path=folder / "job.toml", text=text, job=Job.model_validate(parse_toml(text, "job.toml")))


def _read_published(table: Table, internal: Path) -> Release:
    """Read the release from the published files, or from the internal file of cells if these are not plain tables."""
    public = internal.parent / "public"
    plain = [
        path for path in sorted(public.iterdir())
        if path.name.endswith((".csv", ".parquet")) and not path.name.endswith(".sdmx.csv")
        and path.name != FIGURES
    ]  # fmt: skip
    if plain:
        return read_release(table, public if table.dimensions else plain[0])
    told = read_manifest_beside(public)
    how = {name: getattr(told, name) for name in _TOLD_FACTS}
    return read_release(table, internal / "cells.csv", **how, ignore=_INTERNAL_COLUMNS)


def _find_unlike_files(release: Release, file: JobFile, internal: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the published files that differ from what the release gives."""
    public = internal.parent / "public"
    with tempfile.TemporaryDirectory(prefix="cellguard-") as name:
        again = Path(name)
        audit, unsafe = _describe_accepted(release), bool(manifest.get("unsafe"))
        made = Outcome(
            file=file, release=audit.release, audit=audit, folder=internal.parent, seconds={}, unsafe=unsafe
        )  # fmt: skip
        write_public_files(again, replace(made, release=release))
        write_report(again / "report.html", describe_outcome(made), public=True)
        for listed in manifest["outputs"][PUBLIC]:
            if listed in _NOT_COMPARED:
                continue
            if not (again / listed).is_file():
                yield f"{listed}: the job does not ask for this file."
            elif (again / listed).read_bytes() != (public / listed).read_bytes():
                yield f"{listed}: is not what the release that the other files show gives{_say_version(manifest)}."


def _describe_accepted(release: Release) -> Audit:
    """Return the audit that accepts a release, as far as the public report repeats it: attackers and cells, no ranges.

    Witnesses prove elsewhere that it is right to accept it.
    """
    known = replace(release, table=add_respondents(release.table)) if release.by_ranges else release
    findings = []
    for attacker, need in list_audited_attackers(known):
        n = len(need.cells)
        open_, yes, no = np.zeros(n), np.ones(n, bool), np.zeros(n, bool)
        findings.append(
            Finding(
                attacker=attacker, levels=need, low=open_, high=open_, safe=yes, unsafe=no, exact=no,
                disclosed=np.zeros(0, np.int64),
            )
        )  # fmt: skip
    return Audit(release=known, findings=tuple(findings), integer=known.table.integer)


def _say_version(manifest: Mapping[str, Any]) -> str:
    """Return a remark if other versions made the release: they may lay out the same values differently."""
    now = collect_versions()
    other = [name for name, version in manifest.get("versions", {}).items() if now.get(name) != version]
    return f" (it was written with another {' and '.join(other)})" if other else ""

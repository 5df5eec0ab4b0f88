"""The manifest: inputs, outputs and versions of a release, so that it can be checked and reproduced."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._io.files import read_bytes
from cellguard.exceptions import FormatError
from cellguard.jobs.outputs.signing import SIGNATURE
from cellguard.methods.partial import CROSS, RESPONDENTS
from cellguard.release.release import Release, Status

if TYPE_CHECKING:
    from cellguard.jobs.runner import Outcome

__all__ = [
    "KEY_FILE",
    "PUBLIC",
    "build_internal_manifest",
    "build_public_manifest",
    "check_manifest",
    "collect_versions",
    "hash_files",
    "hash_for_manifest",
    "hash_unlisted_files",
    "read_manifest",
]  # fmt: skip

_FORMAT = "cellguard manifest 1"
KEY_FILE = "release.key"
"""Internal file with the key of a release made by random draws; the same key gives the same release."""
_CHANGING = dict.fromkeys(("report.html", "timing.json"), "tells seconds, which differ between two runs")
"""Internal files that are not hashed, and why: with them the manifests of two equal runs would differ."""
PUBLIC = "../public"
"""Name of the public folder in the internal manifest."""
_LIBRARIES = ("numpy", "scipy", "highspy", "pyscipopt", "duckdb", "pyarrow")


def collect_versions() -> dict[str, str]:
    """Return the versions of all software that affects a result."""
    from cellguard import __version__

    found = {"cellguard": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # pragma: no cover - all of them are required
            continue
    return found


def hash_for_manifest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_files(folder: Path, *, without: Iterable[str] = ()) -> dict[str, str]:
    """Return the hashes of the files of a folder, by name."""
    left_out = set(without)
    return {path.name: hash_for_manifest(path) for path in sorted(folder.iterdir()) if path.name not in left_out}


def build_public_manifest(outcome: Outcome, public: Path) -> dict[str, Any]:
    """Return the public manifest: no seed, no hash of a confidential file, and only the options that are published."""
    told = outcome.release.get_published_parameters()
    return _collect_common_facts(outcome) | {
        "audited": outcome.audit is not None,
        "outputs": {".": hash_files(public, without=("manifest.json",))},
        **({"published_with": told} if told else {}),
    }


def hash_unlisted_files(internal: Path) -> dict[str, str]:
    """Return the hashes of the internal files that the manifest leaves out, for the signature."""
    return {name: hash_for_manifest(internal / name) for name in _CHANGING if (internal / name).is_file()}


def build_internal_manifest(
    outcome: Outcome, public: Path, internal: Path, inputs: Mapping[str, str], job_folder: str
) -> dict[str, Any]:
    """Return the internal manifest: everything that made the release, with the hashes of inputs and outputs.

    `job_folder` is the folder of the job file, relative to the internal folder.
    """
    release = outcome.release
    accepted = getattr(release.earlier, "accepted", ())
    return _collect_common_facts(outcome) | {
        "confidential": True,
        "job_folder": job_folder,
        "seed": outcome.file.job.seed,
        "options": {k: v for k, v in release.options.items() if v is not None and k != "key"},
        **({"key": KEY_FILE} if "key" in release.options else {}),
        "status": str(release.status),
        "repeatable": _is_repeatable(outcome),
        "audit": None if outcome.audit is None else outcome.audit.summary(),
        "inputs": dict(inputs),
        "outputs": {PUBLIC: hash_files(public), ".": hash_files(internal, without=_CHANGING)},
        "not_hashed": _CHANGING,
        **({"warnings": list(outcome.warnings)} if outcome.warnings else {}),
        **({"accepted_as_known": sorted(accepted)} if accepted else {}),
    }


def _collect_common_facts(outcome: Outcome) -> dict[str, Any]:
    """Return the content of both manifests, with a note where the verdict would mislead without one."""
    nothing = outcome.audit is not None and outcome.audit.checked == 0
    return {
        "format": _FORMAT,
        "name": outcome.file.job.name,
        "method": outcome.release.method,
        "versions": collect_versions(),
        "safe": not outcome.unsafe,
        "safe_against_everyone": not outcome.unsafe and not outcome.release.accepted,
        **({"unsafe": True} if outcome.unsafe else {}),
        **_describe_acceptance(outcome.release),
        **({"nothing_sensitive": True} if nothing else {}),
    }


def _describe_acceptance(release: Release) -> dict[str, Any]:
    """Return the statement about a release that was accepted without proof against everyone, and who is left out."""
    if not release.accepted:
        return {}
    left_out = [RESPONDENTS] if release.table.insiders is False else []
    left_out += [CROSS] if release.table.crosses_left_out else []
    return {"accepted": release.accepted, "not_shown_against": left_out}


def _is_repeatable(outcome: Outcome) -> bool:
    """Return whether another run would give the same release: no clock and no user decided when the search ended.

    A search without a fixed number of rounds goes on until its time is used up, unless it proves its result. With
    rounds, a search that used most of its time may have left out a step that a faster machine takes.
    """
    release, limit_s = outcome.release, outcome.file.job.limits.time_limit_s
    if release.status is Status.OPTIMAL:  # the search finished
        return True
    asked, done = release.options.get("rounds"), release.details.get("rounds")
    if release.status is Status.TIME_LIMIT or asked is None:
        return False
    if done is not None and done < asked and release.objective > 0:
        return False
    used_s = outcome.seconds.get("protect", 0.0)
    return "protect" in outcome.resumed or used_s <= _UNHURRIED * limit_s


_UNHURRIED = 0.5
"""Share of its time limit below which no part of a search with fixed rounds was cut short."""


def check_manifest(path: Path) -> dict[str, Any]:
    """Check the hashes of a manifest and its audit section (`cellguard.jobs.outputs.verify` checks the rest).

    The listed files must exist unchanged, with no other files, and the audit must have found the release safe.
    Returns the figures and the list of problems, in words. Inputs that no longer exist are
    counted but are not problems: they may have been archived.
    """
    manifest = read_manifest(path)
    problems = list(_explain_unsafe_manifest(path, manifest))
    checked = 0
    for folder, files in manifest["outputs"].items():
        place = (path.parent / folder).resolve()
        if not place.is_dir():
            problems.append(f"{folder}: the folder is missing.")
            continue
        for name, digest in files.items():
            checked += 1
            problems += _check_hash(place / name, digest, "output")
        unlisted = (*_CHANGING, SIGNATURE) if PUBLIC in manifest["outputs"] and folder == "." else ()
        listed = {*files, *unlisted, "manifest.json"}
        problems += [
            f"{entry.name}: is not in the manifest." for entry in sorted(place.iterdir()) if entry.name not in listed
        ]
    missing = 0
    for name, digest in manifest.get("inputs", {}).items():
        file = path.parent / name
        if file.is_file():
            checked += 1
            problems += _check_hash(file, digest, "input")
        else:
            missing += 1
    return {"accepted": not problems, "checked": checked, "inputs_missing": missing, "problems": problems}


def _explain_unsafe_manifest(path: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Return the reasons why the manifest does not describe a release that an audit found safe."""
    outputs = manifest["outputs"]
    released = outputs.get(PUBLIC, outputs.get(".", {}))
    if not released:
        yield "the manifest lists no file that was published."
    if manifest.get("unsafe") or manifest.get("safe") is not True:
        yield "the release was written although the audit refused it."
    if manifest.get("safe_against_everyone", "accepted" not in manifest) is not ("accepted" not in manifest):
        yield "the manifest contradicts itself about the attackers against whom the release is safe."
    if PUBLIC not in outputs:
        if manifest.get("audited") is not True:
            yield "the release was not audited."
        return
    if "audit.json" not in outputs.get(".", {}):
        yield "the manifest does not list the audit."
        return
    try:
        audit = json.loads((path.parent / "audit.json").read_bytes())
        told = {name: audit[name] for name in ("safe", "checked", "exact", "unsafe")}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        yield "the audit is missing or damaged."
        return
    if {name: (manifest.get("audit") or {}).get(name) for name in told} != told:
        yield "the audit is not the one that the manifest tells of."
    if told["safe"] is not True and not (told["checked"] == 0 and manifest.get("nothing_sensitive") is True):
        yield "the audit does not call the release safe."


def _check_hash(path: Path, digest: str, what: str) -> list[str]:
    if what == "output" and path.is_symlink():
        return [f"{path.name}: the {what} is a symbolic link."]
    if not path.is_file():
        return [f"{path.name}: the {what} is missing."]
    return [] if hash_for_manifest(path) == digest else [f"{path.name}: the {what} has changed."]


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest; raise an error if it is damaged, or names files outside its folders."""
    try:
        manifest = json.loads(read_bytes(path, max_bytes=64 << 20))
    except (ValueError, RecursionError):
        raise FormatError.at(path, None, "is not a JSON file.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise FormatError.at(path, None, "is not a manifest.", hint=f"its format must be {_FORMAT!r}.")
    sound = isinstance(manifest.get("outputs"), dict) and all(
        _are_manifest_hashes(files) for files in manifest["outputs"].values()
    )
    if not sound or not _are_manifest_hashes(manifest.get("inputs", {})):
        raise FormatError.at(path, None, "is damaged.", hint="was it edited?")
    if not set(manifest["outputs"]) <= {".", PUBLIC}:
        raise FormatError.at(path, None, "names other folders than its own and the public one.")
    for name in [*manifest["outputs"], *(n for files in manifest["outputs"].values() for n in files)]:
        if Path(name).is_absolute() or (".." in Path(name).parts[1:]) or len(Path(name).parts) > 2:
            raise FormatError.at(path, None, "names files outside its folder.")
    return manifest


def _are_manifest_hashes(files: Any) -> bool:
    return isinstance(files, Mapping) and all(isinstance(k, str) and isinstance(v, str) for k, v in files.items())

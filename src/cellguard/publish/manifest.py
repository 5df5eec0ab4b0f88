"""The manifest: what was made from what, by what, so that it can be checked and made again."""

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
from cellguard.nouns.release import Release, Status

if TYPE_CHECKING:
    from cellguard.publish.run import Outcome

__all__ = ["check_manifest", "hash_for_manifest", "internal_manifest", "public_manifest", "versions_for_manifest"]

_FORMAT = "cellguard manifest 1"
_CHANGING = dict.fromkeys(("report.html", "timing.json"), "tells seconds, which differ between two runs")
"""Internal files that are not hashed, and why: with them the manifests of two equal runs would differ."""
_PUBLIC = "../public"
"""What the internal manifest calls the public folder."""
_LIBRARIES = ("numpy", "scipy", "highspy", "pyscipopt", "duckdb", "pyarrow")


def versions_for_manifest() -> dict[str, str]:
    """Return the versions of everything that decides a result."""
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


def _hashes_for_manifest(folder: Path, *, without: Iterable[str] = ()) -> dict[str, str]:
    """Return the hashes of the files of a folder, by name."""
    left_out = set(without)
    return {path.name: hash_for_manifest(path) for path in sorted(folder.iterdir()) if path.name not in left_out}


def public_manifest(outcome: Outcome, public: Path) -> dict[str, Any]:
    """Return what everybody may know: no seed, no hash of anything confidential, of options what readers are told."""
    told = outcome.release.published_with()
    return _facts_in_both_manifests(outcome) | {
        "audited": outcome.audit is not None,
        "outputs": {".": _hashes_for_manifest(public, without=("manifest.json",))},
        **({"published_with": told} if told else {}),
    }


def internal_manifest(outcome: Outcome, public: Path, internal: Path, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Return everything that made the release, with the hashes of what was read and written."""
    release = outcome.release
    return _facts_in_both_manifests(outcome) | {
        "confidential": True,
        "seed": outcome.file.job.seed,
        "options": {k: v for k, v in release.options.items() if v is not None},
        "status": str(release.status),
        "repeatable": _repeatable_run(release),
        "audit": None if outcome.audit is None else outcome.audit.summary(),
        "inputs": dict(inputs),
        "outputs": {_PUBLIC: _hashes_for_manifest(public), ".": _hashes_for_manifest(internal, without=_CHANGING)},
        "not_hashed": _CHANGING,
        **({"warnings": list(outcome.warnings)} if outcome.warnings else {}),
    }


def _facts_in_both_manifests(outcome: Outcome) -> dict[str, Any]:
    """Return what both manifests say; a word more where nobody would call the release safe without it."""
    nothing = outcome.audit is not None and outcome.audit.checked == 0
    return {
        "format": _FORMAT,
        "name": outcome.file.job.name,
        "method": outcome.release.method,
        "versions": versions_for_manifest(),
        "safe": not outcome.unsafe,
        **({"unsafe": True} if outcome.unsafe else {}),
        **({"nothing_sensitive": True} if nothing else {}),
    }


def _repeatable_run(release: Release) -> bool:
    """Say whether another run would give the same release: no clock and no Ctrl-C ended the search."""
    asked, done = release.options.get("rounds"), release.details.get("rounds")
    cut_short = asked is not None and done is not None and done < asked and release.objective > 0
    if release.status is Status.OPTIMAL:  # the search ended by itself
        return True
    return release.status is not Status.TIME_LIMIT and not cut_short


def check_manifest(path: Path) -> dict[str, Any]:
    """Check what a manifest says: these files, this audit, safe.

    The files it lists must be there, unchanged and alone, and the audit must have found the release safe.
    Returns the figures and the list of problems, in words. Inputs that are no longer where they were are
    counted, not complained about: they may have been archived.
    """
    manifest = _read_manifest(path)
    problems = list(_why_manifest_is_unsafe(path, manifest))
    checked = 0
    for folder, files in manifest["outputs"].items():
        place = (path.parent / folder).resolve()
        if not place.is_dir():
            problems.append(f"{folder}: the folder is missing.")
            continue
        for name, digest in files.items():
            checked += 1
            problems += _wrong_hash_in_manifest(place / name, digest, "output")
        listed = {*files, *(_CHANGING if _PUBLIC in manifest["outputs"] and folder == "." else ()), "manifest.json"}
        problems += [
            f"{entry.name}: is not in the manifest." for entry in sorted(place.iterdir()) if entry.name not in listed
        ]
    missing = 0
    for name, digest in manifest.get("inputs", {}).items():
        file = path.parent / name
        if file.is_file():
            checked += 1
            problems += _wrong_hash_in_manifest(file, digest, "input")
        else:
            missing += 1
    return {"accepted": not problems, "checked": checked, "inputs_missing": missing, "problems": problems}


def _why_manifest_is_unsafe(path: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Say why the manifest is not one of a release that an audit found safe."""
    outputs = manifest["outputs"]
    released = outputs.get(_PUBLIC, outputs.get(".", {}))
    if not released:
        yield "the manifest lists no file that was published."
    if manifest.get("unsafe") or manifest.get("safe") is not True:
        yield "the release was written although the audit refused it."
    if _PUBLIC not in outputs:
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


def _wrong_hash_in_manifest(path: Path, digest: str, what: str) -> list[str]:
    if what == "output" and path.is_symlink():
        return [f"{path.name}: the {what} is a symbolic link."]
    if not path.is_file():
        return [f"{path.name}: the {what} is missing."]
    return [] if hash_for_manifest(path) == digest else [f"{path.name}: the {what} has changed."]


def _read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(read_bytes(path, max_bytes=64 << 20))
    except (ValueError, RecursionError):
        raise FormatError.at(path, None, "is no JSON file.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise FormatError.at(path, None, "is not a manifest.", hint=f"its format must be {_FORMAT!r}.")
    sound = isinstance(manifest.get("outputs"), dict) and all(
        _are_manifest_hashes(files) for files in manifest["outputs"].values()
    )
    if not sound or not _are_manifest_hashes(manifest.get("inputs", {})):
        raise FormatError.at(path, None, "is damaged.", hint="was it edited?")
    if not set(manifest["outputs"]) <= {".", _PUBLIC}:
        raise FormatError.at(path, None, "names other folders than its own and the public one.")
    for name in [*manifest["outputs"], *(n for files in manifest["outputs"].values() for n in files)]:
        if Path(name).is_absolute() or (".." in Path(name).parts[1:]) or len(Path(name).parts) > 2:
            raise FormatError.at(path, None, "names files outside its folder.")
    return manifest


def _are_manifest_hashes(files: Any) -> bool:
    return isinstance(files, Mapping) and all(isinstance(k, str) and isinstance(v, str) for k, v in files.items())

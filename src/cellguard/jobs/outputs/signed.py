"""Releases that people have signed: a signed release is never replaced; the next version has its own folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cellguard._io.files import read_bytes
from cellguard.exceptions import InputError
from cellguard.jobs.outputs.manifest import hash_for_manifest

__all__ = ["SIGNED_FILE", "SignedReleaseError", "name_next_version", "read_sign_off", "refuse_signed"]

SIGNED_FILE = "signed.json"
"""Name of the file beside ``public`` and ``internal`` that says who signed a release, when, and what."""
_MAX_BYTES = 1 << 20


class SignedReleaseError(InputError):
    """A run would replace a signed release."""


def read_sign_off(folder: Path) -> dict[str, Any] | None:
    """Return who signed the release in a folder, and whether it is still what was signed; None if it is not signed."""
    path, manifest = folder / SIGNED_FILE, folder / "internal" / "manifest.json"
    if path.is_symlink() or not path.is_file():
        return None
    try:
        signed = json.loads(read_bytes(path, max_bytes=_MAX_BYTES))
    except (ValueError, RecursionError):
        signed = None
    if not isinstance(signed, dict) or not isinstance(signed.get("who"), str):
        return {"who": "?", "when": None, "remark": "", "manifest": None, "unchanged": False}
    unchanged = manifest.is_file() and signed.get("manifest") == hash_for_manifest(manifest)
    return signed | {"unchanged": unchanged}


def refuse_signed(folder: Path) -> None:
    """Raise an error if the release in a folder is signed: it must not be replaced."""
    signed = read_sign_off(folder)
    if signed is not None:
        raise SignedReleaseError(
            f"{folder.name}: this release is signed by {signed['who']}; it is not replaced.",
            hint=f"write the next version to another folder, such as {name_next_version(folder)}.",
        )


def name_next_version(folder: Path) -> str:
    """Return an unused name beside a folder for the next version of its release.

    >>> name_next_version(Path("/nowhere/release")), name_next_version(Path("/nowhere/release-v2"))
    ('release-v2', 'release-v3')
    """
    stem, _, number = folder.name.rpartition("-v")
    name, version = (stem, int(number)) if stem and number.isdecimal() else (folder.name, 1)
    while True:
        version += 1
        found = f"{name}-v{version}"
        if not (folder.parent / found).exists():
            return found

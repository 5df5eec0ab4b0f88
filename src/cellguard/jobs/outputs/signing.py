"""Signatures of releases: an attacker who rewrites the files and hashes of a release cannot forge its signature.

The internal manifest holds the hash of every file. Its HMAC, by a key that is never in the release's folder, shows
that the run wrote this manifest. The variable ``CELLGUARD_SIGNING_KEY`` names the key file;
without it, the key is ``.cellguard.key`` beside the job, which the first run creates. Only its owner may read it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from cellguard._io.files import create_private, read_bytes
from cellguard.exceptions import InputError

__all__ = [
    "KEY_FILE",
    "KEY_VARIABLE",
    "SIGNATURE",
    "check_signature",
    "find_key",
    "make_key",
    "name_key",
    "sign_manifest",
]

KEY_VARIABLE = "CELLGUARD_SIGNING_KEY"
"""Environment variable that names the file of the key."""
KEY_FILE = ".cellguard.key"
"""Name of the key file beside a job, if the variable is not set."""
SIGNATURE = "signature.json"
"""Name of the signature, beside the internal manifest."""
_FORMAT = "cellguard signature 1"
_MIN_KEY_CHARACTERS = 32
"""A shorter key can be guessed; cellguard writes 64 characters."""
_MAX_KEY_BYTES = 4096


def make_key(folder: Path) -> bytes:
    """Return the key that signs the releases of a folder's jobs; the first call creates it."""
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return _read_key(Path(named))
    path = folder / KEY_FILE
    if not path.exists() and not path.is_symlink():
        create_private(path, secrets.token_hex(32) + "\n")
    return _read_key(path)


def find_key(release: Path) -> bytes | None:
    """Return the key for the release in a folder: the one named, or the nearest one above the folder.

    A key inside the folder itself is ignored: an attacker who can rewrite the release could have put it there.
    """
    named = os.environ.get(KEY_VARIABLE)
    if named:
        return _read_key(Path(named))
    place = next((above / KEY_FILE for above in release.resolve().parents if (above / KEY_FILE).is_file()), None)
    return None if place is None else _read_key(place)


def sign_manifest(internal: Path, key: bytes, also: Mapping[str, str]) -> str:
    """Return the signature of a folder's manifest as text; `also` holds the hashes of files that it does not list."""
    manifest = read_bytes(internal / "manifest.json")
    content = {
        "format": _FORMAT,
        "key": name_key(key),
        "files": dict(also),
        "hmac": _compute_hmac(manifest, key, also),
    }
    return json.dumps(content, indent=2, sort_keys=True) + "\n"


def check_signature(internal: Path, key: bytes, also: Mapping[str, str]) -> str:
    """Return what is wrong with the signature of a manifest; nothing if it is valid."""
    try:
        content = json.loads(read_bytes(internal / SIGNATURE, max_bytes=1 << 20))
        name, given = content["key"], str(content["hmac"])
        known = content["format"] == _FORMAT
    except (InputError, ValueError, KeyError, TypeError, RecursionError):
        return "the signature is missing or damaged."
    if not known or name != name_key(key):
        return "the signature was made with another key."
    right = _compute_hmac(read_bytes(internal / "manifest.json"), key, also)
    return "" if hmac.compare_digest(right.encode(), given.encode()) else "the signature does not fit the manifest."


def _compute_hmac(manifest: bytes, key: bytes, also: Mapping[str, str]) -> str:
    listed = json.dumps(dict(also), sort_keys=True).encode()
    parts = (_FORMAT.encode(), hashlib.sha256(manifest).hexdigest().encode(), listed)
    return hmac.new(key, b"\n".join(parts), hashlib.sha256).hexdigest()


def name_key(key: bytes) -> str:
    """Return an identifier of a key that does not reveal it."""
    return hashlib.sha256(b"cellguard key name\n" + key).hexdigest()[:16]


def _read_key(path: Path) -> bytes:
    """Read a key; raise an error if it is missing, too short, or readable by others."""
    hint = f"{KEY_VARIABLE} names a file with at least {_MIN_KEY_CHARACTERS} random characters, of mode 0600."
    if not path.is_file():
        raise InputError(f"{path}: there is no such key.", hint=hint)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise InputError(f"{path}: others may read this key.", hint=f"chmod 600 {path.name}")
    key = read_bytes(path, max_bytes=_MAX_KEY_BYTES).strip()
    if len(key) < _MIN_KEY_CHARACTERS:
        raise InputError(f"{path}: the key is too short.", hint=hint)
    return key

"""Who signed a release: a small file beside it, with the fingerprint of what was signed."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

from cellguard._io.files import write_text
from cellguard.exceptions import InputError

__all__ = ["FILE", "sign", "signature_of"]

FILE = "signed.json"
_MOST = 2000


def sign(folder: Path, *, who: str, remark: str, read: bool) -> dict[str, Any]:
    """Sign a release; raises where it is not safe, not as it was written, or nobody signs."""
    from cellguard.publish.manifest import check_manifest, hash_of

    if not who.strip() or len(who) + len(remark) > _MOST:
        raise InputError("a name is needed.", hint="your own.")
    if not read:
        raise InputError("the report and the audit were not read.", hint="read them first, then say so.")
    manifest = folder / "internal" / "manifest.json"
    found = check_manifest(manifest)
    if not found["accepted"]:
        raise InputError(f"this release cannot be signed: {found['problems'][0]}", hint="protect the table again.")
    signed = {
        "who": who.strip(),
        "remark": remark.strip(),
        "when": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "manifest": hash_of(manifest),
    }
    write_text(folder / FILE, json.dumps(signed, indent=2, ensure_ascii=False) + "\n", private=True)
    return signed | {"unchanged": True}


def signature_of(folder: Path) -> dict[str, Any] | None:
    """Return who signed a release, and whether it is still what was signed."""
    from cellguard.publish.manifest import hash_of

    path, manifest = folder / FILE, folder / "internal" / "manifest.json"
    if path.is_symlink() or not path.is_file():
        return None
    try:
        signed = json.loads(path.read_bytes())
    except ValueError:
        return None
    return signed | {"unchanged": signed.get("manifest") == hash_of(manifest)} if isinstance(signed, dict) else None

"""Record the releases anew: ``python tests/recorded/record.py``; the differences are printed."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cellguard.exceptions import CellguardError
from recorded.releases import RELEASES, make_release

RECORDED = Path(__file__).with_name("releases.json")


def describe_release(name: str) -> dict[str, Any]:
    """Return how the method ended, and the hash of what is published."""
    try:
        release = make_release(name)
    except CellguardError as error:
        return {"refused": hashlib.sha256(str(error).encode()).hexdigest()[:16]}
    out: dict[str, Any] = {"status": str(release.status)}
    if release.published:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "release.csv"
            release.save(path, allow_unsafe=True, allow_unchecked=True)
            out["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    return out


def main(names: list[str]) -> None:
    """Record all releases, or those of the given names only."""
    before = json.loads(RECORDED.read_text()) if RECORDED.is_file() else {}
    after = dict(before) if names else {}
    for name in names or RELEASES:
        begin = time.process_time()
        after[name] = describe_release(name)
        if before.get(name) != after[name] or time.process_time() - begin > 3:
            took = time.process_time() - begin
            sys.stdout.write(f"{name}: {before.get(name)} -> {after[name]}, {took:.1f} s\n")
    RECORDED.write_text(json.dumps(after, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

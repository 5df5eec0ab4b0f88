"""Find out whether a job would repeat the release that its folder already holds."""

from __future__ import annotations

import os
from pathlib import Path

from cellguard._io.files import read_bytes
from cellguard.exceptions import FormatError
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.outputs import manifest as manifests
from cellguard.jobs.steps import list_inputs

__all__ = ["find_change"]


def find_change(file: JobFile, folder: Path | None = None) -> str | None:
    """Return what changed since the release in the folder was made, in words; None if nothing did.

    Compared are the job, every input file, the versions of the software, and the files of the release itself. A
    release that was written although it is unsafe counts as changed.
    """
    internal = (folder or file.folder) / "internal"
    if not (internal / "manifest.json").is_file():
        return "there is no release yet"
    try:
        made = manifests.read_manifest(internal / "manifest.json")
        text = read_bytes(internal / "job.toml").decode()
    except (FormatError, OSError, UnicodeDecodeError):
        return "the release cannot be read"
    if text != file.text:
        return "the job changed"
    if made.get("versions") != manifests.collect_versions():
        return "the software changed"
    now = {os.path.relpath(path, internal): file.facts.get_facts(path).digest for path in list_inputs(file)}
    if made.get("inputs") != now:
        before = made.get("inputs", {})
        changed = (name for name in {*now, *before} if before.get(name) != now.get(name))
        return f"inputs changed: {', '.join(sorted(Path(name).name for name in changed))}"
    if not manifests.check_manifest(internal / "manifest.json")["accepted"]:
        return "the files of the release changed, or it is not safe"
    return None

"""The one folder the server may see: every name is followed to its end, symbolic links included."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.publish.check import Mistake

__all__ = ["DATA_ENDINGS", "Root", "files_server_may_not_see", "free_name_in_project"]

DATA_ENDINGS = (".csv", ".csv.gz", ".parquet", ".xlsx", ".jj", ".jj.gz", ".tsv", ".txt", ".hrc", ".hst", ".toml")
"""What may lie in a project: data, hierarchies, decisions, descriptions."""
_MAX_LISTED = 2000
_MAX_DEPTH = 4
_OUTSIDE = "lies outside of the folder that was given to cellguard serve."


class Root:
    """The folder that was given at the start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve(strict=True)

    def inside(self, name: str) -> Path:
        """Return the path of a name in the folder; raises where it leads out of it."""
        path = self.folder / name
        if "\0" in name or not self.holds(path):
            raise InputError(f"{name[:200]!r}: {_OUTSIDE}", hint="copy the file into it, or upload it.")
        return path

    def holds(self, path: Path) -> bool:
        """Say whether a path ends inside, wherever its symbolic links lead."""
        try:
            return path.resolve().is_relative_to(self.folder)
        except (OSError, ValueError, RuntimeError):  # too long, a null character, a circle of links
            return False

    def listed(self, endings: tuple[str, ...] = DATA_ENDINGS) -> list[str]:
        """Return the names of the data files inside, sorted; hidden folders and releases are left out."""
        found = [
            path.relative_to(self.folder).as_posix()
            for path in self._files_inside()
            if path.name.lower().endswith(endings) and path.name != "job.toml" and self.holds(path)
        ]
        return sorted(found)[:_MAX_LISTED]

    def _files_inside(self) -> Iterator[Path]:
        for here, folders, files in os.walk(self.folder, followlinks=False):
            place = Path(here)
            deep = len(place.relative_to(self.folder).parts) >= _MAX_DEPTH
            released = (place / "public" / "manifest.json").is_file()
            skipped = ("public", "internal") if released else ()
            folders[:] = [] if deep else sorted(f for f in folders if not f.startswith(".") and f not in skipped)
            yield from (place / name for name in files if not name.startswith("."))


def files_server_may_not_see(raw: Any, root: Root, folder: Path) -> list[Mistake]:
    """Return a mistake for every file that a job names and that lies outside of the folder."""
    from cellguard.publish.check import Mistake

    found = []
    for path, name in _project_files_named_in_job(raw):
        fixed = PurePosixPath(*_project_path_before_wildcard(name))
        wild = PurePosixPath(name).parts[len(fixed.parts) :]
        inside = "\0" not in name and ".." not in wild and root.holds(folder / fixed)
        if not inside or (wild and not all(root.holds(Path(p)) for p in _project_files_matching(folder, name))):
            found.append(Mistake(path, f"{name}: {_OUTSIDE}", "copy the file into it, or upload it."))
    return found


def _project_files_matching(folder: Path, name: str) -> list[str]:
    return glob.glob(str(folder / name), recursive=True)  # noqa: PTH207 - as the job itself looks for them


def _project_path_before_wildcard(name: str) -> list[str]:
    parts: list[str] = []
    for part in PurePosixPath(name).parts:
        if any(sign in part for sign in "*?["):
            break
        parts.append(part)
    return parts


def _project_files_named_in_job(raw: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every name of a file in the content of a job, whatever its shape."""
    if not isinstance(raw, dict):
        return
    for section, keys in {"data": ("file", "table", "template"), "output": ("folder", "layout")}.items():
        entry = raw.get(section)
        if isinstance(entry, dict):
            yield from (((section, key), entry[key]) for key in keys if isinstance(entry.get(key), str))
    dimensions = raw.get("dimensions")
    for name, entry in dimensions.items() if isinstance(dimensions, dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("hierarchy"), str):
            yield ("dimensions", name, "hierarchy"), entry["hierarchy"]
    for section in ("rules", "tables"):
        entries = raw.get(section)
        for k, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get("file"), str):
                yield (section, k, "file"), entry["file"]


def free_name_in_project(folder: Path, wanted: str) -> str:
    """Return a name that is not taken in a folder: the wanted one, or with a number behind it.

    >>> free_name_in_project(Path("/nowhere"), "release")
    'release'
    """
    name, number = wanted, 1
    while (folder / name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name

"""The one folder that the server may access: every name is resolved, including symbolic links."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.jobs.definition.check import Mistake

__all__ = ["DATA_ENDINGS", "Root", "free_name_in_project", "list_outside_files"]

DATA_ENDINGS = (".csv", ".csv.gz", ".parquet", ".xlsx", ".jj", ".jj.gz", ".tsv", ".txt", ".hrc", ".hst", ".toml")
"""Endings of files allowed in a project: data, hierarchies, decisions, descriptions."""
_MAX_LISTED = 2000
_MAX_DEPTH = 4
_OUTSIDE = "lies outside of the folder that was given to cellguard serve."


class Root:
    """The folder given at the start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve(strict=True)

    def resolve_inside(self, name: str) -> Path:
        """Return the path of a name in the folder; raise an error if it leads outside."""
        path = self.folder / name
        if "\0" in name or not self.is_inside(path):
            raise InputError(f"{name[:200]!r}: {_OUTSIDE}", hint="copy the file into it, or upload it.")
        return path

    def is_inside(self, path: Path) -> bool:
        """Return whether a path is inside the folder after its symbolic links are resolved."""
        try:
            return path.resolve().is_relative_to(self.folder)
        except (OSError, ValueError, RuntimeError):  # too long, a null character, or a loop of links
            return False

    def list_files(self, endings: tuple[str, ...] = DATA_ENDINGS) -> list[str]:
        """Return the sorted names of the data files in the folder, without hidden folders and releases."""
        found = [
            path.relative_to(self.folder).as_posix()
            for path in self._list_files()
            if path.name.lower().endswith(endings) and path.name != "job.toml" and self.is_inside(path)
        ]
        return sorted(found)[:_MAX_LISTED]

    def _list_files(self) -> Iterator[Path]:
        for here, folders, files in os.walk(self.folder, followlinks=False):
            place = Path(here)
            deep = len(place.relative_to(self.folder).parts) >= _MAX_DEPTH
            released = (place / "public" / "manifest.json").is_file()
            skipped = ("public", "internal") if released else ()
            folders[:] = [] if deep else sorted(f for f in folders if not f.startswith(".") and f not in skipped)
            yield from (place / name for name in files if not name.startswith("."))


def list_outside_files(raw: Any, root: Root, folder: Path) -> list[Mistake]:
    """Return a mistake for every file that a job names outside the folder."""
    from cellguard.jobs.definition.check import Mistake
    from cellguard.jobs.definition.model import Job
    from cellguard.jobs.definition.sections import list_named_files

    found = []
    for path, name in list_named_files(Job, raw):
        fixed = PurePosixPath(*_project_path_before_wildcard(name))
        wild = PurePosixPath(name).parts[len(fixed.parts) :]
        inside = (
            "\0" not in name and ".." not in wild and root.is_inside(folder / fixed) and root.is_inside(folder / name)
        )
        if not inside or (wild and not all(root.is_inside(Path(p)) for p in _project_files_matching(folder, name))):
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


def free_name_in_project(folder: Path, wanted: str) -> str:
    """Return an unused name in a folder: the wanted one, or the same with a number appended.

    >>> free_name_in_project(Path("/nowhere"), "release")
    'release'
    """
    name, number = wanted, 1
    while (folder / name).exists():
        number += 1
        name = f"{wanted}-{number}"
    return name

"""Projects: a folder with a job file, its data, and what was made of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._io.facts import ReadOnce
from cellguard._io.files import atomic_writer, read_bytes, write_text
from cellguard._io.toml import parse_toml, read_toml_text, toml_document
from cellguard.exceptions import CellguardError, FormatError, InputError, UnknownCodeError
from cellguard.web.places import DATA_ENDINGS, Root, files_server_may_not_see

if TYPE_CHECKING:
    from cellguard.publish.check import Mistake
    from cellguard.publish.model import Job
    from cellguard.publish.read import JobFile

__all__ = ["PARTS", "Project", "Projects", "mistakes_for_browser"]

PARTS = {
    "data": ("name", "title", "unconfirmed", "data", "dimensions", "tables", "indicators", "equations", "tolerance"),
    "rules": ("rules", "levels", "insiders", "nothing_sensitive", "attackers"),
    "method": ("method", "seed", "compare", "attack"),
    "protect": ("limits", "output", "seed", "title", "attack"),
}
"""Page -> the sections of the job that it edits."""
_JOB = "job.toml"
_PRIVATE = ".cellguard"
_UPLOADS = "uploads"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,79}")
_HEAD = "# Written by the page (cellguard serve). The same release without the page:  cellguard protect job.toml\n\n"
_MAX_DEPTH = 3
_MAX_UNPACKED = 1 << 30
"""Bytes of what an uploaded file holds."""


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a job file."""

    root: Root
    folder: Path
    facts: ReadOnce = field(default_factory=ReadOnce, compare=False, repr=False)
    """Of the files that its job names."""

    @property
    def id(self) -> str:
        """What addresses call it: its folder, with ~ between the parts."""
        inside = self.folder.relative_to(self.root.folder).as_posix()
        return "~" if inside == "." else inside.replace("/", "~")

    @property
    def path(self) -> Path:
        """The job file."""
        return self.folder / _JOB

    @property
    def private(self) -> Path:
        """What the page keeps for itself: progress and comparisons; only the owner reads it."""
        return self._own_folder(_PRIVATE)

    def _own_folder(self, name: str) -> Path:
        path = self.folder / name
        if path.is_symlink():
            raise InputError(f"{name}: is a symbolic link.", hint="remove it.")
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    # ---------------------------------------------------------------- the job

    def text(self) -> str:
        """Return the job file as it is."""
        return read_toml_text(self.path, _JOB)

    def raw(self) -> dict[str, Any]:
        """Return what the job file says, whatever its mistakes."""
        return parse_toml(self.text(), _JOB)

    def examined(self, raw: Mapping[str, Any]) -> tuple[Job | None, list[Mistake]]:
        """Return the job, if its shape is right, and every mistake; nothing outside of the folder is touched."""
        from cellguard.publish.read import examine_job

        outside = files_server_may_not_see(raw, self.root, self.folder)
        if outside:
            return None, outside
        job, mistakes = examine_job(dict(raw), self.folder, self.facts)
        if job is not None and job.data.table is not None and not mistakes:
            mistakes += self._description_outside(job.data.table)
        return job, mistakes

    def _description_outside(self, name: str) -> list[Mistake]:
        from cellguard.nouns.table import Table
        from cellguard.publish.check import Mistake

        try:
            files = Table.files(self.folder / name)
        except CellguardError as error:
            return [Mistake(("data", "table"), error.message, error.hint)]
        return [
            Mistake(("data", "table"), f"{path.name}: lies outside of the folder.")
            for path in files
            if not self.root.holds(path)
        ]

    def job_file(self) -> JobFile:
        """Return the job, ready to run; raises with the first mistake where there is one."""
        from cellguard.publish.read import JobFile

        text, raw = self.text(), self.raw()
        job, mistakes = self.examined(raw)
        if job is None or mistakes:
            first = mistakes[0]
            place = ".".join(str(part) for part in first.path)
            raise InputError(f"{place}: {first.text}", hint=first.hint)
        return JobFile(path=self.path, text=text, job=job, facts=self.facts)

    def change(self, part: str, sections: Mapping[str, Any]) -> list[Mistake]:
        """Put sections into the job; returns the mistakes in them, and then nothing is changed."""
        allowed = PARTS[part]
        for name in sections:
            if name not in allowed:
                raise UnknownCodeError(f"{name!r} is no section of the page {part!r}.")
        raw = self.raw()
        changed = {k: v for k, v in {**raw, **sections}.items() if v not in (None, {}, [])}
        changed = {k: _browser_values_without_null(v) for k, v in changed.items()}
        _, mistakes = self.examined(changed)
        wrong = [m for m in mistakes if m.path[:1] and m.path[0] in sections]
        if not wrong:
            self.write(changed)
        return wrong

    def write(self, raw: Mapping[str, Any]) -> None:
        """Write the job file, in the order of the model's sections."""
        from cellguard.publish.model import Job

        order = {name: k for k, name in enumerate(Job.model_fields)}
        ordered = dict(sorted(raw.items(), key=lambda item: order.get(item[0], len(order))))
        self.write_text(_HEAD + toml_document(ordered, nested=("dimensions",)))

    def write_text(self, text: str) -> None:
        """Write the job file, atomically."""
        write_text(self.path, text)

    # ---------------------------------------------------------------- files

    def relative(self, path: Path) -> str:
        """Return a path as the job names it."""
        return Path(os.path.relpath(path, self.folder)).as_posix()

    async def upload(self, name: str, content: AsyncIterator[bytes]) -> Path:
        """Store an uploaded file for its owner alone; one that is cut short or too large leaves nothing."""
        if not _NAME.fullmatch(name) or not name.lower().endswith(DATA_ENDINGS) or name == _JOB:
            raise InputError(
                f"{name[:80]!r}: a file of this name is not taken.",
                hint=f"letters, digits, dots and dashes, with one of the endings {', '.join(DATA_ENDINGS)}.",
            )
        path = self._own_folder(_UPLOADS) / name
        with atomic_writer(path, private=True) as stream:
            async for chunk in content:
                stream.write(chunk)
        try:
            _refuse_upload_bomb(path)
        except BaseException:
            path.unlink()
            raise
        return path

    def remove_upload(self, name: str) -> None:
        """Remove an uploaded file."""
        path = self.folder / _UPLOADS / name
        if not _NAME.fullmatch(name) or path.is_symlink() or not path.is_file():
            raise UnknownCodeError(f"{name[:80]!r}: there is no such uploaded file.")
        path.unlink()

    def uploads(self) -> list[str]:
        """Return the names of the uploaded files."""
        folder = self.folder / _UPLOADS
        if folder.is_symlink() or not folder.is_dir():
            return []
        return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))

    def releases(self) -> list[Path]:
        """Return the folders of releases, the newest first."""
        found = [
            path.parent.parent
            for pattern in ("*", "*/*")
            for path in self.folder.glob(f"{pattern}/internal/manifest.json")
            if self.root.holds(path) and not any(p.startswith(".") for p in path.relative_to(self.folder).parts)
        ]
        return sorted(dict.fromkeys(found), key=lambda path: -(path / "internal" / "manifest.json").stat().st_mtime)

    def release(self, name: str) -> Path:
        """Return the folder of a release by its name."""
        for path in self.releases():
            if path.relative_to(self.folder).as_posix() == name:
                return path
        raise UnknownCodeError(f"there is no release {name[:80]!r}.")

    def keep(self, name: str, content: Mapping[str, Any]) -> None:
        """Keep something for the page, readable by its owner alone."""
        write_text(self.private / name, json.dumps(content, allow_nan=False), private=True)

    def kept(self, name: str) -> dict[str, Any] | None:
        """Return what was kept, if anything was and it can be read."""
        path = self.folder / _PRIVATE / name
        if path.is_symlink() or not self.root.holds(path):
            return None
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None


class Projects:
    """The projects below the folder that was given at the start."""

    def __init__(self, root: Root) -> None:
        self.root = root

    def all(self) -> list[Project]:
        """Return every project, by name."""
        found = []
        for pattern in ["", *("*/" * depth for depth in range(1, _MAX_DEPTH + 1))]:
            for path in self.root.folder.glob(f"{pattern}{_JOB}"):
                parts = path.relative_to(self.root.folder).parts
                hidden = any(p.startswith(".") or p == "internal" or "~" in p for p in parts)
                if not hidden and path.is_file() and self.root.holds(path):
                    found.append(Project(self.root, path.parent))
        return sorted(found, key=lambda project: project.id)

    def get(self, name: str) -> Project:
        """Return a project by its name in addresses."""
        for project in self.all():
            if project.id == name:
                return project
        raise UnknownCodeError(f"there is no project {name[:80]!r}.", hint="go back to the list of projects.")

    def new(self, name: str) -> Project:
        """Make an empty project."""
        if not _NAME.fullmatch(name) or name.endswith("."):
            raise InputError(
                "the name of a project has letters, digits, dots, dashes and blanks, and begins with a letter or digit."
            )
        folder = self.root.inside(name)
        if folder.exists():
            raise InputError(f"{name}: there is a folder of this name already.", hint="choose another name.")
        folder.mkdir(mode=0o700)
        project = Project(self.root, folder)
        project.write({"name": name})
        return project

    def remove(self, name: str) -> None:
        """Remove a project with everything in it."""
        project = self.get(name)
        if project.folder == self.root.folder:
            raise InputError("the folder that was given at the start is not removed.")
        shutil.rmtree(project.folder)


def mistakes_for_browser(mistakes: list[Mistake]) -> list[dict[str, Any]]:
    """Return mistakes as JSON holds them."""
    return [{"path": list(m.path), "text": m.text, "hint": m.hint} for m in mistakes]


def _browser_values_without_null(value: Any) -> Any:
    """Leave out what is null: TOML has no word for it, and the page uses it for "as usual"."""
    if isinstance(value, dict):
        return {k: _browser_values_without_null(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_browser_values_without_null(item) for item in value if item is not None]
    return value


def _refuse_upload_bomb(path: Path) -> None:
    """Refuse a small file that unpacks to a huge one; of Parquet files the reader does."""
    name = path.name.lower()
    if name.endswith(".gz"):
        read_bytes(path, max_bytes=_MAX_UNPACKED)
    if name.endswith(".xlsx"):
        try:
            with zipfile.ZipFile(path) as book:
                unpacked = sum(entry.file_size for entry in book.infolist())
        except (zipfile.BadZipFile, OSError):
            raise FormatError.at(path.name, None, "is no workbook.", hint="save it again as .xlsx.") from None
        if unpacked > _MAX_UNPACKED:
            raise FormatError.at(path.name, None, f"unpacks to more than {_MAX_UNPACKED} bytes.")

"""Projects: a folder with a job file, its data, and its releases."""

from __future__ import annotations

import filecmp
import json
import os
import re
import secrets
import shutil
import zipfile
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._io.facts import ReadOnce
from cellguard._io.files import open_atomically, read_bytes, write_text
from cellguard._io.toml import format_document, parse_toml, read_toml_text
from cellguard.exceptions import CellguardError, FormatError, InputError, UnknownCodeError
from cellguard.web.places import DATA_ENDINGS, Root, list_outside_files

if TYPE_CHECKING:
    from cellguard.jobs.definition.check import Mistake
    from cellguard.jobs.definition.model import Job
    from cellguard.jobs.definition.read import JobFile

__all__ = ["PARTS", "Project", "Projects", "convert_mistakes"]

PARTS = {
    "data": ("name", "title", "unconfirmed", "data", "dimensions", "tables", "indicators", "equations", "tolerance"),
    "rules": ("rules", "levels", "insiders", "nothing_sensitive", "attackers"),
    "method": ("method", "seed", "compare", "attack"),
    "protect": ("limits", "output", "seed", "title", "attack", "ledger", "derived"),
}
"""Page -> the sections of the job that it edits."""
_JOB = "job.toml"
_PRIVATE = ".cellguard"
_UPLOADS = "uploads"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,79}")
_HEAD = "# Written by the page (cellguard serve). The same release without the page:  cellguard protect job.toml\n\n"
_DOCUMENTS = (".doc", ".docx", ".pdf", ".odt", ".rtf", ".xls", ".xlsb", ".ods", ".pptx", ".sav", ".sas7bdat", ".dta")
"""Endings of documents that may hold a table, but are not read."""
_MAX_DEPTH = 3
_MAX_UNPACKED = 1 << 30
"""Size limit of the unpacked content of an upload, in bytes."""


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with a job file."""

    root: Root
    folder: Path
    facts: ReadOnce = field(default_factory=ReadOnce, compare=False, repr=False)
    """Known facts about the files that its job names."""

    @property
    def id(self) -> str:
        """Its name in addresses: the folder, with ~ between the parts."""
        inside = self.folder.relative_to(self.root.folder).as_posix()
        return "~" if inside == "." else inside.replace("/", "~")

    @property
    def path(self) -> Path:
        """The job file."""
        return self.folder / _JOB

    @property
    def private(self) -> Path:
        """Folder of the page's own files (progress and comparisons), readable by its owner only."""
        return self._get_own_folder(_PRIVATE)

    def _get_own_folder(self, name: str) -> Path:
        path = self.folder / name
        if path.is_symlink():
            raise InputError(f"{name}: is a symbolic link.", hint="remove it.")
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    # ---------------------------------------------------------------- the job

    def read_text(self) -> str:
        """Return the text of the job file."""
        return read_toml_text(self.path, _JOB)

    def read_raw(self) -> dict[str, Any]:
        """Return the content of the job file, regardless of mistakes."""
        return parse_toml(self.read_text(), _JOB)

    def inspect(self, raw: Mapping[str, Any]) -> tuple[Job | None, list[Mistake]]:
        """Return the job, if its shape is right, and every mistake; access nothing outside the folder."""
        from cellguard.jobs.definition.read import inspect_job

        outside = list_outside_files(raw, self.root, self.folder)
        if outside:
            return None, outside
        job, mistakes = inspect_job(dict(raw), self.folder, self.facts)
        if job is not None and job.data.table is not None and not mistakes:
            mistakes += self._is_description_outside(job.data.table)
        return job, mistakes

    def _is_description_outside(self, name: str) -> list[Mistake]:
        from cellguard.jobs.definition.check import Mistake
        from cellguard.model.table import Table

        try:
            files = Table.files(self.folder / name)
        except CellguardError as error:
            return [Mistake(("data", "table"), error.message, error.hint)]
        return [
            Mistake(("data", "table"), f"{path.name}: lies outside of the folder.")
            for path in files
            if not self.root.is_inside(path)
        ]

    def get_job_file(self) -> JobFile:
        """Return the job, ready to run; raise an error with the first mistake if there is one."""
        from cellguard.jobs.definition.read import JobFile

        text, raw = self.read_text(), self.read_raw()
        job, mistakes = self.inspect(raw)
        if job is None or mistakes:
            first = mistakes[0]
            place = ".".join(str(part) for part in first.path)
            raise InputError(f"{place}: {first.text}", hint=first.hint)
        return JobFile(path=self.path, text=text, job=job, facts=self.facts)

    def change(self, part: str, sections: Mapping[str, Any]) -> list[Mistake]:
        """Put sections into the job; if they have mistakes, return these and change nothing."""
        allowed = PARTS[part]
        for name in sections:
            if name not in allowed:
                raise UnknownCodeError(f"{name!r} is not a section of the page {part!r}.")
        raw = self.read_raw()
        changed = {k: v for k, v in {**raw, **sections}.items() if v not in (None, {}, [])}
        changed = {k: _drop_nulls(v) for k, v in changed.items()}
        _, mistakes = self.inspect(changed)
        wrong = [m for m in mistakes if m.path[:1] and m.path[0] in sections]
        if not wrong:
            self.write(changed)
        return wrong

    def write(self, raw: Mapping[str, Any]) -> None:
        """Write the job file, in the order of the model's sections."""
        from cellguard.jobs.definition.model import Job

        order = {name: k for k, name in enumerate(Job.model_fields)}
        ordered = dict(sorted(raw.items(), key=lambda item: order.get(item[0], len(order))))
        self.write_text(_HEAD + format_document(ordered, nested=("dimensions",)))

    def write_text(self, text: str) -> None:
        """Write the job file, atomically."""
        write_text(self.path, text)

    # ---------------------------------------------------------------- files

    def make_relative(self, path: Path) -> str:
        """Return a path relative to the job."""
        return Path(os.path.relpath(path, self.folder)).as_posix()

    async def upload(self, name: str, content: AsyncIterator[bytes]) -> Path:
        """Store an upload, readable by its owner only; an incomplete or too large upload leaves nothing behind."""
        if not _NAME.fullmatch(name) or not name.lower().endswith(DATA_ENDINGS) or name == _JOB:
            hint = f"letters, digits, dots and dashes, with one of the endings {', '.join(DATA_ENDINGS)}."
            if name.lower().endswith(_DOCUMENTS):
                hint = "open it in its own program, and save the table alone as .xlsx or .csv."
            raise InputError(f"{name[:80]!r}: a file of this name is not taken.", hint=hint)
        folder = self._get_own_folder(_UPLOADS)
        path = folder / f".new-{secrets.token_hex(8)}-{name}"
        with open_atomically(path, private=True) as stream:
            async for chunk in content:
                stream.write(chunk)
        try:
            _refuse_upload_bomb(path, name)
            return _place_upload(path, folder, name)
        except BaseException:
            path.unlink()
            raise

    def remove_upload(self, name: str) -> None:
        """Remove an uploaded file, unless the job or a signed release needs it."""
        path = self.folder / _UPLOADS / name
        if not _NAME.fullmatch(name) or path.is_symlink() or not path.is_file():
            raise UnknownCodeError(f"{name[:80]!r}: there is no such uploaded file.")
        if self._is_named_file(self.read_raw(), path):
            raise InputError(f"{name}: the job uses this file.", hint="choose other data first.")
        for folder in self.list_signed():
            if self._is_named_file(_read_released_job(folder), path):
                raise InputError(
                    f"{name}: the signed release {folder.name} was made from this file.",
                    hint="keep it: the release is checked against it.",
                )
        path.unlink()

    def _is_named_file(self, raw: Any, path: Path) -> bool:
        """Return whether a job names a file."""
        from cellguard.jobs.definition.model import Job
        from cellguard.jobs.definition.sections import list_named_files

        return any((self.folder / name).resolve() == path.resolve() for _, name in list_named_files(Job, raw))

    def list_uploads(self) -> list[str]:
        """Return the names of the uploaded files."""
        folder = self.folder / _UPLOADS
        if folder.is_symlink() or not folder.is_dir():
            return []
        return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))

    def list_releases(self) -> list[Path]:
        """Return the folders of releases, newest first."""
        found = [
            path.parent.parent
            for pattern in ("*", "*/*")
            for path in self.folder.glob(f"{pattern}/internal/manifest.json")
            if self.root.is_inside(path) and not any(p.startswith(".") for p in path.relative_to(self.folder).parts)
        ]
        return sorted(dict.fromkeys(found), key=lambda path: -(path / "internal" / "manifest.json").stat().st_mtime)

    def list_signed(self) -> list[Path]:
        """Return the folders of releases that somebody signed, newest first."""
        from cellguard.jobs.outputs.signed import read_sign_off

        return [path for path in self.list_releases() if read_sign_off(path) is not None]

    def release(self, name: str) -> Path:
        """Return the folder of a release by its name."""
        for path in self.list_releases():
            if path.relative_to(self.folder).as_posix() == name:
                return path
        raise UnknownCodeError(f"there is no release {name[:80]!r}.")

    def keep(self, name: str, content: Mapping[str, Any]) -> None:
        """Save an object for the page, readable by its owner only."""
        write_text(self.private / name, json.dumps(content, allow_nan=False), private=True)

    def read_kept(self, name: str) -> dict[str, Any] | None:
        """Return a saved object, if there is one and it can be read."""
        path = self.folder / _PRIVATE / name
        if path.is_symlink() or not self.root.is_inside(path):
            return None
        try:
            found = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None


class Projects:
    """The projects below the folder given at the start."""

    def __init__(self, root: Root) -> None:
        self.root = root

    def list_projects(self) -> list[Project]:
        """Return every project, by name."""
        found = []
        for pattern in ["", *("*/" * depth for depth in range(1, _MAX_DEPTH + 1))]:
            for path in self.root.folder.glob(f"{pattern}{_JOB}"):
                parts = path.relative_to(self.root.folder).parts
                hidden = any(p.startswith(".") or p == "internal" or "~" in p for p in parts)
                if not hidden and path.is_file() and self.root.is_inside(path):
                    found.append(Project(self.root, path.parent))
        return sorted(found, key=lambda project: project.id)

    def get(self, name: str) -> Project:
        """Return a project by its name in addresses."""
        for project in self.list_projects():
            if project.id == name:
                return project
        raise UnknownCodeError(f"there is no project {name[:80]!r}.", hint="go back to the list of projects.")

    def create(self, name: str) -> Project:
        """Make an empty project."""
        if not _NAME.fullmatch(name) or name.endswith("."):
            raise InputError(
                "the name of a project has letters, digits, dots, dashes and blanks, and begins with a letter or digit."
            )
        folder = self.root.resolve_inside(name)
        if folder.exists():
            raise InputError(f"{name}: there is a folder of this name already.", hint="choose another name.")
        folder.mkdir(mode=0o700)
        project = Project(self.root, folder)
        project.write({"name": name})
        return project

    def remove(self, name: str, signers: Collection[str] = ()) -> None:
        """Remove a project with everything in it; `signers` must name everybody who signed one of its releases."""
        from cellguard.jobs.outputs.signed import read_sign_off

        project = self.get(name)
        if project.folder == self.root.folder:
            raise InputError("the folder that was given at the start is not removed.")
        signed = {path.name: (read_sign_off(path) or {}).get("who") for path in project.list_signed()}
        unnamed = [name for name, who in signed.items() if who not in signers]
        if unnamed:
            raise InputError(
                f"this project has signed releases: {', '.join(unnamed)}.",
                hint="enter the name of the person who signed, to remove them with the project.",
            )
        shutil.rmtree(project.folder)


def convert_mistakes(mistakes: list[Mistake]) -> list[dict[str, Any]]:
    """Return mistakes as JSON objects."""
    return [{"path": list(m.path), "text": m.text, "hint": m.hint} for m in mistakes]


def _drop_nulls(value: Any) -> Any:
    """Remove null values: TOML has none, and the page uses null for the default."""
    if isinstance(value, dict):
        return {k: _drop_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_drop_nulls(item) for item in value if item is not None]
    return value


def _place_upload(path: Path, folder: Path, name: str) -> Path:
    """Give an upload its name; a file of this name with other content stays, and the new one gets a number."""
    stem, dot, ending = name.partition(".")
    target, number = folder / name, 1
    while target.exists() and not filecmp.cmp(path, target, shallow=False):
        number += 1
        target = folder / f"{stem}-{number}{dot}{ending}"
    path.replace(target)
    return target


def _read_released_job(folder: Path) -> dict[str, Any]:
    """Return the content of the job that made a release; nothing if it cannot be read."""
    try:
        return parse_toml(read_toml_text(folder / "internal" / _JOB, _JOB), _JOB)
    except CellguardError:
        return {}


def _refuse_upload_bomb(path: Path, name: str) -> None:
    """Refuse a small file that unpacks to a huge one; for Parquet files, the reader does so."""
    name = name.lower()
    if name.endswith(".gz"):
        read_bytes(path, max_bytes=_MAX_UNPACKED)
    if name.endswith(".xlsx"):
        try:
            with zipfile.ZipFile(path) as book:
                unpacked = sum(entry.file_size for entry in book.infolist())
        except (zipfile.BadZipFile, OSError):
            raise FormatError.at(name, None, "is not a workbook.", hint="save it again as .xlsx.") from None
        if unpacked > _MAX_UNPACKED:
            raise FormatError.at(name, None, f"unpacks to more than {_MAX_UNPACKED} bytes.")

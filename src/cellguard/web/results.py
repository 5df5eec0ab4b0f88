"""The HTTP interface, second half: tables to look at, releases, and their files."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter
from fastapi.responses import FileResponse

from cellguard._io.files import write_text
from cellguard.exceptions import InputError, UnknownCodeError
from cellguard.web.bodies import OneCell, Signing, Source, Window
from cellguard.web.decisions import decision_of
from cellguard.web.projects import Project
from cellguard.web.state import HasProject, HasState

if TYPE_CHECKING:
    from cellguard.web.look import Look

__all__ = ["router"]

router = APIRouter(prefix="/api/projects/{project}", tags=["results"])
_REPORT = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
"""A report is one file with its own style and script: it is shown in a box of its own, without an origin."""

_SIGNATURE = "signed.json"
"""Who signed a release: a small file beside it, with the fingerprint of what was signed."""
_MOST_LETTERS = 2000


@router.post("/table")
def table(state: HasState, project: HasProject, body: Source) -> dict[str, Any]:
    """The axes of a table, with the trees of their codes; no cell."""
    from cellguard.web.look import look_at

    return look_at(project, state.tables, body.release).facts()


@router.post("/table/window")
def window(state: HasState, project: HasProject, body: Window) -> dict[str, Any]:
    """What stands in a part of the table."""
    return _look_at_table(state, project, body).window(body)


@router.post("/table/marked")
def marked(state: HasState, project: HasProject, body: Window) -> list[list[int]]:
    """Where marked cells stand in a part of the table: row and column among the codes that were asked for."""
    return _look_at_table(state, project, body).marked(body)


@router.post("/table/cell")
def one_cell(state: HasState, project: HasProject, body: OneCell) -> dict[str, Any]:
    """Everything about one cell: why it is withheld, its range, its level. Confidential."""
    look = _look_at_table(state, project, body)
    cell = look.cell(body.view, body.codes)
    return {**look.about(cell), "decision": decision_of(project, look.table, cell)}


@router.post("/table/protects")
def protects(state: HasState, project: HasProject, body: OneCell) -> dict[str, Any]:
    """Which sensitive cells would be known too closely if this withheld cell were published."""
    look = _look_at_table(state, project, body)
    return look.protects(look.cell(body.view, body.codes))


@router.post("/table/range")
def range_of(state: HasState, project: HasProject, body: OneCell) -> dict[str, Any]:
    """What everybody can compute of a withheld cell that is not sensitive itself."""
    look = _look_at_table(state, project, body)
    return look.range_of(look.cell(body.view, body.codes))


def _look_at_table(state: HasState, project: Project, body: Window | OneCell) -> Look:
    from cellguard.web.look import look_at

    look = look_at(project, state.tables, body.release)
    if not 0 <= body.view < len(look.views):
        raise UnknownCodeError("there is no such table.")
    return look


# ---------------------------------------------------------------- releases


@router.get("/releases")
def releases(project: HasProject) -> list[dict[str, Any]]:
    """What was made before, the newest first."""
    return [_project_release_facts(project, path) for path in project.releases()]


def _project_release_facts(project: Project, folder: Path) -> dict[str, Any]:
    path = folder / "internal" / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError):
        manifest = {}
    return {
        "name": folder.relative_to(project.folder).as_posix(),
        "made": path.stat().st_mtime,
        **{key: manifest.get(key) for key in ("method", "status", "safe", "repeatable", "audit", "seed")},
        "signed": _signature_in_project(folder),
        "same_job": _made_by_project_job(project, folder),
        "cellguard": manifest.get("versions", {}).get("cellguard"),
        "files": {
            part: _files_to_download(folder / part) for part in ("public", "internal") if (folder / part).is_dir()
        },
    }


def _made_by_project_job(project: Project, folder: Path) -> bool:
    """Say whether the job is still the one that made a release."""
    path = folder / "internal" / "job.toml"
    return not path.is_symlink() and path.is_file() and path.read_bytes() == project.path.read_bytes()


@router.post("/releases/check")
def check(project: HasProject, body: Source) -> dict[str, Any]:
    """Check a release: every file unchanged, and the witnesses prove by exact arithmetic that it is safe."""
    from cellguard.publish.manifest import check_manifest

    internal = project.release(body.release or "") / "internal"
    found = check_manifest(internal / "manifest.json")
    return {**found, "witnesses": (internal / "witnesses.json.gz").is_file()}


@router.post("/releases/sign")
def sign_release(project: HasProject, body: Signing) -> dict[str, Any]:
    """Sign a release that is safe and unchanged: name, time and fingerprint are written beside it."""
    from cellguard.publish import ledger

    signed = _sign_project_release(project.release(body.release), who=body.who, remark=body.remark, read=body.read)
    told = {key: signed[key] for key in ("who", "remark", "manifest")}
    ledger.add_to_ledger(project.folder, "signed", {"release": body.release, **told})
    return signed


def _sign_project_release(folder: Path, *, who: str, remark: str, read: bool) -> dict[str, Any]:
    """Sign a release; raises where it is not safe, not as it was written, or nobody signs."""
    from cellguard.publish.manifest import check_manifest, hash_for_manifest

    if not who.strip() or len(who) + len(remark) > _MOST_LETTERS:
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
        "manifest": hash_for_manifest(manifest),
    }
    write_text(folder / _SIGNATURE, json.dumps(signed, indent=2, ensure_ascii=False) + "\n", private=True)
    return signed | {"unchanged": True}


def _signature_in_project(folder: Path) -> dict[str, Any] | None:
    """Return who signed a release, and whether it is still what was signed."""
    from cellguard.publish.manifest import hash_for_manifest

    path, manifest = folder / _SIGNATURE, folder / "internal" / "manifest.json"
    if path.is_symlink() or not path.is_file():
        return None
    try:
        signed = json.loads(path.read_bytes())
    except ValueError:
        return None
    return (
        signed | {"unchanged": signed.get("manifest") == hash_for_manifest(manifest)}
        if isinstance(signed, dict)
        else None
    )


@router.get("/ledger")
def read_ledger(project: HasProject) -> dict[str, Any]:
    """What was released and signed, the oldest first, and whether the ledger is as it was written."""
    from cellguard.publish import ledger

    lines, whole = ledger.ledger_entries(project.folder)
    return {"entries": lines, "whole": whole}


@router.get("/files/{part}/{name}")
def download(project: HasProject, part: Literal["public", "internal"], name: str, release: str) -> FileResponse:
    """A file of a release, to be saved."""
    return FileResponse(_file_to_download(project, release, part, name), filename=name)


@router.get("/report/{part}")
def report(project: HasProject, part: Literal["public", "internal"], release: str) -> FileResponse:
    """A report, to be read in the browser."""
    path = _file_to_download(project, release, part, "report.html")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": _REPORT})


def _file_to_download(project: Project, release: str, part: str, name: str) -> Path:
    folder = project.release(release) / part
    if folder.is_dir() and name in _files_to_download(folder):
        return folder / name
    raise UnknownCodeError(f"there is no file {name[:80]!r} in this release.")


def _files_to_download(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.is_file() and not file.is_symlink())

"""The HTTP interface, second half: tables to look at, releases, and their files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from cellguard.exceptions import UnknownCodeError
from cellguard.web.projects import Project
from cellguard.web.routes.bodies import OneCell, Source, Window
from cellguard.web.routes.decisions import get_decision
from cellguard.web.routes.released import project_job_of_release
from cellguard.web.routes.signoff import list_release_tables
from cellguard.web.state import HasProject, HasState

if TYPE_CHECKING:
    from cellguard.web.routes.look import Look

__all__ = ["router"]

router = APIRouter(prefix="/api/projects/{project}", tags=["results"])
_REPORT = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
"""A report is one file with its own style and script: it is shown in a sandbox without an origin."""

_MARKS = {"public": "PUBLIC", "internal": "CONFIDENTIAL"}
"""How the names of downloads begin, so that a confidential file is never mistaken for a public one."""


@router.post("/table")
def describe_table(state: HasState, project: HasProject, body: Source) -> dict[str, Any]:
    """Return the axes of a table with their hierarchies, without cells."""
    from cellguard.web.routes.look import look_at

    return look_at(project, state.tables, body.release).collect_facts()


@router.post("/table/window")
def read_window(state: HasState, project: HasProject, body: Window) -> dict[str, Any]:
    """Return the content of a part of the table."""
    return _look_at_table(state, project, body).read_window(body)


@router.post("/table/marked")
def find_marked(state: HasState, project: HasProject, body: Window) -> list[list[int]]:
    """Return the rows and columns of marked cells in a part of the table, among the requested codes."""
    return _look_at_table(state, project, body).find_marked(body)


@router.post("/table/cell")
def describe_cell(state: HasState, project: HasProject, body: OneCell) -> dict[str, Any]:
    """Return all facts about one cell: why it is withheld, its range, its level. Confidential."""
    look = _look_at_table(state, project, body)
    cell = look.find_cell(body.view, body.codes)
    return {**look.describe_cell(cell), "decision": get_decision(project, look.table, cell)}


@router.post("/table/protects")
def list_protected(state: HasState, project: HasProject, body: OneCell) -> dict[str, Any]:
    """Return the sensitive cells that would be disclosed if this withheld cell were published."""
    look = _look_at_table(state, project, body)
    return look.list_protected(look.find_cell(body.view, body.codes))


@router.post("/table/range")
def compute_range(state: HasState, project: HasProject, body: OneCell) -> dict[str, Any]:
    """Return the external attacker's range of a withheld cell that is not sensitive."""
    look = _look_at_table(state, project, body)
    return look.compute_range(look.find_cell(body.view, body.codes))


def _look_at_table(state: HasState, project: Project, body: Window | OneCell) -> Look:
    from cellguard.web.routes.look import look_at

    look = look_at(project, state.tables, body.release)
    if not 0 <= body.view < len(look.views):
        raise UnknownCodeError("there is no such table.")
    return look


# ---------------------------------------------------------------- releases


@router.get("/releases")
def list_releases(project: HasProject) -> list[dict[str, Any]]:
    """List the releases, newest first."""
    return [_project_release_facts(project, path) for path in project.list_releases()]


def _project_release_facts(project: Project, folder: Path) -> dict[str, Any]:
    from cellguard.jobs.outputs.manifest import hash_for_manifest
    from cellguard.jobs.outputs.signed import read_sign_off

    path = folder / "internal" / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError):
        manifest = {}
    return {
        "name": folder.relative_to(project.folder).as_posix(),
        "made": path.stat().st_mtime,
        **{key: manifest.get(key) for key in ("method", "status", "safe", "repeatable", "audit", "seed")},
        "signed": read_sign_off(folder),
        "fingerprint": hash_for_manifest(path),
        "tables": list_release_tables(project, folder),
        "same_job": _is_made_by_current_job(project, folder),
        "cellguard": manifest.get("versions", {}).get("cellguard"),
        "files": {part: _list_downloads(folder / part) for part in ("public", "internal") if (folder / part).is_dir()},
    }


def _is_made_by_current_job(project: Project, folder: Path) -> bool:
    """Return whether the job is still the one that made a release."""
    path = folder / "internal" / "job.toml"
    return not path.is_symlink() and path.is_file() and path.read_bytes() == project.path.read_bytes()


@router.post("/releases/check")
def check(project: HasProject, body: Source) -> dict[str, Any]:
    """Check a release: every file unchanged, and the witnesses prove by exact arithmetic that it is safe."""
    from cellguard.jobs.outputs.verify import verify_manifest

    folder = project.release(body.release or "")
    internal = folder / "internal"
    found = verify_manifest(internal / "manifest.json", project_job_of_release(project, folder))
    return {**found, "witnesses": (internal / "witnesses.json.gz").is_file()}


@router.get("/ledger")
def read_ledger(project: HasProject) -> dict[str, Any]:
    """Return the releases and signatures in the ledger, oldest first, whether it is unchanged, and what is wrong."""
    from cellguard.jobs.outputs import ledger
    from cellguard.jobs.outputs.content import check_ledger

    lines, whole = ledger.read_entries(project.folder)
    problems = check_ledger(project.folder)[1] if (project.folder / ledger.FILE).is_file() else []
    return {"entries": lines, "whole": whole, "problems": problems[:20]}


@router.get("/files/{part}/{name}")
def download(project: HasProject, part: Literal["public", "internal"], name: str, release: str) -> FileResponse:
    """Return a file of a release as a download."""
    path = _find_download(project, release, part, name)
    return FileResponse(path, filename=f"{_MARKS[part]}_{_name_release(project, release)}_{name}")


@router.get("/public.zip")
def download_all(project: HasProject, release: str) -> Response:
    """Return all public files of a release as one archive."""
    folder = project.release(release) / "public"
    name = f"{_MARKS['public']}_{_name_release(project, release)}"
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in _list_downloads(folder):
                archive.write(folder / file, f"{name}/{file}")
        content = buffer.getvalue()
    return Response(
        content, media_type="application/zip", headers={"content-disposition": f'attachment; filename="{name}.zip"'}
    )


def _name_release(project: Project, release: str) -> str:
    """Return the project and the release as part of a file name."""
    name = f"{project.folder.name}_{project.release(release).relative_to(project.folder).as_posix()}"
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)


@router.get("/report/{part}")
def report(project: HasProject, part: Literal["public", "internal"], release: str) -> FileResponse:
    """Return a report for display in the browser."""
    path = _find_download(project, release, part, "report.html")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": _REPORT})


def _find_download(project: Project, release: str, part: str, name: str) -> Path:
    folder = project.release(release) / part
    if folder.is_dir() and name in _list_downloads(folder):
        return folder / name
    raise UnknownCodeError(f"there is no file {name[:80]!r} in this release.")


def _list_downloads(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.is_file() and not file.is_symlink())

"""The HTTP interface, second half: tables to look at, releases, and their files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter
from fastapi.responses import FileResponse

from cellguard.exceptions import UnknownCodeError
from cellguard.web.bodies import OneCell, Signing, Source, Window
from cellguard.web.decisions import decision_of
from cellguard.web.projects import Project
from cellguard.web.signatures import sign, signature_of
from cellguard.web.state import HasProject, HasState

if TYPE_CHECKING:
    from cellguard.web.look import Block, Look

__all__ = ["router"]

router = APIRouter(prefix="/api/projects/{project}", tags=["results"])
_REPORT = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)
"""A report is one file with its own style and script: it is shown in a box of its own, without an origin."""


@router.post("/table")
def table(state: HasState, project: HasProject, body: Source) -> dict[str, Any]:
    """The axes of a table, with the trees of their codes; no cell."""
    from cellguard.web.look import look_at

    return look_at(project, state.tables, body.release).facts()


@router.post("/table/window")
def window(state: HasState, project: HasProject, body: Window) -> dict[str, Any]:
    """What stands in a part of the table."""
    return _look_at_table(state, project, body).window(_block(body))


@router.post("/table/marked")
def marked(state: HasState, project: HasProject, body: Window) -> list[list[int]]:
    """Where marked cells stand in a part of the table: row and column among the codes that were asked for."""
    return _look_at_table(state, project, body).marked(_block(body))


def _block(body: Window) -> Block:
    from cellguard.web.look import Block

    return Block(**body.model_dump(exclude={"release"}))


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
    return [_release_facts(project, path) for path in project.releases()]


def _release_facts(project: Project, folder: Path) -> dict[str, Any]:
    path = folder / "internal" / "manifest.json"
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError):
        manifest = {}
    return {
        "name": folder.relative_to(project.folder).as_posix(),
        "made": path.stat().st_mtime,
        "method": manifest.get("method"),
        "status": manifest.get("status"),
        "safe": manifest.get("safe"),
        "repeatable": manifest.get("repeatable"),
        "audit": manifest.get("audit"),
        "seed": manifest.get("seed"),
        "signed": signature_of(folder),
        "same_job": _same_job(project, folder),
        "cellguard": manifest.get("versions", {}).get("cellguard"),
        "files": {
            part: sorted(f.name for f in (folder / part).iterdir() if f.is_file() and not f.is_symlink())
            for part in ("public", "internal")
            if (folder / part).is_dir()
        },
    }


def _same_job(project: Project, folder: Path) -> bool:
    """Say whether the job is still the one that made a release."""
    path = folder / "internal" / "job.toml"
    return not path.is_symlink() and path.is_file() and path.read_bytes() == project.path.read_bytes()


@router.post("/releases/check")
def check(project: HasProject, body: Source) -> dict[str, Any]:
    """Check a release: every file unchanged, and the witnesses prove by exact arithmetic that it is safe."""
    from cellguard.publish.manifest import check_manifest

    folder = project.release(body.release or "")
    found = check_manifest(folder / "internal" / "manifest.json")
    proof = folder / "internal" / "witnesses.json.gz"
    return {**found, "witnesses": proof.is_file()}


@router.post("/releases/sign")
def sign_release(project: HasProject, body: Signing) -> dict[str, Any]:
    """Sign a release that is safe and unchanged: name, time and fingerprint are written beside it."""
    from cellguard.publish import ledger

    signed = sign(project.release(body.release), who=body.who, remark=body.remark, read=body.read)
    ledger.enter(
        project.folder,
        "signed",
        {"release": body.release, "who": signed["who"], "remark": signed["remark"], "manifest": signed["manifest"]},
    )
    return signed


@router.get("/ledger")
def read_ledger(project: HasProject) -> dict[str, Any]:
    """What was released and signed, the oldest first, and whether the ledger is as it was written."""
    from cellguard.publish import ledger

    lines, whole = ledger.entries(project.folder)
    return {"entries": lines, "whole": whole}


@router.get("/files/{part}/{name}")
def download(project: HasProject, part: Literal["public", "internal"], name: str, release: str) -> FileResponse:
    """A file of a release, to be saved."""
    return FileResponse(_file_of_release(project, release, part, name), filename=name)


@router.get("/report/{part}")
def report(project: HasProject, part: Literal["public", "internal"], release: str) -> FileResponse:
    """A report, to be read in the browser."""
    path = _file_of_release(project, release, part, "report.html")
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": _REPORT})


def _file_of_release(project: Project, release: str, part: str, name: str) -> Path:
    folder = project.release(release) / part
    if folder.is_dir() and name in {f.name for f in folder.iterdir() if f.is_file() and not f.is_symlink()}:
        return folder / name
    raise UnknownCodeError(f"there is no file {name[:80]!r} in this release.")

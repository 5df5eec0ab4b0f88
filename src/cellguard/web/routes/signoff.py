"""Signing: the author signs a release, a second person checks its tables, and both stand on one printed sheet."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

from fastapi import APIRouter

from cellguard._io.files import write_text
from cellguard.exceptions import CellguardError, InputError
from cellguard.web.projects import Project
from cellguard.web.routes.bodies import Checking, Signing
from cellguard.web.routes.released import project_job_of_release, read_released_json
from cellguard.web.state import HasProject

__all__ = ["list_release_tables", "router"]

router = APIRouter(prefix="/api/projects/{project}", tags=["results"])
_MAX_LETTERS = 2000


@router.post("/releases/sign")
def sign_release(project: HasProject, body: Signing) -> dict[str, Any]:
    """Sign a release that is safe and unchanged: write name, time and hash beside it."""
    from cellguard.jobs.outputs import ledger

    signed = _sign(project, body)
    told = {key: signed[key] for key in ("who", "remark", "manifest")}
    ledger.add_to_ledger(project.folder, "signed", {"release": body.release, **told})
    return signed


def _sign(project: Project, body: Signing) -> dict[str, Any]:
    """Sign a release; raise an error if it is not safe, was changed or signed before, or the signer gives no name."""
    from cellguard.jobs.outputs.manifest import hash_for_manifest
    from cellguard.jobs.outputs.signed import read_sign_off

    folder = project.release(body.release)
    _require_name(body.who, body.remark)
    if not body.read:
        raise InputError("the report and the audit were not read.", hint="read them first, then say so.")
    before = read_sign_off(folder)
    if before is not None:
        raise InputError(
            f"this release is signed already, by {before['who']}.", hint="protect the table again for a new version."
        )
    _require_accepted(project, folder)
    digest = hash_for_manifest(folder / "internal" / "manifest.json")
    if body.manifest is not None and body.manifest != digest:
        raise InputError(
            "this release was replaced since the page was loaded.", hint="load the page again and read it first."
        )
    signed = {"who": body.who.strip(), "remark": body.remark.strip(), "when": _get_time(), "manifest": digest}
    _write_sign_off(folder, signed)
    return signed | {"unchanged": True}


@router.post("/releases/verdict")
def check_release(project: HasProject, body: Checking) -> dict[str, Any]:
    """Record the verdict of the second person: each table approved or rejected, with comments."""
    from cellguard.jobs.outputs import ledger
    from cellguard.jobs.outputs.signed import read_sign_off

    folder = project.release(body.release)
    _require_name(body.who, body.remark, *(verdict.comment for verdict in body.tables.values()))
    signed = read_sign_off(folder)
    if signed is None or not signed["unchanged"]:
        raise InputError("this release is not signed by its author.", hint="its author signs it first.")
    if "checker" in signed:
        raise InputError(f"this release is checked already, by {signed['checker'].get('who')}.")
    if signed["who"].casefold() == body.who.strip().casefold():
        raise InputError("author and checker are the same person.", hint="somebody else checks the release.")
    names = list_release_tables(project, folder)
    if set(body.tables) != set(names):
        raise InputError("a verdict is needed for every table.", hint=f"the tables are {', '.join(names)}.")
    _require_accepted(project, folder)
    checker = {
        "who": body.who.strip(),
        "remark": body.remark.strip(),
        "when": _get_time(),
        "approved": all(verdict.approved for verdict in body.tables.values()),
        "tables": {name: body.tables[name].model_dump() for name in names},
    }
    kept = {key: value for key, value in signed.items() if key != "unchanged"}
    _write_sign_off(folder, kept | {"checker": checker})
    what = "approved" if checker["approved"] else "rejected"
    told = {"release": body.release, "who": checker["who"], "remark": checker["remark"], "manifest": signed["manifest"]}
    ledger.add_to_ledger(project.folder, what, told)
    return signed | {"checker": checker}


@router.get("/signoff")
def describe_release(project: HasProject, release: str) -> dict[str, Any]:
    """Return everything that the sign-off sheet shows; no value of a cell."""
    from cellguard.jobs.outputs.signed import read_sign_off

    folder = project.release(release)
    manifest = read_released_json(folder / "internal" / "manifest.json")
    file = project_job_of_release(project, folder)
    job = file.job
    raw = job.model_dump(mode="json", exclude_defaults=True)
    tables = [entry.file for entry in job.tables if entry.file is not None]
    return {
        "title": job.title or job.name,
        "release": release,
        "made": (folder / "internal" / "manifest.json").stat().st_mtime,
        "data": [_describe_file(project, name, job.data.weight) for name in (job.data.file, *tables) if name]
        or [{"file": job.data.table, "rows": None, "weights": None}],
        "value": [i.name for i in job.indicators] or ([job.data.value] if job.data.value else []),
        "holding": job.data.holding,
        "weight": job.data.weight,
        "dimensions": [_describe_dimension(name, entry) for name, entry in raw.get("dimensions", {}).items()],
        "tables": list_release_tables(project, folder),
        "rules": [_describe_rule(rule) for rule in raw.get("rules", [])],
        "insiders": job.insiders,
        "method": job.method.name,
        "options": {k: v for k, v in raw.get("method", {}).items() if k not in ("name", "key")},
        "limit_s": job.limits.time_limit_s,
        **{key: manifest.get(key) for key in ("status", "safe", "accepted", "repeatable", "audit", "versions")},
        "warnings": manifest.get("warnings", []),
        "files": sorted(manifest.get("outputs", {}).get("../public", {})),
        "manifest": _hash_manifest(folder),
        "signed": read_sign_off(folder),
    }


def _hash_manifest(folder: Path) -> str:
    from cellguard.jobs.outputs.manifest import hash_for_manifest

    return hash_for_manifest(folder / "internal" / "manifest.json")


def _describe_file(project: Project, name: str, weight: str | None) -> dict[str, Any]:
    """Return the number of rows of a data file, and the sum of its weights."""
    from cellguard._io.frames import convert_to_numbers, read_frame

    path = project.folder / name
    if not path.is_file() or not project.root.is_inside(path):
        return {"file": Path(name).name, "rows": None, "weights": None}
    frame = read_frame(path)
    rows = len(next(iter(frame.values()), ()))
    total = float(convert_to_numbers(frame[weight], weight).sum()) if weight in frame else None
    return {"file": Path(name).name, "rows": rows, "weights": total}


def _describe_dimension(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    hierarchy = entry.get("hierarchy")
    if isinstance(hierarchy, str):
        return {"name": name, "kind": "file", "detail": Path(hierarchy).name}
    if hierarchy:
        return {"name": name, "kind": "drawn", "detail": ""}
    if entry.get("digits"):
        return {"name": name, "kind": "digits", "detail": ", ".join(map(str, entry["digits"]))}
    if entry.get("levels"):
        return {"name": name, "kind": "levels", "detail": ", ".join(entry["levels"])}
    return {"name": name, "kind": "flat", "detail": ""}


def _describe_rule(rule: dict[str, Any]) -> dict[str, Any]:
    """Return a rule with its parameters; cells that were marked by hand are counted, not named."""
    cells = rule.get("cells")
    given = {key: value for key, value in rule.items() if key not in ("rule", "cells")}
    return {"rule": rule["rule"], "given": given, "cells": len(cells) if isinstance(cells, list) else None}


def list_release_tables(project: Project, folder: Path) -> list[str]:
    """Return the titles of the tables of a release; none if its job cannot be read."""
    try:
        job = project_job_of_release(project, folder).job
    except (CellguardError, ValueError, OSError):
        return []
    return [entry.title for entry in job.tables] or [job.title or job.name]


def _require_name(who: str, *texts: str) -> None:
    if not who.strip() or len(who) + sum(map(len, texts)) > _MAX_LETTERS:
        raise InputError("a name is needed.", hint="your own.")


def _require_accepted(project: Project, folder: Path) -> None:
    """Raise an error unless every file is unchanged and the audit found the release safe."""
    from cellguard.jobs.outputs.verify import verify_manifest

    found = verify_manifest(folder / "internal" / "manifest.json", project_job_of_release(project, folder))
    if not found["accepted"]:
        raise InputError(f"this release cannot be signed: {found['problems'][0]}", hint="protect the table again.")


def _write_sign_off(folder: Path, content: dict[str, Any]) -> None:
    from cellguard.jobs.outputs.signed import SIGNED_FILE

    write_text(folder / SIGNED_FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n", private=True)


def _get_time() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")

"""The HTTP interface, first half: projects, their data, their job, and the work on them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, StreamingResponse

from cellguard.exceptions import InputError
from cellguard.web.history import count_versions, get_version, record, refuse_stale, restore_next, restore_previous
from cellguard.web.places import free_name_in_project
from cellguard.web.projects import Project, convert_mistakes
from cellguard.web.routes.bodies import (
    CellDecision,
    Chosen,
    Files,
    HierarchyFile,
    Limit,
    NewProject,
    Removal,
    Sections,
    TableListFile,
)
from cellguard.web.routes.decisions import decide
from cellguard.web.solves import Solve
from cellguard.web.state import HasProject, HasState, State, load_for_server
from cellguard.web.tables import count_flagged_cells

if TYPE_CHECKING:
    from cellguard.jobs.definition.check import Mistake

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["projects"])
Part = Literal["data", "rules", "method", "protect"]
Kind = Literal["protect", "compare"]
Seen = Annotated[str | None, Header(alias="x-job-version", description="Version of the job that the page shows.")]
_LISTEN_S = 0.1
_ALIVE_S = 15.0


@router.get("/choices")
def list_choices() -> dict[str, Any]:
    """Return the available choices: methods with their options, rules with their parameters, files, attacks."""
    load_for_server()
    from cellguard.web.routes.choices import list_choices

    return list_choices()


@router.get("/projects")
def list_projects(state: HasState) -> list[dict[str, Any]]:
    """List the projects below the folder, with their state."""
    out = []
    for project in state.projects.list_projects():
        last = state.solves.get_last(project, "protect")
        out.append(
            {
                "id": project.id,
                "folder": project.folder.relative_to(state.root.folder).as_posix(),
                "releases": len(project.list_releases()),
                "signed": [path.relative_to(project.folder).as_posix() for path in project.list_signed()],
                "state": None if last is None else last["state"],
            }
        )
    return out


@router.post("/projects", status_code=201)
def create_project(state: HasState, body: NewProject) -> dict[str, Any]:
    """Make an empty project."""
    load_for_server()
    return {"id": state.projects.create(body.name.strip()).id}


@router.post("/projects/sample", status_code=201)
def create_sample(state: HasState) -> dict[str, Any]:
    """Make a project with invented data, ready to be protected."""
    load_for_server()
    from cellguard.web.sample import write_sample

    return {"id": write_sample(state.projects).id}


@router.delete("/projects/{project}")
def remove_project(state: HasState, project: HasProject, body: Removal | None = None) -> dict[str, Any]:
    """Remove a project with its uploads and releases; signed ones only if their signers are named."""
    if state.solves.is_busy(project):
        raise InputError("work is under way in this project.", hint="stop it first.")
    state.projects.remove(project.id, () if body is None else body.signers)
    return {"removed": project.id}


@router.get("/projects/{project}")
def read_project(state: HasState, project: HasProject) -> dict[str, Any]:
    """Return the job, its mistakes, and the available files."""
    raw = project.read_raw()
    _, mistakes = project.inspect(raw)
    here = project.folder.relative_to(state.root.folder)
    return {
        "id": project.id,
        "job": raw,
        "text": project.read_text(),
        "version": get_version(project),
        **count_versions(project),
        "mistakes": convert_mistakes(mistakes),
        "files": [
            {
                "name": name,
                "relative": project.make_relative(state.root.folder / name),
                "own": (state.root.folder / name).is_relative_to(project.folder),
            }
            for name in state.root.list_files()
        ],
        "folder": here.as_posix(),
        "path": str(project.folder),
        "uploads": project.list_uploads(),
        "releases": [path.relative_to(project.folder).as_posix() for path in project.list_releases()],
        "signed": [path.relative_to(project.folder).as_posix() for path in project.list_signed()],
        "next_folder": free_name_in_project(project.folder, "release"),
        "next_version": _name_next_version(project, raw),
    }


def _name_next_version(project: Project, raw: dict[str, Any]) -> str:
    """Return the folder of the next version of the job's release."""
    from cellguard.jobs.outputs.signed import name_next_version

    output = raw.get("output")
    name = output.get("folder") if isinstance(output, dict) else None
    return name_next_version(project.folder / (name if isinstance(name, str) and name else "release"))


# ---------------------------------------------------------------- data


@router.put("/projects/{project}/files/{name}", status_code=201)
async def upload_file(state: HasState, project: HasProject, name: str, request: Request) -> dict[str, Any]:
    """Store a file of the project: the body is its content."""
    path = await project.upload(name, request.stream())
    return {"file": path.relative_to(state.root.folder).as_posix()}


@router.delete("/projects/{project}/files/{name}")
def remove_file(project: HasProject, name: str) -> dict[str, Any]:
    """Remove an uploaded file."""
    project.remove_upload(name)
    return {"removed": name}


@router.post("/projects/{project}/data")
def choose_data(state: HasState, project: HasProject, body: Files, seen: Seen = None) -> dict[str, Any]:
    """Draft a job from data files, as `cellguard init` does; several files make a publication."""
    refuse_stale(project, seen)
    paths = [_find_data_file(state, name) for name in dict.fromkeys(body.files)]
    with record(project, "data"):
        found = _write_proposed_job(project, paths)
    return found | {"version": get_version(project), **count_versions(project)}


def _write_proposed_job(project: Project, paths: list[Path]) -> dict[str, Any]:
    if len(paths) == 1 and paths[0].name.lower().endswith((".jj", ".jj.gz")):
        project.write({**_project_job_without_data(project), "data": {"table": project.make_relative(paths[0])}})
        return {"told": [], "unconfirmed": []}
    from cellguard.jobs.proposal.records import propose_job
    from cellguard.jobs.proposal.tables import propose

    made = propose_job(paths[0], project.folder) if len(paths) == 1 else propose(paths, project.folder)
    project.write_text(made.text)
    return {"told": list(made.told), "unconfirmed": list(made.unconfirmed)}


def _project_job_without_data(project: Project) -> dict[str, Any]:
    """Return the sections of a job that do not concern its data."""
    return {k: v for k, v in project.read_raw().items() if k not in ("data", "dimensions", "tables", "unconfirmed")}


def _find_data_file(state: State, name: str) -> Path:
    path = state.root.resolve_inside(name)
    if not path.is_file():
        raise InputError(f"{name}: no such file.", hint="choose one from the list, or upload it.")
    return path


@router.post("/projects/{project}/columns")
def list_columns(state: HasState, project: HasProject, body: Chosen) -> dict[str, Any]:
    """Return the columns of a data file, with examples of codes, but never an amount or a respondent."""
    from cellguard.web.routes.columns import describe_columns

    del project
    return describe_columns(_find_data_file(state, body.file))


# ---------------------------------------------------------------- the job


def _build_mistakes_response(mistakes: list[Mistake]) -> JSONResponse:
    return JSONResponse({"mistakes": convert_mistakes(mistakes)}, status_code=422)


@router.put("/projects/{project}/job/{part}")
def change_job(project: HasProject, part: Part, body: Sections, seen: Seen = None) -> Any:
    """Change sections of the job; if they have mistakes, return all of these and change nothing."""
    refuse_stale(project, seen)
    with record(project, part):
        wrong = project.change(part, body.sections)
    if wrong:
        return _build_mistakes_response(wrong)
    _, left = project.inspect(project.read_raw())
    return {
        "mistakes": convert_mistakes(left),
        "text": project.read_text(),
        "version": get_version(project),
        **count_versions(project),
    }


@router.get("/projects/{project}/version")
def read_version(project: HasProject) -> dict[str, Any]:
    """Return the version of the job, so that an open page can see whether another window has changed it."""
    return {"version": get_version(project)}


@router.post("/projects/{project}/undo")
def undo(project: HasProject, seen: Seen = None) -> dict[str, Any]:
    """Undo the last change of the job or its decisions; return the page that it had changed."""
    refuse_stale(project, seen)
    return {"part": restore_previous(project), "version": get_version(project), **count_versions(project)}


@router.post("/projects/{project}/redo")
def redo(project: HasProject, seen: Seen = None) -> dict[str, Any]:
    """Repeat the change that was undone last."""
    refuse_stale(project, seen)
    return {"part": restore_next(project), "version": get_version(project), **count_versions(project)}


@router.post("/projects/{project}/hierarchy")
def show_hierarchy(state: HasState, project: HasProject, body: HierarchyFile) -> dict[str, Any]:
    """Return the tree that a file describes, for one dimension or for every dimension whose codes it has."""
    from cellguard.web.routes.hierarchies import describe_hierarchy, find_dimensions_of_file

    path = _find_data_file(state, body.file)
    if body.dimension is None:
        return {"dimensions": find_dimensions_of_file(project, path)}
    return describe_hierarchy(project, path, body.dimension)


@router.post("/projects/{project}/plan")
def plan_publication(state: HasState, project: HasProject, body: TableListFile) -> dict[str, Any]:
    """Return what a list of tables becomes: tables, clusters, picture and jobs; change nothing."""
    from cellguard.web.routes.planning import describe_plan

    del project
    return describe_plan(_find_data_file(state, body.file))


@router.post("/projects/{project}/counts")
def count_flagged(state: HasState, project: HasProject, body: Sections) -> Any:
    """Count the cells that each rule would flag, with these sections instead of the job's; change nothing."""
    from cellguard.jobs.definition.read import JobFile

    raw = {**project.read_raw(), **body.sections}
    job, mistakes = project.inspect({k: v for k, v in raw.items() if v is not None})
    if job is None or mistakes:
        return _build_mistakes_response(mistakes)
    return count_flagged_cells(
        state.tables.get_flagged(JobFile(path=project.path, text="", job=job, facts=project.facts))
    )


@router.post("/projects/{project}/decisions")
def decide_cell(state: HasState, project: HasProject, body: CellDecision, seen: Seen = None) -> Any:
    """Decide about one cell by hand: protect it, publish it, allow it to be withheld, or remove the decision."""
    refuse_stale(project, seen)
    with record(project, "look"):
        wrong = decide(project, lambda: state.tables.get_flagged(project.get_job_file()), body.codes, body.decision)
    if wrong:
        return _build_mistakes_response(wrong)
    return {"codes": body.codes, "decision": body.decision, "version": get_version(project), **count_versions(project)}


# ---------------------------------------------------------------- work


@router.post("/projects/{project}/work/{kind}", status_code=202)
def begin(state: HasState, project: HasProject, kind: Kind, body: Limit | None = None, seen: Seen = None) -> Any:
    """Protect the table, or compare the methods on it, in the background."""
    from cellguard.jobs.outputs.signed import refuse_signed

    refuse_stale(project, seen)
    file = project.get_job_file()
    if kind == "protect":
        refuse_signed(file.folder)
    limit = 20.0 if body is None or body.time_limit_s is None else body.time_limit_s
    if isinstance(limit, str) or not 0 <= limit < 86_400:
        from cellguard.jobs.definition.check import Mistake

        wrong = Mistake(("compare", "time_limit_s"), "a number of seconds is needed, at least 0.")
        return _build_mistakes_response([wrong])
    if file.job.unconfirmed:
        raise InputError(
            f"guesses that have not been confirmed: {', '.join(file.job.unconfirmed)}.",
            hint="look at them on the page Data and confirm them.",
        )
    return state.solves.begin(project, kind, limit_s=limit).collect_facts()


@router.get("/projects/{project}/work/{kind}")
def get_work(state: HasState, project: HasProject, kind: Kind) -> dict[str, Any]:
    """Return the state of the latest work, with all its progress messages."""
    return state.solves.get_last(project, kind) or {"state": "none", "events": [], "seconds": 0.0}


@router.delete("/projects/{project}/work/{kind}")
def stop(state: HasState, project: HasProject, kind: Kind) -> dict[str, Any]:
    """Stop the work: suppression ends with the best safe result so far, other methods with none."""
    state.solves.stop(project, kind)
    return get_work(state, project, kind)


@router.get("/projects/{project}/work/{kind}/events")
def stream_events(
    state: HasState, project: HasProject, kind: Kind, last_event_id: Annotated[int, Header()] = -1
) -> StreamingResponse:
    """Stream the progress of the work (server-sent events)."""
    solve = state.solves.get_current(project, kind)
    return StreamingResponse(_stream_events(solve, last_event_id + 1), media_type="text/event-stream")


async def _stream_events(solve: Solve | None, first: int) -> AsyncIterator[str]:
    sent, quiet, state = max(first, 0), 0.0, ""
    while solve is not None:
        over = solve.over
        while sent < len(solve.events):
            yield f"id: {sent}\ndata: {json.dumps(solve.events[sent])}\n\n"
            sent, quiet = sent + 1, 0.0
        if solve.state != state:
            state = solve.state
            yield f"event: state\ndata: {json.dumps(state)}\n\n"
        if over:
            return
        await asyncio.sleep(_LISTEN_S)
        quiet += _LISTEN_S
        if quiet >= _ALIVE_S:
            quiet = 0.0
            yield ": still there\n\n"

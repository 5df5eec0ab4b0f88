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
from cellguard.web.bodies import CellDecision, Chosen, Files, Limit, NewProject, Sections
from cellguard.web.decisions import decide
from cellguard.web.places import free_name_in_project
from cellguard.web.projects import Project, mistakes_for_browser
from cellguard.web.solves import Solve
from cellguard.web.state import HasProject, HasState, State, load_for_server
from cellguard.web.tables import rule_counts_for_browser

if TYPE_CHECKING:
    from cellguard.publish.check import Mistake

__all__ = ["router"]

router = APIRouter(prefix="/api", tags=["projects"])
Part = Literal["data", "rules", "method", "protect"]
Kind = Literal["protect", "compare"]
_LISTEN_S = 0.1
_ALIVE_S = 15.0


@router.get("/choices")
def list_choices() -> dict[str, Any]:
    """What can be chosen: methods with their options, rules with their figures, files, attacks."""
    load_for_server()
    from cellguard.web.choices import choices

    return choices()


@router.get("/projects")
def list_projects(state: HasState) -> list[dict[str, Any]]:
    """Every project below the folder, with what it has."""
    out = []
    for project in state.projects.all():
        last = state.solves.last(project, "protect")
        out.append(
            {
                "id": project.id,
                "folder": project.folder.relative_to(state.root.folder).as_posix(),
                "releases": len(project.releases()),
                "state": None if last is None else last["state"],
            }
        )
    return out


@router.post("/projects", status_code=201)
def new_project(state: HasState, body: NewProject) -> dict[str, Any]:
    """Make an empty project."""
    load_for_server()
    return {"id": state.projects.new(body.name.strip()).id}


@router.delete("/projects/{project}")
def remove_project(state: HasState, project: HasProject) -> dict[str, Any]:
    """Remove a project with its uploads and releases."""
    if state.solves.busy(project):
        raise InputError("work is under way in this project.", hint="stop it first.")
    state.projects.remove(project.id)
    return {"removed": project.id}


@router.get("/projects/{project}")
def read_project(state: HasState, project: HasProject) -> dict[str, Any]:
    """The job as it is, its mistakes, and the files that may be chosen."""
    raw = project.raw()
    _, mistakes = project.examined(raw)
    here = project.folder.relative_to(state.root.folder)
    return {
        "id": project.id,
        "job": raw,
        "text": project.text(),
        "mistakes": mistakes_for_browser(mistakes),
        "files": [
            {"name": name, "relative": project.relative(state.root.folder / name)} for name in state.root.listed()
        ],
        "folder": here.as_posix(),
        "path": str(project.folder),
        "uploads": project.uploads(),
        "releases": [path.relative_to(project.folder).as_posix() for path in project.releases()],
        "next_folder": free_name_in_project(project.folder, "release"),
    }


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
def choose_data(state: HasState, project: HasProject, body: Files) -> dict[str, Any]:
    """Begin with data: a job is drafted from the columns as `cellguard init` does; several files make a publication."""
    paths = [_data_file_on_server(state, name) for name in dict.fromkeys(body.files)]
    if len(paths) == 1 and paths[0].name.lower().endswith((".jj", ".jj.gz")):
        project.write({**_project_job_without_data(project), "data": {"table": project.relative(paths[0])}})
        return {"told": [], "unconfirmed": []}
    from cellguard.publish.init import draft_job
    from cellguard.publish.propose import propose

    made = draft_job(paths[0], project.folder) if len(paths) == 1 else propose(paths, project.folder)
    project.write_text(made.text)
    return {"told": list(made.told), "unconfirmed": list(made.unconfirmed)}


def _project_job_without_data(project: Project) -> dict[str, Any]:
    """Return what a job says that is not about its data."""
    return {k: v for k, v in project.raw().items() if k not in ("data", "dimensions", "tables", "unconfirmed")}


def _data_file_on_server(state: State, name: str) -> Path:
    path = state.root.inside(name)
    if not path.is_file():
        raise InputError(f"{name}: no such file.", hint="choose one from the list, or upload it.")
    return path


@router.post("/projects/{project}/columns")
def columns(state: HasState, project: HasProject, body: Chosen) -> dict[str, Any]:
    """The columns of a data file, with examples of codes; never an amount, and never who answered."""
    from cellguard.web.columns import columns_for_browser

    del project
    return columns_for_browser(_data_file_on_server(state, body.file))


# ---------------------------------------------------------------- the job


def _response_with_mistakes(mistakes: list[Mistake]) -> JSONResponse:
    return JSONResponse({"mistakes": mistakes_for_browser(mistakes)}, status_code=422)


@router.put("/projects/{project}/job/{part}")
def change_job(project: HasProject, part: Part, body: Sections) -> Any:
    """Change sections of the job; with a mistake in them nothing is changed, and every mistake is told."""
    wrong = project.change(part, body.sections)
    if wrong:
        return _response_with_mistakes(wrong)
    _, left = project.examined(project.raw())
    return {"mistakes": mistakes_for_browser(left), "text": project.text()}


@router.post("/projects/{project}/counts")
def counts(state: HasState, project: HasProject, body: Sections) -> Any:
    """How many cells each rule would flag, with these sections instead of the job's; nothing is changed."""
    from cellguard.publish.read import JobFile

    raw = {**project.raw(), **body.sections}
    job, mistakes = project.examined({k: v for k, v in raw.items() if v is not None})
    if job is None or mistakes:
        return _response_with_mistakes(mistakes)
    return rule_counts_for_browser(
        state.tables.flagged(JobFile(path=project.path, text="", job=job, facts=project.facts))
    )


@router.post("/projects/{project}/decisions")
def decide_cell(state: HasState, project: HasProject, body: CellDecision) -> Any:
    """Decide of one cell by hand: protect it, publish it, let it be withheld, or nothing of that."""
    wrong = decide(project, lambda: state.tables.flagged(project.job_file()), body.codes, body.decision)
    if wrong:
        return _response_with_mistakes(wrong)
    return {"codes": body.codes, "decision": body.decision}


# ---------------------------------------------------------------- work


@router.post("/projects/{project}/work/{kind}", status_code=202)
def begin(state: HasState, project: HasProject, kind: Kind, body: Limit | None = None) -> Any:
    """Protect the table, or compare the methods on it, in the background."""
    file = project.job_file()
    limit = 20.0 if body is None or body.time_limit_s is None else body.time_limit_s
    if isinstance(limit, str) or not 0 <= limit < 86_400:
        from cellguard.publish.check import Mistake

        wrong = Mistake(("compare", "time_limit_s"), "a number of seconds is needed, at least 0.")
        return _response_with_mistakes([wrong])
    if file.job.unconfirmed:
        raise InputError(
            f"guesses that nobody has confirmed: {', '.join(file.job.unconfirmed)}.",
            hint="look at them on the page Data and confirm them.",
        )
    return state.solves.begin(project, kind, limit_s=limit).facts()


@router.get("/projects/{project}/work/{kind}")
def work(state: HasState, project: HasProject, kind: Kind) -> dict[str, Any]:
    """How the latest work stands, with everything it told."""
    return state.solves.last(project, kind) or {"state": "none", "events": [], "seconds": 0.0}


@router.delete("/projects/{project}/work/{kind}")
def stop(state: HasState, project: HasProject, kind: Kind) -> dict[str, Any]:
    """Stop: suppression ends with the best safe result so far, the others with none."""
    state.solves.stop(project, kind)
    return work(state, project, kind)


@router.get("/projects/{project}/work/{kind}/events")
def events(
    state: HasState, project: HasProject, kind: Kind, last_event_id: Annotated[int, Header()] = -1
) -> StreamingResponse:
    """What the work tells, as it tells it (server-sent events)."""
    solve = state.solves.current(project, kind)
    return StreamingResponse(_event_stream(solve, last_event_id + 1), media_type="text/event-stream")


async def _event_stream(solve: Solve | None, first: int) -> AsyncIterator[str]:
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

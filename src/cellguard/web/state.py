"""State shared by requests."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated

from fastapi import Depends, Request
from fastapi import Path as InPath

from cellguard.web.places import Root
from cellguard.web.projects import Project, Projects
from cellguard.web.security import Keys
from cellguard.web.solves import Solves
from cellguard.web.tables import Tables

__all__ = ["HasProject", "HasState", "State", "load_for_server"]

_loading = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class State:
    """The folder, its projects, the running work, and the tables in memory."""

    root: Root
    projects: Projects
    solves: Solves
    tables: Tables
    keys: Keys


def load_for_server() -> None:
    """Load the modules for jobs and tables, which takes too long for the first page.

    Only one request does so: two threads must not load modules that import each other at the same time.
    """
    with _loading:
        for name in (
            "cellguard.jobs.proposal.records",
            "cellguard.jobs.proposal.tables",
            "cellguard.web.routes.choices",
            "cellguard.web.routes.look",
        ):
            import_module(name)


def _get_state(request: Request) -> State:
    state: State = request.app.state.cellguard
    return state


HasState = Annotated[State, Depends(_get_state)]


def _project_of_request(
    state: HasState, project: Annotated[str, InPath(description="Name of the project.")]
) -> Project:
    load_for_server()
    return state.projects.get(project)


HasProject = Annotated[Project, Depends(_project_of_request)]

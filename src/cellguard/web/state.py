"""What requests share."""

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
    """The folder, its projects, the work under way, and the tables in memory."""

    root: Root
    projects: Projects
    solves: Solves
    tables: Tables
    keys: Keys


def load_for_server() -> None:
    """Load the model of jobs and all that looks at tables, which takes longer than the first page may.

    One request at a time does it: modules that import each other must not be loaded by two threads at once.
    """
    with _loading:
        for name in (
            "cellguard.publish.init",
            "cellguard.publish.propose",
            "cellguard.web.choices",
            "cellguard.web.look",
        ):
            import_module(name)


def _state_of_request(request: Request) -> State:
    state: State = request.app.state.cellguard
    return state


HasState = Annotated[State, Depends(_state_of_request)]


def _project_of_request(
    state: HasState, project: Annotated[str, InPath(description="Name of the project.")]
) -> Project:
    load_for_server()
    return state.projects.get(project)


HasProject = Annotated[Project, Depends(_project_of_request)]

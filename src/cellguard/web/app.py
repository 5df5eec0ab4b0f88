"""The web application: assemble routes, error handlers and the guard."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from cellguard import __version__
from cellguard.exceptions import CellguardError, InternalError, UnknownCodeError, place_of_exception
from cellguard.web.history import StaleJobError
from cellguard.web.places import Root
from cellguard.web.projects import Projects
from cellguard.web.routes import api, results, signoff, views
from cellguard.web.security import TOO_LARGE, Guard, Keys, TooLargeError
from cellguard.web.solves import Solves
from cellguard.web.state import State, load_for_server
from cellguard.web.tables import Tables

__all__ = ["MAX_UPLOAD", "create_app"]

_FIRST_PAGE_S = 1.0
"""Delay before other modules are loaded, so that the server answers the first page at once."""
MAX_UPLOAD = 512 << 20
"""Size limit of an upload in bytes; users copy larger files into the folder by hand."""


def create_app(folder: Path, keys: Keys, *, max_upload: int = MAX_UPLOAD) -> Guard:
    """Return the application behind its guard.

    Parameters
    ----------
    folder
        The only folder that the page may access.
    keys
        The secrets of this run.
    max_upload
        Bytes of an uploaded file.
    """
    root = Root(folder)
    state = State(root=root, projects=Projects(root), solves=Solves(), tables=Tables(), keys=keys)

    @asynccontextmanager
    async def run_lifespan(_: FastAPI) -> AsyncIterator[None]:
        later = threading.Timer(_FIRST_PAGE_S, load_for_server)
        later.daemon = True
        later.start()
        yield
        state.solves.close()

    app = FastAPI(
        title="cellguard serve",
        version=__version__,
        description="The HTTP interface of the page. Scripts send `Authorization: Bearer TOKEN`.",
        docs_url=None,  # its page would load files from another server
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=run_lifespan,
    )
    app.state.cellguard = state
    app.include_router(api.router)
    app.include_router(results.router)
    app.include_router(signoff.router)
    app.include_router(views.router)
    app.add_exception_handler(CellguardError, _report_known_error)
    app.add_exception_handler(RequestValidationError, _report_malformed_request)
    app.add_exception_handler(TooLargeError, _report_large_upload)
    app.add_exception_handler(Exception, _report_internal_fault)
    return Guard(app, keys, max_upload=max_upload)


def _report_known_error(_: Request, error: Exception) -> JSONResponse:
    """Answer with the message and the hint of a cellguard error."""
    assert isinstance(error, CellguardError)  # noqa: S101 - for the type checker
    status = 404 if isinstance(error, UnknownCodeError) else 409 if isinstance(error, StaleJobError) else 422
    return JSONResponse({"message": error.message, "hint": error.hint}, status_code=status)


def _report_malformed_request(_: Request, error: Exception) -> JSONResponse:
    """Answer a malformed request without repeating its content."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker
    places: list[Any] = [".".join(str(part) for part in entry["loc"]) for entry in error.errors()]
    return JSONResponse({"message": f"malformed: {', '.join(places)}", "hint": None}, status_code=400)


def _report_large_upload(_: Request, __: Exception) -> JSONResponse:
    """Answer a request that exceeds its size limit."""
    return JSONResponse({"message": TOO_LARGE, "hint": "copy the file into the folder instead."}, status_code=413)


def _report_internal_fault(_: Request, error: Exception) -> JSONResponse:
    """Answer an internal error with its kind and place, never its text, which could contain a value."""
    told = InternalError(place_of_exception(error))
    return JSONResponse({"message": told.message, "hint": told.hint}, status_code=500)

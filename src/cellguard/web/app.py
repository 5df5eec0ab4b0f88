"""The application: everything the server answers, put together."""

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
from cellguard.web import api, results, views
from cellguard.web.places import Root
from cellguard.web.projects import Projects
from cellguard.web.security import TOO_LARGE, Guard, Keys, TooLargeError
from cellguard.web.solves import Solves
from cellguard.web.state import State, load_for_server
from cellguard.web.tables import Tables

__all__ = ["MAX_UPLOAD", "create_app"]

_FIRST_PAGE_S = 1.0
"""Until then the first page is answered, and nothing else is loaded."""
MAX_UPLOAD = 512 << 20
"""Bytes of an uploaded file; larger ones are copied into the folder by hand."""


def create_app(folder: Path, keys: Keys, *, max_upload: int = MAX_UPLOAD) -> Guard:
    """Return the application behind its guard.

    Parameters
    ----------
    folder
        Everything the page may see lies in it.
    keys
        The secrets of this run.
    max_upload
        Bytes of an uploaded file.
    """
    root = Root(folder)
    state = State(root=root, projects=Projects(root), solves=Solves(), tables=Tables(), keys=keys)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        later = threading.Timer(_FIRST_PAGE_S, load_for_server)
        later.daemon = True
        later.start()
        yield
        state.solves.close()

    app = FastAPI(
        title="cellguard serve",
        version=__version__,
        description="The HTTP interface of the page. Scripts send `Authorization: Bearer TOKEN`.",
        docs_url=None,  # its page is fetched from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=lifespan,
    )
    app.state.cellguard = state
    app.include_router(api.router)
    app.include_router(results.router)
    app.include_router(views.router)
    app.add_exception_handler(CellguardError, _response_to_our_error)
    app.add_exception_handler(RequestValidationError, _response_to_malformed_request)
    app.add_exception_handler(TooLargeError, _response_to_large_upload)
    app.add_exception_handler(Exception, _response_to_internal_fault)
    return Guard(app, keys, max_upload=max_upload)


def _response_to_our_error(_: Request, error: Exception) -> JSONResponse:
    """Answer with the message and the hint of an error of ours."""
    assert isinstance(error, CellguardError)  # noqa: S101 - for the type checker
    status = 404 if isinstance(error, UnknownCodeError) else 422
    return JSONResponse({"message": error.message, "hint": error.hint}, status_code=status)


def _response_to_malformed_request(_: Request, error: Exception) -> JSONResponse:
    """Answer to a request of the wrong shape; what it held is not repeated."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - for the type checker
    places: list[Any] = [".".join(str(part) for part in entry["loc"]) for entry in error.errors()]
    return JSONResponse({"message": f"malformed: {', '.join(places)}", "hint": None}, status_code=400)


def _response_to_large_upload(_: Request, __: Exception) -> JSONResponse:
    """Answer to a request that grew beyond its limit."""
    return JSONResponse({"message": TOO_LARGE, "hint": "copy the file into the folder instead."}, status_code=413)


def _response_to_internal_fault(_: Request, error: Exception) -> JSONResponse:
    """Answer to a fault of ours: its kind and place, never its text, which could hold a value."""
    told = InternalError(place_of_exception(error))
    return JSONResponse({"message": told.message, "hint": told.hint}, status_code=500)

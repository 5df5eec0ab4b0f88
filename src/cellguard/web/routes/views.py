"""The pages: each is a template that its own JavaScript module fills in the browser."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, Cookie, Header, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from cellguard.exceptions import UnknownCodeError
from cellguard.web.state import HasState
from cellguard.web.texts import LANGUAGES, collect_page_texts, detect_language, read_texts

__all__ = ["STEPS", "router"]

router = APIRouter(include_in_schema=False)
STEPS = ("data", "rules", "method", "protect", "look", "sign", "releases")
"""The pages of a project, in order."""
_SHEETS = ("signoff",)
"""Pages that are no step: other pages link to them."""
_KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_YEAR_S = 31_536_000
_ON = '<!doctype html><title>cellguard</title><link rel="icon" href="/static/icon.svg">'
_ON += '<meta http-equiv="refresh" content="0;url=/">'
Language = Annotated[str | None, Cookie(alias="cellguard-language")]
Accepted = Annotated[str, Header(alias="accept-language")]


@cache
def _load_templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("cellguard.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _render_page(name: str, language: str, **facts: Any) -> HTMLResponse:
    texts = read_texts(language)
    content = {"t": texts, "language": language, "languages": LANGUAGES, "steps": STEPS, "project": None, "step": None}
    return HTMLResponse(_load_templates().get_template(name).render(content | facts))


@router.get("/health")
def report_health() -> dict[str, str]:
    """Say that the server runs; needs no token, and reveals only that."""
    return {"status": "ok"}


@router.get("/enter")
def enter_with_token(state: HasState, token: str = "") -> Response:
    """Check the token of the link, set the cookie, and go to an address without a secret.

    This answers with a page, not a redirect: browsers do not send a strict cookie after a redirect from another site.
    """
    if not state.keys.accepts_token(token):
        return PlainTextResponse("This link is no longer valid: start `cellguard serve` again.\n", status_code=401)
    answer = HTMLResponse(_ON)
    answer.set_cookie(state.keys.cookie, state.keys.session, httponly=True, samesite="strict", path="/")
    return answer


@router.get("/")
def show_home(state: HasState, language: Language = None, accepted: Accepted = "") -> HTMLResponse:
    """List the projects."""
    return _render_page("home.html", detect_language(language, accepted), folder=state.root.folder.name)


@router.get("/language/{code}")
def choose_language(code: str, request: Request) -> Response:
    """Set the language, and go back."""
    if code not in LANGUAGES:
        raise UnknownCodeError("there is no such language.")
    back = request.query_params.get("back", "/")
    answer = RedirectResponse(back if back.startswith("/") and back[1:2] not in ("/", "\\") else "/", status_code=303)
    answer.set_cookie("cellguard-language", code, max_age=_YEAR_S, samesite="strict", path="/")
    return answer


@router.get("/p/{project}")
def redirect_to_first_page(state: HasState, project: str) -> Response:
    """Go to the first page of a project."""
    return RedirectResponse(f"/p/{state.projects.get(project).id}/data", status_code=303)


@router.get("/p/{project}/{step}")
def show_page(
    state: HasState, project: str, step: str, language: Language = None, accepted: Accepted = ""
) -> HTMLResponse:
    """Show a page of a project."""
    if step not in (*STEPS, *_SHEETS):
        raise UnknownCodeError("there is no such page.")
    found = state.projects.get(project)
    return _render_page("step.html", detect_language(language, accepted), project=found.id, step=step)


@router.get("/texts/{code}.json")
def serve_texts(code: str) -> dict[str, str]:
    """Return every text of a language, for the modules in the browser."""
    if code not in LANGUAGES:
        raise UnknownCodeError("there is no such language.")
    return collect_page_texts(code)


@router.get("/static/{name}")
def serve_static_file(name: str) -> Response:
    """Serve a file of the package."""
    folder = resources.files("cellguard.web") / "static"
    known = {entry.name: entry for entry in folder.iterdir()}
    kind = _KINDS.get(name[name.rfind(".") :])
    if name not in known or kind is None:
        raise UnknownCodeError("there is no such file.")
    return Response(known[name].read_bytes(), media_type=kind)

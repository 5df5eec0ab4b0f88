"""``cellguard serve``: the web page for users who do not program, on this machine only."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cellguard.cli.support.printing import print_note
from cellguard.cli.support.start import pause_garbage_collection
from cellguard.exceptions import InputError

__all__ = ["command"]

_PORT = 8319
_TRIED = 20


def command(
    folder: Annotated[
        Path, Argument(metavar="FOLDER", help="The only folder that the page can access; projects are made in it.")
    ] = Path(),
    port: Annotated[
        int | None, Option(metavar="N", min=1, max=65535, help=f"Port of 127.0.0.1; {_PORT} or the next free one.")
    ] = None,
    open_page: Annotated[bool, Option("--open/--no-open", help="Open the page in the browser.")] = True,
    max_upload: Annotated[
        int, Option(metavar="MB", min=1, help="Largest file that may be uploaded, in megabytes.")
    ] = 512,
) -> None:
    """Open the web page on this machine: from a data file to a release without code.

    Every choice on the page is a line of a job file, and `cellguard protect` gives the same release. The page is for
    this user at this machine: it listens on 127.0.0.1 only, and requires the token in the printed link.
    Ctrl-C ends the server and its running work.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder.", hint="make the folder first.")
    try:
        with pause_garbage_collection():
            import uvicorn

            from cellguard.web import create_app
            from cellguard.web.security import Keys
    except ImportError as error:
        raise InputError(
            f"the page needs {error.name}, which is not installed.", hint="pip install 'cellguard[web]'"
        ) from None
    with _open_loopback_socket(port) as listener:
        keys = Keys(port=listener.getsockname()[1])
        link = f"http://127.0.0.1:{keys.port}/enter?token={keys.token}"
        print(link, flush=True)
        print_note(f"The page can access only {folder.resolve()}. Ctrl-C ends it.")
        app = create_app(folder, keys, max_upload=max_upload << 20)
        # no request log: addresses contain the names of projects and files
        config = uvicorn.Config(
            app,
            log_level="error",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=1,
        )
        if open_page:
            _open_served_page(link)
        uvicorn.Server(config).run(sockets=[listener])


def _open_loopback_socket(port: int | None) -> socket.socket:
    """Return a socket on the loopback interface; the usual port, if free, keeps bookmarks valid."""
    for wanted in [port] if port is not None else [*range(_PORT, _PORT + _TRIED), 0]:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", wanted))
            listener.listen()  # a user who follows the link at once waits until the server answers
        except OSError:
            listener.close()
            continue
        return listener
    raise InputError(f"--port {port}: is taken.", hint="leave the option out, or name another port.")


def _open_served_page(link: str) -> None:
    """Open the browser once the server listens; without a browser, the printed link remains."""
    import threading
    import webbrowser

    threading.Timer(0.3, lambda: webbrowser.open(link)).start()

"""The command line: one small module per verb, loaded when that verb is called.

A verb is a module here with a function ``command`` whose parameters are its options, and a line in
:data:`VERBS`. What verbs share is beside them: options (``_options``), the files they name (``_asked``),
printing (``_printing``); the verbs of the methods are made from the registry (``_method``).

Exit codes: 0 done and safe, 1 wrong input, 2 no safe release found, 3 internal error, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

from cellguard._interrupt import INTERRUPTED, exit_code_of_interrupt, was_interrupted
from cellguard.cli._printing import NoSafeReleaseError, print_error, print_json
from cellguard.cli._start import start_quickly
from cellguard.exceptions import CellguardError, InternalError, place_of_exception
from cellguard.methods.registry import METHODS

__all__ = ["VERBS", "Verb", "main"]


class Verb(NamedTuple):
    """A line of ``cellguard --help``."""

    panel: str
    """The group it is listed under."""
    summary: str
    """What it does, in a few words."""


VERBS = {
    "demo": Verb("Start", "Protect a bundled example and show the result."),
    "init": Verb("Start", "Write a commented job file for a data file of yours."),
    "protect": Verb("Start", "Do everything a job file asks for: tabulate, flag, protect, audit, write."),
    "serve": Verb("Start", "Open the page on this machine: from a data file to a release without a line of code."),
    "info": Verb("Tables", "Say what a table is: cells, relations, rank, sensitive cells, and what is wrong with it."),
    "generate": Verb("Tables", "Make a table of one of the papers' kinds: the same seed gives the same table."),
    **{name: Verb("Protect", method.summary) for name, method in METHODS.items()},
    "compare": Verb("Protect", "Protect one table by all methods and compare them."),
    "argus": Verb("Protect", "Run a batch of tau-ARGUS with cellguard's methods."),
    "audit": Verb("Check", "Say what an attacker can compute from a release, whichever program made it."),
    "verify": Verb("Check", "Check by exact arithmetic, without a solver, that witnesses prove a release safe."),
    "attack": Verb("Check", "Attack an adjusted table the way an informed intruder would."),
    "match": Verb("Check", "Attack a suppressed frequency table with the knowledge of how it was suppressed."),
    "reproduce": Verb("Papers", "Reproduce an experiment of the papers, ours beside the printed figures."),
}
"""Every verb, in the order of the help; each has a module of its name in this package, or is a method."""

_EPILOG = "Every verb explains itself: cellguard VERB --help. Exit codes: 0 done and safe, 1 wrong input, "
_EPILOG += "2 no safe release found, 3 internal error, 130 stopped by Ctrl-C."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    as_json = "--json" in words
    verb = next((word for word in words if not word.startswith("-")), None)
    try:
        start_quickly(asks_for_help="--help" in words, verb=verb in VERBS)
        _command_line_app(verb)(words, prog_name="cellguard")
    except SystemExit as stop:  # typer has shown its message; its 2 for a wrong option is our 1
        if stop.code == INTERRUPTED:
            return exit_code_of_interrupt()
        return 0 if stop.code == 0 else 1
    except KeyboardInterrupt:
        return exit_code_of_interrupt()
    except NoSafeReleaseError as stop:
        if as_json and stop.summary is not None:  # otherwise the object of the release is already printed
            print_json(stop.summary)
        print_error(stop, as_json=False)
        return 2
    except InternalError as error:
        return _exit_code_of_internal_error(error, error, as_json)
    except CellguardError as error:
        print_error(error, as_json=as_json, internal="--internal" in words)
        return 1
    except (OSError, MemoryError) as error:
        print_error(_system_error_for_terminal(error), as_json=as_json)
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: no traceback, no value, exit code 3
        if was_interrupted():  # an import that Ctrl-C cut short calls itself an ImportError
            return exit_code_of_interrupt()
        return _exit_code_of_internal_error(InternalError(place_of_exception(error)), error, as_json)
    return 0


def _command_line_app(verb: str | None) -> typer.Typer:
    """Build the application with the module of one verb loaded; the others are lines of the help."""
    app = typer.Typer(name="cellguard", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    app.callback(epilog=_EPILOG)(_bare_command)
    for name, (panel, summary) in VERBS.items():
        function = _load_command(name) if name == verb else _command_not_loaded
        app.command(name, short_help=summary, rich_help_panel=panel)(function)
    return app


def _load_command(verb: str) -> Callable[..., Any]:
    if verb in METHODS:
        from cellguard.cli._method import command_of_method

        return command_of_method(METHODS[verb])
    function: Callable[..., Any] = import_module(f"cellguard.cli.{verb}").command
    return function


def _command_not_loaded() -> None:
    """Stand for a verb that was not called."""


def _show_version(wanted: bool) -> None:
    if wanted:
        from cellguard import __version__

        print(f"cellguard {__version__}")
        raise typer.Exit


def _bare_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Make statistical tables safe to publish, and prove it."""


def _system_error_for_terminal(error: OSError | MemoryError) -> CellguardError:
    """Say in our words what the operating system refused."""
    if isinstance(error, MemoryError):
        return CellguardError("the memory of this machine is not enough for this table.")
    name = "" if error.filename is None else f"{error.filename}: "
    return CellguardError(f"{name}{error.strerror or type(error).__name__}.")


def _exit_code_of_internal_error(error: InternalError, cause: BaseException, as_json: bool) -> int:
    print_error(error, as_json=as_json)
    if os.environ.get("CELLGUARD_DEBUG"):  # may show confidential values: never on by itself
        import traceback

        traceback.print_exception(cause)
    return 3

"""The command line: one small module per command, loaded when that command is called.

To add a command, add a line to :data:`VERBS` and a module of its name with a function ``command``, whose parameters
are its options. The module belongs in the package of its panel: ``cellguard audit`` is listed under "Check", so it
is ``cellguard.cli.commands.check.audit``. Commands share the modules of :mod:`cellguard.cli.support`: ``options``
(with the files they name), ``printing`` and ``start``; ``method`` generates the commands of the
methods from the registry.

Exit codes: 0 done and safe, 1 wrong input, 2 no safe release found, 3 internal error, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer

from cellguard._interrupt import INTERRUPTED, report_interrupt, was_interrupted
from cellguard.cli.support.printing import JobsFailedError, NoSafeReleaseError, print_error, print_json
from cellguard.cli.support.start import start_quickly
from cellguard.exceptions import CellguardError, InternalError, place_of_exception
from cellguard.methods.registry import METHODS

__all__ = ["VERBS", "Verb", "main"]


class Verb(NamedTuple):
    """A line of ``cellguard --help``."""

    panel: str
    """The group it is listed under; in lower case, the package of its module."""
    summary: str
    """A short description."""


VERBS = {
    "demo": Verb("Start", "Protect a bundled example and show the result."),
    "init": Verb("Start", "Write a commented job file for your data."),
    "protect": Verb("Start", "Run a job file: tabulate, flag, protect, audit, write."),
    "serve": Verb("Start", "Open the web page on this machine: from a data file to a release without programming."),
    "plan": Verb("Tables", "Plan from a list of tables what must be protected together, and write the job."),
    "info": Verb("Tables", "Describe a table: cells, relations, rank, sensitive cells, and possible mistakes."),
    "generate": Verb(
        "Tables", "Generate a table of one of the kinds in the papers; the same seed gives the same table."
    ),
    **{name: Verb("Protect", method.summary) for name, method in METHODS.items()},
    "compare": Verb("Protect", "Protect one table with every method and compare the results."),
    "argus": Verb("Protect", "Run a tau-ARGUS batch with cellguard's methods."),
    "audit": Verb("Check", "Report what an attacker can infer from a release made by any program."),
    "verify": Verb("Check", "Check in exact arithmetic, without a solver, that witnesses prove a release safe."),
    "ledger": Verb("Check", "List, show or check what was released before."),
    "attack": Verb("Check", "Attack a release as an informed attacker would."),
    "match": Verb("Check", "Attack a suppressed table of counts as an attacker who knows the algorithm would."),
    "diff": Verb("Check", "Find what tables by groupings that do not nest reveal together."),
    "ranges": Verb("Check", "Compute from public data alone how narrowly withheld cells are known; no verdict."),
    "reproduce": Verb("Papers", "Reproduce an experiment of the papers and compare it with the printed figures."),
}
"""Every command, in the order of the help; each is a method, or a module in the package of its panel."""

_EPILOG = "cellguard COMMAND --help describes a command. Exit codes: 0 done and safe, 1 wrong input, "
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
            return report_interrupt()
        return 0 if stop.code == 0 else 1
    except KeyboardInterrupt:
        return report_interrupt()
    except JobsFailedError as stop:
        return stop.exit_code
    except NoSafeReleaseError as stop:
        if as_json and stop.summary is not None:  # otherwise the JSON object of the release is already printed
            print_json(stop.summary)
        print_error(stop, as_json=False)
        return 2
    except InternalError as error:
        return _report_internal_error(error, error, as_json)
    except CellguardError as error:
        print_error(error, as_json=as_json, internal="--internal" in words)
        return 1
    except (OSError, MemoryError) as error:
        print_error(_describe_system_error(error), as_json=as_json)
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: no traceback, no value, exit code 3
        if was_interrupted():  # an import interrupted by Ctrl-C raises an ImportError
            return report_interrupt()
        return _report_internal_error(InternalError(place_of_exception(error)), error, as_json)
    return 0


def _command_line_app(verb: str | None) -> typer.Typer:
    """Build the application with the module of one command loaded; the others are only lines of the help."""
    app = typer.Typer(name="cellguard", add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    app.callback(epilog=_EPILOG)(_show_help)
    for name, (panel, summary) in VERBS.items():
        function = _load_command(name) if name == verb else _command_not_loaded
        app.command(name, short_help=summary, rich_help_panel=panel)(function)
    return app


def _load_command(verb: str) -> Callable[..., Any]:
    if verb in METHODS:
        from cellguard.cli.support.method import command_of_method

        return command_of_method(METHODS[verb])
    function: Callable[..., Any] = import_module(f"cellguard.cli.commands.{VERBS[verb].panel.lower()}.{verb}").command
    return function


def _command_not_loaded() -> None:
    """Do nothing: a placeholder for a command that was not called."""


def _show_version(wanted: bool) -> None:
    if wanted:
        from cellguard import __version__

        print(f"cellguard {__version__}")
        raise typer.Exit


def _show_help(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Make statistical tables safe to publish, and prove it."""


def _describe_system_error(error: OSError | MemoryError) -> CellguardError:
    """Describe an error of the operating system in plain words."""
    if isinstance(error, MemoryError):
        return CellguardError("the memory of this machine is not enough for this table.")
    name = "" if error.filename is None else f"{error.filename}: "
    return CellguardError(f"{name}{error.strerror or type(error).__name__}.")


def _report_internal_error(error: InternalError, cause: BaseException, as_json: bool) -> int:
    print_error(error, as_json=as_json)
    if os.environ.get("CELLGUARD_DEBUG"):  # may show confidential values: never on by default
        import traceback

        traceback.print_exception(cause)
    return 3

"""The commands of the methods, generated from the options in the registry.

Each command reads the table, protects it, audits the release, prints it, and writes it if it is safe.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellguard._engine.threads import count_cores
from cellguard._interrupt import BEST_KEPT, was_interrupted
from cellguard.cli.support import options, printing
from cellguard.cli.support.options import TableAsked, command_with_options
from cellguard.cli.support.printing import NoSafeReleaseError, print_note
from cellguard.exceptions import InputError
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S, LONGEST_LIMIT_S
from cellguard.methods.method import SAME, Method, Option
from cellguard.model.key import Key

if TYPE_CHECKING:
    from cellguard.auditing.audit import Audit
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["Wanted", "build_flag", "command_of_method", "run_on_command_line"]

_MarkPrimary = Annotated[
    bool, typer.Option("--mark-primary", help="Tell in the file which withheld cells are sensitive themselves.")
]
_InternalFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write true values, senses, weights: must stay inside.")
]


def command_of_method(method: Method) -> Callable[..., None]:
    """Return the function behind ``cellguard NAME``, with the method's options, then those of all methods."""
    own = {option.name: (build_flag(option), option.default) for option in method.options if option.flag}
    named = {option.name for option in method.options}
    listed = {
        "table": (options.TableFile, Parameter.empty),
        "out": (options.Out, None),
        **own,
        **({} if "weights" in named else {"weights": (options.Weights, "table")}),
        "levels": (options.Levels, None),
        "time_limit": (options.TimeLimit, DEFAULT_TIME_LIMIT_S),
        "seed": (options.Seed, 0),
        **({"key": (options.KeyFile, None)} if method.takes_key else {}),
        "threads": (options.Threads, None),
        "insiders": (options.Insiders, True),
        **({} if "integer" in named else {"whole": (options.Whole, False)}),
        **({"mark_primary": (_MarkPrimary, False)} if method.marks_primary else {}),
        **({"internal_file": (_InternalFile, None)} if method.internal_file else {}),
        "allow_nothing_sensitive": (options.NothingSensitive, False),
        "internal": (options.Internal, False),
        "as_json": (options.Json, False),
        "quiet": (options.Quiet, False),
    }
    parameters = (
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in listed.items()
    )
    return command_with_options(lambda **given: _run_command_of_method(method, given), parameters, method.help)


def build_flag(option: Option) -> Any:
    """Return the type of an option on the command line, with its flag and help."""
    flag = f"--{option.name.replace('_', '-')}" if option.flag is SAME else option.flag
    kind = option.kind if option.default is not None else option.kind | None
    return Annotated[kind, typer.Option(flag, metavar=option.metavar, min=option.least, help=option.help)]


def _run_command_of_method(method: Method, given: dict[str, Any]) -> None:
    own = {option.name: option.convert_typed(given.pop(option.name)) for option in method.options if option.flag}
    given["threads"] = given["threads"] or count_cores()
    if given["time_limit"] > LONGEST_LIMIT_S:
        raise InputError(
            f"--time-limit {given['time_limit']:g}: at most {LONGEST_LIMIT_S:,.0f} seconds are possible.",
            hint="the best safe result so far is given at the limit.",
        )
    limits = {"time_limit_s": given.pop("time_limit"), "seed": given.pop("seed"), "threads": given["threads"]}
    if (key := given.pop("key", None)) is not None:
        limits["key"] = Key.read(key)
    elif method.takes_key and method.is_randomised({**own, **limits}):
        limits["key"] = Key.draw()
    limits["progress"] = printing.create_progress_printer(internal=given["internal"], quiet=given["quiet"])
    internal_file = given.pop("internal_file", None)

    def protect(table: Table) -> Release:
        release = method.verb(table, **own, **limits)
        if internal_file is not None and release.published:
            release.save_internal(internal_file)  # type: ignore[attr-defined]  # the method declares that it can
        if key is None and "key" in limits and release.published:
            _keep_drawn_key(limits["key"], internal_file, quiet=given["quiet"])
        return release

    about_table = {name: given.pop(name) for name in ("weights", "levels", "insiders", "whole") if name in given}
    run_on_command_line(protect, TableAsked(path=given.pop("table"), **about_table), Wanted(**given))


def _keep_drawn_key(key: Key, internal_file: Path | None, *, quiet: bool) -> None:
    """Save a key that was drawn beside the internal file; without one, say that it is lost."""
    if internal_file is None:
        text = "note: the key was drawn and is not kept: this release cannot be made again. --key FILE gives one."
        print_note(text, quiet=quiet)
        return
    path = internal_file.with_name(f"{internal_file.name}.key")
    key.write(path)
    print_note(f"key: {path} (secret, like the internal file; --key makes the release again)", quiet=quiet)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How to output the release."""

    out: Path | None = None
    """Output file. Nothing is written unless the audit finds the release safe."""
    as_json: bool = False
    """Print only the JSON object on standard output."""
    quiet: bool = False
    """Print no progress on standard error."""
    threads: int = 1
    """Processor cores for the audit."""
    internal: bool = False
    """Also print figures computed from true values."""
    allow_nothing_sensitive: bool = False
    """Accept a table without sensitive cells as safe."""
    mark_primary: bool = False
    """Distinguish primary from secondary suppressions in the file, after a warning."""


def run_on_command_line(method: Callable[[Table], Release], asked: TableAsked, wanted: Wanted) -> None:
    """Read a table, protect it, audit the release, print it, and write it if it is safe.

    `method` makes a release of a table; its ``seconds`` say how long reducing and solving took.

    Raises
    ------
    NoSafeReleaseError
        When there is no release, or the audit refuses it.
    """
    from cellguard.release.release import PRIMARY_WARNING

    start = time.perf_counter()
    if wanted.out is not None:
        _check_out_option(wanted.out, asked.path)
    with printing.redirect_library_output(wanted.as_json):
        table = asked.load()
        read = time.perf_counter()
        print_note(f"{asked.path}: {table.n_cells} cells, {int(table.sensitive.sum())} sensitive", quiet=wanted.quiet)
        release = method(table)
        if was_interrupted() and release.published:
            print_note(f"{BEST_KEPT}.", quiet=wanted.quiet)
        solved = time.perf_counter()
        audit = release.audit(jobs=wanted.threads) if release.published else None
        audited = time.perf_counter()
        if release.published and release.explanation:
            print_note(f"note: {release.explanation}", quiet=wanted.quiet)
        accepted = audit is not None and (audit.safe or (wanted.allow_nothing_sensitive and audit.checked == 0))
        if accepted and wanted.out is not None:
            if wanted.mark_primary:
                print_note(PRIMARY_WARNING)
            unchecked = wanted.allow_nothing_sensitive
            release.save(wanted.out, allow_unchecked=unchecked, mark_primary=wanted.mark_primary)
    # in the listed order: the total, its parts, and other times that the method measured
    seconds = {"total": 0.0, "read": 0.0, "reduce": 0.0, "solve": solved - read, "audit": 0.0, **release.seconds}
    seconds |= {"read": read - start, "audit": audited - solved, "total": time.perf_counter() - start}
    summary = release.summary(internal=wanted.internal)
    summary["seconds"] = seconds
    summary["audit"] = None if audit is None else audit.summary()
    if wanted.as_json:
        printing.print_json(summary)
    else:
        shown = {k: v for k, v in summary.items() if k not in ("method", "loss")}
        printing.print_pairs(f"{asked.path.name}: {release.method}", printing.format_summary(shown))
    if not accepted:
        raise _describe_refusal(release, audit)
    if wanted.out is not None:
        print_note(f"written: {wanted.out}", quiet=wanted.quiet)


def _check_out_option(out: Path, path: Path) -> None:
    """Refuse, before the run, a path to which the release cannot be written."""
    from cellguard.release.formats.registry import check_ending

    try:
        check_ending(out)
    except InputError as error:
        raise InputError(f"--out {error.message}", hint=error.hint) from None
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}.", hint="make the folder first.")
    if out.is_dir():
        raise InputError(f"--out {out}: is a folder; the name of a file is needed.")
    if out.exists() and path.exists() and out.samefile(path):
        raise InputError(f"--out {out}: is the table itself.", hint="give the release another name.")


def _describe_refusal(release: Release, audit: Audit | None) -> NoSafeReleaseError:
    if audit is None:
        return NoSafeReleaseError(
            f"no release: {release.status}. {release.explanation}".strip(),
            hint="more time, lower levels, or another method may find one.",
        )
    if audit.checked == 0:
        return NoSafeReleaseError(
            "nothing was checked: no cell of the table is sensitive; nothing was written.",
            hint="apply rules first, or say --allow-nothing-sensitive if that is meant.",
        )
    return NoSafeReleaseError("the audit refuses this release; nothing was written.")

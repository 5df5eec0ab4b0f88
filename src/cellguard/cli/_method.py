"""The verbs of the methods, made from the registry: what a method says of its options is its command line."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cellguard._engine.threads import all_cores
from cellguard.cli import _options as options
from cellguard.cli import _printing as printing
from cellguard.cli._asked import TableAsked
from cellguard.cli._running import Wanted, run_method
from cellguard.methods.limits import DEFAULT_TIME_LIMIT_S
from cellguard.methods.method import SAME, Method, Option

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["command_of"]

_MarkPrimary = Annotated[
    bool, typer.Option("--mark-primary", help="Tell in the file which withheld cells are sensitive themselves.")
]
_InternalFile = Annotated[
    Path | None,
    typer.Option("--internal-file", metavar="FILE", help="Also write true values, senses, weights: must stay inside."),
]


def command_of(method: Method) -> Callable[..., None]:
    """Return the function behind ``cellguard NAME``."""
    parameters = _parameters(method)

    def command(**given: Any) -> None:
        _run_verb(method, given)

    command.__doc__ = method.help
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    return command


def _parameters(method: Method) -> list[Parameter]:
    """Return the options of a method, then those that all methods have."""
    own = {option.name for option in method.options}
    out = [_parameter("table", options.TableFile), _parameter("out", options.Out, None)]
    out += [_parameter(option.name, _typed_option(option), option.default) for option in method.options if option.flag]
    if "weights" not in own:
        out.append(_parameter("weights", options.Weights, "table"))
    out += [
        _parameter("levels", options.Levels, None),
        _parameter("time_limit", options.TimeLimit, DEFAULT_TIME_LIMIT_S),
        _parameter("seed", options.Seed, 0),
        _parameter("threads", options.Threads, None),
        _parameter("insiders", options.Insiders, True),
    ]
    if "integer" not in own:
        out.append(_parameter("whole", options.Whole, False))
    if method.marks_primary:
        out.append(_parameter("mark_primary", _MarkPrimary, False))
    if method.internal_file:
        out.append(_parameter("internal_file", _InternalFile, None))
    out += [
        _parameter("allow_nothing_sensitive", options.NothingSensitive, False),
        _parameter("internal", options.Internal, False),
        _parameter("as_json", options.Json, False),
        _parameter("quiet", options.Quiet, False),
    ]
    return out


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


def _typed_option(option: Option) -> Any:
    flag = f"--{option.name.replace('_', '-')}" if option.flag is SAME else option.flag
    kind = option.kind if option.default is not None else option.kind | None
    return Annotated[kind, typer.Option(flag, metavar=option.metavar, min=option.least, help=option.help)]


def _run_verb(method: Method, given: dict[str, Any]) -> None:
    own = {option.name: option.typed(given.pop(option.name)) for option in method.options if option.flag}
    limits = {"time_limit_s": given.pop("time_limit"), "seed": given.pop("seed")}
    internal_file = given.pop("internal_file", None)
    given["threads"] = given["threads"] or all_cores()
    limits["threads"] = given["threads"]
    limits["progress"] = printing.progress_lines(internal=given["internal"], quiet=given["quiet"])

    def protect(table: Table) -> Release:
        release = method.verb(table, **own, **limits)
        if internal_file is not None and release.published:
            release.save_internal(internal_file)  # type: ignore[attr-defined]  # the method says that it can
        return release

    about_table = {name: given.pop(name) for name in ("weights", "levels", "insiders", "whole") if name in given}
    run_method(protect, TableAsked(path=given.pop("table"), **about_table), Wanted(**given))

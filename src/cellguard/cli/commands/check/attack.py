"""``cellguard attack``: an informed attacker against an adjusted, rounded or perturbed table, or intervals."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument
from typer import Option as Flag

from cellguard._attack_options import ATTACK_KINDS, AttackKind, find_attack_kind, list_attacked_methods
from cellguard._options import Option
from cellguard.cli.support.method import build_flag
from cellguard.cli.support.options import (
    ExperimentSeed,
    Json,
    Levels,
    Quiet,
    TableAsked,
    TableFile,
    command_with_options,
)
from cellguard.cli.support.printing import print_note, print_summary, redirect_library_output

if TYPE_CHECKING:
    from cellguard.model.table import Table
    from cellguard.release.release import Release

__all__ = ["command"]

_USUAL = {"adjust": "B2", "round": "nearest", "perturb": "nearest", "intervals": "levels"}
"""Method -> scenario that is tried if none is given."""
_PREFIX = "attack_"
"""Of the options of the attack among the parameters: `norm` and `senses` are also options of the adjustment."""
_Release = Annotated[
    Path | None, Argument(metavar="[RELEASE.csv]", help="The release to attack; default: made from the table.")
]
_Scenario = Annotated[
    str | None,
    Flag(
        metavar="NAME",
        help="What the attacker knows. Adjusted table: B1, B2 (default), B3, C or decimals. Rounded or perturbed "
        "table: nearest (default) or levels. Intervals: levels (default), formulas or sets.",
    ),
]
_Method = Annotated[str, Flag(metavar="NAME", help="Method of the release: adjust, round, perturb or intervals.")]
_Base = Annotated[float | None, Flag(metavar="NUMBER", help="Base of a rounded or perturbed table.")]
_Norm = Annotated[str, Flag(metavar="NORM", help="Norm of the adjustment: l1 or l2.")]
_Senses = Annotated[str, Flag(metavar="KIND", help="Senses of the adjustment: key, upper, lower or optimal.")]
_Surplus = Annotated[
    float, Flag(metavar="SHARE", min=0.0, help="Surplus of the adjustment; 0: cells stop at their levels.")
]
_Real = Annotated[
    bool, Flag("--real", help="The adjustment publishes any numbers, not only multiples of the decimal unit.")
]
_Jobs = Annotated[int, Flag(metavar="N", help="Number of guesses computed in parallel.")]


def _list_options() -> list[Option]:
    """Return every option of the attacks on these methods once; ``cellguard match`` has those on suppressions."""
    kinds = (kind for kind in ATTACK_KINDS if kind.command == "attack")
    return list({option.name: option for kind in kinds for option in kind.options}.values())


def _build_command() -> Any:
    """Return the function behind ``cellguard attack``, with the options of every attack."""
    listed = {
        "path": (TableFile, Parameter.empty),
        "release": (_Release, None),
        "scenario": (_Scenario, None),
        "method": (_Method, "adjust"),
        "base": (_Base, None),
        "norm": (_Norm, "l1"),
        "senses": (_Senses, "key"),
        "surplus": (_Surplus, 1.0),
        "real": (_Real, False),
        **{_PREFIX + option.name: (build_flag(option), option.default) for option in _list_options()},
        "levels": (Levels, None),
        "seed": (ExperimentSeed, 0),
        "jobs": (_Jobs, 1),
        "as_json": (Json, False),
        "quiet": (Quiet, False),
    }
    parameters = (
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in listed.items()
    )
    about = "Attack a release and report how close an informed attacker comes to the sensitive cells."
    return command_with_options(_run, parameters, about)


@dataclass(frozen=True, kw_only=True)
class _AttackTyped:
    """What was typed, besides the options of the attack."""

    path: Path
    release: Path | None
    scenario: str | None
    method: str
    base: float | None
    norm: str
    senses: str
    surplus: float
    real: bool
    levels: str | None
    seed: int
    jobs: int
    as_json: bool
    quiet: bool


def _run(**given: Any) -> None:
    from cellguard.exceptions import UnknownCodeError, raise_if_unknown
    from cellguard.methods.registry import METHODS

    typed = {name: given.pop(name) for name in list(given) if name.startswith(_PREFIX)}
    asked = _AttackTyped(**given)
    raise_if_unknown("--method", asked.method, tuple(_USUAL), UnknownCodeError)
    scenario = _USUAL[asked.method] if asked.scenario is None else asked.scenario
    kind = _find_kind(scenario, asked.method)
    told = {o.name: o.convert_typed(typed[_PREFIX + o.name]) for o in kind.options} | {"seed": asked.seed}
    with redirect_library_output(asked.as_json):
        table = TableAsked(path=asked.path, levels=asked.levels).load()
        if METHODS[asked.method].by_ranges:
            summary = _attack_method(table, asked.release, asked.method, asked.base, scenario, told)
            title = f"{asked.method}, {summary['knowledge']}"
        else:
            summary = _attack_adjustment(table, asked, scenario, told)
            title = f"scenario {scenario}"
    print_summary(f"{asked.path.name}: {title}", summary, as_json=asked.as_json)


def _attack_adjustment(table: Table, asked: _AttackTyped, scenario: str, told: dict[str, Any]) -> dict[str, Any]:
    """Attack an adjusted table, read from a file or made here."""
    from cellguard.attacks.scenarios import attack
    from cellguard.model.key import Key

    made: dict[str, Any] = {"norm": asked.norm, "senses": asked.senses, "surplus": asked.surplus}
    made["weights"] = "inverse" if asked.norm == "l1" else "inverse_square"  # castro2012 section 2
    if asked.release is None:
        print_note(f"{asked.path}: adjusting with {asked.norm} ...", quiet=asked.quiet)
    drawn = {"integer": False if asked.real else None, "key": Key.from_public_number(asked.seed + 1)}
    adjusted = _get_adjustment(table, asked.release, made, drawn)
    return attack(adjusted, scenario, n_jobs=asked.jobs, **told).summary()


def _find_kind(scenario: str, method: str) -> AttackKind:
    """Return the attack; refuse a scenario that does not exist for this method."""
    from cellguard.exceptions import UnknownCodeError, raise_if_unknown

    kind = find_attack_kind(scenario, method)
    if kind is None:
        known = [name for each in ATTACK_KINDS if method in each.methods for name in each.scenarios]
        raise_if_unknown("scenario", scenario, known, UnknownCodeError)
        raise UnknownCodeError(f"scenario {scenario!r} is for {', '.join(list_attacked_methods(scenario))}.")
    return kind


def _attack_method(
    table: Table, path: Path | None, method: str, base: float | None, scenario: str | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Attack a rounded or perturbed table, or intervals, read from a file or made here."""
    from cellguard.attacks import attack
    from cellguard.methods.registry import METHODS
    from cellguard.release.readers.read_release import read_release

    if path is None:
        given = {} if base is None else {"base": base}
        release = METHODS[method].verb(table, **METHODS[method].fill_options(given, table))
    else:
        release = read_release(table, path, method=method, base=base)
    summary: dict[str, Any] = attack(release, scenario, **options).summary()
    return summary


def _get_adjustment(table: Table, path: Path | None, made: dict[str, Any], drawn: dict[str, Any]) -> Release:
    """Return the adjusted table, read from a file or made here."""
    from dataclasses import replace

    from cellguard.methods.adjust.adjust import adjust
    from cellguard.release.readers.read_release import read_release

    if path is None:
        return adjust(table, **made, **drawn)
    published = read_release(table, path, method="adjust")
    return replace(published, options={**published.options, **made})


command = _build_command()

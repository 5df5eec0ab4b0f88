"""``cellguard attack``: an informed intruder against an adjusted table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cellguard.cli._options import Json, Levels, Quiet, Seed, TableAsked, TableFile
from cellguard.cli._printing import only_json_on_stdout, print_note, print_summary

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["command"]


def command(
    path: TableFile,
    release: Annotated[
        Path | None, Argument(metavar="[RELEASE.csv]", help="The adjusted table; made here if not given.")
    ] = None,
    scenario: Annotated[str, Option(metavar="NAME", help="What he knows: B1, B2, B3, C or decimals.")] = "B2",
    norm: Annotated[str, Option(metavar="NORM", help="Of the adjustment: l1 or l2.")] = "l1",
    senses: Annotated[str, Option(metavar="KIND", help="Of the adjustment: key, upper, lower or optimal.")] = "key",
    surplus: Annotated[float, Option(metavar="SHARE", min=0.0, help="Of the adjustment; 0 stops at the levels.")] = 1.0,
    real: Annotated[bool, Option("--real", help="The adjustment publishes any numbers, off the grid.")] = False,
    replications: Annotated[int, Option(metavar="N", help="How often he guesses.")] = 10,
    level_error: Annotated[
        float, Option(metavar="SHARE", help="How far his guess of a level may be off (Delta).")
    ] = 0.2,
    weights: Annotated[
        str, Option(metavar="KIND", help="The weights he takes: the release's own, or a kind.")
    ] = "release",
    believes: Annotated[str | None, Option(metavar="NORM", help="The norm he takes, if not the release's own.")] = None,
    knows_bounds: Annotated[bool, Option(help="Whether he knows the bounds of the cells.")] = True,
    knows_sensitive: Annotated[bool, Option(help="Whether he knows which cells are sensitive.")] = True,
    takes_senses: Annotated[str | None, Option(metavar="HOW", help="He takes senses as known, drawn or free.")] = None,
    may_stay: Annotated[
        bool, Option("--may-stay", help="His program always allows that a cell did not move, castro2012 (13).")
    ] = False,
    levels: Levels = None,
    seed: Seed = 0,
    jobs: Annotated[int, Option(metavar="N", help="Guesses in parallel.")] = 1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack an adjusted table and say how close an informed intruder comes to the sensitive cells."""
    from cellguard.check.attack.scenarios import attack, check_attack

    check_attack(scenario, replications)
    knows: dict[str, Any] = {"level_error": level_error, "weights": weights, "norm": believes}
    knows |= {"bounds": knows_bounds, "sensitive": knows_sensitive, "senses": takes_senses, "may_stay": may_stay}
    made: dict[str, Any] = {"norm": norm, "senses": senses, "surplus": surplus}
    made["weights"] = "inverse" if norm == "l1" else "inverse_square"  # castro2012 section 2
    with only_json_on_stdout(as_json):
        table = TableAsked(path=path, levels=levels).load()
        if release is None:
            print_note(f"{path}: adjusting with {norm} ...", quiet=quiet)
        adjusted = _adjustment_on_command_line(
            table, release, made, {"integer": False if real else None, "seed": seed + 1}
        )
        told = {} if scenario == "decimals" else knows
        found = attack(adjusted, scenario, replications=replications, seed=seed, n_jobs=jobs, **told)
    print_summary(f"{path.name}: scenario {scenario}", found.summary(), as_json=as_json)


def _adjustment_on_command_line(
    table: Table, path: Path | None, made: dict[str, Any], drawn: dict[str, Any]
) -> Release:
    """Return the adjusted table of a file, or one that is made here."""
    from dataclasses import replace

    from cellguard.check.read_release import read_release
    from cellguard.methods.adjust.verb import adjust

    if path is None:
        return adjust(table, **made, **drawn)
    published = read_release(table, path, method="adjust")
    return replace(published, options={**published.options, **made})

"""``cellguard attack``: an informed intruder against an adjusted table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cellguard.cli._common import (
    Json,
    Levels,
    Quiet,
    Seed,
    TableFile,
    load_table,
    note,
    only_json_on_stdout,
    print_json,
)
from cellguard.cli._common import print_pairs as show_pairs

__all__ = ["command"]


def command(
    path: TableFile,
    release: Annotated[
        Path | None, typer.Argument(metavar="[RELEASE.csv]", help="The adjusted table; made here if not given.")
    ] = None,
    scenario: Annotated[str, typer.Option("--scenario", metavar="NAME", help="What he knows: B1, B2, B3 or C.")] = "B2",
    norm: Annotated[str, typer.Option("--norm", metavar="NORM", help="Of the adjustment: l1 or l2.")] = "l1",
    replications: Annotated[int, typer.Option("--replications", metavar="N", help="How often he guesses.")] = 10,
    level_error: Annotated[
        float, typer.Option("--level-error", metavar="SHARE", help="How far his guess of a level may be off (Delta).")
    ] = 0.2,
    levels: Levels = None,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", help="Guesses in parallel.")] = 1,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack an adjusted table and say how close an informed intruder comes to the sensitive cells."""
    from dataclasses import replace

    from cellguard.adjust import adjust
    from cellguard.attack.scenarios import attack, check_attack
    from cellguard.foreign import read_release
    from cellguard.release import Release

    check_attack(scenario, replications)
    with only_json_on_stdout(as_json):
        table = load_table(path, levels=levels)
        weights = "inverse" if norm == "l1" else "inverse_square"  # castro2012 section 2
        adjusted: Release
        if release is None:
            note(f"{path}: adjusting with {norm} ...", quiet=quiet)
            adjusted = adjust(table, norm=norm, weights=weights)
        else:
            published = read_release(table, release, method="adjust")
            adjusted = replace(published, options={**published.options, "norm": norm})
        found = attack(adjusted, scenario, replications=replications, seed=seed, level_error=level_error, n_jobs=jobs)
    if as_json:
        print_json(found.summary())
    else:
        show_pairs(f"{path.name}: scenario {scenario}", found.summary())

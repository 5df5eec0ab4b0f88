"""``cellguard match``: what a suppressed frequency table tells who knows how it was suppressed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from cellguard._types import BoolArray
from cellguard.cli._options import Json, Quiet, TableAsked, TableFile
from cellguard.cli._printing import NoSafeReleaseError, only_json_on_stdout, print_note, print_summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellguard.check.attack import CountRule
    from cellguard.nouns.release import Suppression
    from cellguard.nouns.table import Table

__all__ = ["command"]


def command(
    path: TableFile,
    release: Annotated[
        Path | None, Argument(metavar="[RELEASE.csv]", help="The suppressed table; made here if not given.")
    ] = None,
    minimum: Annotated[int | None, Option(metavar="N", help="Counts below are sensitive; as the table shows.")] = None,
    width: Annotated[
        int | None, Option(metavar="N", help="Least width of a sensitive cell; as the table shows.")
    ] = None,
    zeros: Annotated[bool, Option("--zeros/--no-zeros", help="Whether a zero is sensitive.")] = True,
    loss: Annotated[str, Option(metavar="KIND", help="What a cell costs: cells or counts.")] = "cells",
    order: Annotated[int, Option(metavar="N", help="The public order between optima.")] = 0,
    knows: Annotated[
        str | None, Option(metavar="WHAT", help="What the attacker knows: rule, mechanism or algorithm.")
    ] = None,
    resist: Annotated[
        bool, Option("--resist", help="Attack the suppression that resists instead of the optimum.")
    ] = False,
    limit: Annotated[int, Option(metavar="NODES", min=1, help="Work of the attack; more gives up.")] = 50_000_000,
    samples: Annotated[int, Option(metavar="N", min=1, help="Candidates tried; all if there are no more.")] = 200,
    secret: Annotated[
        bool, Option("--secret", help="He knows neither minimum nor width, and tries all values.")
    ] = False,
    seed: Annotated[int, Option(help="Of the samples; with --resist, of the secret weights.")] = 0,
    out: Annotated[
        Path | None, Option(metavar="FILE.csv", help="Write the intervals of the suppressed cells (confidential).")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack a suppressed frequency table with the knowledge of how it was suppressed.

    Who knows the algorithm excludes the counts for which it would have chosen another pattern; what is left is often
    narrower than the rule promises. Two-way tables with published margins are attacked exactly, and others with few
    candidates; of the rest some candidates are tried.
    """
    from cellguard.check.attack import matching_attack

    with only_json_on_stdout(as_json):
        table = TableAsked(path=path).load()
        rule = _count_rule_of_options(table, minimum, width, zeros=zeros, loss=loss, order=order)
        print_note(f"{path}: {table.n_cells} cells, {int(table.sensitive.sum())} sensitive", quiet=quiet)
        suppression, algorithm = _suppression_on_command_line(table, rule, release, resist, seed)
        if not suppression.published:
            raise NoSafeReleaseError(f"nothing to attack: {suppression.explanation}", hint="lower the width.")
        algorithm = algorithm if knows in (None, "algorithm") and not resist else None
        found = matching_attack(
            suppression, rule, knows=knows, limit=limit, algorithm=algorithm, samples=samples, seed=seed, secret=secret
        )
        if out is not None:
            _write_out_option(found, out)
    summary = {**found.summary(), "table": {"cells": table.n_cells, "sensitive": int(table.sensitive.sum())}}
    if resist:
        summary["release"] = {name: suppression.details[name] for name in ("draws", "decoys", "price", "certificate")}
    print_summary(f"{path.name}: matching attack", summary, as_json=as_json)


def _count_rule_of_options(table: Table, minimum: int | None, width: int | None, **options: Any) -> CountRule:
    from cellguard.check.attack import CountRule
    from cellguard.check.attack.counts import require_counts_for_matching, rule_attacker_knows

    require_counts_for_matching(table)
    if minimum is None or width is None:
        shown = rule_attacker_knows(table)
        minimum, width = minimum or shown.minimum, width or shown.width
    return CountRule(minimum=minimum, width=width, **options)


def _suppression_on_command_line(
    table: Table, rule: CountRule, release: Path | None, resist: bool, seed: int
) -> tuple[Suppression, Callable[[Table], BoolArray] | None]:
    """Return the release to attack, and the algorithm where the rule does not say it: cg.suppress without its clock."""
    from cellguard.check.attack.counts import matching_grid_of
    from cellguard.check.read_release import read_release
    from cellguard.methods.suppress.resist import optimal_suppression_of_counts, resist_matching
    from cellguard.methods.suppress.verb import suppress
    from cellguard.nouns.release import Suppression

    if release is not None:
        given = read_release(table, release, method="suppress")
        assert isinstance(given, Suppression)  # noqa: S101 - the method says so
        return given, None
    if resist:
        return resist_matching(table, rule, seed=seed or None), None
    if matching_grid_of(table, table.sensitive) is not None:
        return optimal_suppression_of_counts(table, rule), None

    def algorithm(candidate: Table) -> Any:
        return suppress(candidate, method="heuristic", rounds=0, seed=seed, time_limit_s=3600.0).suppressed

    return suppress(table, method="heuristic", rounds=0, seed=seed, time_limit_s=3600.0), algorithm


def _write_out_option(found: Any, out: Path) -> None:
    from cellguard._io.frames import columns_beside_codes, write_csv

    names = ("feasible_lower", "feasible_upper", "lower", "upper", "inner_lower", "inner_upper")
    codes = found.suppression.table.cell_codes(found.cells)
    write_csv(
        columns_beside_codes(codes, {name: getattr(found, name) for name in names}), out, guard=True, private=True
    )

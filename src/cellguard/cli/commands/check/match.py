"""``cellguard match``: what a suppressed frequency table reveals to an informed attacker."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument
from typer import Option as Flag

from cellguard._attack_options import AttackKind, find_attack_kind
from cellguard._options import Option
from cellguard._types import BoolArray
from cellguard.cli.support.method import build_flag
from cellguard.cli.support.options import Json, Quiet, TableAsked, TableFile, command_with_options
from cellguard.cli.support.printing import NoSafeReleaseError, print_note, print_summary, redirect_library_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from cellguard.attacks import CountRule
    from cellguard.model.table import Table
    from cellguard.release.release import Suppression

__all__ = ["command"]


_Release = Annotated[
    Path | None, Argument(metavar="[RELEASE.csv]", help="The suppressed table; default: made from the table.")
]
_Minimum = Annotated[
    int | None, Flag(metavar="N", help="Counts below N are sensitive; default: derived from the table.")
]
_Width = Annotated[
    int | None, Flag(metavar="N", help="Required width of a sensitive cell; default: derived from the table.")
]
_Zeros = Annotated[bool, Flag("--zeros/--no-zeros", help="Whether a zero is sensitive.")]
_Loss = Annotated[str, Flag(metavar="KIND", help="What a cell costs: cells or counts.")]
_Order = Annotated[int, Flag(metavar="N", help="The public order between optima.")]
_Resist = Annotated[bool, Flag("--resist", help="Attack the resistant suppression instead of the optimum.")]
_Weigh = Annotated[
    bool, Flag("--weigh", help="Weigh candidates by their probability: 95% intervals instead of what is impossible.")
]
_Seed = Annotated[int, Flag(help="Seed of the samples; with --resist, also of the weights.")]
_Out = Annotated[
    Path | None, Flag(metavar="FILE.csv", help="Write the intervals of the suppressed cells (confidential).")
]
_MATCHING, _WEIGHING = (find_attack_kind(name, "suppress") for name in ("matching", "weighing"))


def _list_options() -> list[Option]:
    """Return every option of both attacks once."""
    kinds = [kind for kind in (_MATCHING, _WEIGHING) if kind is not None]
    return list({option.name: option for kind in kinds for option in kind.options}.values())


def _build_command() -> Any:
    """Return the function behind ``cellguard match``, with the options of the attacks on suppressions."""
    listed = {
        "path": (TableFile, Parameter.empty),
        "release": (_Release, None),
        "minimum": (_Minimum, None),
        "width": (_Width, None),
        "zeros": (_Zeros, True),
        "loss": (_Loss, "cells"),
        "order": (_Order, 0),
        "resist": (_Resist, False),
        "weigh": (_Weigh, False),
        **{option.name: (build_flag(option), option.default) for option in _list_options()},
        "seed": (_Seed, 0),
        "out": (_Out, None),
        "as_json": (Json, False),
        "quiet": (Quiet, False),
    }
    parameters = (
        Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in listed.items()
    )
    return command_with_options(_run, parameters, _ABOUT)


_ABOUT = """Attack a suppressed frequency table with the knowledge of how it was suppressed.

An attacker who knows the algorithm excludes counts for which it would have chosen another pattern. The ranges are
then often narrower than the rule promises. Two-way tables with published margins are attacked exactly, as are
others with few candidates; for the rest, a sample of candidates is tried.
"""


@dataclass(frozen=True, kw_only=True)
class _MatchTyped:
    """What was typed, besides the options of the attacks."""

    path: Path
    release: Path | None
    minimum: int | None
    width: int | None
    zeros: bool
    loss: str
    order: int
    resist: bool
    weigh: bool
    seed: int
    out: Path | None
    as_json: bool
    quiet: bool


def _run(**given: Any) -> None:
    from cellguard.attacks import attack_by_weighing, matching_attack

    told = {option.name: option.convert_typed(given.pop(option.name)) for option in _list_options()}
    asked = _MatchTyped(**given)
    with redirect_library_output(asked.as_json):
        table = TableAsked(path=asked.path).load()
        sensitive = int(table.sensitive.sum())
        rule = _count_rule_of_options(
            table, asked.minimum, asked.width, zeros=asked.zeros, loss=asked.loss, order=asked.order
        )
        print_note(f"{asked.path}: {table.n_cells} cells, {sensitive} sensitive", quiet=asked.quiet)
        suppression, algorithm = _get_suppression(table, rule, asked.release, asked.resist, asked.seed)
        if not suppression.published:
            raise NoSafeReleaseError(f"nothing to attack: {suppression.explanation}", hint="lower the width.")
        algorithm = algorithm if told["knows"] in (None, "algorithm") and not asked.resist else None
        found = matching_attack(suppression, rule, algorithm=algorithm, seed=asked.seed, **_select(told, _MATCHING))
        if asked.out is not None:
            _write_out_option(found, asked.out)
        summary = found.summary()
        if asked.weigh:
            options = _select(told, _WEIGHING) | {"knows": found.knows, "seed": asked.seed}
            weighed = attack_by_weighing(suppression, rule, **options).summary()
            summary["weighed"] = {name: weighed[name] for name in ("unsafe", "candidates", "effective")}
    summary["table"] = {"cells": table.n_cells, "sensitive": sensitive}
    if asked.resist:
        summary["release"] = {name: suppression.details[name] for name in ("draws", "decoys", "price", "certificate")}
    print_summary(f"{asked.path.name}: matching attack", summary, as_json=asked.as_json)


def _select(told: dict[str, Any], kind: AttackKind | None) -> dict[str, Any]:
    """Return the options of one attack."""
    return {} if kind is None else {option.name: told[option.name] for option in kind.options}


def _count_rule_of_options(table: Table, minimum: int | None, width: int | None, **options: Any) -> CountRule:
    from cellguard.attacks import CountRule
    from cellguard.attacks.counts import infer_rule, require_counts_for_matching

    require_counts_for_matching(table)
    if minimum is None or width is None:
        shown = infer_rule(table)
        minimum, width = minimum or shown.minimum, width or shown.width
    return CountRule(minimum=minimum, width=width, **options)


def _get_suppression(
    table: Table, rule: CountRule, release: Path | None, resist: bool, seed: int
) -> tuple[Suppression, Callable[[Table], BoolArray] | None]:
    """Return the release to attack, and the algorithm if the rule does not imply it: cg.suppress without time limit."""
    from cellguard.attacks.counts import find_grid
    from cellguard.methods.suppress.resist import suppress_against_matching, suppress_counts_optimally
    from cellguard.methods.suppress.suppress import suppress
    from cellguard.model.key import Key
    from cellguard.release.readers.read_release import read_release

    if release is not None:
        return cast("Suppression", read_release(table, release, method="suppress")), None
    if resist:
        return suppress_against_matching(table, rule, key=Key.from_public_number(seed) if seed else None), None
    if find_grid(table, table.sensitive) is not None:
        return suppress_counts_optimally(table, rule), None

    def suppress_candidate(candidate: Table) -> Any:
        return suppress(candidate, method="heuristic", rounds=0, seed=seed, time_limit_s=3600.0).suppressed

    return suppress(table, method="heuristic", rounds=0, seed=seed, time_limit_s=3600.0), suppress_candidate


def _write_out_option(found: Any, out: Path) -> None:
    from cellguard._io.frames import merge_codes_and_columns, write_csv

    names = ("feasible_lower", "feasible_upper", "lower", "upper", "inner_lower", "inner_upper")
    codes = found.suppression.table.cell_codes(found.cells)
    write_csv(
        merge_codes_and_columns(codes, {name: getattr(found, name) for name in names}), out, guard=True, private=True
    )


command = _build_command()

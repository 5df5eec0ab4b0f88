"""``cellguard verify``: check a manifest, or by fractions alone that witnesses prove a release safe."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Argument

from cellguard.cli.support import options, printing
from cellguard.cli.support.ledger import (
    Additive,
    Ledger,
    Period,
    Population,
    PriorPercent,
    RevisionPercent,
    Until,
    load_history,
)
from cellguard.cli.support.options import ReleaseAsked, add_release_options
from cellguard.exceptions import InputError

__all__ = ["command"]


@add_release_options()
def command(
    path: Annotated[
        Path, Argument(metavar="TABLE|MANIFEST", show_default=False, help="The true table; or a manifest.json.")
    ],
    asked: ReleaseAsked,
    release_path: Annotated[
        Path | None, Argument(metavar="RELEASE", show_default=False, help="The published file.")
    ] = None,
    witnesses: Annotated[
        Path | None, Argument(metavar="WITNESSES", show_default=False, help="Written by cellguard audit --witnesses.")
    ] = None,
    ledger: Ledger = None,
    period: Period = "",
    population: Population = "",
    additive: Additive = False,
    revision_percent: RevisionPercent = None,
    prior_percent: PriorPercent = None,
    until: Until = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check that witnesses prove a release safe, by exact arithmetic without a solver; or check a manifest.

    A manifest (written by cellguard protect): every file it names must be there, unchanged, and no other; the witnesses
    must prove the published files safe, with the table made again from its inputs; and the signature must be right
    where there is a key (the file that CELLGUARD_SIGNING_KEY names, or .cellguard.key beside the job).

    What is published must be a release of its kind: intervals contain the truth, values add up and keep to
    their bounds, rounded ones are multiples. Every table among the witnesses must satisfy every relation and
    lie in every interval that the attacker knows, exactly; every sensitive cell must reach its levels, up to
    a millionth of them. An adjusted table is its own witness. Give the options with which the release was audited;
    with --ledger, the witnesses are tables of all linked releases together.
    """
    if path.suffix.lower() == ".json" and release_path is None:
        _print_verified_manifest(path, as_json=as_json, quiet=quiet)
        return
    if release_path is None:
        raise InputError("a table was given, and no release.", hint="cellguard verify TABLE RELEASE WITNESSES")
    from cellguard.auditing.witnesses import read_witnesses, verify

    start = time.perf_counter()
    with printing.redirect_library_output(as_json):
        release = asked.read(path, release_path)
        if ledger is not None:
            from cellguard.history.joint import join_release
            from cellguard.jobs.outputs.content import LedgerQuery

            query = LedgerQuery(
                period=period, population=population, additive=additive, neighbours=prior_percent is not None,
                until=until,
            )  # fmt: skip
            history = load_history(ledger, query, revision_percent=revision_percent, prior_percent=prior_percent)
            release = join_release(release, history)
        proofs, whole = ([], False) if witnesses is None else read_witnesses(witnesses, n_cells=release.table.n_cells)
        found = verify(release, proofs, integer=whole)
    accepted = found.accepted or (asked.allow_nothing_sensitive and not found.problems)
    summary = {
        "accepted": accepted,
        "checked": found.checked,
        "tables": found.tables,
        "problems": list(found.problems[:20]),
        "more_problems": max(0, len(found.problems) - 20),
        "seconds": {"total": time.perf_counter() - start},
    }
    printing.print_summary(f"{release_path.name}: {release.method}", summary, as_json=as_json)
    proven = "accepted: the release is proven safe" if found.checked else "accepted: no cell is sensitive"
    printing.print_note(proven if accepted else "refused", quiet=quiet)
    if not found.problems and not accepted:
        raise printing.NoSafeReleaseError(
            "nothing was proven: no cell of the table is sensitive.",
            hint="--allow-nothing-sensitive says that this is meant.",
        )
    if not accepted:
        raise printing.NoSafeReleaseError("the witnesses do not prove this release safe.")


def _print_verified_manifest(path: Path, *, as_json: bool, quiet: bool) -> None:
    from cellguard.jobs.outputs.verify import verify_manifest

    with printing.redirect_library_output(as_json):
        found = verify_manifest(path)
    printing.print_summary(f"{path.name}: files, release, witnesses and signature", found, as_json=as_json)
    printing.print_note(found["verdict"], quiet=quiet)
    if not found["accepted"]:
        raise printing.NoSafeReleaseError("the manifest and the files do not agree, or do not prove the release safe.")

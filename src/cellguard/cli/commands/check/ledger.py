"""``cellguard ledger``: what was released before, and whether the record of it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument

from cellguard.cli.support import options, printing
from cellguard.exceptions import InputError

__all__ = ["command"]


def command(
    action: Annotated[
        Literal["list", "show", "check"],
        Argument(show_default=False, help="list the releases; show one of them; check the chain and every content."),
    ],
    folder: Annotated[
        Path, Argument(metavar="FOLDER", show_default=False, help="The folder of the ledger: that of the job.")
    ],
    entry: Annotated[
        int | None, Argument(metavar="LINE", show_default=False, help="show: the line of the release.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """List, show or check the releases that are recorded in a ledger.

    The ledger is append-only: each line holds the hash of the line before it, and the hashes of what was published.
    Jobs with [ledger] period record their content too, so that later releases are protected together with them. check
    ends with exit code 2 if a line, a content or a release was changed. Nothing confidential is printed.
    """
    from cellguard.jobs.outputs.content import check_ledger
    from cellguard.jobs.outputs.ledger import FILE, read_entries

    if action == "check":
        figures, problems = check_ledger(folder)
        summary = {**figures, "whole": not problems, "problems": problems[:20]}
        printing.print_summary(f"{folder / FILE}", summary, as_json=as_json)
        if problems:
            raise printing.NoSafeReleaseError("the ledger is not whole.", hint="restore it from a copy.")
        return
    if not (folder / FILE).is_file():
        raise InputError(f"{folder}: there is no ledger.", hint=f"a folder with {FILE} is needed.")
    entries, whole = read_entries(folder)
    if action == "list":
        _print_list(folder, entries, whole, as_json=as_json, quiet=quiet)
        return
    if entry is None or not 1 <= entry <= len(entries):
        raise InputError(f"show needs a line from 1 to {len(entries)}.", hint="cellguard ledger list shows them.")
    facts = {name: value for name, value in entries[entry - 1].items() if name != "before"}
    printing.print_summary(
        f"line {entry}", facts | _describe_content(folder, entry, entries[entry - 1]), as_json=as_json
    )


def _print_list(folder: Path, entries: list[dict[str, Any]], whole: bool, *, as_json: bool, quiet: bool) -> None:
    names = ("when", "what", "release", "period", "population", "method")
    rows = [{"line": k, **{n: e[n] for n in names if n in e}} for k, e in enumerate(entries, 1)]
    if as_json:
        printing.print_json({"whole": whole, "entries": rows})
    else:
        for row in rows:
            print("  ".join(str(row.get(name, "-")) for name in ("line", *names)))
    printing.print_note(f"{folder}: {len(rows)} entries{'' if whole else ', the chain is broken'}", quiet=quiet)


def _describe_content(folder: Path, line: int, entry: dict[str, Any]) -> dict[str, Any]:
    """Return the size and structure of the content of a release."""
    from cellguard.jobs.outputs.content import load_entry

    if "content" not in entry:
        return {}
    found = load_entry(folder, line, entry)
    return {
        "cells": found.n_cells,
        "withheld": int((~found.published).sum()),
        "dimensions": {d: len(codes) for d, codes in zip(found.dimensions, found.codes, strict=True)},
        "derived": [one.derived.name for one in found.figures],
    }

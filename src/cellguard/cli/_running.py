"""A method from file to file: read the table, protect it, audit the release, print it, and write it if it is safe."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard._interrupt import BEST_KEPT, was_interrupted
from cellguard.cli._asked import TableAsked
from cellguard.cli._printing import NoSafeReleaseError, in_words, note, only_json_on_stdout, print_json, print_pairs
from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.check.audit import Audit
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["Wanted", "run_method"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What becomes of the release."""

    out: Path | None = None
    """Where it goes. Nothing is written unless the audit says that it is safe."""
    as_json: bool = False
    """Print the JSON object and nothing else on standard output."""
    quiet: bool = False
    """No progress on standard error."""
    threads: int = 1
    """Processor cores for the audit."""
    internal: bool = False
    """Print also what is computed from true values."""
    allow_nothing_sensitive: bool = False
    """A table without sensitive cells is as safe as it needs to be."""
    mark_primary: bool = False
    """Tell primary from secondary suppressions in the file, after a warning."""


def run_method(method: Callable[[Table], Release], asked: TableAsked, wanted: Wanted) -> None:
    """Read a table, protect it, audit the release, print it, and write it if it is safe.

    `method` makes a release of a table; its ``seconds`` say how long reducing and solving took.

    Raises
    ------
    NoSafeReleaseError
        When there is no release, or the audit refuses it.
    """
    start = time.perf_counter()
    if wanted.out is not None:
        _check_out(wanted.out, asked.path)
    with only_json_on_stdout(wanted.as_json):
        table = asked.load()
        read = time.perf_counter()
        note(f"{asked.path}: {table.n_cells} cells, {int(table.sensitive.sum())} sensitive", quiet=wanted.quiet)
        release = method(table)
        if was_interrupted() and release.published:
            note(f"{BEST_KEPT}.", quiet=wanted.quiet)
        solved = time.perf_counter()
        audit = release.audit(jobs=wanted.threads) if release.published else None
        audited = time.perf_counter()
        if release.published and release.explanation:
            note(f"note: {release.explanation}", quiet=wanted.quiet)
        accepted = audit is not None and (audit.safe or (wanted.allow_nothing_sensitive and audit.checked == 0))
        if accepted:
            _write_release(release, wanted)
    seconds = {"reduce": 0.0, "solve": solved - read, **release.seconds}
    seconds |= {"read": read - start, "audit": audited - solved, "total": time.perf_counter() - start}
    summary = release.summary(internal=wanted.internal)
    summary["seconds"] = _in_order(seconds)
    summary["audit"] = None if audit is None else audit.summary()
    if wanted.as_json:
        print_json(summary)
    else:
        shown = {k: v for k, v in summary.items() if k not in ("method", "loss")}
        print_pairs(f"{asked.path.name}: {release.method}", in_words(shown))
    if not accepted:
        raise _refusal_of_release(release, audit)
    if wanted.out is not None:
        note(f"written: {wanted.out}", quiet=wanted.quiet)


def _in_order(seconds: dict[str, float]) -> dict[str, Any]:
    """Return the seconds as they are listed: the whole, its parts, and what a method measured besides."""
    order = ("total", "read", "reduce", "solve", "audit")
    return {name: seconds[name] for name in order} | seconds


def _write_release(release: Release, wanted: Wanted) -> None:
    if wanted.out is None:
        return
    if wanted.mark_primary:
        from cellguard.nouns.release import PRIMARY_TOLD

        note(PRIMARY_TOLD)
    release.save(wanted.out, allow_unchecked=wanted.allow_nothing_sensitive, mark_primary=wanted.mark_primary)


def _check_out(out: Path, path: Path) -> None:
    """Refuse, before any work is done, a place where the release cannot go."""
    from cellguard.nouns.sheets import refuse_ending

    try:
        refuse_ending(out)
    except InputError as error:
        raise InputError(f"--out {error.message}", hint=error.hint) from None
    if not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}.", hint="make the folder first.")
    if out.is_dir():
        raise InputError(f"--out {out}: is a folder; the name of a file is needed.")
    if out.exists() and path.exists() and out.samefile(path):
        raise InputError(f"--out {out}: is the table itself.", hint="give the release another name.")


def _refusal_of_release(release: Release, audit: Audit | None) -> NoSafeReleaseError:
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

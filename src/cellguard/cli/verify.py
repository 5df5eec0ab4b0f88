"""``cellguard verify``: check a manifest, or by fractions alone that witnesses prove a release safe."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from typer import Argument

from cellguard.cli import _options as options
from cellguard.cli import _printing as printing
from cellguard.cli._options import ReleaseAsked, with_release_options
from cellguard.exceptions import InputError

__all__ = ["command"]


@with_release_options()
def command(
    path: Annotated[
        Path, Argument(metavar="TABLE|MANIFEST", show_default=False, help="The true table; or a manifest.json.")
    ],
    asked: ReleaseAsked,
    release_path: Annotated[
        Path | None, Argument(metavar="RELEASE", show_default=False, help="What is published of the table.")
    ] = None,
    witnesses: Annotated[
        Path | None, Argument(metavar="WITNESSES", show_default=False, help="Written by cellguard audit --witnesses.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Check that witnesses prove a release safe, by exact arithmetic without a solver; or check a manifest.

    A manifest (written by cellguard protect): every file it names must be there, unchanged, and no other, and
    the audit among them must have found the release safe.

    What is published must be a release of its kind: intervals contain the truth, values add up and keep to
    their bounds, rounded ones are multiples. Every table among the witnesses must satisfy every relation and
    lie in every interval that the attacker knows, exactly; every sensitive cell must reach its levels, up to
    a millionth of them. An adjusted table is its own witness. Give the options with which the release was audited.
    """
    if path.suffix.lower() == ".json" and release_path is None:
        _print_verified_manifest(path, as_json=as_json)
        return
    if release_path is None:
        raise InputError("a table was given, and no release.", hint="cellguard verify TABLE RELEASE WITNESSES")
    from cellguard.check.witnesses import read_witnesses, verify

    start = time.perf_counter()
    with printing.only_json_on_stdout(as_json):
        release = asked.read(path, release_path)
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


def _print_verified_manifest(path: Path, *, as_json: bool) -> None:
    from cellguard.publish.manifest import check_manifest

    found = check_manifest(path)
    printing.print_summary(f"{path.name}: the files it lists", found, as_json=as_json)
    if not found["accepted"]:
        raise printing.NoSafeReleaseError("the manifest and the files do not agree, or the release is not safe.")

"""``cellguard init``: a commented job file for a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cellguard.cli._printing import print_note
from cellguard.exceptions import InputError

__all__ = ["command"]


def command(
    data: Annotated[
        list[Path] | None,
        Argument(
            metavar="DATA...",
            show_default=False,
            help="Records, one per line: .csv or .parquet; or several tables that share cells.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option(metavar="JOB.toml", help="The job file; job.toml beside the data unless given.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace a job file that is already there.")] = False,
    schema: Annotated[bool, Option("--schema", help="Print the JSON schema of job files, for editors.")] = False,
) -> None:
    """Write a commented job file for a data file of yours: its columns are looked at and their parts guessed.

    What identifies respondents becomes no dimension and no value; columns that nest become one hierarchy. It says
    what it guessed and why, and what must be confirmed before anything is published.

    Several files make a publication: tables that are already added up, linked by the columns and codes they
    share, and files that say how codes nest. It says what it could not tell.
    """
    if schema:
        from cellguard.publish import job_schema

        print(json.dumps(job_schema(), indent=2))
        return
    if not data:
        raise InputError("which data file? None was given.", hint="cellguard init DATA.csv")
    from cellguard._io.files import write_text
    from cellguard.publish.init import draft_job
    from cellguard.publish.propose import propose

    for file in data:
        if not file.is_file():
            raise InputError(f"{file}: no such file.", hint="check the name and the folder.")
    path = data[0].parent / "job.toml" if out is None else out
    if path.exists() and not force:
        raise InputError(f"{path}: is already there.", hint="--force replaces it, --out names another file.")
    made = draft_job(data[0], path.parent) if len(data) == 1 else propose(data, path.parent)
    write_text(path, made.text)
    print(path)
    for line in made.told:
        print_note(f"  {line}")
    if made.unconfirmed:
        print_note(f"to be confirmed in the file: {', '.join(made.unconfirmed)}")
    print_note(f"look through it, then:  cellguard protect {path} --dry-run")

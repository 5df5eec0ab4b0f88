"""``cellguard init``: a commented job file for a data file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from cellguard.cli.support.printing import print_note
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
        Path | None, Option(metavar="JOB.toml", help="The job file; default: job.toml in the folder of the data.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace an existing job file.")] = False,
    schema: Annotated[bool, Option("--schema", help="Print the JSON schema of job files, for editors.")] = False,
) -> None:
    """Write a commented job file for your data file: inspect its columns and guess their roles.

    Columns that identify respondents never become dimensions or values; nested columns become one hierarchy. It reports
    its guesses with their reasons, and what you must confirm before anything is published.

    Several files make a publication: ready tables, linked by the columns and codes they
    share, and files that say how codes nest. It reports what it could not find out.
    """
    if schema:
        from cellguard.jobs import build_job_schema

        print(json.dumps(build_job_schema(), indent=2))
        return
    if not data:
        raise InputError("which data file? None was given.", hint="cellguard init DATA.csv")
    from cellguard._io.files import write_text
    from cellguard.jobs.proposal.records import propose_job
    from cellguard.jobs.proposal.tables import propose

    for file in data:
        if not file.is_file():
            raise InputError(f"{file}: no such file.", hint="check the name and the folder.")
    path = data[0].parent / "job.toml" if out is None else out
    if path.exists() and not force:
        raise InputError(f"{path}: the file already exists.", hint="--force replaces it, --out names another file.")
    made = propose_job(data[0], path.parent) if len(data) == 1 else propose(data, path.parent)
    write_text(path, made.text)
    print(path)
    for line in made.told:
        print_note(f"  {line}")
    if made.unconfirmed:
        print_note(f"to be confirmed in the file: {', '.join(made.unconfirmed)}")
    print_note(f"look through it, then:  cellguard protect {path} --dry-run")

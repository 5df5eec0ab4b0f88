"""Verify that a release is safe together with earlier ones, with the ledger as it was and the figures as published."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import read_bytes
from cellguard.auditing.witnesses import read_witnesses, verify
from cellguard.exceptions import FormatError, InputError
from cellguard.history.derived import Figures
from cellguard.history.earlier import History
from cellguard.history.joint import join_release
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.outputs.ledger import FILE, read_entries
from cellguard.jobs.outputs.manifest import hash_for_manifest
from cellguard.jobs.outputs.memory import find_ledger_folder, load_history, read_derived
from cellguard.jobs.outputs.writer import JOINT_WITNESSES
from cellguard.model.table import Table
from cellguard.release.readers.read_tables import FIGURES
from cellguard.release.release import Release

__all__ = ["prove_joint"]


def prove_joint(release: Release, file: JobFile, internal: Path, manifest: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Return the number of cells of all linked releases that witnesses prove safe, and what is wrong.

    The ledger is read as it was when the release was recorded: later releases are proven by their own witnesses.
    """
    if JOINT_WITNESSES not in manifest["outputs"]["."]:
        return 0, ["there are no witnesses of the audit with earlier releases."]
    history = _load_history_then(file, internal, manifest)
    derived = [read_derived(section.model_dump()) for section in file.job.derived]
    figures: Sequence[Figures] = ()
    if derived:
        made = join_release(release, history, derived).system.figures
        figures = _read_figures(internal.parent / "public" / FIGURES, made, release.table)
    joint = join_release(release, history, figures)
    proofs, whole = read_witnesses(internal / JOINT_WITNESSES, n_cells=joint.table.n_cells)
    found = verify(joint, proofs, integer=whole)
    return found.checked, [f"witnesses with earlier releases: {text}" for text in found.problems[:20]]


def _load_history_then(file: JobFile, internal: Path, manifest: Mapping[str, Any]) -> History | None:
    """Return the linked releases that were recorded before this one; None if the job has no ledger."""
    if not file.job.ledger.remembers:
        return None
    folder = find_ledger_folder(file)
    digest = hash_for_manifest(internal / "manifest.json")
    lines = [line for line, entry in enumerate(read_entries(folder)[0], 1) if entry.get("manifest") == digest]
    if not lines:
        raise InputError(
            f"{folder / FILE}: this release is not recorded.",
            hint="restore the ledger: it is needed to check what the release reveals together with earlier ones.",
        )
    history = load_history(folder, file.job, until=lines[-1] - 1)[0]
    accepted = manifest.get("accepted_as_known", ()) if file.job.ledger.accept else ()
    return replace(history, accepted=frozenset(accepted))


def _read_figures(path: Path, made: Sequence[Figures], table: Table) -> tuple[Figures, ...]:
    """Return derived figures as they were published; the file must have a row for each that the job declares."""
    rows = list(csv.DictReader(io.StringIO(read_bytes(path).decode())))
    out, line = [], 0
    for one in made:
        own = rows[line : line + len(one.values)]
        columns = one.build_file_columns(table)
        for name in (*table.dimensions, "statistic"):
            if [row.get(name) for row in own] != [str(code) for code in columns[name]]:
                raise FormatError.at(path, line + 2, "the rows are not those of the job.")
        try:
            values = [float(row["value"]) if row["status"] == "published" else np.nan for row in own]
            decimals = [int(row["decimals"]) for row in own]
        except (KeyError, ValueError):
            raise FormatError.at(path, line + 2, "has figures that are not numbers.") from None
        out.append(replace(one, values=np.array(values, np.float64), decimals=np.array(decimals, np.int64)))
        line += len(own)
    if line != len(rows):
        raise FormatError.at(path, line + 2, "has more figures than the job declares.")
    return tuple(out)

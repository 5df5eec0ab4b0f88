"""Divide a job among processes that share a folder: each protects some clusters, and one joins their releases.

Batch systems (Slurm, Argo, Kubernetes, Airflow) start ``cellguard protect job.toml --part K/N --out SHARED``
N times, then ``cellguard protect job.toml --join --out SHARED`` once. Every part makes the table from the inputs again;
only releases of clusters are exchanged. A release that was made from other inputs, another job or other versions of the
software is not accepted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cellguard.exceptions import InputError
from cellguard.jobs.checkpoint import Checkpoints
from cellguard.jobs.definition.model import Job
from cellguard.jobs.definition.read import JobFile
from cellguard.jobs.flags import flag_job
from cellguard.jobs.outputs import manifest as manifests
from cellguard.jobs.steps import list_inputs, protect_table
from cellguard.jobs.tables import tabulate_job
from cellguard.model.key import Key, KeyGiven
from cellguard.model.linked.clusters import ClustersLeftError
from cellguard.model.table import Table
from cellguard.release.release import Release

if TYPE_CHECKING:
    from cellguard._engine.ranges.witnesses.shown import ShownMovements

__all__ = ["JobPart", "Parts", "compute_checkpoint_key", "run_part", "strip_for_checkpoint", "take_movements"]

_FOLDER = "parts"


@dataclass(frozen=True)
class JobPart:
    """One of `of` parts of a job, counted from 1.

    >>> JobPart.parse("2/5")
    JobPart(number=2, of=5)
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> JobPart:
        """Return the part named by a text such as ``2/5``."""
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise InputError(f"--part {text}: K/N with K from 1 to N is needed.", hint="as in --part 2/5.")
        return cls(int(number), int(of))

    def has(self, cluster: int) -> bool:
        """Return whether a cluster, counted from 0, belongs to this part."""
        return cluster % self.of == self.number - 1


class Parts:
    """Releases of clusters in a shared folder, as a keeper that protects the clusters of one part, or none."""

    def __init__(self, folder: Path, digest: str, part: JobPart | None = None, *, draws_key: bool = False) -> None:
        self.folder = folder / _FOLDER
        self.checkpoints = Checkpoints(self.folder, digest)
        self.part, self.draws_key = part, draws_key
        self.made: dict[int, str] = {}

    def load(self, number: int) -> Release | None:
        """Return the release of a cluster that some part has made from the same inputs."""
        found: Release | None = self.checkpoints.load(f"cluster-{number}")
        return found

    def save(self, number: int, release: Release) -> None:
        """Store the release of a cluster; refuse one made with a key that the other parts do not have."""
        if self.draws_key and "key" in release.options:
            raise InputError(
                f"--part: {release.method} hides values by chance, and each part would draw its own key.",
                hint="give all parts and --join one key with --key.",
            )
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.checkpoints.save(f"cluster-{number}", strip_for_checkpoint(release))
        self.made[number] = str(release.status)

    def should_protect(self, number: int) -> bool:
        """Return whether the cluster belongs to this part."""
        return self.part is not None and self.part.has(number)

    def protect(self, table: Table, job: Job, *, key: Key | None) -> None:
        """Protect the clusters of this part."""
        if _has_one_cluster(table):  # a single table is not divided: the first part protects it
            if self.should_protect(0) and self.load(0) is None:
                self.save(0, protect_table(table, job, key=key))
            return
        try:
            protect_table(table, job, key=key, further={"keeper": self})
        except ClustersLeftError:
            return

    def join(self, table: Table, job: Job, *, key: Key | None) -> Release:
        """Return the release of the whole job; refuse if the release of a cluster is missing."""
        if _has_one_cluster(table):
            found = self.load(0)
            if found is not None:
                return found
            raise self._build_missing_error([0])
        try:
            return protect_table(table, job, key=key, further={"keeper": self})
        except ClustersLeftError:
            clusters = len(_list_clusters(table))
            raise self._build_missing_error([k for k in range(clusters) if self.load(k) is None]) from None

    def remove(self) -> None:
        """Remove the releases of the clusters: they are confidential, and the whole release is written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _build_missing_error(self, missing: list[int]) -> InputError:
        names = ", ".join(str(number + 1) for number in missing)
        there = [number for number in missing if (self.folder / f"cluster-{number}.npz").is_file()]
        other = " Some were made from other inputs, another job or other versions of the software." if there else ""
        return InputError(
            f"{self.folder}: no release of cluster {names}.{other}",
            hint="run the missing parts with --part, then --join.",
        )


def run_part(file: JobFile, part: JobPart, folder: Path, key: KeyGiven | None = None) -> dict[str, Any]:
    """Protect the clusters of one part of a job and store their releases in a shared folder; return a summary."""
    named = file.job.method.key
    given = key if key is not None else None if named is None else file.resolve_path(named)
    secret = None if given is None else Key.from_any(given)
    hashes = {path: file.facts.get_facts(path).digest for path in list_inputs(file)}
    parts = Parts(folder, compute_checkpoint_key(file, hashes, secret), part, draws_key=secret is None)
    table = flag_job(tabulate_job(file), file)
    clusters = 1 if _has_one_cluster(table) else len(_list_clusters(table))
    own = [number for number in range(clusters) if part.has(number)]
    parts.protect(table, file.job, key=secret)
    status = {str(number + 1): parts.made.get(number, "made before") for number in own}
    return {"job": file.job.name, "part": f"{part.number}/{part.of}", "clusters": clusters, "protected": status}


def _has_one_cluster(table: Table) -> bool:
    return table.parts is None or len(_list_clusters(table)) == 1


def _list_clusters(table: Table) -> list[Any]:
    from cellguard.model.linked.distinct_cells import list_cluster_cells

    return list(list_cluster_cells(table))


def compute_checkpoint_key(file: JobFile, hashes: Mapping[Path, str], key: Key | None) -> str:
    """Return the key that a checkpoint must match: the job, its inputs, the given key, the versions."""
    read = sorted((os.path.relpath(path, file.path.parent), digest) for path, digest in hashes.items())
    given = None if key is None else key.derive("checkpoints").hex()
    facts = [
        file.job.model_dump(mode="json", exclude={"ledger": True, "derived": True, "limits": {"scheduler"}}),
        read,
        given,
        manifests.collect_versions(),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def strip_for_checkpoint(release: Release) -> Release:
    """Return the release with plain details only: a checkpoint holds no solver objects."""
    plain = {k: v for k, v in release.details.items() if isinstance(v, bool | int | float | str | dict | list | None)}
    return replace(release, details=plain, options=dict(release.options), seconds=dict(release.seconds))


def take_movements(release: Release) -> ShownMovements | None:
    """Return the movements by which the method's own audit showed a release safe; None if it has none."""
    from cellguard._engine.ranges.witnesses.shown import ShownMovements

    audit = vars(release).get("_audited", vars(release).get("_judged"))
    if audit is None:
        return None
    distinct = {id(f.witnesses): f.witnesses for f in audit.findings if f.witnesses is not None}
    return ShownMovements([witnesses.convert_to_floats() for witnesses in distinct.values()])

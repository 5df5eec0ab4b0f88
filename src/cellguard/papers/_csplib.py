"""The CSPLIB tables that the papers use, by their names in the papers; CELLGUARD_CSPLIB names their folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cellguard.model.table import Table
from cellguard.papers._framework import Settings

__all__ = ["find_missing_instances", "read_csplib_table", "select_instances"]

_NAMES = {
    "hier13x7x7d": "hie1372d",
    "hier13x13x7d": "hie1327d",
    "hier13x13x13a": "hier133a",
    "hier16x16x16a": "hier163a",
    "toy3dsarah": "toysarah",
}
"""Names in the papers -> names of the files, where they differ."""


def _find_path(instance: str) -> Path:
    return Path(os.environ.get("CELLGUARD_CSPLIB", "../shared/csplib")) / f"{_NAMES.get(instance, instance)}.jj.gz"


def read_csplib_table(instance: str) -> Table:
    """Read a table."""
    return Table.read(_find_path(instance))


def find_missing_instances(instances: Sequence[str]) -> list[str]:
    """Return the instances without a file."""
    return [name for name in instances if not _find_path(name).exists()]


def select_instances(known: Sequence[str], settings: Settings) -> tuple[list[str], list[str]]:
    """Return the instances to compute, and those skipped."""
    by_file = {_NAMES.get(name, name): name for name in known}
    wanted = replace(settings, instances=tuple(by_file.get(n, n) for n in settings.instances)).choose_instances(
        known, known
    )
    missing = set(find_missing_instances(wanted))
    return [n for n in wanted if n not in missing], [f"{n}: skipped, file not found" for n in wanted if n in missing]

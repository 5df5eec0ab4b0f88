"""The tables of CSPLIB that the papers use, by their names in the papers; their folder is CELLGUARD_CSPLIB."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cellguard.experiments._framework import Settings
from cellguard.nouns.table import Table

__all__ = ["csplib_instances", "csplib_table", "missing_csplib"]

_NAMES = {
    "hier13x7x7d": "hie1372d",
    "hier13x13x7d": "hie1327d",
    "hier13x13x13a": "hier133a",
    "hier16x16x16a": "hier163a",
    "toy3dsarah": "toysarah",
}
"""Names in the papers -> names of the files, where they differ."""


def _path_in_csplib(instance: str) -> Path:
    return Path(os.environ.get("CELLGUARD_CSPLIB", "../shared/csplib")) / f"{_NAMES.get(instance, instance)}.jj.gz"


def csplib_table(instance: str) -> Table:
    """Read a table."""
    return Table.read(_path_in_csplib(instance))


def missing_csplib(instances: Sequence[str]) -> list[str]:
    """Return which instances have no file."""
    return [name for name in instances if not _path_in_csplib(name).exists()]


def csplib_instances(known: Sequence[str], settings: Settings) -> tuple[list[str], list[str]]:
    """Return the instances to compute, and what is skipped."""
    by_file = {_NAMES.get(name, name): name for name in known}
    wanted = replace(settings, instances=tuple(by_file.get(n, n) for n in settings.instances)).chosen(known, known)
    missing = set(missing_csplib(wanted))
    return [n for n in wanted if n not in missing], [f"{n}: skipped, file not found" for n in wanted if n in missing]

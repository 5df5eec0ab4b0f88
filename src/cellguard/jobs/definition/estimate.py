"""Estimate the memory and the time of a large job before the work starts, and refuse what does not fit.

The figures were measured once, on a busy machine: suppression of a table of 94,350 cells from a million
records took 0.7 GiB without respondents; deriving its respondents alone took more than 8 GiB. Smaller tables are never
refused.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cellguard.exceptions import InputError
from cellguard.methods.registry import METHODS

if TYPE_CHECKING:
    from cellguard.jobs.definition.model import Job
    from cellguard.model.table import Table

__all__ = ["Estimate", "estimate_work", "parse_memory", "refuse_too_large"]

MIN_CELLS = 50_000
"""Smaller tables fit into any machine; nothing is estimated."""
BASE_BYTES = 400_000_000
"""The program with its libraries, and reading records."""
CELL_BYTES = 4_000
"""Relations, movements and witnesses, for each cell."""
RESPONDENT_BYTES = 100_000
"""What respondents know and what is required against them, for each cell, if they are attackers."""
SENSITIVE_S = 0.0025
"""CPU seconds up to the first safe pattern, for each sensitive cell, without respondents."""
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What protecting a table will take, roughly."""

    memory_bytes: int
    """Most memory at any time."""
    first_s: float | None
    """CPU seconds up to the first safe pattern; None if that was never measured."""

    def __str__(self) -> str:
        gigabytes = f"about {self.memory_bytes / 1e9:.1f} GB of memory"
        return (
            gigabytes if self.first_s is None else f"{gigabytes}, a first safe pattern after about {self.first_s:.0f} s"
        )


def estimate_work(table: Table, job: Job) -> Estimate | None:
    """Return what protecting a large table takes; None for small tables, and for methods that were not measured."""
    if table.n_cells < MIN_CELLS or not METHODS[job.method.name].measured_at_scale or table.parts is not None:
        return None
    respondents = job.insiders and table.insiders is not False and table.statistics is not None
    each = CELL_BYTES + (RESPONDENT_BYTES if respondents else 0)
    first = None if respondents else SENSITIVE_S * int(table.sensitive.sum())
    return Estimate(memory_bytes=BASE_BYTES + each * table.n_cells, first_s=first)


def refuse_too_large(estimate: Estimate, job: Job) -> None:
    """Refuse a job that needs more memory than its limit, or than the machine has."""
    given = None if job.limits.memory is None else parse_memory(job.limits.memory)
    limits = [(given, "limits.memory allows"), (_find_available_bytes(), "this machine has available")]
    for limit, who in limits:
        if limit is not None and estimate.memory_bytes > limit:
            raise InputError(
                f"the job needs about {estimate.memory_bytes / 1e9:.1f} GB of memory; {who} {limit / 1e9:.1f} GB.",
                hint="publish fewer codes or dimensions, or leave respondents out (insiders = false) if they are no "
                "attackers; otherwise raise limits.memory, or use a larger machine.",
            )


def parse_memory(text: str) -> int | None:
    """Return an amount of memory in bytes; None for what is not an amount.

    >>> parse_memory("4GB"), parse_memory("512 MiB"), parse_memory("much")
    (4000000000, 536870912, None)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    return None if found is None or found[2] not in _UNITS else int(float(found[1]) * _UNITS[found[2]])


def _find_available_bytes() -> int | None:
    """Return the memory that a process can get: of the machine, or of its container; None if that is not known."""
    known: list[int] = []
    with suppress(AttributeError, OSError, ValueError):  # other operating systems have no such files
        known.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        known.extend(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    with suppress(OSError, ValueError):  # no container, or one without a limit
        known.append(int(_GROUP_LIMIT.read_text(encoding="ascii")))
    return min(known) if known else None

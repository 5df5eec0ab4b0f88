"""What the options ask for, as nouns: a table file, and a file that was published of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cellguard.exceptions import InputError

if TYPE_CHECKING:
    from cellguard.nouns.release import Release
    from cellguard.nouns.table import Table

__all__ = ["ReleaseAsked", "TableAsked", "with_bounds"]


@dataclass(frozen=True, kw_only=True)
class TableAsked:
    """A table file, and what the options say about weights, levels and attackers."""

    path: Path
    """The file."""
    weights: str = "table"
    """Loss per cell."""
    levels: str | None = None
    """``LOWER,UPPER`` as shares of the value, instead of the table's."""
    bounds: str | None = None
    """``BELOW,ABOVE``: what attackers know, as shares of the value, instead of the table's."""
    insiders: bool = True
    """Respondents are attackers too."""
    whole: bool = False
    """All values are whole numbers, and attackers know it."""

    def load(self) -> Table:
        """Read the table and apply what is asked."""
        table = _read_table_file(self.path)
        if self.levels is not None:
            table = table.with_levels(*_two_shares(self.levels))
        if self.whole and not table.integer:
            _refuse_fractions(table)
            table = table.with_(integer=True)
        if not self.insiders:
            table = table.with_(insiders=False)
        table = table.with_weights(self.weights)
        return table if self.bounds is None else with_bounds(table, self.bounds)


@dataclass(frozen=True)
class ReleaseAsked:
    """A file that was published of a table, and what was said with it."""

    path: Path
    """The file."""
    method: str | None = None
    """How it was made; found if not given."""
    base: str | None = None
    """Of a rounded table: a number, or a file with a line per cell."""
    step: int | None = None
    """A rounded table moved by less than so many bases."""
    distance: float | None = None
    """How far, at most, a perturbed table moved."""
    keep_multiples: bool = False
    """Sensitive multiples were let stay."""
    keep: Sequence[str] | None = None
    """What went to its nearest multiple, as it is typed."""
    ignore: Sequence[str] | None = None
    """Columns that say nothing about the values."""
    marks_only: bool = False
    """Values beside the marks of withheld cells stay inside."""

    def read(self, table: Table) -> Release:
        """Read what was published of the table."""
        from cellguard.check.read_release import read_release
        from cellguard.methods.bases import read_bases
        from cellguard.methods.keep import margins

        return read_release(
            table,
            self.path,
            method=self.method,
            base=None if self.base is None else read_bases(self.base),
            step=self.step,
            distance=self.distance,
            keep_multiples=self.keep_multiples,
            keep=margins(list(self.keep or ())),
            ignore=self.ignore or (),
            marks_only=self.marks_only,
        )


def _read_table_file(path: Path) -> Table:
    from cellguard.nouns.table import Table

    known = (".jj", ".jj.gz", ".csv", ".csv.gz", ".parquet", ".arb", ".toml")
    if not path.name.lower().endswith(known):
        raise InputError(f"{path}: no known kind of table file.", hint=f"known are {', '.join(known)}.")
    if path.name.lower().endswith(".arb"):
        from cellguard.argus import read_table

        return read_table(path)
    if path.name.lower().endswith(".toml"):  # the tables of a job, with the rules and attackers that it names
        from cellguard.publish import read_job
        from cellguard.publish.flags import flagged
        from cellguard.publish.tables import tabulated

        job = read_job(path)
        return flagged(tabulated(job), job)
    return Table.read(path)


def _refuse_fractions(table: Table) -> None:
    broken = (table.values % 1 != 0).nonzero()[0]
    if len(broken):
        raise InputError(f"--integer: {table.label(int(broken[0]))} has no whole value.", hint="leave it out.")


def _two_shares(text: str) -> tuple[float, float]:
    try:
        lower, upper = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--levels {text!r}: two numbers with a comma are needed.", hint="as in 0.05,0.20.") from None
    return lower, upper


def with_bounds(table: Table, text: str) -> Table:
    """Return the table with what attackers know as shares of each value: ``1,inf`` is from 0 to anything."""
    import numpy as np

    try:
        below, above = (float(part) for part in text.split(","))
    except ValueError:
        below, above = float("nan"), float("nan")
    if not (below >= 0 and above >= 0):
        raise InputError(f"--bounds {text!r}: two shares of at least 0 with a comma are needed.", hint="as in 0.5,inf.")
    size = np.abs(table.values)
    room = (np.where(size > 0, share * size, 0.0) if np.isfinite(share) else np.inf for share in (below, above))
    lower, upper = room
    known = table.lb == table.ub  # what everybody knows stays known
    lb, ub = np.where(known, table.lb, table.values - lower), np.where(known, table.ub, table.values + upper)
    return table.with_(lb=lb, ub=ub)

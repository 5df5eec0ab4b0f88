"""A linked history: quarters of one table and their years, each protected together with all that was released before.

``python bench/bench_ledger.py [YEARS [PRIOR_PERCENT]]``: ten years (40 quarters) by default. Every release is recorded
in a ledger, and the next one is protected with it, so that patterns are really linked: quarters add up to years. With a
percentage, readers also know each value within it of the preceding quarter's, so that all quarters are one system. The
figures are those of the last quarter and of the last year.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from figures import figure, peak_gib

import cellguard as cg
from cellguard.jobs.outputs.content import LedgerQuery, load_linked, store_content
from cellguard.jobs.outputs.ledger import add_to_ledger

LIMIT_S = 240.0
"""For one protection; the last ones are searched this long."""
SHAPE = (10, 5, 8, 9)
"""Regions, districts in each, sections, divisions in each: 61 x 81 = 4,941 cells."""
FIRST_YEAR = 2016

YEARLY_SHARE = 0.03
"""Levels of a year, as a share of the value: quarters keep open what each needs, not all moves at a time."""


@dataclass
class Office:
    """An office that publishes a table every quarter and every year, with a ledger."""

    folder: Path
    shape: tuple[int, int, int, int] = SHAPE
    seed: int = 33
    sensitive_share: float = 0.06
    prior_percent: float | None = None

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        regions, districts, sections, divisions = self.shape
        self.dimensions = {
            "region": {f"R{r}": [f"R{r}{d}" for d in range(districts)] for r in range(regions)},
            "activity": {f"S{s}": [f"S{s}{d}" for d in range(divisions)] for s in range(sections)},
        }
        shape = (regions * districts, sections * divisions)
        self.level = np.rint(self.rng.lognormal(8.0, 1.2, shape)) + 40
        self.flagged = self.rng.random(shape) < self.sensitive_share
        self.year, self.always = np.zeros(shape), np.ones(shape, bool)

    def draw_quarter(self) -> cg.Table:
        """Return the table of the next quarter: a value moves by some per cent, few cells become sensitive or cease."""
        self.level = np.rint(self.level * self.rng.lognormal(0.0, 0.05, self.level.shape)) + 1
        turned = self.rng.random(self.level.shape) < 0.02 * self.sensitive_share
        self.flagged = self.flagged ^ turned
        self.year, self.always = self.year + self.level, self.always & self.flagged
        return self.make_table(self.level, self.flagged)

    def draw_year(self) -> cg.Table:
        """Return the sum of the quarters since the last year; cells that every quarter flags are sensitive in it."""
        values, flagged = self.year, self.always
        self.year, self.always = np.zeros_like(values), np.ones_like(flagged)
        return self.make_table(values, flagged, share=YEARLY_SHARE)

    def make_table(self, leaves: np.ndarray, flagged: np.ndarray, share: float = 0.1) -> cg.Table:
        """Return a table whose levels are a share of each flagged cell."""
        table = cg.Table.from_leaves(self.dimensions, leaves.astype(float), insiders=False)
        marked = cg.Table.from_leaves(self.dimensions, flagged.astype(float))
        leaf = np.array(["leaf" if len(a) == 3 and len(b) == 3 else "" for a, b in self.name_cells(table)])
        sensitive = (leaf == "leaf") & (marked.values > 0)
        width = np.where(sensitive, np.ceil(share * table.values), 0.0)
        return table.with_(sensitive=sensitive, lower=width, upper=width)

    def name_cells(self, table: cg.Table) -> list[tuple[str, str]]:
        """Return the two codes of every cell."""
        codes = table.cell_codes(np.arange(table.n_cells))
        return list(zip(codes["region"], codes["activity"], strict=True))

    def load(self, period: str) -> cg.History:
        """Return what the ledger knows of releases that are linked with a period."""
        query = LedgerQuery(period=period, additive=True, neighbours=self.prior_percent is not None)
        found = load_linked(self.folder, query)
        prior = self.prior_percent
        return cg.History(period=period, releases=found, additive=True, prior_percent=prior, accept=prior is not None)

    def record(self, period: str, release: cg.Suppression) -> None:
        """Record a release with its content."""
        facts = store_content(self.folder, cg.EarlierRelease.of(release, name=period, period=period))
        add_to_ledger(self.folder, "released", {"release": period, **facts})

    def publish(
        self, period: str, table: cg.Table, rounds: int | None = None
    ) -> tuple[cg.Suppression, dict[str, float]]:
        """Protect a table together with the ledger, audit and record it; return it with processor seconds."""
        begin = time.process_time()
        history = self.load(period)
        read = time.process_time()
        release = cg.suppress(table, earlier=history, rounds=rounds, time_limit_s=LIMIT_S)
        protected = time.process_time()
        if not release.published:
            sys.exit(f"{period}: {release.status}: {release.explanation}")
        found = cg.audit(release, earlier=release.earlier)  # with the cells that were accepted as known
        audited = time.process_time()
        if not found.safe:
            sys.exit(f"{period}: {found!r}")
        self.record(period, release)
        seconds = {"read": read - begin, "protect": protected - read, "audit": audited - protected}
        note = (
            f"{len(history.releases)} linked releases, {found.release.table.n_cells:,} cells, {found.checked:,} "
            f"checked, {int(table.sensitive.sum())} sensitive, {int(release.secondary.sum())} secondaries"
        )
        print(f"{period:<8} {note}; " + ", ".join(f"{k} {v:.1f} s" for k, v in seconds.items()), flush=True)
        return release, seconds


def main(years: int, prior_percent: float | None) -> None:
    """Publish all quarters and years; print the figures of the last quarter and of the last year."""
    with tempfile.TemporaryDirectory() as folder:
        office = Office(Path(folder), prior_percent=prior_percent)
        seconds: dict[str, dict[str, float]] = {}
        for year in range(FIRST_YEAR, FIRST_YEAR + years):
            rounds = None if year == FIRST_YEAR + years - 1 else 1
            for quarter in range(1, 5):
                told = office.publish(f"{year}Q{quarter}", office.draw_quarter(), rounds if quarter == 4 else 1)
                seconds["quarter"] = told[1]
            seconds["year"] = office.publish(f"{year}", office.draw_year(), rounds)[1]
        for name, took in seconds.items():
            figure(f"joint audit of the last {name}, processor time", took["audit"], 60.0)
            figure(f"protection of the last {name}, processor time", took["protect"], 300.0)
        figure("memory", peak_gib(), None, "GiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, float(sys.argv[2]) if len(sys.argv) > 2 else None)

"""Cell suppression: proofs, costs after some seconds, tables of any size. Costs are those of the secondaries.

``python bench/bench_suppress.py [exact] [heuristic] [generated] [large] [hours]``: without arguments all but the
last two, which take a quarter of an hour and more.
"""

from __future__ import annotations

import sys
import time

from figures import CSPLIB, figure, peak_gib

import cellguard as cg
from cellguard import generate

EXACT = {
    "targus": (2033155, 5.0),
    "table8": (103, 5.0),
    "osorio": (None, 5.0),
    "cbs": (403, 5.0),
    "table1": (None, 6.8),
}
"""Optimal cost where it is known, and seconds: the larger of 5 and twice tau-ARGUS's optimal solver."""
HEURISTIC = (
    ("hie1372d", 2, 640e3), ("hie1327d", 2, 2.2e6), ("hier13", 2, 8.0e6),
    ("hie1372d", 30, 530e3), ("hie1327d", 30, 1.95e6), ("hier13", 30, 7.6e6),
    ("hier16", 60, 14.8e6), ("two5in6", 60, 12.5e6), ("table3", 60, 8.7e6), ("nine5d", 155, 15.4e6),
)  # fmt: skip
"""Table, seconds, and the cost to be reached."""
GCONFID = {
    "hie1372d": 806_280, "hie1327d": 2.82e6, "table1": 132.2e6, "hier13": 10.93e6, "table3": 9.71e6, "hier16": 17.9e6,
    "two5in6": 13.99e6, "nine5d": 17.09e6, "cbs": 403,
}  # fmt: skip
"""What gconfid's sequential linear programs cost, the one other heuristic that is always safe."""
GAPS = (("hie1372d", 120, 0.03), ("hie1372d", 600, 0.01), ("hie1327d", 600, 0.15), ("table7", 600, 0.03))
"""Table, seconds, and the gap to be proven."""


def table_of(name: str) -> cg.Table | None:
    """Read a table of CSPLIB, if it is there."""
    path = CSPLIB / f"{name}.jj.gz"
    if not path.exists():
        print(f"{name}: skipped, not found")
        return None
    return cg.Table.read(path)


def verdict(release: cg.Release) -> str:
    """Say what the audit says."""
    return "safe" if release.audit().safe else "NOT SAFE"


def exact() -> None:
    """Five tables proven optimal."""
    for name, (optimum, target) in EXACT.items():
        table = table_of(name)
        if table is None:
            continue
        start = time.process_time()
        release = cg.suppress(table, method="exact", time_limit_s=120)
        spent = time.process_time() - start
        known = "" if optimum is None else f" (known: {optimum})"
        figure(f"exact, {name}", spent, target, note=f"{release.status} {release.cost:.0f}{known}, {verdict(release)}")


def heuristic() -> None:
    """Costs after some seconds, and every file within a minute."""
    for name, limit, target in HEURISTIC:
        table = table_of(name)
        if table is not None:
            release = cg.suppress(table, method="heuristic", time_limit_s=limit)
            other = f"gconfid {GCONFID[name]:.4g}" if name in GCONFID else ""
            note = f"{release.seconds['total']:.1f} s, gap {release.gap:.2f}, {other}, {verdict(release)}"
            figure(f"heuristic, {name}, {limit} s", release.cost, target, "", note=note)
    for path in sorted(CSPLIB.glob("*.jj.gz")):
        release = cg.suppress(cg.Table.read(path), method="heuristic", rounds=0, time_limit_s=60)
        figure(f"first safe pattern, {path.name}", release.seconds["total"], 60.0, note=verdict(release))


def generated() -> None:
    """Tables of baena2018's kind to a gap of 0.1%, and a three-dimensional one with many primaries."""
    for instance in range(1, 7):
        for lower in (0.20, 0.05):
            table = generate.onehier(1, instance=instance, lower=lower, upper=0.20)
            start = time.process_time()
            release = cg.suppress(table, gap=1e-3, time_limit_s=60)
            spent = time.process_time() - start
            note = f"{release.status}, gap {release.gap:.4f}, {verdict(release)}"
            figure(f"onehier {instance}, {lower:.0%} down, 20% up", spent, 60.0, note=note)
    table = generate.hierarchical(1, branching=((4, 5), (4, 4), (3, 4)), sensitive=0.25, zeros=0.05)
    start = time.process_time()
    release = cg.suppress(table, method="heuristic", rounds=0)
    name = f"three dimensions, {table.n_cells} cells, {int(table.sensitive.sum())} sensitive"
    figure(name, time.process_time() - start, 15.0, note=verdict(release))


def hours() -> None:
    """Gaps proven in minutes."""
    for name, limit, target in GAPS:
        table = table_of(name)
        if table is not None:
            release = cg.suppress(table, method="auto", time_limit_s=limit)
            note = f"{release.bound:.0f} <= {release.cost:.0f}, {release.details['nodes']} nodes, {verdict(release)}"
            figure(f"gap, {name}, {limit} s", release.gap, target, "", note=note)


def large() -> None:
    """A million cells, 2% of them sensitive."""
    table = generate.hierarchical(1, branching=((10, 9), (10, 9), (10, 10)), sensitive=0.024)
    start = time.monotonic()
    release = cg.suppress(table, method="heuristic", time_limit_s=600)
    name = f"{table.n_cells} cells, {int(table.sensitive.sum())} sensitive"
    figure(name, time.monotonic() - start, 900.0, note=f"{peak_gib():.1f} GiB, {verdict(release)}")


def side_by_side() -> None:
    """Rounds per second on one core and on two; the pattern is the same."""
    table = table_of("hie1372d")
    if table is None:
        return
    took, patterns = [], set()
    for threads in (1, 2):
        start = time.monotonic()
        release = cg.suppress(table, method="heuristic", rounds=6000, time_limit_s=600, threads=threads)
        took.append(time.monotonic() - start)
        patterns.add(release.suppressed.tobytes())
    note = f"{took[0] / took[1]:.2f} times the rounds per second, {len(patterns)} pattern"
    figure("two threads, hie1372d: time, of one thread's", took[1] / took[0], 1 / 1.6, "", note=note)


def main(chosen: list[str]) -> None:
    """Print the figures."""
    cg.suppress(cg.Table.from_equations([2, 5, 7], [[2, 0, 1]], sensitive=[0], lower=1, upper=1))  # loads libraries
    for part in (exact, heuristic, generated, side_by_side, large, hours):
        if part.__name__ in chosen or (not chosen and part not in (large, hours)):
            part()


if __name__ == "__main__":
    main(sys.argv[1:])

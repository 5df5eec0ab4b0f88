"""Interval protection and perturbation: seconds to a certified gap of 0.1%."""

from __future__ import annotations

from figures import CSPLIB, figure, seconds

import cellguard as cg
from cellguard import generate

TARGETS = {"targus": 0.5, "hie1372d": 3.0, "hie1327d": 5.0, "hier13": 15.0, "table1": 90.0}


def measure(name: str, table: cg.Table, target: float) -> None:
    """Print seconds, gap and verdict of one table."""
    found: list[cg.Release] = []
    spent = seconds(lambda: found.append(cg.intervals(table, position="narrowest", gap=1e-3)), repeat=1)
    release = found[0]
    verdict = "safe" if release.audit().safe else "NOT SAFE"
    figure(name, spent, target, note=f"gap {release.gap:.2e}, {release.details['cells_replaced']} cells, {verdict}")


def perturbation() -> None:
    """Print seconds of perturbation beside those of rounding, on tables of counts with their small cells sensitive."""
    for name, table in (
        ("square 30 x 30", generate.cube(1, sides=(30, 30), threshold=3)),
        ("cube 8 x 8 x 8", generate.cube(1, sides=(8, 8, 8), threshold=3)),
    ):
        rounding = seconds(lambda t=table: cg.round(t, 5, time_limit_s=60), repeat=1)
        figure(
            f"perturb, {name}", seconds(lambda t=table: cg.perturb(t, 5), repeat=1), rounding, note="target: rounding"
        )


def main() -> None:
    """Print the figures of intervals on CSPLIB and on generated tables, symmetric and asymmetric."""
    cg.intervals(cg.Table.from_equations([2, 5, 7], [[2, 0, 1]], sensitive=[0], lower=1, upper=1))  # loads libraries
    for instance in range(1, 7):
        table = generate.onehier(0, instance=instance)
        measure(f"intervals, baena2018 {instance}, 20% / 20%", table.with_levels(0.2, 0.2), 30.0)
        measure(f"intervals, baena2018 {instance}, 5% / 20%", table.with_levels(0.05, 0.2), 150.0)
    perturbation()
    for name, target in TARGETS.items():
        path = CSPLIB / f"{name}.jj.gz"
        if not path.exists():
            print(f"{name}: skipped, not found")
            continue
        table = cg.Table.read(path)
        measure(f"intervals, {name}, its levels", table, target)
        measure(f"intervals, {name}, 5% / 20%", table.with_levels(0.05, 0.2), 5 * target)


if __name__ == "__main__":
    main()

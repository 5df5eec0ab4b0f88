"""Tables from records of firms: counted, added up, by a shadow variable, linked, with several indicators.

Firms form holdings, some of them alone in a cell. Rules are the usual ones. What a contributor gave is kept with the
case, so that the judge can let every one of them attack.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cellguard as cg
from adversary.cases import Case, count_decimals, pick

Rng = np.random.Generator
KINDS = ("counted", "added up", "employees", "shadow", "linked", "indicators")
SHARES = (0.28, 0.28, 0.1, 0.12, 0.08, 0.14)
MOST_CELLS = 64


def draw_records(rng: Rng, kinds: tuple[str, ...] = ()) -> Case | None:
    """Draw records, tabulate them in one of several ways (or one of some ways), and apply rules."""
    kind = pick(rng, kinds, [1 / len(kinds)] * len(kinds)) if kinds else pick(rng, KINDS, SHARES)
    records, holding = _draw_firms(rng)
    options: dict[str, Any] = {"holding": "firm"} if holding else {}
    what = ["records", kind]
    if rng.random() < 0.12:
        options["known_zeros"] = False
        what.append("zeros not known")
    table, measures = _tabulate(rng, kind, records, options)
    rules, threshold = _draw_rules(rng, counted=kind == "counted")
    table = table.apply(*rules)
    if not table.sensitive.any() or table.n_cells > MOST_CELLS:
        return None
    if rng.random() < 0.5:
        table = cg.with_insiders(table)
        what.append("insiders")
    counts, whole = (_find_whole(table, measures, records, sums=sums) for sums in (False, True))
    return Case(
        table, (*what, "rules"), None, count_decimals(table.values), records, measures=measures,
        whole=None if table.integer or not counts.any() else counts,
        whole_measures=None if table.integer or (whole == counts).all() else whole,
        least_numbers=_find_least_numbers(table, measures, threshold),
    )  # fmt: skip


def draw_small_counts(rng: Rng) -> Case | None:
    """Draw a table of small counts with a threshold, in two or three dimensions: few whole tables agree with a release."""
    shape = pick(rng, ((3, 3), (2, 4), (3, 4), (2, 2, 2), (2, 2, 3)))
    leaves = rng.poisson(pick(rng, (1, 2, 4)), shape).astype(float)
    threshold = int(rng.integers(2, 5))
    by = {f"d{k}": [f"c{j}" for j in range(n)] for k, n in enumerate(shape)}
    zeros = rng.random()
    known = {"known_zeros": False} if zeros < 0.1 and "known_zeros" in cg.Table.__dataclass_fields__ else {}
    table = cg.Table.from_leaves(by, leaves, integer=True, **known).apply(cg.MinFrequency(threshold))
    if zeros > 0.9:
        empty = (table.values == 0) & (table.coordinates > 0).all(axis=1)
        sliding = np.where(empty, threshold - 1, table.sliding)
        table = table.with_(sensitive=table.sensitive | empty, fixed=table.fixed & ~empty, sliding=sliding)
    if not table.sensitive.any():
        return None
    what = "zeros sensitive" if zeros > 0.9 else "zeros not known" if known else "zeros known"
    measures: dict[str, str | None] = {"value": None}
    least = _find_least_numbers(table, measures, threshold)
    return Case(table, ("small counts", "threshold", what), None, 0, measures=measures, least_numbers=least)


def _draw_firms(rng: Rng) -> tuple[dict[str, list[Any]], bool]:
    """Return records, and whether firms of one name are one holding."""
    n = int(rng.integers(6, 30))
    holding = bool(rng.random() < 0.5)
    firm = rng.integers(0, n, n) if holding and rng.random() < 0.7 else np.arange(n)
    records: dict[str, list[Any]] = {
        "region": [f"r{k}" for k in rng.integers(0, 3, n)],
        "branch": [f"b{k}" for k in rng.integers(0, pick(rng, (2, 3)), n)],
        "size": [f"s{k}" for k in rng.integers(0, 2, n)],
        "x": np.round(rng.lognormal(3, 1.2, n), int(rng.integers(0, 3))).tolist(),
        "employees": [float(k) for k in 1 + rng.poisson(pick(rng, (1, 6, 30)), n)],
        "profit": np.round(rng.lognormal(2, 1.2, n), 1).tolist(),
        "firm": [f"f{k}" for k in firm],
    }
    records["holding"] = records["firm"] if holding else [str(k) for k in range(n)]
    return records, holding


def _tabulate(
    rng: Rng, kind: str, records: dict[str, list[Any]], options: dict[str, Any]
) -> tuple[cg.Table, dict[str, str | None]]:
    """Return the table, and which column each of its indicators adds up."""
    by = ["region", "branch"]
    if kind == "counted":
        return cg.tabulate(records, by, None, **options), {"value": None}
    if kind == "employees":
        return cg.tabulate(records, by, "employees", **options), {"value": "employees"}
    if kind == "shadow":
        return cg.tabulate(records, by, "x", shadow=pick(rng, ("employees", "profit")), **options), {"value": "x"}
    if kind == "linked":
        linked = [["region", "branch"], ["region", "size"]]
        return cg.tabulate(records, [*by, "size"], "x", tables=linked, **options), {"value": "x"}
    if kind == "indicators":
        measures = pick(
            rng, ({"n": None, "x": "x"}, {"employees": "employees", "x": "x"}, {"n": None, "profit": "profit"})
        )
        made = cg.tabulate_publication(records, by, {"one": by}, indicators=measures, **options)
        return made.table, measures
    return cg.tabulate(records, by, "x", **options), {"value": "x"}


def _draw_rules(rng: Rng, *, counted: bool) -> tuple[tuple[Any, ...], int | None]:
    """Return rules, and the threshold below which a count is sensitive."""
    if counted:
        rule, threshold = pick(
            rng,
            (
                (cg.MinFrequency(3), 3),
                (cg.MinFrequency(2), 2),
                (cg.MinFrequency(4), 4),
                (cg.MinFrequency(3, percent=20), None),
            ),
        )
        return (rule,), threshold
    rules = pick(
        rng,
        ((cg.PPercent(10),), (cg.MinFrequency(3),), (cg.MinFrequency(2, percent=15), cg.PPercent(15)),
         (cg.PPercent(10), cg.MinFrequency(3)), (cg.Dominance(1, 70),), (cg.Dominance(2, 85), cg.MinFrequency(3))),
    )  # fmt: skip
    return rules, next((3 for rule in rules if rule == cg.MinFrequency(3)), None)


def _find_whole(
    table: cg.Table, measures: dict[str, str | None], records: dict[str, list[Any]], *, sums: bool
) -> np.ndarray:
    """Return which cells are whole numbers: counts, and sums of whole things where they are asked for."""
    whole = {
        name: column is None or (sums and all(float(v).is_integer() for v in records[column]))
        for name, column in measures.items()
    }
    if len(measures) == 1:
        return np.full(table.n_cells, whole[next(iter(measures))])
    return np.array([whole[name] for name in table.cell_codes()["indicator"]])


def _find_least_numbers(table: cg.Table, measures: dict[str, str | None], threshold: int | None) -> np.ndarray | None:
    """Return how many numbers of each count must stay possible: n where the threshold n made it sensitive."""
    counts = [name for name, column in measures.items() if column is None]
    if threshold is None or not counts:
        return None
    counted = np.ones(table.n_cells, bool) if len(measures) == 1 else np.isin(table.cell_codes()["indicator"], counts)
    small = counted & table.sensitive & (table.values > 0) & (table.values < threshold)
    return np.where(small, threshold, 0)


def draw_plain_records(rng: Rng) -> Case | None:
    """Draw records that are counted or added up, with the usual rules: the drawing of the first edition."""
    n = int(rng.integers(6, 40))
    records: dict[str, list[Any]] = {
        "region": [f"r{k}" for k in rng.integers(0, 3, n)],
        "branch": [f"b{k}" for k in rng.integers(0, pick(rng, (2, 3)), n)],
        "x": np.round(rng.lognormal(3, 1.2, n), int(rng.integers(0, 3))).tolist(),
        "firm": [f"f{k}" for k in (np.arange(n) if rng.random() < 0.5 else rng.integers(0, n, n))],
    }
    counted = rng.random() < 0.35
    holding = {"holding": "firm"} if rng.random() < 0.5 else {}
    table = cg.tabulate(records, ["region", "branch"], None if counted else "x", **holding)
    if counted:
        rules = (pick(rng, (cg.MinFrequency(3), cg.MinFrequency(2), cg.MinFrequency(3, percent=20))),)
    else:
        rules = pick(
            rng,
            ((cg.PPercent(10),), (cg.MinFrequency(3),), (cg.MinFrequency(2, percent=15), cg.PPercent(15)),
             (cg.Dominance(1, 70),), (cg.Dominance(2, 85), cg.MinFrequency(3))),
        )  # fmt: skip
    table = table.apply(*rules)
    if not table.sensitive.any() or table.n_cells > 64:
        return None
    what = ["records", "counts" if counted else "magnitudes", "rules"]
    if rng.random() < 0.7:
        table = cg.with_insiders(table)
        what.append("insiders")
    records["holding"] = records["firm"] if holding else [str(k) for k in range(n)]
    measures = {"value": None if counted else "x"}
    return Case(table, tuple(what), None, count_decimals(table.values), records, measures=measures)

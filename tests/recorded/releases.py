"""Releases whose public bytes are recorded: every method, kind of table and group of options.

Searches count rounds, or end by a proof, and every seed and key is given; so a release does not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cellguard as cg
from builders import key
from cellguard.model.linked.publication import Part, Publication
from cellguard.release.release import Release
from contract import kinds

__all__ = ["RELEASES", "make_release"]

Given = cg.Table | Publication
ENOUGH_S = 600.0
"""No release may take this long: a limit that is reached would decide instead of the rounds."""


# ---------------------------------------------------------------- tables


def make_survey(seed: int = 0, people: int = 160, shape: tuple[int, int] = (6, 12)) -> cg.Table:
    """Turnover by region and branch, with many respondents who are alone in a cell."""
    rng = np.random.default_rng(seed)
    frame = {
        "region": np.array([f"r{k}" for k in rng.integers(0, shape[0], people)]),
        "branch": np.array([f"b{k}" for k in rng.integers(0, shape[1], people)]),
        "turnover": np.ceil(rng.pareto(1.1, people) * 50) + 1,
        "firm": np.arange(people).astype(str),
    }
    table = cg.tabulate(frame, by=["region", "branch"], value="turnover", holding="firm")
    return table.apply(cg.PPercent(10), cg.MinFrequency(3, percent=10))


def make_linked() -> cg.Table:
    """Three two-way tables over three dimensions: their cross is not published."""
    rng = np.random.default_rng(2)
    cube = np.ceil(rng.pareto(1.2, (3, 3, 3)) * 20)
    codes = {name: [f"{name}{k}" for k in range(3)] for name in "abc"}
    pairs = [("a", "b", 2), ("b", "c", 0), ("a", "c", 1)]
    tables = [cg.Table.from_leaves({x: codes[x], y: codes[y]}, cube.sum(axis=k)) for x, y, k in pairs]
    return kinds.only(cg.Table.from_linked(tables), [5, 9, 20]).with_levels(0.1, 0.1)


def make_publication() -> Publication:
    """Three tables that share nothing, and a fourth that shares its margin with the first."""
    rng = np.random.default_rng(4)
    parts = []
    for name in ("cattle", "sheep", "pigs"):
        leaves = rng.integers(3, 90, (5, 4)).astype(float)
        table = cg.Table.from_leaves({"region": list("abcde"), "size": list("wxyz")}, leaves)
        cells = rng.choice(np.flatnonzero(table.coordinates.all(axis=1)), 3, replace=False)
        parts.append(Part(name=name, table=kinds.only(table, cells.tolist()).with_levels(0.2, 0.2), indicator=name))
        if name == "cattle":
            age = cg.Table.from_leaves(
                {"region": list("abcde"), "age": ["young", "old"]},
                np.stack([leaves[:, :1].sum(axis=1), leaves[:, 1:].sum(axis=1)], axis=1),
            )
            parts.append(Part(name="cattle by age", table=age, indicator=name))
    return Publication.of(parts)


def make_published_survey() -> Publication:
    """A publication of two indicators with respondents."""
    return Publication.of([Part(name=f"t{k}", table=make_survey(k, 120), indicator=f"t{k}") for k in (1, 2)])


def make_crossed_publication() -> Publication:
    """Tables of one indicator that share dimensions in a cycle: nothing in their cross is negative."""
    rng = np.random.default_rng(5)
    cube = np.ceil(rng.pareto(1.2, (3, 3, 3)) * 20)
    codes = {name: [f"{name}{k}" for k in range(3)] for name in "abc"}
    parts = []
    for x, y, k in (("a", "b", 2), ("b", "c", 0), ("a", "c", 1)):
        table = cg.Table.from_leaves({x: codes[x], y: codes[y]}, cube.sum(axis=k))
        inner = np.flatnonzero(table.coordinates.all(axis=1))
        parts.append(Part(name=x + y, table=kinds.only(table, inner[:2].tolist()).with_levels(0.15, 0.15)))
    return Publication.of(parts)


def make_frequencies() -> cg.Table:
    """A two-way table of counts with small cells."""
    return cg.generate.frequency(3)


def make_hierarchy() -> cg.Table:
    """A table with a tree of regions."""
    return cg.generate.hierarchical(1, branching=((2, 3), (3, 2)), sensitive=0.15)


def make_cube() -> cg.Table:
    """Counts in three dimensions, small ones sensitive."""
    return cg.generate.cube(1, sides=(4, 4, 4), threshold=4)


def make_by_rule() -> cg.Table:
    """Magnitudes from records, by a rule."""
    return kinds.percentages(kinds.magnitudes())


def make_counted() -> cg.Table:
    """Counts from records, by a rule."""
    return kinds.by_rule(kinds.counts_from_records())


def make_ready() -> cg.Table:
    """Cells that were added up already, with numbers of contributors."""
    return kinds.percentages(kinds.ready())


TABLES: dict[str, Callable[[], Given]] = {
    "grid": kinds.grid,
    "survey": make_survey,
    "large_survey": lambda: make_survey(1, 500, (22, 22)),
    "linked": make_linked,
    "publication": make_publication,
    "published_survey": make_published_survey,
    "crossed": make_crossed_publication,
    "frequencies": make_frequencies,
    "hierarchy": make_hierarchy,
    "cube": make_cube,
    "records": make_by_rule,
    "counts": make_counted,
    "ready": make_ready,
    **kinds.STRANGE,
}
EVERY_METHOD: dict[str, dict[str, Any]] = {
    "suppress": {"method": "heuristic", "rounds": 5},
    "adjust": {"norm": "l2", "senses": "key"},
    "intervals": {},
    "round": {"method": "exact"},
    "perturb": {},
}
"""The options with which each method meets each kind of table."""


def iter_cases() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Yield the name, table, method and options of every recorded release."""
    for table in (name for name in TABLES if name != "large_survey"):
        for method, options in EVERY_METHOD.items():
            if not (table == "far_apart" and method in ("intervals", "round", "perturb")):
                yield f"{method} {table}", table, method, options
    more: list[tuple[str, str, str, dict[str, Any]]] = [
        ("suppress exact", "grid", "suppress", {"method": "exact"}),
        ("suppress auto", "grid", "suppress", {}),
        ("suppress auto respondents", "records", "suppress", {"rounds": 3}),
        ("suppress auto counts", "frequencies", "suppress", {}),
        ("suppress resist", "frequencies", "suppress", {"resist": "matching"}),
        ("suppress rule", "frequencies", "suppress", {"resist": cg.CountRule(minimum=5, width=8)}),
        ("suppress unit weights", "hierarchy", "suppress", {"weights": "unit", "method": "heuristic", "rounds": 4}),
        ("suppress power", "grid", "suppress", {"weights": "power", "power": 0.3, "method": "heuristic", "rounds": 4}),
        ("suppress prefer", "grid", "suppress", {"prefer": [7, 8], "method": "heuristic", "rounds": 4}),
        ("suppress must publish", "grid", "suppress", {"must_publish": [0, 4, 5], "method": "heuristic", "rounds": 4}),
        ("suppress must publish respondents", "survey", "suppress",
         {"must_publish": [0], "method": "heuristic", "rounds": 4}),
        ("suppress already", "grid", "suppress", {"already_suppressed": [22], "method": "heuristic", "rounds": 4}),
        ("suppress threads", "hierarchy", "suppress", {"threads": 2, "method": "heuristic", "rounds": 4}),
        ("suppress cells of clusters", "publication", "suppress",
         {"must_publish": [4, 40], "weights": "unit", "method": "heuristic", "rounds": 2}),
        ("suppress many respondents", "large_survey", "suppress", {"method": "heuristic", "rounds": 2}),
        ("adjust l1", "grid", "adjust", {"norm": "L1"}),
        ("adjust linf", "grid", "adjust", {"norm": "linf"}),
        ("adjust l12", "grid", "adjust", {"norm": "l12", "omega": 0.9, "squares": "margins"}),
        ("adjust upper", "grid", "adjust", {"senses": "upper", "surplus": 0.0, "integer": False}),
        ("adjust optimal", "grid", "adjust", {"senses": "optimal", "norm": "l1"}),
        ("adjust kept", "grid", "adjust", {"keep": ["total", "region"]}),
        ("adjust noise", "grid", "adjust", {"noise": 0.05}),
        ("adjust relations", "fixed_cells", "adjust", {"repair": "relations", "weights": "unit"}),
        ("intervals narrowest", "grid", "intervals", {"position": "narrowest"}),
        ("intervals narrowest respondents", "records", "intervals", {"position": "narrowest"}),
        ("intervals key", "hierarchy", "intervals", {"key": key(77)}),
        ("round auto", "hierarchy", "round", {}),
        ("round step", "grid", "round", {"base": 10, "step": 2, "method": "exact"}),
        ("round multiples", "grid", "round", {"base": 10, "keep_multiples": True, "method": "exact"}),
        ("round unbiased", "cube", "round", {"objective": "unbiased", "method": "exact"}),
        ("round coins", "cube", "round", {"objective": "coins", "method": "exact"}),
        ("round kept", "grid", "round", {"base": 20, "keep": ["total"], "weights": "inverse", "method": "exact"}),
        ("round kept respondents", "records", "round", {"keep": ["total"], "method": "exact"}),
        ("perturb nearest", "grid", "perturb", {"draw": "nearest", "base": 20}),
        ("perturb relaxation", "grid", "perturb", {"draw": "relaxation", "base": 20}),
        ("perturb truth", "grid", "perturb", {"draw": "truth", "base": 20}),
        ("perturb distance", "grid", "perturb", {"distance": 15}),
        ("perturb rounded", "grid", "perturb", {"round_sensitive": True, "base": 20}),
        ("perturb given", "grid", "perturb", {"base": 20, "given": {0: 890.0}}),
    ]  # fmt: skip
    yield from more


RELEASES = {name: (table, method, options) for name, table, method, options in iter_cases()}
"""Name -> table, method and options."""


def make_release(name: str) -> Release:
    """Protect the table of a recorded release as its entry says."""
    from cellguard.methods.registry import METHODS

    kind, method, options = RELEASES[name]
    given = TABLES[kind]()
    system = given.table if isinstance(given, Publication) else given
    entry = METHODS[method]
    if not {"base", "distance"} & options.keys():
        options = entry.fill_options(options, system)
    drawn = {"key": key(4)} if entry.is_randomised(options) else {"seed": 4}
    return entry.verb(given, **{"time_limit_s": ENOUGH_S, **drawn, **options})

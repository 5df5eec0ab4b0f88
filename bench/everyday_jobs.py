"""The fifteen everyday jobs: records and job files as a statistical office would write them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import write_text
from cellguard._io.frames import write_csv
from cellguard.datasets.survey import ACTIVITIES, REGIONS, SIZES, generate_survey

__all__ = ["JOBS", "write_job"]

TIME_LIMIT_S = 60
"""Seconds that each job may take, its audit included."""
_P_PERCENT = '[[rules]]\nrule = "p_percent"\np = 10\n[[rules]]\nrule = "min_frequency"\nn = 3\npercent = 10\n'
_SMALL_COUNTS = '[[rules]]\nrule = "min_frequency"\nn = 3\n'
_SUPPRESS, _ROUND, _ADJUST = ('[method]\nname = "suppress"\n', '[method]\nname = "round"\nbase = 5\n',
                              '[method]\nname = "adjust"\n')  # fmt: skip

Columns = dict[str, Any]
Made = tuple[Columns, str]


def write_job(name: str, folder: Path) -> Path:
    """Write the records and the job file of one everyday job; return the path of the job file."""
    folder.mkdir(parents=True, exist_ok=True)
    columns, text = JOBS[name](folder)
    write_csv(columns, folder / "records.csv")
    ends = f'[limits]\ntime_limit_s = {TIME_LIMIT_S}\n[output]\nfolder = "release"\n'
    write_text(folder / "job.toml", f'name = "everyday"\n{text}{ends}')
    return folder / "job.toml"


def _write_data(value: str | None, *, holding: bool = True, more: str = "") -> str:
    lines = ["[data]", 'file = "records.csv"']
    lines += [f'value = "{value}"'] if value else []
    lines += ['holding = "holding"'] if holding else []
    return "\n".join(lines) + f"\n{more}"


def _write_dimensions(**trees: Any) -> str:
    """Return the dimensions; a tree is a dictionary of lists, a list of codes, or None."""
    out = ""
    for name, tree in trees.items():
        out += f"[dimensions.{name}]\n"
        out += "" if tree is None else f"hierarchy = {_write_tree(tree)}\n"
    return out


def _write_tree(tree: Any) -> str:
    if isinstance(tree, dict):
        return "{" + ", ".join(f'"{code}" = {_write_tree(below)}' for code, below in tree.items()) + "}"
    return "[" + ", ".join(f'"{code}"' for code in tree) + "]"


def _write_tables(*tables: tuple[str, ...]) -> str:
    return "".join(f"[[tables]]\ndimensions = {_write_tree(dimensions)}\n" for dimensions in tables)


# ---------------------------------------------------------------- magnitudes


def _make_business_2d(_: Path) -> Made:
    job = _write_data("turnover") + _write_dimensions(activity=ACTIVITIES, region=REGIONS) + _P_PERCENT + _SUPPRESS
    return generate_survey(4_000, seed=4), job


def _make_business_3d(_: Path) -> Made:
    dimensions = _write_dimensions(activity=ACTIVITIES, region=REGIONS, size=SIZES)
    return generate_survey(20_000), _write_data("turnover") + dimensions + _P_PERCENT + _SUPPRESS


def _make_weighted(_: Path) -> Made:
    firms = generate_survey(3_000, seed=5)
    rng = np.random.default_rng(5)
    firms["weight"] = np.where(firms["employees"] >= 50, 1.0, np.round(rng.uniform(1.5, 8.0, 3_000), 2))
    data = _write_data("turnover", more='weight = "weight"\n')
    return firms, data + _write_dimensions(activity=ACTIVITIES, region=REGIONS) + _P_PERCENT + _SUPPRESS


def _make_negatives(_: Path) -> Made:
    firms = generate_survey(4_000, seed=6)
    margin = np.random.default_rng(6).normal(0.06, 0.12, 4_000)
    firms["profit"] = np.rint(firms["turnover"] * margin).astype(np.int64)
    dimensions = _write_dimensions(activity=ACTIVITIES, region=REGIONS)
    return firms, _write_data("profit") + dimensions + _P_PERCENT + _SUPPRESS


def _make_indicators(_: Path) -> Made:
    firms = generate_survey(2_000, seed=7)
    abroad = np.random.default_rng(7).beta(0.4, 2.0, 2_000)
    firms["exports"] = np.floor(firms["turnover"] * abroad).astype(np.int64)
    firms["domestic"] = firms["turnover"] - firms["exports"]
    job = 'equations = ["turnover = domestic + exports"]\n' + _write_data(None)
    job += _write_dimensions(activity=ACTIVITIES, region=list(REGIONS))
    firms["region"] = _group(firms["region"], REGIONS)
    job += "".join(f'[[indicators]]\nname = "{x}"\nvalue = "{x}"\n' for x in ("turnover", "domestic", "exports"))
    return firms, job + _write_tables(("activity", "region")) + _P_PERCENT + _SUPPRESS


def _make_four_tables(_: Path) -> Made:
    firms = generate_survey(2_500, seed=8)
    firms["form"] = np.random.default_rng(8).choice(["company", "partnership", "sole", "public"], 2_500)
    job = _write_data("turnover") + _write_dimensions(activity=ACTIVITIES, region=REGIONS, size=SIZES, form=None)
    pairs = (("activity", "size"), ("activity", "form"), ("region", "size"), ("region", "form"))
    return firms, job + _write_tables(*pairs) + _P_PERCENT + _SUPPRESS


def _make_groupings(_: Path) -> Made:
    coasts = {"Coast": ["Aldmark", "Birkhaven", "Galten", "Istria Bay", "Lorne"],
              "Inland": ["Corvania", "Dunfeld", "Eskmoor", "Farrowby", "Holmwick", "Jorvale", "Kestrel"]}  # fmt: skip
    job = _write_data("turnover") + _write_dimensions(activity=ACTIVITIES, region=REGIONS)
    job += _write_tables(("activity", "region"))
    job += '[[tables]]\nname = "coasts"\ndimensions = ["activity", "region"]\n'
    job += f"hierarchies = {{region = {_write_tree(coasts)}}}\n"
    return generate_survey(4_000, seed=9), job + _P_PERCENT + _SUPPRESS


def _make_quarters(folder: Path) -> Made:
    """Return four quarters that add up to the year; the first two are published and frozen."""
    firms = generate_survey(800, seed=10)
    rng = np.random.default_rng(10)
    part = rng.dirichlet(np.full(4, 30.0), 800)
    columns = {name: np.repeat(firms[name], 4) for name in ("activity", "holding")}
    columns["quarter"] = np.tile(["Q1", "Q2", "Q3", "Q4"], 800)
    columns["turnover"] = np.rint(firms["turnover"][:, None] * part).astype(np.int64).ravel()
    write_csv(_sum_published(columns, ("Q1", "Q2")), folder / "earlier.csv")
    dimensions = _write_dimensions(activity=ACTIVITIES, quarter=["Q1", "Q2", "Q3", "Q4"])
    frozen = '[[priorities]]\npublished = "earlier.csv"\n'
    return columns, _write_data("turnover") + dimensions + frozen + _P_PERCENT + _SUPPRESS


def _sum_published(columns: Columns, quarters: tuple[str, ...]) -> Columns:
    """Return what the first quarters published: activities with many firms."""
    rows: list[tuple[str, str, int]] = []
    for quarter in quarters:
        for code in np.unique(columns["activity"]).tolist():
            here = (columns["quarter"] == quarter) & (columns["activity"] == code)
            amounts = np.sort(columns["turnover"][here])[::-1]
            if len(amounts) > 20 and amounts[0] < 0.3 * amounts.sum():
                rows.append((code, quarter, int(amounts.sum())))
    activity, quarter_, value = zip(*rows, strict=True)
    return {"activity": list(activity), "quarter": list(quarter_), "value": list(value)}


def _make_intervals(_: Path) -> Made:
    dimensions = _write_dimensions(activity=ACTIVITIES, region=list(REGIONS))
    firms = generate_survey(2_000, seed=11)
    firms["region"] = _group(firms["region"], REGIONS)
    return firms, _write_data("turnover") + dimensions + _P_PERCENT + '[method]\nname = "intervals"\n'


def _make_adjustment(_: Path) -> Made:
    dimensions = _write_dimensions(activity=ACTIVITIES, region=REGIONS, size=SIZES)
    return generate_survey(20_000), _write_data("turnover") + dimensions + _P_PERCENT + _ADJUST


def _group(codes: Any, tree: dict[str, list[str]]) -> Any:
    above = {code: group for group, below in tree.items() for code in below}
    return np.array([above[code] for code in codes])


# ---------------------------------------------------------------- counts


def _draw_people(n: int, seed: int, **sizes: int) -> Columns:
    """Return people with so many codes in each dimension, some of them rare."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, size in sizes.items():
        share = rng.gamma(0.8, 1.0, size) + 0.02
        codes = np.array([f"{name[0]}{k:02d}" for k in range(size)])
        out[name] = codes[rng.choice(size, n, p=share / share.sum())]
    return out


def _write_groups(name: str, size: int, each: int) -> dict[str, list[str]]:
    codes = [f"{name[0]}{k:02d}" for k in range(size)]
    return {f"{name[0].upper()}{k // each}": codes[k : k + each] for k in range(0, size, each)}


def _write_people_job(method: str, **trees: Any) -> str:
    return _write_data(None, holding=False) + _write_dimensions(**trees) + _SMALL_COUNTS + method


def _make_counts_2d(_: Path) -> Made:
    trees = {"place": _write_groups("place", 30, 5), "origin": _write_groups("origin", 20, 5)}
    return _draw_people(4_000, 12, place=30, origin=20), _write_people_job(_SUPPRESS, **trees)


def _make_counts_3d(_: Path) -> Made:
    trees = {"place": _write_groups("place", 16, 4), "origin": None, "age": None}
    return _draw_people(4_000, 13, place=16, origin=8, age=6), _write_people_job(_SUPPRESS, **trees)


def _make_census(_: Path) -> Made:
    trees = {"place": _write_groups("place", 60, 6), "age": _write_groups("age", 18, 6), "work": None}
    return _draw_people(60_000, 14, place=60, age=18, work=6), _write_people_job(_SUPPRESS, **trees)


def _make_rounding_2d(_: Path) -> Made:
    trees = {"place": _write_groups("place", 40, 5), "origin": _write_groups("origin", 25, 5)}
    return _draw_people(8_000, 15, place=40, origin=25), _write_people_job(_ROUND, **trees)


def _make_rounding_3d(_: Path) -> Made:
    trees = {"place": _write_groups("place", 20, 5), "origin": None, "age": None}
    return _draw_people(8_000, 16, place=20, origin=8, age=6), _write_people_job(_ROUND, **trees)


JOBS: dict[str, Callable[[Path], Made]] = {
    "business 2-D": _make_business_2d,
    "business 3-D": _make_business_3d,
    "weighted": _make_weighted,
    "negatives": _make_negatives,
    "three indicators": _make_indicators,
    "four tables": _make_four_tables,
    "groupings": _make_groupings,
    "quarters": _make_quarters,
    "intervals": _make_intervals,
    "adjustment": _make_adjustment,
    "counts 2-D": _make_counts_2d,
    "counts 3-D": _make_counts_3d,
    "census": _make_census,
    "rounding 2-D": _make_rounding_2d,
    "rounding 3-D": _make_rounding_3d,
}
"""Name -> the function that makes its records and job."""

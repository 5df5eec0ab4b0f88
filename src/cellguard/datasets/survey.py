"""A fictitious business survey: enterprises by region, activity, size class and holding.

Sizes follow a power law and some activities have a few giants in one region, as in real surveys. One
enterprise therefore dominates some cells, and the demonstration protects them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import write_lines, write_text
from cellguard._io.frames import write_csv

__all__ = ["ACTIVITIES", "JOB", "REGIONS", "SIZES", "generate_survey", "write_survey"]

REGIONS = {
    "North": ["Aldmark", "Birkhaven", "Corvania"],
    "East": ["Dunfeld", "Eskmoor", "Farrowby"],
    "South": ["Galten", "Holmwick", "Istria Bay"],
    "West": ["Jorvale", "Kestrel", "Lorne"],
}
ACTIVITIES = {
    "C Manufacturing": [
        *("10 Food", "13 Textiles", "16 Wood", "20 Chemicals", "24 Metals", "26 Electronics", "29 Vehicles"),
    ],
    "F Construction": ["41 Buildings", "42 Civil works", "43 Trades"],
    "G Trade": ["45 Motor trade", "46 Wholesale", "47 Retail"],
    "H Transport": ["49 Land", "50 Water", "52 Storage"],
    "I Hospitality": ["55 Hotels", "56 Restaurants"],
    "J Information": ["58 Publishing", "61 Telecom", "62 Software"],
    "M Professions": ["69 Legal", "70 Consulting", "71 Engineering"],
}
SIZES = ["0 to 9", "10 to 49", "50 to 249", "250 and more"]
_RARE = {"50 Water": 0.004, "61 Telecom": 0.006, "24 Metals": 0.008, "29 Vehicles": 0.01, "20 Chemicals": 0.012}
_COMMON = {"47 Retail": 0.16, "43 Trades": 0.13, "56 Restaurants": 0.1, "46 Wholesale": 0.08}


def generate_survey(n: int = 20_000, seed: int = 2024) -> dict[str, Any]:
    """Return the columns of the survey, one row per enterprise; turnover is in thousands.

    >>> firms = generate_survey(1000)
    >>> sorted(firms)
    ['activity', 'employees', 'enterprise', 'holding', 'region', 'size', 'turnover']
    >>> bool((firms["turnover"] == generate_survey(1000)["turnover"]).all())
    True
    """
    rng = np.random.default_rng(seed)
    regions = np.array([code for codes in REGIONS.values() for code in codes])
    activities = np.array([code for codes in ACTIVITIES.values() for code in codes])
    region = rng.choice(len(regions), n, p=_compute_shares(rng.gamma(2.0, 1.0, len(regions)) + 0.3))
    usual = [_RARE.get(code, _COMMON.get(code, 0.035)) for code in activities]
    activity = rng.choice(len(activities), n, p=_compute_shares(np.array(usual)))
    employees = np.ceil(rng.pareto(0.85, n) * 1.5).clip(1, 2500)
    productivity = np.exp(rng.normal(4.6, 0.55, n)) * rng.uniform(0.6, 2.2, len(activities))[activity]
    turnover = np.ceil(employees * productivity + rng.integers(1, 500, n))
    size = np.searchsorted([10, 50, 250], employees, side="right")
    return {
        "enterprise": np.array([f"E{i:05d}" for i in range(1, n + 1)]),
        "region": regions[region],
        "activity": activities[activity],
        "size": np.array(SIZES)[size],
        "employees": employees.astype(np.int64),
        "turnover": turnover.astype(np.int64),
        "holding": _draw_holdings(rng, employees),
    }


def _compute_shares(weights: Any) -> Any:
    return weights / weights.sum()


def _draw_holdings(rng: np.random.Generator, employees: Any) -> Any:
    """Assign some enterprises, mostly large ones, to holdings of two to six; each of the others is its own holding."""
    n = len(employees)
    members = rng.choice(n, n // 20, replace=False, p=_compute_shares(np.sqrt(employees)))
    holding = np.array([f"E{i:05d}" for i in range(1, n + 1)])
    number = 0
    while len(members):
        size, number = int(rng.integers(2, 7)), number + 1
        holding[members[:size]] = f"H{number:04d}"
        members = members[size:]
    return holding


def write_survey(folder: Path, *, n: int = 20_000, job: str | None = None) -> Path:
    """Write the survey, its hierarchies and a job for it into a folder; return the path of the job."""
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(generate_survey(n), folder / "enterprises.csv")
    for name, tree in (("regions", REGIONS), ("activities", ACTIVITIES)):
        lines = [line for parent, codes in tree.items() for line in (parent, *(f"@{code}" for code in codes))]
        write_lines(folder / f"{name}.hrc", lines)
    write_text(folder / "job.toml", JOB if job is None else job)
    return folder / "job.toml"


JOB = """\
# The demonstration: turnover of 20,000 fictitious enterprises.
name = "turnover"
title = "Turnover of enterprises by region, activity and size"

[data]
file = "enterprises.csv"
value = "turnover"
holding = "holding"        # enterprises of one holding know each other's figures

[dimensions.region]
hierarchy = "regions.hrc"

[dimensions.activity]
hierarchy = "activities.hrc"

[dimensions.size]          # no tree: the classes, in their order, add up to the total
hierarchy = ["0 to 9", "10 to 49", "50 to 249", "250 and more"]

[[tables]]
name = "Activity by region"
dimensions = ["activity", "region"]

[[tables]]                 # linked to the first: both publish the totals by activity
name = "Activity by size"
dimensions = ["activity", "size"]

[[rules]]
rule = "p_percent"         # no attacker may estimate the largest contribution to within 10%
p = 10

[[rules]]
rule = "min_frequency"     # every published number has at least three contributors
n = 3
percent = 10

[method]
name = "suppress"
rounds = 20

[compare]                  # how the other methods would perform; their releases are not written
methods = ["adjust", "intervals", "round", "perturb"]
time_limit_s = 30

[output]
folder = "release"
formats = ["csv", "parquet", "xlsx", "jj"]
"""

"""Fictitious farm statistics: tables of the shapes that Eurostat publishes, from records.

The first dimension is a geography of three levels (union, countries, regions); the others are flat classes such as
type of farming, size and legal form. Contributions are skewed and many combinations are empty, as in the surveys on
the structure of farms. Countries have rules of their own: thresholds of 3 to 5 farms, p of 5 to 25 per cent.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._io.files import write_lines, write_text
from cellguard.exceptions import InputError

__all__ = ["SHAPES", "build_farm_rules", "generate_farms", "write_farms"]

SHAPES = {
    "small": (287, 10, 12),
    "medium": (287, 10, 12, 7),
    "large": (287, 23, 10, 12),
    "five": (287, 8, 3, 4, 10),
    "huge": (287, 23, 10, 12, 13),
}
"""Number of codes of each dimension, totals included: from 34,440 to 10,297,560 cells."""
_COUNTRIES = 27
_NAMES = ("region", "farm_type", "size", "legal_form", "tenure", "labour", "system")
_THRESHOLDS = (3, 4, 5)
"""Minimum frequencies from which a country's rule is drawn."""
_PERCENTAGES = (5, 10, 15, 20, 25)
"""Percentages of the p%-rule from which a country's rule is drawn."""


def generate_farms(
    n: int | None = None, seed: int = 2024, *, shape: str | Sequence[int] = "small"
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the records of farms, a row each, and the regions of each country.

    Parameters
    ----------
    n
        Number of farms; unless given, one and a half for each inner cell, at most two million.
    seed
        The same seed gives the same farms.
    shape
        A name of :data:`SHAPES`, or the number of codes of each dimension, totals included.

    >>> farms, countries = generate_farms(1000, shape=(60, 4, 5))
    >>> sorted(farms), len(farms["area"]), len(countries)
    (['area', 'farm_type', 'holding', 'region', 'size'], 1000, 27)
    """
    sides = _resolve_shape(shape)
    rng = np.random.default_rng(seed)
    countries = _generate_geography(rng, sides[0])
    regions = np.array([region for names in countries.values() for region in names])
    inner = int(np.prod([len(regions), *(side - 1 for side in sides[1:])], dtype=np.int64))
    n = min(2_000_000, max(1000, inner * 3 // 2)) if n is None else n
    if n < 1:
        raise InputError(f"{n} farms: at least 1 is needed.")
    columns: dict[str, Any] = {"region": regions[rng.choice(len(regions), n, p=_draw_shares(rng, len(regions), 1.2))]}
    level = np.zeros(n)
    for name, side in zip(_NAMES[1:], sides[1:], strict=False):
        codes = np.array([f"{name} {i + 1}" for i in range(side - 1)])
        chosen = rng.choice(side - 1, n, p=_draw_shares(rng, side - 1, 1.0))
        level += rng.normal(0.0, 0.6, side - 1)[chosen]
        columns[name] = codes[chosen]
    columns["area"] = np.ceil(np.exp(level) * (1.0 + rng.pareto(1.1, n)) * 10.0).clip(1, 5e6).astype(np.int64)
    owner = np.arange(n)
    several = rng.random(n) < 0.02  # some holdings have several farms
    owner[several] = owner[rng.integers(0, n, int(several.sum()))]
    columns["holding"] = np.char.add("F", owner.astype(str))
    return columns, countries


def build_farm_rules(countries: dict[str, list[str]], seed: int = 2024) -> list[str]:
    """Return the rules of each country as sections of a job file."""
    rng = np.random.default_rng([seed, 1])
    groups: dict[tuple[str, int], list[str]] = {}
    for country, regions in countries.items():
        threshold, p = int(rng.choice(_THRESHOLDS)), int(rng.choice(_PERCENTAGES))
        groups.setdefault(("min_frequency", threshold), []).extend([country, *regions])
        groups.setdefault(("p_percent", p), []).extend([country, *regions])
    lines: list[str] = []
    for (rule, number), codes in sorted(groups.items()):
        parameters = [f"n = {number}", "percent = 10"] if rule == "min_frequency" else [f"p = {number}"]
        listed = ", ".join(f'"{code}"' for code in codes)
        lines += ["[[rules]]", f'rule = "{rule}"', *parameters, f"only = {{ region = [{listed}] }}", ""]
    return lines


def write_farms(folder: Path, *, n: int | None = None, seed: int = 2024, shape: str | Sequence[int] = "small") -> Path:
    """Write the farms, their geography and a job for them into a folder; return the path of the job."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns, countries = generate_farms(n, seed, shape=shape)
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / "farms.parquet")
    lines = [line for country, regions in countries.items() for line in (country, *(f"@{name}" for name in regions))]
    write_lines(folder / "regions.hrc", lines)
    flat = [name for name in columns if name not in ("region", "area", "holding")]
    text = [
        "# Area of fictitious farms; each country has rules of its own.",
        'name = "farms"',
        'title = "Area of farms"',
        "",
        *("[data]", 'file = "farms.parquet"', 'value = "area"', 'holding = "holding"', ""),
        *("[dimensions.region]", 'hierarchy = "regions.hrc"', ""),
        *(line for name in flat for line in (f"[dimensions.{name}]", "")),
        *build_farm_rules(countries, seed),
        *("[method]", 'name = "suppress"', ""),
        *("[output]", 'folder = "release"', 'formats = ["parquet"]', ""),
    ]
    write_text(folder / "job.toml", "\n".join(text))
    return folder / "job.toml"


def _resolve_shape(shape: str | Sequence[int]) -> tuple[int, ...]:
    if isinstance(shape, str) and shape not in SHAPES:
        raise InputError(
            f"shape {shape!r} is unknown.", hint=f"known are {', '.join(SHAPES)}, or numbers such as 287,10,12."
        )
    sides = SHAPES[shape] if isinstance(shape, str) else tuple(int(side) for side in shape)
    if not 2 <= len(sides) <= len(_NAMES):
        raise InputError(f"shape {sides}: between 2 and {len(_NAMES)} dimensions are possible.")
    if sides[0] < 2 * _COUNTRIES + 1 or min(sides[1:]) < 2:
        raise InputError(
            f"shape {sides}: at least {2 * _COUNTRIES + 1} regions, and 2 codes of each other dimension, are needed."
        )
    return sides


def _generate_geography(rng: np.random.Generator, codes: int) -> dict[str, list[str]]:
    """Return the regions of each country; with countries and the total, there are `codes` codes."""
    spare = codes - 1 - 2 * _COUNTRIES
    sizes = 1 + rng.multinomial(spare, _draw_shares(rng, _COUNTRIES, 0.7))
    return {
        f"C{c + 1:02d}": [f"C{c + 1:02d}-{r + 1:02d}" for r in range(size)] for c, size in enumerate(sizes.tolist())
    }


def _draw_shares(rng: np.random.Generator, n: int, spread: float) -> Any:
    weights = rng.lognormal(0.0, spread, n)
    return weights / weights.sum()

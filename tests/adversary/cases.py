"""A case of the campaign: a table, and what its maker knows of how it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import cellguard as cg


@dataclass(frozen=True)
class Case:
    """A table, and what its maker knows of how it was made."""

    table: cg.Table
    what: tuple[str, ...]
    """Structure, values, levels, and the rest that was drawn."""
    shares: tuple[float, float] | None = None
    """Levels as shares of the value, when they are: a law prints them, so attackers know them."""
    decimals: int | None = None
    """Decimals of all values, when they have a few."""
    records: dict[str, list[Any]] = field(default_factory=dict)
    """Where the table comes from, when from records; the column `holding` says who contributed."""
    threshold: int | None = None
    """Of a frequency table: smaller counts are sensitive."""
    measures: Mapping[str, str | None] = field(default_factory=dict)
    """Indicators and the columns that were added up; None counts records."""
    whole: np.ndarray | None = None
    """Which cells are counts, where they are not all or none."""
    whole_measures: np.ndarray | None = None
    """Which cells are whole numbers if other measures whose values are all whole are taken for such, too."""
    least_numbers: np.ndarray | None = None
    """How many numbers of each sensitive count must stay possible, where a threshold says so."""


def pick(rng: np.random.Generator, options: Sequence[Any], p: Sequence[float] | None = None) -> Any:
    """Draw one of some options."""
    return options[int(rng.choice(len(options), p=p))]


def count_decimals(values: np.ndarray) -> int | None:
    """Return how many decimals the values have, if at most three, but for the last bits of sums.

    Beside those bits a decimal must be seen: of 8e11 the third is nothing but them.
    """
    last_bits = 1e-15 * float(np.abs(values).max(initial=0.0))
    return next(
        (
            d
            for d in range(4)
            if last_bits < 0.1 * 10.0**-d and np.allclose(np.round(values, d), values, rtol=1e-15, atol=1e-12)
        ),
        None,
    )

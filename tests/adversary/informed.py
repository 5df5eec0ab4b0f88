"""Attackers who know the method: its manual, its code, the percentages of the law; not the seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from adversary.checker import Violation
from adversary.generator import Case
from adversary.written import Written


def attacks(made: Case, release: Any, file: Written, options: dict[str, Any], figures: Counter[str]) -> Iterable[Violation]:
    return ()


def doors(made: Case, release: Any, path: Path, rng: np.random.Generator, figures: Counter[str]) -> Iterable[Violation]:
    return ()

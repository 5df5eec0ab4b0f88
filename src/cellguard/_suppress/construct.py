"""Construction: protect one request after the other, and tick off what a movement protects besides."""

from __future__ import annotations

import time

import numpy as np

from cellguard._suppress.problem import Problem, Reached
from cellguard._suppress.protect import Protector
from cellguard.table import BoolArray, FloatArray

__all__ = ["construct"]


def construct(
    protector: Protector,
    pattern: BoolArray,
    *,
    largest_first: bool = False,
    weight: FloatArray | None = None,
    deadline: float = float("inf"),
) -> tuple[BoolArray, list[FloatArray], list[int]]:
    """Open cells until every request is met.

    Returns the pattern, the movements that were found, and the requests that nothing can meet. After
    the deadline the requests that are left over count as not met: the caller looks at them again.
    """
    problem: Problem = protector.problem
    reached = Reached(problem)
    pattern = pattern.copy()
    weight = problem.weight if weight is None else weight
    order = np.argsort(problem.requests.level, kind="stable")
    if largest_first:
        order = order[::-1]
    met, found = problem.verdicts(pattern)
    reached.up[met] = reached.down[met] = np.inf
    failed: list[int] = []
    for request in order:
        if not reached.missing[request]:
            continue
        if time.monotonic() > deadline:
            failed.append(int(request))
            continue
        some = protector.movements(int(request), np.where(pattern, 0.0, weight))
        if some is None:
            failed.append(int(request))
            continue
        for z in some:
            pattern |= z != 0
            reached.add(z)
            found.append(z)
        if reached.missing[request]:  # noise was cut from the movement: keep it, the check decides
            reached.up[request] = np.inf
            reached.down[request] = np.inf
    return pattern, found, failed

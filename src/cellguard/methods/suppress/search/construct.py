"""Construction: protect one request after the other, and tick off what a movement protects besides."""

from __future__ import annotations

import numpy as np

from cellguard._engine.clock import NEVER, Deadline
from cellguard._types import BoolArray, FloatArray
from cellguard.methods.suppress.search.cheapest_movement import Protector

__all__ = ["construct"]


def construct(
    protector: Protector,
    rows: BoolArray,
    bank: FloatArray,
    *,
    largest_first: bool = False,
    weight: FloatArray | None = None,
    deadline: Deadline = NEVER,
) -> tuple[BoolArray, list[FloatArray], list[int]]:
    """Open rows until every request is met.

    Parameters
    ----------
    protector
        The programs.
    rows
        Rows that are open already.
    bank
        Movements of open rows: what they meet needs no program.
    largest_first
        Order of the requests, by their level.
    weight
        Cost of each row, if not its own.
    deadline
        After it the requests that are left over count as failed.

    Returns the open rows, the movements that were found, and the requests that failed.
    """
    from cellguard._core.patterns import count, is_met

    space = protector.space
    low, high = space.bounds
    requests, known = space.requests, space.known
    weight = space.weight if weight is None else weight
    down, up = np.zeros(len(requests[1])), np.zeros(len(requests[1]))
    for z in bank:
        count(z, low, high, known, requests, down, up)
    rows = rows.copy()
    level = np.maximum(np.maximum(requests[2], requests[3]), requests[4] / 2)
    order = np.argsort(-level if largest_first else level, kind="stable")
    found: list[FloatArray] = []
    failed: list[int] = []
    for request in order:
        if is_met(request, requests, down, up):
            continue
        some = None
        if not deadline.passed:
            some = protector.find_movements(int(request), np.where(rows, 0.0, weight), deadline=deadline)
        if some is None:
            failed.append(int(request))
            continue
        for z in some:
            rows |= z != 0
            found.append(z)
            count(z, low, high, known, requests, down, up)
    return rows, found, failed

"""A safe pattern with its witnesses, and how it is cleaned up: part by part, where parts share no relation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cellguard._engine.clock import NEVER, Deadline
from cellguard._engine.space.space import list_group_members
from cellguard._types import BoolArray, FloatArray, IntArray
from cellguard.methods.suppress.problem import SuppressionProblem
from cellguard.methods.suppress.search.space import Known, Levels, PatternSpace

__all__ = ["Movements", "PatternPart", "PatternProof", "clean_pattern", "prove_pattern"]

Movements = tuple[PatternSpace, FloatArray]
"""Movements of the rows of a space, one line each."""

_DENSE = 8_000_000
"""Entries of an echelon form beyond which a part is left to the range engine."""
_TRIES = 20
"""Classes tried between two looks at the clock."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternPart:
    """Rows of a space that move independently of the others, and their requests."""

    rows: IntArray
    """The rows, as the space counts them."""
    asked: IntArray
    """The requests, as the space counts them."""
    low: FloatArray
    high: FloatArray
    weight: FloatArray
    keep: BoolArray
    known: Known
    requests: Levels
    """The requests in terms of the part's rows."""
    Z: FloatArray
    """All movements, in echelon form."""
    parameter: IntArray
    """Row of each movement's parameter."""

    @property
    def dense(self) -> bool:
        """Whether the echelon form is at hand."""
        return len(self.Z) > 0


def split_into_components(space: PatternSpace) -> Iterator[PatternPart]:
    """Divide a space into its components."""
    of_row = space.variables.component
    attacker, row, down, up, slide = space.requests
    of_parameter = space.reduction.component[space.reduction.parameters]
    low, high = space.bounds
    place = np.full(len(space), -1, np.int64)
    n = space.variables.n_components
    for rows, asked, own in zip(*(list_group_members(x, n) for x in (of_row, of_row[row], of_parameter)), strict=True):
        place[rows] = np.arange(len(rows))
        Z, parameter = np.zeros((0, len(rows))), np.zeros(0, np.int64)
        if len(rows) * len(own) <= _DENSE:
            Z, parameter = space.variables.compute_echelon(rows, own)
        yield PatternPart(
            rows=rows, asked=asked, low=low[rows], high=high[rows], weight=space.weight[rows], keep=space.keep[rows],
            known=_restrict_knowledge(space.known, place, len(rows) == len(space)),
            requests=(attacker[asked], place[row[asked]], down[asked], up[asked], slide[asked]),
            Z=Z, parameter=parameter,
        )  # fmt: skip
        place[rows] = -1


def _restrict_knowledge(known: Known, place: IntArray, everything: bool) -> Known:
    """What attackers know of the rows of a part."""
    ptr, row, low, high = known
    if everything or not len(row):
        return known
    inside = place[row] >= 0
    count = np.concatenate([[0], np.cumsum(inside)])
    return count[ptr].astype(np.int64), place[row[inside]], low[inside], high[inside]


@dataclass(frozen=True, kw_only=True, eq=False)
class PatternProof:
    """The movements of a pattern, and those that meet its requests."""

    space: PatternSpace
    """The pattern's own space."""
    parts: list[PatternPart]
    banks: list[FloatArray]
    """For each part movements that meet its requests."""
    failed: BoolArray
    """Requests of the space that they do not meet."""

    @property
    def safe(self) -> bool:
        """Whether every request is met."""
        return not self.failed.any() and not len(self.space.disclosed)

    def spread(self, movements: list[FloatArray]) -> FloatArray:
        """Movements of the parts as movements of all rows of the space, one line each."""
        out = np.zeros((sum(len(m) for m in movements), len(self.space)))
        at = 0
        for part, some in zip(self.parts, movements, strict=True):
            out[at : at + len(some), part.rows] = some
            at += len(some)
        return out


def prove_pattern(
    problem: SuppressionProblem, pattern: BoolArray, hints: Movements | None = None, deadline: Deadline = NEVER
) -> PatternProof:
    """Look for witnesses of all requests; the hints, movements of another space, probably serve.

    What is not decided before the deadline counts as failed.
    """
    from cellguard._core.patterns import prove as kernel

    space = PatternSpace.of(problem, pattern)
    likely = (
        _select_valid_movements(space, space.translate_movements(*hints))
        if hints is not None
        else np.zeros((0, len(space)))
    )
    failed = np.zeros(len(space.requests[1]), bool)
    found, banks = [], []
    undecided: list[IntArray] = []
    for part in split_into_components(space):
        found.append(part)
        if not part.dense:
            banks.append(np.zeros((0, len(part.rows))))
            undecided.append(part.asked)
            continue
        bank = likely[:, part.rows]
        bank = np.ascontiguousarray(bank[bank.any(axis=1)])
        bank, bad = kernel(
            part.Z, part.parameter, part.low, part.high, part.known, part.requests, bank, len(part.asked) + 1,
            time_left_s=deadline.left,
        )  # fmt: skip
        banks.append(bank)
        failed[part.asked] = bad
    if undecided:
        asked = np.concatenate(undecided)
        met = problem.find_met(pattern, deadline)
        r = problem.requests
        unmet = {(int(k), int(i)) for k, i in zip(r.attacker[~met], space.row[r.cell[~met]], strict=True)}
        attacker, row = space.requests[:2]
        failed[asked] = [(int(attacker[q]), int(row[q])) in unmet for q in asked]
    return PatternProof(space=space, parts=found, banks=banks, failed=failed)


def _select_valid_movements(space: PatternSpace, movements: FloatArray) -> FloatArray:
    """Those that satisfy the relations: rounding piles up in movements that were changed again and again."""
    A = space.variables.relations
    error, size = np.abs(A @ movements.T), abs(A) @ np.abs(movements).T
    return movements[(error <= 1e-9 * size).all(axis=0)]


def clean_pattern(proof: PatternProof, deadline: Deadline = NEVER) -> tuple[BoolArray, Movements]:
    """Return the pattern without what it does not need, heaviest classes first, and movements that prove it.

    Cells that cost nothing are published last, if they are not needed. What the deadline leaves untried stays.
    """
    from cellguard._core.patterns import clean as kernel

    space = proof.space
    open_rows = np.zeros(len(space), bool)
    least = 1e-9 * float(space.weight.max(initial=0.0)) + 1e-12
    banks = []
    for part, bank in zip(proof.parts, proof.banks, strict=True):
        left = np.zeros((0, len(part.rows)))
        if len(part.asked) and part.dense:
            weight = np.maximum(part.weight, least)
            left, Z, parameter, state, done = bank, part.Z, part.parameter, part.keep.astype(np.int64), False
            trouble = np.zeros(len(part.asked))
            while not done and not deadline.passed:
                state, Z, parameter, left, done = kernel(
                    Z, parameter, weight, state, part.low, part.high, part.known, part.requests,
                    left, np.inf, _TRIES, trouble, time_left_s=deadline.left,
                )  # fmt: skip
            open_rows[part.rows[state != 2]] = True
        elif len(part.asked):
            open_rows[part.rows] = True
        banks.append(left)
    return space.build_pattern(open_rows), (space, proof.spread(banks))

"""Witnesses: tables that prove a release safe, and their check by fractions alone.

A cell is safe when some table agrees with everything the attacker knows and has the cell at its
upper level, and another at its lower level. The check needs no solver and no tolerance but the one on
the levels, which is stated: relations hold exactly, bounds hold exactly. Numbers are taken as they
are printed, so 0.1 is a tenth. A file of witnesses holds confidential tables: keep it internal.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from cellguard.attacker import Attacker
from cellguard.exceptions import FormatError, ReleaseError
from cellguard.foreign import check_release
from cellguard.levels import (
    LEVEL_TOLERANCE,
    Levels,
    attackers_of,
    movement_levels,
    required_levels,
    with_respondents,
)
from cellguard.release import Adjustment, Release

__all__ = ["Proof", "Verification", "read_proofs", "verify", "write_proofs"]

_FORMAT = "cellguard witnesses 1"


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """What shows that a release withstands one attacker."""

    attacker: str
    """Name of the attacker."""
    cells: Sequence[int]
    """Cells that are shown safe."""
    low: Sequence[int]
    """For each of them the table in which it is at its lower level; -1: the true table itself."""
    high: Sequence[int]
    """For each of them the table in which it is at its upper level."""
    tables: Sequence[Mapping[int, Fraction]]
    """Values of the cells that differ from the true table."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """Whether witnesses prove a release safe."""

    checked: int
    """Cells to be protected, over all attackers."""
    tables: int
    """Tables that were checked."""
    problems: tuple[str, ...] = field(default=())
    """What is wrong, in the table's labels; never a value."""

    @property
    def accepted(self) -> bool:
        """Whether every cell is proven safe against every attacker; where none is sensitive, nothing is proven."""
        return not self.problems and self.checked > 0


# ---------------------------------------------------------------------- the check


def verify(release: Release, proofs: Sequence[Proof], *, integer: bool = False) -> Verification:
    """Check by exact arithmetic, without a solver, that the proofs show a release safe.

    What is published must first be a release of its kind: it contains the truth, adds up, keeps to the known
    bounds, is made of multiples (:func:`cellguard.foreign.check_release`). No proof is about anything else.

    Parameters
    ----------
    release
        What is published, with its table.
    proofs
        One for every attacker, see :func:`read_proofs`.
    integer
        Whether the tables must hold whole numbers only; those of a table of counts must in any case.
    """
    try:
        check_release(release)
    except ReleaseError as error:
        return Verification(checked=0, tables=0, problems=(error.message,))
    if isinstance(release, Adjustment):
        return _verify_adjustment(release)
    release = replace(release, table=with_respondents(release.table))
    table = release.table
    integer = integer or table.integer
    by_name = {proof.attacker: proof for proof in proofs}
    problems: list[str] = []
    checked = tables = 0
    for attacker in attackers_of(table):
        need = required_levels(table, attacker, everywhere=True)
        checked += len(need.cells)
        proof = by_name.get(attacker.name)
        if proof is None:
            problems.append(f"attacker {attacker.name!r}: no witnesses.")
            continue
        tables += len(proof.tables)
        check = _Check(release, attacker)
        for number, values in enumerate(proof.tables):
            problems += [f"attacker {attacker.name!r}, table {number}: {p}" for p in check.feasible(values, integer)]
        problems += [f"attacker {attacker.name!r}: {p}" for p in check.levels(proof, need)]
    return Verification(checked=checked, tables=tables, problems=tuple(problems))


class _Check:
    """The truth and the attacker's knowledge as fractions, converted cell by cell when they are needed."""

    def __init__(self, release: Release, attacker: Attacker) -> None:
        self.table = release.table
        self.lo, self.hi = release.published_bounds(attacker)
        self.as_it_is = release.as_it_is()
        self.columns = self.table.relations.tocsc()

    def truth(self, cell: int) -> Fraction:
        return _exact(self.table.values[cell])

    def feasible(self, values: Mapping[int, Fraction], integer: bool) -> Iterator[str]:
        """Say what is wrong with a table: cells outside their interval, relations that do not hold."""
        T = self.columns
        sums: dict[int, Fraction] = defaultdict(Fraction)
        for cell, value in values.items():
            if not 0 <= cell < self.table.n_cells:
                yield f"there is no cell {cell}."
                continue
            lo, hi = self.lo[cell], self.hi[cell]
            if (np.isfinite(lo) and value < _exact(lo)) or (np.isfinite(hi) and value > _exact(hi)):
                yield f"{self.table.label(cell)} is not in the interval that the attacker knows."
            if integer and value.denominator != 1:
                yield f"{self.table.label(cell)} is not a whole number."
            movement = value - self.truth(cell)
            span = slice(T.indptr[cell], T.indptr[cell + 1])
            for relation, coefficient in zip(T.indices[span].tolist(), T.data[span].tolist(), strict=True):
                sums[relation] += _exact(coefficient) * movement
        for relation, residual in sums.items():
            if residual:
                yield f"{self.table.relation_label(relation)} does not hold."

    def levels(self, proof: Proof, need: Levels) -> Iterator[str]:
        """Say which cells are not shown to reach their levels."""
        rows = {cell: (low, high) for cell, low, high in zip(proof.cells, proof.low, proof.high, strict=True)}
        keep, asked = 1 - LEVEL_TOLERANCE, need.any()
        for k, cell in enumerate(need.cells.tolist()):
            if cell not in rows or not all(-1 <= row < len(proof.tables) for row in rows[cell]):
                yield f"{self.table.label(cell)} has no witnesses."
                continue
            if self.as_it_is[cell] and asked[k]:
                yield f"{self.table.label(cell)} is published as it is."
            a = self.truth(cell)
            low, high = (proof.tables[row].get(cell, a) if row >= 0 else a for row in rows[cell])
            reached = (("lower", a - low, need.lower[k]), ("upper", high - a, need.upper[k]))
            for name, distance, level in (*reached, ("sliding", high - low, need.sliding[k])):
                if distance < _exact(level) * keep:
                    yield f"{self.table.label(cell)} does not reach its {name} level."


def _verify_adjustment(release: Adjustment) -> Verification:
    """Every sensitive cell at least its level away from the truth: the release is its own witness."""
    table = release.table
    keep = 1 - LEVEL_TOLERANCE
    checked, problems = 0, []
    for attacker in attackers_of(table):
        need = movement_levels(table, attacker)
        checked += len(need.cells)
        for k, cell in enumerate(need.cells.tolist()):
            moved = _exact(release.values[cell]) - _exact(table.values[cell])
            ways = ((moved, need.upper[k]), (-moved, need.lower[k]))
            if not any(np.isfinite(level) and distance >= _exact(level) * keep for distance, level in ways):
                problems.append(f"attacker {attacker.name!r}: {table.label(cell)} is too close to the truth.")
    return Verification(checked=checked, tables=1, problems=tuple(problems))


def _exact(number: float) -> Fraction:
    """Return the number as it is printed.

    >>> _exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(number)))


# ---------------------------------------------------------------------- files


def write_proofs(path: str | Path, release: Release, proofs: Sequence[Proof], *, integer: bool = False) -> None:
    """Write witnesses (``.json`` or ``.json.gz``), atomically: confidential, for :func:`verify` only."""
    from cellguard._io.files import atomic_writer

    content = {
        "format": _FORMAT,
        "confidential": True,
        "method": release.method,
        "cells": release.table.n_cells,
        "integer": integer,
        "attackers": [
            {
                "name": proof.attacker,
                "cells": list(proof.cells),
                "low": list(proof.low),
                "high": list(proof.high),
                "tables": [{str(cell): _text(value) for cell, value in t.items()} for t in proof.tables],
            }
            for proof in proofs
        ],
    }
    packed = json.dumps(content, indent=None, separators=(",", ":")).encode()
    if str(path).endswith(".gz"):
        packed = gzip.compress(packed, mtime=0)
    with atomic_writer(path, "wb", private=True) as stream:
        cast("IO[bytes]", stream).write(packed)


def _text(value: Fraction) -> str:
    """Write a fraction exactly: as a decimal where it is one.

    >>> _text(Fraction(25, 2)), _text(Fraction(1, 3)), _text(Fraction(-7))
    ('12.5', '1/3', '-7')
    """
    denominator = value.denominator
    for digits in range(19):
        if 10**digits % denominator == 0:
            whole = str(abs(value.numerator) * (10**digits // denominator)).rjust(digits + 1, "0")
            number = whole if digits == 0 else f"{whole[:-digits]}.{whole[-digits:]}"
            return ("-" if value < 0 else "") + number
    return str(value)


def read_proofs(path: str | Path, *, n_cells: int | None = None) -> tuple[list[Proof], bool]:
    """Read a file of witnesses; return the proofs, and whether their tables must hold whole numbers only."""
    from cellguard._io.files import read_bytes

    try:
        content = json.loads(read_bytes(path))
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise FormatError.at(path, None, "is not a file of witnesses.", hint=f"its format must be {_FORMAT!r}.")
        proofs = [_proof(entry) for entry in content["attackers"]]
        integer, cells = bool(content["integer"]), int(content["cells"])
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError.at(path, None, "is damaged, or was written by something else.") from None
    if n_cells is not None and cells != n_cells:
        raise FormatError.at(path, None, f"is for a table of {cells} cells, not of {n_cells}.")
    return proofs, integer


def _proof(entry: Any) -> Proof:
    lists = [entry[name] for name in ("cells", "low", "high")]
    if len({len(x) for x in lists}) != 1 or not all(type(i) is int for x in lists for i in x):
        raise ValueError
    tables = [{int(cell): _number(text) for cell, text in t.items()} for t in entry["tables"]]
    return Proof(attacker=str(entry["name"]), cells=lists[0], low=lists[1], high=lists[2], tables=tables)


def _number(text: Any) -> Fraction:
    """Read a decimal or a fraction of reasonable length: ``1e999999999`` would fill the memory."""
    if not isinstance(text, str) or len(text) > 400 or "e" in text.lower():
        raise ValueError
    return Fraction(text)

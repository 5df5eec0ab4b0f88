"""Witnesses: tables that prove a release safe, and their check by fractions alone.

A cell is safe when one table agrees with everything the attacker knows and has the cell at its upper level, and
another has it at its lower level. The check needs no solver, and its only tolerance is the stated one on the
levels: relations and bounds hold exactly. Numbers are taken as printed, so 0.1 is a tenth. A file of witnesses holds
confidential tables: keep it internal.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cellguard._engine.space.groups import find_groups
from cellguard._tolerances import LEVEL_TOLERANCE
from cellguard._types import IntArray
from cellguard.auditing.adjusted import view_as_pattern
from cellguard.auditing.whole_values import find_small_levels
from cellguard.exceptions import FormatError, ReleaseError
from cellguard.model.attacker import Attacker
from cellguard.model.levels import (
    Levels,
    add_respondents,
    compute_movement_levels,
    compute_required_levels,
    list_attackers,
)
from cellguard.release.readers.read_release import check_release_to_audit
from cellguard.release.release import Release

__all__ = ["Proof", "Verification", "list_audited_attackers", "read_witnesses", "verify", "write_witnesses"]

_FORMAT = "cellguard witnesses 2"
_OLDER = "cellguard witnesses 1"
"""In this format every attacker has separate tables."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """Proof that a release is safe against one attacker."""

    attacker: str
    """Name of the attacker."""
    cells: Sequence[int]
    """Cells that are shown safe."""
    low: Sequence[int]
    """For each of them the table in which it is at its lower level; -1: the true table itself."""
    high: Sequence[int]
    """For each of them the table in which it is at its upper level."""
    tables: Sequence[Mapping[int, Fraction]]
    """Values of the cells that differ from the true table; attackers may share them."""
    low_share: Sequence[Fraction] | None = None
    """How far from the true table towards `low`, for each cell; all the way by default."""
    high_share: Sequence[Fraction] | None = None
    """How far from the true table towards `high`, for each cell; all the way by default."""

    def list_ends(self) -> tuple[list[tuple[int, Fraction]], list[tuple[int, Fraction]]]:
        """Return the table of each cell and how far towards it, for the lower and for the upper level."""
        every = [Fraction(1)] * len(self.cells)
        low, high = self.low_share or every, self.high_share or every
        return list(zip(self.low, low, strict=True)), list(zip(self.high, high, strict=True))


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
        """Whether every cell is proven safe against every attacker; false if no cell is sensitive."""
        return not self.problems and self.checked > 0


# ---------------------------------------------------------------------- what is asked


def list_audited_attackers(release: Release, *, everywhere: bool = True) -> list[tuple[Attacker, Levels]]:
    """Return the attackers of a release and the levels that must hold against each.

    A respondent is checked for what their own knowledge can affect: cells connected, through relations and
    unpublished cells, with one of theirs. About all other cells they know only what every attacker knows.
    """
    table = release.table
    asked = [(a, compute_required_levels(table, a, everywhere=everywhere)) for a in list_attackers(table)]
    if not everywhere or not any(a.derived for a, _ in asked):
        return [(a, need) for a, need in asked if len(need.cells) or not a.derived]
    part = _find_withheld_components(release)
    out = []
    for attacker, need in asked:
        if attacker.derived:
            touched = np.unique(part[attacker.cells])
            need = need.select(np.isin(part[need.cells], touched[touched >= 0]))  # noqa: PLW2901 - narrowed
        if len(need.cells) or not attacker.derived:
            out.append((attacker, need))
    return out


def _find_withheld_components(release: Release) -> IntArray:
    """Return for each unpublished cell the number of its connected part of the table; -1 for published cells."""
    table = release.table
    lo, hi = release.published_bounds()
    free = hi > lo
    T = table.relations.tocoo()
    relation, cell = T.coords
    inside = free[cell]
    component = find_groups(cell[inside], table.n_cells + relation[inside], table.n_cells + table.n_relations)
    return np.where(free, component[: table.n_cells], -1)


# ---------------------------------------------------------------------- the check


def verify(release: Release, proofs: Sequence[Proof], *, integer: bool = False) -> Verification:
    """Check by exact arithmetic, without a solver, that the proofs show a release safe.

    What is published must first be a valid release of its kind: it contains the truth, adds up, respects the known
    bounds, and consists of multiples (`check_release_to_audit`). The proofs cover only such releases.

    Parameters
    ----------
    release
        What is published, with its table.
    proofs
        One for every attacker, see :func:`read_witnesses`.
    integer
        Whether the tables must hold whole numbers only; those of a table of counts must in any case.
    """
    try:
        check_release_to_audit(release)
    except ReleaseError as error:
        return Verification(checked=0, tables=0, problems=(error.message,))
    if not release.by_ranges:
        moved, pattern = _verify_release_as_witness(release), view_as_pattern(release.table, release.get_point_values())
        if pattern is None:
            return moved
        computed = _verify_ranges(pattern, proofs, integer=integer)
        return replace(computed, checked=moved.checked, problems=(*moved.problems, *computed.problems))
    return _verify_ranges(replace(release, table=add_respondents(release.table)), proofs, integer=integer)


def _verify_ranges(release: Release, proofs: Sequence[Proof], *, integer: bool) -> Verification:
    """Check that the proofs show every range wide enough, for every attacker of the release's table."""
    table = release.table
    integer = integer or table.integer
    by_name = {proof.attacker: proof for proof in proofs}
    check = _Check(release, integer=integer)
    checked = 0
    for attacker, need in list_audited_attackers(release):
        checked += len(need.cells)
        proof = by_name.get(attacker.name)
        if proof is None:
            check.problems.append(f"attacker {attacker.name!r}: no witnesses.")
            continue
        check.check_tables(proof.tables)
        found = (
            *check.check_knowledge(attacker, proof),
            *check.check_levels(proof, need),
            *check.find_small_levels(proof, need),
        )
        check.problems += [f"attacker {attacker.name!r}: {p}" for p in found]
    return Verification(checked=checked, tables=check.n_tables, problems=tuple(check.problems))


class _Check:
    """The truth and what is published as fractions, converted cell by cell when needed."""

    def __init__(self, release: Release, *, integer: bool) -> None:
        self.table = release.table
        self.whole = np.ones(self.table.n_cells, bool) if integer else self.table.count_cells
        self.lo, self.hi = release.published_bounds()
        self.unchanged = release.find_unchanged()
        self.columns = self.table.relations.tocsc()
        self.n_tables = 0
        self.problems: list[str] = []
        self._seen: list[Sequence[Mapping[int, Fraction]]] = []
        self._truth_inside: dict[int, bool] = {}

    def get_truth(self, cell: int) -> Fraction:
        return _convert_to_fraction(self.table.values[cell])

    def check_tables(self, tables: Sequence[Mapping[int, Fraction]]) -> None:
        """Check tables against what every attacker knows, once for all attackers who share them."""
        if any(tables is seen for seen in self._seen):
            return
        self._seen.append(tables)
        for number, values in enumerate(tables):
            self.problems += [f"table {self.n_tables + number}: {p}" for p in self.check_feasible(values)]
        self.n_tables += len(tables)

    def check_feasible(self, values: Mapping[int, Fraction]) -> Iterator[str]:
        """Yield what is wrong with a table: cells outside their interval, relations that do not hold."""
        T = self.columns
        sums: dict[int, Fraction] = defaultdict(Fraction)
        for cell, value in values.items():
            if not 0 <= cell < self.table.n_cells:
                yield f"there is no cell {cell}."
                continue
            if not _is_in_interval(value, self.lo[cell], self.hi[cell]):
                yield f"{self.table.label(cell)} is not in the interval that every attacker knows."
            if self.whole[cell] and value.denominator != 1:
                yield f"{self.table.label(cell)} is not a whole number."
            movement = value - self.get_truth(cell)
            span = slice(T.indptr[cell], T.indptr[cell + 1])
            for relation, coefficient in zip(T.indices[span].tolist(), T.data[span].tolist(), strict=True):
                sums[relation] += _convert_to_fraction(coefficient) * movement
        for relation, residual in sums.items():
            if residual:
                yield f"{self.table.describe_relation(relation)} does not hold."

    def check_knowledge(self, attacker: Attacker, proof: Proof) -> Iterator[str]:
        """Yield what is wrong with the tables that an attacker uses, at the share of the way that they use."""
        known = list(zip(attacker.cells.tolist(), attacker.lb.tolist(), attacker.ub.tolist(), strict=True))
        low, high = proof.list_ends()
        for row, share in sorted({*low, *high}):
            if not -1 < row < len(proof.tables):
                continue
            values = proof.tables[row]
            if not 0 <= share <= 1:
                yield f"table {row} is used beyond its end."
            if share != 1:
                yield from self._check_between(values, share)
            for cell, lo, hi in known:
                a = self.get_truth(cell)
                if cell in values and not _is_in_interval(a + share * (values[cell] - a), lo, hi):
                    yield f"{self.table.label(cell)} is not in the interval that the attacker knows, in table {row}."

    def _check_between(self, values: Mapping[int, Fraction], share: Fraction) -> Iterator[str]:
        """Yield what is wrong with a table between the true one and another.

        Intervals that contain both tables contain it. Whether they contain the truth is checked once.
        """
        if id(values) not in self._truth_inside:
            cells = (cell for cell in values if 0 <= cell < self.table.n_cells)
            self._truth_inside[id(values)] = all(
                _is_in_interval(self.get_truth(c), self.lo[c], self.hi[c]) for c in cells
            )
        if not self._truth_inside[id(values)]:
            yield "a true value is not in its interval: the tables in between are not proven possible."
        if any(self.whole[c] and (share * (v - self.get_truth(c))).denominator != 1 for c, v in values.items()):
            yield "a table part of the way to one of whole numbers is not whole."

    def find_small_levels(self, proof: Proof, need: Levels) -> Iterator[str]:
        """Say which levels of a few units are shown by tables with fractions, where values are whole."""
        small = need.cells[find_small_levels(self.table, need)].tolist()
        rows = dict(zip(proof.cells, zip(*proof.list_ends(), strict=True), strict=True)) if small else {}
        whole, known = self.table.whole_cells, dict[tuple[int, Fraction], bool]()
        for cell in small:
            for row, share in rows.get(cell, ()):
                if not 0 <= row < len(proof.tables):
                    continue
                if (row, share) not in known:
                    moved = ((c, v) for c, v in proof.tables[row].items() if 0 <= c < len(whole) and whole[c])
                    known[row, share] = all((share * (v - self.get_truth(c))).denominator == 1 for c, v in moved)
                if not known[row, share]:
                    yield f"{self.table.label(cell)} is shown by a table that is not of whole numbers."

    def check_levels(self, proof: Proof, need: Levels) -> Iterator[str]:
        """Yield the cells that are not shown to reach their levels."""
        rows = dict(zip(proof.cells, zip(*proof.list_ends(), strict=True), strict=True))
        keep, asked = 1 - LEVEL_TOLERANCE, need.any()
        for k, cell in enumerate(need.cells.tolist()):
            if cell not in rows or not all(-1 <= row < len(proof.tables) for row, _ in rows[cell]):
                yield f"{self.table.label(cell)} has no witnesses."
                continue
            if self.unchanged[cell] and asked[k]:
                yield f"{self.table.label(cell)} is published unchanged."
            a = self.get_truth(cell)
            down, up = (share * (proof.tables[row].get(cell, a) - a) if row >= 0 else 0 for row, share in rows[cell])
            reached = (("lower", -down, need.lower[k]), ("upper", up, need.upper[k]))
            for name, distance, level in (*reached, ("sliding", up - down, need.sliding[k])):
                if distance < _convert_to_fraction(level) * keep:
                    yield f"{self.table.label(cell)} does not reach its {name} level."


def _is_in_interval(value: Fraction, lo: float, hi: float) -> bool:
    """Return whether a number is in an interval; an infinite end is no bound."""
    return not (
        (np.isfinite(lo) and value < _convert_to_fraction(lo)) or (np.isfinite(hi) and value > _convert_to_fraction(hi))
    )


def _verify_release_as_witness(release: Release) -> Verification:
    """Check that every sensitive cell is at least its level away from the truth: the release is its own witness."""
    table = release.table
    keep, published = 1 - LEVEL_TOLERANCE, release.get_point_values()
    checked, problems = 0, []
    for attacker in list_attackers(table):
        need = compute_movement_levels(table, attacker)
        checked += len(need.cells)
        for k, cell in enumerate(need.cells.tolist()):
            moved = _convert_to_fraction(published[cell]) - _convert_to_fraction(table.values[cell])
            ways = ((moved, need.upper[k]), (-moved, need.lower[k]))
            if not any(
                np.isfinite(level) and distance >= _convert_to_fraction(level) * keep for distance, level in ways
            ):
                problems.append(f"attacker {attacker.name!r}: {table.label(cell)} is too close to the truth.")
    return Verification(checked=checked, tables=1, problems=tuple(problems))


def _convert_to_fraction(number: float) -> Fraction:
    """Return the number exactly as printed.

    >>> _convert_to_fraction(0.1)
    Fraction(1, 10)
    """
    return Fraction(repr(float(number)))


# ---------------------------------------------------------------------- files


def write_witnesses(path: str | Path, release: Release, proofs: Sequence[Proof], *, integer: bool = False) -> None:
    """Write witnesses (``.json`` or ``.json.gz``) atomically: confidential, for :func:`verify` only."""
    from cellguard._io.files import open_atomically

    tables, begins = _collect_distinct_tables(proofs)
    content = {
        "format": _FORMAT,
        "confidential": True,
        "method": release.method,
        "cells": release.table.n_cells,
        "integer": integer,
        "tables": [{str(cell): _format_fraction(value) for cell, value in t.items()} for t in tables],
        "attackers": [_format_proof(proof, first) for proof, first in zip(proofs, begins, strict=True)],
    }
    packed = json.dumps(content, indent=None, separators=(",", ":")).encode()
    if str(path).endswith(".gz"):
        packed = gzip.compress(packed, mtime=0)
    with open_atomically(path, private=True) as stream:
        stream.write(packed)


def _collect_distinct_tables(proofs: Sequence[Proof]) -> tuple[list[Mapping[int, Fraction]], list[int]]:
    """Return all distinct tables, and where the tables of each proof begin."""
    tables: list[Mapping[int, Fraction]] = []
    place: dict[int, int] = {}
    for proof in proofs:
        if id(proof.tables) not in place:
            place[id(proof.tables)] = len(tables)
            tables += proof.tables
    return tables, [place[id(proof.tables)] for proof in proofs]


def _format_proof(proof: Proof, first: int) -> dict[str, Any]:
    """Format a proof whose tables begin at the given place; list shares only if one is not the whole way."""
    entry: dict[str, Any] = {"name": proof.attacker, "cells": list(proof.cells)}
    for name, rows, share in (("low", proof.low, proof.low_share), ("high", proof.high, proof.high_share)):
        entry[name] = [row + first if row >= 0 else row for row in rows]
        if share is not None and any(x != 1 for x in share):
            entry[f"{name}_share"] = [_format_fraction(x) for x in share]
    return entry


def _format_fraction(value: Fraction) -> str:
    """Format a fraction exactly: as a decimal if possible.

    >>> [_format_fraction(number) for number in (Fraction(25, 2), Fraction(1, 3), Fraction(-7))]
    ['12.5', '1/3', '-7']
    """
    denominator = value.denominator
    for digits in range(19):
        if 10**digits % denominator == 0:
            whole = str(abs(value.numerator) * (10**digits // denominator)).rjust(digits + 1, "0")
            number = whole if digits == 0 else f"{whole[:-digits]}.{whole[-digits:]}"
            return ("-" if value < 0 else "") + number
    return str(value)


def read_witnesses(path: str | Path, *, n_cells: int | None = None) -> tuple[list[Proof], bool]:
    """Read a file of witnesses; return the proofs, and whether their tables must hold whole numbers only."""
    from cellguard._io.files import read_bytes

    try:
        content = json.loads(read_bytes(path))
        kind = content.get("format") if isinstance(content, dict) else None
        if kind not in (_FORMAT, _OLDER):
            raise FormatError.at(path, None, "is not a file of witnesses.", hint=f"its format must be {_FORMAT!r}.")
        shared = None if kind == _OLDER else _read_witness_tables(content["tables"])
        proofs = [_read_witness_entry(entry, shared) for entry in content["attackers"]]
        integer, cells = bool(content["integer"]), int(content["cells"])
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError.at(path, None, "is damaged, or was written by another program.") from None
    if n_cells is not None and cells != n_cells:
        raise FormatError.at(path, None, f"is for a table of {cells} cells, not of {n_cells}.")
    return proofs, integer


def _read_witness_entry(entry: Any, shared: list[dict[int, Fraction]] | None) -> Proof:
    lists = [entry[name] for name in ("cells", "low", "high")]
    if len({len(x) for x in lists}) != 1 or not all(type(i) is int for x in lists for i in x):
        raise ValueError
    shares = [
        [_read_witness_fraction(x) for x in entry[name]] if name in entry else None
        for name in ("low_share", "high_share")
    ]
    if any(x is not None and len(x) != len(lists[0]) for x in shares):
        raise ValueError
    return Proof(
        attacker=str(entry["name"]),
        cells=lists[0],
        low=lists[1],
        high=lists[2],
        tables=_read_witness_tables(entry["tables"]) if shared is None else shared,
        low_share=shares[0],
        high_share=shares[1],
    )


def _read_witness_tables(entries: Any) -> list[dict[int, Fraction]]:
    return [{int(cell): _read_witness_fraction(text) for cell, text in t.items()} for t in entries]


def _read_witness_fraction(text: Any) -> Fraction:
    """Read a decimal or a fraction of reasonable length: ``1e999999999`` would exhaust the memory."""
    if not isinstance(text, str) or len(text) > 400 or "e" in text.lower():
        raise ValueError
    return Fraction(text)

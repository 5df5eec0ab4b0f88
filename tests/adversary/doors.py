"""Every door: files that other programs might have written, and proofs that do not fit, must be refused."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import cellguard as cg
from adversary.cases import Case
from adversary.checker import Violation
from adversary.written import find_cells

Row = dict[str, str]


def doors(made: Case, release: Any, path: Path, rng: np.random.Generator, figures: Counter[str]) -> Iterable[Violation]:
    """Damage a release's file in every way that fits its kind; each must be refused or counted."""
    if not made.table.sensitive.any():
        return
    for name, change, options in _damages(made, release, rng):
        other = path.with_name("damaged.csv")
        if not _rewrite(made.table, path, other, change):
            continue
        figures["files of others"] += 1
        problem = accepted(made.table, other, options)
        if problem:
            yield Violation("door", f"{name}: {problem}")
    yield from _proofs(release, figures)


def accepted(table: cg.Table, path: Path, options: dict[str, Any]) -> str:
    """Say what is wrong if the audit accepts a file that it must refuse; empty if it does refuse."""
    try:
        found = cg.audit(cg.read_release(table, path, **options))
    except cg.CellguardError as error:
        return told(table, str(error))
    except Exception as error:  # noqa: BLE001 - a finding
        return f"crash: {type(error).__name__}: {error}"
    return "audited safe" if found.safe else ""


def told(table: cg.Table, text: str) -> str:
    """Say whether a text shows a sensitive value: five digits of it, or more."""
    words = "".join(c if c.isdigit() or c in ".e-+" else " " for c in text).split()
    for word in words:
        try:
            number = float(word.rstrip("."))
        except ValueError:
            continue
        digits = len(word.replace(".", "").lstrip("-0"))
        if digits >= 5 and number in set(table.values[table.sensitive].tolist()):
            return "the message shows a sensitive value"
    return ""


def _rewrite(table: cg.Table, path: Path, other: Path, change: Callable[[int, Row], Row]) -> bool:
    """Write a file with changed rows, each by its cell; say whether there is a difference."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    new = [change(i, dict(row)) for i, row in zip(find_cells(table, rows), rows, strict=True)]
    if new == rows:
        return False
    with other.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(new[0]))
        writer.writeheader()
        writer.writerows(new)
    return True


Damage = tuple[str, Callable[[int, Row], Row], dict[str, Any]]


def _damages(made: Case, release: Any, rng: np.random.Generator) -> list[Damage]:
    table = made.table
    truth = [repr(float(a)) for a in table.values]
    first = int(np.flatnonzero(table.sensitive)[0])

    def beside(column: str, others: str = "") -> Callable[[int, Row], Row]:
        return lambda i, row: row | {column: truth[i] if table.sensitive[i] else row.get(column) or others}

    if release.method == "suppress":
        return [
            ("a withheld cell carries its value beside the mark", beside("value"), {}),
            ("a second column of values", beside("published"), {}),
            ("a withheld cell is published", lambda i, r: r | ({"status": "published", "value": truth[i]} if i == first else {}), {}),
        ]  # fmt: skip
    if release.method == "intervals":
        return [
            ("intervals with a column of true values", lambda i, r: r | {"value": truth[i]}, {}),
            ("an interval beside the truth", lambda i, r: r | (_beside(table.values[i]) if i == first else {}), {}),
            ("a sensitive cell as a point", lambda i, r: r | ({"lower": truth[i], "upper": truth[i]} if i == first else {}), {}),
        ]  # fmt: skip
    if release.method == "round":
        base = float(np.asarray(release.base).flat[0])
        options = {"method": "round", "base": base, "step": release.step}
        if any((a / base) % 1 for a in table.values[~table.fixed]):
            return [("the truth as a rounded file", lambda i, r: r | {"value": truth[i]}, options)]
    if release.method == "adjust":
        much = 1e6 + 1e-3 * float(np.abs(release.values).max())  # more than what large values may miss by their digits
        moved = lambda i, r: r | ({"value": repr(float(r["value"]) + much)} if i == first else {})  # noqa: E731
        out = [("the truth as an adjusted file", lambda i, r: r | {"value": truth[i]}, {"method": "adjust"})]
        related = np.unique(table.relations.indices)
        return out + ([("an adjustment that does not add up", moved, {"method": "adjust"})] if first in related else [])
    return []


def _beside(value: float) -> Row:
    size = max(1.0, abs(value))
    return {"lower": repr(float(value + size)), "upper": repr(float(value + 3 * size))}


def _proofs(release: Any, figures: Counter[str]) -> Iterable[Violation]:
    """Witnesses of one release do not prove another: an interval that excludes the truth, a table that does not add up."""
    table = release.table
    try:
        found = release.audit()
        proofs = list(found.witnesses.values())
        if release.method == "intervals":
            first = int(np.flatnonzero(table.sensitive)[0])
            lower, upper = np.array(release.lower), np.array(release.upper)
            lower[first], upper[first] = table.values[first] + 1, table.values[first] + 1e6
            other = replace(release, lower=lower, upper=upper)
        elif release.method == "adjust":
            values = np.array(release.values)
            values[np.unique(table.relations.indices)[:1]] += 1e6 + 1e-3 * np.abs(values).max()  # to be noticed
            if not table.n_relations:
                return
            other = replace(release, values=values)
        else:
            return
        figures["proofs of others"] += 1
        if cg.verify(other, proofs).accepted:
            yield Violation("verify", f"{release.method}: accepted although it does not fit its table")
    except cg.CellguardError:
        return

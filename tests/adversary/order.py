"""The order of rows: it must follow codes, never the sizes of what is withheld.

A file that came sorted by turnover and is published in that order puts every withheld cell between its neighbours.
Rows are in the order of the dimensions, and of their codes: of a hierarchy that somebody wrote, its own order;
otherwise sorted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from adversary.cases import Case
from adversary.checker import Violation

TOTAL = "Total"


def find_order(made: Case, path: Path) -> Iterator[Violation]:
    """Find rows in another order than that of their codes, for tables whose codes come from the data alone."""
    if not ("ready" in made.what or made.records):
        return
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    names = [name for name in made.table.dimensions if name != "indicator"]
    for indicator in dict.fromkeys(row.get("indicator") for row in rows):
        leaves = [tuple(row[n] for n in names) for row in rows if row.get("indicator") == indicator]
        leaves = [codes for codes in leaves if TOTAL not in codes]
        if leaves != sorted(leaves):
            yield Violation("order", "rows are in another order than their codes")

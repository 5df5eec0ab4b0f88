"""Tables in memory: made from the job once, and again only where something changed.

What is heavy to load is loaded with the first table: the first page comes at once.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellguard._types import IntArray
    from cellguard.nouns.table import Table
    from cellguard.publish.read import JobFile

__all__ = ["Tables", "rule_counts_for_browser"]

_KEPT = 3
"""Tables kept: the one of the page that is open, and two releases side by side."""
_MOST_CODES = 15
_MADE_FROM = {"name", "data", "dimensions", "tables", "indicators", "equations", "tolerance", "limits"}
"""Sections of the job that decide the cells; rules and levels only mark them."""


class Tables:
    """The tables that were made last; others are made again when they are asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, Any] = OrderedDict()

    def tabulated(self, file: JobFile) -> Any:
        """Return the cells of a job."""
        from cellguard.publish.tables import tabulated_by_job, top_needed_by_job

        content = [file.job.model_dump(mode="json", include=_MADE_FROM), top_needed_by_job(file.job)]
        return self._made_once("cells", file, content, lambda: tabulated_by_job(file))

    def flagged(self, file: JobFile) -> Table:
        """Return the cells of a job with the sensitive ones marked."""
        from cellguard.publish.flags import flagged_by_job

        content = file.job.model_dump(mode="json")
        table: Table = self._made_once("table", file, content, lambda: flagged_by_job(self.tabulated(file), file))
        return table

    def _made_once(self, kind: str, file: JobFile, content: Any, make: Callable[[], Any]) -> Any:
        """Return what was made of this content and of these versions of the job's files, made where it is not there."""
        from cellguard.publish.steps import inputs_of_job

        versions = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in inputs_of_job(file)]
        key = json.dumps([kind, str(file.path.parent), content, versions], sort_keys=True)
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        made = make()
        with self._lock:
            self._found[key] = made
            while len(self._found) > 2 * _KEPT:
                self._found.popitem(last=False)
        return made


def rule_counts_for_browser(table: Table) -> dict[str, Any]:
    """Return how many cells each rule flags, and where the sensitive cells are."""
    found = _flags_shown_in_browser(table)
    return {
        "cells": table.n_cells,
        "relations": table.n_relations,
        "sensitive": int(table.sensitive.sum()),
        "rules": [{"name": name, "reason": reason, "cells": len(cells)} for name, reason, cells in found],
        "dimensions": [_sensitive_codes_for_browser(table, d, found) for d in range(len(table.dimensions))],
    }


def _flags_shown_in_browser(table: Table) -> list[tuple[str, str, IntArray]]:
    """Return each rule with its reason and the cells it flags; a cell that tables share is flagged once."""
    import numpy as np

    if table.parts is None:
        parts = [(table.flags, np.arange(table.n_cells))]
    else:
        parts = [(part.table.flags, part.cells) for part in table.parts]
    found: dict[tuple[str, str], list[IntArray]] = {}
    for flags, places in parts:
        for name, reason, cells in zip(flags.names, flags.reasons, flags.flagged, strict=True) if flags else ():
            found.setdefault((name, reason), []).append(places[np.asarray(cells, np.int64)])
    return [(name, reason, np.unique(np.concatenate(cells))) for (name, reason), cells in found.items()]


def _sensitive_codes_for_browser(table: Table, d: int, found: list[tuple[str, str, IntArray]]) -> dict[str, Any]:
    """Count the sensitive cells of each code of a dimension, all and by rule, the fullest first; without its total."""
    import numpy as np

    n, codes = len(table.codes[d]), table.coordinates[:, d]
    counts = np.bincount(codes[table.sensitive], minlength=n)
    rules = [np.bincount(codes[cells], minlength=n) for _, _, cells in found]
    order = [i for i in np.argsort(-counts, kind="stable").tolist() if i and counts[i]][:_MOST_CODES]
    shown = [[table.codes[d][i], int(counts[i]), [int(rule[i]) for rule in rules]] for i in order]
    return {"name": table.dimensions[d], "codes": shown}

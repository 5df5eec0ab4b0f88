"""Tables in memory: made from the job once, and again only after a change.

Heavy modules are loaded with the first table, so that the first page appears at once.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cellguard._types import IntArray
    from cellguard.jobs.definition.read import JobFile
    from cellguard.model.table import Table

__all__ = ["Tables", "count_flagged_cells"]

_KEPT = 3
"""Number of tables kept: the one of the open page, and two releases side by side."""
_MOST_CODES = 15
_MADE_FROM = {"name", "data", "dimensions", "tables", "indicators", "equations", "tolerance", "limits"}
"""Sections of the job that determine the cells; rules and levels only mark them."""


class Tables:
    """The most recent tables; others are made again on request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: OrderedDict[str, Any] = OrderedDict()

    def get_tabulated(self, file: JobFile) -> Any:
        """Return the cells of a job."""
        from cellguard.jobs.tables import count_needed_contributions, tabulate_job

        content = [file.job.model_dump(mode="json", include=_MADE_FROM), count_needed_contributions(file.job)]
        return self._make_once("cells", file, content, lambda: tabulate_job(file))

    def get_flagged(self, file: JobFile) -> Table:
        """Return the cells of a job with the sensitive ones marked."""
        from cellguard.jobs.flags import flag_job

        content = file.job.model_dump(mode="json")
        table: Table = self._make_once("table", file, content, lambda: flag_job(self.get_tabulated(file), file))
        return table

    def _make_once(self, kind: str, file: JobFile, content: Any, make: Callable[[], Any]) -> Any:
        """Return the object for this content and these versions of the job's files; make it if necessary."""
        from cellguard.jobs.steps import list_inputs

        versions = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in list_inputs(file)]
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


def count_flagged_cells(table: Table) -> dict[str, Any]:
    """Return the number of cells that each rule flags, and where the sensitive cells are."""
    found = _list_flags(table)
    return {
        "cells": table.n_cells,
        "relations": table.n_relations,
        "sensitive": int(table.sensitive.sum()),
        "rules": [{"name": name, "reason": reason, "cells": len(cells)} for name, reason, cells in found],
        "dimensions": [_count_sensitive_codes(table, d, found) for d in range(len(table.dimensions))],
    }


def _list_flags(table: Table) -> list[tuple[str, str, IntArray]]:
    """Return each rule with its reason and the cells it flags; count a shared cell once."""
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


def _count_sensitive_codes(table: Table, d: int, found: list[tuple[str, str, IntArray]]) -> dict[str, Any]:
    """Count the sensitive cells of each code of a dimension except the total, in all and by rule, largest first."""
    import numpy as np

    n, codes = len(table.codes[d]), table.coordinates[:, d]
    counts = np.bincount(codes[table.sensitive], minlength=n)
    rules = [np.bincount(codes[cells], minlength=n) for _, _, cells in found]
    order = [i for i in np.argsort(-counts, kind="stable").tolist() if i and counts[i]][:_MOST_CODES]
    shown = [[table.codes[d][i], int(counts[i]), [int(rule[i]) for rule in rules]] for i in order]
    return {"name": table.dimensions[d], "codes": shown}

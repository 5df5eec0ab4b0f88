"""``cellguard info``: describe a table and report its mistakes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cellguard._types import BoolArray
from cellguard.cli.support.options import Internal, Json, TableAsked, TableFile
from cellguard.cli.support.printing import print_json, print_pairs, redirect_library_output

if TYPE_CHECKING:
    from cellguard.model.table import Table

__all__ = ["collect_facts", "command"]


def command(table: TableFile, internal: Internal = False, as_json: Json = False) -> None:
    """Describe a table: cells, relations, rank, sensitive cells and their levels, and possible mistakes.

    A file that is not a valid table is refused with exit code 1 and the place of its mistake.
    """
    start = time.perf_counter()
    with redirect_library_output(as_json):
        loaded = TableAsked(path=table).load()
        read = time.perf_counter()
        facts = collect_facts(loaded)
    if not internal:  # the ratio of level to value reveals the rule's parameter
        facts["levels"] = {kind: {"cells": level["cells"]} for kind, level in facts["levels"].items()}
    end = time.perf_counter()
    facts["seconds"] = {"total": end - start, "read": read - start, "reduce": end - read}
    if as_json:
        print_json({"file": table.name, **facts})
        return
    facts["levels"] = [_format_level(kind, level) for kind, level in facts["levels"].items()]
    print_pairs(table.name, {name: fact for name, fact in facts.items() if fact not in ({}, [])})


def _format_level(kind: str, level: dict[str, float]) -> str:
    if not level["cells"]:
        return f"{kind}: none"
    if len(level) == 1:
        return f"{kind}: {level['cells']:,} cells"
    shares = " to ".join(f"{100 * level[f'{which}_share']:.3g}%" for which in ("least", "most"))
    return f"{kind}: {level['cells']:,} cells, {shares} of the value"


def collect_facts(table: Table) -> dict[str, Any]:
    """Return the facts that determine how hard a table is to protect."""
    import numpy as np

    from cellguard._engine.space.reduce import reduce

    whole = reduce(table.relations)
    movable = reduce(table.relations, ~table.fixed) if table.fixed.any() else whole
    return {
        "name": table.name,
        "cells": table.n_cells,
        "relations": table.n_relations,
        "nonzeros": int(table.relations.nnz),
        "rank": whole.rank,
        "degrees_of_freedom": whole.degrees_of_freedom,
        "components": whole.n_components,
        "sensitive": int(table.sensitive.sum()),
        "fixed": int(table.fixed.sum()),
        "zeros": int(np.count_nonzero(table.values == 0)),
        "dimensions": {name: len(codes) for name, codes in zip(table.dimensions, table.codes, strict=True)},
        "attackers": [attacker.name for attacker in table.attackers],
        "levels": _describe_levels(table),
        "problems": _find_probable_mistakes(table, movable.determined),
    }


def _describe_levels(table: Table) -> dict[str, dict[str, float]]:
    """Return the number of sensitive cells with each kind of level, and the levels as shares of the value."""
    import numpy as np

    out: dict[str, dict[str, float]] = {}
    for kind in ("lower", "upper", "sliding"):
        level = getattr(table, kind)
        share = level[level > 0] / np.maximum(np.abs(table.values[level > 0]), 1e-300)
        out[kind] = {"cells": len(share)}
        if len(share):
            figures = zip(("least", "median", "most"), np.quantile(share, [0.0, 0.5, 1.0]), strict=True)
            out[kind] |= {f"{name}_share": float(figure) for name, figure in figures}
    return out


def _find_probable_mistakes(table: Table, determined: BoolArray) -> list[str]:
    """Return probable mistakes of a valid table, in words, with the first cell of each kind."""
    import numpy as np

    T = table.relations
    lonely = np.ones(table.n_cells, bool)
    lonely[T.indices] = False
    level = np.maximum(np.maximum(table.lower, table.upper), table.sliding)
    found = {
        "sensitive and disclosed by relations and fixed cells, whatever is done": table.sensitive & determined,
        "sensitive and already known exactly from its bounds": table.sensitive & (table.lb == table.ub),
        "sensitive without any level": table.sensitive & (level == 0),
        "in no relation": lonely,
    }
    problems = [
        f"{int(cells.sum())} cells are {what}; the first is {table.label(int(np.argmax(cells)))}."
        for what, cells in found.items()
        if cells.any()
    ]
    empty = np.diff(T.indptr) == 0
    if empty.any():
        problems.append(f"{int(empty.sum())} relations name no cell; the first is relation {int(np.argmax(empty))}.")
    if not table.sensitive.any():
        problems.append("no cell is sensitive: there is nothing to protect.")
    return problems

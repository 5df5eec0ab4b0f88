"""``cellguard info``: what a table is, and what is wrong with it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from cellguard._types import BoolArray
from cellguard.cli._options import Internal, Json, TableAsked, TableFile
from cellguard.cli._printing import only_json_on_stdout, print_json, print_pairs

if TYPE_CHECKING:
    from cellguard.nouns.table import Table

__all__ = ["command", "info_of_table"]


def command(table: TableFile, internal: Internal = False, as_json: Json = False) -> None:
    """Say what a table is: cells, relations, rank, sensitive cells and their levels, and what is wrong with it.

    A file that is no valid table is refused with exit code 1 and the place of its mistake.
    """
    start = time.perf_counter()
    with only_json_on_stdout(as_json):
        loaded = TableAsked(path=table).load()
        read = time.perf_counter()
        facts = info_of_table(loaded)
    if not internal:  # which share of the value a level is gives the rule's parameter away
        facts["levels"] = {kind: {"cells": level["cells"]} for kind, level in facts["levels"].items()}
    end = time.perf_counter()
    facts["seconds"] = {"total": end - start, "read": read - start, "reduce": end - read}
    if as_json:
        print_json({"file": table.name, **facts})
        return
    facts["levels"] = [_printed_level(kind, level) for kind, level in facts["levels"].items()]
    print_pairs(table.name, {name: fact for name, fact in facts.items() if fact not in ({}, [])})


def _printed_level(kind: str, level: dict[str, float]) -> str:
    if not level["cells"]:
        return f"{kind}: none"
    if len(level) == 1:
        return f"{kind}: {level['cells']:,} cells"
    shares = " to ".join(f"{100 * level[f'{which}_share']:.3g}%" for which in ("least", "most"))
    return f"{kind}: {level['cells']:,} cells, {shares} of the value"


def info_of_table(table: Table) -> dict[str, Any]:
    """Return the facts about a table that decide how hard it is to protect."""
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
        "levels": _levels_in_info(table),
        "problems": _mistakes_in_info(table, movable.determined),
    }


def _levels_in_info(table: Table) -> dict[str, dict[str, float]]:
    """How many sensitive cells have each kind of level, and which shares of the value the levels are."""
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


def _mistakes_in_info(table: Table, determined: BoolArray) -> list[str]:
    """Say what is allowed in a table and yet probably a mistake, in words, with the first cell of each kind."""
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

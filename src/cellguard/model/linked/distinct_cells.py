"""Convert the tables of a publication to one system of distinct cells, and extract parts of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.space.cell_grid import (
    build_grid_relations,
    compute_grid_keys,
    find_grid_places,
    merge_distinct_cells,
)
from cellguard._engine.space.cross import Cross, derive_cross_relations, filter_informative_crosses, find_crosses
from cellguard._engine.space.groups import find_groups
from cellguard._tolerances import SAME_VALUE
from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray
from cellguard.exceptions import AdditivityError, CellguardError, InputError, PublicationError
from cellguard.model.checks import CELL_ARRAYS, compute_residuals_and_noise
from cellguard.model.levels import get_smallest_widths, keep_level_widths_of_table
from cellguard.model.linked.cross import (
    find_known_zeros,
    restrict_crosses,
    select_true_relations,
    split_crosses_by_size,
)
from cellguard.model.linked.join import drop_repeated_relations, join_fields, number_relation_cells
from cellguard.model.linked.meanings import Meanings
from cellguard.model.linked.reconcile import reconcile_additively, reconcile_shared_values
from cellguard.model.sources.assemble import format_cell_name
from cellguard.model.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.model.linked.publication import Equation, Part, Publication

__all__ = ["assemble", "find_clusters", "list_cluster_cells", "restrict_table"]


def assemble(
    kind: type[Publication],
    parts: Sequence[Part],
    equations: tuple[Equation, ...],
    meanings: Meanings,
    *,
    tolerance: float,
    name: str,
) -> Publication:
    """Make the publication: distinct cells, relations of all tables, relations across tables, and equations."""
    from scipy.sparse import vstack

    indicators = list(dict.fromkeys(part.indicator for part in parts))
    codes = {"indicator": tuple(indicators), **meanings.codes} if len(indicators) > 1 else dict(meanings.codes)
    sizes = [len(c) for c in codes.values()]
    own = [_translate_part(part, meanings.names[k], codes, indicators) for k, part in enumerate(parts)]
    cells, place = merge_distinct_cells(own, sizes)
    described: dict[str, Any] = {
        "dimensions": tuple(codes),
        "codes": tuple(codes.values()),
        "coordinates": cells,
        "name": name,
    }

    def label(cell: int) -> str:
        return format_cell_name(codes, cells[cell])

    tables = [part.table.with_(weights=(not part.hidden) * part.priority * part.table.weights) for part in parts]
    values, wrong = reconcile_shared_values(
        tables, place, len(cells), label, lambda k, cell: parts[k].place(cell), tolerance
    )
    wrong += _find_differing_counts(parts, place, len(cells), label)
    moved = [number_relation_cells(t.relations, p, len(cells)) for t, p in zip(tables, place, strict=True)]
    joint = _build_equation_relations(equations, codes["indicator"], sizes, cells) if equations else []
    told = joint if not wrong else _select_agreeing_equations(joint, tables, place, values)
    wrong += _find_false_equations(
        told, values, lambda cell: label(cell) + _place_of_cell(parts, place, cell), tolerance
    )
    PublicationError.refuse(wrong)
    # sums over codes that a table does not list need not hold in another: attackers know only true relations
    across = select_true_relations(_build_relations_across_tables(meanings, codes, sizes, cells), values)
    T = vstack([*moved, across, *(T for _, T in joint)], format="csr")
    empty = _find_empty_cells(tables, place, len(cells))
    crosses = _find_crosses(parts, meanings, codes, cells, empty)
    telling = filter_informative_crosses(crosses) if empty.any() else []
    of_crosses = [_derive_cross_relations(cross, len(indicators), cells, empty, T) for cross in telling]
    T = vstack([T, *(select_true_relations(more, values) for more in of_crosses)], format="csr")
    T, rhs = drop_repeated_relations(
        T, np.concatenate([*(t.rhs for t in tables), np.zeros(T.shape[0] - sum(len(t.rhs) for t in tables))])
    )
    # withholding a cell loses information in every table that shows it
    measured = [part.indicator for part in parts]
    fields = join_fields(
        tables, place, reconcile_additively(values, T, rhs, tolerance), weights=np.add, measured=measured
    )
    fields["flags"] = _merge_flags(tables, place)
    placed = tuple(replace(part, cells=p) for part, p in zip(parts, place, strict=True))
    shown = tuple(part for part in placed if not part.hidden)
    library = next((part.table.library for part in placed if part.table.library is not None), None)
    described |= split_crosses_by_size(crosses)
    table = Table(relations=T, rhs=rhs, parts=shown, library=library, **{**fields, **described})
    cluster_of, names = find_clusters(table, shown)
    return kind(
        parts=placed, equations=equations, table=table, clusters=names, cluster_of=cluster_of, tolerance=tolerance
    )


def _find_differing_counts(
    parts: Sequence[Part], place: Sequence[IntArray], n: int, label: Callable[[int], str]
) -> list[CellguardError]:
    """Return each pair of tables with different numbers of contributors for a cell; ignore computed totals."""
    wrong: list[CellguardError] = []
    first, seen_in = np.full(n, np.nan), np.full(n, -1, np.int64)
    for k, (part, cells) in enumerate(zip(parts, place, strict=True)):
        if part.table.counts is None:
            continue
        listed = part.lines > 0 if len(part.lines) else np.ones(len(cells), bool)
        own = np.where(listed & np.isfinite(part.table.counts), part.table.counts, np.nan)
        clash = np.abs(own - first[cells]) > SAME_VALUE * np.maximum(1.0, np.abs(own))
        for other in np.unique(seen_in[cells[clash]]).tolist():
            both = np.flatnonzero(clash & (seen_in[cells] == other))
            there = int(np.flatnonzero(place[other] == cells[both[0]])[0])
            more = f", and so have {len(both) - 1} others" if len(both) > 1 else ""
            places = f"{parts[other].place(there)} and {part.place(int(both[0]))}"
            text = f"{label(int(cells[both[0]]))} has different numbers of contributors in {places}{more}."
            wrong.append(InputError(text, hint="make both tables from the same data, and count the same in both."))
        new = np.isnan(first[cells]) & ~np.isnan(own)
        first[cells[new]], seen_in[cells[new]] = own[new], k
    return wrong


def _merge_flags(tables: Sequence[Table], place: Sequence[IntArray]) -> Any:
    """Return which rule flagged which distinct cell; a rule that applies to several tables is listed once."""
    flags = [t.flags for t in tables if t.flags is not None]
    cells: dict[tuple[str, str], list[IntArray]] = {}
    for t, p in zip(tables, place, strict=True):
        if t.flags is not None:
            for name, reason, flagged in zip(t.flags.names, t.flags.reasons, t.flags.flagged, strict=True):
                cells.setdefault((name, reason), []).append(p[flagged])
    if not flags:
        return None
    flagged = tuple(np.unique(np.concatenate(found)) for found in cells.values())
    return replace(flags[0], names=tuple(n for n, _ in cells), reasons=tuple(r for _, r in cells), flagged=flagged)


def _translate_part(
    part: Part, names: dict[str, dict[str, str]], codes: dict[str, tuple[str, ...]], indicators: Sequence[str]
) -> Coordinates:
    """Return a table's cells in the publication's codes; a missing dimension is at its total or its population."""
    table = part.table
    out = np.zeros((table.n_cells, len(codes)), np.int32)
    for d, (dimension, known) in enumerate(codes.items()):
        position = {code: i for i, code in enumerate(known)}
        if dimension == "indicator" and dimension not in names:
            out[:, d] = indicators.index(part.indicator)
            continue
        own = next((k for k, n in enumerate(table.dimensions) if part.dimension(n) == dimension), None)
        if own is not None:
            index = np.array([position[names[dimension][c]] for c in table.codes[own]], np.int32)
            out[:, d] = index[table.coordinates[:, own]]
        elif dimension in part.where:
            out[:, d] = position[names[dimension][part.where[dimension]]]
    return out


def _build_relations_across_tables(
    meanings: Meanings, codes: dict[str, tuple[str, ...]], sizes: Sequence[int], cells: Coordinates
) -> csr_array:
    """Return the relations that the trees of all tables imply between cells of different tables."""
    families = []
    for dimension, known in codes.items():
        position = {code: i for i, code in enumerate(known)}
        mine = meanings.families.get(dimension, ())
        totals = np.array([position[code] for code, _ in mine], np.int64)
        parts = [np.array([position[c] for c in kids], np.int64) for _, kids in mine]
        indptr = np.concatenate([[0], np.cumsum([len(p) for p in parts], dtype=np.int64)])
        families.append((totals, indptr, np.concatenate([np.zeros(0, np.int64), *parts])))
    return build_grid_relations(cells, sizes, families)[0]


def _find_empty_cells(tables: Sequence[Table], place: Sequence[IntArray], n: int) -> BoolArray:
    """Return which distinct cells every attacker knows to be empty."""
    empty = np.zeros(n, bool)
    for t, p in zip(tables, place, strict=True):
        empty[p[find_known_zeros(t)]] = True
    return empty


def _find_crosses(
    parts: Sequence[Part], meanings: Meanings, codes: dict[str, tuple[str, ...]], cells: Coordinates, empty: BoolArray
) -> list[Cross]:
    """Return the unpublished crosses of all tables, for each indicator and part of the population."""
    from scipy.sparse import csr_array

    several = next(iter(codes)) == "indicator" and "indicator" not in meanings.codes
    first = int(several)
    dimensions = list(codes)[first:]
    trees = [_build_code_tree(codes[d], meanings.families.get(d, ())) for d in dimensions]
    populations = list(dict.fromkeys(tuple(sorted(part.where.items())) for part in parts))
    out = []
    for number in np.unique(cells[:, 0]) if several else [None]:
        of_indicator = np.ones(len(cells), bool) if number is None else cells[:, 0] == number
        for population in dict.fromkeys([(), *populations]):
            inside, own, below = of_indicator.copy(), cells[:, first:].copy(), list(trees)
            for dimension, code in population:
                d, root = dimensions.index(dimension), codes[dimension].index(code)
                inside &= np.isin(own[:, d], _list_codes_below(trees[d], root))
                own[own[:, d] == root, d] = 0  # within this part, the part is the total
                below[d] = trees[d] | {0: trees[d].get(root, [])}
            mine = np.flatnonzero(inside)
            for cross in find_crosses(own[mine], below, empty[mine]):
                margins = csr_array(
                    (cross.margins.data, mine[cross.margins.indices], cross.margins.indptr),
                    shape=(cross.margins.shape[0], len(cells)),
                )
                out.append(Cross(mine[cross.cells], margins))
    return out


def _build_code_tree(codes: Sequence[str], families: Iterable[tuple[str, Sequence[str]]]) -> dict[int, list[list[int]]]:
    """Return the code indices that each code of a dimension is the sum of."""
    place = {code: k for k, code in enumerate(codes)}
    tree: dict[int, list[list[int]]] = {}
    for code, kids in families:
        if set(kids) != {code} and code in place and all(kid in place for kid in kids):
            tree.setdefault(place[code], []).append([place[kid] for kid in kids])
    return tree


def _list_codes_below(tree: Mapping[int, Sequence[Sequence[int]]], root: int) -> list[int]:
    """Return a code and all codes below it."""
    found, left = {root}, [root]
    while left:
        new = {kid for kids in tree.get(left.pop(), ()) for kid in kids} - found
        found |= new
        left += new
    return sorted(found)


def _derive_cross_relations(
    cross: Cross, indicators: int, cells: Coordinates, empty: BoolArray, known: csr_array
) -> csr_array:
    """Return what the empty cells of one indicator reveal about its cross."""
    from scipy.sparse import csr_array

    own = cells[:, 0] == cells[cross.cells[0, 0], 0] if indicators > 1 else np.ones(len(cells), bool)
    mine = np.flatnonzero(own)
    rows = np.flatnonzero(abs(known) @ (~own).astype(float) == 0)
    more = derive_cross_relations(
        Cross(np.searchsorted(mine, cross.cells), cross.margins[:, mine]),
        empty[mine],
        csr_array(csr_array(known[rows])[:, mine]),
    )
    return csr_array((more.data, mine[more.indices], more.indptr), shape=(more.shape[0], len(cells)))


def _build_equation_relations(
    equations: Sequence[Equation], indicators: tuple[str, ...], sizes: Sequence[int], cells: Coordinates
) -> list[tuple[Equation, csr_array]]:
    """Return one relation for every cell in which all indicators of an equation are published."""
    from scipy.sparse import csr_array

    out, keys = [], compute_grid_keys(cells, sizes)
    for equation in equations:
        place = {indicator: indicators.index(indicator) for indicator in equation.names}
        total = np.flatnonzero(cells[:, 0] == place[equation.total])
        columns, complete = [total], np.ones(len(total), bool)
        for name, _ in equation.terms:
            there = cells[total].copy()
            there[:, 0] = place[name]
            columns.append(find_grid_places(keys, compute_grid_keys(there, sizes), sizes))
            complete &= columns[-1] >= 0
        rows = int(complete.sum())
        indices = np.column_stack(columns)[complete].ravel()
        data = np.tile([-1.0, *(sign for _, sign in equation.terms)], rows)
        indptr = np.arange(0, len(indices) + 1, len(columns))
        out.append((equation, csr_array((data, indices, indptr), shape=(rows, len(cells)))))
    return out


def _place_of_cell(parts: Sequence[Part], place: Sequence[IntArray], cell: int) -> str:
    """Return the place of a cell for messages: the first table that has it, with file and line."""
    for part, cells in zip(parts, place, strict=True):
        at = np.flatnonzero(cells == cell)
        if len(at):
            return f" in {part.place(int(at[0]))}"
    return ""


def _select_agreeing_equations(
    joint: Sequence[tuple[Equation, csr_array]],
    tables: Sequence[Table],
    place: Sequence[IntArray],
    values: FloatArray,
) -> list[tuple[Equation, csr_array]]:
    """Return the equations for the cells whose values agree in all tables; other cells have no unique value."""
    doubtful = np.zeros(len(values))
    for t, p in zip(tables, place, strict=True):
        doubtful[p[~np.isclose(values[p], t.values, rtol=1e-9, atol=0)]] = 1
    left = [(equation, T[np.flatnonzero((abs(T) @ doubtful) == 0)]) for equation, T in joint]
    return [(equation, T) for equation, T in left if T.shape[0]]


def _find_false_equations(
    joint: Sequence[tuple[Equation, csr_array]], values: FloatArray, label: Callable[[int], str], tolerance: float
) -> list[CellguardError]:
    """Return an error for each equation that does not hold, with one cell as an example."""
    wrong: list[CellguardError] = []
    for equation, T in joint:
        residual, allowed = compute_residuals_and_noise(T, np.zeros(T.shape[0]), values)
        rounding = tolerance * np.maximum(1.0, abs(T) @ np.abs(values))
        bad = np.flatnonzero(np.abs(residual) > np.maximum(100 * allowed, rounding))
        if len(bad):
            first = int(T.indices[T.indptr[bad[0]]])
            text = f"{equation} does not hold in {len(bad)} of {T.shape[0]} cells, {label(first)} for one."
            wrong.append(AdditivityError(text, hint="correct the data, or leave the equation out."))
        elif T.shape[0] == 0:
            text = f"{equation}: no cell has all its indicators."
            wrong.append(InputError(text, hint="its indicators must be in tables with the same dimensions."))
    return wrong


def find_clusters(table: Table, parts: Sequence[Part]) -> tuple[IntArray, tuple[tuple[str, ...], ...]]:
    """Return the cluster of each cell and the tables of each cluster; cells that share a relation share a cluster."""
    n = table.n_cells
    T = table.relations.tocoo()
    relation, cell = T.coords
    rows = [cell, *(part.cells for part in parts)]
    columns = [n + relation, *(np.full(len(part.cells), n + T.shape[0] + k) for k, part in enumerate(parts))]
    component = find_groups(np.concatenate(rows), np.concatenate(columns), n + T.shape[0] + len(parts))
    found, cluster_of = np.unique(component[:n], return_inverse=True)
    of_part = np.searchsorted(found, component[n + T.shape[0] :])
    names = tuple(
        tuple(part.name for part, c in zip(parts, of_part.tolist(), strict=True) if c == k) for k in range(len(found))
    )
    return cluster_of.astype(np.int64), names


def _describe_counts_of_part(table: Table, cells: IntArray) -> dict[str, Any]:
    """Return the fields that distinguish counts from other values, for some cells of a table that has both."""
    counted = table.count_cells[cells]
    if counted.all():
        return {"integer": True, "counted": None, "smallest_width": table.smallest_width_of_counts}
    if not counted.any():
        return {"counted": None, "smallest_width": table.smallest_width_of_others}
    return {"counted": counted}


def list_cluster_cells(table: Table) -> list[IntArray]:
    """Return the cells of each cluster of a publication's system."""
    cluster_of, names = find_clusters(table, table.parts or ())
    return [np.flatnonzero(cluster_of == number) for number in range(len(names))]


def restrict_table(table: Table, cells: IntArray, *, respondents: bool = False) -> Table:
    """Return the table of some cells that share no relation with the others.

    Respondents are derived again when they are needed, unless the known ones are to be kept.
    """
    if not respondents:
        table = table.remove_public_knowledge()  # derived again, like respondents
    if len(cells) == table.n_cells:
        return table.with_(parts=None)
    T = table.relations
    place = np.full(table.n_cells, -1, np.int64)
    place[cells] = np.arange(len(cells))
    rows = np.flatnonzero(np.diff(T.indptr) > 0)
    rows = rows[place[T.indices[T.indptr[rows]]] >= 0]
    known = (a.move_to(place) for a in table.attackers if respondents or not a.derived)
    people = tuple(a for a in known if not a.derived or len(a.cells))
    changes: dict[str, Any] = {name: getattr(table, name)[cells] for name in CELL_ARRAYS}
    if table.counted is not None:
        changes |= _describe_counts_of_part(table, cells)
    changes |= {
        "relations": T[rows][:, cells],
        "rhs": table.rhs[rows],
        "coordinates": table.coordinates[cells],
        "counts": None if table.counts is None else table.counts[cells],
        "statistics": None if table.statistics is None else table.statistics.take(cells),
        "attackers": people,
        "insiders": any(a.derived for a in people) if respondents else False if table.insiders is False else None,
        "flags": None,
        "parts": None,
        "crosses": restrict_crosses(table.crosses, cells, table.n_cells),
        "crosses_left_out": 0,
    }
    part = replace(table, **changes)
    # a tenth of the values around; from the whole table, if those of the part are zeros
    keep_level_widths_of_table(get_smallest_widths(table)[cells], part)
    if table._given is not None:  # the bounds before the rules of publication were applied
        object.__setattr__(part, "_given", {name: array[cells] for name, array in table._given.items()})
    return part

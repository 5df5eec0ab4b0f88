"""Tables that share cells, joined into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.space.cell_grid import distinct_on_cell_grid
from cellguard._types import Coordinates, FloatArray, IntArray
from cellguard.exceptions import InputError, PublicationError
from cellguard.nouns.assemble import relations_from_hierarchies, table_cell_name
from cellguard.nouns.attacker import EXTERNAL, Attacker
from cellguard.nouns.cross import table_with_the_cross
from cellguard.nouns.hierarchy import Hierarchy
from cellguard.nouns.reconcile import reconciled_shared_values
from cellguard.nouns.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["distinct_linked_relations", "fields_of_linked_cells", "relations_at_linked_cells", "table_from_linked"]


def table_from_linked(tables: Sequence[Table], **description: Any) -> Table:
    """Join tables that share cells (see :meth:`Table.from_linked`)."""
    from scipy.sparse import vstack

    if not tables:
        raise InputError("no tables are given.")
    for t in tables:
        if not t.dimensions:
            raise InputError(f"table {t.name!r} has no dimensions.", hint="cells are linked by their codes.")
    hierarchies, codes = _hierarchies_of_linked_tables(tables)
    sizes = [len(c) for c in codes.values()]
    cells, place = distinct_on_cell_grid([_coordinates_of_linked_table(t, codes) for t in tables], sizes)
    pieces = [relations_at_linked_cells(t.relations, p, len(cells)) for t, p in zip(tables, place, strict=True)]
    rhs = [t.rhs for t in tables]
    if hierarchies:  # what all of them imply together comes first, then what a table has besides
        T = relations_from_hierarchies(tuple(hierarchies.values()), cells)
        pieces.insert(0, T)
        rhs.insert(0, np.zeros(T.shape[0]))
    T, b = distinct_linked_relations(vstack(pieces, format="csr"), np.concatenate(rhs))
    described: dict[str, Any] = {
        "dimensions": tuple(codes),
        "codes": tuple(codes.values()),
        "hierarchies": tuple(hierarchies.values()),
        "coordinates": cells,
        "library": next((t.library for t in tables if t.library is not None), None),
    }
    values, wrong = reconciled_shared_values(
        tables,
        place,
        len(cells),
        lambda cell: table_cell_name(codes, cells[cell]),
        lambda k, _: repr(tables[k].name),
        0.0,
    )
    PublicationError.refuse(wrong)
    fields = fields_of_linked_cells(tables, place, values)
    return table_with_the_cross(Table(relations=T, rhs=b, **{**fields, **described, **description}))


def _hierarchies_of_linked_tables(tables: Sequence[Table]) -> tuple[dict[str, Hierarchy], dict[str, tuple[str, ...]]]:
    """Return the hierarchies of all dimensions (none when a table lacks its own), and their codes."""
    found: dict[str, list[Hierarchy]] = {}
    codes: dict[str, dict[str, None]] = {}
    for t in tables:
        for d, name in enumerate(t.dimensions):
            known = codes.setdefault(name, dict.fromkeys(t.codes[d]))
            if next(iter(known)) != t.codes[d][0]:
                raise InputError(
                    f"dimension {name!r} has two totals, {next(iter(known))!r} and {t.codes[d][0]!r}.",
                    hint="give the total of a dimension the same code in every table.",
                )
            known.update(dict.fromkeys(t.codes[d]))
            same = found.setdefault(name, [])
            if t.hierarchies and t.hierarchies[d] not in same:
                same.append(t.hierarchies[d])
    if not all(t.hierarchies for t in tables):
        return {}, {name: tuple(c) for name, c in codes.items()}
    joined = {name: hs[0] if len(hs) == 1 else Hierarchy.join(*hs) for name, hs in found.items()}
    return joined, {name: h.codes for name, h in joined.items()}


def _coordinates_of_linked_table(table: Table, codes: Mapping[str, tuple[str, ...]]) -> Coordinates:
    """Return the table's cells in the codes of all tables; a dimension it lacks is at its total."""
    out = np.zeros((table.n_cells, len(codes)), np.int32)
    for d, (name, known) in enumerate(codes.items()):
        if name in table.dimensions:
            own = table.dimensions.index(name)
            position = {code: i for i, code in enumerate(known)}
            out[:, d] = np.array([position[c] for c in table.codes[own]], np.int32)[table.coordinates[:, own]]
    return out


def relations_at_linked_cells(T: csr_array, place: IntArray, n: int) -> csr_array:
    """Relations over cells that stand elsewhere: column j becomes place[j] of n."""
    from scipy.sparse import csr_array

    # sorting moves the coefficients too: the table keeps its own
    moved = csr_array((T.data.copy(), place[T.indices], T.indptr), shape=(T.shape[0], n))
    moved.sort_indices()
    return moved


def distinct_linked_relations(T: csr_array, rhs: FloatArray) -> tuple[csr_array, FloatArray]:
    """Drop relations that are listed before; rows are compared by two random fingerprints."""
    from scipy.sparse import csr_array

    T = csr_array(T)
    T.sort_indices()
    rng = np.random.default_rng(0)
    bits = np.asarray(T.data, np.float64).view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)  # spread them: 1.0 ends in 52 zeros
    coefficient = bits ^ (bits >> np.uint64(32)) | np.uint64(1)
    prints = []
    for _ in range(2):
        number = rng.integers(0, 1 << 63, T.shape[1], dtype=np.uint64)
        terms = number[T.indices] * coefficient
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        prints.append(sums[T.indptr[1:]] - sums[T.indptr[:-1]])
    _, first = np.unique(np.column_stack([*prints, rhs.view(np.uint64)]), axis=0, return_index=True)
    keep = np.sort(first)
    return T[keep], rhs[keep]


def fields_of_linked_cells(
    tables: Sequence[Table],
    place: Sequence[IntArray],
    values: FloatArray,
    *,
    weights: Any = np.maximum,
    measured: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the fields of the joined cells: the tightest bounds, the widest levels, weights joined as asked for.

    `measured` names what each table measures, where they differ in it.
    """
    n = len(values)
    joins = {
        "lb": (np.maximum, -np.inf), "ub": (np.minimum, np.inf), "weights": (weights, 0.0),
        "lower": (np.maximum, 0.0), "upper": (np.maximum, 0.0), "sliding": (np.maximum, 0.0),
        "sensitive": (np.logical_or, False), "fixed": (np.logical_or, False),
    }  # fmt: skip
    out: dict[str, Any] = {"values": values}
    for name, (join, start) in joins.items():
        out[name] = np.full(n, start)
        for t, p in zip(tables, place, strict=True):
            out[name][p] = join(out[name][p], getattr(t, name))
    counted = [(t.counts, p) for t, p in zip(tables, place, strict=True) if t.counts is not None]
    if counted:  # one table that does not tell is no reason to forget what the others do: nobody knows how many
        out["counts"] = np.full(n, np.inf)
        for counts, p in reversed(counted):
            out["counts"][p] = counts
    known = [k for k, t in enumerate(tables) if t.statistics is not None]
    if known:  # who contributed is as confidential, and as much known
        first, *others = (tables[k].statistics for k in known)
        told = None if measured is None else [measured[k] for k in known]
        out["statistics"] = first.joined(others, [place[k] for k in known], values, told)
    out["integer"] = all(t.integer for t in tables)
    given = [t.smallest_width for t in tables if t.smallest_width is not None]
    out["smallest_width"] = max(given) if given else None
    out["insiders"] = False if all(t.insiders is False for t in tables) else None
    out["attackers"] = _attackers_of_linked_tables(tables, place)
    return out


def _attackers_of_linked_tables(tables: Sequence[Table], place: Sequence[IntArray]) -> tuple[Attacker, ...]:
    out = {EXTERNAL.name: EXTERNAL}
    for t, p in zip(tables, place, strict=True):
        for a in t.attackers:
            if a.name == EXTERNAL.name or a.derived:  # respondents are found again in the linked table
                continue
            if a.name in out:
                raise InputError(
                    f"attacker {a.name!r} occurs in two tables.", hint="link the tables first, then add the attacker."
                )
            out[a.name] = a.moved(p)
    return tuple(out.values())

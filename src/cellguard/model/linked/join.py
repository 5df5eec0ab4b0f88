"""Join tables that share cells into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cellguard._engine.space.cell_grid import merge_distinct_cells
from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray
from cellguard.exceptions import InputError, PublicationError
from cellguard.model.attacker import EXTERNAL, Attacker
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.linked.cross import add_cross
from cellguard.model.linked.reconcile import reconcile_shared_values
from cellguard.model.sources.assemble import build_relations, format_cell_name
from cellguard.model.table import Table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["build_from_linked", "drop_repeated_relations", "join_fields", "number_relation_cells"]


def build_from_linked(tables: Sequence[Table], **description: Any) -> Table:
    """Join tables that share cells (see :meth:`Table.from_linked`)."""
    from scipy.sparse import vstack

    if not tables:
        raise InputError("no tables are given.")
    for t in tables:
        if not t.dimensions:
            raise InputError(f"table {t.name!r} has no dimensions.", hint="cells are linked by their codes.")
    hierarchies, codes = _join_hierarchies(tables)
    sizes = [len(c) for c in codes.values()]
    cells, place = merge_distinct_cells([_translate_coordinates(t, codes) for t in tables], sizes)
    pieces = [number_relation_cells(t.relations, p, len(cells)) for t, p in zip(tables, place, strict=True)]
    rhs = [t.rhs for t in tables]
    if hierarchies:  # first the relations that all of them imply together, then additional ones of each table
        T = build_relations(tuple(hierarchies.values()), cells)
        pieces.insert(0, T)
        rhs.insert(0, np.zeros(T.shape[0]))
    T, b = drop_repeated_relations(vstack(pieces, format="csr"), np.concatenate(rhs))
    described: dict[str, Any] = {
        "dimensions": tuple(codes),
        "codes": tuple(codes.values()),
        "hierarchies": tuple(hierarchies.values()),
        "coordinates": cells,
        "library": next((t.library for t in tables if t.library is not None), None),
    }
    values, wrong = reconcile_shared_values(
        tables,
        place,
        len(cells),
        lambda cell: format_cell_name(codes, cells[cell]),
        lambda k, _: repr(tables[k].name),
        0.0,
    )
    PublicationError.refuse(wrong)
    fields = join_fields(tables, place, values)
    return add_cross(Table(relations=T, rhs=b, **{**fields, **described, **description}))


def _join_hierarchies(tables: Sequence[Table]) -> tuple[dict[str, Hierarchy], dict[str, tuple[str, ...]]]:
    """Return the hierarchies of all dimensions (none if a table lacks them), and their codes."""
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


def _translate_coordinates(table: Table, codes: Mapping[str, tuple[str, ...]]) -> Coordinates:
    """Return the table's cells in the codes of all tables; a missing dimension is at its total."""
    out = np.zeros((table.n_cells, len(codes)), np.int32)
    for d, (name, known) in enumerate(codes.items()):
        if name in table.dimensions:
            own = table.dimensions.index(name)
            position = {code: i for i, code in enumerate(known)}
            out[:, d] = np.array([position[c] for c in table.codes[own]], np.int32)[table.coordinates[:, own]]
    return out


def number_relation_cells(T: csr_array, place: IntArray, n: int) -> csr_array:
    """Renumber the cells of relations: column j becomes place[j] of n."""
    from scipy.sparse import csr_array

    # sorting moves the coefficients too, so work on a copy
    moved = csr_array((T.data.copy(), place[T.indices], T.indptr), shape=(T.shape[0], n))
    moved.sort_indices()
    return moved


def drop_repeated_relations(T: csr_array, rhs: FloatArray) -> tuple[csr_array, FloatArray]:
    """Drop repeated relations; rows are compared by two random fingerprints."""
    from scipy.sparse import csr_array

    T = csr_array(T)
    T.sort_indices()
    rng = np.random.default_rng(0)
    bits = np.asarray(T.data, np.float64).view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)  # mix the bits: 1.0 ends in 52 zeros
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


def join_fields(
    tables: Sequence[Table],
    place: Sequence[IntArray],
    values: FloatArray,
    *,
    weights: Any = np.maximum,
    measured: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return the fields of the joined cells: the tightest bounds, the widest levels, weights joined as requested.

    `measured` names what each table measures, if they differ.
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
    if counted:  # keep the counts of other tables if one table has none: its cells have unknown counts
        out["counts"] = np.full(n, np.inf)
        for counts, p in reversed(counted):
            out["counts"][p] = counts
    known = [k for k, t in enumerate(tables) if t.statistics is not None]
    if known:  # the identities of contributors are just as confidential, and just as well known
        first, *others = (tables[k].statistics for k in known)
        told = None if measured is None else [measured[k] for k in known]
        out["statistics"] = first.join_statistics(others, [place[k] for k in known], values, told)
    out["integer"], out["counted"] = _join_counts(tables, place, values)
    given = [t.smallest_width for t in tables if t.smallest_width is not None]
    out["smallest_width"] = max(given) if given else None
    out["known_zeros"] = _join_known_zeros(tables)
    out["whole"] = any(t.whole for t in tables)
    out["insiders"] = False if all(t.insiders is False for t in tables) else None
    out["attackers"] = _join_attackers(tables, place)
    return out


def _join_counts(
    tables: Sequence[Table], place: Sequence[IntArray], values: FloatArray
) -> tuple[bool, BoolArray | None]:
    """Return whether all cells are counts and, if not, which are; values that were moved are not counts."""
    counted = np.zeros(len(values), bool)
    for t, p in zip(tables, place, strict=True):
        counts = t.count_cells
        if (values[p][counts] == np.rint(values[p][counts])).all():
            counted[p] |= counts
    if counted.all() or not counted.any():
        return bool(counted.all()), None
    return False, counted


def _join_known_zeros(tables: Sequence[Table]) -> bool | None:
    """Return whether empty cells are known: yes, unless every table says no."""
    said = {t.known_zeros for t in tables}
    return said.pop() if len(said) == 1 else True if True in said else None


def _join_attackers(tables: Sequence[Table], place: Sequence[IntArray]) -> tuple[Attacker, ...]:
    out = {EXTERNAL.name: EXTERNAL}
    for t, p in zip(tables, place, strict=True):
        for a in t.attackers:
            if a.name == EXTERNAL.name or a.derived:  # respondents are derived again from the linked table
                continue
            if a.name in out:
                raise InputError(
                    f"attacker {a.name!r} occurs in two tables.", hint="link the tables first, then add the attacker."
                )
            out[a.name] = a.move_to(p)
    return tuple(out.values())

"""Reduction: from relations and fixed cells to the smallest equivalent problem.

How cells can move together is the null space of the relations between the free cells. Totals are
written as sums of leaves, which costs nothing and creates no fill-in; the relations left over
between leaves are eliminated exactly, shortest first. Random vectors in the null space, exact
modulo a prime, then show without any linear program which cells cannot move at all (a published
table discloses them), and which can only move together (aliases).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from cellguard._core import elimination as core
from cellguard._engine.space.space import Space, convert_matrix_for_core
from cellguard._types import BoolArray, FloatArray, IntArray

__all__ = ["Reduction", "compute_residues", "reduce", "scale_to_whole_coefficients", "select_independent_rows"]

_Definitions = tuple[IntArray, IntArray]
"""The relation that defines each total (-1: a leaf), and the totals, parts before their total."""
_Pivots = tuple[IntArray, IntArray, IntArray, IntArray]
"""Leaves, where the combination of each begins and ends, and the leaves in it."""
_SEED = 0
"""Seed of the random vectors; results do not depend on it, except with negligible probability."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """The rest of ``T z = 0`` when fixed cells cannot move. Cells keep their numbers."""

    relations: csr_array
    """The relations that were reduced."""
    free: BoolArray
    """Cells that were not fixed beforehand."""
    rows: IntArray
    """Independent relations, as many as the rank."""
    parameters: IntArray
    """Cells whose movements can be chosen freely: as many as the degrees of freedom."""
    determined: BoolArray
    """Cells that cannot move: the fixed ones, and those that the relations disclose."""
    alias: IntArray
    """For each cell the representative with which it moves; -1 for cells that cannot move."""
    ratio: FloatArray
    """Movement of the cell divided by that of its representative."""
    component: IntArray
    """Number of the connected component of each cell, from 0; -1 for cells that cannot move."""
    order: tuple[IntArray, IntArray]
    """The same rows in the order of elimination, and the cell that each determines: nearly a triangle."""
    _state: tuple[_Definitions, _Pivots, FloatArray]

    @property
    def rank(self) -> int:
        """Number of independent relations between the free cells."""
        return len(self.rows)

    @property
    def degrees_of_freedom(self) -> int:
        """Free cells minus rank."""
        return len(self.parameters)

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.component.max(initial=-1)) + 1

    @cached_property
    def basis(self) -> csr_array:
        """Sparse basis of the null space, cells by degrees of freedom; parameters are the identity."""
        definitions, pivots, coefficient = self._state
        ptr, col, val = core.null_space(
            *convert_matrix_for_core(self.relations), self.free, definitions, self.parameters, pivots, coefficient
        )
        N = csr_array((val, col, ptr), shape=(len(self.free), len(self.parameters)))
        N.sort_indices()
        return N

    @cached_property
    def space(self) -> Space:
        """The movements, in terms of variables: cells that move together are one."""
        return Space.of(self)


def reduce(relations: csr_array, free: BoolArray | None = None) -> Reduction:
    """Reduce the relations between the free cells.

    Parameters
    ----------
    relations
        Sparse relations, one row each.
    free
        Cells that can move; all unless given.

    Examples
    --------
    >>> T = csr_array(np.array([[-1.0, 1, 1, 0], [0, -1, 0, 1]]))
    >>> r = reduce(T)
    >>> r.rank, r.degrees_of_freedom, r.alias.tolist()
    (2, 2, [0, 1, 2, 1])
    """
    n = relations.shape[1]
    free = np.ones(n, np.bool_) if free is None else np.ascontiguousarray(free, np.bool_)
    rng = np.random.default_rng(_SEED)
    e = _eliminate_relations(relations, free, rng)
    prints = [_draw_random_vector(rng, n, e.parameters) for _ in range(3)]
    for exact, value in prints:
        core.combine(e.pivots, e.coefficient, e.coefficient_f, exact, value)
        core.propagate(*e.system, e.definitions, exact, value)
    determined = (prints[0][0] == 0) & (prints[1][0] == 0)
    alias, ratio = _group_aliases(core.quotients(prints[0][0], prints[1][0], prints[2][0]), prints[0][1], ~determined)
    roots = core.join(*e.system[0][:2], e.rows, ~determined)
    component = np.full(n, -1, np.int64)
    component[~determined] = np.unique(roots[~determined], return_inverse=True)[1]
    return Reduction(
        relations=relations,
        free=free,
        rows=e.rows,
        parameters=e.parameters,
        determined=determined,
        alias=alias,
        ratio=ratio,
        component=component,
        order=e.order,
        _state=(e.definitions, e.pivots, e.coefficient_f),
    )


def select_independent_rows(relations: csr_array) -> IntArray:
    """Return as many independent relations as the rank: those that a reduction keeps."""
    free = np.ones(relations.shape[1], np.bool_)
    return _eliminate_relations(relations, free, np.random.default_rng(_SEED)).rows


@dataclass(frozen=True, kw_only=True, eq=False)
class _Eliminated:
    """Result of the elimination: totals defined by their parts, pivots by the other leaves."""

    system: tuple[tuple[IntArray, IntArray, FloatArray, IntArray], BoolArray]
    definitions: _Definitions
    pivots: _Pivots
    coefficient: IntArray
    coefficient_f: FloatArray
    order: tuple[IntArray, IntArray]
    parameters: IntArray

    @property
    def rows(self) -> IntArray:
        return np.sort(self.order[0])


def _eliminate_relations(T: csr_array, free: BoolArray, rng: np.random.Generator) -> _Eliminated:
    n = T.shape[1]
    system = (*convert_matrix_for_core(T), compute_residues(T.data)), free
    definitions = definition, order = core.choose_definitions(*system)
    leaves = np.flatnonzero(free & (definition < 0))
    tests = [_draw_random_vector(rng, n, leaves) for _ in range(2)]
    for exact, value in tests:
        core.propagate(*system, definitions, exact, value)
    left = core.leftover_relations(*system, tests[0][0], tests[1][0])
    used, pivots, start, stop, cell, coefficient, coefficient_f = core.eliminate(*system, definitions, left)
    is_pivot = np.zeros(n, np.bool_)
    is_pivot[pivots] = True
    return _Eliminated(
        system=system,
        definitions=definitions,
        pivots=(pivots, start, stop, cell),
        coefficient=coefficient,
        coefficient_f=coefficient_f,
        order=(np.concatenate([definition[order], used]), np.concatenate([order, pivots])),
        parameters=leaves[~is_pivot[leaves]],
    )


def _draw_random_vector(rng: np.random.Generator, n: int, at: IntArray) -> tuple[IntArray, FloatArray]:
    """Return random numbers at some cells, modulo the prime and in floating point; 0 elsewhere."""
    exact, value = np.zeros(n, np.int64), np.zeros(n)
    exact[at] = rng.integers(1, core.PRIME, len(at))
    value[at] = rng.uniform(-1.0, 1.0, len(at))
    return exact, value


def scale_to_whole_coefficients(A: csr_array) -> csr_array:
    """Return the relations scaled to whole coefficients by small multiples, if any: thirds are no binary fractions."""
    factor = np.ones(A.shape[0])
    left = np.ones(A.shape[0], np.bool_)
    for k in (*range(1, 61), 84, 120, 210, 420, 840, 2520):
        off = np.maximum.reduceat(np.abs(k * A.data - np.rint(k * A.data)), A.indptr[:-1]) if A.nnz else np.zeros(0)
        now = left & (off < 1e-7)
        factor[now] = k
        left &= ~now
        if not left.any():
            break
    each = np.repeat(factor, np.diff(A.indptr))
    data = np.where(np.repeat(left, np.diff(A.indptr)), A.data, np.rint(each * A.data))
    return csr_array((data, A.indices, A.indptr), shape=A.shape)


def compute_residues(data: FloatArray) -> IntArray:
    """Return floating-point numbers, which are exact binary fractions, modulo the prime."""
    if (data == np.rint(data)).all() and np.abs(data).max(initial=0.0) < 2**53:
        return np.asarray(data.astype(np.int64) % core.PRIME)
    mantissa, exponent = np.frexp(data)
    whole = (mantissa * 2.0**53).astype(np.int64) % core.PRIME
    power = np.array([pow(2, int(e) - 53, core.PRIME) for e in exponent], dtype=np.int64)
    return np.asarray(whole * power % core.PRIME)


def _group_aliases(direction: IntArray, value: FloatArray, moving: BoolArray) -> tuple[IntArray, FloatArray]:
    """Group cells of equal direction; the representative is the first cell of its group."""
    cells = np.flatnonzero(moving)
    key = direction[cells, 0] * np.int64(1 << 31) + direction[cells, 1]
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    alias, ratio = np.full(len(moving), -1, np.int64), np.zeros(len(moving))
    alias[cells] = cells[first][group]
    quotient = value[cells] / value[alias[cells]]
    whole = np.rint(quotient)
    ratio[cells] = np.where(np.abs(quotient - whole) < 1e-7, whole, quotient)
    return alias, ratio

"""Structure: which cells there are, what they are called, and which of them add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from cellguard._deprecation import OldName
from cellguard._types import BoolArray, Coordinates, FloatArray, IntArray
from cellguard.exceptions import UnknownCodeError, raise_error_of_missing, suggest_names

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard.model.hierarchy import Hierarchy

__all__ = ["Structure"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Structure:
    """Cells with their codes, and the relations between them. It holds no value: everything here is public."""

    relations: csr_array
    """One row per relation; the total has -1, its parts 1."""
    rhs: FloatArray
    """Right-hand side of each relation, nearly always 0."""
    dimensions: tuple[str, ...] = ()
    """Names of the dimensions; empty for a table of raw equations."""
    codes: tuple[tuple[str, ...], ...] = ()
    """The codes of each dimension, totals included."""
    coordinates: Coordinates = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """One row per cell: the index of its code in each dimension."""
    hierarchies: tuple[Hierarchy, ...] = ()
    """The hierarchy of each dimension, when known; hierarchies imply the relations."""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.relations.shape[1])

    @property
    def n_relations(self) -> int:
        """Number of relations."""
        return int(self.relations.shape[0])

    @property
    def inner(self) -> BoolArray:
        """Which cells have no parts."""
        out = np.ones(self.n_cells, bool)
        out[self.relations.indices[self.relations.data < 0]] = False
        return out

    def get_relation_cells(self, relation: int) -> tuple[IntArray, FloatArray]:
        """Return the cells of a relation and their coefficients."""
        span = slice(self.relations.indptr[relation], self.relations.indptr[relation + 1])
        return self.relations.indices[span], self.relations.data[span]

    cells_of_relation = OldName("get_relation_cells")

    @overload
    def cell_codes(self, cells: int) -> dict[str, str]: ...

    @overload
    def cell_codes(self, cells: ArrayLike | None = None) -> dict[str, list[str]]: ...

    def cell_codes(self, cells: ArrayLike | None = None) -> Any:
        """Return the codes of cells, one list per dimension; of one cell, its code in each dimension.

        A table without dimensions has the cells' numbers instead. `cell` is the inverse.

        >>> from cellguard import Table
        >>> t = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
        >>> t.cell_codes(4), t.cell_codes([4, 5])
        ({'region': 'N', 'sex': 'f'}, {'region': ['N', 'N'], 'sex': ['f', 'm']})
        """
        index = np.arange(self.n_cells) if cells is None else np.atleast_1d(np.asarray(cells))
        out = {"cell": [str(i) for i in index]}
        if self.dimensions:
            names = zip(self.dimensions, self.codes, self.coordinates[index].T, strict=True)
            out = {name: np.asarray(codes, dtype=object)[own].tolist() for name, codes, own in names}
        return {name: own[0] for name, own in out.items()} if isinstance(cells, int | np.integer) else out

    codes_of = OldName("cell_codes")

    def sort_cells(self) -> IntArray:
        """Return the cells in the order of public files: by dimension, then by code; by number if they have no codes.

        The input order may follow the values, and would reveal the size of a withheld cell.
        """
        if not self.dimensions:
            return np.arange(self.n_cells)
        return np.asarray(np.lexsort(self.coordinates.T[::-1]), np.int64)

    def cells_at(self, coordinates: ArrayLike) -> IntArray:
        """Return the cell at each row of code indices, one per dimension; -1 where there is none."""
        from cellguard._engine.space.cell_grid import compute_grid_keys, find_grid_places

        sizes = [len(codes) for codes in self.codes]
        wanted = np.asarray(coordinates, np.int32)
        return find_grid_places(compute_grid_keys(self.coordinates, sizes), compute_grid_keys(wanted, sizes), sizes)

    def cell(self, codes: Mapping[str, str]) -> int:
        """Return the index of the cell with these codes; omitted dimensions are at their total.

        >>> from cellguard.model.table import Table
        >>> t = Table.from_leaves({"region": ["N", "S"], "sex": ["f", "m"]}, [[3, 4], [5, 0]])
        >>> t.label(t.cell({"region": "S"}))
        '(region=S, sex=Total)'
        """
        raise_error_of_missing("dimension", codes, self.dimensions)
        match = np.ones(self.n_cells, dtype=bool)
        for d, dimension in enumerate(self.dimensions):
            code = codes.get(dimension, self.codes[d][0])
            if code not in self.codes[d]:
                hint = suggest_names(code, self.codes[d])
                raise UnknownCodeError(f"dimension {dimension!r}: unknown code {code!r}.", hint=hint)
            match &= self.coordinates[:, d] == self.codes[d].index(code)
        found = np.flatnonzero(match)
        if len(found) != 1:
            shown = ", ".join(f"{d}={c}" for d, c in codes.items())
            raise UnknownCodeError(f"the table does not publish a cell ({shown}).")
        return int(found[0])

    def label(self, cell: int) -> str:
        """Return the name of a cell for messages: its codes, never its value."""
        if not self.dimensions:
            return f"cell {cell}"
        own = zip(self.dimensions, self.codes, self.coordinates[cell], strict=True)
        return "(" + ", ".join(f"{name}={codes[code]}" for name, codes, code in own) + ")"

    def describe_relation(self, relation: int) -> str:
        """Return the name of a relation for messages: its total and its parts."""
        cells, signs = self.get_relation_cells(relation)
        total, parts = cells[signs < 0], cells[signs > 0]
        if len(total) != 1:
            shown = " ".join(
                f"{'+' if s > 0 else '-'} {self.label(int(c))}" for c, s in zip(cells[:4], signs[:4], strict=True)
            )
            return shown + (" ..." if len(cells) > 4 else "")
        shown = " + ".join(self.label(int(c)) for c in parts[:3])
        more = f" + {len(parts) - 3} more" if len(parts) > 3 else ""
        return f"{self.label(int(total[0]))} = {shown}{more}"

    relation_label = OldName("describe_relation")

"""The hierarchy: the codes of one dimension, how they add up, and their total."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cellguard._deprecation import OldName
from cellguard._hooks import call_hook
from cellguard._types import IntArray
from cellguard.exceptions import InputError, UnknownCodeError, raise_error_of_missing, suggest_names
from cellguard.model import trees

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from cellguard._io.trees.outline import Line

__all__ = ["Hierarchy", "Relations"]


class Relations(NamedTuple):
    """How codes add up: relation r is ``totals[r] = sum of parts[indptr[r]:indptr[r + 1]]``."""

    totals: IntArray
    indptr: IntArray
    parts: IntArray

    def get_parts(self, relation: int) -> IntArray:
        """Return the parts of one relation."""
        return self.parts[self.indptr[relation] : self.indptr[relation + 1]]


if TYPE_CHECKING:
    _ClassOnly = classmethod
else:

    class _ClassOnly(classmethod):
        """A class method that an instance refuses: ``a.join(b)`` would forget `a`."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return super().__get__(instance, owner)

            def refuse(*others: Any, **options: Any) -> None:
                del others, options
                raise InputError(
                    f"{self.__func__.__name__} is not called on a hierarchy: it would be left out.",
                    hint="call it on the class and name all of them: cg.Hierarchy.join(first, second).",
                )

            return refuse


@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """Codes with their parents; the total comes first. Immutable.

    >>> h = Hierarchy.from_nested({"North": ["N1", "N2"], "South": ["S1", "S2", "S3"]})
    >>> h
    Hierarchy(8 codes, 5 leaves, depth 2)
    Total
    ├── North
    │   ├── N1
    │   └── N2
    └── South
        ├── S1
        ├── S2
        └── S3
    >>> h.collapse(1).codes
    ('Total', 'North', 'South')

    Several trees may share the same leaves (:meth:`join`); each adds its own relations.
    """

    codes: tuple[str, ...]
    """Every code once, in a fixed order: the total first, each code after its parent."""
    parents: IntArray
    """One row per tree: the index of each code's parent, -1 for the root, -2 for a code the tree does not have."""
    labels: tuple[str, ...] = ()
    """Labels of the codes; the codes themselves unless given."""
    depth: IntArray = field(init=False)
    """Steps from the root to the code in the first tree that has it; 0 for the total."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", tuple(str(c) for c in self.codes))
        object.__setattr__(self, "labels", tuple(self.labels) or self.codes)
        parents = np.atleast_2d(np.array(self.parents, dtype=np.int64))
        n = len(self.codes)
        if n == 0 or parents.shape[1] != n or len(self.labels) != n:
            raise InputError(f"a hierarchy needs a parent and a label for each of its {n} codes, the total included.")
        if (parents < trees.ABSENT).any() or (parents >= n).any():
            raise InputError(f"a parent lies outside the {n} codes.")
        if len(set(self.codes)) != n:
            trees.refuse_repeated_codes(self.codes)
        depths = np.vstack([trees.compute_depths(row, self.codes) for row in parents])
        depth = depths[np.argmax(parents > trees.ABSENT, axis=0), np.arange(n)]
        if parents[0, 0] != -1 or (depth < 0).any():
            raise InputError("the first code must be the total, and every code must belong to a tree.")
        parents.setflags(write=False)
        depth.setflags(write=False)
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "depth", depth)
        if len(parents) > 1:
            self._check_trees()

    def _check_trees(self) -> None:
        """Refuse trees that give one code two different sets of leaves."""
        M = self.build_matrix()
        totals, indptr, parts = self.relations()
        from scipy.sparse import csr_array

        sums = csr_array((np.ones(len(parts)), parts, indptr), shape=(len(totals), len(self.codes)))
        wrong = np.unique((M[totals] - sums @ M).tocoo().coords[0]) if len(totals) else totals
        if len(wrong):
            code = self.codes[totals[wrong[0]]]
            raise InputError(
                f"code {code!r} does not have the same leaves in every tree.",
                hint="trees of one hierarchy must share the same leaves, and a code must mean the same in each.",
            )

    # ------------------------------------------------------------------ construction

    @classmethod
    def _of(cls, pairs: Sequence[tuple[str, str]], total: str) -> Hierarchy:
        return cls(*trees.order_tree(pairs, total))

    @classmethod
    def _parse_outline(cls, lines: Sequence[Line], total: str | None) -> Hierarchy:
        made = cls._of(*trees.parse_outline(lines, total))
        return made.with_labels({code: label for _, code, label in lines if label})

    @classmethod
    def flat(cls, codes: Iterable[str], *, total: str = "Total") -> Hierarchy:
        """Make a hierarchy without levels: the codes add up to the total.

        >>> Hierarchy.flat(["f", "m"]).codes
        ('Total', 'f', 'm')
        """
        return cls._of([(str(c), total) for c in codes], total)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, str]], *, total: str = "Total") -> Hierarchy:
        """Make a hierarchy from (code, parent) pairs in any order.

        >>> Hierarchy.from_pairs([("N1", "North"), ("North", "Total"), ("N2", "North")]).codes
        ('Total', 'North', 'N1', 'N2')
        """
        return cls._of([(str(code), str(parent)) for code, parent in pairs], total)

    @classmethod
    def from_nested(cls, tree: Mapping[str, Any] | Sequence[Any], *, total: str = "Total") -> Hierarchy:
        """Make a hierarchy from nested dicts and lists; a leaf is a string or an entry without children.

        >>> Hierarchy.from_nested(["A", {"B": ["B1", {"B2": ["B21", "B22"]}]}]).codes
        ('Total', 'A', 'B', 'B1', 'B2', 'B21', 'B22')
        """
        return cls._of(trees.parse_mapping(tree, total), total)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        code: str = "code",
        parent: str = "parent",
        label: str | None = None,
        total: str | None = None,
    ) -> Hierarchy:
        """Make a hierarchy from a frame with a code and its parent in each row.

        A code without a parent (null or empty) is the total when there is only one; several are placed
        below `total` ("Total" unless given). A total that no row lists as a code is found as well.
        """
        from cellguard._io.frames import convert_to_texts, read_frame_columns

        columns = read_frame_columns(frame)
        raise_error_of_missing("column", (code, parent, *([label] if label else [])), columns)
        codes, above = convert_to_texts(columns[code]), convert_to_texts(columns[parent])
        if "" in codes:
            raise InputError(f"column {code!r}: row {codes.index('')} has no code.")
        labels = dict(zip(codes, convert_to_texts(columns[label]), strict=True)) if label else {}
        return cls._of(*trees.add_root(codes, above, total)).with_labels(labels)

    @classmethod
    def from_levels(cls, frame: Any, levels: Sequence[str] | None = None, *, total: str | None = None) -> Hierarchy:
        """Make a hierarchy from a frame with one column per level: a correspondence table, or nested columns.

        Parameters
        ----------
        frame
            At least one row for each code of the finest level; microdata are accepted.
        levels
            The columns, coarsest first; all of them unless given.
        total
            Code of the total, "Total" unless given. A first column with one code only is the total.

        Examples
        --------
        >>> Hierarchy.from_levels({"A10": ["AZ", "AZ", "BE"], "A88": ["01", "02", "05"]}).codes
        ('Total', 'AZ', '01', '02', 'BE', '05')
        """
        from cellguard._io.frames import convert_to_texts, read_frame_columns
        from cellguard._io.trees.nested import derive_code_pairs

        columns = read_frame_columns(frame)
        names = list(columns) if levels is None else list(levels)
        raise_error_of_missing("column", names, columns)
        pairs = derive_code_pairs({name: convert_to_texts(columns[name]) for name in names})
        if not pairs:
            raise InputError("the columns hold no code.", hint="a column for each level is needed, the coarsest first.")
        return cls._of(*trees.add_root([code for code, _ in pairs], [parent for _, parent in pairs], total))

    @classmethod
    def from_text(cls, text: str, *, total: str | None = None) -> Hierarchy:
        """Make a hierarchy from indented text; a tab or two blanks separate a code from its label.

        A single code at the top is the total, unless `total` names another.

        >>> Hierarchy.from_text('''
        ... North
        ...     N1   Upper valley
        ...     N2   Lower valley
        ... South
        ... ''').codes
        ('Total', 'North', 'N1', 'N2', 'South')
        """
        from cellguard._io.trees.outline import parse_indented_outline

        return cls._parse_outline(parse_indented_outline(text), total)

    @classmethod
    def from_hrc(cls, path: str | Path, *, lead: str = "@", total: str = "Total") -> Hierarchy:
        """Make a hierarchy from a ``.hrc`` file of tau-ARGUS, which never lists the total."""
        from cellguard._io.trees.outline import parse_hrc_outline

        return cls._parse_outline(parse_hrc_outline(path, lead), total)

    @classmethod
    def from_digits(cls, codes: Iterable[str], levels: Sequence[int], *, total: str = "Total") -> Hierarchy:
        """Make a hierarchy from codes whose first digits are their parents' codes.

        Parameters
        ----------
        codes
            The codes; parents that are not among them are added.
        levels
            Digits of each level: (1, 2) reads ``"417"`` as 417 below 4 below the total.

        Examples
        --------
        >>> Hierarchy.from_digits(["11", "12", "21"], levels=(1, 1)).codes
        ('Total', '1', '11', '12', '2', '21')
        """
        return cls._of(trees.parse_digit_codes(codes, levels, total), total)

    @classmethod
    def read(cls, path: str | Path, *, total: str | None = None, levels: Sequence[str] | None = None) -> Hierarchy:
        """Read a hierarchy from a file.

        Parameters
        ----------
        path
            ``.hrc``; ``.txt`` (indented); or ``.csv``, ``.parquet`` or ``.xlsx``: a code list with the columns
            `code` and `parent` (and optionally `label`), or a correspondence table with one column per level,
            coarsest first.
        total
            Code of the total, where the file does not name it.
        levels
            For a correspondence table: which columns, coarsest first; all of them unless given.
        """
        suffix = Path(path).suffix.lower()
        if suffix == ".hrc":
            return cls.from_hrc(path, total=total or "Total")
        if suffix in (".csv", ".parquet", ".xlsx"):
            from cellguard._io.frames import read_frame

            columns = read_frame(path)
            part = {} if levels is not None else trees.find_parent_columns(columns)
            if "code" in part and "parent" in part:
                return cls.from_frame(columns, **part, total=total)
            if levels is None and len(columns) < 2:
                raise InputError(
                    f"{path}: one column is not a hierarchy.",
                    hint="columns `code` and `parent` are needed, or one for each level, the coarsest first.",
                )
            return cls.from_levels(columns, levels, total=total)
        from cellguard._io.trees.outline import parse_indented_outline, read_text

        return cls._parse_outline(parse_indented_outline(read_text(path), path), total)

    @classmethod
    def of(cls, given: Any, *, codes: Iterable[str] = (), total: str | None = None) -> Hierarchy:
        """Make a hierarchy from any description of one: a hierarchy, nested dicts or lists, a file, or None.

        Several hierarchies or paths in a list are joined.

        None means the flat hierarchy of `codes`. These are sorted, because data may list them by size.
        """
        if isinstance(given, Hierarchy):
            return given
        name = total or "Total"
        if given is None:
            return cls.flat(trees.sort_codes({c for c in codes if c != name}), total=name)
        if isinstance(given, (str, Path)):
            return cls.read(given, total=total)
        if isinstance(given, (list, tuple)) and given and all(isinstance(h, Hierarchy | Path) for h in given):
            return cls.join(*(cls.of(h, total=total) for h in given))
        if isinstance(given, (Mapping, list, tuple)):
            return cls.from_nested(given, total=name)
        return cls.from_frame(given, total=total)

    @_ClassOnly
    def join(cls, first: Hierarchy, *others: Hierarchy) -> Hierarchy:  # noqa: N805 - a class method
        """Join several trees over the same leaves into one hierarchy with the relations of all.

        >>> admin = Hierarchy.from_nested({"North": ["N1", "N2"], "South": ["S1", "S2"]})
        >>> coast = Hierarchy.from_nested({"Coast": ["N1", "S1"], "Inland": ["N2", "S2"]})
        >>> Hierarchy.join(admin, coast).codes
        ('Total', 'North', 'N1', 'N2', 'South', 'S1', 'S2', 'Coast', 'Inland')
        """
        labels: dict[str, str] = {}
        for h in (first, *others):
            for code, label in zip(h.codes, h.labels, strict=True):
                labels.setdefault(code, label)
        position = {code: i for i, code in enumerate(labels)}
        rows = []
        for h in (first, *others):
            if h.codes[0] not in first.codes:
                hint = suggest_names(h.codes[0], first.codes) or "give the trees the same total."
                raise UnknownCodeError(f"the total {h.codes[0]!r} is not a code of the first tree.", hint=hint)
            where = np.array([position[code] for code in h.codes])
            for tree in h.parents:
                row = np.full(len(position), trees.ABSENT, dtype=np.int64)
                row[where] = np.where(tree >= 0, where[tree], tree)
                rows.append(row)
        return cls(tuple(labels), np.vstack(rows), tuple(labels.values()))

    # ------------------------------------------------------------------ what it is

    @property
    def total(self) -> str:
        """The code of the total."""
        return self.codes[0]

    @property
    def leaves(self) -> IntArray:
        """Indices of the codes without parts."""
        childless = np.ones(len(self.codes), dtype=bool)
        childless[self.parents[self.parents >= 0]] = False
        return np.flatnonzero(childless)

    @property
    def n_levels(self) -> int:
        """Number of levels, including the total's."""
        return int(self.depth.max()) + 1

    def index(self, codes: Iterable[str]) -> IntArray:
        """Return the indices of codes; raise an error for an unknown code."""
        position = {code: i for i, code in enumerate(self.codes)}
        try:
            return np.array([position[code] for code in codes], dtype=np.int64)
        except KeyError as error:
            code = str(error.args[0])
            few = ", ".join(self.codes[:6]) + (", ..." if len(self.codes) > 6 else "")
            raise UnknownCodeError(
                f"unknown code {code!r}.",
                hint=trees.suggest_code(code, self.codes) or f"known codes are {few}",
            ) from None

    def relations(self) -> Relations:
        """Return how codes add up, tree by tree; each relation is listed once."""
        totals, parts, seen = [], [], set()
        for tree in self.parents:
            child = np.flatnonzero(tree >= 0)
            if not len(child):  # a total without parts
                continue
            child = child[np.argsort(tree[child], kind="stable")]
            above, start = np.unique(tree[child], return_index=True)
            for total, below in zip(above.tolist(), np.split(child, start[1:]), strict=True):
                key = (total, below.tobytes())
                if len(self.parents) == 1 or key not in seen:
                    seen.add(key)
                    totals.append(total)
                    parts.append(below)
        indptr = np.concatenate([[0], np.cumsum([len(p) for p in parts], dtype=np.int64)])
        joined = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        return Relations(np.array(totals, np.int64), indptr.astype(np.int64), joined)

    def build_matrix(self) -> csr_array:
        """Return the sums of leaves as a matrix: row c, column j is 1 if leaf j is code c or lies below it."""
        from scipy.sparse import csr_array

        n, leaves = len(self.codes), self.leaves
        totals, indptr, parts = self.relations()
        relation = np.repeat(np.arange(len(totals)), np.diff(indptr))
        _, first = np.unique(totals, return_index=True)  # one relation per code is enough to find its leaves
        used = np.isin(relation, first)
        step = csr_array((np.ones(used.sum()), (totals[relation[used]], parts[used])), shape=(n, n))
        reached = csr_array((np.ones(len(leaves)), (leaves, np.arange(len(leaves)))), shape=(n, len(leaves)))
        result = reached
        while reached.nnz:
            reached = step @ reached
            result = result + reached
        result.sort_indices()
        return csr_array(result)

    matrix = OldName("build_matrix")

    def with_labels(self, labels: Mapping[str, str]) -> Hierarchy:
        """Return the hierarchy with labels for some codes; raise an error for an unknown code."""
        self.index(labels)
        old = zip(self.codes, self.labels, strict=True)
        return Hierarchy(self.codes, self.parents, tuple(labels.get(code) or label for code, label in old))

    # ------------------------------------------------------------------ coarser

    def collapse(self, level: int | None = None, *, below: Iterable[str] = ()) -> Hierarchy:
        """Return a coarser hierarchy, without the codes deeper than `level` or below some codes."""
        if len(self.parents) > 1:
            raise InputError(
                "a hierarchy of several trees cannot be collapsed.", hint="collapse each tree, then join them."
            )
        if level is not None and level < 0:
            raise InputError(f"level {level}: at least 0 is needed; 0 is the total.")
        closed = np.zeros(len(self.codes), dtype=bool)
        closed[self.index(below)] = True
        tree = self.parents[0]
        gone = self.depth > (self.n_levels if level is None else level)
        for code in np.argsort(self.depth, kind="stable")[1:]:  # parents before their children
            gone[code] |= gone[tree[code]] | closed[tree[code]]
        return self._select_codes(np.flatnonzero(~gone), tree)

    def below(self, code: str) -> Hierarchy:
        """Return the part of the hierarchy below a code, which becomes the total.

        >>> Hierarchy.from_nested({"North": ["N1", "N2"], "South": ["S1", "S2"]}).below("North").codes
        ('North', 'N1', 'N2')
        """
        start = int(self.index([code])[0])
        tree = next((tree for tree in self.parents if (tree == start).any()), self.parents[0])
        inside = np.arange(len(self.codes)) == start
        while (grown := inside | ((tree >= 0) & inside[np.maximum(tree, 0)])).sum() > inside.sum():
            inside = grown
        kept = np.concatenate([[start], np.flatnonzero(inside & (np.arange(len(inside)) != start))])
        return self._select_codes(kept, tree)

    def _select_codes(self, kept: IntArray, tree: IntArray) -> Hierarchy:
        """Return the hierarchy of some codes of a tree; the first is the total."""
        place = np.zeros(len(self.codes), np.int64)
        place[kept] = np.arange(len(kept))
        up = np.append(-1, place[tree[kept[1:]]])
        return Hierarchy(tuple(self.codes[i] for i in kept), up, tuple(self.labels[i] for i in kept))

    def recode(self, codes: Iterable[str], to: Hierarchy) -> list[str]:
        """Return each code, or its nearest ancestor that the coarser hierarchy `to` still has.

        >>> h = Hierarchy.from_digits(["11", "12", "21"], levels=(1, 1))
        >>> h.recode(["12", "2"], to=h.collapse(1))
        ['1', '2']
        """
        kept = np.isin(np.array(self.codes, dtype=object), np.array(to.codes, dtype=object))
        target = np.where(kept, np.arange(len(self.codes)), -1)
        for code in np.argsort(self.depth, kind="stable"):
            if target[code] < 0:
                above = int(self.parents[np.argmax(self.parents[:, code] > trees.ABSENT), code])
                if above < 0:
                    raise InputError("the coarser hierarchy does not have the total of the finer one.")
                target[code] = target[above]
        return [self.codes[i] for i in target[self.index(codes)]]

    # ------------------------------------------------------------------ comparison and display

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        same = self.codes == other.codes and self.labels == other.labels
        return same and np.array_equal(self.parents, other.parents)

    def __hash__(self) -> int:
        return hash((self.codes, self.parents.tobytes()))

    def __len__(self) -> int:
        return len(self.codes)

    def _repr_html_(self) -> str:
        """Draw the tree for a notebook."""
        return str(call_hook("draw_hierarchy", self))

    def __repr__(self) -> str:
        n, leaves = len(self.codes), len(self.leaves)
        counts = f"{n} code{'' if n == 1 else 's'}, {leaves} lea{'f' if leaves == 1 else 'ves'}"
        several = f", {len(self.parents)} trees" if len(self.parents) > 1 else ""
        head = f"Hierarchy({counts}, depth {self.n_levels - 1}{several})"
        return "\n".join([head, *trees.draw_tree_lines(self.codes, self.labels, self.parents)])

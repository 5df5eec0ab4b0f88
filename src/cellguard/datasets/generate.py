"""Seeded tables of the kinds that the papers use, in any size.

>>> from cellguard import generate
>>> generate.onehier(seed=1)
Table(1444 cells, 171 relations, 135 sensitive)

The same kind, seed and size give the same table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cellguard._engine.space.cell_grid import sum_leaves
from cellguard._types import Coordinates, FloatArray, IntArray
from cellguard.exceptions import InputError, raise_error_of_missing
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.sources.assemble import build_coordinates, build_relations
from cellguard.model.table import Table

__all__ = ["KINDS", "census", "cube", "frequency", "generate", "geography", "hierarchical", "onehier"]

Generator = np.random.Generator

_OCCURRENCES = (
    131831, 33241, 19535, 13934, 11406, 9476, 8561, 7412, 6820, 6250, 5466, 4906, 4560, 4076, 3870, 3660, 3320, 3180,
    2985, 2913, 2681,
)  # fmt: skip
"""Frequency of each count 0, 1, ..., 20 in a large census table (salazar2004 table 1)."""


def _create_generator(kind: int, seed: int) -> Generator:
    if seed < 0:
        raise InputError(f"seed {seed}: a whole number of at least 0 is needed.")
    return np.random.default_rng([kind, seed])


def _check_generated_sizes(least: int, **sizes: int) -> None:
    for name, size in sizes.items():
        if size < least:
            raise InputError(f"{name}={size}: at least {least} is needed.")


def _check_generated_share(name: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise InputError(f"{name}={share}: a share between 0 and 1 is needed.")


def _generate_codes(prefix: str, n: int) -> list[str]:
    return [f"{prefix}{i + 1}" for i in range(n)]


def _find_inner_cells(table: Table) -> IntArray:
    """Return the cells without parts."""
    inner = np.ones(table.n_cells, bool)
    inner[table.relations.indices[table.relations.data < 0]] = False
    return np.flatnonzero(inner)


def _mark_sensitive(table: Table, cells: IntArray, lower: float, upper: float) -> Table:
    """Return the table with the cells marked as sensitive, with levels that are fractions of their values."""
    sensitive = np.zeros(table.n_cells, bool)
    sensitive[cells] = True
    return table.with_(sensitive=sensitive).with_levels(lower, upper)


def _mark_small_counts(table: Table, threshold: int) -> Table:
    """Return the table with small positive leaf counts marked as sensitive; the range of each must be 1 wide."""
    inner = _find_inner_cells(table)
    small = inner[(table.values[inner] > 0) & (table.values[inner] < threshold)]
    level = np.zeros(table.n_cells)
    level[small] = 1.0
    return table.with_(sensitive=level > 0, lower=level, upper=level)


# ---------------------------------------------------------------- magnitude tables


def hierarchical(
    seed: int = 0,
    *,
    branching: Sequence[Sequence[int]] = ((4, 5), (3, 4), (5,)),
    sensitive: float = 0.08,
    zeros: float = 0.1,
    lower: float = 0.1,
    upper: float = 0.1,
) -> Table:
    """Return a k-dimensional hierarchical magnitude table with all margins.

    Parameters
    ----------
    seed
        Which table.
    branching
        For each dimension the number of children at each level: ``(4, 5)`` is a total of 4 codes
        of 5 leaves each.
    sensitive
        Share of the positive leaf cells that are sensitive; small cells are likelier to be.
    zeros
        Share of the leaf cells that are zero.
    lower, upper
        Protection levels, as fractions of the value.
    """
    _check_generated_share("sensitive", sensitive)
    _check_generated_share("zeros", zeros)
    if not branching or not all(levels for levels in branching):
        raise InputError("branching: at least one dimension, each with at least one level, is needed.")
    _check_generated_sizes(1, branching=min(min(levels) for levels in branching))
    rng = _create_generator(1, seed)
    dims = {f"d{d + 1}": _generate_regular_tree(chr(97 + d % 26), levels) for d, levels in enumerate(branching)}
    shape = tuple(len(h.leaves) for h in dims.values())
    leaves = np.ceil(rng.lognormal(4.0, 1.5, shape))
    leaves[rng.random(shape) < zeros] = 0.0
    table = Table.from_leaves(dims, leaves, name=f"hierarchical-{seed}")
    positive = _find_inner_cells(table)
    positive = positive[table.values[positive] > 0]
    chance = 1.0 / np.sqrt(table.values[positive]) if len(positive) else np.ones(0)
    n = round(sensitive * len(positive))
    chosen = rng.choice(positive, n, replace=False, p=chance / chance.sum()) if n else positive[:0]
    return _mark_sensitive(table, chosen, lower, upper)


def _generate_regular_tree(prefix: str, levels: Sequence[int]) -> Hierarchy:
    pairs = []
    level = [("Total", prefix)]
    for children in levels:
        below = [(f"{stem}{i + 1}", parent) for parent, stem in level for i in range(children)]
        pairs += below
        level = [(code, f"{code}.") for code, _ in below]
    return Hierarchy.from_pairs(pairs)


_BAENA = {  # rows (totals included), columns (total included), families of rows, sensitive cells
    1: (76, 19, 5, 135), 2: (159, 16, 9, 237), 3: (124, 17, 7, 196),
    4: (76, 19, 4, 216), 5: (93, 16, 5, 220), 6: (83, 17, 5, 209),
}  # fmt: skip
"""Sizes derived from the four columns of baena2018 table 1 (cells, sensitive, relations, non-zeros)."""


def onehier(
    seed: int = 0,
    *,
    instance: int = 1,
    rows: int | None = None,
    columns: int | None = None,
    families: int | None = None,
    sensitive: float | None = None,
    lower: float = 0.05,
    upper: float = 0.20,
) -> Table:
    """Return a two-dimensional table with one hierarchical dimension, as in baena2018 section 3.

    Parameters
    ----------
    seed
        Which table.
    instance
        Which of the six instances of baena2018 table 1 gives the size: cells, relations, non-zeros
        and sensitive cells are as printed there.
    rows, columns, families
        Codes of the hierarchical and of the flat dimension, totals included, and the number of rows
        that are divided further; each overrides the instance.
    sensitive
        Share of all cells that are sensitive; they are leaf cells.
    lower, upper
        Protection levels as fractions of the value: 0.05 and 0.20 are the paper's asymmetric case,
        0.20 and 0.20 its symmetric one.
    """
    if instance not in _BAENA:
        raise InputError(f"instance {instance}: 1 to 6 are printed.")
    r, c, f, s = _BAENA[instance]
    other = not (rows is columns is families is sensitive is None)
    share = s / (r * c) if sensitive is None else sensitive
    r, c, f = rows or r, columns or c, families or f
    _check_generated_share("sensitive", share)
    _check_generated_sizes(3, rows=r, columns=c)
    if not 1 <= f <= (r - 1) // 2:
        raise InputError(f"families={f}: between 1 and {(r - 1) // 2} are possible with {r} rows.")
    rng = _create_generator(2, seed)
    h = _generate_random_tree(rng, r, f)
    leaves = rng.integers(1, 1001, (len(h.leaves), c - 1))
    table = Table.from_leaves(
        {"row": h, "column": _generate_codes("c", c - 1)}, leaves, name=f"onehier-{instance}-{seed}"
    )
    n = round(share * r * c) if other else s
    inner = _find_inner_cells(table)
    if n > len(inner):
        raise InputError(
            f"sensitive={share}: at most {len(inner) / (r * c):.3f}, the share of leaf cells, is possible."
        )
    return _mark_sensitive(table, rng.choice(inner, n, replace=False), lower, upper)


def _generate_random_tree(rng: Generator, n: int, families: int) -> Hierarchy:
    """Return a tree of n codes in which `families` codes have children, at least two each."""
    spare = n - 1 - 2 * families
    sizes = 2 + rng.multinomial(spare, np.full(families, 1 / families))
    pairs: list[tuple[str, str]] = []
    leaves = ["Total"]
    for size in sizes.tolist():
        parent = leaves.pop(int(rng.integers(len(leaves))))
        family = _generate_codes("r", len(pairs) + size)[len(pairs) :]
        pairs += [(code, parent) for code in family]
        leaves += family
    return Hierarchy.from_pairs(pairs)


# ---------------------------------------------------------------- counts


def frequency(seed: int = 0, *, rows: int = 4, columns: int = 4, threshold: int = 5, width: float = 8.0) -> Table:
    """Return a two-dimensional frequency table as in minami2019 section 4.1.

    Inner cells are absolute values of normal numbers with mean 15 and standard deviation 10, rounded. Those
    below the threshold are sensitive, zeros included; their ranges must be `width` wide. Margins are
    published (fixed), and every cell costs the same.
    """
    _check_generated_sizes(2, rows=rows, columns=columns)
    if width < 0:
        raise InputError(f"width={width}: at least 0 is needed.")
    rng = _create_generator(3, seed)
    leaves = np.abs(np.rint(rng.normal(15.0, 10.0, (rows, columns))))
    table = Table.from_leaves(
        {"row": _generate_codes("r", rows), "column": _generate_codes("c", columns)},
        leaves, weights=1.0, integer=True, name=f"frequency-{rows}x{columns}-{seed}",
    )  # fmt: skip
    inner = np.zeros(table.n_cells, bool)
    inner[_find_inner_cells(table)] = True
    small = inner & (table.values < threshold)
    return table.with_(
        sensitive=small, sliding=np.where(small, width, 0.0), fixed=~inner, counts=table.values, insiders=False,
        known_zeros=False,
    )  # fmt: skip


_INCOME_SUPPORT = {"sex": 2, "partner": 2, "age": 3, "duration": 3, "family": 4, "group": 5}
"""Six ways to divide the same total: 1 + 19 = 20 values per area, linked by 6 relations."""


def geography(
    seed: int = 0,
    *,
    wards: int = 10_524,
    authorities: int = 408,
    counties: int = 55,
    regions: int = 11,
    countries: int = 3,
    mean: float = 120.0,
    threshold: int = 0,
) -> Table:
    """Return the geography table of salazar2004 section 5: areas of one kingdom, 20 counts each.

    The total of each area is divided in six ways (2, 2, 3, 3, 4 and 5 codes). As published:
    220,040 cells and 75,572 relations.

    Parameters
    ----------
    seed
        Which table.
    wards, authorities, counties, regions, countries
        Number of areas at each level below the kingdom; as in the paper unless given.
    mean
        Mean count of a ward.
    threshold
        Positive leaf counts below it are sensitive; none unless given.
    """
    rng = _create_generator(4, seed)
    area = _generate_area_tree(
        rng,
        [
            ("country", countries),
            ("region", regions),
            ("county", counties),
            ("authority", authorities),
            ("ward", wards),
        ],
    )
    names = list(_INCOME_SUPPORT)
    dims = {"area": area} | {
        name: Hierarchy.flat(_generate_codes(f"{name} ", n)) for name, n in _INCOME_SUPPORT.items()
    }
    totals = rng.poisson(_draw_ward_sizes(rng, wards, mean, 1.0))
    cells = build_coordinates(dims, [("area", name) for name in names] + [(name,) for name in names] + ["area", ()])
    values = np.empty(len(cells))
    sums = area.build_matrix()
    for d, name in enumerate(names, 1):
        parts = _divide_totals(rng, totals, _INCOME_SUPPORT[name])
        here = (cells[:, [e for e in range(1, len(dims)) if e != d]] == 0).all(axis=1)  # this division, and the totals
        values[here] = sum_leaves(
            parts, [sums, dims[name].build_matrix()], cells[here][:, [0, d]], (len(area), len(dims[name]))
        )
    return _build_count_table(dims, cells, values, f"geography-{seed}", threshold)


def census(
    seed: int = 0,
    *,
    wards: int = 1176,
    districts: int = 32,
    ages: int = 20,
    living: int = 7,
    mean: float = 4300.0,
    threshold: int = 0,
) -> Table:
    """Return the census table of salazar2004 section 5: areas by age, sex and living arrangement.

    Each area has its inner cells and the margins age x sex, sex x living, age, sex and total; only
    inner cells are added up from area to area. As published: 431,613 cells and 105,960 relations;
    the counts are distributed as in its table 1 (30% zeros, 8% ones).

    Parameters
    ----------
    seed
        Which table.
    wards, districts, ages, living
        Size; as in the paper unless given.
    mean
        Mean population of a ward.
    threshold
        Positive leaf counts below it are sensitive; none unless given.
    """
    _check_generated_sizes(2, ages=ages, living=living)
    rng = _create_generator(5, seed)
    area = _generate_area_tree(rng, [("district", districts), ("ward", wards)])
    flat = {
        "age": _generate_codes("age ", ages),
        "sex": ["female", "male"],
        "living": _generate_codes("living ", living),
    }
    dims = {"area": area} | {name: Hierarchy.flat(codes) for name, codes in flat.items()}
    margins = [("age", "sex", "living"), ("age", "sex"), ("sex", "living"), ("age",), ("sex",), ()]
    cells = build_coordinates(dims, [m for margin in margins for m in (("area", *margin), margin)])
    chance = rng.lognormal(0.0, 1.5, (ages, 2, living))
    never = rng.choice(ages * living, ages * living // 5, replace=False)  # no widowed children: a fifth cannot occur
    chance[never // living, :, never % living] = 0.0
    chance /= chance.sum()
    sizes = _draw_ward_sizes(rng, wards, mean, 0.5)
    leaves = rng.poisson(sizes[:, None, None, None] * chance * rng.exponential(1.0, (wards, *chance.shape)))
    values = sum_leaves(
        leaves.astype(float), [h.build_matrix() for h in dims.values()], cells, [len(h) for h in dims.values()]
    )
    return _build_count_table(dims, cells, values, f"census-{seed}", threshold, between_areas="inner")


def cube(seed: int = 0, *, sides: Sequence[int] = (10, 10, 10), threshold: int = 0) -> Table:
    """Return a flat cube of any number of dimensions with all margins, counts as in salazar2004 table 1.

    Parameters
    ----------
    seed
        Which table.
    sides
        Number of codes of each dimension, totals not counted.
    threshold
        Positive leaf counts below it are sensitive; none unless given.
    """
    if not sides:
        raise InputError("sides: at least one dimension is needed.")
    _check_generated_sizes(1, sides=min(sides))
    rng = _create_generator(6, seed)
    chance = np.array(_OCCURRENCES, float)
    leaves = rng.choice(len(chance), tuple(sides), p=chance / chance.sum())
    dims = {f"d{d + 1}": _generate_codes(chr(97 + d % 26), n) for d, n in enumerate(sides)}
    table = Table.from_leaves(dims, leaves, weights=1.0, integer=True, name=f"cube-{'x'.join(map(str, sides))}-{seed}")
    return _mark_small_counts(table.with_(counts=table.values, insiders=False), threshold)


def _generate_area_tree(rng: Generator, levels: Sequence[tuple[str, int]]) -> Hierarchy:
    """Return a tree of areas with the given number on each level, distributed unevenly, at least one to each."""
    pairs: list[tuple[str, str]] = []
    above = ["Total"]
    for name, n in levels:
        if n < len(above):
            raise InputError(f"{n} areas of level {name!r} cannot be shared out to {len(above)} areas above.")
        chance = rng.gamma(4.0, size=len(above))
        shares = 1 + rng.multinomial(n - len(above), chance / chance.sum())
        areas = _generate_codes(f"{name} ", n)
        pairs += [(area, above[i]) for area, i in zip(areas, np.repeat(np.arange(len(above)), shares), strict=True)]
        above = areas
    return Hierarchy.from_pairs(pairs)


def _draw_ward_sizes(rng: Generator, wards: int, mean: float, spread: float) -> FloatArray:
    if not (np.isfinite(mean) and mean > 0):
        raise InputError(f"mean={mean}: a positive number is needed.")
    sizes = rng.lognormal(0.0, spread, wards)
    return np.asarray(sizes * (mean / sizes.mean()))


def _divide_totals(rng: Generator, totals: IntArray, n: int) -> FloatArray:
    """Divide each total into n parts, by skewed shares that differ between wards."""
    common = rng.dirichlet(np.full(n, 0.7)) + 0.01
    chance = rng.standard_gamma(np.broadcast_to(4.0 * common, (len(totals), n))) + 1e-9
    return rng.multinomial(totals, chance / chance.sum(axis=1, keepdims=True)).astype(np.float64)


def _build_count_table(
    dims: Mapping[str, Hierarchy],
    cells: Coordinates,
    values: FloatArray,
    name: str,
    threshold: int,
    *,
    between_areas: str = "all",
) -> Table:
    """Return a table of counts for areas; relations between areas for all cells, or for the inner ones only."""
    hierarchies = tuple(dims.values())
    T = build_relations(hierarchies, cells)
    if between_areas == "inner":
        first = T.indices[T.indptr[:-1]]  # the total comes first
        second = T.indices[T.indptr[:-1] + 1]
        between = cells[first, 0] != cells[second, 0]
        T = T[~between | (cells[first, 1:] > 0).all(axis=1)]
    table = Table.from_equations(
        values, T, weights=1.0, integer=True, counts=values, insiders=False, name=name, coordinates=cells,
        dimensions=tuple(dims), codes=tuple(h.codes for h in hierarchies), hierarchies=hierarchies,
    )  # fmt: skip
    return _mark_small_counts(table, threshold)


# ---------------------------------------------------------------- by name

KINDS: Mapping[str, Callable[..., Table]] = {
    "hierarchical": hierarchical,
    "onehier": onehier,
    "frequency": frequency,
    "geography": geography,
    "census": census,
    "cube": cube,
}
"""The kinds of tables by name."""


def generate(kind: str, seed: int = 0, **sizes: Any) -> Table:
    """Return a table of a kind given by name.

    >>> generate("cube", seed=3, sides=(4, 4))
    Table(25 cells, 10 relations, 0 sensitive)
    """
    raise_error_of_missing("kind", [kind], KINDS)
    known = [name for name in inspect.signature(KINDS[kind]).parameters if name != "seed"]
    raise_error_of_missing("size", sizes, known, place=f"kind {kind!r}: ")
    return KINDS[kind](seed, **sizes)

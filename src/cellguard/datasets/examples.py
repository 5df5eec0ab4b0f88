"""The small tables printed in the papers, ready to protect, attack and compare.

>>> from cellguard import examples
>>> examples.salazar2004_figure1()
Table(16 cells, 8 relations, 1 sensitive)

Cells are in the order of the grid, the total of each dimension first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cellguard._types import BoolArray, FloatArray
from cellguard.exceptions import raise_error_of_missing
from cellguard.model.hierarchy import Hierarchy
from cellguard.model.table import Table
from cellguard.release.release import Intervals, Perturbation, Release, Rounding, Status, Suppression

__all__ = [
    "TABLES", "castro2004_figure1", "castro2004_figure1_deviations", "castro2004_figure2_deviations",
    "castro2004_figure3", "load", "minami2019_figure1", "minami2019_figure2", "minami2019_table1",
    "salazar2004_figure1", "salazar2004_figure2", "salazar2004_figure5", "salazar2004_figure5_rounded",
    "unroundable_cube",
]  # fmt: skip


def _reorder_to_grid(rows: ArrayLike) -> FloatArray:
    """Return a printed table (totals last) in the order of the grid (totals first)."""
    a = np.asarray(rows, dtype=np.float64)
    for axis in range(a.ndim):
        a = np.roll(a, 1, axis=axis)
    return a.ravel()


def _list_margins(table: Table) -> BoolArray:
    return np.asarray((table.coordinates == 0).any(axis=1))


# ---------------------------------------------------------------- salazar2004


def salazar2004_figure1() -> Table:
    """Return the investment of enterprises by activity and region (salazar2004 figure 1).

    The cell of activity II and region C is sensitive, with the levels given in the text: 10 down, 12 up.
    """
    return Table.from_leaves(
        {"activity": ["I", "II", "III"], "region": ["A", "B", "C"]},
        [[20, 50, 10], [8, 19, 22], [17, 32, 12]],
        sensitive=[11],
        lower=10,
        upper=12,
        name="salazar2004 figure 1",
    )


def salazar2004_figure2() -> dict[str, Release]:
    """Return the four patterns of salazar2004 figure 2, for the table of its figure 1.

    They show what each kind of release looks like; the ranges they leave, such as [5, 30] for the
    suppression, do not all meet the levels given in the text.
    """
    table = salazar2004_figure1()
    a = table.values
    hidden = np.zeros(table.n_cells, bool)
    hidden[[9, 11, 13, 15]] = True  # activities II and III in regions A and C
    lower, upper = a.copy(), a.copy()
    lower[[5, 7, 9, 11]], upper[[5, 7, 9, 11]] = [18, 6, 4, 20], [24, 12, 10, 26]
    rounded = _reorder_to_grid([[20, 50, 10, 80], [10, 20, 20, 50], [15, 30, 15, 60], [45, 100, 45, 190]])
    moved = _reorder_to_grid([[20, 50, 10, 80], [7, 16, 26, 49], [18, 35, 8, 61], [45, 101, 44, 190]])
    base = np.full(table.n_cells, 5.0)
    common: dict[str, Any] = {"table": table, "status": Status.FEASIBLE}
    secondary = float(table.weights[hidden & ~table.sensitive].sum())
    return {
        "suppress": Suppression(**common, objective=secondary, suppressed=hidden),
        "intervals": Intervals(**common, objective=float((upper - lower).sum()), lower=lower, upper=upper),
        "round": Rounding(**common, objective=float(np.abs(rounded - a).sum()), values=rounded, base=base),
        "perturb": Perturbation(
            **common, objective=float(np.abs(moved - a).sum()), values=moved, distance=base, base=base
        ),
    }


_AREAS = {
    "England": [
        "North East", "North West", "Yorkshire and Humberside", "East Midlands", "West Midlands",
        "East", "London", "South East", "South West",
    ],
    "Wales": None,
    "Scotland": None,
}  # fmt: skip
_FIGURE5 = {  # male, female, young, adult, thin, fat: unrounded, then rounded to base 5
    "North East": [(29225, 31368, 13856, 46737, 34565, 26028), (29225, 31370, 13855, 46740, 34565, 26030)],
    "North West": [(78129, 96285, 25673, 148741, 3432, 170982), (78130, 96285, 25675, 148740, 3430, 170985)],
    "Yorkshire and Humberside": [
        (46119, 62650, 2342, 106427, 32223, 76546),
        (46120, 62650, 2340, 106430, 32225, 76545),
    ],
    "East Midlands": [(43201, 50145, 23443, 69903, 23434, 69912), (43200, 50145, 23445, 69900, 23435, 69910)],
    "West Midlands": [(61046, 70771, 23878, 107939, 432, 131385), (61045, 70770, 23875, 107940, 430, 131385)],
    "East": [(47376, 59684, 24532, 82528, 34233, 72827), (47375, 59685, 24530, 82530, 34235, 72825)],
    "London": [(49053, 61758, 17635, 93176, 3423, 107388), (49055, 61755, 17635, 93175, 3420, 107390)],
    "South East": [(50949, 72410, 34223, 89136, 4567, 118792), (50950, 72410, 34225, 89135, 4570, 118790)],
    "South West": [(44718, 75145, 35980, 83883, 56356, 63507), (44715, 75145, 35980, 83880, 56355, 63505)],
    "Wales": [(49579, 45809, 34989, 60399, 6454, 88934), (49580, 45810, 34990, 60400, 6455, 88935)],
    "Scotland": [(61327, 63351, 36789, 87889, 5643, 119035), (61325, 63350, 36790, 87885, 5640, 119035)],
}
_GROUPS = (("sex", "male", "female"), ("age", "young", "adult"), ("weight", "thin", "fat"))


def _build_linked_areas(version: int) -> Table:
    area = Hierarchy.from_nested(_AREAS, total="Great Britain")
    names = [area.codes[i] for i in area.leaves]
    linked = [
        Table.from_leaves(
            {"area": area, dimension: list(codes)},
            [_FIGURE5[name][version][2 * g : 2 * g + 2] for name in names],
            integer=True,
        )
        for g, (dimension, *codes) in enumerate(_GROUPS)
    ]
    return Table.from_linked(linked, name="salazar2004 figure 5")


def salazar2004_figure5() -> Table:
    """Return the dummy table of salazar2004 figure 5: areas by sex, by age and by weight, linked by their totals."""
    return _build_linked_areas(0)


def salazar2004_figure5_rounded() -> Rounding:
    """Return the rounding that salazar2004 figure 5 prints for its table, base 5."""
    table, values = _build_linked_areas(0), _build_linked_areas(1).values
    objective = float(np.abs(values - table.values).sum())
    base = np.full(table.n_cells, 5.0)
    return Rounding(table=table, status=Status.FEASIBLE, objective=objective, values=values, base=base)


# ---------------------------------------------------------------- castro2004


def castro2004_figure1() -> Table:
    """Return the table of castro2004 figure 1(a): four sensitive cells, unit weights, fixed margins.

    The paper prints upper levels and moves every sensitive cell up; the lower levels equal them here.
    """
    table = Table.from_leaves(
        {"row": ["1", "2", "3"], "column": ["1", "2", "3", "4"]},
        [[10, 15, 11, 9], [8, 10, 12, 15], [10, 12, 11, 13]],
        weights=1.0,
        sensitive=[6, 13, 18, 19],
        lower=[3, 4, 2, 5],
        upper=[3, 4, 2, 5],
        name="castro2004 figure 1",
    )
    return table.with_(fixed=_list_margins(table))


def _read_deviations(*printed: ArrayLike) -> list[FloatArray]:
    return [_reorder_to_grid(np.pad(np.asarray(z, float), ((0, 1), (0, 1)))) for z in printed]


def castro2004_figure1_deviations() -> dict[str, FloatArray]:
    """Return the deviations of castro2004 figure 1(b-d), in the order of the table's cells.

    ``z`` protects the table (L1, objective 36); ``z1`` and ``z2`` come from the attacker's levels with
    errors (1, 1, 1, 1) and (1, 2, 3, 4), objectives 46 and 68. The multipliers are (0, 2, 4, 4).
    """
    z, z1, z2 = _read_deviations(
        [[7, 0, -6, -1], [0, 0, 4, -4], [-7, 0, 2, 5]],
        [[9, 0, -8, -1], [0, 0, 5, -5], [-9, 0, 3, 6]],
        [[10, 4, -11, -3], [0, 0, 6, -6], [-10, -4, 5, 9]],
    )
    return {"z": z, "z1": z1, "z2": z2}


def castro2004_figure2_deviations() -> dict[str, FloatArray]:
    """Return the deviations of castro2004 figure 2: two optimal ones with L1 and the only one with L2.

    The L2 deviations solve the printed constraints exactly; the paper prints them rounded (3.416,
    0.083) and one of them cut short. Their 2-norm is 12.12.
    """
    one, other, l2 = _read_deviations(
        [[7, 0, -6, -1], [0, 0, 4, -4], [-7, 0, 2, 5]],
        [[6, 0, -6, 0], [1, 0, 4, -5], [-7, 0, 2, 5]],
        [[41 / 12, 41 / 12, -6, -10 / 12], [1 / 12, 1 / 12, 4, -50 / 12], [-3.5, -3.5, 2, 5]],
    )
    return {"l1": one, "l1_other": other, "l2": l2}


def castro2004_figure3() -> Table:
    """Return the table of castro2004 figure 3: 12 + 8 = 20; the total is sensitive with upper level 4."""
    return Table.from_equations(
        [12, 8, 20],
        [[2, 0, 1]],
        weights=[1 / 12, 1 / 8, 1 / 20],
        sensitive=[2],
        upper=4,
        lower=4,
        name="castro2004 figure 3",
    )


# ---------------------------------------------------------------- minami2019


def minami2019_figure1() -> tuple[Table, Table]:
    """Return the frequency and the magnitude table of minami2019 figure 1 (region by occupation)."""
    dims = {"region": ["M1", "M2", "M3"], "occupation": ["P1", "P2", "P3", "P4", "P5"]}
    people = [[20, 15, 30, 20, 10], [72, 20, 1, 30, 10], [38, 38, 15, 40, 2]]
    income = [[360, 450, 720, 400, 360], [1440, 540, 22, 570, 320], [722, 1178, 375, 800, 363]]
    frequency = Table.from_leaves(dims, people, integer=True, name="minami2019 figure 1, frequencies")
    frequency = frequency.with_(counts=frequency.values, insiders=False)
    magnitude = Table.from_leaves(
        dims, income, counts=frequency.values, insiders=False, name="minami2019 figure 1, incomes"
    )
    return frequency, magnitude


def _build_frequency_table(
    dims: Mapping[str, Any], leaves: ArrayLike, *, threshold: int, width: float, name: str
) -> Table:
    """Return a frequency table as minami2019 protects it: fixed margins, unit weights, a width for small cells."""
    table = Table.from_leaves(dims, leaves, weights=1.0, integer=True, name=name)
    inner = ~_list_margins(table)
    small = inner & (table.values < threshold)
    return table.with_(
        sensitive=small, sliding=np.where(small, width, 0.0), fixed=~inner, counts=table.values, insiders=False,
        known_zeros=False,
    )  # fmt: skip


def minami2019_figure2() -> Suppression:
    """Return the suppressed table of minami2019 figure 2 and example 1: threshold 10, least width 10.

    The range of its only sensitive cell is [0, 17].
    """
    dims = {"M": ["M1", "M2", "M3"], "P": ["P1", "P2", "P3"]}
    leaves = [[7, 11, 60], [10, 60, 11], [60, 12, 60]]
    table = _build_frequency_table(dims, leaves, threshold=10, width=10, name="minami2019 figure 2")
    return _build_suppression(table, [5, 6, 9, 10])


def minami2019_table1(k: int = 0) -> Suppression:
    """Return the suppressed table of minami2019 table 1, completed by its k-th candidate, k = 0..9.

    The four suppressed cells are (14, 9, 9, 0) + k (1, -1, -1, 1) (equation 37); threshold 5, width 8.
    """
    dims = {"M": ["M1", "M2", "M3", "M4"], "P": ["P1", "P2", "P3", "P4"]}
    leaves = [[15, 15, 12, 10], [19, 14 + k, 13, 9 - k], [8, 8, 11, 14], [9, 9 - k, 26, k]]
    table = _build_frequency_table(dims, leaves, threshold=5, width=8, name="minami2019 table 1")
    return _build_suppression(table, [12, 14, 22, 24])


def _build_suppression(table: Table, cells: list[int]) -> Suppression:
    hidden = np.zeros(table.n_cells, bool)
    hidden[cells] = True
    objective = float(table.weights[hidden & ~table.sensitive].sum())
    return Suppression(table=table, status=Status.FEASIBLE, objective=objective, suppressed=hidden)


# ---------------------------------------------------------------- a cube that cannot be rounded


def unroundable_cube() -> Table:
    """Return a 3 x 3 x 3 cube with all margins that has no zero-restricted rounding to base 2.

    Such cubes exist from three dimensions on (Causey, Cox and Ernst 1985). Every line of this one
    holds two ones or none, so in each pair one is rounded up and one down; following the pairs
    around a cycle of odd length contradicts that.
    """
    leaves = [[[0, 0, 0], [0, 1, 1], [0, 1, 1]], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [[0, 1, 1], [1, 1, 0], [1, 0, 1]]]
    codes = ["1", "2", "3"]
    return Table.from_leaves({"x": codes, "y": codes, "z": codes}, leaves, integer=True, name="unroundable cube")


TABLES: Mapping[str, Callable[[], Table]] = {
    "castro2004-figure1": castro2004_figure1,
    "castro2004-figure3": castro2004_figure3,
    "minami2019-figure1": lambda: minami2019_figure1()[0],
    "minami2019-figure1-income": lambda: minami2019_figure1()[1],
    "minami2019-figure2": lambda: minami2019_figure2().table,
    "minami2019-table1": lambda: minami2019_table1().table,
    "salazar2004-figure1": salazar2004_figure1,
    "salazar2004-figure5": salazar2004_figure5,
    "unroundable-cube": unroundable_cube,
}
"""Every example by name."""


def load(name: str) -> Table:
    """Return an example by its name.

    >>> load("castro2004-figure1")
    Table(20 cells, 9 relations, 4 sensitive)
    """
    raise_error_of_missing("example", [name], TABLES)
    return TABLES[name]()

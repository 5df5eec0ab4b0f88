"""What empty cells tell about the cross of tables: what plain linear algebra finds, and nothing where tables form a tree."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import cellguard as cg
from cellguard._engine.space import cross
from cellguard._engine.space.cross import derive_cross_relations, filter_informative_crosses, find_crosses

FIRMS = {
    ("North", "mining", "large"): [25, 15], ("North", "energy", "large"): [200] * 5, ("North", "crafts", "small"): [10] * 6,
    ("South", "mining", "large"): [12] * 5, ("South", "energy", "large"): [180] * 5, ("South", "crafts", "small"): [11] * 6,
    ("West", "mining", "large"): [60] * 5, ("West", "energy", "large"): [150] * 5, ("West", "crafts", "small"): [30] * 6,
}  # fmt: skip
PAIRS = ((0, 1), (1, 2), (0, 2))


def margins(filled, pairs=PAIRS):
    """Return coordinates, leaves, emptiness and relations of the margins of a table, and what each filled cell counts in."""
    shape, cells = filled.shape, {}
    for pair in pairs:
        for codes in np.ndindex(*(shape[d] + 1 for d in pair)):
            key = [0] * len(shape)
            for d, code in zip(pair, codes, strict=True):
                key[d] = code
            cells.setdefault(tuple(key), len(cells))
    M = np.zeros((len(cells), int(filled.sum())))
    for column, place in enumerate(np.argwhere(filled)):
        for key, row in cells.items():
            M[row, column] = all(k in (0, p + 1) for k, p in zip(key, place, strict=True))
    relations = []
    for key, row in cells.items():
        for d in range(len(shape)):
            parts = [cells.get((*key[:d], code + 1, *key[d + 1 :])) for code in range(shape[d])]
            if key[d] == 0 and None not in parts:
                relations.append(np.bincount([row, *parts], [-1.0, *[1.0] * len(parts)], len(cells)))
    leaves = [np.arange(n + 1) > 0 for n in shape]
    return np.array(list(cells)), leaves, ~M.any(axis=1), csr_array(np.array(relations)), M


def relations(coordinates, leaves, empty, known):
    trees = [{0: [np.flatnonzero(leaf).tolist()]} for leaf in leaves]
    crosses = find_crosses(coordinates, trees, empty)
    telling = filter_informative_crosses(crosses)
    return derive_cross_relations(telling[0], empty, known) if telling else known[:0]


def rank(A):
    return np.linalg.matrix_rank(A) if A.size else 0


@pytest.mark.parametrize("seed", range(25))
def test_with_them_all_relations_are_known(seed):
    rng = np.random.default_rng(seed)
    filled = rng.random((3, 3, rng.integers(2, 4))) < rng.uniform(0.25, 0.9)
    coordinates, leaves, empty, known, M = margins(filled)
    found = relations(coordinates, leaves, empty, known)
    assert not (found @ M).any()
    told = np.vstack([known.toarray(), found.toarray(), np.eye(len(empty))[empty]])
    # a cell of the cross may be filled where all its margins are: what holds then is all that empty cells tell
    cells = {tuple(c): k for k, c in enumerate(coordinates.tolist())}
    may = [
        [cells[tuple(p + 1 if d in pair else 0 for d, p in enumerate(place))] for pair in PAIRS]
        for place in np.ndindex(*filled.shape)
    ]
    support = [place for place, mine in zip(np.ndindex(*filled.shape), may, strict=True) if not empty[mine].any()]
    whole = np.zeros(filled.shape, bool)
    whole[tuple(np.array(support).T)] = True
    everything = margins(whole)[4]
    assert rank(told) == len(empty) - rank(everything)


def test_a_full_cross_tells_nothing():
    *given, _ = margins(np.ones((3, 4, 2), bool))
    assert relations(*given).shape[0] == 0


def test_tables_that_form_a_tree_tell_nothing():
    filled = np.random.default_rng(1).random((3, 3, 3)) < 0.3
    *given, _ = margins(filled, pairs=((0, 1), (1, 2)))
    assert cross._find_cyclic_layouts([frozenset(p) for p in ((0, 1), (1, 2))]) == []
    assert relations(*given).shape[0] == 0


def test_cycles_are_found_below_what_hangs_on_them():
    layouts = [frozenset(x) for x in ((0, 1), (1, 2), (0, 2), (2, 3), (0,), (1,))]
    assert set(cross._find_cyclic_layouts(layouts)) == set(layouts[:3])
    four = [frozenset(x) for x in ((0, 1), (1, 2), (2, 3), (3, 0))]
    assert set(cross._find_cyclic_layouts(four)) == set(four)


def test_a_vast_cross_is_left_alone(monkeypatch):
    *given, _ = margins(np.array([[[True, False]] * 2 + [[False, True]]] * 3))  # mines and energy large, crafts small
    assert relations(*given).shape[0] > 0
    monkeypatch.setattr(cross, "_MOST", 5)
    assert relations(*given).shape[0] == 0


def firms():
    rows = [(*key, value) for key, values in FIRMS.items() for value in values]
    return dict(zip(("region", "act", "size", "turnover"), map(list, zip(*rows, strict=True)), strict=True))


TABLES = (["region", "act"], ["act", "size"], ["region", "size"])


def as_publication():
    tables = {" by ".join(names): names for names in TABLES}
    return cg.tabulate_publication(firms(), ["region", "act", "size"], tables, indicators={"turnover": "turnover"})


def as_linked():
    return cg.tabulate(firms(), by=["region", "act", "size"], value="turnover", tables=TABLES)


def as_joined():
    return cg.Table.from_linked([cg.tabulate(firms(), by=names, value="turnover") for names in TABLES])


def as_one_file():
    table = as_linked()
    frame = table.cell_codes() | {"value": table.values, "firms": table.counts}
    dims = dict(zip(table.dimensions, table.hierarchies, strict=True))
    return cg.Table.from_frame(frame, dims, counts="firms", missing="unpublished")


@pytest.mark.parametrize("made", [as_publication, as_linked, as_joined, as_one_file])
def test_what_subtraction_across_three_tables_gives_away_is_withheld(made):
    """All mines and power stations are large, all crafts small: North's large firms less its energy are its mines."""
    release = cg.suppress(made().apply(cg.MinFrequency(3, percent=10)), time_limit_s=10)
    assert release.audit().safe
    table = release.table
    mine, energy, large = (
        table.cell(dict(zip(("region", "act", "size"), codes, strict=True)))
        for codes in (("North", "mining", "Total"), ("North", "energy", "Total"), ("North", "Total", "large"))
    )
    assert table.sensitive[mine]
    assert release.suppressed[[energy, large]].any()

"""That nothing in the unpublished cross of linked tables is negative: an audit by plain linear programs agrees."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import cellguard as cg
from cellguard._engine.clock import NEVER
from cellguard._engine.ranges.search import cross_reach
from cellguard._engine.space import cross
from cellguard.methods.limits import Limits
from cellguard.methods.procedure import Candidate, Procedure
from cellguard.methods.protection import Protection
from cellguard.methods.suppress import METHOD
from cellguard.model.linked.publication import Part

PAIRS = (["region", "act"], ["act", "size"], ["region", "size"])
NAMES = ("region", "act", "size")


def nearly_empty():
    """Mines and power stations are large and crafts are small, but for a handful of tiny firms."""
    large = {"North": (40, 1000, 60), "South": (60, 900, 66), "West": (300, 750, 180)}
    rows = []
    for region, (mining, energy, crafts) in large.items():
        rows += [(region, "mining", "large", x) for x in (0.62 * mining, 0.38 * mining)]
        rows += [(region, "energy", "large", energy / 5)] * 5 + [(region, "crafts", "small", crafts / 6)] * 6
        for act, size in (("mining", "small"), ("energy", "small"), ("crafts", "large")):
            rows += [(region, act, size, 0.02)] * 4
    return dict(zip((*NAMES, "turnover"), map(list, zip(*rows, strict=True)), strict=True))


def as_linked(records):
    return cg.tabulate(records, by=list(NAMES), value="turnover", tables=PAIRS)


def as_publication(records):
    tables = {" by ".join(names): names for names in PAIRS}
    made = cg.tabulate_publication(records, list(NAMES), tables, indicators={"turnover": "turnover"})
    return made.apply(cg.PPercent(10)).table


def reached(release, cell, sign):
    """Return how far a cell goes with a cross of numbers that are not negative, by a program of its own."""
    table = release.table
    codes = table.coordinates[:, -3:]
    sizes = codes.max(axis=0)
    cross = np.array(list(np.ndindex(*sizes))) + 1
    counts_in = ((codes[:, None] == 0) | (codes[:, None] == cross[None])).all(axis=2).astype(float)
    shown = ~release.suppressed
    found = linprog(
        -sign * counts_in[cell], A_eq=counts_in[shown], b_eq=table.values[shown], bounds=(0, None), method="highs"
    )
    assert found.status == 0
    return abs(-sign * found.fun - table.values[cell])


def closer_cells(release):
    table = release.table
    cells = np.flatnonzero(table.sensitive)
    sides = ((-1.0, table.lower), (1.0, table.upper))
    return [c for c in cells if any(reached(release, c, s) < level[c] * (1 - 1e-6) for s, level in sides)]


@pytest.mark.parametrize("made", [as_linked, as_publication])
def test_nearly_empty_cells_give_nothing_away(made):
    """A mine's turnover followed from other tables up to that of a tiny firm, in a release that was called safe."""
    table = made(nearly_empty())
    table = (table if table.sensitive.any() else table.apply(cg.PPercent(10))).with_(insiders=False)
    assert table.crosses
    release = cg.suppress(table.with_(crosses=()), rounds=2, time_limit_s=300)
    mines = np.flatnonzero(table.sensitive)
    assert any(reached(release, c, 1.0) < 0.01 * table.values[c] for c in mines)
    seen = replace(release, table=release.table.with_(crosses=table.crosses))
    assert seen.audit(cross=False).safe
    assert not seen.audit().safe
    closed = cg.suppress(table, rounds=2, time_limit_s=300)
    assert closed.audit().safe
    assert not closer_cells(closed)


def districts(records):
    """Every region has two districts: the tables differ in how deep they go."""
    return records | {"region": [f"{r}{k % 2}" for k, r in enumerate(records["region"])]}


DISTRICTS = {name: [f"{name}0", f"{name}1"] for name in ("North", "South", "West")}


def published_deeper(records):
    deep = cg.tabulate(districts(records), {"region": DISTRICTS, "act": None}, "turnover")
    flat = [cg.tabulate(records, names, "turnover") for names in PAIRS[1:]]
    return {"deep": deep, "by act": flat[0], "by size": flat[1]}


def published_with_a_detail(records):
    tables = {" by ".join(names): cg.tabulate(records, names, "turnover") for names in PAIRS}
    return tables | {"districts": cg.tabulate(districts(records), {"region": DISTRICTS}, "turnover")}


def published_for_a_part(records):
    more = {name: [*records[name], *records[name]] for name in (*NAMES, "turnover")}
    n = len(records["turnover"])
    sector = {"sector": ["A"] * n + ["B"] * n}
    parts = [
        Part(name=" by ".join(names), table=cg.tabulate(records, names, "turnover"), where={"sector": "A"})
        for names in PAIRS
    ]
    return [*parts, Part(name="sectors", table=cg.tabulate(more | sector, ["sector"], "turnover"))]


def published_beside_another_cycle(records):
    rng = np.random.default_rng(1)
    codes = [f"c{k}" for k in range(15)]
    cube = rng.uniform(5, 50, (15, 15, 15))
    cube *= sum(records["turnover"]) / cube.sum()
    tables = {" by ".join(names): cg.tabulate(records, names, "turnover") for names in PAIRS}
    for axis, names in enumerate((("y", "z"), ("x", "z"), ("x", "y"))):
        tables["".join(names)] = cg.Table.from_leaves(dict.fromkeys(names, codes), cube.sum(axis=axis))
    return tables


@pytest.mark.parametrize(
    "tables",
    [published_deeper, published_with_a_detail, published_for_a_part, published_beside_another_cycle],
)
def test_the_cross_is_found_whatever_else_is_published(tables):
    made = cg.Publication.of(tables(nearly_empty()), tolerance=1e-6)
    table = made.table
    mines = [
        c for c in range(table.n_cells)
        if {"act": "mining"}.items() <= codes_of(table, c).items()
        and codes_of(table, c).get("region") in DISTRICTS and codes_of(table, c)["size"] == "Total"
    ]  # fmt: skip
    assert len(mines) == 3
    level = np.zeros(table.n_cells)
    level[mines] = 0.06 * table.values[mines]
    table = table.with_(sensitive=level > 0, lower=level, upper=level, insiders=False)
    open_ = cg.suppress(table.with_(crosses=()), rounds=2, time_limit_s=300)
    assert open_.published
    assert not replace(open_, table=table).audit().safe
    closed = cg.suppress(table, rounds=2, time_limit_s=300)
    assert closed.published
    assert closed.audit().safe


def codes_of(table, cell):
    return {d: table.codes[k][table.coordinates[cell, k]] for k, d in enumerate(table.dimensions)}


def random_tables(seed):
    rng = np.random.default_rng(seed)
    shape = (3, 3, int(rng.integers(2, 4)))
    cube = 10 ** rng.uniform(-2, 3, shape)
    codes = [[f"{name[0]}{k}" for k in range(n)] for name, n in zip(NAMES, shape, strict=True)]
    rows = [[codes[d][place[d]] for place in np.ndindex(*shape)] for d in range(3)]
    records = dict(zip((*NAMES, "turnover"), (*rows, cube.ravel().tolist()), strict=True))
    table = as_linked(records).with_(insiders=False)
    sensitive = rng.choice(np.flatnonzero((table.coordinates > 0).sum(axis=1) == 2), 3, replace=False)
    level = np.zeros(table.n_cells)
    level[sensitive] = 0.15 * table.values[sensitive]
    return table.with_(sensitive=level > 0, lower=level, upper=level)


@pytest.mark.parametrize("seed", range(20))
def test_the_audit_and_plain_programs_agree(seed):
    table = random_tables(seed)
    release = cg.suppress(table.with_(crosses=()), time_limit_s=300, method="exact")
    seen = replace(release, table=release.table.with_(crosses=table.crosses))
    found = seen.audit()
    assert found.unsafe_cells.tolist() == closer_cells(seen)
    closed = cg.suppress(table, rounds=2, time_limit_s=300)
    assert closed.published
    assert closed.audit().safe
    assert not closer_cells(closed)


def test_some_of_these_patterns_are_seen_through():
    seen = [
        replace(cg.suppress(t.with_(crosses=()), rounds=2, time_limit_s=300), table=t).audit(cross=True).safe
        for t in (random_tables(seed) for seed in range(20))
    ]
    assert 0 < sum(seen) < len(seen)


def test_what_cannot_be_mended_is_not_returned():
    table = as_linked(nearly_empty()).apply(cg.PPercent(10)).with_(insiders=False)
    planned = cg.suppress(table.with_(crosses=()), rounds=2, time_limit_s=300)

    class Unrepairable(Procedure):
        method = METHOD

        def solve(self, problem, limits):  # noqa: ARG002 - the contract of a method
            return Candidate(release=replace(planned, table=problem.table), problem=problem)

    release = Protection(procedure=Unrepairable(), limits=Limits(time_limit_s=300)).run(table)
    assert not release.published
    assert "unpublished cross" in release.explanation


@pytest.mark.parametrize("verb", [cg.intervals, cg.perturb, cg.round])
def test_what_other_methods_return_is_safe_with_the_cross(verb):
    for seed in range(6):
        table = random_tables(seed)
        options = {} if verb is cg.intervals else {"base": float(np.ceil(2.5 * table.lower.max()))}
        release = verb(table, time_limit_s=300, **options)
        assert release.published
        assert release.audit().safe


def test_tables_with_negative_numbers_tell_nothing_of_this_kind():
    table = random_tables(3)
    release = cg.suppress(table.with_(crosses=()), rounds=2, time_limit_s=300)
    below = release.table.with_(crosses=table.crosses, lb=np.full(table.n_cells, -np.inf))
    assert replace(release, table=below).audit().safe


def test_a_limit_of_time_leaves_it_open():
    table = as_linked(nearly_empty()).apply(cg.PPercent(10)).with_(insiders=False)
    release = cg.suppress(table.with_(crosses=()), rounds=2, time_limit_s=300)
    found = replace(release, table=table).audit(time_limit_s=0.0)
    assert not found.safe


def test_a_cross_that_is_too_large_is_said_to_be_left_out(monkeypatch):
    table = as_linked(nearly_empty()).apply(cg.PPercent(10)).with_(insiders=False)
    release = replace(cg.suppress(table.with_(crosses=()), rounds=2, time_limit_s=300), table=table)
    assert "crosses_not_audited" not in release.audit().summary()
    monkeypatch.setattr(cross, "MOST_IN_PROGRAMS", 10)
    large = as_linked(nearly_empty())
    assert not large.crosses
    found = replace(release, table=release.table.with_(crosses=(), crosses_left_out=large.crosses_left_out)).audit()
    assert found.summary()["crosses_not_audited"] == 1


def test_a_movement_beyond_the_bounds_shows_nothing():
    """A solver that is stopped may hand over a point outside them."""
    table = as_linked(nearly_empty())
    (reach,) = cross_reach.CrossReach.of(table.relations, table.crosses, table.values, NEVER)
    still = np.zeros(reach.A.shape[1])
    low, high = np.concatenate([still[: reach.n], -reach.x]), np.concatenate([still[: reach.n], reach.x + np.inf])
    assert reach._is_valid_movement(still, low, high)
    whole = np.concatenate([table.values / reach.unit, reach.x])
    assert not reach._is_valid_movement(whole, low, high)  # satisfies every relation


def test_a_cross_that_was_not_fitted_in_time_shows_nothing(monkeypatch):
    """It had been left out like one that fits nothing, and the release called safe."""
    table = as_linked(nearly_empty()).apply(cg.PPercent(10)).with_(insiders=False)
    release = replace(cg.suppress(table, rounds=2, time_limit_s=300), table=table)
    assert release.audit().safe
    monkeypatch.setattr(cross_reach, "_SWEEPS", 0)
    assert release.audit(exact=True).safe  # by a program
    monkeypatch.setattr(cross_reach.LinearModel, "is_satisfied_by", lambda *_: False)
    assert not release.audit(exact=True).safe

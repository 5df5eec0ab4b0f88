"""Every method x kinds of tables x kinds of levels: what is returned as a success, every audit accepts."""

import numpy as np
import pytest

import cellguard as cg
from cellguard.nouns.levels import required_levels
from cellguard.nouns.release import Adjustment, Release, Rounding

RNG = np.random.default_rng


def counts_from_leaves() -> cg.Table:
    leaves = RNG(5).poisson(6, (5, 4)) + 4.0
    leaves[0, 1], leaves[2, 3], leaves[4, 0] = 1, 2, 1
    dims = {"region": [f"r{i}" for i in range(5)], "age": [f"a{i}" for i in range(4)]}
    return cg.Table.from_leaves(dims, leaves, integer=True, weights=1.0)


def records(n: int = 150) -> dict[str, list]:
    rng = RNG(8)
    regions = rng.choice(["N", "S", "W", "E"], n, p=[0.45, 0.3, 0.2, 0.05]).tolist()
    sectors = rng.choice(["f", "m", "k"], n, p=[0.6, 0.3, 0.1]).tolist()
    amounts = np.ceil(np.exp(rng.normal(5, 1.2, n))).tolist()
    return {"region": regions, "sector": sectors, "x": amounts}


def counts_from_records() -> cg.Table:
    return cg.tabulate(records(), ["region", "sector"])


def magnitudes() -> cg.Table:
    return cg.tabulate(records(), ["region", "sector"], "x")


def ready() -> cg.Table:
    """A frame that is already added up, with a lone firm, two firms, an empty cell and a zero with contributors."""
    frame = {
        "region": [r for r in "NSWE" for _ in range(4)],
        "sector": ["f", "m", "k", "o"] * 4,
        "value": [130.0, 45, 88, 20, 61, 0, 35, 70, 94, 52, 0, 33, 41, 77, 58, 66],
        "firms": [9, 1, 7, 8, 6, 2, 7, 8, 9, 2, 0, 7, 8, 6, 9, 9],
        "first": [30.0, 45, 20, 5, 20, 0, 9, 20, 30, 50, 0, 9, 9, 20, 20, 20],
    }
    table = cg.Table.from_frame(frame, ["region", "sector"], counts=None)
    with_counts = cg.Table.from_leaves(
        dict(zip(table.dimensions, table.hierarchies, strict=True)), _square(frame, "firms")
    ).values
    return table.with_(counts=with_counts)


def _square(frame: dict, name: str) -> np.ndarray:
    return np.array(frame[name], float).reshape(4, 4)


TABLES = {f.__name__: f for f in (counts_from_leaves, counts_from_records, magnitudes, ready)}


def by_rule(table: cg.Table) -> cg.Table:
    return table.apply(cg.MinFrequency(3))


def percentages(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.1, 0.1)


def asymmetric(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.05, 0.2)


def upper_only(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.0, 0.15)


def sliding_only(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.0, 0.0, sliding=0.2)


def none_at_all(table: cg.Table) -> cg.Table:
    return by_rule(table).with_levels(0.0, 0.0)


LEVELS = {f.__name__: f for f in (by_rule, percentages, asymmetric, upper_only, sliding_only, none_at_all)}


def _base(table: cg.Table) -> float:
    from cellguard.methods.bases import suggested_base

    return suggested_base(table)


METHODS = {
    "suppress": lambda t: cg.suppress(t, time_limit_s=10, rounds=5, seed=1),
    "adjust": lambda t: cg.adjust(t, norm="l1", repair="senses", seed=1),
    "intervals": lambda t: cg.intervals(t, time_limit_s=20, seed=1),
    "round": lambda t: cg.round(t, base=_base(t), time_limit_s=20, seed=1),
    "perturb": lambda t: cg.perturb(t, base=_base(t), time_limit_s=20, seed=1),
}
ALWAYS = {"suppress", "intervals"}
"""Methods that find a release of every table here; the others may say, honestly, that there is none."""


def read_again(release: Release, path) -> Release:
    release.save(path)
    options: dict = {"method": release.method}
    if isinstance(release, Rounding):
        options |= {"base": float(release.base[0]), "step": release.step}
    elif release.method == "perturb":
        options |= {"base": float(release.base[0])}
    return cg.read_release(release.table, path, **options)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_a_success_is_accepted_by_every_audit(method, kind, levels, tmp_path):
    table = LEVELS[levels](TABLES[kind]())
    assert table.sensitive.any()
    try:
        release = METHODS[method](table)
    except cg.CellguardError as error:  # levels that this method cannot meet are refused with a reason and a hint
        assert (method not in ALWAYS, bool(error.hint)) == (True, True)  # noqa: PT017
        return
    if not release.published:
        assert method not in ALWAYS, release.explanation
        assert release.explanation
        return
    assert cg.audit(release).safe
    if not isinstance(release, Adjustment):
        assert cg.audit(release, exact=True).safe
    found = cg.audit(read_again(release, tmp_path / "release.csv"))
    assert found.safe
    assert found.checked == len(required_levels(table).cells)
    assert found.integer is table.integer
    never_the_truth(release)


def never_the_truth(release: Release) -> None:
    table, point = release.table, release.point_values()
    s = table.sensitive & np.isfinite(point)
    if release.method == "intervals":
        lo, hi = release.published_bounds()
        assert (hi[s] > lo[s]).all()
    else:
        assert (np.abs(point[s] - table.values[s]) > 1e-9 * np.maximum(1.0, table.values[s])).all()
    if release.method in ("adjust", "round", "perturb"):
        residual = table.relations @ point - table.rhs
        assert np.abs(residual).max(initial=0.0) <= 1e-6 * max(1.0, np.abs(point).max())
        assert (point >= table.lb - 1e-9).all()
        assert (point <= table.ub + 1e-9).all()

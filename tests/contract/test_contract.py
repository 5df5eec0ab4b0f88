"""What every registered method keeps, whatever the table: see also test_safe.py, where each success is audited."""

import time

import numpy as np
import pytest

import cellguard as cg
from cellguard.methods.registry import METHODS
from cellguard.nouns.release import Release, Status

METHOD = pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))


def grid(rows: int = 5, columns: int = 4, *, scale: float = 1.0, low: float = 10.0) -> cg.Table:
    """A two-way table with three sensitive cells and levels of 10%."""
    leaves = scale * (low + np.random.default_rng(3).integers(0, 90, (rows, columns)).astype(float))
    dims = {"region": [f"r{i}" for i in range(rows)], "trade": [f"t{j}" for j in range(columns)]}
    table = cg.Table.from_leaves(dims, leaves)
    chosen = [table.cell({"region": f"r{i}", "trade": f"t{i}"}) for i in range(3)]
    return table.with_(sensitive=np.isin(np.arange(table.n_cells), chosen)).with_levels(0.1, 0.1)


def protect(method, table: cg.Table, **limits) -> Release:
    options = method.filled({}, table)
    return method.verb(table, **options, **{"time_limit_s": 10.0, "seed": 4, **limits})


def second_attacker(table: cg.Table) -> cg.Table:
    insider = cg.Attacker.coalition(table, [({"region": "r0", "trade": "t0"}, 3.0)], name="insider")
    return table.with_(attackers=(cg.Attacker(name="external"), insider))


def negative(table: cg.Table) -> cg.Table:
    values = table.values.copy()
    inner = table.cell({"region": "r4", "trade": "t3"})
    moved = [inner, table.cell({"region": "r4"}), table.cell({"trade": "t3"}), table.cell({})]
    values[moved] -= 2.0 * values[inner]
    return table.with_(values=values, lb=np.full(table.n_cells, -np.inf), ub=np.full(table.n_cells, np.inf))


def far_apart(table: cg.Table) -> cg.Table:
    leaves = np.array([[1e-3, 2e12, 5.0], [3e3, 4e-3, 1e12], [7.0, 1e6, 2e-3]])
    made = cg.Table.from_leaves({"region": ["a", "b", "c"], "trade": ["x", "y", "z"]}, leaves)
    return made.with_(sensitive=made.values == 7.0).with_levels(0.1, 0.1)


def fixed_cells(table: cg.Table) -> cg.Table:
    return table.with_(fixed=np.isin(np.arange(table.n_cells), [table.cell({})]))


def unbounded(table: cg.Table) -> cg.Table:
    return table.with_(ub=np.full(table.n_cells, np.inf))


STRANGE = {f.__name__: f for f in (second_attacker, negative, far_apart, fixed_cells, unbounded)}


@METHOD
@pytest.mark.parametrize("kind", STRANGE)
def test_strange_tables_end_in_a_safe_release_or_a_reason(method, kind):
    table = STRANGE[kind](grid())
    try:
        release = protect(method, table)
    except cg.CellguardError as error:
        assert error.hint, error.message  # noqa: PT017
        return
    if not release.published:
        assert release.explanation
        return
    assert cg.audit(release).safe
    lo, hi = release.published_bounds()
    a = table.values
    assert (lo <= a + 1e-9 * np.abs(a)).all()
    assert (hi >= a - 1e-9 * np.abs(a)).all()


@METHOD
def test_the_same_seed_gives_the_same_bytes(method, tmp_path):
    for name in "ab":
        protect(method, grid()).save(tmp_path / f"{name}.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@METHOD
def test_threads_do_not_change_the_release(method, tmp_path):
    if not method.threads:
        pytest.skip("works on one thread")
    for n in (1, 2):
        protect(method, grid(), threads=n).save(tmp_path / f"{n}.csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@METHOD
def test_recorded_options_make_it_again(method, tmp_path):
    first = protect(method, grid())
    known = {option.name for option in method.options} | {"time_limit_s", "seed"}
    given = {name: value for name, value in first.options.items() if name in known}
    method.verb(grid(), **given).save(tmp_path / "again.csv")
    first.save(tmp_path / "first.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()


@METHOD
@pytest.mark.parametrize("limit", [0.0, 0.01])
def test_a_limit_is_kept_with_an_honest_status(method, limit):
    table = grid(40, 30)
    begin = time.process_time()
    try:
        release = protect(method, table, time_limit_s=limit)
    except cg.CellguardError as error:
        assert error.hint  # noqa: PT017
        return
    assert time.process_time() - begin < 3.0 + limit  # work done, however busy the machine is
    if release.published:
        assert cg.audit(release).safe
    else:
        assert release.status in (Status.TIME_LIMIT, Status.INFEASIBLE)
        assert release.explanation


@METHOD
def test_no_sensitive_cell_is_a_table_like_any_other(method):
    none = np.zeros(grid().n_cells)
    table = grid().with_(sensitive=none > 0, lower=none, upper=none)
    release = protect(method, table)
    assert release.published
    audit = cg.audit(release)
    assert (audit.checked, audit.verdict) == (0, "nothing checked")


@METHOD
def test_the_row_order_of_the_input_does_not_matter(method, tmp_path):
    rng = np.random.default_rng(1)
    rows = [("N", "f", 20.0), ("N", "m", 50.0), ("S", "f", 35.0), ("S", "m", 41.0), ("W", "f", 77.0), ("W", "m", 12.0)]
    written = []
    for order in (range(6), rng.permutation(6)):
        frame = {name: [rows[i][k] for i in order] for k, name in enumerate(("region", "trade", "value"))}
        table = cg.Table.from_frame(frame, {"region": {"all": ["N", "S", "W"]}, "trade": {"all": ["f", "m"]}})
        table = table.with_(sensitive=table.values == 12.0).with_levels(0.1, 0.1)
        path = tmp_path / "r.csv"
        protect(method, table).save(path)
        head, *body = path.read_text().splitlines()
        written.append((head, sorted(body)))
    assert written[0] == written[1]


@METHOD
def test_the_same_kind_of_frame_comes_out(method):
    import polars as pl

    frame = pl.DataFrame(
        {"region": ["N", "N", "S", "S"], "trade": ["f", "m", "f", "m"], "value": [20.0, 50.0, 35.0, 41.0]}
    )
    table = cg.Table.from_frame(frame, ["region", "trade"])
    release = protect(method, table.with_(sensitive=table.values == 20.0).with_levels(0.1, 0.1))
    assert isinstance(release.frame(like=frame), pl.DataFrame)


@METHOD
def test_what_cannot_be_is_explained_by_labels(method):
    """The only sensitive cell is fixed by what everybody knows."""
    table = grid()
    cell = int(np.flatnonzero(table.sensitive)[0])
    lb, ub = table.lb.copy(), table.ub.copy()
    lb[cell], ub[cell] = table.values[cell] - 1e-6, table.values[cell] + 1e-6
    sensitive = np.isin(np.arange(table.n_cells), [cell])
    lower = np.where(sensitive, 1.0, 0.0)
    try:
        release = protect(method, table.with_(sensitive=sensitive, lb=lb, ub=ub, lower=lower, upper=lower))
        assert not release.published
        text = release.explanation
    except cg.CellguardError as error:
        text = error.message
    assert "r0" in text
    assert str(table.values[cell]) not in text


@METHOD
def test_the_public_file_holds_nothing_confidential(method, tmp_path):
    table = grid(scale=1.37)
    release = protect(method, table)
    release.save(tmp_path / "r.csv")
    text = (tmp_path / "r.csv").read_text()
    for cell in np.flatnonzero(table.sensitive):
        assert f"{table.values[cell]:.6g}" not in text
    for word in ("seed", "level", "cost", "objective", "sensitive", "primary"):
        assert word not in text.lower()

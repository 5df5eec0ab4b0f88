"""What every registered method keeps besides the promises of its release (test_promises.py): seeds, threads, limits,
options, reasons, interrupts, frames, and files that hold nothing confidential."""

import csv
import gc
import json
import signal
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import cellguard as cg
from cellguard.cli import main
from cellguard.release.release import Status
from contract.kinds import EVERY_METHOD, grid, only, protect


@EVERY_METHOD
def test_the_same_key_gives_the_same_bytes(method, tmp_path):
    for name in "ab":
        protect(method, grid()).save(tmp_path / f"{name}.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@EVERY_METHOD
def test_the_defaults_draw_another_secret_every_time(method):
    """What a release hides by chance nobody can compute from the code: not with seed 0, not with seed 1."""
    drawn = {"key": None} if method.takes_key else {}
    releases = [protect(method, grid(), **drawn) for _ in range(2)]
    keys = [release.options.get("key") for release in releases]
    assert (None in keys) != method.is_randomised({})
    if method.is_randomised({}):
        assert keys[0] != keys[1]


@EVERY_METHOD
def test_threads_do_not_change_the_release(method, tmp_path):
    for n in (1, 2):
        protect(method, grid(), threads=n).save(tmp_path / f"{n}.csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@EVERY_METHOD
def test_recorded_options_make_it_again(method, tmp_path):
    first = protect(method, grid())
    known = {option.name for option in method.options} | {"time_limit_s", "seed", "key"}
    given = {name: value for name, value in first.options.items() if name in known}
    method.verb(grid(), **given).save(tmp_path / "again.csv")
    first.save(tmp_path / "first.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()


@EVERY_METHOD
@pytest.mark.parametrize("limit", [0.0, 0.01])
def test_a_limit_is_kept_with_an_honest_status(method, limit):
    table = grid(40, 30)
    begin = time.process_time()
    release = protect(method, table, time_limit_s=limit)
    assert time.process_time() - begin < 3.0 + limit  # work done, however busy the machine is
    if release.published:
        assert cg.audit(release).safe
    else:  # the table can be protected, as the next test shows: only the limit may be the reason
        assert release.status is Status.TIME_LIMIT
        assert release.explanation


@EVERY_METHOD
def test_the_table_of_the_limits_can_be_protected(method):
    release = protect(method, grid(40, 30), time_limit_s=60)
    assert release.published
    assert cg.audit(release).safe


@EVERY_METHOD
def test_no_sensitive_cell_is_a_table_like_any_other(method):
    none = np.zeros(grid().n_cells)
    table = grid().with_(sensitive=none > 0, lower=none, upper=none)
    release = protect(method, table)
    assert release.published
    audit = cg.audit(release)
    assert (audit.checked, audit.verdict) == (0, "nothing checked")


@EVERY_METHOD
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


@EVERY_METHOD
@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_the_same_kind_of_frame_comes_out(method, library):
    module = pytest.importorskip(library)
    columns = {"region": ["N", "N", "S", "S"], "trade": ["f", "m", "f", "m"], "value": [20.0, 50.0, 35.0, 41.0]}
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    table = cg.Table.from_frame(frame, ["region", "trade"])
    release = protect(method, table.with_(sensitive=table.values == 20.0).with_levels(0.1, 0.1))
    assert type(release.frame(like=frame)) is type(frame)


@EVERY_METHOD
def test_what_cannot_be_is_explained_by_labels(method):
    """The only sensitive cell is fixed by what everybody knows."""
    table = grid()
    cell = int(np.flatnonzero(table.sensitive)[0])
    lb, ub = table.lb.copy(), table.ub.copy()
    lb[cell], ub[cell] = table.values[cell] - 1e-6, table.values[cell] + 1e-6
    fixed = only(table, [cell])
    lower = np.where(fixed.sensitive, 1.0, 0.0)
    try:
        release = protect(method, fixed.with_(lb=lb, ub=ub, lower=lower, upper=lower))
        assert not release.published
        text = release.explanation
    except cg.CellguardError as error:
        text = error.message
    assert "r0" in text
    assert str(table.values[cell]) not in text


CONFIDENTIAL = ("seed", "key", "level", "cost", "objective", "sensitive", "primary", "loss", "bound")


def says_nothing(text: str, table: cg.Table) -> None:
    for cell in np.flatnonzero(table.sensitive):
        assert f"{table.values[cell]:.6g}" not in text


def publishes_nothing_confidential(text: str, table: cg.Table) -> None:
    """Check the rows of a public file: one per cell, and no row of a sensitive cell holds its value.

    Another row may hold the same number by chance: the ends of intervals depend on a secret key.
    """
    rows = {(row.pop("region"), row.pop("trade")): row for row in csv.DictReader(text.splitlines())}
    assert len(rows) == len(text.splitlines()) - 1 == table.n_cells
    for cell in np.flatnonzero(table.sensitive):
        codes = table.cell_codes(int(cell))
        own = rows[codes["region"], codes["trade"]]
        assert f"{table.values[cell]:.6g}" not in own.values()
    for word in CONFIDENTIAL:
        assert word not in text.lower(), word


@EVERY_METHOD
def test_the_public_file_holds_nothing_confidential(method, tmp_path):
    table = grid(scale=1.37)
    release = protect(method, table)
    release.save(tmp_path / "r.csv")
    publishes_nothing_confidential((tmp_path / "r.csv").read_text(), table)


@EVERY_METHOD
def test_the_command_line_tells_nothing_confidential(method, tmp_path, capsys):
    table = grid(scale=1.37)
    table.write(tmp_path / "t.csv")
    base = ["--base", "20"] if method.get_option("base") is not None else []
    out = tmp_path / "r.csv"
    assert main([method.name, str(tmp_path / "t.csv"), *base, "--out", str(out), "--json"]) == 0
    printed = capsys.readouterr()
    shown = json.loads(printed.out)
    assert shown["audit"]["safe"]
    assert not {"objective", "bound", "cost", "loss", "seed", "key"} & set(shown)
    says_nothing(printed.out + printed.err, table)
    publishes_nothing_confidential(out.read_text(), table)


@contextmanager
def ctrl_c(after_s: float, pressed: list[float]):
    """Press Ctrl-C after so much work, however busy the machine is, and note that it was pressed."""

    def press(*_):
        pressed.append(after_s)
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGPROF, press)
    gc.disable()  # an interrupt inside a callback of the collector is swallowed by Python itself
    tracer = sys.gettrace()
    sys.settrace(None)  # one inside the measurement of coverage would leave its lock closed for ever
    signal.setitimer(signal.ITIMER_PROF, after_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        sys.settrace(tracer)
        gc.enable()
        signal.signal(signal.SIGPROF, before)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of another kind")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # as is one inside a destructor
@EVERY_METHOD
def test_ctrl_c_returns_the_best_or_nothing(method, tmp_path):
    table = grid(12, 10)
    protect(method, table).save(tmp_path / "before.csv")
    begin = time.process_time()
    protect(method, table)
    work_s = time.process_time() - begin
    pressed: list[float] = []
    for after_s in (0.002, 0.01, 0.03, 0.1):
        try:
            with ctrl_c(after_s, pressed):
                release = protect(method, table)
        except KeyboardInterrupt:
            continue
        if release.published:
            assert cg.audit(release).safe
    assert pressed or work_s < 0.1  # the system's clock of work is coarse
    protect(method, table).save(tmp_path / "after.csv")
    assert (tmp_path / "before.csv").read_bytes() == (tmp_path / "after.csv").read_bytes()

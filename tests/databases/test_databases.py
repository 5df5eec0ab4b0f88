"""PostgreSQL and Spark give the same table as DuckDB; both are real and started here."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cellguard as cg
from builders import columns_of_records, renumbered

ibis = pytest.importorskip("ibis")

pytestmark = [
    pytest.mark.slow,
    # ibis and pyspark call what duckdb, pandas and python deprecate; sockets of the JVM close when it ends
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
REGIONS = cg.Hierarchy.from_nested({"N": ["N1", "N2"], "S": ["S1", "S2", "S3"]})
DIMS = {"region": REGIONS, "nace": None}
CASES = {
    "plain": {"value": "x"},
    "frequencies": {"weight": "w"},
    "weights, shadow, cost": {"value": "x", "weight": "w", "shadow": "s", "cost": "w"},
    "everything": {"value": "d", "weight": "w", "holding": "h", "waiver": "q", "request": "r"},
    "skipped": {"value": "g", "skip_missing": True},
}


def records() -> pd.DataFrame:
    return pd.DataFrame(columns_of_records(2000))


def assert_same(one: cg.Table, other: cg.Table) -> None:
    """Sums are exact in every database, so the tables are equal to the last bit but one."""
    assert one.codes == other.codes
    for name in ("values", "counts", "weights", "fixed"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-15, abs=0), name
    for name in ("total", "weight", "top", "top_weights", "protected", "request"):
        a, b = getattr(one.statistics, name), getattr(other.statistics, name)
        assert (a is None) == (b is None), name
        assert a is None or a == pytest.approx(b, rel=1e-14, abs=0, nan_ok=True), name
    assert np.array_equal(renumbered(one), renumbered(other))


# ---------------------------------------------------------------- PostgreSQL


def postgres_programs() -> Path:
    """Folder of initdb and pg_ctl: Debian's, or those of a wheel."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    folders += [Path(found).parent] if found else []
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.skip("PostgreSQL is not installed")


@pytest.fixture(scope="module")
def postgres() -> Iterator[object]:
    """A cluster of its own in a temporary folder, on a loopback port; gone afterwards."""
    pytest.importorskip("psycopg")
    programs = postgres_programs()
    user = "postgres" if os.geteuid() == 0 else None  # the server refuses to run as root
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        folder = Path(name)
        if user:
            shutil.chown(folder, user)
        run = {"capture_output": True, "user": user, "cwd": folder, "timeout": 120}
        data = folder / "data"
        subprocess.run(
            [programs / "initdb", "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8"], check=True, **run
        )
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
        with (folder / "log").open("w") as log:  # the server keeps its output open: it must not be ours
            subprocess.run(
                [programs / "pg_ctl", "-D", data, "-w", "-o", options, "start"],
                check=True, user=user, cwd=folder, timeout=120, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            connection = ibis.postgres.connect(host="127.0.0.1", port=port, user="tester", database="postgres")
            connection.create_table("records", records())
            yield connection
            connection.disconnect()
        finally:
            subprocess.run([programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], check=True, **run)


@pytest.mark.parametrize("case", CASES)
def test_postgresql(postgres, case):
    options, before = CASES[case], postgres.list_tables()
    assert_same(cg.tabulate(postgres.table("records"), DIMS, **options), cg.tabulate(records(), DIMS, **options))
    assert postgres.list_tables() == before


# ---------------------------------------------------------------- Spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory) -> Iterator[object]:
    """A local session on one thread."""
    pyspark = pytest.importorskip("pyspark.sql")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is not installed")
    session = (
        pyspark.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    connection = ibis.pyspark.connect(session)
    frame = records()
    # NULL, not NaN, where there is no number
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    kinds = "region string, nace int, x double, s double, d double, w double, h string, q boolean, r int, g double"
    session.createDataFrame(rows, kinds).createOrReplaceTempView("records")
    yield connection
    session.stop()


@pytest.mark.parametrize("case", ["plain", "weights, shadow, cost", "everything"])
def test_spark(spark, case):
    options = CASES[case]
    assert_same(cg.tabulate(spark.table("records"), DIMS, **options), cg.tabulate(records(), DIMS, **options))

import importlib
import subprocess
import sys

import pytest

import cellguard as cg


def test_exports_are_sorted():
    assert cg.__all__ == sorted(cg.__all__)


def test_dir_lists_every_export():
    assert set(cg.__all__) <= set(dir(cg))


@pytest.mark.parametrize("name", cg.__all__)
def test_every_export_exists(name):
    assert getattr(cg, name) is not None


def test_every_export_is_public_where_it_is_defined():
    for name, module_name in cg._EXPORTS.items():
        module = importlib.import_module(f"cellguard.{module_name}")
        assert name in module.__all__, f"{name} is missing from cellguard.{module_name}.__all__"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'supress'"):
        cg.supress  # noqa: B018 - the access is the test


def test_import_loads_nothing_heavy():
    heavy = [
        "scipy",
        "cellguard._core",
        "highspy",
        "pyscipopt",
        "duckdb",
        "pandas",
        "polars",
        "pyarrow",
        "pydantic",
        "typer",
        "rich",
    ]
    code = f"import sys, cellguard, cellguard.model.table; print([m for m in {heavy!r} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert loaded == "[]"


def test_import_is_quick():
    code = "import time; t = time.process_time(); import cellguard; print(time.process_time() - t)"
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    )
    assert seconds < 0.4

"""Run pytest with another build of the compiled core: ``python tests/with_core.py LIBRARY ARGUMENT ...``."""

from __future__ import annotations

import importlib.util
import sys

import pytest


def load(library: str) -> None:
    """Take the place of the installed core, before anything imports it."""
    spec = importlib.util.spec_from_file_location("cellguard._core", library)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{library}: no extension module")
    module = importlib.util.module_from_spec(spec)
    sys.modules["cellguard._core"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    load(sys.argv[1])
    sys.exit(pytest.main(sys.argv[2:]))

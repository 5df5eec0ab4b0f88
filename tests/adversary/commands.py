"""The same through the command line: a file in, a file out, one JSON object that tells nothing of the truth."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import cellguard as cg
from adversary.cases import Case
from adversary.checker import Violation, judge
from adversary.written import read
from cellguard.cli import main

CONFIDENTIAL = {"objective", "bound", "cost", "loss", "seed"}
"""Keys of the JSON object that are computed from true values, or repeat a secret choice."""


def command(
    made: Case, method: str, options: dict[str, Any], folder: Path, figures: Counter[str]
) -> Iterable[Violation]:
    """Run a verb on a file of the table, and judge what it writes."""
    source, out = folder / "table.jj", folder / "out.csv"
    made.table.write(source)
    table = cg.Table.read(source)
    words = [method, str(source), "--json", "--out", str(out), "--time-limit", "5"]
    moved = next((name for name in ("base", "distance") if np.isscalar(options.get(name))), None)
    if method in ("round", "perturb"):
        if moved is None:
            return
        words += [f"--{moved}", repr(options[moved])]
    stdout, stderr = io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stderr):
        code = main(words)
    figures[f"command line: exit {code}"] += 1
    if code not in (0, 1, 2):
        yield Violation("command", f"exit {code}: {stderr.getvalue()[-300:]}")
    if out.exists() is not (code == 0):
        yield Violation("command", f"exit {code}, and the file is {'there' if out.exists() else 'not there'}")
    if code == 1:
        return
    told = json.loads(stdout.getvalue())
    if CONFIDENTIAL & set(told):
        yield Violation("leak", f"standard output tells {sorted(CONFIDENTIAL & set(told))}")
    if code == 0:
        given = {moved: options[moved]} if moved else {}  # the others were not said on the command line
        yield from judge(table, _release(table, method, told, options), read(out, table), given)


def _release(table: cg.Table, method: str, told: dict[str, Any], options: dict[str, Any]) -> Any:
    """Return what a reader of the file is told besides."""
    base = options.get("base") if method in ("round", "perturb") else None
    n = table.n_cells
    return SimpleNamespace(
        method=method,
        table=table,
        step=told.get("step", 1),
        base=None if base is None else np.full(n, float(base)),
        distance=np.full(n, float(options.get("distance", base or 0))),
    )

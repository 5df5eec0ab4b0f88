"""Everything left at its default: records in a file, `cellguard init`, `cellguard protect`, and nothing changed.

The public file is judged as any other: against strangers and against every contributor, with the rules that `init`
wrote. Cells, levels and contributors are made from the records again.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import cellguard as cg
from adversary.cases import Case
from adversary.checker import Violation, judge
from adversary.order import find_order
from adversary.respondents import list_respondents
from adversary.written import UnreadableError, read
from cellguard.cli import main

METHODS = ("suppress", "suppress", "intervals", "adjust")
COLUMNS = {"firm": "firm", "region": "region", "branch": "branch", "turnover": "x"}


def protect_with_defaults(
    made: Case, folder: Path, rng: np.random.Generator, figures: Counter[str]
) -> Iterator[Violation]:
    """Run `init` and `protect` on the records of a case, and judge the public file."""
    counted = rng.random() < 0.4
    columns = {name: made.records[of] for name, of in COLUMNS.items() if not (counted and name == "turnover")}
    columns["firm"] = [f"f{k}" for k in range(len(columns["firm"]))]  # `init` takes every record for a contributor
    folder = folder / "defaults"
    folder.mkdir(exist_ok=True)
    _write_shuffled(folder / "firms.csv", columns, rng)
    job = folder / "job.toml"
    method = METHODS[int(rng.integers(len(METHODS)))]
    if _run("init", str(folder / "firms.csv"), "--out", str(job)) != 0:
        return
    text = job.read_text("utf-8").replace('name = "suppress"', f'name = "{method}"')
    job.write_text("\n".join(line for line in text.splitlines() if not line.startswith("unconfirmed")), "utf-8")
    code = _run("protect", str(job))
    figures[f"defaults {method}: exit {code}"] += 1
    if code not in (0, 1, 2):
        yield Violation("command", f"init and protect: exit {code}")
    if code != 0:
        return
    described = tomllib.loads(text)
    table = _tabulate(columns, described)
    path = folder / described["output"]["folder"] / "public" / f"{described['name']}.csv"
    told = Case(
        table, ("records", "defaults"), None, None,
        {**columns, "x": columns.get("turnover", []), "holding": columns["firm"]},
        measures={"value": None if counted else "x"},
    )  # fmt: skip
    try:
        file = read(path, table)
    except UnreadableError as error:
        yield Violation("file", f"defaults, {method}: {error}")
        return
    release: Any = SimpleNamespace(method=method, table=table, details={})
    yield from judge(table, release, file, {}, list_respondents(told))
    yield from find_order(replace(told, table=table), path)


def _write_shuffled(path: Path, columns: dict[str, list[Any]], rng: np.random.Generator) -> None:
    """Write records in the order of their sizes, or in any order: the public file must not show it."""
    n = len(columns["firm"])
    order = np.argsort(columns["turnover"]) if "turnover" in columns and rng.random() < 0.5 else rng.permutation(n)
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([[column[k] for column in columns.values()] for k in order.tolist()])


def _tabulate(columns: dict[str, list[Any]], job: dict[str, Any]) -> cg.Table:
    """Return the table with the rules that the job file states."""
    rules = []
    for rule in job["rules"]:
        if rule["rule"] == "p_percent":
            rules.append(cg.PPercent(rule["p"]))
        elif rule["rule"] == "min_frequency":
            rules.append(cg.MinFrequency(rule["n"], rule.get("percent")))
        elif rule["rule"] == "dominance":
            rules.append(cg.Dominance(rule["n"], rule["k"]))
    return cg.tabulate(columns, list(job["dimensions"]), job["data"].get("value")).apply(*rules)


def _run(*words: str) -> int:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return int(main(list(words)))

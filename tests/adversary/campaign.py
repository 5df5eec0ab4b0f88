"""The campaign: tables, methods, options; write, judge, attack, count. ``make adversary`` runs ten thousand tables.

    python -m adversary.campaign --cases 10000 --seed 7 --jobs 2

Each case is decided by the seed and its number, and its result is a line of a file beside the seed:
started again with the same seed, the campaign goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import cellguard as cg
from adversary import counts, informed, optima
from adversary.cases import Case
from adversary.checker import Violation, attackers, judge, read_intervals
from adversary.commands import command
from adversary.defaults import protect_with_defaults
from adversary.doors import doors, told
from adversary.generator import case
from adversary.options import LIMIT_S, VERBS, draw
from adversary.order import find_order
from adversary.reruns import list_defaults, rerun_defaults
from adversary.respondents import list_respondents
from adversary.written import read

SLOW_S = 4 * LIMIT_S + 10
"""Processor seconds after which a method with a limit of `LIMIT_S` counts as hanging."""


@dataclass
class Outcome:
    """What one case gave: figures, and what was found."""

    number: int
    figures: Counter[str] = field(default_factory=Counter)
    found: list[dict[str, str]] = field(default_factory=list)

    def line(self) -> str:
        """Return the outcome as a line of the campaign's file."""
        return json.dumps({"case": self.number, "figures": self.figures, "found": self.found})


def run_case(seed: int, number: int, methods: Iterable[str] | None = None, *, edition: int = 2) -> Outcome:
    """Protect one table by two of some methods, another two for the next number, and judge what is published."""
    out = Outcome(number)
    made = case(seed, number, edition=edition)
    names = list(methods or VERBS)
    k = len(names)
    chosen = {names[number % k], names[(number + 1 + number // k % max(1, k - 1)) % k]}
    out.figures["tables"] += 1
    out.figures.update(f"tables: {word}" for word in made.what)
    for method in sorted(chosen):
        rng = np.random.default_rng([seed, number, 1000 + list(VERBS).index(method)])
        options = draw(method, rng, made)
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("error")  # a warning of a solver is a fault, as in all tests
            warnings.filterwarnings("ignore", category=UserWarning)
            found = list(trial(made, method, options, Path(folder), rng, out.figures))
        for violation in found:
            out.figures[f"{method}: violations"] += 1
            where = {"method": method, "options": repr(options), "what": " / ".join(made.what)}
            out.found.append({"kind": violation.kind, "text": violation.text, **where})
    return out


def trial(
    made: Case, method: str, options: dict[str, Any], folder: Path, rng: np.random.Generator, figures: Counter[str]
) -> Iterable[Violation]:
    """Make one release, and yield whatever is wrong with it."""
    begin, clock = time.process_time(), time.perf_counter()
    try:
        release = VERBS[method](made.table, **options)
    except cg.CellguardError as error:
        figures[f"{method}: refused"] += 1
        if type(error).__name__ == "InternalError":
            yield Violation("crash", f"InternalError: {error}")
        if told(made.table, str(error)):
            yield Violation("leak", str(error))
        return
    except Exception:  # noqa: BLE001 - whatever a method raises besides its own errors is a finding
        yield Violation("crash", traceback.format_exc(limit=-3))
        return
    took = time.perf_counter() - clock
    if time.process_time() - begin > SLOW_S:
        yield Violation("slow", f"{time.process_time() - begin:.0f} s with a limit of {LIMIT_S:g} s")
    figures[f"{method}: {release.status}"] += 1
    if not release.published:
        figures[f"{method}: nothing"] += 1
        if made.whole is None:
            yield from optima.nothing(made.table, release, options, figures)
        return
    path = folder / "release.csv"
    try:
        _saved(release, path, figures)
    except cg.CellguardError as error:
        yield Violation("refused", f"returned as {release.status}, and its own audit refuses it: {error}")
        return
    figures[f"{method}: releases"] += 1
    figures["releases"] += 1
    yield from _judge_file(made, release, options, path, figures)
    yield from _audits(release, path, figures)
    if rng.random() < 0.05 and took < LIMIT_S / 2:
        yield from _again(made, method, options, path)
    yield from _judge_more(made, release, options, path, rng, figures)


def _judge_file(
    made: Case, release: Any, options: dict[str, Any], path: Path, figures: Counter[str]
) -> Iterable[Violation]:
    """Judge a written file against everybody that the table names, and every contributor."""
    file, people = read(path, made.table), list_respondents(made)
    figures["whole measures: releases"] += made.whole_measures is not None
    yield from judge(made.table, release, file, options, people, made.whole, made.whole_measures)
    intervals, _ = read_intervals(made.table, release, file, options)
    everybody = (*attackers(made.table), *people)
    figures["contributors"] += len(people)
    yield from counts.count_numbers(made, intervals, everybody, figures, release.method)
    yield from find_order(made, path)


def _judge_more(
    made: Case, release: Any, options: dict[str, Any], path: Path, rng: np.random.Generator, figures: Counter[str]
) -> Iterable[Violation]:
    """Judge statuses, formulas, damaged files, reruns and the command line; the costly ones now and then."""
    if made.whole is None:  # the programs there know nothing of whole numbers beside others
        yield from optima.honest(made.table, release, options, rng, figures)
    yield from informed.attacks(made, release, read(path, made.table), options, figures)
    if rng.random() < 0.3:
        yield from doors(made, release, path, rng, figures)
    if rng.random() < 0.05 and made.table.sensitive.any():
        yield from command(made, release.method, options, path.parent, figures)
    if rng.random() < 0.02:
        rerun_defaults(made, release.method, options, figures)
    if rng.random() < 0.03 and made.records:
        yield from protect_with_defaults(made, path.parent, rng, figures)


def _to_protect(table: cg.Table) -> bool:
    return any(table.sensitive.any() if a.sensitive is None else len(a.sensitive) for a in table.attackers)


def _saved(release: cg.Release, path: Path, figures: Counter[str]) -> None:
    """Write a release; what has nothing to protect only if that is said to be meant."""
    if _to_protect(release.table):
        release.save(path)
        return
    figures[f"{release.method}: nothing to protect"] += 1
    try:
        release.save(path)
    except cg.CellguardError:
        release.save(path, allow_unchecked=True)
    else:
        raise cg.CellguardError("written, and nothing was checked")


def _audits(release: cg.Release, path: Path, figures: Counter[str]) -> Iterable[Violation]:
    """What a verb returns as a success, the audit accepts: of the release and of its file."""
    if not _to_protect(release.table):
        return
    figures["audits"] += 1
    try:
        if not release.audit(time_limit_s=60).safe:
            yield Violation("audit", f"returned as {release.status}, and the audit does not call it safe")
            return
        again = cg.read_release(release.table, path, **read_options(release))
        if not cg.audit(again, time_limit_s=60).safe:
            yield Violation("file audit", "the audit of the written file does not call it safe")
    except cg.CellguardError as error:
        yield Violation("file audit", f"{type(error).__name__}: {error}")
    except Exception:  # noqa: BLE001 - a finding like any other
        yield Violation("crash", traceback.format_exc(limit=-3))


def read_options(release: Any) -> dict[str, Any]:
    """Return what a reader of the file is told besides."""
    out: dict[str, Any] = {"method": release.method}
    if release.method == "round":
        out |= {"base": release.base, "step": release.step, "keep_multiples": release.keep_multiples}
        out["keep"] = release.options.get("keep", [])
    elif release.method == "perturb":
        # cells that must stay are known to: any distance will do for them
        fixed = release.table.fixed
        distance = np.where(fixed, 1.0, release.distance)
        out["between"] = bool(release.options.get("between"))
        out |= {"distance": distance} if release.base is None else {"base": np.where(fixed, 1.0, release.base)}
    return out


def _again(made: Case, method: str, options: dict[str, Any], path: Path) -> Iterable[Violation]:
    """Same input, options and seed: same bytes, unless a busy machine came near the limit."""
    other = path.with_name("again.csv")
    begin = time.perf_counter()
    again = VERBS[method](made.table, **options)
    if time.perf_counter() - begin > LIMIT_S / 2:
        return
    _saved(again, other, Counter())
    if other.read_bytes() != path.read_bytes():
        yield Violation("repeat", "the same options and seed gave another file")


# ---------------------------------------------------------------------- many cases


def _one(task: tuple[int, int, tuple[str, ...] | None]) -> str:
    seed, number, methods = task
    try:
        return run_case(seed, number, methods).line()
    except Exception:  # noqa: BLE001 - the checker itself failed: that must be seen, too
        out = Outcome(number)
        out.found.append(
            {"kind": "checker", "text": traceback.format_exc(limit=-4), "method": "", "options": "", "what": ""}
        )
        return out.line()


def campaign(
    seed: int,
    numbers: Iterable[int],
    path: Path,
    *,
    methods: tuple[str, ...] | None = None,
    jobs: int = 1,
    until: float = float("inf"),
) -> None:
    """Run cases that the file does not have yet, and add them to it."""
    done = {json.loads(line)["case"] for line in path.read_text().splitlines()} if path.exists() else set()
    tasks = [(seed, n, methods) for n in numbers if n not in done]
    with path.open("a") as stream, ExitStack() as stack:
        run: Any = map if jobs == 1 else stack.enter_context(ProcessPoolExecutor(jobs)).map
        for start in range(0, len(tasks), 20 * jobs):
            if time.time() > until:
                break
            for line in run(_one, tasks[start : start + 20 * jobs]):
                stream.write(line + "\n")
            stream.flush()


def summary(path: Path) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Add up the lines of a campaign's file."""
    figures: Counter[str] = Counter()
    found = []
    for line in path.read_text().splitlines():
        outcome = json.loads(line)
        figures.update(outcome["figures"])
        found += [{"case": outcome["case"], **f} for f in outcome["found"]]
    return figures, found


def main() -> int:
    """Run a campaign and print its figures; 1 when something was found."""
    parser = argparse.ArgumentParser(prog="adversary")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--seed", type=int, default=int(os.environ.get("CELLGUARD_ADVERSARY_SEED", secrets.randbits(31)))
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--methods", default=",".join(VERBS))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    args = parser.parse_args()
    path = args.folder / f"adversary-{args.seed}.jsonl"
    print(f"seed {args.seed}: {args.cases} cases, results in {path}", flush=True)  # noqa: T201
    numbers = range(args.first, args.first + args.cases)
    methods = tuple(args.methods.split(","))
    campaign(args.seed, numbers, path, methods=methods, jobs=args.jobs, until=time.time() + 60 * args.minutes)
    figures, found = summary(path)
    for name in sorted(figures):
        print(f"{figures[name]:10.6g}  {name}")  # noqa: T201
    for f in found[:200]:
        print(f"case {f['case']} {f['method']} {f['options']}\n    {f['kind']}: {f['text']}\n    ({f['what']})")  # noqa: T201
    patterns = [*informed.verdict(figures), *list_defaults(figures)]
    for text in patterns:
        print(text)  # noqa: T201
    print(f"{len(found) + len(patterns)} violations in {figures['tables']} tables")  # noqa: T201
    return 1 if found or patterns else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Experiments: units of work, computed once and kept, and rows that set ours beside the paper's figures."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from cellguard.exceptions import InputError, require_there
from cellguard.nouns.table import Table

__all__ = [
    "CSPLIB_NAMES", "Experiment", "Report", "Settings", "Unit", "csplib_table", "missing_csplib", "published",
    "reproduce", "row",
]  # fmt: skip

CSPLIB_NAMES = {
    "hier13x7x7d": "hie1372d",
    "hier13x13x7d": "hie1327d",
    "hier13x13x13a": "hier133a",
    "hier16x16x16a": "hier163a",
    "toy3dsarah": "toysarah",
}
"""Names in the papers -> names of the files, where they differ."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the user may choose."""

    instances: tuple[str, ...] = ()
    """Which instances; all of the experiment unless given."""
    replications: int | None = None
    """How often random parts are repeated; the paper's number unless given."""
    seed: int = 1
    """Of everything random."""
    time_limit_s: float = 60.0
    """For each solve that may take long."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What the experiment lets one choose (:attr:`Experiment.options`), by name; as text or as it is."""


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One piece of work, small enough to lose when interrupted."""

    key: str
    """Names it among the kept results."""
    work: Mapping[str, Any]
    """What :attr:`Experiment.run` needs; JSON can hold it."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A published table, or several that belong together."""

    name: str
    """As the command line calls it."""
    units: Callable[[Settings], tuple[list[Unit], list[str]]]
    """The work, and what must be skipped with the reason."""
    run: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Does one unit; its result is kept as JSON."""
    rows: Callable[[Mapping[str, dict[str, Any]], Settings], list[dict[str, Any]]]
    """Sets the results beside the paper's figures."""
    remark: str = ""
    """What differs from the paper and why, as far as it is known."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What one may choose: name -> what is chosen unless told."""

    def chosen(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return every option, those that were given instead of what is chosen unless told."""
        require_there("option", given, self.options, place=f"{self.name}: ")
        return {name: _as(default, given.get(name, default), name) for name, default in self.options.items()}


def _as(default: Any, value: Any, name: str) -> Any:
    """Return a value, possibly given as text, as what its default is."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise InputError(f"option {name}: {value!r} is not a number.") from None


@dataclass(frozen=True, kw_only=True)
class Report:
    """Ours beside the paper's."""

    experiment: str
    rows: list[dict[str, Any]]
    skipped: list[str]
    remark: str
    computed: int
    """Units computed now; the others were kept from before."""

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return asdict(self)


def row(what: str, ours: float | None, paper: float | None, **where: Any) -> dict[str, Any]:
    """Return a row of a report, with the difference where both figures are there."""
    known = ours is not None and paper is not None
    return {**where, "what": what, "ours": ours, "paper": paper, "difference": ours - paper if known else None}  # type: ignore[operator]


@cache
def _published() -> dict[str, list[dict[str, Any]]]:
    text = files("cellguard.experiments").joinpath("published.json").read_text("utf-8")
    data: dict[str, list[dict[str, Any]]] = json.loads(text)
    return data


def published(name: str) -> list[dict[str, Any]]:
    """Return the figures that a paper prints, a dict per row."""
    return _published()[name]


def _csplib_path(instance: str) -> Path:
    folder = Path(os.environ.get("CELLGUARD_CSPLIB", "../shared/csplib"))
    return folder / f"{CSPLIB_NAMES.get(instance, instance)}.jj.gz"


def csplib_table(instance: str) -> Table:
    """Read a table of CSPLIB by its name in the papers, from the folder CELLGUARD_CSPLIB."""
    return Table.read(_csplib_path(instance))


def missing_csplib(instances: Sequence[str]) -> list[str]:
    """Return which instances have no file."""
    return [name for name in instances if not _csplib_path(name).exists()]


def chosen(all_instances: Sequence[str], settings: Settings) -> tuple[list[str], list[str]]:
    """Return the instances to compute, by their names in the paper, and what is skipped."""
    wanted = list(all_instances)
    if settings.instances:
        by_file = {CSPLIB_NAMES.get(name, name): name for name in all_instances}
        unknown = [name for name in settings.instances if name not in by_file and name not in all_instances]
        if unknown:
            raise InputError(
                f"instance {unknown[0]!r} is not part of this experiment.", hint=f"it has {', '.join(all_instances)}."
            )
        wanted = [by_file.get(name, name) for name in settings.instances]
    missing = set(missing_csplib(wanted))
    return [n for n in wanted if n not in missing], [f"{n}: skipped, file not found" for n in wanted if n in missing]


class _Kept:
    """Results on disk: one JSON line per unit, written when it is done; a torn last line is ignored."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self.results[entry["key"]] = entry["result"]

    def add(self, key: str, result: dict[str, Any]) -> None:
        self.results[key] = result
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write("\n" + json.dumps({"key": key, "result": result}))  # a torn line before is closed
            stream.flush()
            os.fsync(stream.fileno())


def reproduce(
    experiment: Experiment, settings: Settings, folder: Path, *, progress: Callable[[int, int, str], None] | None = None
) -> Report:
    """Compute what is not yet kept in the folder, and set everything beside the paper's figures."""
    if settings.replications is not None and settings.replications < 1:
        raise InputError(f"replications {settings.replications}: at least 1 is needed.")
    settings = replace(settings, options=experiment.chosen(settings.options))
    units, skipped = experiment.units(settings)
    folder.mkdir(parents=True, exist_ok=True)
    kept = _Kept(folder / f"{experiment.name}.jsonl")
    todo = [unit for unit in units if unit.key not in kept.results]
    for number, unit in enumerate(todo):
        if progress is not None:
            progress(number, len(todo), unit.key)
        kept.add(unit.key, experiment.run(unit.work))
    if progress is not None:
        progress(len(todo), len(todo), "done")
    results = {unit.key: kept.results[unit.key] for unit in units}
    return Report(
        experiment=experiment.name,
        rows=experiment.rows(results, settings),
        skipped=skipped,
        remark=experiment.remark,
        computed=len(todo),
    )

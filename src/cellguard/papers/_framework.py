"""Experiments: units of work, computed once and saved, and rows that compare our figures with the paper's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from cellguard.exceptions import InputError, raise_error_of_missing

__all__ = [
    "Done",
    "Experiment",
    "Figures",
    "Report",
    "Settings",
    "Unit",
    "Units",
    "compare_with_paper",
    "group_results",
    "read_paper_figures",
    "reproduce",
]

Figures = dict[str, Any]
"""The input of a unit of work, its result, or a row that compares figures, as a JSON object."""
Done = Collection[tuple[Figures, Figures]]
"""All units in order, each with its input and its result."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The user's choices."""

    instances: tuple[str, ...] = ()
    """Instances; all of the experiment unless given."""
    replications: int | None = None
    """Number of repetitions of random parts; the paper's number unless given."""
    seed: int = 1
    """Seed of all random draws."""
    time_limit_s: float = 60.0
    """Time limit in seconds for each long solve."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the experiment (:attr:`Experiment.options`) by name, as text or as values."""

    def choose_instances(self, usual: Iterable[str], known: Collection[str]) -> list[str]:
        """Return the instances, the usual ones unless given; refuse one that the experiment does not have."""
        for name in self.instances:
            if name not in known:
                hint = f"it has {', '.join(known)}."
                raise InputError(f"instance {name!r} is not part of this experiment.", hint=hint)
        return list(self.instances or usual)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One unit of work, small enough to lose on an interruption."""

    key: str
    """Its name among the saved results."""
    work: Figures
    """Input of :attr:`Experiment.run`."""


Units = tuple[list[Unit], list[str]]
"""The units of work, and those skipped, with the reason."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A published table, or several that belong together."""

    name: str
    """Its name on the command line."""
    units: Callable[[Settings], Units]
    run: Callable[[Figures], Figures]
    """Function that computes one unit."""
    rows: Callable[[Done], list[Figures]]
    """Function that compares the results with the paper's figures."""
    remark: str = ""
    """Known differences from the paper, and their reasons."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options: name -> default."""

    def choose_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return every option: given values, and defaults for the others."""
        raise_error_of_missing("option", given, self.options, place=f"{self.name}: ")
        return {name: _parse_option(default, given.get(name, default), name) for name, default in self.options.items()}


def _parse_option(default: Any, value: Any, name: str) -> Any:
    """Return a value, possibly given as text, with the type of its default."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    try:
        return float(value)
    except ValueError:
        raise InputError(f"option {name}: {value!r} is not a number.") from None


@dataclass(frozen=True, kw_only=True)
class Report:
    """Our figures beside the paper's."""

    experiment: str
    rows: list[Figures]
    skipped: list[str]
    remark: str
    computed: int
    """Number of units computed in this run; the others were saved earlier."""

    def summarize(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return asdict(self)


def compare_with_paper(what: str, ours: float | None, paper: float | None, **where: Any) -> dict[str, Any]:
    """Return a row of a report, with the difference if both figures are known."""
    known = ours is not None and paper is not None
    return {**where, "what": what, "ours": ours, "paper": paper, "difference": ours - paper if known else None}  # type: ignore[operator]


def group_results(done: Done, *names: str) -> dict[tuple[Any, ...], Figures]:
    """Return the results, by the named inputs of the units."""
    return {tuple(work[name] for name in names): found for work, found in done}


@cache
def _read_all_figures() -> dict[str, list[Figures]]:
    data: dict[str, list[Figures]] = json.loads(files("cellguard.papers").joinpath("published.json").read_text("utf-8"))
    return data


def read_paper_figures(name: str) -> list[Figures]:
    """Return the figures that a paper prints, a dict per row."""
    return _read_all_figures()[name]


class _Kept:
    """Results on disk: one JSON line per unit, written when it is done; an incomplete last line is ignored."""

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
            stream.write("\n" + json.dumps({"key": key, "result": result}))  # end an incomplete line
            stream.flush()
            os.fsync(stream.fileno())


def reproduce(
    experiment: Experiment, settings: Settings, folder: Path, *, progress: Callable[[int, int, str], None] | None = None
) -> Report:
    """Compute the units not yet saved in the folder, and compare all results with the paper's figures."""
    if settings.replications is not None and settings.replications < 1:
        raise InputError(f"replications {settings.replications}: at least 1 is needed.")
    settings = replace(settings, options=experiment.choose_options(settings.options))
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
    done = {unit.key: (unit.work, kept.results[unit.key]) for unit in units}
    return Report(
        experiment=experiment.name,
        rows=experiment.rows(done.values()),
        skipped=skipped,
        remark=experiment.remark,
        computed=len(todo),
    )

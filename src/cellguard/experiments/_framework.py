"""Experiments: units of work, computed once and kept, and rows that set ours beside the paper's figures."""

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
    "figures_of_paper",
    "reproduce",
    "results_by_experiment_unit",
    "row_beside_paper",
]

Figures = dict[str, Any]
"""What a unit of work is told, what it finds, or a row that sets figures side by side: JSON can hold it."""
Done = Collection[tuple[Figures, Figures]]
"""All units in order: what each was told, and what it found."""


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

    def chosen(self, usual: Iterable[str], known: Collection[str]) -> list[str]:
        """Return the instances, the usual ones unless given; refuse one that the experiment does not have."""
        for name in self.instances:
            if name not in known:
                hint = f"it has {', '.join(known)}."
                raise InputError(f"instance {name!r} is not part of this experiment.", hint=hint)
        return list(self.instances or usual)


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One piece of work, small enough to lose when interrupted."""

    key: str
    """Names it among the kept results."""
    work: Figures
    """What :attr:`Experiment.run` needs."""


Units = tuple[list[Unit], list[str]]
"""The work, and what must be skipped with the reason."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A published table, or several that belong together."""

    name: str
    """As the command line calls it."""
    units: Callable[[Settings], Units]
    run: Callable[[Figures], Figures]
    """Does one unit."""
    rows: Callable[[Done], list[Figures]]
    """Sets the results beside the paper's figures."""
    remark: str = ""
    """What differs from the paper and why, as far as it is known."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What one may choose: name -> what is chosen unless told."""

    def chosen(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return every option, those that were given instead of what is chosen unless told."""
        raise_error_of_missing("option", given, self.options, place=f"{self.name}: ")
        return {
            name: _option_of_experiment(default, given.get(name, default), name)
            for name, default in self.options.items()
        }


def _option_of_experiment(default: Any, value: Any, name: str) -> Any:
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
    rows: list[Figures]
    skipped: list[str]
    remark: str
    computed: int
    """Units computed now; the others were kept from before."""

    def summary(self) -> dict[str, Any]:
        """Return the JSON object of the command line."""
        return asdict(self)


def row_beside_paper(what: str, ours: float | None, paper: float | None, **where: Any) -> dict[str, Any]:
    """Return a row of a report, with the difference where both figures are there."""
    known = ours is not None and paper is not None
    return {**where, "what": what, "ours": ours, "paper": paper, "difference": ours - paper if known else None}  # type: ignore[operator]


def results_by_experiment_unit(done: Done, *names: str) -> dict[tuple[Any, ...], Figures]:
    """Return what was found, by some of what the units were told."""
    return {tuple(work[name] for name in names): found for work, found in done}


@cache
def _figures_of_all_papers() -> dict[str, list[Figures]]:
    data: dict[str, list[Figures]] = json.loads(
        files("cellguard.experiments").joinpath("published.json").read_text("utf-8")
    )
    return data


def figures_of_paper(name: str) -> list[Figures]:
    """Return the figures that a paper prints, a dict per row."""
    return _figures_of_all_papers()[name]


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
    done = {unit.key: (unit.work, kept.results[unit.key]) for unit in units}
    return Report(
        experiment=experiment.name,
        rows=experiment.rows(done.values()),
        skipped=skipped,
        remark=experiment.remark,
        computed=len(todo),
    )

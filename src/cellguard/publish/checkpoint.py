"""Checkpoints: what a step made, kept until the release is written, so that a killed run goes on from there.

A checkpoint is a numpy archive of arrays beside a JSON text that says how they make up tables, releases
and audits; nothing in it is executed when it is read. It holds confidential values: its folder is its owner's only.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from cellguard._io.files import atomic_writer

__all__ = ["Checkpoints"]

T = TypeVar("T")

_FORMAT = "cellguard checkpoint 1"
_KINDS = {
    "Attacker": "cellguard.nouns.attacker",
    "Audit": "cellguard.check.audit",
    "CellStatistics": "cellguard.data.rules",
    "Comparison": "cellguard.methods.compare",
    "ExactMovements": "cellguard._engine.ranges.witness",
    "Finding": "cellguard.check.audit",
    "Flags": "cellguard.data.rules",
    "Hierarchy": "cellguard.nouns.hierarchy",
    "Levels": "cellguard.nouns.levels",
    "Part": "cellguard.nouns.publication",
    "Status": "cellguard.nouns.release",
    "Table": "cellguard.nouns.table",
    **dict.fromkeys(("Adjustment", "Intervals", "Perturbation", "Rounding", "Suppression"), "cellguard.nouns.release"),
}
"""What a checkpoint may hold -> the module that defines it."""


class Checkpoints:
    """The checkpoints of one job in a folder; those of another job, or of other data, count for nothing."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.key = folder, key

    def step(self, name: str, make: Callable[[], T]) -> tuple[T, bool]:
        """Return what a step makes, and whether it was made before."""
        found = self.load(name)
        if found is not None:
            return cast("T", found), True
        made = make()
        self.save(name, made)
        return made, False

    def save(self, name: str, value: Any) -> None:
        """Keep what a step, or a part of one, has made."""
        path = self.folder / f"{name}.npz"
        arrays: list[np.ndarray[Any, Any]] = []
        tree = _to_checkpoint(value, arrays, {})
        text = json.dumps({"format": _FORMAT, "key": self.key, "value": tree})
        content = {f"a{i}": array for i, array in enumerate(arrays)}
        with atomic_writer(path, private=True) as stream:
            np.savez(stream, text=np.frombuffer(text.encode(), np.uint8), **cast("Any", content))

    def load(self, name: str) -> Any:
        """Return what was kept; None where there is nothing, or something else."""
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            return None
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                text = json.loads(bytes(archive["text"]).decode())
                if text.get("format") != _FORMAT or text.get("key") != self.key:
                    return None
                return _from_checkpoint(text["value"], archive, {})
        except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile):
            return None  # damaged: the step is simply done again


def _to_checkpoint(value: Any, arrays: list[np.ndarray[Any, Any]], seen: dict[int, int]) -> Any:
    """Turn a value into JSON; arrays go to the list. What occurs twice, as the table in its release, is kept once."""
    if isinstance(value, Enum):
        return {"kind": type(value).__name__, "enum": value.value}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, np.generic):
        return _to_checkpoint(value.item(), arrays, seen)
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, dict):
        return {"dict": [[_to_checkpoint(k, arrays, seen), _to_checkpoint(v, arrays, seen)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return {"tuple" if isinstance(value, tuple) else "list": [_to_checkpoint(item, arrays, seen) for item in value]}
    if id(value) in seen:
        return {"again": seen[id(value)]}
    seen[id(value)] = number = len(seen)
    if hasattr(value, "tocsr"):
        m = value.tocsr()
        parts = {name: _to_checkpoint(getattr(m, name), arrays, seen) for name in ("data", "indices", "indptr")}
        return {"sparse": parts, "shape": list(m.shape), "number": number}
    kind = type(value).__name__
    if not is_dataclass(value) or kind not in _KINDS:
        raise TypeError(f"a checkpoint cannot hold {kind}")
    content = {f.name: _to_checkpoint(getattr(value, f.name), arrays, seen) for f in fields(value) if f.init}
    return {"kind": kind, "fields": content, "number": number}


def _from_checkpoint(tree: Any, arrays: Any, seen: dict[int, Any]) -> Any:
    if not isinstance(tree, dict):
        return tree
    simple: dict[str, Callable[[Any], Any]] = {
        "float": float,
        "fraction": Fraction,
        "array": lambda i: arrays[f"a{i}"],
        "dict": lambda pairs: {_from_checkpoint(k, arrays, seen): _from_checkpoint(v, arrays, seen) for k, v in pairs},
        "list": lambda items: [_from_checkpoint(item, arrays, seen) for item in items],
        "tuple": lambda items: tuple(_from_checkpoint(item, arrays, seen) for item in items),
        "again": seen.__getitem__,
    }
    for name, read in simple.items():
        if name in tree:
            return read(tree[name])
    if "sparse" in tree:
        from scipy.sparse import csr_array

        parts = {name: _from_checkpoint(part, arrays, seen) for name, part in tree["sparse"].items()}
        made = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(tree["shape"]))
        seen[tree["number"]] = made
        return made
    kind = getattr(import_module(_KINDS[tree["kind"]]), tree["kind"])
    if "enum" in tree:
        return kind(tree["enum"])
    value = kind(**{name: _from_checkpoint(part, arrays, seen) for name, part in tree["fields"].items()})
    seen[tree["number"]] = value
    return value

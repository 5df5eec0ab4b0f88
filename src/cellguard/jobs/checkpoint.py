"""Checkpoints: the saved results of steps, kept until the release is written, so that a killed run can resume.

A checkpoint is a numpy archive: arrays, and a JSON text that says how they make up tables, releases
and audits. Nothing in it is executed when it is read. It holds confidential values: only its owner can read its folder.
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

from cellguard._io.files import open_atomically
from cellguard.model.key import Key

__all__ = ["Checkpoints"]

T = TypeVar("T")

_FORMAT = "cellguard checkpoint 1"
_KINDS = {
    "Attacker": "cellguard.model.attacker",
    "Audit": "cellguard.auditing.audit",
    "CellStatistics": "cellguard.rules",
    "Comparison": "cellguard.methods.compare",
    "ExactMovements": "cellguard._engine.ranges.witnesses.witness",
    "Finding": "cellguard.auditing.finding",
    "Flags": "cellguard.rules",
    "Hierarchy": "cellguard.model.hierarchy",
    "Levels": "cellguard.model.levels",
    "Part": "cellguard.model.linked.publication",
    "Status": "cellguard.release.release",
    "Table": "cellguard.model.table",
}
"""Class that a checkpoint may hold, besides the registered kinds of release -> the module that defines it."""


def _find_class(name: str) -> Any:
    """Return the class with this name that a checkpoint may hold; None if there is none."""
    if name in _KINDS:
        return getattr(import_module(_KINDS[name]), name)
    from cellguard.release.release import KINDS

    return next((kind for kind in KINDS.values() if kind.__name__ == name), None)


class Checkpoints:
    """The checkpoints of one job in a folder; those of another job, or of other data, are ignored."""

    def __init__(self, folder: Path, key: str) -> None:
        self.folder, self.key = folder, key

    def run_step(self, name: str, make: Callable[[], T]) -> tuple[T, bool]:
        """Return the result of a step, and whether it came from a checkpoint."""
        found = self.load(name)
        if found is not None:
            return cast("T", found), True
        made = make()
        self.save(name, made)
        return made, False

    def save(self, name: str, value: Any) -> None:
        """Save the result of a step, or of a part of one."""
        path = self.folder / f"{name}.npz"
        arrays: list[np.ndarray[Any, Any]] = []
        tree = _encode_value(value, arrays, {})
        text = json.dumps({"format": _FORMAT, "key": self.key, "value": tree})
        content = {f"a{i}": array for i, array in enumerate(arrays)}
        with open_atomically(path, private=True) as stream:
            np.savez(stream, text=np.frombuffer(text.encode(), np.uint8), **cast("Any", content))

    def load(self, name: str) -> Any:
        """Return a saved result; None if there is none for this job and data."""
        path = self.folder / f"{name}.npz"
        if not path.is_file():
            return None
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                text = json.loads(bytes(archive["text"]).decode())
                if text.get("format") != _FORMAT or text.get("key") != self.key:
                    return None
                return _decode_value(text["value"], archive, {})
        except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile):
            return None  # damaged: the step runs again


def _encode_value(value: Any, arrays: list[np.ndarray[Any, Any]], seen: dict[int, int]) -> Any:
    """Turn a value into JSON; arrays go to the list. An object that occurs twice is stored once."""
    if isinstance(value, Enum):
        return {"kind": type(value).__name__, "enum": value.value}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, np.generic):
        return _encode_value(value.item(), arrays, seen)
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, Fraction | Key):
        return {"secret": value.to_hex()} if isinstance(value, Key) else {"fraction": str(value)}
    if isinstance(value, dict):
        return {"dict": [[_encode_value(k, arrays, seen), _encode_value(v, arrays, seen)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return {"tuple" if isinstance(value, tuple) else "list": [_encode_value(item, arrays, seen) for item in value]}
    if id(value) in seen:
        return {"again": seen[id(value)]}
    seen[id(value)] = number = len(seen)
    if hasattr(value, "tocsr"):
        m = value.tocsr()
        parts = {name: _encode_value(getattr(m, name), arrays, seen) for name in ("data", "indices", "indptr")}
        return {"sparse": parts, "shape": list(m.shape), "number": number}
    kind = type(value).__name__
    if not is_dataclass(value) or _find_class(kind) is not type(value):
        raise TypeError(f"a checkpoint cannot hold {kind}")
    content = {f.name: _encode_value(getattr(value, f.name), arrays, seen) for f in fields(value) if f.init}
    return {"kind": kind, "fields": content, "number": number}


def _decode_value(tree: Any, arrays: Any, seen: dict[int, Any]) -> Any:
    if not isinstance(tree, dict):
        return tree
    simple: dict[str, Callable[[Any], Any]] = {
        "float": float,
        "fraction": Fraction,
        "secret": Key.from_hex,
        "array": lambda i: arrays[f"a{i}"],
        "dict": lambda pairs: {_decode_value(k, arrays, seen): _decode_value(v, arrays, seen) for k, v in pairs},
        "list": lambda items: [_decode_value(item, arrays, seen) for item in items],
        "tuple": lambda items: tuple(_decode_value(item, arrays, seen) for item in items),
        "again": seen.__getitem__,
    }
    for name, read in simple.items():
        if name in tree:
            return read(tree[name])
    if "sparse" in tree:
        from scipy.sparse import csr_array

        parts = {name: _decode_value(part, arrays, seen) for name, part in tree["sparse"].items()}
        made = csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(tree["shape"]))
        seen[tree["number"]] = made
        return made
    kind = _find_class(tree["kind"])
    if "enum" in tree:
        return kind(tree["enum"])
    value = kind(**{name: _decode_value(part, arrays, seen) for name, part in tree["fields"].items()})
    seen[tree["number"]] = value
    return value

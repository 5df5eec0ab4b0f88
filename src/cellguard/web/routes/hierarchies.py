"""Files of hierarchies: the tree that a file describes, and the dimensions whose codes it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cellguard._io.frames import encode_frame_column, read_frame
from cellguard.exceptions import CellguardError
from cellguard.model.hierarchy import Hierarchy
from cellguard.web.projects import Project

__all__ = ["describe_hierarchy", "find_dimensions_of_file"]

_SHOWN_CODES = 400
"""Number of codes of a tree that the page shows."""
_SHOWN_LACKING = 10
_NEARLY_ALL = 0.8
"""A file that has this share of a dimension's codes was meant for it."""
_TABLES = (".csv", ".parquet", ".xlsx")


def find_dimensions_of_file(project: Project, path: Path) -> list[dict[str, Any]]:
    """Return the dimensions of the job whose codes a file has, best first, each with a preview of the tree."""
    found = []
    for name, codes in _list_dimension_codes(project):
        try:
            described = _describe(path, codes)
        except CellguardError:
            continue
        if codes and len(described["lacking"]) + described["lacking_more"] <= (1 - _NEARLY_ALL) * len(codes):
            found.append({"dimension": name, **described})
    return sorted(found, key=lambda entry: len(entry["lacking"]))


def describe_hierarchy(project: Project, path: Path, dimension: str) -> dict[str, Any]:
    """Return the tree in a file for a dimension: its codes in order with their depth, and the codes it lacks."""
    codes = dict(_list_dimension_codes(project)).get(dimension, set())
    return {"dimension": dimension, **_describe(path, codes)}


def _describe(path: Path, codes: set[str]) -> dict[str, Any]:
    levels = _choose_levels(path, codes)
    tree = Hierarchy.read(path, levels=levels)
    leaves = {tree.codes[i] for i in tree.leaves.tolist()}
    lacking = sorted(codes - set(tree.codes))
    shown = list(zip(tree.codes, tree.labels, tree.depth.tolist(), strict=True))[:_SHOWN_CODES]
    return {
        "file": path.name,
        "levels": levels,
        "total": tree.total,
        "codes": len(tree.codes),
        "depth": tree.n_levels - 1,
        "tree": [[code, "" if label == code else label, depth, code in leaves] for code, label, depth in shown],
        "lacking": lacking[:_SHOWN_LACKING],
        "lacking_more": max(0, len(lacking) - _SHOWN_LACKING),
        "unused": len(leaves - codes) if codes else 0,
    }


def _choose_levels(path: Path, codes: set[str]) -> list[str] | None:
    """Return the columns of a correspondence table from the coarsest to the one with the codes; None to use all."""
    if path.suffix.lower() not in _TABLES or not codes:
        return None
    frame = read_frame(path)
    from cellguard.model.trees import find_parent_columns

    if {"code", "parent"} <= set(find_parent_columns(frame)):
        return None
    names = list(frame)
    shares = [len(codes & set(encode_frame_column(frame[name])[0])) for name in names]
    best = max(range(len(names)), key=lambda k: (shares[k], k))
    return names[: best + 1] if 1 <= best < len(names) - 1 else None


def _list_dimension_codes(project: Project) -> Iterator[tuple[str, set[str]]]:
    """Yield the dimensions of the job with the codes that its data have, without totals."""
    raw = project.read_raw()
    dimensions = raw.get("dimensions", {})
    data, tables = raw.get("data", {}), raw.get("tables", [])
    if not (isinstance(dimensions, dict) and isinstance(data, dict) and isinstance(tables, list)):
        return
    frames: dict[str, Mapping[str, Any]] = {}
    for name, entry in dimensions.items():
        without = {entry.get("total"), *entry.get("missing", [])} if isinstance(entry, dict) else set()
        codes: set[str] = set()
        for file, column, total in _list_columns(name, data, tables):
            if file not in frames:
                frames[file] = read_frame(project.root.resolve_inside(str((project.folder / file).resolve())))
            if column in frames[file]:
                codes |= set(encode_frame_column(frames[file][column])[0]) - {total, ""}
        yield name, {code for code in codes - without if code and code.lower() not in ("total", "_t")}


def _list_columns(name: str, data: Mapping[str, Any], tables: list[Any]) -> list[tuple[str, str, str | None]]:
    """Return the files with a dimension, its column there, and its code of the total."""
    found: list[tuple[str, str, str | None]] = []
    if isinstance(data.get("file"), str):
        found.append((data["file"], name, None))
    for table in tables:
        if isinstance(table, dict) and isinstance(table.get("file"), str) and name in table.get("dimensions", []):
            columns, totals = table.get("columns", {}), table.get("total", {})
            found.append((table["file"], columns.get(name, name), totals.get(name)))
    return found

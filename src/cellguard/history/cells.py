"""The distinct cells of all releases: cells with the same period, population and codes are one cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cellguard._tolerances import MEANT_TO_BE_SAME
from cellguard._types import Coordinates, FloatArray, IntArray
from cellguard.exceptions import InputError
from cellguard.history.earlier import EarlierRelease, History
from cellguard.model.linked.publication import INDICATOR

__all__ = ["JointCells", "find_rows", "join_cells"]

THIS = "this release"
"""Name of the new release in labels, where it has no period."""


@dataclass(frozen=True, kw_only=True, eq=False)
class JointCells:
    """The distinct cells of a new release and of earlier ones; the cells of the new release come first."""

    dimensions: tuple[str, ...]
    """The dimension of versions, and all dimensions of all releases."""
    codes: tuple[tuple[str, ...], ...]
    """Codes of each dimension."""
    coordinates: Coordinates = field(repr=False)
    """One row per cell."""
    periods: tuple[str, ...]
    """The period of each version."""
    version_of: tuple[int, ...]
    """The version of each earlier release; 0 is the new release and all that show the same cells."""
    place: tuple[IntArray, ...] = field(repr=False)
    """For each earlier release, the joint cell of each of its cells; -1 where a code has no correspondence."""

    def find(self, cells: IntArray, version: int) -> IntArray:
        """Return the cells with the same codes in another version; -1 where there is none."""
        wanted = self.coordinates[cells].copy()
        wanted[:, 0] = version
        return find_rows(self.coordinates, wanted)

    def label(self, cell: int) -> str:
        """Return the name of a cell for messages: its release and codes, never its value."""
        pairs = zip(self.dimensions, self.codes, self.coordinates[cell].tolist(), strict=True)
        return "(" + ", ".join(f"{dimension}={codes[k]}" for dimension, codes, k in pairs) + ")"

    def get_newest_version(self, period: str, until: int | None = None) -> int | None:
        """Return the newest version of a period, if there is one.

        With `until`, return the newest when only as many earlier releases were out: what readers had then.
        """
        if until is None and self.periods[0] == period:
            return 0
        found = [k for k in self.version_of[:until] if self.periods[k] == period]
        return found[-1] if found else None


def find_rows(rows: Coordinates, wanted: Coordinates) -> IntArray:
    """Return the first place of each wanted row among rows; -1 where it is not there."""
    both = np.ascontiguousarray(np.vstack([rows, wanted]))
    _, first, inverse = np.unique(both, axis=0, return_index=True, return_inverse=True)
    place = first[np.asarray(inverse).ravel()[len(rows) :]]
    return np.asarray(np.where(place < len(rows), place, -1), np.int64)


def join_cells(new: EarlierRelease, history: History) -> JointCells:
    """Return the distinct cells of a new release, given like an earlier one, and of all earlier releases."""
    dimensions = list(new.dimensions)
    codes = {dimension: list(own) for dimension, own in zip(new.dimensions, new.codes, strict=True)}
    translated = []
    for one in history.releases:
        _check_meanings(new, one, history)
        _check_indicators(new, one)
        for dimension, own in zip(one.dimensions, one.codes, strict=True):
            if dimension not in codes:
                dimensions.append(dimension)
                codes[dimension] = [own[0]]
        translated.append([_translate_codes(one, d, codes, history) for d in range(len(one.dimensions))])
    rows = [_build_rows(new, [np.arange(len(own)) for own in new.codes], dimensions)]
    for one, tables in zip(history.releases, translated, strict=True):
        rows.append(_build_rows(one, tables, dimensions))
    versions, version_of = _list_versions(new, history, rows)
    for cells_of, version in zip(rows[1:], version_of, strict=True):
        cells_of[:, 0] = version
    every = np.vstack(rows)
    usable = (every >= 0).all(axis=1)
    distinct, first, inverse = np.unique(every[usable], axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    place = np.full(len(every), -1, np.int64)
    place[usable] = rank[np.asarray(inverse).ravel()]
    ends = np.cumsum([len(own) for own in rows])
    if not np.array_equal(place[: ends[0]], np.arange(ends[0])):
        raise InputError("two cells of the release have the same codes.")
    names = [period or (THIS if k == 0 else "earlier") for k, period in enumerate(versions)]
    counted = [names[: k + 1].count(name) for k, name in enumerate(names)]
    labels = [name if n == 1 else f"{name}, version {n}" for name, n in zip(names, counted, strict=True)]
    return JointCells(
        dimensions=("release", *dimensions),
        codes=(tuple(labels), *(tuple(codes[dimension]) for dimension in dimensions)),
        coordinates=distinct[order].astype(np.int32),
        periods=tuple(versions),
        version_of=tuple(version_of),
        place=tuple(np.split(place, ends)[1:-1]),
    )


def _build_rows(release: EarlierRelease, tables: Sequence[IntArray], dimensions: Sequence[str]) -> Coordinates:
    """Return the cells of a release in joint codes, of the version 0; a missing dimension is at its total."""
    out = np.zeros((release.n_cells, 1 + len(dimensions)), np.int32)
    for d, dimension in enumerate(release.dimensions):
        out[:, 1 + dimensions.index(dimension)] = tables[d][release.coordinates[:, d]]
    return out


def _translate_codes(one: EarlierRelease, d: int, codes: dict[str, list[str]], history: History) -> IntArray:
    """Return the joint number of each code of a dimension; add codes that only the earlier release has."""
    dimension, known = one.dimensions[d], codes[one.dimensions[d]]
    changed = history.correspondence.get(dimension, {})
    position = {code: i for i, code in enumerate(known)}
    out = []
    for k, code in enumerate(one.codes[d]):
        now = changed.get(code, code)
        if now is None:
            out.append(-1)
            continue
        if k == 0 and code not in changed and dimension != INDICATOR:
            now = known[0]  # totals may have different names
        if now not in position:
            position[now] = len(known)
            known.append(now)
        out.append(position[now])
    return np.array(out, np.int64)


def _check_meanings(new: EarlierRelease, one: EarlierRelease, history: History) -> None:
    """Refuse codes that other codes add up to now, unless a correspondence says what they mean."""
    if not new.parts or not one.parts:
        return
    now = dict(zip(new.dimensions, new.parts, strict=True))
    for dimension, parts in zip(one.dimensions, one.parts, strict=True):
        told = history.correspondence.get(dimension, {})
        root = one.codes[one.dimensions.index(dimension)][0]
        for code, own in parts.items():
            other = now.get(dimension, {}).get(code)
            own_now = tuple(sorted(str(told.get(part, part)) for part in own))
            if other is None or code == root or code in told or own_now == other:
                continue
            raise InputError(
                f"dimension {dimension!r}: code {code!r} has other parts in release {one.name!r} than now.",
                hint="a correspondence is needed: earlier code -> code now, or none where it has no counterpart.",
            )


def _check_indicators(new: EarlierRelease, one: EarlierRelease) -> None:
    """Refuse to link a release of several indicators with one of a single indicator: which one is unknown."""
    if (INDICATOR in new.dimensions) != (INDICATOR in one.dimensions):
        raise InputError(
            f"release {one.name!r} and this one do not both name their indicators.",
            hint="give them different populations, or release both with the same indicators.",
        )


def _list_versions(new: EarlierRelease, history: History, rows: Sequence[Coordinates]) -> tuple[list[str], list[int]]:
    """Return the period of each version, and the version of each earlier release.

    Releases of one period show the same cells. Where values may be revised, a release that shows other values for
    shared cells is a version of its own. `rows` are the cells of the new release and of the earlier ones.
    """
    versions, version_of = [history.period], []
    shown = [[(rows[0], new.values)]]  # of the new release the values are known to the office
    for one, own in zip(history.releases, rows[1:], strict=True):
        if one.population != history.population:
            raise InputError(
                f"release {one.name!r} is about the population {one.population!r}, not {history.population!r}.",
                hint="only releases about one population are linked.",
            )
        values = np.where(np.isnan(one.values) & one.published, one.low, one.values)  # withheld ones are revised too
        same = [k for k, period in enumerate(versions) if period == one.period]
        if history.revision_percent is not None:
            same = [k for k in same if all(_have_equal_values(own, values, *other) for other in shown[k])]
        if not same:
            same = [len(versions)]
            versions.append(one.period)
            shown.append([])
        version_of.append(same[0])
        shown[same[0]].append((own, values))
    return versions, version_of


def _have_equal_values(rows: Coordinates, values: FloatArray, others: Coordinates, known: FloatArray) -> bool:
    """Return whether no cell that two releases show has different values."""
    place = find_rows(others, rows)
    both = place >= 0
    one, other = values[both], known[place[both]]
    return not (np.abs(one - other) > MEANT_TO_BE_SAME * np.maximum(1.0, np.abs(one))).any()  # false where NaN

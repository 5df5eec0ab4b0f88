"""The content of the ledger: what each release published and its structure, so that later releases protect it too.

The public part (``ledger.content``) is what readers have; it is enough for the attack. The internal part
(``ledger.internal``, mode 0700) has true values, sensitive cells and levels. Files are named by their hashes, which the
chain of the ledger protects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cellguard._io.files import open_atomically, read_bytes
from cellguard.exceptions import FormatError, InputError
from cellguard.history.derived import find_base_period
from cellguard.history.earlier import EarlierRelease
from cellguard.history.periods import find_linked_periods, find_previous, normalize_period
from cellguard.history.store import dump_internal, dump_public, load_earlier
from cellguard.jobs.outputs.ledger import FILE, read_entries

__all__ = [
    "LedgerQuery", "LinkedReleases", "check_ledger", "find_linked", "load_entry", "load_linked", "store_content",
]  # fmt: skip

_PUBLIC, _INTERNAL = "ledger.content", "ledger.internal"


def store_content(
    folder: Path, release: EarlierRelease, *, office: str = "", additive: bool = False,
    sums: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write the content of a release beside the ledger, atomically; return what the ledger records of it.

    `additive` and `sums` are the links that were declared with it: later releases of the population keep them.
    """
    facts: dict[str, Any] = {
        "period": release.period, "population": release.population, "office": office, "name": release.name,
    }  # fmt: skip
    refers = {find_base_period(one.derived, release.period) for one in release.figures if not one.withheld.all()}
    facts |= {"refers": sorted(refers - {""})} if refers - {""} else {}
    facts |= {"additive": True} if additive else {}
    facts |= {"sums": {total: list(parts) for total, parts in sums.items()}} if sums else {}
    for part, content in ((_PUBLIC, dump_public(release)), (_INTERNAL, dump_internal(release))):
        place = folder / part
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = hashlib.sha256(content).hexdigest()
        with open_atomically(place / f"{name}.npz", private=True) as stream:
            stream.write(content)
        facts[part.removeprefix("ledger.")] = name
    return facts


@dataclass(frozen=True, kw_only=True)
class LedgerQuery:
    """Which releases of a ledger are linked with a new one."""

    period: str = ""
    """Period of the new release."""
    population: str = ""
    """Its population."""
    office: str = ""
    """The office that the ledger must belong to; any unless given."""
    additive: bool = False
    """Whether values of periods add up."""
    neighbours: bool = False
    """Whether the preceding period is prior knowledge."""
    also: tuple[str, ...] = ()
    """Further periods: those of sums, and of denominators."""
    until: int | None = None
    """The last line to look at; all lines unless given."""


@dataclass(frozen=True, kw_only=True)
class LinkedReleases:
    """The releases of a ledger that are linked with a new one, and the links that were declared with them."""

    releases: tuple[EarlierRelease, ...]
    """Their contents, oldest first."""
    contents: frozenset[str]
    """The names of their contents."""
    sums: Mapping[str, Sequence[str]]
    """Sums of periods that were declared for the population: total -> parts."""


def load_linked(folder: Path, query: LedgerQuery) -> list[EarlierRelease]:
    """Return the releases of a ledger that are linked with a new one, oldest first; read no others."""
    return list(find_linked(folder, query).releases)


def find_linked(folder: Path, query: LedgerQuery) -> LinkedReleases:
    """Return the releases of a ledger that are linked with a new one; no other content is read."""
    entries = [
        (line, entry)
        for line, entry in _read_releases(folder, query.office)
        if "content" in entry and entry["population"] == query.population
        and (query.until is None or line <= query.until)
    ]  # fmt: skip
    _refuse_forgotten_sums(folder, query, entries)
    sums = {total: parts for _, entry in entries for total, parts in entry.get("sums", {}).items()}
    linked = _find_linked_periods(query, [entry for _, entry in entries], sums)
    last: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for line, entry in entries:  # the same content twice is one release
        if entry["period"] in linked:
            last.setdefault(entry["content"], (line, entry))
    out: list[EarlierRelease] = []
    names: set[str] = set()
    for line, entry in last.values():
        release = load_entry(folder, line, entry)
        name = f"{entry['release']} ({entry['period'] or 'no period'}, {str(entry['when'])[:10]})"
        names.add(name)
        out.append(_rename(release, name if len(names) > len(out) else f"{name}, line {line}"))
    return LinkedReleases(releases=tuple(out), contents=frozenset(last), sums=sums)


def _refuse_forgotten_sums(
    folder: Path, query: LedgerQuery, entries: Sequence[tuple[int, Mapping[str, Any]]]
) -> None:  # fmt: skip
    """Refuse a query that forgets what was declared: readers still know that quarters add up to years."""
    for line, entry in entries:
        if entry.get("additive") and not query.additive:
            raise InputError(
                f"{folder / FILE}, line {line}: {entry['release']!r} says that values of periods add up, this release "
                "does not.",
                hint="say additive = true (--additive), or name another population if it measures something else.",
            )


def _find_linked_periods(
    query: LedgerQuery, entries: Sequence[Mapping[str, Any]], sums: Mapping[str, Sequence[str]]
) -> set[str]:
    """Return the periods that are linked with those of a query, directly or through others.

    A derived figure links its own period with the one to which it refers, such as the base of an index.
    """
    known = dict.fromkeys(entry["period"] for entry in entries)
    groups = [{normalize_period(p) for p in (total, *parts)} for total, parts in sums.items()]
    groups += [{entry["period"], *entry["refers"]} for entry in entries if "refers" in entry]
    asked = [normalize_period(p) for p in (query.period, *query.also)]
    before = find_previous(asked[0], known)  # its pattern is preferred
    asked += [before] if before is not None else []
    found: set[str] = set()
    seen: set[str] = set()
    while asked:
        period = asked.pop()
        if period in seen:
            continue
        seen.add(period)
        near = find_linked_periods(period, known, additive=query.additive, neighbours=query.neighbours)
        found |= near
        asked += [*near, *(p for group in groups if period in group for p in group)]
    return found


def _rename(release: EarlierRelease, name: str) -> EarlierRelease:
    from dataclasses import replace

    return replace(release, name=name)


def _read_releases(folder: Path, office: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the line and facts of each release; refuse a broken chain and the ledger of another office."""
    entries, whole = read_entries(folder)
    if not whole:
        raise InputError(
            f"{folder / FILE}: the chain of the ledger is broken: a line was changed or removed.",
            hint="cellguard ledger check names the line; restore the file from a copy.",
        )
    for line, entry in enumerate(entries, 1):
        if entry.get("what") != "released" or entry.get("withdrawn"):
            continue
        if office and entry.get("office", office) != office:
            raise InputError(f"{folder / FILE}, line {line}: a release of another office ({entry['office']!r}).")
        yield line, entry


def load_entry(folder: Path, line: int, entry: Mapping[str, Any]) -> EarlierRelease:
    """Read the content of one release, and check that it is what was recorded."""
    public = _read(folder, _PUBLIC, entry["content"])
    if public is None:
        raise FormatError(
            f"{folder / FILE}, line {line}: the content of {entry['release']!r} is missing, or was changed after it "
            "was recorded.",
            hint="restore the folder ledger.content from a copy.",
        )
    return load_earlier(public, _read(folder, _INTERNAL, entry.get("internal", "")))


def _read(folder: Path, part: str, name: Any) -> bytes | None:
    """Read a part of a release; None if it is not there, or not what was recorded."""
    path = folder / part / f"{name}.npz"
    if not (isinstance(name, str) and name.isalnum()) or path.is_symlink() or not path.is_file():
        return None
    content = read_bytes(path)
    return content if hashlib.sha256(content).hexdigest() == name else None


def check_ledger(folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Check the chain of a ledger and the content of every release; return figures and problems."""
    if not (folder / FILE).is_file():
        raise InputError(f"{folder}: there is no ledger.", hint=f"a folder with {FILE} is needed.")
    problems = list(_find_broken_lines(folder))
    entries, _ = read_entries(folder)
    released = [(line, e) for line, e in enumerate(entries, 1) if e.get("what") == "released"]
    content = [(line, e) for line, e in released if "content" in e]
    internal = 0
    for line, entry in content:
        if _read(folder, _PUBLIC, entry["content"]) is None:
            problems.append(f"line {line}: the content of {entry['release']!r} is missing or was changed.")
        internal += _read(folder, _INTERNAL, entry.get("internal", "")) is not None
    problems += _find_changed_releases(folder, released)
    figures = {"entries": len(entries), "releases": len(released), "with_content": len(content), "internal": internal}
    return figures, problems


def _find_broken_lines(folder: Path) -> Iterator[str]:
    from cellguard.jobs.outputs.ledger import list_broken_lines

    yield from (f"line {line}: does not follow from the line before it." for line in list_broken_lines(folder))


def _find_changed_releases(folder: Path, released: Iterable[tuple[int, Mapping[str, Any]]]) -> list[str]:
    """Return the releases whose manifest is not the recorded one; a folder that was moved away is not checked."""
    from cellguard.jobs.outputs.manifest import hash_for_manifest

    newest = {entry["release"]: (line, entry) for line, entry in released if "release" in entry}
    out = []
    for name, (line, entry) in newest.items():
        path = folder / name / "internal" / "manifest.json"
        if path.is_file() and "manifest" in entry and hash_for_manifest(path) != entry["manifest"]:
            out.append(f"line {line}: release {name!r} was changed after it was recorded.")
    return out

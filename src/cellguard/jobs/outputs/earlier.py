"""Find earlier releases in the ledger that show cells of a table.

Two releases of one table can be subtracted, and one may publish what the other withholds. The ledger keeps two keyed
hashes for every cell of a release: of its codes, and of its codes with its value. Without the key they do not reveal
the cells or values. Names of dimensions are not part of the hash, so renaming a column does not hide a cell.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cellguard._io.files import open_atomically, read_bytes
from cellguard.exceptions import InputError
from cellguard.jobs.outputs.ledger import read_entries
from cellguard.model.linked.publication import INDICATOR
from cellguard.model.table import Table

__all__ = ["Earlier", "RepeatedReleaseError", "find_earlier", "hash_cells", "refuse_repetition", "store_cell_hashes"]

Hashes = NDArray[np.uint64]
"""A row for each cell: the hash of its codes, and that of its codes and value."""
_FOLDER = "ledger.cells"
_SAME_DATA_SHARE = 0.5
"""Two releases show the same data if more than this share of their common cells has the same value."""


class RepeatedReleaseError(InputError):
    """A table was published before, or shares cells with an earlier release, and the user has not confirmed it."""

    kept = True
    """The result stays in the private folder, so that a user who confirms need not search again."""


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """An earlier release that shows cells of a table."""

    release: str
    """Its folder, as named in the ledger."""
    when: str
    """When it was recorded."""
    cells: int
    """Number of cells with a value that both show; 0 if unknown."""
    public: str
    """Hash of what was published."""
    problem: str = ""
    """Why the cells cannot be compared."""
    content: str = ""
    """Name of its content in the ledger, with which a later release can be protected; empty if there is none."""

    def __str__(self) -> str:
        return f"{self.release} of {self.when[:10]} ({self.problem or f'{self.cells:,} shared cells'})"


def hash_cells(table: Table, key: bytes) -> Hashes:
    """Return keyed hashes of the nonzero cells of a table; zeros reveal nothing."""
    codes = _hash_texts([b"a cell"], key).repeat(table.n_cells)
    if not table.dimensions:
        codes = _hash_texts([b"cell %d" % i for i in range(table.n_cells)], key)
    for d, dimension in enumerate(table.dimensions):
        if dimension != INDICATOR:
            own = _hash_texts([code.encode() for code in table.codes[d]], key)
            own[0] = 0  # a cell at the total is the same cell where a table does not have the dimension
            codes += own[table.coordinates[:, d]]
    some = table.values != 0
    codes, values = codes[some], table.values[some]
    # a hash of the value alone would reveal which cells have equal values
    pairs = zip(codes.tolist(), values.tolist(), strict=True)
    both = _hash_texts([b"%d %.9g" % pair for pair in pairs], key)
    return np.asarray(np.unique(np.column_stack([codes, both]), axis=0), np.uint64)


def _hash_texts(texts: Sequence[bytes], key: bytes) -> Hashes:
    secret = hashlib.sha256(b"cellguard cells\n" + key).digest()
    digests = (hashlib.blake2b(text, key=secret, digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), np.uint64).copy()


def store_cell_hashes(folder: Path, hashes: Hashes) -> str:
    """Write the hashes of a release beside the ledger, readable by its owner only; return the file name."""
    place = folder / _FOLDER
    place.mkdir(mode=0o700, exist_ok=True)
    buffer = io.BytesIO()
    np.save(buffer, hashes)
    name = hashlib.sha256(buffer.getvalue()).hexdigest()
    with open_atomically(place / f"{name}.npy", private=True) as stream:
        stream.write(buffer.getvalue())
    return name


def find_earlier(folder: Path, hashes: Hashes, key_name: str) -> list[Earlier]:
    """Return the earlier releases in a folder's ledger that show cells with these hashes, oldest first."""
    return list(_read_earlier_releases(folder, hashes, key_name))


def _read_earlier_releases(folder: Path, hashes: Hashes, key_name: str) -> Iterator[Earlier]:
    for entry in read_entries(folder)[0]:
        if entry.get("what") != "released" or "cells" not in entry:
            continue
        facts = {name: str(entry.get(name, "")) for name in ("release", "when", "public", "content")}
        if entry.get("key") != key_name:
            yield Earlier(**facts, cells=0, problem="recorded with another key: its cells cannot be compared")
            continue
        before = _read_cell_hashes(folder, entry["cells"])
        if before is None:
            yield Earlier(**facts, cells=0, problem="its cells are missing or damaged: they cannot be compared")
            continue
        common = np.intersect1d(hashes[:, 0], before[:, 0])
        same = np.unique(hashes[np.isin(hashes[:, 1], before[:, 1]), 0])
        if len(same) > _SAME_DATA_SHARE * len(common):
            yield Earlier(**facts, cells=int(np.isin(hashes[:, 1], before[:, 1]).sum()))


def _read_cell_hashes(folder: Path, name: Any) -> Hashes | None:
    """Read the hashes of an earlier release; None if the file is not the one recorded."""
    path = folder / _FOLDER / f"{name}.npy"
    if not (isinstance(name, str) and name.isalnum()) or path.is_symlink() or not path.is_file():
        return None
    content = read_bytes(path)
    if hashlib.sha256(content).hexdigest() != name:
        return None
    return np.asarray(np.load(io.BytesIO(content), allow_pickle=False), np.uint64)


def refuse_repetition(earlier: Sequence[Earlier], public: str) -> None:
    """Refuse cells that were published differently before; publishing the same files again reveals nothing new."""
    other = [one for one in earlier if one.public != public]
    if not other:
        return
    more = f", and {len(other) - 3} more" if len(other) > 3 else ""
    raise RepeatedReleaseError(
        f"cells of this table were published before: {'; '.join(map(str, other[:3]))}{more}. Nothing was written: two "
        "releases of one table can be subtracted, and one may print what the other withholds.",
        hint="if the earlier release was never published, or both may be known, say --again, or again = true in the "
        "section [ledger] of the job.",
    )

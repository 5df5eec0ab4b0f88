"""Facts from one pass over a file: its hash, and whether its text is UTF-8."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

__all__ = ["FileFacts", "ReadOnce", "is_utf8", "read_file_facts"]

_CHUNK = 1 << 22


class Stream(Protocol):
    """Any source of bytes."""

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts from one pass over a file."""

    digest: str
    """SHA-256 of its bytes on disk."""
    utf8: bool
    """Whether its text, unpacked if it is packed, is UTF-8; true if it cannot be unpacked: its reader reports that."""


def is_utf8(stream: Stream) -> bool:
    """Return whether the rest of a stream is text in UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while chunk := stream.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


class _Hashing:
    """A stream that hashes the bytes it passes on."""

    def __init__(self, stream: Stream) -> None:
        self._stream, self.hash = stream, hashlib.sha256()

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size)
        self.hash.update(data)
        return data


def read_file_facts(path: Path) -> FileFacts:
    """Read a file once, from its beginning to its end."""
    with path.open("rb") as stream:
        passing = _Hashing(stream)
        packed = path.name.lower().endswith(".gz")
        try:
            utf8 = is_utf8(gzip.GzipFile(fileobj=passing) if packed else passing)  # type: ignore[call-overload]
        except (gzip.BadGzipFile, EOFError, zlib.error):
            utf8 = True
        while passing.read(_CHUNK):
            pass
    return FileFacts(digest=passing.hash.hexdigest(), utf8=utf8)


class ReadOnce:
    """The facts of files; each file is read once, unless it changes."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], FileFacts]] = {}

    def get_facts(self, path: Path) -> FileFacts:
        """Return the facts of a file."""
        stat = path.stat()
        now = stat.st_size, stat.st_mtime_ns
        if path not in self._known or self._known[path][0] != now:
            self._known[path] = now, read_file_facts(path)
        return self._known[path][1]

    def get_encoding(self, paths: list[Path]) -> str:
        """Return the encoding in which all files can be read."""
        return "utf-8" if all(self.get_facts(path).utf8 for path in paths) else "latin-1"

"""Reading with limits, writing at once or not at all."""

from __future__ import annotations

import gzip
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from cellguard.exceptions import FormatError, InputError

__all__ = ["atomic_writer", "in_utf8", "packing_writer", "read_bytes", "write_lines", "write_text"]

MAX_BYTES = 2 << 30
"""No text file of this product is larger than this once unpacked: some thirty million cells."""
_SUSPICIOUS_RATIO = 100
"""DEFLATE packs plain repetition about 1000 : 1, a table of zeros 7 : 1."""


def read_bytes(path: str | Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file, unpacking ``.gz``, with a limit on what it may unpack to."""
    path = Path(path)
    try:
        packed = path.stat().st_size
        if path.is_dir():
            raise InputError(f"{path}: is a folder; a file is needed.")
        if not path.is_file():  # a pipe or a device may never end
            raise InputError(f"{path}: is no ordinary file.", hint="save what it holds to a file first.")
        if path.suffix.lower() != ".gz":
            if packed > max_bytes:
                raise FormatError.at(path, None, f"the file is larger than {max_bytes} bytes.")
            return path.read_bytes()
        limit = min(max_bytes, max(64 << 20, packed * _SUSPICIOUS_RATIO))
        chunks, size = [], 0
        with gzip.open(path, "rb") as stream:
            while chunk := stream.read(1 << 22):
                size += len(chunk)
                if size > limit:
                    raise FormatError.at(
                        path, None, f"unpacks to more than {limit} bytes.", hint="is this really a table?"
                    )
                chunks.append(chunk)
        return b"".join(chunks)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file.", hint="check the name and the folder.") from None
    except PermissionError:
        raise InputError(f"{path}: may not be read by this user.") from None
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise FormatError.at(path, None, "is not a complete gzip file.", hint="was the download cut short?") from None


def in_utf8(raw: bytes) -> bytes:
    """Return a text in UTF-8: what is not is taken for Latin-1."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1").encode()
    return raw


@contextmanager
def atomic_writer(path: str | Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of ``path`` that replaces it on success and vanishes on failure.

    The temporary file is readable by its owner only until it takes its place, and a `private` one stays
    so; a reader sees the old file or the whole new one, whatever happens in between.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"{path.parent}: no such folder.", hint="make the folder first.")
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if not private:
            umask = os.umask(0)
            os.umask(umask)
            Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def packing_writer(path: str | Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open an :func:`atomic_writer` that packs what is written where the name ends in ``.gz``."""
    with atomic_writer(path, private=private) as raw:
        if not str(path).lower().endswith(".gz"):
            yield raw
            return
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:  # no time, no name: the same text gives the same bytes
            yield cast("IO[bytes]", packed)


def write_text(path: str | Path, text: str, *, private: bool = False) -> None:
    """Write a text, atomically."""
    with atomic_writer(path, private=private) as stream:
        stream.write(text.encode())


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Write lines, atomically."""
    with atomic_writer(path) as stream:
        stream.writelines(f"{line}\n".encode() for line in lines)

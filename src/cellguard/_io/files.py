"""Read with limits on size; write atomically."""

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

__all__ = ["decode_to_utf8", "open_atomically", "open_compressed_atomically", "read_bytes", "write_lines", "write_text"]

MAX_BYTES = 2 << 30
"""Largest text file that this product reads, once unpacked: some thirty million cells."""
_SUSPICIOUS_RATIO = 100
"""Largest plausible ratio of unpacked to packed size: DEFLATE packs plain repetition about 1000 : 1, zeros 7 : 1."""


def read_bytes(path: str | Path, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Read a file, unpacking ``.gz``, with a limit on its unpacked size."""
    path = Path(path)
    try:
        packed = path.stat().st_size
        if path.is_dir():
            raise InputError(f"{path}: is a folder; a file is needed.")
        if not path.is_file():  # a pipe or a device may never end
            raise InputError(f"{path}: is not an ordinary file.", hint="save its content to a file first.")
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


def decode_to_utf8(raw: bytes) -> bytes:
    """Return a text in UTF-8: any other encoding is taken for Latin-1."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1").encode()
    return raw


@contextmanager
def open_atomically(path: str | Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a temporary neighbour of ``path`` that replaces it on success and vanishes on failure.

    The temporary file is readable by its owner only until it takes its place, and a `private` one stays
    so; a reader always sees the old file or the whole new one.
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
def open_compressed_atomically(path: str | Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """Open a file as :func:`open_atomically` does, and compress it if the name ends in ``.gz``."""
    with open_atomically(path, private=private) as raw:
        if not str(path).lower().endswith(".gz"):
            yield raw
            return
        with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:  # no time, no name: the same text gives the same bytes
            yield cast("IO[bytes]", packed)


def write_text(path: str | Path, text: str, *, private: bool = False) -> None:
    """Write a text, atomically."""
    with open_atomically(path, private=private) as stream:
        stream.write(text.encode())


def create_private(path: str | Path, text: str) -> None:
    """Write a text to a new file that only its owner may read; leave an existing file unchanged."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)


def write_lines(path: str | Path, lines: Iterable[str], *, private: bool = False) -> None:
    """Write lines, atomically."""
    with open_atomically(path, private=private) as stream:
        stream.writelines(f"{line}\n".encode() for line in lines)

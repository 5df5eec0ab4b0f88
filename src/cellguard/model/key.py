"""The secret key of a randomised release: drawn from the operating system, kept in the office, never a default.

Attackers have read the code. Only the key hides what a release randomises. A key therefore has at least
128 bits, is drawn from the operating system unless an earlier one is given, and is stored only where the
confidential table may be stored. A short number (`seed`) is not a secret: an attacker can try them all.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cellguard._deprecation import OldName
from cellguard._io.files import open_atomically, read_bytes
from cellguard.exceptions import InputError

__all__ = ["MIN_KEY_BYTES", "Key", "KeyGiven", "hash_cell_names"]

MIN_KEY_BYTES = 16
"""Minimum length of a key in bytes: 128 bits."""
MAX_KEY_BYTES = 4096
"""Maximum length of a key file in bytes; a longer file is not a key."""
DRAWN_KEY_BYTES = 32
"""Length of a newly drawn key in bytes."""
_HOW = "make one with: (umask 077; head -c 32 /dev/urandom > FILE); or leave the key out, and one is drawn."


class Key:
    """A secret of at least 128 bits from which every protecting random choice of a release is derived.

    It is never shown: not by `repr`, not in an error, not in a public file.

    >>> key = Key.draw()
    >>> key
    Key(secret)
    >>> Key.draw() == key
    False
    >>> bool(key.make_generator("coins").random() == key.make_generator("coins").random())
    True
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes | bytearray | memoryview):
            raise InputError("key: bytes, a file or a cg.Key is needed.", hint=_HOW)
        _check_secret(bytes(secret), "key")
        self._secret = bytes(secret)

    @classmethod
    def draw(cls) -> Key:
        """Draw a key of 256 bits from the operating system."""
        return cls(secrets.token_bytes(DRAWN_KEY_BYTES))

    @classmethod
    def from_any(cls, given: KeyGiven) -> Key:
        """Return the key from bytes, from a file, or from a key."""
        if isinstance(given, Key):
            return given
        return cls.read(given) if isinstance(given, str | Path) else cls(given)

    @classmethod
    def from_public_number(cls, number: int) -> Key:
        """Return a key that anyone can compute: for repeatable experiments, never for a release."""
        return cls(hashlib.sha256(b"cellguard: not a secret: %d" % number).digest())

    @classmethod
    def read(cls, path: str | Path) -> Key:
        """Read a key from a file that only its owner can read."""
        path = Path(path)
        try:
            content = read_bytes(path, max_bytes=MAX_KEY_BYTES)
            mode = path.stat().st_mode
        except InputError as error:
            raise InputError(f"key {error.message}", hint=error.hint or _HOW) from None
        if os.name == "posix" and mode & 0o077:
            raise InputError(
                f"key {path}: others can read or change this file, so it is not a secret.",
                hint=f"draw a new key; or, if no other user has read this one, run: chmod 600 {path}",
            )
        _check_secret(content, f"key {path}")
        return cls(content)

    def write(self, path: str | Path) -> None:
        """Write the key to a file that only its owner can read."""
        with open_atomically(path, private=True) as stream:
            stream.write(self._secret)

    def to_hex(self) -> str:
        """Return the key as text, for files that only their owner can read; :meth:`from_hex` reads it."""
        return self._secret.hex()

    @classmethod
    def from_hex(cls, text: str) -> Key:
        """Return the key of :meth:`to_hex`."""
        return cls(bytes.fromhex(text))

    def derive(self, purpose: str, size: int = 32) -> bytes:
        """Return bytes for one purpose; they reveal nothing about the bytes of another purpose."""
        master = hashlib.blake2b(self._secret, digest_size=32, person=b"cellguard key").digest()
        return hashlib.blake2b(purpose.encode(), digest_size=size, key=master).digest()

    def make_generator(self, purpose: str) -> np.random.Generator:
        """Return a random generator for one purpose; the same key and purpose give the same numbers."""
        words = np.frombuffer(self.derive(purpose, 32), "<u4").tolist()
        return np.random.Generator(np.random.Philox(np.random.SeedSequence(words, pool_size=8)))

    generator = OldName("make_generator")

    def hash_names(self, names: Iterable[str], purpose: str, *, words: int = 1) -> NDArray[np.uint64]:
        """Return random 64-bit words, one row per name; they depend on the key, the purpose and the name."""
        begun = hashlib.blake2b(key=self.derive(purpose), digest_size=8 * words)
        digests = []
        for name in names:
            one = begun.copy()
            one.update(name.encode())
            digests.append(one.digest())
        return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64).reshape(-1, words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self.derive("hash", 8))

    def __repr__(self) -> str:
        return "Key(secret)"


KeyGiven: TypeAlias = Key | bytes | str | Path
"""Forms in which a caller may give a key: the key, its bytes, or the file that holds it."""


def hash_cell_names(names: Iterable[Sequence[str]]) -> str:
    """Return one word that identifies a table's cells, so that tables with one key get different random numbers."""
    digest = hashlib.blake2b(digest_size=16)
    for name in names:
        digest.update("\x1f".join(name).encode() + b"\x1e")
    return digest.hexdigest()


def _check_secret(content: bytes, what: str) -> None:
    """Refuse a key that is too short, or that was typed by hand: attackers try what people type first."""
    if len(content) < MIN_KEY_BYTES:
        raise InputError(
            f"{what}: too short for a secret; at least {MIN_KEY_BYTES} bytes (128 bits) are needed.", hint=_HOW
        )
    if _estimate_most_bits(content) < 8 * MIN_KEY_BYTES:
        raise InputError(f"{what}: it repeats itself, counts, or is a text too short to hold 128 bits.", hint=_HOW)


def _estimate_most_bits(content: bytes) -> float:
    """Return the most bits that a key can hold by its form: repetition, counting and text hold less than random bytes.

    >>> _estimate_most_bits(bytes(32)), _estimate_most_bits(b"0" * 63 + b"1") < 128
    (0.0, True)
    """
    text = content.strip()
    per_byte = next((bits for allowed, bits in _TEXTS if not set(text) - allowed), 8.0)
    if per_byte < 8.0:
        content = text
    period = next((p for p in range(1, len(content) // 2 + 1) if content[p:] == content[:-p]), len(content))
    steps = {(b - a) % 256 for a, b in pairwise(content)}
    if len(steps) <= MAX_STEPS_OF_COUNTING or len(set(content)) < MIN_DIFFERENT_BYTES:
        return 0.0
    return per_byte * period


MIN_DIFFERENT_BYTES = 8
"""Of 16 random bytes, fewer than 8 differ once in a hundred million keys; of 32 random hex digits, once in 30,000."""
MAX_STEPS_OF_COUNTING = 2
"""Differences between neighbours in a sequence that counts, with its turn."""
_TEXTS = (
    (frozenset(b"0123456789"), 3.3219),
    (frozenset(b"0123456789abcdefABCDEF"), 4.0),
    (frozenset(range(32, 127)) | frozenset(b"\t\r\n"), 6.0),
)
"""What a key in text can hold at most, in bits per character: decimal digits, hexadecimal digits, base64 and words."""

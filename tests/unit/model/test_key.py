"""Keys: drawn, read, written, never shown."""

import hashlib
import os
import pickle
import stat

import numpy as np
import pytest

import cellguard as cg
from cellguard import Key

BYTES = hashlib.sha256(b"a key for tests").digest()


def test_two_keys_that_are_drawn_differ():
    drawn = {Key.draw() for _ in range(20)}
    assert len(drawn) == 20


def test_a_key_is_never_shown():
    key = Key(BYTES)
    for text in (repr(key), str(key), f"{key}", repr({"key": key})):
        assert BYTES.hex() not in text
        assert repr(BYTES) not in text
        assert "secret" in text


def test_a_key_file_gives_the_key_back_and_only_its_owner_reads_it(tmp_path):
    key, path = Key.draw(), tmp_path / "key"
    key.write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Key.read(path) == key
    assert Key.from_any(path) == Key.from_any(str(path)) == Key.from_any(key) == key
    assert Key.from_any(path.read_bytes()) == key


def test_purposes_have_their_own_numbers():
    key = Key(BYTES)
    assert key.make_generator("a").random(4).tolist() == key.make_generator("a").random(4).tolist()
    assert key.make_generator("a").random(4).tolist() != key.make_generator("b").random(4).tolist()
    assert key.make_generator("a").random(4).tolist() != Key(BYTES[::-1]).make_generator("a").random(4).tolist()
    names = [f"cell {i}" for i in range(1000)]
    one, other = key.hash_names(names, "a"), key.hash_names(names, "b")
    assert one.shape == (1000, 1)
    assert len(np.unique(np.concatenate([one, other]))) == 2000
    assert key.hash_names([], "a", words=2).shape == (0, 2)


def test_every_byte_of_a_key_counts():
    changed = [BYTES[:i] + bytes([BYTES[i] ^ 1]) + BYTES[i + 1 :] for i in range(len(BYTES))]
    assert len({Key(b).make_generator("a").random() for b in [BYTES, *changed]}) == 33
    assert Key(BYTES + b"\0") != Key(BYTES)
    assert Key(BYTES + b"\0").make_generator("a").random() != Key(BYTES).make_generator("a").random()


TYPED = [
    bytes(32), b"\x07" * 32, b"0" * 63 + b"1", b"00000001" * 4, bytes(range(32)), b"password12345678", b"31415926535897932384",
    b"0123456789abcdef" * 1 + b"\n", b"\x8f\x11\xd2\x4e\x95\x3c\xa7\x60" * 4,
]  # fmt: skip


@pytest.mark.parametrize("given", TYPED)
def test_a_key_that_somebody_typed_is_refused(given, tmp_path):
    """Attackers try zeros, numbers and words first: a file of 32 equal bytes is no secret of 256 bits."""
    with pytest.raises(cg.InputError, match="repeats itself, counts, or is a text") as caught:
        Key(given)
    assert "/dev/urandom" in str(caught.value)
    path = tmp_path / "key"
    path.write_bytes(given)
    path.chmod(0o600)
    with pytest.raises(cg.InputError, match="repeats itself, counts"):
        Key.read(path)
    for _ in range(200):  # what the operating system draws is accepted, as bytes and as text
        Key(os.urandom(16))
        Key(os.urandom(16).hex().encode() + b"\n")


@pytest.mark.parametrize("given", [b"", b"short", bytes(15)])
def test_a_short_key_is_refused(given, tmp_path):
    with pytest.raises(cg.InputError, match="too short"):
        Key(given)
    path = tmp_path / "key"
    path.write_bytes(given)
    path.chmod(0o600)
    with pytest.raises(cg.InputError, match="too short"):
        Key.read(path)


@pytest.mark.parametrize("given", [1, 2**200, 1.5])
def test_a_number_is_no_key(given):
    with pytest.raises(cg.InputError, match="bytes, a file or a"):
        Key.from_any(given)


def test_a_missing_key_file_is_refused(tmp_path):
    with pytest.raises(cg.InputError, match="no such file"):
        Key.read(tmp_path / "none")
    with pytest.raises(cg.InputError, match="is a folder"):
        Key.read(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o660])
def test_a_key_file_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "key"
    path.write_bytes(BYTES)
    path.chmod(mode)
    with pytest.raises(cg.InputError, match="others can read or change") as error:
        Key.read(path)
    assert BYTES.hex() not in str(error.value)
    path.chmod(0o600)
    assert Key.read(path) == Key(BYTES)


def test_a_huge_file_is_no_key(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(bytes(1 << 20))
    path.chmod(0o600)
    with pytest.raises(cg.InputError, match="larger than"):
        Key.read(path)


def test_a_key_survives_the_way_to_another_process():
    key = Key.draw()
    assert pickle.loads(pickle.dumps(key)) == key


def test_a_key_of_a_public_number_is_the_same_everywhere():
    assert Key.from_public_number(1) == Key.from_public_number(1) != Key.from_public_number(2)
    assert Key.from_public_number(1).derive("x", 4).hex() == Key.from_public_number(1).derive("x", 4).hex()

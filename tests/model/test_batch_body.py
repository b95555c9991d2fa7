"""Batch bodies: times and values in a single byte string."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model import batch_body


@given(
    t=st.lists(st.integers(0, 2**52), max_size=20),
    columns=st.integers(0, 5),
    seed=st.integers(0, 2**32),
    packing=st.sampled_from([batch_body.NONE, batch_body.ZSTD, batch_body.ZLIB]),
)
def test_unpacking_returns_the_packed_bits(t: list[int], columns: int, seed: int, packing: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2**64, (len(t), columns), np.uint64)
    packed = batch_body.pack(np.array(t, np.int64), bits.view(np.float64), packing)
    times, values = batch_body.unpack(packed, columns)
    assert batch_body.rows(packed) == len(t)
    assert times.tolist() == t
    assert np.ascontiguousarray(values).view(np.uint64).tolist() == bits.tolist()


def test_a_sender_needs_only_the_standard_library() -> None:
    raw = struct.pack("<2q", 1000, 2000) + struct.pack("<2d", 0.5, 1.5) + struct.pack("<2d", 7.0, 8.0)
    packed = struct.pack("<BI", 2, 2) + zlib.compress(raw)
    times, values = batch_body.unpack(packed, columns=2)
    assert times.tolist() == [1000, 2000]
    assert values.tolist() == [[0.5, 7.0], [1.5, 8.0]]


ONE = batch_body.pack(np.array([1]), np.array([[0.5]]))


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (b"", "at least 5 bytes"),
        (ONE[:-3], "zstd|src|size|decompress"),
        (ONE[:5] + b"garbage", "zstd|frame"),
        (struct.pack("<BI", 0, 1) + bytes(15), "expected 16 bytes .*, got 15"),
        (struct.pack("<BI", 2, 1) + zlib.compress(bytes(17)), "expected 16 bytes"),
        (struct.pack("<BI", 2, 1) + zlib.compress(bytes(16))[:-1], "expected 16 bytes"),
        (struct.pack("<BI", 2, 1) + b"garbage", "header|data"),
        (struct.pack("<BI", 9, 1) + bytes(16), "unknown packing 9"),
        (struct.pack("<BI", 1, 2) + ONE[5:], "expected a zstd frame of 32 bytes, got 16"),
    ],
)
def test_an_invalid_body_is_rejected(packed: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        batch_body.unpack(packed, columns=1)


def test_no_more_is_unpacked_than_a_body_declares() -> None:
    """A small body that declares one row and unpacks to 64 MB."""
    bomb = zlib.compressobj()
    packed = (
        struct.pack("<BI", 2, 1) + b"".join(bomb.compress(bytes(1 << 20)) for _ in range(64)) + bomb.flush()
    )
    with pytest.raises(ValueError, match="16 bytes"):
        batch_body.unpack(packed, columns=1)


@given(st.binary(max_size=60), st.integers(0, 3))
def test_any_bytes_are_rejected_or_have_their_declared_size(packed: bytes, columns: int) -> None:
    try:
        times, values = batch_body.unpack(packed, columns)
    except ValueError:
        return
    assert values.shape == (len(times), columns)

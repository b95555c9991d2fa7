"""Chunks: values are restored bit for bit, and damage is detected."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from runvitals.store.samples import codec

FLOATS = st.one_of(
    st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0]),
    st.floats(),
    st.decimals(-1000, 1000, places=2).map(float),
    st.integers(-100, 100).map(float),
)
LEVELS = st.sampled_from([codec.SEAL_LEVEL, codec.COMPACT_LEVEL])


def bits(values: NDArray[Any]) -> list[int]:
    integers: list[int] = np.ascontiguousarray(values).view(np.uint64).tolist()
    return integers


@given(st.lists(FLOATS, max_size=50), LEVELS)
@example([], codec.SEAL_LEVEL)
@example([-0.0] * 30, codec.SEAL_LEVEL)
@example([1.25, -0.0, 1.5], codec.SEAL_LEVEL)
def test_values_are_restored_bit_for_bit(values: list[float], level: int) -> None:
    written = np.array(values, np.float64)
    chunk = codec.encode(written, level)
    assert bits(codec.decode(chunk, np.float64, len(values))) == bits(written)


@given(st.lists(FLOATS, max_size=50))
def test_values_are_restored_bit_for_bit_without_pcodec(values: list[float]) -> None:
    written = np.array(values, np.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "standalone", None)
        chunk = codec.encode(written)
        assert chunk[0] in (codec.DECIMAL, codec.ZSTD)
        assert bits(codec.decode(chunk, np.float64, len(values))) == bits(written)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30), st.booleans())
def test_times_are_restored(times: list[int], with_pcodec: bool) -> None:
    written = np.array(times, np.int64)
    with pytest.MonkeyPatch.context() as patch:
        if not with_pcodec:
            patch.setattr(codec, "standalone", None)
        chunk = codec.encode(written)
    assert codec.decode(chunk, np.int64, len(times)).tolist() == times


@pytest.mark.parametrize(
    ("values", "used"),
    [
        (np.arange(100.0), codec.PCODEC),
        (np.round(np.arange(100.0) / 7, 2), codec.PCODEC),
    ],
)
def test_pcodec_is_used_if_it_is_installed(values: NDArray[np.float64], used: int) -> None:
    assert codec.encode(values)[0] == used


@pytest.mark.parametrize(
    ("values", "used"),
    [
        (np.arange(100.0), codec.DECIMAL),
        (np.round(np.sin(np.arange(300.0)) * 50, 2), codec.DECIMAL),
        (np.array([12345678.0, 3.0]), codec.DECIMAL),
        (np.sin(np.arange(100.0)), codec.ZSTD),
        (np.array([1.0, np.nan]), codec.ZSTD),
        (np.array([1e300, 1.0]), codec.ZSTD),
        (np.array([], np.float64), codec.ZSTD),
    ],
)
def test_codecs_used_without_pcodec(
    values: NDArray[np.float64], used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "standalone", None)
    chunk = codec.encode(values)
    assert chunk[0] == used
    if used == codec.DECIMAL:
        assert len(chunk) < 32 + len(values) * 4


def test_a_codec_that_does_not_restore_the_values_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        simple_compress = staticmethod(lambda values, config: b"")
        simple_decompress = staticmethod(lambda packed: np.zeros(3))

    monkeypatch.setattr(codec, "standalone", Wrong)
    chunk = codec.encode(np.array([1.0, 2.0, 3.0]))
    assert chunk[0] == codec.DECIMAL


@given(st.integers(0, 200), st.integers(1, 255))
def test_damage_is_detected(position: int, flip: int) -> None:
    chunk = bytearray(codec.encode(np.arange(400.0) ** 1.5))
    chunk[position % len(chunk)] ^= flip
    with pytest.raises(codec.CorruptData):
        codec.decode(bytes(chunk), np.float64, 400)


@pytest.mark.parametrize("chunk", [b"", b"\x01\x00\x00", b"\x09\x00\x00\x00\x00"])
def test_invalid_chunks(chunk: bytes) -> None:
    with pytest.raises(codec.CorruptData):
        codec.decode(chunk, np.float64, 1)


def test_a_chunk_of_another_length_or_type_is_rejected() -> None:
    chunk = codec.encode(np.arange(10.0))
    with pytest.raises(codec.CorruptData, match="expected 11 values of float64, got 10"):
        codec.decode(chunk, np.float64, 11)
    with pytest.raises(codec.CorruptData, match="expected 10 values of int64"):
        codec.decode(chunk, np.int64, 10)


def test_a_chunk_of_pcodec_without_pcodec(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = codec.encode(np.arange(10.0))
    monkeypatch.setattr(codec, "standalone", None)
    with pytest.raises(codec.CorruptData, match="pip install pcodec"):
        codec.decode(chunk, np.float64, 10)


def test_a_counter_that_rarely_changes_is_compressed_well() -> None:
    steps = np.where(np.arange(2000) % 40 == 0, 1 + np.arange(2000) * 7919 % 5000, 0)
    total = np.cumsum(steps) / 2048 + 4856.5
    for level in (codec.SEAL_LEVEL, codec.COMPACT_LEVEL):
        assert len(codec.encode(total, level)) < 0.2 * len(total)


def test_ratios_of_small_integers_are_compacted_with_a_dictionary() -> None:
    chance = np.random.default_rng(1)
    whole = chance.integers(18, 22, 4000)
    share = 100 * (chance.integers(0, 6, 4000) % whole) / whole
    sealed, compacted = codec.encode(share), codec.encode(share, codec.COMPACT_LEVEL)
    assert len(compacted) < 0.7 * len(sealed)
    assert bits(codec.decode(compacted, np.float64, len(share))) == bits(share)

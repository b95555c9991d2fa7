"""Samples: every float64 survives bit by bit; sets of keys become a bounded number of schemas."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.base.json_codec import loads
from runvitals.journal.samples import MAX_EXACT_SCHEMAS, Packer, split, unpack_row

_any_float = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
_rows = st.dictionaries(st.text(), _any_float, max_size=60)


def bits(values: Iterable[float]) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


class Receiver:
    """Packs values and decodes them again as a reader does."""

    def __init__(self) -> None:
        self.packer = Packer()
        self.schemas: dict[int, list[str]] = {}
        self.declared = 0

    def round_trip(self, time_ms: int, values: dict[str, float]) -> tuple[int, dict[str, float]]:
        schema, payload = self.packer.pack(time_ms, values)
        if schema is not None:
            declared = loads(schema)
            self.schemas[declared["id"]] = declared["keys"]
            self.declared += 1
        back_ms, read, packed = split(payload, self.schemas)
        return back_ms, dict(zip(read, unpack_row(packed), strict=True))


@given(st.integers(-(2**63), 2**63 - 1), _rows)
def test_any_values_survive_bit_by_bit(time_ms: int, values: dict[str, float]) -> None:
    back_time, back = Receiver().round_trip(time_ms, values)
    assert back_time == time_ms
    assert list(back) == list(values)
    assert bits(back.values()) == bits(values.values())


def test_special_values_survive_bit_by_bit() -> None:
    for pattern in (
        "0000000000000080",  # -0.0
        "0100000000000000",  # the smallest subnormal
        "000000000000f07f",  # the infinities
        "000000000000f0ff",
        "010000000000f87f",  # a NaN with a payload
        "efbeaddedec0f4ff",  # a signalling NaN
        "ffffffffffffef7f",  # the largest
    ):
        [value] = struct.unpack("<d", bytes.fromhex(pattern))
        _, back = Receiver().round_trip(0, {"x": value})
        assert bits(back.values()) == [bytes.fromhex(pattern)]


def test_the_same_keys_are_declared_once() -> None:
    receiver = Receiver()
    for i in range(100):
        receiver.round_trip(i, {"cpu": 1.0, "memory_percent": 2.0})
    assert receiver.declared == 1


def test_a_key_that_was_not_read_is_absent_not_zero() -> None:
    receiver = Receiver()
    receiver.round_trip(0, {"cpu": 1.0, "gpu.0.temp": 50.0})
    assert receiver.round_trip(1, {"cpu": 1.0}) == (1, {"cpu": 1.0})


def test_flapping_keys_share_one_wide_schema_with_gaps() -> None:
    receiver = Receiver()
    for i in range(10 * MAX_EXACT_SCHEMAS):
        present = {f"gpu.{k}.temp": float(i) for k in range(10) if i >> k & 1}
        _, back = receiver.round_trip(i, present)
        assert {key: value for key, value in back.items() if not math.isnan(value)} == present
    assert receiver.declared <= MAX_EXACT_SCHEMAS + 10 + 10
    assert len(receiver.packer.declared) <= MAX_EXACT_SCHEMAS + 1 + 10  # single keys have their own


def test_single_values_are_not_stored_in_the_wide_schema() -> None:
    receiver = Receiver()
    for i in range(2000):
        assert receiver.round_trip(i, {f"key.{i}": float(i)}) == (i, {f"key.{i}": float(i)})
    schema, payload = receiver.packer.pack(2000, {"key.1999": 7.0})
    assert (schema, len(payload)) == (None, 24)


def test_a_sample_that_does_not_match_its_schema() -> None:
    _, payload = Packer().pack(0, {"cpu": 1.0})
    with pytest.raises(ValueError, match="schema 0, which was not declared"):
        split(payload, {})
    with pytest.raises(ValueError, match="24 bytes does not match schema 0 with 2 keys"):
        split(payload, {0: ["cpu", "memory_percent"]})
    with pytest.raises(ValueError, match="sample of 15 bytes; expected at least 16"):
        split(payload[:15], {0: ["cpu"]})

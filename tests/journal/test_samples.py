"""Samples: any float64 comes back bit by bit; sets of keys become schemas, and not ever more of them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.journal.json_codec import loads
from runvitals.journal.samples import MAX_EXACT_SCHEMAS, Packer, split, unpack_row

_any_float = st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0])
_rows = st.dictionaries(st.text(), _any_float, max_size=60)


def bits(values: Iterable[float]) -> list[bytes]:
    return [struct.pack("<d", value) for value in values]


class Receiver:
    """What a reader makes of a packer's payloads."""

    def __init__(self) -> None:
        self.packer = Packer()
        self.schemas: dict[int, list[str]] = {}
        self.declared = 0

    def through(self, time_ms: int, values: dict[str, float]) -> tuple[int, dict[str, float]]:
        schema, payload = self.packer.pack(time_ms, values)
        if schema is not None:
            declared = loads(schema)
            self.schemas[declared["id"]] = declared["keys"]
            self.declared += 1
        back_ms, read, packed = split(payload, self.schemas)
        return back_ms, dict(zip(read, unpack_row(packed), strict=True))


@given(st.integers(-(2**63), 2**63 - 1), _rows)
def test_any_values_come_back_bit_by_bit(time_ms: int, values: dict[str, float]) -> None:
    back_time, back = Receiver().through(time_ms, values)
    assert back_time == time_ms
    assert list(back) == list(values)
    assert bits(back.values()) == bits(values.values())


def test_the_odd_ones_come_back_bit_by_bit() -> None:
    for pattern in (
        "0000000000000080",  # -0.0
        "0100000000000000",  # the smallest subnormal
        "000000000000f07f",  # the infinities
        "000000000000f0ff",
        "010000000000f87f",  # a NaN with a payload
        "efbeaddedec0f4ff",  # a signalling one
        "ffffffffffffef7f",  # the largest
    ):
        [value] = struct.unpack("<d", bytes.fromhex(pattern))
        _, back = Receiver().through(0, {"x": value})
        assert bits(back.values()) == [bytes.fromhex(pattern)]


def test_the_same_keys_are_declared_once() -> None:
    receiver = Receiver()
    for i in range(100):
        receiver.through(i, {"cpu": 1.0, "memory_percent": 2.0})
    assert receiver.declared == 1


def test_a_key_that_was_not_read_is_absent_not_zero() -> None:
    receiver = Receiver()
    receiver.through(0, {"cpu": 1.0, "gpu.0.temp": 50.0})
    assert receiver.through(1, {"cpu": 1.0}) == (1, {"cpu": 1.0})


def test_flapping_keys_end_in_one_wide_schema_with_gaps() -> None:
    receiver = Receiver()
    for i in range(10 * MAX_EXACT_SCHEMAS):
        present = {f"gpu.{k}.temp": float(i) for k in range(10) if i >> k & 1}
        _, back = receiver.through(i, present)
        assert {key: value for key, value in back.items() if not math.isnan(value)} == present
    assert receiver.declared <= MAX_EXACT_SCHEMAS + 10 + 10
    assert len(receiver.packer.declared) <= MAX_EXACT_SCHEMAS + 1 + 10  # single keys have their own


def test_readings_that_come_one_by_one_cost_what_they_are() -> None:
    receiver = Receiver()
    for i in range(2000):
        assert receiver.through(i, {f"key.{i}": float(i)}) == (i, {f"key.{i}": float(i)})
    schema, payload = receiver.packer.pack(2000, {"key.1999": 7.0})
    assert (schema, len(payload)) == (None, 24)


def test_a_sample_that_does_not_fit_says_what_is_wrong() -> None:
    _, payload = Packer().pack(0, {"cpu": 1.0})
    with pytest.raises(ValueError, match="schema 0, which was not declared"):
        split(payload, {})
    with pytest.raises(ValueError, match="24 bytes does not fit schema 0 with 2 keys"):
        split(payload, {0: ["cpu", "memory_percent"]})
    with pytest.raises(ValueError, match="at least 16 bytes; this one has 15"):
        split(payload[:15], {0: ["cpu"]})

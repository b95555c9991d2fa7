"""Protocol buffers, compared with Google's package."""

from __future__ import annotations

import math

import pytest
from google.protobuf import descriptor_pb2, struct_pb2, wrappers_pb2
from hypothesis import given
from hypothesis import strategies as st

from runvitals.base.protobuf import (
    Malformed,
    double,
    fields,
    fixed64,
    read_double,
    read_doubles,
    read_varints,
    single,
    text,
    to_signed,
    uint,
    unzigzag,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(INT64)
def test_integers(value: int) -> None:
    assert wrappers_pb2.Int64Value.FromString(uint(1, value)).value == value
    [(number, _, read)] = fields(wrappers_pb2.Int64Value(value=value).SerializeToString() or uint(1, 0))
    assert (number, to_signed(int(read))) == (1, value)


@given(st.floats(allow_nan=False))
def test_floats(value: float) -> None:
    assert wrappers_pb2.DoubleValue.FromString(double(1, value)).value == value
    assert [read_double(bytes(read)) for _, _, read in fields(double(1, value))] == [value]
    kept = wrappers_pb2.FloatValue.FromString(single(1, value)).value
    assert kept == wrappers_pb2.FloatValue(value=value).value


def test_nonfinite_floats() -> None:
    assert math.isnan(wrappers_pb2.FloatValue.FromString(single(1, math.nan)).value)


@given(st.text(), st.binary(max_size=300))
def test_strings_and_messages(words: str, data: bytes) -> None:
    try:
        words.encode()
    except UnicodeEncodeError:
        words = "?"
    message = text(3, text(1, words))
    assert struct_pb2.Value.FromString(text(3, words)).string_value == words
    [(_, _, inner)] = fields(message)
    assert isinstance(inner, bytes)
    assert list(fields(inner)) == [(1, 2, words.encode())]
    assert list(fields(text(7, data) + fixed64(9, 5))) == [(7, 2, data), (9, 1, bytes([5, *bytes(7)]))]


def test_lone_surrogates() -> None:
    assert struct_pb2.Value.FromString(text(3, "a\ud800b")).string_value == "a?b"


def test_message_of_google_protobuf() -> None:
    message = descriptor_pb2.FieldDescriptorProto(name="loss", number=7, label="LABEL_OPTIONAL")
    decoded = fields(message.SerializeToString())
    assert {number: value for number, _, value in decoded} == {1: b"loss", 3: 7, 4: 1}


@pytest.mark.parametrize(
    "data",
    [b"\x0a\x05ab", b"\x08", b"\x08" + b"\xff" * 11, b"\x0b", b"\x00\x01", b"\x09\x01\x02", b"\x0d\x01"],
)
def test_malformed_messages_are_rejected(data: bytes) -> None:
    with pytest.raises(Malformed, match="byte"):
        list(fields(data))


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_only_malformed(data: bytes) -> None:
    try:
        decoded = list(fields(data))
    except Malformed:
        return
    assert sum(len(value) for _, _, value in decoded if isinstance(value, bytes)) <= len(data)


@pytest.mark.parametrize(
    ("coded", "value"), [(0, 0), (1, -1), (2, 1), (0xFFFFFFFE, 0x7FFFFFFF), (0xFFFFFFFF, -0x80000000)]
)
def test_zigzag(coded: int, value: int) -> None:
    assert unzigzag(coded) == value


def test_packed_lists() -> None:
    assert read_varints(b"\x01\x96\x01" + b"\xff" * 9 + b"\x01") == [1, 150, -1]
    assert read_doubles(double(1, 0.5)[1:] + double(1, -2.0)[1:]) == [0.5, -2.0]
    with pytest.raises(Malformed, match="9 bytes of doubles"):
        read_doubles(bytes(9))
    with pytest.raises(Malformed, match="byte 1"):
        read_varints(b"\x01\x96")

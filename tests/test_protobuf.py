"""Protocol buffers, against Google's own package."""

from __future__ import annotations

import math

import pytest
from google.protobuf import descriptor_pb2, struct_pb2, wrappers_pb2
from hypothesis import given
from hypothesis import strategies as st

from runvitals.protobuf import (
    Malformed,
    as_double,
    double,
    fields,
    fixed64,
    signed,
    single,
    sint,
    text,
    uint,
    unzigzag,
)

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)


@given(INT64)
def test_whole_numbers(value: int) -> None:
    assert wrappers_pb2.Int64Value.FromString(uint(1, value)).value == value
    [(number, read)] = fields(wrappers_pb2.Int64Value(value=value).SerializeToString() or uint(1, 0))
    assert (number, signed(int(read))) == (1, value)
    [(_, read)] = fields(sint(1, value))
    assert unzigzag(int(read)) == value


@given(st.floats(allow_nan=False))
def test_numbers(value: float) -> None:
    assert wrappers_pb2.DoubleValue.FromString(double(1, value)).value == value
    assert [as_double(int(read)) for _, read in fields(double(1, value))] == [value]
    kept = wrappers_pb2.FloatValue.FromString(single(1, value)).value
    assert kept == wrappers_pb2.FloatValue(value=value).value


def test_what_is_no_number_stays_none() -> None:
    assert math.isnan(wrappers_pb2.FloatValue.FromString(single(1, math.nan)).value)


@given(st.text(), st.binary(max_size=300))
def test_texts_and_messages(words: str, data: bytes) -> None:
    try:
        words.encode()
    except UnicodeEncodeError:
        words = "?"
    message = text(3, text(1, words))
    assert struct_pb2.Value.FromString(text(3, words)).string_value == words
    [(_, inner)] = fields(message)
    assert isinstance(inner, bytes)
    assert list(fields(inner)) == [(1, words.encode())]
    assert list(fields(text(7, data) + fixed64(9, 5))) == [(7, data), (9, 5)]


def test_lone_surrogates_do_no_harm() -> None:
    assert struct_pb2.Value.FromString(text(3, "a\ud800b")).string_value == "a?b"


def test_a_real_message_is_read_whole() -> None:
    message = descriptor_pb2.FieldDescriptorProto(name="loss", number=7, label="LABEL_OPTIONAL")
    assert dict(fields(message.SerializeToString())) == {1: b"loss", 3: 7, 4: 1}


@pytest.mark.parametrize(
    "data",
    [b"\x0a\x05ab", b"\x08", b"\x08" + b"\xff" * 11, b"\x0b", b"\x00\x01", b"\x09\x01\x02", b"\x0d\x01"],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed, match="byte"):
        list(fields(data))


@given(st.binary(max_size=60))
def test_no_bytes_break_it(data: bytes) -> None:
    try:
        found = list(fields(data))
    except Malformed:
        return
    assert sum(len(value) for _, value in found if isinstance(value, bytes)) <= len(data)

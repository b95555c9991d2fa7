"""Packed headers: the examples of RFC 7541, and whatever else may come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.collectors.tpu import hpack
from runvitals.collectors.tpu.hpack import HpackDecoder, HpackError

# RFC 7541, appendices C.4 and C.6.3: on one connection each, with packed texts.
REQUESTS = (
    (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")],
    ),
    (
        "828684be5886a8eb10649cbf",
        [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
            ("cache-control", "no-cache"),
        ],
    ),
    (
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        [
            (":method", "GET"),
            (":scheme", "https"),
            (":path", "/index.html"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
        ],
    ),
)


def test_the_rfcs_examples() -> None:
    decoder = HpackDecoder()
    for block, headers in REQUESTS:
        assert decoder.decode(bytes.fromhex(block)) == headers


def test_what_we_write_is_read_again() -> None:
    headers = [(":method", "POST"), ("te", "trailers"), ("x" * 300, "y" * 20_000), ("empty", "")]
    assert HpackDecoder().decode(hpack.encode(headers)) == headers


def test_entries_leave_a_table_that_is_full() -> None:
    decoder = HpackDecoder()
    for value in ("a" * 3000, "b" * 3000):
        text = bytes((0x7F,)) + (3000 - 127).to_bytes(2, "little")
        text = b"\x7f" + bytes(((3000 - 127) & 127 | 128, (3000 - 127) >> 7))
        decoder.decode(b"\x40\x01k" + text + value.encode())
    assert decoder.decode(b"\xbe") == [("k", "b" * 3000)]
    with pytest.raises(HpackError, match="entry 63 of a table of 62"):
        decoder.decode(b"\xbf")


def test_a_table_that_shrinks_forgets() -> None:
    decoder = HpackDecoder()
    decoder.decode(b"\x40\x01k\x01v")
    assert decoder.decode(b"\x20") == []
    with pytest.raises(HpackError, match="entry 62"):
        decoder.decode(b"\xbe")


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("80", "entry 0"),
        ("ff8080808010", "too long"),
        ("ff80", "breaks off"),
        ("0003ab", "breaks off"),
        ("00", "breaks off"),
        ("3fe21f", "a table of 4097 bytes"),
        ("000184ffffffff", "breaks off"),
        ("00016b84ffffffff", "ended within itself|code that is none"),
        ("00016b82ffff", "within a code"),
    ],
)
def test_blocks_that_are_none(block: str, words: str) -> None:
    with pytest.raises(HpackError, match=words):
        HpackDecoder().decode(bytes.fromhex(block))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_block_or_refused(block: bytes) -> None:
    try:
        headers = HpackDecoder().decode(block)
    except HpackError:
        return
    assert all(isinstance(name, str) and isinstance(value, str) for name, value in headers)


@given(st.lists(st.tuples(st.text("abc-:", max_size=200), st.text("xyz 019", max_size=200)), max_size=5))
def test_any_headers_are_written_and_read(headers: list[tuple[str, str]]) -> None:
    assert HpackDecoder().decode(hpack.encode(headers)) == headers

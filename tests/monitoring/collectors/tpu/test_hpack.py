"""HTTP/2 header compression: the examples of RFC 7541, and invalid input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.monitoring.collectors.tpu import hpack
from runvitals.monitoring.collectors.tpu.hpack import HpackDecoder, HpackError

# RFC 7541, appendices C.4 and C.6.3: on one connection each, with Huffman codes.
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


def test_examples_of_the_rfc() -> None:
    decoder = HpackDecoder()
    for block, headers in REQUESTS:
        assert decoder.decode(bytes.fromhex(block)) == headers


def test_encoded_headers_are_decoded() -> None:
    headers = [(":method", "POST"), ("te", "trailers"), ("x" * 300, "y" * 20_000), ("empty", "")]
    assert HpackDecoder().decode(hpack.encode(headers)) == headers


def test_entries_are_evicted_from_a_full_table() -> None:
    decoder = HpackDecoder()
    for value in ("a" * 3000, "b" * 3000):
        text = bytes((0x7F,)) + (3000 - 127).to_bytes(2, "little")
        text = b"\x7f" + bytes(((3000 - 127) & 127 | 128, (3000 - 127) >> 7))
        decoder.decode(b"\x40\x01k" + text + value.encode())
    assert decoder.decode(b"\xbe") == [("k", "b" * 3000)]
    with pytest.raises(HpackError, match="invalid index 63 in a table of 62 entries"):
        decoder.decode(b"\xbf")


def test_entries_are_evicted_when_the_table_shrinks() -> None:
    decoder = HpackDecoder()
    decoder.decode(b"\x40\x01k\x01v")
    assert decoder.decode(b"\x20") == []
    with pytest.raises(HpackError, match="invalid index 62"):
        decoder.decode(b"\xbe")


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("80", "invalid index 0"),
        ("ff8080808010", "too long"),
        ("ff80", "incomplete"),
        ("0003ab", "incomplete"),
        ("00", "incomplete"),
        ("3fe21f", "table size 4097"),
        ("000184ffffffff", "incomplete"),
        ("00016b84ffffffff", "end-of-string code|invalid Huffman code"),
        ("00016b82ffff", "within a Huffman code"),
    ],
)
def test_invalid_blocks(block: str, words: str) -> None:
    with pytest.raises(HpackError, match=words):
        HpackDecoder().decode(bytes.fromhex(block))


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_rejected(block: bytes) -> None:
    try:
        headers = HpackDecoder().decode(block)
    except HpackError:
        return
    assert all(isinstance(name, str) and isinstance(value, str) for name, value in headers)


@given(st.lists(st.tuples(st.text("abc-:", max_size=200), st.text("xyz 019", max_size=200)), max_size=5))
def test_any_headers_are_encoded_and_decoded(headers: list[tuple[str, str]]) -> None:
    assert HpackDecoder().decode(hpack.encode(headers)) == headers

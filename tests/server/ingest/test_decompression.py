"""Content encodings: complete bodies only, within the size limit, and large ones are decoded in a thread."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard

from runvitals.model import batch_body
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.ingest.decompression import decompress
from tests.server.ingest.server import NOW, Server

MAX_BYTES = 10_000


def unsized(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(data)


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", bare),
    ("zstd", zstandard.compress),
    ("zstd", unsized),
]
every_packer = pytest.mark.parametrize(
    ("encoding", "pack"), PACKERS, ids=["gzip", "zlib", "bare", "zstd", "unsized zstd"]
)


def rejection_status(body: bytes, encoding: str) -> int:
    with pytest.raises(HttpRejection) as caught:
        decompress(body, encoding, MAX_BYTES)
    return caught.value.status


@every_packer
@pytest.mark.parametrize("size", [0, 1, MAX_BYTES])
def test_decompression_restores_the_body(encoding: str, pack: Callable[[bytes], bytes], size: int) -> None:
    assert decompress(pack(b"x" * size), encoding, MAX_BYTES) == b"x" * size


@every_packer
def test_too_large_bodies_are_rejected(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    assert rejection_status(pack(b"x" * (MAX_BYTES + 1)), encoding) == 413
    assert rejection_status(pack(b"x" * (64 << 20)), encoding) == 413


@every_packer
def test_trailing_bytes_are_rejected(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    assert rejection_status(pack(b"first") + b"rubbish", encoding) == 400
    assert rejection_status(pack(b"first") + b"\0", encoding) == 400
    if encoding != "gzip":
        assert rejection_status(pack(b"first") + pack(b"second"), encoding) == 400


@every_packer
def test_truncated_bodies_are_rejected(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(bytes(range(256)) * 10)
    for end in range(len(packed)):
        assert rejection_status(packed[:end], encoding) == 400


def test_gzip_members_are_concatenated() -> None:
    assert (
        decompress(gzip.compress(b"first ") + gzip.compress(b"second"), "gzip", MAX_BYTES) == b"first second"
    )
    half = gzip.compress(b"x" * (MAX_BYTES // 2))
    assert len(decompress(half + half, "gzip", MAX_BYTES)) == MAX_BYTES
    assert rejection_status(half + half + half, "gzip") == 413
    assert rejection_status(half + half[:-1], "gzip") == 400
    assert rejection_status(gzip.compress(b"") * 50_000, "gzip") == 400


@pytest.fixture
def server(tmp_path: Any) -> Iterator[Server]:
    server = Server(str(tmp_path), Limits())
    yield server
    server.close()


def envelope(run: str) -> dict[str, Any]:
    return {"run": run, "writer": "w", "seq": 1, "keys": ["cpu"], "t": [NOW], "v": [[1.5]]}


def test_a_body_of_two_gzip_members_is_ingested(server: Server) -> None:
    text = json.dumps([envelope("a"), envelope("b")]).encode()
    body = gzip.compress(text[:40]) + gzip.compress(text[40:])
    assert len(server.post(body, **{"content-encoding": "gzip"}).json()["acks"]) == 2
    assert server.runs() == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("keys", ["abc"]),
        ("project", "abc"),
        ("run", "abc"),
        ("about", {"host": "abc"}),
        ("about", {"labels": {"abc": 1}}),
        ("records", [[1, "event", {"t": NOW, "abc": 1}]]),
        ("records", [[1, "abc", {"t": NOW}]]),
    ],
)
def test_strings_that_are_not_utf_8_are_rejected(server: Server, field: str, value: Any) -> None:
    packed = msgspec.msgpack.encode({**envelope("r"), field: value}).replace(b"abc", b"a\xff\xfe")
    response = server.post(packed, "application/msgpack")
    assert response.status_code == 400, response.text
    assert server.runs() == 0


@pytest.mark.parametrize("packing", [batch_body.ZSTD, batch_body.ZLIB, batch_body.NONE])
def test_trailing_bytes_of_a_packed_body_are_rejected(server: Server, packing: int) -> None:
    packed = batch_body.pack(np.array([NOW]), np.array([[1.5]]), packing)
    fields = {"run": "a", "writer": "w", "seq": 1, "keys": ["cpu"]}
    for rest in (b"rubbish", packed[5:]):
        content = msgspec.msgpack.encode({**fields, "body": packed + rest})
        assert server.post(content, "application/msgpack").status_code == 400
    assert server.post(msgspec.msgpack.encode({**fields, "body": packed}), "application/msgpack").is_success


def decoded_on_event_loop(server: Server, content: bytes, **headers: str) -> set[bool]:
    """Whether envelopes were validated in the event loop's thread."""
    on_event_loop: set[bool] = set()
    validate = server.recorder.validate

    def recording(*arguments: Any) -> Any:
        envelopes = validate(*arguments)
        try:
            asyncio.get_running_loop()
            on_event_loop.add(True)
        except RuntimeError:
            on_event_loop.add(False)
        return envelopes

    server.recorder.validate = recording  # type: ignore[method-assign]
    response = server.post(content, "application/msgpack", **headers)
    assert response.status_code == 200, response.text
    return on_event_loop


@pytest.mark.parametrize(("rows", "inline"), [(10, True), (2_000_000, False)])
def test_large_packed_bodies_are_decoded_in_a_thread(server: Server, rows: int, inline: bool) -> None:
    t = NOW - rows + np.arange(rows)
    packed = batch_body.pack(t, np.zeros((rows, 1)))  # the times compress well
    content = msgspec.msgpack.encode({"run": "a", "writer": "w", "seq": 1, "keys": ["cpu"], "body": packed})
    assert len(content) < Limits().body_bytes
    assert decoded_on_event_loop(server, content) == {inline}


@every_packer
def test_bodies_that_are_large_when_decompressed_are_decoded_in_a_thread(
    server: Server, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    labels = {"text": "x" * 1_000_000}
    fields = {"run": "a", "writer": "w", "seq": 1, "about": {"labels": labels}}
    content = pack(msgspec.msgpack.encode(fields))
    assert len(content) < 10_000
    assert decoded_on_event_loop(server, content, **{"content-encoding": encoding}) == {False}

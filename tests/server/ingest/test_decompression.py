"""Content encodings: all of a body or nothing, no more than allowed, and nothing large on the event loop."""

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

from runvitals.model import batch_body as store_body
from runvitals.server.ingest import Limits
from runvitals.server.ingest.decompression import unpacked
from runvitals.server.ingest.errors import Refused
from tests.server.ingest.server import NOW, Server

MOST = 10_000


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


def refused(body: bytes, encoding: str) -> int:
    with pytest.raises(Refused) as caught:
        unpacked(body, encoding, MOST)
    return caught.value.status


@every_packer
@pytest.mark.parametrize("size", [0, 1, MOST])
def test_what_was_packed_is_unpacked(encoding: str, pack: Callable[[bytes], bytes], size: int) -> None:
    assert unpacked(pack(b"x" * size), encoding, MOST) == b"x" * size


@every_packer
def test_more_than_allowed_is_too_large(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    assert refused(pack(b"x" * (MOST + 1)), encoding) == 413
    assert refused(pack(b"x" * (64 << 20)), encoding) == 413


@every_packer
def test_nothing_behind_the_end_is_dropped(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    assert refused(pack(b"first") + b"rubbish", encoding) == 400
    assert refused(pack(b"first") + b"\0", encoding) == 400
    if encoding != "gzip":
        assert refused(pack(b"first") + pack(b"second"), encoding) == 400


@every_packer
def test_an_end_that_is_missing_is_missed(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(bytes(range(256)) * 10)
    for end in range(len(packed)):
        assert refused(packed[:end], encoding) == 400


def test_members_of_gzip_are_one_content() -> None:
    assert unpacked(gzip.compress(b"first ") + gzip.compress(b"second"), "gzip", MOST) == b"first second"
    half = gzip.compress(b"x" * (MOST // 2))
    assert len(unpacked(half + half, "gzip", MOST)) == MOST
    assert refused(half + half + half, "gzip") == 413
    assert refused(half + half[:-1], "gzip") == 400
    assert refused(gzip.compress(b"") * 50_000, "gzip") == 400


@pytest.fixture
def server(tmp_path: Any) -> Iterator[Server]:
    server = Server(str(tmp_path), Limits())
    yield server
    server.close()


def envelope(run: str) -> dict[str, Any]:
    return {"run": run, "writer": "w", "seq": 1, "keys": ["cpu"], "t": [NOW], "v": [[1.5]]}


def test_both_members_of_a_body_are_taken_in(server: Server) -> None:
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
def test_texts_that_are_no_utf_8_are_refused(server: Server, field: str, value: Any) -> None:
    packed = msgspec.msgpack.encode({**envelope("r"), field: value}).replace(b"abc", b"a\xff\xfe")
    answer = server.post(packed, "application/msgpack")
    assert answer.status_code == 400, answer.text
    assert server.runs() == 0


@pytest.mark.parametrize("packing", [store_body.ZSTD, store_body.ZLIB, store_body.NONE])
def test_nothing_behind_packed_samples_is_dropped(server: Server, packing: int) -> None:
    packed = store_body.pack(np.array([NOW]), np.array([[1.5]]), packing)
    said = {"run": "a", "writer": "w", "seq": 1, "keys": ["cpu"]}
    for rest in (b"rubbish", packed[5:]):
        content = msgspec.msgpack.encode({**said, "body": packed + rest})
        assert server.post(content, "application/msgpack").status_code == 400
    assert server.post(msgspec.msgpack.encode({**said, "body": packed}), "application/msgpack").is_success


def where_it_is_decoded(server: Server, content: bytes, **headers: str) -> set[bool]:
    """Whether on the thread of the event loop, for each time that envelopes were looked at to the end."""
    found: set[bool] = set()
    prepare = server.recorder.prepared

    def noting(*what: Any) -> Any:
        done = prepare(*what)
        try:
            asyncio.get_running_loop()
            found.add(True)
        except RuntimeError:
            found.add(False)
        return done

    server.recorder.prepared = noting  # type: ignore[method-assign]
    answer = server.post(content, "application/msgpack", **headers)
    assert answer.status_code == 200, answer.text
    return found


@pytest.mark.parametrize(("rows", "inline"), [(10, True), (2_000_000, False)])
def test_where_samples_are_unpacked_is_decided_by_their_size(server: Server, rows: int, inline: bool) -> None:
    t = NOW - rows + np.arange(rows)
    packed = store_body.pack(t, np.zeros((rows, 1)))  # the times pack well
    content = msgspec.msgpack.encode({"run": "a", "writer": "w", "seq": 1, "keys": ["cpu"], "body": packed})
    assert len(content) < Limits().body_bytes
    assert where_it_is_decoded(server, content) == {inline}


@every_packer
def test_where_a_body_is_decoded_is_decided_by_its_unpacked_size(
    server: Server, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    labels = {"text": "x" * 1_000_000}
    said = {"run": "a", "writer": "w", "seq": 1, "about": {"labels": labels}}
    content = pack(msgspec.msgpack.encode(said))
    assert len(content) < 10_000
    assert where_it_is_decoded(server, content, **{"content-encoding": encoding}) == {False}

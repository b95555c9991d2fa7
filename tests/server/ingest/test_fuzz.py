"""Random and damaged requests: never a 5xx, never half a request stored, nothing left in flight."""

from __future__ import annotations

import copy
import gzip
import itertools
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
import pytest
import zstandard
from fastapi import FastAPI
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from runvitals.server.app import application
from runvitals.server.http.body_limits import Limits
from runvitals.server.library.stored.run_library import StoredLibrary
from runvitals.server.local_app import local_services
from tests.server.client import Client
from tests.server.ingest.server import NOW, Server

EXPECTED_STATUSES = {200, 400, 409, 413, 415, 422}
JSON, MSGPACK = "application/json", "application/msgpack"
_numbers = itertools.count()
bounded = settings(max_examples=60, database=None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(str(tmp_path_factory.mktemp("store")), Limits(body_bytes=1 << 20, message_bytes=4 << 20))
    yield server
    server.close()


def whole(run: str) -> dict[str, Any]:
    """An envelope that uses every field."""
    return {
        "run": run,
        "writer": "train.node1.7.19f3a",
        "seq": 0,
        "project": "digits",
        "about": {
            "role": "train",
            "host": "node1",
            "pid": 7,
            "rank": 0,
            "interval_s": 1.5,
            "labels": {"a": 1},
        },
        "keys": ["cpu", "loss"],
        "t": [NOW, NOW + 1000],
        "v": [[1.5, None], [0.5, 7]],
        "step": [1, 2],
        "records": [
            [1, "info", {"t": NOW, "config": {"lr": 0.1}, "run": {"name": "x", "tags": ["a"]}}],
            [2, "event", {"t": NOW, "name": "alert", "level": "warning", "text": "hot", "more": [1]}],
            [3, "lifecycle", {"t": NOW, "what": "attach", "pid": 7, "rank": 0}],
            [4, "lifecycle", {"t": NOW, "what": "gap", "since": NOW - 5}],
            [5, "console", {"t": NOW, "stream": 1, "text": "epoch\n"}],
            [6, "lifecycle", {"t": NOW, "what": "end", "state": "failed", "exit_code": 3}],
        ],
    }


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a tree."""
    yield at
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for name, child in children:
        yield from paths(child, (*at, name))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of the tree with another value at a path."""
    if not path:
        return new
    copied = copy.deepcopy(value)
    inner = copied
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return copied


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


PATHS = list(paths(whole("x")))
odd = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(
        [2**31, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**400, -1, 0, NOW, NOW * 1000]
    ),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1.7e308, 1.5]),
    st.sampled_from(
        ["", "a" * 513, "\0", "a\ud800b", "../x", "NaN", "☃", "\x1b[31m", "1", "AAAA", "_step", "cpu"]
    ),
    st.text(max_size=8),
    st.builds(nested, st.sampled_from([1, 3, 60, 400])),
    st.recursive(
        st.none() | st.integers() | st.floats() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    ),
)


def check(server: Server, response: httpx.Response, runs: list[str]) -> None:
    """Everything sent is stored, or nothing and the response has an error."""
    assert response.status_code in EXPECTED_STATUSES, (response.status_code, response.text)
    assert (server.endpoint.admission.requests, server.endpoint.admission.bytes) == (0, 0)
    rows = [server.metadata_store.runs.find(run, NOW) for run in runs]
    if response.status_code != 200:
        assert len(response.json()["error"]) > 10
        assert rows == [None] * len(runs)
    else:
        acks = response.json().get("acks", [response.json()])
        for ack in acks:
            assert server.metadata_store.runs.find(ack["run"], NOW) is not None


@seed(1)
@bounded
@given(
    content=st.binary(max_size=200),
    kind=st.sampled_from([JSON, MSGPACK, "application/x-msgpack", "text/html", "", "a/b;c=d"]),
    encoding=st.sampled_from(["", "gzip", "deflate", "zstd", "identity", "br", "gzip, zstd"]),
)
def test_random_bytes(server: Server, content: bytes, kind: str, encoding: str) -> None:
    check(server, server.post(content, kind, **({"content-encoding": encoding} if encoding else {})), [])


@seed(1)
@settings(bounded, max_examples=100)
@given(path=st.sampled_from(PATHS), new=odd, form=st.sampled_from([JSON, MSGPACK]), in_list=st.booleans())
def test_any_value_replaced(
    server: Server, path: tuple[Any, ...], new: Any, form: str, in_list: bool
) -> None:
    run = f"changed-{next(_numbers)}"
    envelope = changed(whole(run), path, new)
    sent = [whole(f"{run}-before"), envelope, whole(f"{run}-after")] if in_list else envelope
    try:
        content = json.dumps(sent).encode() if form == JSON else msgspec.msgpack.encode(sent)
    except (OverflowError, RecursionError, UnicodeEncodeError, msgspec.MsgspecError):
        return  # MessagePack has no such value
    check(server, server.post(content, form), [run, f"{run}-before", f"{run}-after"] if in_list else [run])


@seed(1)
@bounded
@given(
    form=st.sampled_from([JSON, MSGPACK, "zstd", "gzip"]),
    replaced=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=3),
    kept=st.sampled_from([1.0, 1.0, 0.99, 0.5]),
    more=st.sampled_from([b"", b"", b"x", b"\0" * 100]),
)
def test_damaged_bytes(
    server: Server, form: str, replaced: list[tuple[int, int]], kept: float, more: bytes
) -> None:
    """A valid request with some bytes changed, truncated, or with bytes appended."""
    run = f"damaged-{next(_numbers)}"
    content = json.dumps(whole(run)).encode() if form == JSON else msgspec.msgpack.encode(whole(run))
    headers = {}
    if form in ("zstd", "gzip"):
        content = zstandard.compress(content) if form == "zstd" else gzip.compress(content)
        headers = {"content-encoding": form}
    damaged = bytearray(content[: int(len(content) * kept)] + more)
    for offset, byte in replaced:
        damaged[offset % len(damaged)] = byte
    response = server.post(bytes(damaged), JSON if form == JSON else MSGPACK, **headers)
    check(server, response, [run] if response.status_code != 200 else [])


@seed(1)
@bounded
@given(
    head=st.binary(min_size=0, max_size=5),
    packing=st.integers(0, 4),
    rows=st.sampled_from([0, 1, 2, 3, 2**31, 2**32 - 1]),
    rest=st.binary(max_size=64),
)
def test_packed_bodies(server: Server, head: bytes, packing: int, rows: int, rest: bytes) -> None:
    run = f"packed-{next(_numbers)}"
    base = {"run": run, "writer": "w", "seq": 1, "keys": ["cpu"]}
    for body in (head, struct.pack("<BI", packing, rows) + rest):
        response = server.post(msgspec.msgpack.encode({**base, "body": body}), MSGPACK)
        check(server, response, [run] if response.status_code != 200 else [])


BOMB = b" " * (64 << 20)


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", lambda data: gzip.compress(data, 1)),
        ("deflate", lambda data: zlib.compress(data, 1)),
        ("zstd", zstandard.compress),
        ("zstd", lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data)),
    ],
)
def test_compression_bombs(server: Server, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(BOMB)
    assert len(packed) < 1 << 20
    response = server.post(packed, **{"content-encoding": encoding})
    assert response.status_code in (400, 413)
    check(server, response, [])


ROW = f'"run": "bad", "writer": "w", "seq": 1, "keys": ["a"], "t": [{NOW}]'
DEEP = "[" * 5000 + "]" * 5000


@pytest.mark.parametrize(
    "text",
    [
        f'{{{ROW}, "v": [[NaN]]}}',
        f'{{{ROW}, "v": [[1e999]]}}',
        f'{{{ROW}, "v": [[1]], "v": [[1, 2]]}}',
        f'{{{ROW}, "v": [[1]], "records": {DEEP}}}',
        f'{{{ROW}, "v": [[1]], "about": {{"labels": {{"a": {DEEP}}}}}}}',
        f'{{{ROW}, "v": [[1]], "about": {{"host": "\\ud800"}}}}',
        f'{{"run": "bad", "writer": "w", "seq": {"9" * 5000}}}',
        '{"run": "bad", "writer": "w", "seq": 1.5}',
        "[" * 100_000 + "]" * 100_000,
        "\ufeff{}",
        "",
        "null",
    ],
    ids=lambda text: text[:20] or "empty",
)
def test_invalid_envelopes_in_json(server: Server, text: str) -> None:
    response = server.post(text.encode())
    assert response.status_code == 400, response.text
    check(server, response, ["bad"])


def test_the_last_of_repeated_json_keys_counts(server: Server) -> None:
    response = server.post(b'{"run": "bad", "writer": "w", "seq": 1, "run": "twice"}')
    assert (response.status_code, response.json()["run"]) == (200, "twice")
    check(server, response, ["twice"])


def test_invalid_utf_8(server: Server) -> None:
    content = b'{"run": "bad", "writer": "w\xff", "seq": 1}'
    check(server, server.post(content), ["bad"])
    packed = msgspec.msgpack.encode({"run": "bad", "writer": "w", "seq": 1, "project": "abc"})
    check(server, server.post(packed.replace(b"abc", b"a\xffc"), MSGPACK), ["bad"])


def test_everything_that_was_stored_can_be_read(server: Server) -> None:
    """Must run last: reads what all the tests above have stored."""
    for depth, status in ((90, 200), (101, 422), (900, 422)):
        for path in (("records", 0, 2, "config", "lr"), ("records", 1, 2, "more"), ("about", "labels", "a")):
            response = server.json(changed(whole(f"deep-{depth}"), path, nested(depth)))
            assert response.status_code == status, response.text
    app = application(local_services(StoredLibrary(server.store, server.metadata_store, lambda: NOW + 5)))
    client = Reader(app)
    rows = client.ask("runs", limit=40)["runs"]
    assert rows
    for row in rows:
        run = f"runs/{quote(row['id'])}"
        assert client.ask(run)["id"] == row["id"]
        for call in ("series", "metrics", "statistics", "history", "events", "console"):
            client.ask(f"{run}/{call}")
        assert client.get(f"/api/v1/{run}/metrics?format=csv&resolution=raw").status_code == 200


class Reader(Client):
    """A client of an existing application."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

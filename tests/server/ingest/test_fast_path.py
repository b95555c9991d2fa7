"""The fast path: samples of registered writers bypass the ASGI application, with the same responses."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from runvitals.server.http.body_limits import Limits
from runvitals.server.http.connection import Connection
from tests.patience import PATIENCE_S
from tests.server.serving import Served, answered, serving

KEYS = ["cpu", "memory"]
HEAD = b"POST /api/v1/ingest HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def envelope(seq: int, **more: Any) -> dict[str, Any]:
    return {
        "run": "abc",
        "writer": "w",
        "seq": seq,
        "keys": KEYS,
        "t": [now_ms() + seq],
        "v": [[1.0], [2.0]],
        **more,
    }


@pytest.fixture
def served(tmp_path: Any) -> Iterator[Served]:
    with serving(tmp_path, limits=Limits(body_bytes=200_000)) as served:
        yield served


@pytest.fixture
def fast(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request, whether it bypassed the ASGI application."""
    bypassed: list[bool] = []
    post = served.app.fast_path.post

    def recording(*arguments: Any) -> bool:
        bypassed.append(post(*arguments))
        return bypassed[-1]

    monkeypatch.setattr(served.app.fast_path, "post", recording)
    return bypassed


def test_responses_of_the_fast_path_have_the_id_of_the_request(served: Served, fast: list[bool]) -> None:
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        responses = [client.post("/api/v1/ingest", json=envelope(seq)) for seq in (1, 2, 3)]
    assert fast[:3] == [False, True, True]
    assert len({response.headers["x-request-id"] for response in responses}) == 3


def test_requests_after_the_first_of_a_writer_take_the_fast_path(served: Served, fast: list[bool]) -> None:
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        responses = [client.post("/api/v1/ingest", json=envelope(seq)).json() for seq in (1, 2, 2, 3)]
        both = client.post("/api/v1/ingest", json=[envelope(4), envelope(5)]).json()
        packed = msgspec.msgpack.encode(envelope(6))
        last = client.post(
            "/api/v1/ingest", content=packed, headers={"content-type": "application/msgpack"}
        ).json()
    assert fast[:5] == [False, True, True, True, True]  # MessagePack keys are other bytes
    assert [(response["seq"], response["stored"]) for response in responses] == [
        (1, True),
        (2, True),
        (2, False),
        (3, True),
    ]
    assert [ack["stored"] for ack in both["acks"]] == [True, True]
    assert last["stored"] is True
    run = httpx.get(f"{served.url}/api/v1/runs/abc/metrics", timeout=PATIENCE_S).json()
    assert sum(len(group["t"]) for group in run["groups"]) == 6


def test_logged_rows_of_the_fast_path_are_in_the_summary(served: Served, fast: list[bool]) -> None:
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        for seq in (1, 2, 3):
            row = envelope(seq, v=[[float(seq)], [2.0]], step=[seq])
            assert client.post("/api/v1/ingest", json=row).json()["stored"] is True
        assert fast[:3] == [False, True, True]
        assert client.get("/api/v1/runs/abc").json()["summary"] == {"cpu": 3.0, "memory": 2.0}


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"v": [[1.0]]}, 400),
        ({"t": [1]}, 422),
        ({"keys": ["a", "a"]}, 422),
        ({"records": [[9, "event", {"t": 1, "name": "x"}]]}, 422),
        ({"writer": ""}, 422),
        ({"unknown": 1}, 200),
        ({"keys": ["new", "ones"]}, 200),
        ({"step": [1]}, 200),
        ({"about": {"role": "train"}}, 200),
    ],
)
def test_other_requests_are_passed_to_the_application(
    served: Served, more: dict[str, Any], status: int
) -> None:
    with httpx.Client(base_url=served.url, timeout=PATIENCE_S) as client:
        assert client.post("/api/v1/ingest", json=envelope(1)).status_code == 200
        response = client.post("/api/v1/ingest", json=envelope(2, **more))
        assert response.status_code == status
        assert ("error" in response.json()) == (status != 200)
        assert client.post("/api/v1/ingest", json=envelope(3)).json()["stored"] is True


def test_host_names_other_than_loopback_are_rejected(served: Served) -> None:
    for host in ("rebind.example", "rebind.example:80"):
        answer = httpx.post(
            f"{served.url}/api/v1/ingest", json=envelope(1), headers={"host": host}, timeout=PATIENCE_S
        )
        assert answer.status_code == 403
    body = msgspec.json.encode(envelope(1))
    response = served.say(
        b"POST /api/v1/ingest HTTP/1.1\r\nhost: rebind.example\r\nhost: localhost\r\nconnection: close\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    )
    assert response.startswith(b"HTTP/1.1 40")


def test_a_revoked_token_is_rejected(tmp_path: Any) -> None:
    with serving(tmp_path, token_required=True) as served:
        secret, token = served.metadata_store.tokens.create("node1", now_ms())
        headers = {"authorization": f"Bearer {secret}"}
        url = f"{served.url}/api/v1/ingest"
        kept = httpx.Client(timeout=PATIENCE_S, headers=headers)
        for seq in range(4):
            assert kept.post(url, json=envelope(seq)).json()["stored"] is True
        assert (
            httpx.post(
                url, json=envelope(9), headers={"authorization": "Bearer rvt_x"}, timeout=PATIENCE_S
            ).status_code
            == 401
        )
        assert httpx.post(url, json=envelope(9), timeout=PATIENCE_S).status_code == 401
        served.metadata_store.tokens.revoke(token.id, now_ms())
        deadline_s = time.monotonic() + PATIENCE_S
        while kept.post(url, json=envelope(9)).status_code != 401:
            assert time.monotonic() < deadline_s
        kept.close()


def request(seq: int, extra: bytes = b"") -> bytes:
    body = msgspec.json.encode(envelope(seq))
    return HEAD + extra + b"content-length: %d\r\n\r\n" % len(body) + body


def test_a_request_that_the_fast_path_cannot_take_leaves_the_connection_to_it(
    served: Served, fast: list[bool]
) -> None:
    with served.connect() as connection:

        def answer(request: bytes) -> bytes:
            connection.sendall(request)
            received = b""
            while b"}" not in received:
                received += connection.recv(1 << 16)
            return received

        for seq in (10, 11):
            assert b'"seq":%d,"stored":true' % seq in answer(request(seq))
        assert answer(request(12).replace(b'"abc"', b'"a\x01c"')).startswith(b"HTTP/1.1 4")
        assert b'"seq":13,"stored":true' in answer(request(13))
    assert fast == [False, True, False, True]


def test_a_head_that_was_parsed_before_is_not_parsed_again(
    served: Served, fast: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[Connection] = []
    on_headers_complete = Connection.on_headers_complete

    def recording(connection: Connection) -> None:
        parsed.append(connection)
        on_headers_complete(connection)

    monkeypatch.setattr(Connection, "on_headers_complete", recording)
    with served.connect() as connection:

        def answer(*parts: bytes) -> bytes:
            for part in parts:
                connection.sendall(part)
            received = b""
            while b"}" not in received:
                received += connection.recv(1 << 16)
            return received

        for seq in range(10, 16):
            assert b'"seq":%d,"stored":true' % seq in answer(request(seq))
        assert len(parsed) == 3  # that of the application, the first short one, and one that is remembered
        assert fast == [False, True, True, True, True, True]
        # The parser takes what is not a whole request, and all that follows on it.
        whole = request(20)
        assert b'"seq":20,"stored":true' in answer(whole[:30], whole[30:])
        head, _, body = request(21).partition(b"\r\n\r\n")
        assert b'"seq":21,"stored":true' in answer(head + b"\r\n\r\n", body)
        # Rejected by the application all the same, and the next one is parsed.
        wrong = request(24).replace(b'"abc"', b'"a\x01c"')
        assert answer(wrong).startswith(b"HTTP/1.1 4")
        assert answer(request(25)).startswith(b"HTTP/1.1 200")


def test_a_head_after_which_the_connection_ends_is_parsed_each_time(served: Served, fast: list[bool]) -> None:
    closing = b"connection: close\r\n"
    for seq in (1, 2, 3):
        with served.connect() as connection:
            for number in (0, 1):
                connection.sendall(request(10 * seq + number))
                while b"}" not in connection.recv(1 << 16):
                    pass
            connection.sendall(request(10 * seq + 2, closing))
            received = b""
            while piece := connection.recv(1 << 16):
                received += piece
        assert b"connection: close" in received


def test_requests_that_are_pipelined_split_or_cut_off(served: Served, fast: list[bool]) -> None:
    assert httpx.post(f"{served.url}/api/v1/ingest", json=envelope(0), timeout=PATIENCE_S).status_code == 200
    response = served.say(
        b"".join(request(seq) for seq in range(1, 20)) + request(20, b"connection: close\r\n")
    )
    assert response.count(b'"stored":true') == 20
    assert [response.index(b'"seq":%d,' % seq) for seq in range(1, 21)] == sorted(
        response.index(b'"seq":%d,' % seq) for seq in range(1, 21)
    )
    with served.connect() as connection:
        whole = request(30, b"connection: close\r\n")
        for start in range(0, len(whole), 7):
            connection.sendall(whole[start : start + 7])
        assert b'"stored":true' in answered(connection)
    with served.connect() as connection:  # the client disconnects before the body is complete
        connection.sendall(request(31)[:-5])
    assert (
        httpx.post(f"{served.url}/api/v1/ingest", json=envelope(32), timeout=PATIENCE_S).json()["stored"]
        is True
    )
    assert any(fast)

"""The monitor's HTTP client, against a server that sends given bytes."""

from __future__ import annotations

import gzip
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.plumbing.http import HttpAddress, HttpError, get, unquote
from tests.isolated import printed
from tests.monitoring.collectors.exporters import Exporter, ok

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def fault(sent: bytes | None, **limits: float) -> str:
    """The error of `get` for a response, without the address."""
    with Exporter(sent) as exporter, pytest.raises(HttpError) as caught:
        get(exporter.url, **limits)  # type: ignore[arg-type]
    text = str(caught.value)
    assert text.startswith(f"{exporter.url} ")
    return text.removeprefix(f"{exporter.url} ")


def test_a_response_and_its_request() -> None:
    with Exporter(ok("up 1\n", "Content-Type: text/plain; version=0.0.4")) as exporter:
        response = get(exporter.url, {"X-Token": "abc"})
    assert (response.status, response.body) == (200, b"up 1\n")
    assert response.headers["content-type"] == "text/plain; version=0.0.4"
    first, *lines = exporter.requests[0].split("\r\n")
    assert first == "GET /metrics HTTP/1.1"
    assert set(lines) >= {
        f"Host: {exporter.url.split('/')[2]}",
        "Accept-Encoding: gzip",
        "Connection: close",
        "X-Token: abc",
    }


def test_a_header_of_the_user_replaces_ours() -> None:
    with Exporter(ok("")) as exporter:
        get(exporter.url, {"accept": "text/html", "host": "other"})
    assert "Accept: */*" not in exporter.requests[0]
    assert "accept: text/html" in exporter.requests[0]
    assert "host: other" in exporter.requests[0]


def test_credentials_in_the_url_are_sent_but_never_reported() -> None:
    with Exporter(b"HTTP/1.1 403 Forbidden\r\n\r\n") as exporter:
        url = exporter.url.replace("://", "://me:p%40ss@") + "?token=abc"
        with pytest.raises(HttpError) as caught:
            get(url)
    assert "Authorization: Basic bWU6cEBzcw==" in exporter.requests[0]  # me:p@ss
    assert exporter.requests[0].startswith("GET /metrics?token=abc HTTP/1.1")
    assert str(caught.value) == f"{exporter.url} responded with status 403"


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\n\r\nup 1\n",  # until the connection is closed
        b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nup 1\nand more",
        CHUNKED + b"2;note=x\r\nup\r\n3\r\n 1\n\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nup 1\n",
        ok(gzip.compress(b"up 1\n", mtime=0), "Content-Encoding: gzip"),
    ],
)
def test_transfer_encodings(sent: bytes) -> None:
    with Exporter(sent) as exporter:
        assert get(exporter.url).body == b"up 1\n"


def test_a_body_of_many_packets() -> None:
    body = b"x" * 3_000_000
    with Exporter(ok(body)) as exporter:
        assert get(exporter.url).body == body


def test_a_unix_socket(tmp_path: Path) -> None:
    with Exporter(ok("up 1\n"), path=f"{tmp_path}/s") as exporter:
        assert get(exporter.url).body == b"up 1\n"
    assert "Host: localhost" in exporter.requests[0]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", "closed the connection without a response"),
        (b"220 mail.example.org ESMTP\r\n", "sent a response that is not HTTP"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "sent a response that is not HTTP: 'SSH-2.0-OpenSSH'"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "responded with status 503"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\n",
            "responded with status 302 (to /login, which is not followed)",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nup 1\n", "sent a truncated response: 5 of 9 bytes"),
        (CHUNKED + b"5\r\nup", "sent a truncated response: 2 of 5 bytes"),
        (CHUNKED + b"5", "sent a truncated response"),
        (CHUNKED + b"zz\r\n", "sent a chunk with the invalid size b'zz'"),
        (CHUNKED + b"1\r\nup\r\n", "sent a chunk that is longer than its declared size"),
        (ok(gzip.compress(b"up 1\n", mtime=0)[:-9], "Content-Encoding: gzip"), "sent truncated gzip data"),
        (ok(b"up 1\n", "Content-Encoding: br"), "used the content encoding 'br'; expected gzip or none"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000, "sent headers of more than 64 KiB"),
    ],
)  # fmt: skip
def test_invalid_responses(sent: bytes, expected: str) -> None:
    assert fault(sent) == expected


def test_invalid_compressed_data() -> None:
    assert "cannot be read" in fault(ok(b"nonsense", "Content-Encoding: gzip"))


@pytest.mark.parametrize(
    "sent",
    [
        ok(b"x" * 1001),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001,
        CHUNKED + b"3e9\r\n",
        ok(gzip.compress(b"x" * 100_000, mtime=0), "Content-Encoding: gzip"),
    ],
)
def test_a_response_that_is_too_long(sent: bytes) -> None:
    assert fault(sent, limit_bytes=1000) == "sent more than 1000 bytes"


def test_timeout() -> None:
    assert fault(None, timeout_s=0.1) == "did not respond within 0.1 s"


def test_the_timeout_covers_the_whole_response() -> None:
    """A server that sends a byte now and then must not keep the client waiting."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        script = (
            "import socket, sys, time\n"
            "sock = socket.socket(fileno=int(sys.argv[1])); client, _ = sock.accept()\n"
            "client.sendall(b'HTTP/1.1 200 OK\\r\\n\\r\\n')\n"
            "while True: client.sendall(b'x'); time.sleep(0.03)\n"
        )
        fd = listener.fileno()
        with subprocess.Popen([sys.executable, "-c", script, str(fd)], pass_fds=[fd]) as dripping:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            with pytest.raises(HttpError, match=r"did not respond within 0.4 s"):
                get(url, timeout_s=0.4)
            dripping.kill()


def test_connection_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(
        HttpError, match=f"http://127.0.0.1:{port}/metrics cannot be read: connection refused"
    ):
        get(f"http://127.0.0.1:{port}/metrics")


def test_no_such_socket(tmp_path: Path) -> None:
    url = f"http+unix://{tmp_path}".replace("/", "%2F").replace("http+unix:%2F%2F", "http+unix://")
    with pytest.raises(HttpError, match="cannot be read: No such file or directory"):
        get(f"{url}%2Fnone/metrics")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("localhost:9400/metrics", "expected http://, https:// or http\\+unix://"),
        ("ftp://host/", "expected http://"),
        ("http:///metrics", "it has no host"),
        ("http://host:port/", "invalid port in the URL .*: expected a number from 1 to 65535"),
        ("http://host:0/", "invalid port in the URL"),
        ("http://host/a b", "has whitespace or characters other than ASCII"),
        ("http://me:secret@höst/?token=secret", "has whitespace or characters"),
    ],
)
def test_an_invalid_url(url: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as caught:
        HttpAddress(url)
    assert "secret" not in str(caught.value)


def test_addresses() -> None:
    parts = [
        (each.scheme, each.host, each.port, each.target)
        for each in map(
            HttpAddress,
            ("http://node1", "HTTPS://node1?x=1#y", "http://[::1]:94/m", "http+unix://%2Frun%2Fx/m"),
        )
    ]
    assert parts == [
        ("http", "node1", 80, "/"),
        ("https", "node1", 443, "/?x=1"),
        ("http", "::1", 94, "/m"),
        ("http+unix", "/run/x", 80, "/m"),
    ]


@pytest.mark.parametrize("header", [{"X": "a\r\nY: b"}, {"X\nY": "a"}, {"": "a"}, {"X: Y": "a"}])
def test_a_header_cannot_smuggle_another(header: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="invalid name, or a line break in the value"):
        get("http://127.0.0.1:1/", header)


def test_unquoted() -> None:
    assert unquote("a%20b%2fc%C3%A4") == "a b/cä"
    with pytest.raises(ValueError, match="hexadecimal"):
        unquote("100%")


def test_tls_is_loaded_only_for_https() -> None:
    """Without encryption neither `ssl` nor `socket` is imported. A server without TLS is reported as such."""
    script = (
        "from runvitals.monitoring.collectors.plumbing.http import HttpError, get\n"
        "assert get(sys.argv[1]).body == b'up 1\\n'\n"
        "print(sorted({'ssl', 'socket', 're', 'http.client'} & set(sys.modules)))\n"
        "try: get(sys.argv[1].replace('http:', 'https:'))\n"
        "except HttpError as error: print(error)\n"
    )
    with Exporter(ok("up 1\n")) as exporter:
        lines = printed(script, exporter.url).splitlines()
    assert lines[0] == "[]"
    assert "cannot be read" in lines[1]
    assert "SSL" in lines[1].upper()


@pytest.mark.parametrize("packed", [False, True])
def test_a_long_response_is_passed_on_in_pieces(packed: bool) -> None:
    body = b"".join(b"line %d\n" % number for number in range(100_000))
    sent = ok(gzip.compress(body), "Content-Encoding: gzip") if packed else ok(body)
    pieces: list[bytes] = []
    with Exporter(sent) as exporter:
        assert get(exporter.url, take=pieces.append).body == b""
    assert b"".join(pieces) == body
    assert max(map(len, pieces)) <= 1 << 16


def test_several_gzip_members_are_decompressed() -> None:
    packed = gzip.compress(b"a 1\n") + gzip.compress(b"b 2\n")
    with Exporter(ok(packed, "Content-Encoding: gzip")) as exporter:
        assert get(exporter.url).body == b"a 1\nb 2\n"

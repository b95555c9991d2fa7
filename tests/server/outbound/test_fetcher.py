"""Requests to URLs that somebody named.

Nothing leaves this machine: names and connections are led to a server of the test.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler

import pytest

from runvitals.server.outbound.fetcher import Fetcher, FetchFailed, FetchLimits
from runvitals.server.outbound.policy import Blocked, OutboundPolicy, outbound_policy
from tests.patience import PATIENCE_S
from tests.server.outbound.site import PUBLIC, Answer, Site
from tests.server.outbound.test_policy import WRITTEN


def test_an_answer(site: Site) -> None:
    site.answers["/a"] = (200, {"X-Kind": "test"}, b"hello")
    response = site.fetcher().get("https://site.example/a?b=c#d")
    assert (response.status, response.body, response.headers["x-kind"]) == (200, b"hello", "test")
    assert site.reached == [(PUBLIC, 443)]
    ((path, headers),) = site.requests
    assert path == "/a?b=c"
    assert headers["Host"] == "site.example"
    assert headers.keys() <= {"Host", "User-Agent", "Accept-Encoding", "Connection"}


def test_a_post(site: Site) -> None:
    site.answers["/token"] = (401, {}, b"no")
    response = site.fetcher().post("https://site.example:8443/token", b"a=b", {"Content-Type": "text/plain"})
    assert (response.status, site.bodies) == (401, [b"a=b"])
    assert site.requests[0][1]["Host"] == "site.example:8443"


@pytest.mark.parametrize("host", WRITTEN)
def test_no_way_of_writing_an_address_leads_inside(site: Site, host: str) -> None:
    with pytest.raises((Blocked, FetchFailed)):
        site.fetcher().get(f"https://{host}/")
    assert site.reached == []


@pytest.mark.parametrize(
    "url",
    [
        "http://site.example/",
        "ftp://site.example/",
        "file:///etc/passwd",
        "https:///x",
        "https://user@site.example/",
        "https://site.example@127.0.0.1/",
        "https://site.example:22/",
        "https://site.example:80/",
        "https://site.example:99999/",
        "https://site.example\\@other.example/",
        "https://site.example/\r\nX: y",
        "https://site.example/ x",
        "https://sité.example/",
        "https://[fe80::1%25eth0]/",
        "https://site.example/" + "a" * 5000,
        "//site.example/",
        "",
    ],
)
def test_urls_that_are_refused(site: Site, url: str) -> None:
    with pytest.raises(Blocked):
        site.fetcher().get(url)
    with pytest.raises(Blocked):
        site.fetcher().check(url)
    assert site.reached == []


def test_a_name_with_one_address_inside_is_refused(site: Site) -> None:
    site.names["site.example"] = [[PUBLIC, "10.0.0.1"]]
    with pytest.raises(Blocked, match="private network"):
        site.fetcher().get("https://site.example/")
    assert site.reached == []


def test_a_name_that_changes_is_resolved_once_a_request(site: Site) -> None:
    """The connection goes to the address that was checked, even if the name changes a moment later."""
    site.names["site.example"] = [[PUBLIC], ["127.0.0.1"]]
    site.answers["/"] = (200, {}, b"")
    fetcher = site.fetcher()
    assert fetcher.get("https://site.example/").status == 200
    assert site.reached == [(PUBLIC, 443)]
    with pytest.raises(Blocked):
        fetcher.get("https://site.example/")
    assert site.reached == [(PUBLIC, 443)]


@pytest.mark.parametrize(
    "location",
    [
        "https://169.254.169.254/latest/meta-data/",
        "http://site.example/b",
        "https://inside.example/",
        "//127.0.0.1/",
        "file:///etc/passwd",
        "https://site.example:22/",
    ],
)
def test_a_redirect_is_checked_like_the_first_address(site: Site, location: str) -> None:
    site.names["inside.example"] = [["192.168.0.1"]]
    site.answers["/a"] = (302, {"Location": location}, b"")
    with pytest.raises(Blocked):
        site.fetcher().get("https://site.example/a", FetchLimits(redirects=2))
    assert site.reached == [(PUBLIC, 443)]


def test_redirects_are_counted(site: Site) -> None:
    site.answers["/a"] = (302, {"Location": "/b"}, b"")
    site.answers["/b"] = (301, {"Location": "https://other.example/c"}, b"")
    site.answers["/c"] = (200, {}, b"end")
    response = site.fetcher().get("https://site.example/a", FetchLimits(redirects=2))
    assert (response.url, response.body) == ("https://other.example/c", b"end")
    for redirects in (0, 1):
        with pytest.raises(FetchFailed, match="redirected"):
            site.fetcher().get("https://site.example/a", FetchLimits(redirects=redirects))
    with pytest.raises(FetchFailed, match="redirected"):
        site.fetcher().post("https://site.example/a", b"", {})


def test_a_large_answer_is_refused(site: Site) -> None:
    site.answers["/"] = (200, {}, b"x" * 100)
    assert site.fetcher().get("https://site.example/", FetchLimits(body_bytes=100)).status == 200
    with pytest.raises(FetchFailed, match="larger than 99 bytes"):
        site.fetcher().get("https://site.example/", FetchLimits(body_bytes=99))


@pytest.mark.parametrize("length", [{"Content-Length": "1000000"}, {}])
def test_an_answer_in_drips_ends_at_the_deadline(site: Site, length: dict[str, str]) -> None:
    """Each byte arrives within the socket's timeout, so only a limit on the whole ends it."""
    ended = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> Answer:
        handler.send_response(200)
        for name, value in length.items():
            handler.send_header(name, value)
        handler.end_headers()
        try:
            while not ended.wait(0.01):
                handler.wfile.write(b"x")
                handler.wfile.flush()
        except OSError:
            ended.set()
        return 200, {}, b""

    site.answers["/"] = drip
    with pytest.raises(FetchFailed):
        site.fetcher().get("https://site.example/", FetchLimits(total_s=1.0, body_bytes=2_000_000))
    assert ended.wait(PATIENCE_S), "the connection was not ended"


def test_a_connection_that_is_made_too_late_is_closed(site: Site) -> None:
    sockets: list[socket.socket] = []

    def connect_late(address: str, port: int, timeout_s: float) -> socket.socket:
        sockets.append(site.connect(address, port, timeout_s))
        time.sleep(timeout_s)
        return sockets[0]

    with pytest.raises(FetchFailed, match="took too long"):
        Fetcher(OutboundPolicy, site.resolve, connect_late, site.tls).get(
            "https://site.example/", FetchLimits(total_s=0.2)
        )
    with sockets[0] as connection:  # an open one would keep the site from ending
        assert connection.fileno() == -1


def test_a_resolver_that_hangs_does_not_hold_the_caller(site: Site) -> None:
    released = threading.Event()

    def hang(host: str, port: int) -> list[str]:
        released.wait(PATIENCE_S)
        return [PUBLIC]

    try:
        with pytest.raises(FetchFailed, match="unknown"):
            Fetcher(OutboundPolicy, hang, site.connect).get("https://site.example/", FetchLimits(total_s=0.2))
    finally:
        released.set()


def test_the_name_is_checked_in_the_certificate(site: Site) -> None:
    site.names["wrong.example"] = [[PUBLIC]]
    with pytest.raises(FetchFailed, match="certificate"):
        site.fetcher().get("https://wrong.example/")
    with pytest.raises(FetchFailed, match="certificate"):
        Fetcher(OutboundPolicy, site.resolve, site.connect, ssl.create_default_context()).get(
            "https://site.example/"
        )


def test_an_endpoint_that_is_allowed_is_reached_by_its_address(site: Site) -> None:
    site.answers["/"] = (200, {}, b"own")
    policy = outbound_policy([f"127.0.0.1:{site.port}"])
    fetcher = Fetcher(lambda: policy, tls=site.tls)  # with the real resolver and connector
    assert fetcher.get(f"https://127.0.0.1:{site.port}/").body == b"own"

"""Requests through the proxy of the setting `outbound_proxy`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.policy import Blocked, OutboundPolicy, outbound_policy, proxy_address
from tests.patience import PATIENCE_S
from tests.server.outbound.site import Site


class Proxy:
    """An HTTP proxy on 127.0.0.1 that leads every tunnel to a site.

    Attributes:
        asked: the targets.
        status: its answer.
    """

    def __init__(self, site: Site) -> None:
        self.asked: list[str] = []
        self.status = 200
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_CONNECT(self) -> None:
                proxy.asked.append(self.path)
                self.send_response(proxy.status)
                self.end_headers()
                if proxy.status == 200:
                    with socket.create_connection(("127.0.0.1", site.port), PATIENCE_S) as target:
                        back = threading.Thread(target=_pump, args=(target, self.connection))
                        back.start()
                        _pump(self.connection, target)
                        back.join(PATIENCE_S)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def fetcher(self, site: Site) -> Fetcher:
        policy = outbound_policy([], proxy=self.url)
        return Fetcher(lambda: policy, site.resolve, _connect, site.tls)


def _connect(address: str, port: int, timeout_s: float) -> socket.socket:
    return socket.create_connection((address, port), PATIENCE_S)


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends."""
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return  # the other side has ended


@pytest.fixture
def proxy(site: Site) -> Iterator[Proxy]:
    with Proxy(site) as running:
        yield running


def test_a_request_goes_through_the_proxy(site: Site, proxy: Proxy) -> None:
    site.answers["/a"] = (200, {}, b"hello")
    site.answers["/token"] = (200, {}, b"token")
    fetcher = proxy.fetcher(site)
    assert fetcher.get("https://site.example/a").body == b"hello"
    assert fetcher.post("https://site.example:8443/token", b"code", {}).body == b"token"
    assert proxy.asked == ["site.example:443", "site.example:8443"]
    assert [headers["Host"] for _, headers in site.requests] == ["site.example", "site.example:8443"]


def test_a_name_that_only_the_proxy_knows(site: Site, proxy: Proxy) -> None:
    site.answers["/a"] = (200, {}, b"hello")
    del site.names["site.example"]  # the resolver of the test then takes addresses only
    with pytest.raises(FetchFailed, match=r"address of site\.example is unknown"):
        site.fetcher().get("https://site.example/a")
    assert proxy.fetcher(site).get("https://site.example/a").body == b"hello"


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.7", "169.254.169.254", "[::1]", "inside.example"])
def test_addresses_inside_are_refused_before_the_proxy_is_asked(site: Site, proxy: Proxy, host: str) -> None:
    site.names["inside.example"] = [["10.1.2.3"]]
    with pytest.raises(Blocked):
        proxy.fetcher(site).get(f"https://{host}/")
    assert proxy.asked == []


def test_a_proxy_that_refuses(site: Site, proxy: Proxy) -> None:
    proxy.status = 403
    with pytest.raises(FetchFailed, match="the proxy answered 403"):
        proxy.fetcher(site).get("https://site.example/a")
    assert site.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "https://proxy.example:3128",
        "http://proxy.example",
        "http://user:pass@proxy.example:3128",
        "http://proxy.example:3128/path",
        "http://proxy.example:99999",
        "socks5://proxy.example:1080",
        "http://[::1",
    ],
)
def test_proxies_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ValueError, match="expected the proxy as http://host:port"):
        proxy_address(url)


def test_without_the_setting_there_is_no_proxy() -> None:
    assert outbound_policy([]).proxy is None
    assert OutboundPolicy().proxy is None

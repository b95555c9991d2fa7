"""`Fetcher`: sends a request to a URL that somebody named, to checked addresses only."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final

from runvitals.server.outbound.policy import Blocked, OutboundPolicy

Resolve = Callable[[str, int], Sequence[str]]
Connect = Callable[[str, int, float], socket.socket]
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_MAX_URL: Final = 4096
_RESOLVERS: Final = 8
_LOOK_UP_S: Final = 2.0
"""How long a name is looked up that a proxy will look up again."""


class FetchFailed(Exception):
    """There is no usable answer: no connection, too slow, too large, or not HTTP."""


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of a request to another server.

    Args:
        total_s: for everything: names, connections, redirects, the answer.
        body_bytes: a larger answer is an error.
        redirects: how many are followed; each target is checked like the first.
    """

    total_s: float = 10.0
    body_bytes: int = 64 * 1024
    redirects: int = 0


@dataclass(frozen=True, slots=True)
class FetchedResponse:
    """The answer of a server. `headers` by lower-case name; `url`: the one that answered."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Target:
    url: str
    is_https: bool
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == (443 if self.is_https else 80) else f"{name}:{self.port}"


def _resolve(host: str, port: int) -> list[str]:
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in addresses]


def _connect(address: str, port: int, timeout_s: float) -> socket.socket:
    return socket.create_connection((address, port), timeout_s)


class Fetcher:
    """Sends requests. Thread-safe. Only the policy names a proxy, not the environment; no cookies are kept.

    Args:
        policy: what is allowed at the moment.
        resolve: the addresses of a host name.
        connect: a connection to an address.
        tls: checks certificates; by default by the system's authorities.
    """

    def __init__(
        self,
        policy: Callable[[], OutboundPolicy],
        resolve: Resolve = _resolve,
        connect: Connect = _connect,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._policy = policy
        self._resolve = resolve
        self._connect = connect
        self._tls = tls or ssl.create_default_context()
        # The system's resolver has no timeout of its own: a slow one keeps a thread of these, not the caller.
        self._resolvers = ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="runvitals-resolve")

    def get(
        self, url: str, limits: FetchLimits | None = None, headers: Mapping[str, str] | None = None
    ) -> FetchedResponse:
        """Send a GET request and return the response.

        Raises:
            Blocked: the URL, or a redirect, leads where no request is sent.
            FetchFailed: no usable answer. Any status is an answer.
        """
        limits = limits or FetchLimits()
        until_s = time.monotonic() + limits.total_s
        for _ in range(limits.redirects + 1):
            response = self._request("GET", url, None, headers or {}, limits, until_s)
            if response.status not in _REDIRECTS:
                return response
            url = urllib.parse.urljoin(url, response.headers.get("location", ""))
        raise FetchFailed("the server redirected the request, which is not followed any further")

    def post(
        self, url: str, body: bytes, headers: Mapping[str, str], limits: FetchLimits | None = None
    ) -> FetchedResponse:
        """Send a body; redirects are not followed. Raises as `get`."""
        limits = limits or FetchLimits()
        until_s = time.monotonic() + limits.total_s
        response = self._request("POST", url, body, headers, limits, until_s)
        if response.status in _REDIRECTS:
            raise FetchFailed("the server redirected the request, which is not followed")
        return response

    def connect(self, host: str, port: int, total_s: float, *, is_https: bool = True) -> socket.socket:
        """A connection to a checked address of a host, for a client of its own.

        Args:
            is_https: whether the client speaks TLS.

        Raises:
            Blocked: no connection is made there.
            FetchFailed: the host cannot be reached.
        """
        until_s = time.monotonic() + total_s
        name = f"[{host}]" if ":" in host else host
        scheme = "https" if is_https else "http"
        target, proxy = self._target(f"{scheme}://{name}:{port}/"), self._policy().proxy
        addresses = self._checked_addresses(target, until_s, through_proxy=proxy is not None)
        connected: socket.socket | None = None
        try:
            if proxy is None:
                return self._connect_socket(target, addresses, until_s)
            connected = self._connect(*proxy, _left_s(until_s))
            _open_tunnel(connected, target)
            return connected
        except (OSError, http.client.HTTPException) as error:
            if connected is not None:
                connected.close()
            raise FetchFailed(f"{target.host} cannot be reached: {error}") from error

    def check(self, url: str) -> None:
        """Raise Blocked for a URL that no request is sent to; names are resolved only by each request."""
        target, policy = self._target(url), self._policy()
        for address in _own_addresses(target.host):
            policy.check(address, target.port)

    def check_addresses(self, url: str, total_s: float) -> None:
        """As `check`, with the addresses that its name has now. Raises FetchFailed for an unknown name."""
        target, through_proxy = self._target(url), self._policy().proxy is not None
        self._checked_addresses(target, time.monotonic() + total_s, through_proxy=through_proxy)

    def _target(self, url: str) -> _Target:
        if len(url) > _MAX_URL or not url.isascii() or not url.isprintable() or "\\" in url or " " in url:
            raise Blocked(f"invalid URL; expected at most {_MAX_URL} printable ASCII characters")
        try:
            parts = urllib.parse.urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise Blocked("invalid URL") from None
        if not host or "@" in parts.netloc or "%" in host:
            raise Blocked("invalid URL; expected https://host/path without a user")
        policy = self._policy()
        if parts.scheme == "http":
            if host not in policy.http_hosts:
                allow = "an administrator can allow http to a host with the setting webhook_http"
                raise Blocked(f"the URL is not encrypted; expected https://, or {allow}")
        elif parts.scheme != "https":
            raise Blocked("invalid URL; expected https://")
        is_https = parts.scheme == "https"
        if port is None:
            port = 443 if is_https else 80
        if is_https or port != 80:
            policy.check_port(port)
        path = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        return _Target(url, is_https, host, port, path)

    def _request(
        self,
        method: str,
        url: str,
        body: bytes | None,
        headers: Mapping[str, str],
        limits: FetchLimits,
        until_s: float,
    ) -> FetchedResponse:
        target, proxy = self._target(url), self._policy().proxy
        _check_headers(headers)
        addresses = self._checked_addresses(target, until_s, through_proxy=proxy is not None)
        sent = {"User-Agent": "runvitals", "Accept-Encoding": "identity", "Connection": "close"}
        sent |= {**headers, "Host": target.host_header}
        try:
            if proxy is None:
                connected = self._connect_socket(target, addresses, until_s)
            else:
                connected = self._connect(*proxy, _left_s(until_s))
            with connected, _ending_at(until_s, connected):
                if proxy is not None:
                    _open_tunnel(connected, target)
                connection = http.client.HTTPConnection(target.host, target.port)
                connection.sock = self._encrypt(target, connected)
                with closing(connection):
                    connection.request(method, target.path, body, sent)
                    response = _answer(url, connection.getresponse(), limits.body_bytes)
                _left_s(until_s)  # without a length, an answer that was ended looks like a whole one
                return response
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise FetchFailed(f"{target.host} did not answer: {error or type(error).__name__}") from error

    def _checked_addresses(self, target: _Target, until_s: float, *, through_proxy: bool) -> list[str]:
        """The addresses of a target, all of which may be reached.

        A proxy resolves names itself, and often knows more of them: through one, an unknown name has no
        addresses here.
        """
        try:
            lookup = self._resolvers.submit(self._resolve, target.host, target.port)
            left_s = _left_s(until_s)
            addresses = list(lookup.result(min(left_s, _LOOK_UP_S) if through_proxy else left_s))
        except (OSError, UnicodeError, FutureTimeout) as error:
            if through_proxy:
                return []
            raise FetchFailed(f"the address of {target.host} is unknown: {error}") from error
        if not addresses:
            raise FetchFailed(f"{target.host} has no address")
        policy = self._policy()
        for address in addresses:  # one bad address is enough: which one is used is not ours to choose
            policy.check(address, target.port)
        return addresses

    def _connect_socket(self, target: _Target, addresses: Sequence[str], until_s: float) -> socket.socket:
        problem: OSError | None = None
        for address in addresses:
            try:
                return self._connect(address, target.port, _left_s(until_s))
            except OSError as error:
                problem = error
        raise problem or OSError("no address")

    def _encrypt(self, target: _Target, connected: socket.socket) -> socket.socket:
        return self._tls.wrap_socket(connected, server_hostname=target.host) if target.is_https else connected


def _own_addresses(host: str) -> set[str]:
    """The addresses of a host that needs no look-up: an IP address, in old forms too, or `localhost`."""
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return {"127.0.0.1"}
    try:
        addresses = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return set()
    return {str(entry[4][0]) for entry in addresses}


def _check_headers(headers: Mapping[str, str]) -> None:
    """Raise FetchFailed, without the value, for a header that cannot be sent."""
    for name, value in headers.items():
        if not value.isascii() or not value.isprintable():
            raise FetchFailed(f"the header {name} is not printable ASCII: check for a line break at its end")


def _open_tunnel(connected: socket.socket, target: _Target) -> None:
    """Have the proxy connect to the target."""
    name = f"[{target.host}]" if ":" in target.host else target.host
    authority = f"{name}:{target.port}"
    connected.sendall(
        f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: runvitals\r\n\r\n".encode()
    )
    # Nothing beyond the head is read: the target is silent until the client speaks.
    response = http.client.HTTPResponse(connected, method="CONNECT")
    try:
        response.begin()
    finally:
        response.close()
    if response.status != 200:
        raise OSError(f"the proxy answered {response.status} {response.reason}")


def _answer(url: str, response: http.client.HTTPResponse, body_bytes: int) -> FetchedResponse:
    body = response.read(body_bytes + 1)
    if len(body) > body_bytes:
        raise FetchFailed(f"the answer is larger than {body_bytes} bytes")
    if response.length:
        raise FetchFailed("the answer ended early, or took too long")
    headers = {name.lower(): value for name, value in response.getheaders()}
    return FetchedResponse(url, response.status, headers, body)


@contextmanager
def _ending_at(until_s: float, connected: socket.socket) -> Iterator[None]:
    """End the connection at the deadline: timeouts of sockets begin anew with every byte that arrives."""
    connected.settimeout(_left_s(until_s))
    with connected.dup() as watched:  # TLS detaches the socket that it wraps
        timer = threading.Timer(_left_s(until_s), _shut, (watched,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def _shut(watched: socket.socket) -> None:
    try:
        watched.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it has ended already


def _left_s(until_s: float) -> float:
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("it took too long")
    return left_s

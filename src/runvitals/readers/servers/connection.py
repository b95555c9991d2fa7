"""Calls a server's JSON API over one persistent connection."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from runvitals.base.http_client import HttpClient, ServerResponse
from runvitals.base.terminal_text import inert
from runvitals.errors import CommError
from runvitals.model.errors import UnknownRun

PREFIX = "/api/v1"
MAX_RESPONSE_BYTES = 256 * 1024 * 1024
"""A server sends at most 2,000,000 numbers in a response, which is at most 80 MB of JSON."""

_KEY_BYTES = 16
_REDIRECT = 307

Parameters = Iterable[tuple[str, Any]]


class ServerError(CommError, OSError):
    """The server rejected a request or is unreachable. The message is the server's, if it sent one.

    Attributes:
        status: HTTP status: 401 without a valid token, 422 for an invalid parameter …; None without a
            response.
        fields: what is wrong, by the name of the field, if the server said so.
        content: all that the server said, if it was a JSON object.
    """

    def __init__(
        self,
        text: str,
        status: int | None = None,
        fields: Mapping[str, str] | None = None,
        content: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.fields = dict(fields or {})
        self.content = dict(content or {})


class ApiConnection:
    """A connection to a server's API. Not thread-safe.

    Args:
        url: `http://host[:port][/path]` or https.
        token: access token, or None.
        timeout_s: for connecting, and for each read.

    Raises:
        ValueError: invalid URL.
    """

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self._arguments = url, token, timeout_s
        self._web = HttpClient(url, timeout_s, MAX_RESPONSE_BYTES)
        self.url = self._web.url
        self._headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def another(self) -> ApiConnection:
        """Return another connection to the same server, for another thread."""
        return ApiConnection(*self._arguments)

    def get(self, path: str, parameters: Parameters = ()) -> Any:
        """Return the response to a GET.

        Args:
            path: below `/api/v1`.
            parameters: names and values; None is omitted, and a list repeats the parameter.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        return self._call("GET", _with_query(path, parameters), None)

    def get_bytes_of_run(self, run_id: str, path: str, parameters: Parameters = ()) -> bytes:
        """Return the response body of a GET about a run, in the format that the parameters request.

        Raises:
            UnknownRun: no such run.
            ServerError: the server rejected the request or is unreachable.
        """
        path = _with_query(_of_run(run_id, path), parameters)
        response = self._request("GET", path, None, {**self._headers, "Accept": "*/*"})
        if response.status == 200:
            return _unpack(response)
        raise _to_unknown_run(self._refusal("GET", path, response))

    def get_range_of_run(self, run_id: str, path: str, first: int, end: int) -> bytes:
        """Some bytes of a file of a run: from `first` to before `end`.

        Raises:
            UnknownRun: no such run or file.
            ServerError: the server rejected the request, is unreachable, or sent something else.
        """
        try:
            return self.get_range(_of_run(run_id, path), (), first, end)
        except ServerError as error:
            raise _to_unknown_run(error) from None

    def get_file(self, path: str, parameters: Parameters = ()) -> bytes:
        """Return the response body of a GET of a whole file.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        path = _with_query(path, parameters)
        response = self._request("GET", path, None, {**self._headers, "Accept": "*/*"})
        if response.status != 200:
            raise self._refusal("GET", path, response)
        return _unpack(response)

    def get_range(self, path: str, parameters: Parameters, first: int, end: int) -> bytes:
        """Some bytes of a file: from `first` to before `end`.

        Raises:
            ServerError: the server rejected the request, is unreachable, or sent something else.
        """
        part = self.range_or_address(path, parameters, first, end)
        if isinstance(part, str):
            raise ServerError(f"{self.url}{PREFIX}{path} leads to another address")
        return part

    def range_or_address(self, path: str, parameters: Parameters, first: int, end: int) -> bytes | str:
        """As `get_range`, or the address to which the server redirects: it signs those in buckets."""
        path = _with_query(path, parameters)
        headers = {**self._headers, "Accept": "*/*", "Range": f"bytes={first}-{end - 1}"}
        del headers["Accept-Encoding"]
        response = self._request("GET", path, None, headers)
        if response.status == _REDIRECT and (address := response.headers.get("Location")):
            return address
        if response.status != 206:
            raise self._refusal("GET", path, response)
        if len(response.body) != end - first:
            raise ServerError(f"{self.url}{PREFIX}{path}: the connection was closed before the end")
        return response.body

    def post(self, path: str) -> Any:
        """Return the response to a POST without parameters. It may be sent twice, and is carried out once."""
        return self._call("POST", path, b"{}")

    def send(self, method: str, path: str, body: Any) -> Any:
        """Return the response to a change with a JSON body, or without one if it is None.

        None if it has no content.

        Raises:
            ServerError: the server rejected the request or is unreachable.
        """
        return self._send(
            method, path, None if body is None else json.dumps(body).encode(), "application/json"
        )

    def send_bytes(self, path: str, body: bytes, content_type: str) -> Any:
        """Return the response to the upload of a file.

        Raises:
            ServerError: the server rejected it or is unreachable.
        """
        return self._send("POST", path, body, content_type)

    def _send(self, method: str, path: str, body: bytes | None, content_type: str) -> Any:
        key = {"Idempotency-Key": secrets.token_hex(_KEY_BYTES)}
        headers = {**self._headers, "Content-Type": content_type, **key}
        response = self._request(method, path, body, headers)
        if response.status == 204:
            return None
        if response.status in (200, 201, 202):
            return self._content(path, response)
        raise self._refusal(method, path, response)

    def call(
        self, method: str, path: str, names: Mapping[str, str], body: Any, parameters: Parameters = ()
    ) -> Any:
        """As `get` or `send`, to a path as `path_with` takes it."""
        path = _with_query(path_with(path, names), parameters)
        return self.get(path) if method == "GET" else self.send(method, path, body)

    def get_of_run(self, run_id: str, path: str = "", parameters: Parameters = ()) -> Any:
        """Return the response to a GET about a run, or raise UnknownRun."""
        try:
            return self.get(_of_run(run_id, path), parameters)
        except ServerError as error:
            raise _to_unknown_run(error) from None

    def post_to_run(self, run_id: str, path: str) -> Any:
        """See `get_of_run`."""
        try:
            return self.post(_of_run(run_id, path))
        except ServerError as error:
            raise _to_unknown_run(error) from None

    def close(self) -> None:
        """Close the connection to the server."""
        self._web.close()

    def _call(self, method: str, path: str, body: bytes | None) -> Any:
        headers = self._headers
        if body is not None:
            # The same for both attempts, where a kept connection has ended.
            key = {"Idempotency-Key": secrets.token_hex(_KEY_BYTES)}
            headers = {**headers, "Content-Type": "application/json", **key}
        response = self._request(method, path, body, headers)
        if response.status == 200:
            return self._content(path, response)
        raise self._refusal(method, path, response)

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> ServerResponse:
        try:
            return self._web.request(method, PREFIX + path, body, headers)
        except OSError as error:
            raise ServerError(str(error)) from error

    def _content(self, path: str, response: ServerResponse) -> Any:
        try:
            return json.loads(_unpack(response))
        except (ValueError, ServerError, RecursionError):  # not JSON; not unpacked; nested too deeply
            raise ServerError(
                f"{self.url}{PREFIX}{path} returned {response.status} with invalid JSON: "
                f"{response.text()!r}; is it a runvitals server?",
                response.status,
            ) from None

    def _refusal(self, method: str, path: str, response: ServerResponse) -> ServerError:
        content = self._content(path, response)
        text = content.get("error") if isinstance(content, dict) else None
        message = inert(text) if text else f"{method} {self.url}{PREFIX}{path}: {response.status}"
        if response.status == 401 and "Authorization" not in self._headers:
            message = f"{self.url} requires a key: `runvitals login {self.url}`, or set RUNVITALS_TOKEN"
        fields = content.get("fields") if isinstance(content, dict) else None
        return ServerError(
            message,
            response.status,
            fields if isinstance(fields, dict) else None,
            content if isinstance(content, dict) else None,
        )


def path_with(path: str, names: Mapping[str, str]) -> str:
    """Return a path whose parameters, with their names in braces, have values.

    Example:
        >>> path_with("/teams/{team}/members", {"team": "a/b"})
        '/teams/a%2Fb/members'
    """
    return path.format_map({name: quote(value, safe="") for name, value in names.items()})


def _with_query(path: str, parameters: Parameters) -> str:
    query = urlencode([(name, value) for name, value in parameters if value is not None], doseq=True)
    return f"{path}?{query}" if query else path


def _of_run(run_id: str, path: str) -> str:
    return f"/runs/{quote(run_id, safe='')}{path}"


def _to_unknown_run(error: ServerError) -> Exception:
    return UnknownRun(str(error)) if error.status == 404 else error


def _unpack(response: ServerResponse) -> bytes:
    """Return the body without compression.

    Raises:
        ServerError: it is too large, cut off, or not compressed.
    """
    if response.headers.get("Content-Encoding", "") != "gzip":
        return response.body
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        body = unpacker.decompress(response.body, MAX_RESPONSE_BYTES)
    except zlib.error as error:
        raise ServerError(f"the response cannot be unpacked: {error}", response.status) from None
    if not unpacker.eof:
        text = f"the response is cut off, or larger than {MAX_RESPONSE_BYTES:,} bytes"
        raise ServerError(text, response.status)
    return body

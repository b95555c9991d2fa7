"""Requests to the API of another system, one at a time, with pauses where the server asks for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from runvitals.base.http_client import HttpClient, ServerResponse
from runvitals.base.json_codec import dumps, loads

_TRIES = 6
_FIRST_WAIT_S = 1.0
_MAX_WAIT_S = 120.0
_TIMEOUT_S = 120.0
MAX_BYTES = 256 * 1024 * 1024
"""Bytes of a response, and of a downloaded file."""


class ApiError(ValueError):
    """The server rejected a request.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class JsonApi:
    """A server's API.

    Args:
        url: prefix of all paths.
        headers: the headers of each request to this server.
        tls: an `ssl.SSLContext`, if not the default one.
        sleep: waits so many seconds.

    Raises:
        ValueError: invalid URL.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        tls: Any = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = HttpClient(url, _TIMEOUT_S, MAX_BYTES, tls)
        self._headers = dict(headers)
        self._sleep = sleep
        self.url = self._http.url

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON object that a GET returns.

        Raises:
            ApiError: the server rejected it.
            OSError: the server could not be reached, also after several tries.
        """
        parameters = {name: value for name, value in (query or {}).items() if value is not None}
        full = f"{path}?{urlencode(parameters, doseq=True, quote_via=quote)}" if parameters else path
        return self._object(path, self._request("GET", full, None))

    def post(self, path: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON object that a POST returns; see `get`."""
        return self._object(path, self._request("POST", path, dumps(value)))

    def content(self, path: str) -> bytes | None:
        """Return the content of a file, None if it is too large; raise as `get`."""
        body = self._request("GET", path, None).body
        return body if len(body) < MAX_BYTES else None

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _request(self, method: str, path: str, body: bytes | None) -> ServerResponse:
        headers = {**self._headers, **({} if body is None else {"Content-Type": "application/json"})}
        wait_s = _FIRST_WAIT_S
        for tries_left in reversed(range(_TRIES)):
            try:
                response = self._http.request(method, path, body, headers)
            except OSError:
                if not tries_left:
                    raise
            else:
                if response.status == 200:
                    self._rest(response)
                    return response
                if not response.temporary or not tries_left:
                    text = f"{self.url}{path.partition('?')[0]}: {response.status} {response.text()}"
                    raise ApiError(text.strip(), response.status)
                wait_s = response.retry_after_s or wait_s
            self._sleep(min(wait_s, _MAX_WAIT_S))
            wait_s *= 2
        raise AssertionError("unreachable: the last try returns or raises")

    def _rest(self, response: ServerResponse) -> None:
        """Wait if the server says that no request is left for now."""
        if response.headers.get("RateLimit-Remaining", "").strip() == "0":
            seconds = response.headers.get("RateLimit-Reset", "").strip()
            if seconds.isdigit():
                self._sleep(min(float(seconds), _MAX_WAIT_S))

    def _object(self, path: str, response: ServerResponse) -> dict[str, Any]:
        try:
            value = loads(response.body)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ApiError(f"{self.url}{path} returned no JSON object: {response.text()}", response.status)
        return value

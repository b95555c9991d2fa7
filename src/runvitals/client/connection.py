"""Calls of a server's API: JSON over one connection that is kept."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlencode

from runvitals.query.run_handle import UnknownRun
from runvitals.relay.engine.http_client import HttpClient, HttpResponse
from runvitals.terminal import inert

PREFIX = "/api/v1"
MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""The 2,000,000 numbers that a server puts into one answer are 80 MB of JSON at most."""

Parameters = Iterable[tuple[str, Any]]


class ServerError(Exception):
    """A server refused a call, or could not be reached.

    The text is the server's own, where it gave one.

    Attributes:
        status: of the HTTP answer: 401 without a valid token, 422 for a wrong parameter …; None without one.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Connection:
    """A server. Used from one thread at a time.

    Args:
        url: `http://host[:port][/path]` or https.
        token: what it knows the caller by, or None.
        timeout_s: for connecting, and for each wait.

    Raises:
        ValueError: not such a URL.
    """

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        self._web = HttpClient(url, timeout_s, MAX_ANSWER_BYTES)
        self.url = self._web.url
        self._headers = {"Accept": "application/json", "Accept-Encoding": "gzip"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def get(self, path: str, parameters: Parameters = ()) -> Any:
        """The answer to a GET.

        Args:
            path: below `/api/v1`.
            parameters: names and values; None is left out, a list is given value by value.

        Raises:
            ServerError: refused, or no answer.
        """
        return self._call("GET", _with_query(path, parameters), None)

    def get_bytes_of_run(self, run_id: str, path: str, parameters: Parameters = ()) -> bytes:
        """The answer to a GET about a run whose form the parameters name, as it came.

        Raises:
            UnknownRun: there is none.
            ServerError: refused, or no answer.
        """
        path = _with_query(_of_run(run_id, path), parameters)
        answer = self._request("GET", path, None, {**self._headers, "Accept": "*/*"})
        if answer.status == 200:
            return _unpacked(answer)
        raise _unknown(self._refusal("GET", path, answer))

    def post(self, path: str) -> Any:
        """The answer to a POST that may be repeated, and says all by its path."""
        return self._call("POST", path, b"{}")

    def get_of_run(self, run_id: str, path: str = "", parameters: Parameters = ()) -> Any:
        """The answer to a GET about a run.

        Raises:
            UnknownRun: there is none.
        """
        try:
            return self.get(_of_run(run_id, path), parameters)
        except ServerError as error:
            raise _unknown(error) from None

    def post_to_run(self, run_id: str, path: str) -> Any:
        """See `get_of_run`."""
        try:
            return self.post(_of_run(run_id, path))
        except ServerError as error:
            raise _unknown(error) from None

    def close(self) -> None:
        self._web.close()

    def _call(self, method: str, path: str, body: bytes | None) -> Any:
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
        answer = self._request(method, path, body, headers)
        if answer.status == 200:
            return self._content(path, answer)
        raise self._refusal(method, path, answer)

    def _request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> HttpResponse:
        try:
            return self._web.request(method, PREFIX + path, body, headers)
        except OSError as error:
            raise ServerError(f"{self.url} gives no answer: {error}") from error

    def _content(self, path: str, answer: HttpResponse) -> Any:
        try:
            return json.loads(_unpacked(answer))
        except (ValueError, EOFError, OSError):  # not JSON; cut off; not gzip
            raise ServerError(
                f"{self.url}{PREFIX}{path} answered {answer.status}, but no JSON: {answer.text()!r}; "
                "is it a runvitals server?",
                answer.status,
            ) from None

    def _refusal(self, method: str, path: str, answer: HttpResponse) -> ServerError:
        content = self._content(path, answer)
        text = content.get("error") if isinstance(content, dict) else None
        said = inert(text) if text else f"{method} {self.url}{PREFIX}{path}: {answer.status}"
        return ServerError(said, answer.status)


def _with_query(path: str, parameters: Parameters) -> str:
    query = urlencode([(name, value) for name, value in parameters if value is not None], doseq=True)
    return f"{path}?{query}" if query else path


def _of_run(run_id: str, path: str) -> str:
    return f"/runs/{quote(run_id, safe='')}{path}"


def _unknown(error: ServerError) -> Exception:
    return UnknownRun(str(error)) if error.status == 404 else error


def _unpacked(answer: HttpResponse) -> bytes:
    packed = answer.headers.get("Content-Encoding", "") == "gzip"
    return gzip.decompress(answer.body) if packed else answer.body

"""Gets an API key by a code that the user confirms in the browser."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from runvitals.base.http_client import HttpClient, ServerResponse
from runvitals.base.json_codec import dumps, loads
from runvitals.base.numbers import parse_number

_BEGIN = "/api/v1/auth/device"
_TOKEN = "/api/v1/auth/device/token"
_TIMEOUT_S = 10.0
_MAX_INTERVAL_S = 60.0
_MAX_WAIT_S = 1800.0
"""Codes end earlier; the server says so."""
_NO_ACCOUNTS = (401, 403, 404, 405)
"""Statuses with which servers without accounts respond."""


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A code, the page of the server on which the user confirms it, and how often to ask for the key."""

    code: str
    page: str
    secret: str
    interval_s: float


@dataclass(frozen=True, slots=True)
class ReceivedKey:
    """A key, and the user whose it is."""

    key: str
    user: str


class BrowserSignIn:
    """A sign-in at one server.

    Args:
        url: the server.
        sleep: waits for some seconds.

    Example:
        >>> sign_in = BrowserSignIn("https://runs.example.org")
        >>> code = sign_in.begin("gpu-box")
        >>> print("open", code.page, "and enter", code.code)
        >>> key = sign_in.wait(code)
    """

    def __init__(self, url: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._url = url.rstrip("/")
        self._sleep = sleep

    def begin(self, name: str) -> DeviceCode | None:
        """Return a code for the user; None if the server has no accounts.

        Args:
            name: of this machine; the key gets it.

        Raises:
            OSError: the server could not be reached.
            ValueError: it refused, or responded with something else.
        """
        response = self._post(_BEGIN, {"name": name})
        if response.status in _NO_ACCOUNTS:
            return None
        fields = _json(response, 201)
        path, interval_s = str(fields.get("path")), parse_number(str(fields.get("interval_s")), 0.0, 1e9)
        # A path such as `@host` would make the address that of another server.
        if (
            interval_s is None
            or not path.startswith("/")
            or not {"user_code", "device_code"} <= fields.keys()
        ):
            raise ValueError(f"{self._url} is not a runvitals server: invalid answer to {_BEGIN}")
        return DeviceCode(
            str(fields["user_code"]),
            self._url + path,
            str(fields["device_code"]),
            min(max(interval_s, 1.0), _MAX_INTERVAL_S),
        )

    def wait(self, code: DeviceCode) -> ReceivedKey:
        """Return the key, once the user has confirmed the code.

        Raises:
            OSError: the server could not be reached.
            ValueError: the user denied it, or the code has expired.
        """
        left_s = _MAX_WAIT_S
        while True:
            response = self._post(_TOKEN, {"device_code": code.secret})
            if response.status != 202 and not response.temporary:
                fields = _json(response, 201)
                return ReceivedKey(str(fields.get("key", "")), str(fields.get("user", "")))
            pause_s = max(code.interval_s, min(response.retry_after_s or 0.0, _MAX_INTERVAL_S))
            left_s -= pause_s
            if left_s < 0:
                raise ValueError("nobody confirmed the code in time; run the command again")
            self._sleep(pause_s)

    def _post(self, path: str, body: dict[str, str]) -> ServerResponse:
        client = HttpClient(self._url, _TIMEOUT_S)
        try:
            return client.post(path, dumps(body), {"Content-Type": "application/json"})
        except OSError as error:
            raise OSError(f"could not connect to {self._url}: {error}") from error
        finally:
            client.close()


def _json(response: ServerResponse, expected: int) -> dict[str, Any]:
    """Return the JSON object in a response with the expected status.

    Raises:
        ValueError: another status, or no JSON object.
    """
    try:
        fields = loads(response.body)
    except ValueError:
        fields = None
    if response.status == expected and isinstance(fields, dict):
        return fields
    error = fields.get("error") if isinstance(fields, dict) else None
    raise ValueError(f"the server refused ({response.status}): {error or response.text()}")

"""Over HTTP, other users of the machine need a key, and where no server checks keys they have no access."""

from __future__ import annotations

from functools import partial

import anyio
import pytest
from starlette.responses import PlainTextResponse

from runvitals.server.http.application_call import ApplicationResponse, response_of
from runvitals.tools.assistant.loopback_http import OwnUserOrKey

SOMEBODY = ("127.0.0.1", 1)  # no connection of this machine, so nobody knows whose it is


def answer(takes_keys: bool, authorization: str | None) -> ApplicationResponse:
    headers = [] if authorization is None else [(b"authorization", authorization.encode())]
    scope: dict[str, object] = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    scope |= {"client": SOMEBODY, "server": ("127.0.0.1", 2)}
    app = OwnUserOrKey(PlainTextResponse("here"), takes_keys)
    return anyio.run(partial(response_of, app, scope))


@pytest.mark.parametrize(
    ("takes_keys", "authorization", "text"),
    [
        (True, "Bearer rvt-key", "here"),
        (True, None, "Authorization: Bearer KEY"),
        (True, "Bearer ", "Authorization: Bearer KEY"),
        (True, "Basic rvt-key", "Authorization: Bearer KEY"),
        (False, "Bearer rvt-key", "use stdio"),
        (False, None, "use stdio"),
    ],
)
def test_who_is_answered(takes_keys: bool, authorization: str | None, text: str) -> None:
    response = answer(takes_keys, authorization)
    assert text in response.content.decode()
    assert response.status == (200 if text == "here" else 401)

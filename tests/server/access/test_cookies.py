"""Cookies of strangers: whatever is in them, reading them takes no time that others would notice."""

from __future__ import annotations

import time

import httpx
import pytest

from runvitals.server.access.identification.credentials import cookie_of, credential_of
from runvitals.server.access.identification.token_required import COOKIE, token_of
from tests.patience import PATIENCE_S
from tests.processor_time import measured
from tests.server.access.organisation import ServedOrganisation

BACKSLASHES = '"' + r"\a" * 30_000 + '"'
"""Python's `http.cookies` needs seconds for it: time proportional to the square of its length."""
MAX_COST = 20
"""In multiples of a million additions: hundreds of times what it takes."""


def test_a_cookie_is_found_among_others_and_in_several_headers() -> None:
    headers = [(b"cookie", b"a=1; b=2"), (b"accept", b"c=4"), (b"cookie", b' c="3"')]
    assert [cookie_of(headers, name) for name in "abcd"] == ["1", "2", "3", ""]
    assert token_of({b"cookie": f"x=y; {COOKIE}=rvt_1".encode()}) == "rvt_1"
    assert token_of({b"cookie": b"x=y"}) is None


@pytest.mark.parametrize("name", [COOKIE, "runvitals_session", "other"])
def test_a_quoted_cookie_takes_linear_time(name: str) -> None:
    cookie = f"{name}={BACKSLASHES}".encode()
    with measured() as cost:
        token_of({b"cookie": cookie})
        credential_of([(b"cookie", cookie)], secure=False)
    assert cost.times < MAX_COST


def test_strangers_cannot_stop_the_server_by_a_cookie(served: ServedOrganisation) -> None:
    def times(cookie: str) -> float:
        """The cost of a request that looks for a cookie which was not sent."""
        with measured(time.process_time) as cost:
            url = f"{served.url}/api/v1/auth/second-factor"
            response = httpx.get(url, headers={"cookie": cookie}, timeout=PATIENCE_S)
        assert response.status_code == 410, response.text
        return cost.times

    times("other=1")  # loads the routes
    assert times(f"other=2; last={BACKSLASHES}") < MAX_COST

"""`Retry-After` and `Date` headers of responses."""

from __future__ import annotations

import time
from email.message import Message
from email.utils import formatdate

import pytest

from runvitals.relay.engine.delivery_thread import backoff
from runvitals.relay.engine.http_client import ServerResponse


def _response(**headers: str) -> ServerResponse:
    message = Message()
    for name, text in headers.items():
        message[name.replace("_", "-")] = text
    return ServerResponse(503, message, b"")


_EARLY, _LATE = "Thu, 01 Jan 0001 00:00:00", "Fri, 31 Dec 9999 23:59:59"
_NONE = ["nan", "inf", "-inf", "-5", "1e400", "9" * 5000, "soon", "", "Mon, 32 Foo 2026", f"{_EARLY} GMT"]


@pytest.mark.parametrize("text", _NONE)
def test_invalid_retry_after_is_ignored(text: str) -> None:
    after_s = _response(Retry_After=text).retry_after_s
    assert after_s is None or after_s == 0.0
    assert backoff().failed(0.0, after_s) >= 1.0


def test_retry_after_in_seconds_or_as_a_date() -> None:
    assert _response(Retry_After="7").retry_after_s == 7.0
    after_s = _response(Retry_After=formatdate(time.time() + 100, usegmt=True)).retry_after_s
    assert after_s is not None
    assert 90 < after_s <= 100
    late_s = _response(Retry_After=f"{_LATE} GMT").retry_after_s
    assert backoff().failed(0.0, late_s) <= 3600 * 1.5


@pytest.mark.parametrize(
    "text", ["", "nan", "Thu, 01 Jan 0001 00:00:00 -2359", "Fri, 31 Dec 9999 23:59:59 -2359"]
)
def test_invalid_date_header(text: str) -> None:
    date_ms = _response(Date=text).date_ms
    assert date_ms is None or abs(date_ms) < 1 << 60

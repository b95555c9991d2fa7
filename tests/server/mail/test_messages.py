"""The texts of messages."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

import pytest

from runvitals.server.mail import messages
from runvitals.server.mail.message import Link, Message

URL = "https://runs.lab.example"
HOSTILE = 'x\r\nBcc: eve@example.org <img src="https://evil.example/x.png">\u202e'
VALID = {"path": "/-/path", "token": "TOKEN", "team": "vision"}
BUILDERS = [
    function
    for _, function in inspect.getmembers(messages, inspect.isfunction)
    if inspect.signature(function).return_annotation == "Message" and not function.__name__.startswith("_")
]


def _built(builder: Callable[..., Message]) -> Message:
    values: dict[str, object] = {}
    for name, parameter in inspect.signature(builder).parameters.items():
        if parameter.annotation == "int":
            values[name] = 1_800_000_000_000
        elif parameter.annotation == "Sequence[str]":
            values[name] = ["GitHub", HOSTILE]
        else:
            values[name] = VALID.get(name, HOSTILE)
    return builder(**values)


@pytest.mark.parametrize("builder", BUILDERS, ids=lambda builder: builder.__name__)
def test_what_users_wrote_stays_text(builder: Callable[..., Message]) -> None:
    message = _built(builder)
    assert "\n" not in message.subject
    assert "\r" not in message.subject
    shown = message.html(URL, HOSTILE)
    assert not re.search(r"<(?!/?(html|head|meta|body|p|a|hr|small|!doctype)\b)", shown)
    assert "src=" not in shown.replace("&lt;img src=", "")
    assert "\u202e" not in message.text(URL, HOSTILE)
    for line in message.text(URL, HOSTILE).splitlines():
        assert not line.startswith("Bcc:")


def test_the_secret_of_a_link_is_in_its_fragment() -> None:
    for message, path in (
        (messages.confirm_address("ada", "a@b.example", "TOKEN"), "/-/verify"),
        (messages.reset_password("ada", "TOKEN"), "/-/reset"),
        (messages.invitation("vision", "Ada", "member", "TOKEN"), "/-/invitation"),
    ):
        assert message.link == Link(message.link.label, f"{path}#TOKEN")
        assert f"{URL}{path}#TOKEN" in message.text(URL, "lab")


def test_what_an_inviter_wrote_is_quoted() -> None:
    message = messages.invitation("vision", "Ada", "member", "T", "Join us\n\nplease")
    assert "Ada wrote: “Join us please”" in message.text(URL, "lab")
    assert "wrote" not in messages.invitation("vision", "Ada", "member", "T", "  ").text(URL, "lab")


def test_times_are_in_the_time_zone_of_the_reader() -> None:
    summer_ms = 1_782_945_000_000  # 2026-07-01 22:30 UTC
    message = messages.membership_ends_soon("vision", summer_ms)
    assert "until 2026-07-01 22:30 UTC." in message.text(URL, "lab")
    for form in (message.text, message.html):
        assert "until 2026-07-02 00:30 Europe/Berlin." in form(URL, "lab", "Europe/Berlin")
        assert "until 2026-07-01 22:30 UTC." in form(URL, "lab", "Mars/Olympus")


def test_users_cannot_write_times() -> None:
    message = messages.invitation("vision", "Ada", "member", "T", "\ue0001\ue001")
    assert "1970" not in message.text(URL, "lab")

"""The settings of mail."""

from __future__ import annotations

import pytest

from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.mail.settings import (
    SmtpServer,
    mail_settings,
    masked_smtp_url,
    sealed_smtp_url,
    server_url,
    smtp_server,
)

BOX = SecretBox({"k": bytes(32)})
STORED = {"mail_from": "runs@lab.example", "url": "https://runs.lab.example", "name": "Lab"}


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://mail.example", SmtpServer("mail.example", 587, "starttls")),
        ("smtp://mail.example:25?tls=starttls", SmtpServer("mail.example", 25, "starttls")),
        ("smtps://u%40x:p%3A@mail.example", SmtpServer("mail.example", 465, "tls", "u@x", "p:")),
        ("smtp://relay.example?tls=none", SmtpServer("relay.example", 25, "none")),
        ("smtp://u:p@[::1]:1025?tls=none", SmtpServer("::1", 1025, "none", "u", "p")),
    ],
)
def test_urls_of_mail_servers(url: str, server: SmtpServer) -> None:
    assert smtp_server(url) == server


@pytest.mark.parametrize(
    "url",
    [
        "https://u:hunter2@mail.example",
        "smtp://u:hunter2@mail.example?tls=none",
        "smtp://u:hunter2@mail.example?tls=maybe",
        "smtp://u:hunter2@mail.example/path",
        "smtp://u:hunter2@mail.example:port",
        "smtp://hunter2@mail.example",
        "smtp://u:hunter2@",
        "smtps://u:hunter2@mail.example?tls=none",
        "hunter2",
    ],
)
def test_invalid_urls_are_refused_without_showing_the_password(url: str) -> None:
    with pytest.raises(ValueError, match="invalid smtp_url") as raised:
        smtp_server(url)
    assert "hunter2" not in str(raised.value)


def test_no_password_is_shown() -> None:
    assert "p4ss" not in repr(smtp_server("smtps://u:p4ss@mail.example"))
    assert masked_smtp_url("smtps://u:p4ss@mail.example:465") == "smtps://u:…@mail.example:465"
    assert masked_smtp_url("smtp://mail.example?tls=none") == "smtp://mail.example?tls=none"


def test_stored_settings_are_encrypted() -> None:
    sealed = sealed_smtp_url("smtps://u:p4ss@mail.example", BOX)
    assert "p4ss" not in sealed
    settings = mail_settings(STORED | {"smtp_url": sealed}, {}, BOX)
    assert settings is not None
    assert (settings.server.password, settings.organisation) == ("p4ss", "Lab")
    with pytest.raises(SecretUnreadable):
        mail_settings(STORED | {"smtp_url": sealed}, {}, SecretBox({"other": bytes(32)}))
    with pytest.raises(SecretUnreadable):
        mail_settings(STORED | {"smtp_url": "smtps://not.sealed"}, {}, BOX)


def test_the_environment_takes_precedence() -> None:
    sealed = sealed_smtp_url("smtps://stored.example", BOX)
    environment = {"RUNVITALS_SMTP_URL": "smtps://mail.example", "RUNVITALS_URL": "https://other.example/"}
    settings = mail_settings(STORED | {"smtp_url": sealed}, environment, BOX)
    assert settings is not None
    assert (settings.server.host, settings.url) == ("mail.example", "https://other.example")
    assert settings.sender == "runs@lab.example"


@pytest.mark.parametrize(
    "url",
    [
        "runs.example",
        "ftp://x",
        "https://",
        "https://u:p@x.example",
        "https://x.example/#f",
        "https://x/?q",
        "https://x\n",
    ],
)
def test_invalid_urls_of_this_server(url: str) -> None:
    with pytest.raises(ValueError, match="invalid url"):
        server_url(url)

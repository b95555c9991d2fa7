"""`runvitals server mail-test` with a real mail server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.cli import main
from tests.server.mail.receiver import Receiver

SECRET = "a-secret-word"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with Receiver() as running:
        yield running


def mail_test(folder: Path, *words: str) -> int:
    return main(["server", "--store", str(folder), "mail-test", *words])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> None:
    monkeypatch.setenv("RUNVITALS_SMTP_URL", receiver.url)
    monkeypatch.setenv("RUNVITALS_MAIL_FROM", "runs@lab.example")
    monkeypatch.setenv("RUNVITALS_URL", "https://runs.lab.example/")


def test_one_mail_arrives(tmp_path: Path, receiver: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    receiver.received.clear()
    assert mail_test(tmp_path, "ada@lab.example") == 0
    [mail] = receiver.received
    assert mail["To"] == "ada@lab.example"
    out = capsys.readouterr().out
    assert (
        out == f"127.0.0.1:{receiver.port} (none) accepted a mail from runs@lab.example to ada@lab.example\n"
    )


def test_what_failed_is_named_and_no_secret_is_shown(
    tmp_path: Path,
    receiver: Receiver,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def error(*words: str) -> str:
        assert mail_test(tmp_path, *words) == 1
        shown = capsys.readouterr()
        assert SECRET not in shown.out + shown.err
        return shown.err

    receiver.handler.refuse["gone@lab.example"] = "550 no such mailbox"
    refused = f"the mail server 127.0.0.1:{receiver.port} (none) refused the recipient: 550 no such mailbox"
    assert refused in error("gone@lab.example")
    assert "address" in error("not-an-address")
    monkeypatch.setenv("RUNVITALS_SMTP_URL", f"smtp://ada:{SECRET}@127.0.0.1:{receiver.port}?tls=none")
    assert f"127.0.0.1:{receiver.port} cannot be used: the sign-in as ada failed" in error("a@lab.example")
    monkeypatch.setenv("RUNVITALS_SMTP_URL", f"smtp://ada:{SECRET}@127.0.0.1:{receiver.port}")
    assert "STARTTLS failed" in error("a@lab.example")
    monkeypatch.setenv("RUNVITALS_SMTP_URL", f"smtps://ada:{SECRET}@127.0.0.1:1")
    assert "127.0.0.1:1 cannot be used: the connection failed" in error("a@lab.example")
    monkeypatch.delenv("RUNVITALS_SMTP_URL")
    assert "RUNVITALS_SMTP_URL" in error("a@lab.example")

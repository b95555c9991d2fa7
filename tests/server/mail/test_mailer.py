"""The queue of mail, and sending it to a real mail server."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail import messages
from runvitals.server.mail.mailer import MAX_AN_HOUR, Mailer
from runvitals.server.mail.message import Message
from runvitals.server.mail.smtp import MailServerUnavailable
from runvitals.server.mail.storage.outgoing_mail import ALERT, LEASE_MS, add_mail
from runvitals.server.metadata_store import MetadataStore
from tests.patience import PATIENCE_S
from tests.server.mail.conftest import T0, SetClock
from tests.server.mail.receiver import Receiver

MINUTE = 60_000
HOUR = 60 * MINUTE
NewMailer = Callable[[str], Mailer]


def _rows(metadata_store: MetadataStore) -> list[tuple[str, bool, str | None]]:
    query = text("SELECT state, sealed IS NULL AS emptied, error FROM outgoing_mail ORDER BY id")
    rows = metadata_store.write(lambda connection: connection.execute(query).all())
    return [(row.state, bool(row.emptied), row.error) for row in rows]


def test_a_message_arrives(mailer: Mailer, receiver: Receiver, metadata_store: MetadataStore) -> None:
    assert mailer.configured
    assert mailer.send(messages.reset_password("ada", "SECRET-TOKEN"), "ada@example.org", T0)
    assert mailer.send_due() == 1
    (mail,) = receiver.received
    assert str(mail["From"]) == "runvitals <runs@lab.example>"
    assert (mail["To"], mail["Subject"]) == ("ada@example.org", "Reset your password")
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Date"].datetime.timestamp() * 1000 == T0
    assert mail["Message-ID"].endswith("@lab.example>")
    plain, shown = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert shown is not None
    assert "https://runs.lab.example/-/reset#SECRET-TOKEN" in plain.get_content()
    assert 'href="https://runs.lab.example/-/reset#SECRET-TOKEN"' in shown.get_content()
    assert _rows(metadata_store) == [("sent", True, None)]
    assert mailer.send_due() == 0


def test_secrets_are_encrypted_while_they_wait(mailer: Mailer, metadata_store: MetadataStore) -> None:
    mailer.send(messages.reset_password("ada", "SECRET-TOKEN"), "ada@example.org", T0)
    sealed = metadata_store.write(lambda c: c.execute(text("SELECT sealed FROM outgoing_mail")).scalar_one())
    assert len(sealed) > 100
    assert b"SECRET-TOKEN" not in bytes(sealed)


def test_a_message_is_part_of_the_transaction(
    mailer: Mailer, receiver: Receiver, metadata_store: MetadataStore
) -> None:
    mail = mailer.prepare(messages.password_changed("ada"), "ada@example.org", T0)
    assert mail is not None
    with pytest.raises(RuntimeError, match="rolled back"):
        metadata_store.write(lambda connection: _add_and_fail(connection, mail))
    assert mailer.send_due() == 0
    metadata_store.write(lambda connection: add_mail(connection, mail))
    assert mailer.send_due() == 1


def _add_and_fail(connection: object, mail: object) -> None:
    add_mail(connection, mail)
    raise RuntimeError("rolled back")


def test_without_a_mail_server_nothing_waits(
    metadata_store: MetadataStore, box: SecretBox, clock: SetClock
) -> None:
    mailer = Mailer(metadata_store, box, clock, {})
    assert not mailer.configured
    assert not mailer.send(messages.password_changed("ada"), "ada@example.org", T0)
    assert _rows(metadata_store) == []
    assert mailer.send_due() == 0
    with pytest.raises(ValueError, match="smtp_url is missing"):
        mailer.send_trial("ada@example.org")


def test_a_mail_server_without_a_sender_is_not_configured(
    metadata_store: MetadataStore, box: SecretBox, clock: SetClock
) -> None:
    mailer = Mailer(metadata_store, box, clock, {"RUNVITALS_SMTP_URL": "smtps://mail.example"})
    assert not mailer.configured
    with pytest.raises(ValueError, match="mail_from is missing"):
        mailer.settings()


def test_after_three_hours_without_a_mail_server_a_message_is_sent_once(
    new_mailer: NewMailer, clock: SetClock
) -> None:
    with Receiver() as gone:
        port = gone.port
    mailer = new_mailer(f"smtp://127.0.0.1:{port}?tls=none")
    mailer.send(messages.invitation("vision", "Ada", "member", "T"), "bob@example.org", T0)
    for _ in range(18):
        with pytest.raises(MailServerUnavailable, match=f"127.0.0.1:{port} cannot be used"):
            mailer.send_due()
        clock.now_ms += 10 * MINUTE
    with Receiver(port=port) as back:
        assert mailer.send_due() == 1
        assert mailer.send_due() == 0
        assert len(back.received) == 1


def test_a_link_that_has_expired_is_not_sent(
    mailer: Mailer, receiver: Receiver, clock: SetClock, metadata_store: MetadataStore
) -> None:
    mailer.send(messages.reset_password("ada", "T"), "ada@example.org", T0)
    clock.now_ms += HOUR
    assert mailer.send_due() == 0
    assert _rows(metadata_store) == [("failed", True, None)]
    assert receiver.received == []


def test_a_refused_address_is_failing_until_a_mail_arrives(
    mailer: Mailer, receiver: Receiver, metadata_store: MetadataStore
) -> None:
    accounts = metadata_store.accounts
    ada = accounts.users.create("ada", CLI, T0, address="Ada@example.org", verified=True)
    receiver.handler.refuse["Ada@example.org"] = "550 5.1.1 no such user"
    mailer.send(messages.password_changed("ada"), "Ada@example.org", T0)
    assert mailer.send_due() == 0
    assert _rows(metadata_store) == [("failed", True, "550 5.1.1 no such user")]
    assert [row.failing_since_ms for row in accounts.emails.of_user(ada.id)] == [T0]

    receiver.handler.refuse.clear()
    mailer.send(messages.password_changed("ada"), "Ada@example.org", T0)
    assert mailer.send_due() == 1
    assert [row.failing_since_ms for row in accounts.emails.of_user(ada.id)] == [None]


def test_a_refused_text_does_not_mark_the_address(
    mailer: Mailer, receiver: Receiver, metadata_store: MetadataStore
) -> None:
    ada = metadata_store.accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
    receiver.handler.refuse["*"] = "554 5.7.1 looks like spam"
    mailer.send(messages.password_changed("ada"), "ada@example.org", T0)
    mailer.send_due()
    assert _rows(metadata_store) == [("failed", True, "554 5.7.1 looks like spam")]
    assert [row.failing_since_ms for row in metadata_store.accounts.emails.of_user(ada.id)] == [None]


def test_a_temporary_refusal_is_retried_later(
    mailer: Mailer, receiver: Receiver, clock: SetClock, metadata_store: MetadataStore
) -> None:
    receiver.handler.refuse["ada@example.org"] = "451 4.7.1 greylisted"
    mailer.send(messages.password_changed("ada"), "ada@example.org", T0)
    mailer.send(messages.password_changed("bob"), "bob@example.org", T0)
    assert mailer.send_due() == 1  # the other one
    receiver.handler.refuse.clear()
    clock.now_ms += MINUTE - 1
    assert mailer.send_due() == 0
    clock.now_ms += 1
    assert mailer.send_due() == 1
    assert [mail["To"] for mail in receiver.received] == ["bob@example.org", "ada@example.org"]


def test_what_is_over_twenty_an_hour_comes_in_one_mail(
    mailer: Mailer, receiver: Receiver, clock: SetClock, metadata_store: MetadataStore
) -> None:
    for number in range(MAX_AN_HOUR + 5):
        mailer.send(messages.added_to_team(f"team-{number}", "member", "Ada"), "bob@example.org", T0)
    mailer.send(messages.added_to_team("vision", "member", "Ada"), "eve@example.org", T0)
    assert mailer.send_due() == MAX_AN_HOUR + 1
    waits = "held back: this address got 20 mails within an hour; what waits comes in one mail at 09:00 UTC"
    assert [error for _, _, error in _rows(metadata_store) if error] == [waits] * 5
    clock.now_ms += HOUR - 1
    assert mailer.send_due() == 0
    clock.now_ms += 2
    assert mailer.send_due() == 1
    assert len(receiver.received) == MAX_AN_HOUR + 2
    last = receiver.received[-1]
    assert last["To"] == "bob@example.org"
    assert last["Subject"].startswith("5 messages: You are now in the team team-20, You are now")
    body = last.get_body(("plain",))
    assert body is not None
    assert [f"team-{number}" in body.get_content() for number in range(19, 25)] == [False] + [True] * 5
    assert {state for state, _, _ in _rows(metadata_store)} == {"sent"}
    # It counts as one.
    for number in range(MAX_AN_HOUR):
        mailer.send(messages.added_to_team(f"new-{number}", "member", "Ada"), "bob@example.org", clock())
    assert mailer.send_due() == MAX_AN_HOUR - 1


def test_mail_about_security_neither_counts_nor_waits(mailer: Mailer, receiver: Receiver) -> None:
    for number in range(3 * MAX_AN_HOUR):
        mailer.send(messages.new_browser("bob", f"10.0.0.{number}", "Firefox", T0), "bob@example.org", T0)
        mailer.send(messages.already_registered("bob"), "bob@example.org", T0)
    while mailer.send_due():
        pass
    assert len(receiver.received) == 6 * MAX_AN_HOUR
    mailer.send(Message(ALERT, "otter-1 failed", ("Exit code 1.",)), "bob@example.org", T0)
    assert mailer.send_due() == 1


def test_other_mail_does_not_hold_back_alerts(mailer: Mailer, receiver: Receiver) -> None:
    for number in range(MAX_AN_HOUR + 1):
        mailer.send(messages.invitation_of_user(f"team-{number}", "Eve", "member"), "bob@example.org", T0)
    mailer.send(Message(ALERT, "otter-1 failed", ("Exit code 1.",)), "bob@example.org", T0)
    mailer.send_due()
    assert receiver.received[-1]["Subject"] == "otter-1 failed"


def test_one_mail_that_was_held_back_comes_as_it_is(
    mailer: Mailer, receiver: Receiver, clock: SetClock
) -> None:
    for number in range(MAX_AN_HOUR + 1):
        mailer.send(Message(ALERT, f"run-{number} failed", ("Exit code 1.",)), "bob@example.org", T0)
    mailer.send_due()
    clock.now_ms += HOUR
    assert mailer.send_due() == 1
    assert receiver.received[-1]["Subject"] == f"run-{MAX_AN_HOUR} failed"


def test_a_digest_that_is_refused_for_now_is_sent_later(
    mailer: Mailer, receiver: Receiver, clock: SetClock
) -> None:
    for number in range(MAX_AN_HOUR + 3):
        mailer.send(Message(ALERT, f"run-{number} failed", ("Exit code 1.",)), "bob@example.org", T0)
    mailer.send_due()
    clock.now_ms += HOUR
    receiver.handler.refuse["bob@example.org"] = "451 4.7.1 greylisted"
    assert mailer.send_due() == 0
    receiver.handler.refuse.clear()
    clock.now_ms += MINUTE
    assert mailer.send_due() == 3


def test_servers_that_share_a_queue_send_each_message_once(new_mailer: NewMailer, receiver: Receiver) -> None:
    mailers = [new_mailer(receiver.url) for _ in range(4)]
    for number in range(12):
        mailers[0].send(messages.password_changed("ada"), f"ada{number}@example.org", T0)
    threads = [threading.Thread(target=mailer.send_due) for mailer in mailers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len({mail["Message-ID"] for mail in receiver.received}) == len(receiver.received) == 12


def test_what_a_server_was_sending_when_it_died_is_sent_by_the_next(
    mailer: Mailer, receiver: Receiver, clock: SetClock, metadata_store: MetadataStore
) -> None:
    mailer.send(messages.password_changed("ada"), "ada@example.org", T0)
    queue = metadata_store.accounts.outgoing_mail
    (waiting,) = queue.due(T0)
    assert queue.claim(waiting, T0)
    assert not queue.claim(waiting, T0)
    assert mailer.send_due() == 0
    clock.now_ms += LEASE_MS
    assert mailer.send_due() == 1
    assert receiver.received[0]["Message-ID"] == waiting.message_id


def test_nothing_is_sent_where_an_answer_must_not_show_who_has_an_account(
    mailer: Mailer, metadata_store: MetadataStore
) -> None:
    assert mailer.send(messages.reset_password("-", "-"), "nobody@example.org", T0, discarded=True)
    assert mailer.send_due() == 0
    assert _rows(metadata_store) == [("discarded", True, None)]
    queue = metadata_store.accounts.outgoing_mail
    assert (queue.purge(T0), queue.purge(T0 + 1)) == (0, 1)


def test_with_another_key_file_a_message_fails_and_the_next_is_sent(
    mailer: Mailer, receiver: Receiver, metadata_store: MetadataStore, clock: SetClock
) -> None:
    other = Mailer(metadata_store, SecretBox({"other": bytes(32)}), clock, mailer._environment)
    other.send(messages.password_changed("ada"), "ada@example.org", T0)
    mailer.send(messages.password_changed("bob"), "bob@example.org", T0)
    assert mailer.send_due() == 1
    assert _rows(metadata_store)[0] == ("failed", True, "the key of this secret is not in the key file")


def test_the_thread_sends_at_once_and_ends(mailer: Mailer, receiver: Receiver) -> None:
    mailer.thread.start()
    try:
        mailer.send(messages.password_changed("ada"), "ada@example.org", T0)
        receiver.wait_for(1)
    finally:
        mailer.thread.close()
    assert mailer.thread.problem is None


def test_the_length_of_the_queue(mailer: Mailer, metadata_store: MetadataStore) -> None:
    queue = metadata_store.accounts.outgoing_mail
    assert (queue.length().waiting, queue.length().oldest_ms) == (0, None)
    mailer.send(messages.password_changed("ada"), "ada@example.org", T0)
    assert (queue.length().waiting, queue.length().oldest_ms) == (1, T0)


@pytest.mark.parametrize("kind", ["sqlite"])
class TestEncryption:
    """How the connection is encrypted, on one database."""

    def test_starttls_with_a_login(
        self,
        new_mailer: NewMailer,
        certificate: tuple[ssl.SSLContext, Path],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        context, trusted = certificate
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with Receiver(starttls=context, login=True) as receiver:
            mailer = new_mailer(f"smtp://runs:correct%20horse@127.0.0.1:{receiver.port}")
            mailer.send_trial("ada@example.org")
            wrong = new_mailer(f"smtp://runs:wrong@127.0.0.1:{receiver.port}")
            with pytest.raises(MailServerUnavailable, match="535") as raised:
                wrong.send_trial("ada@example.org")
        assert "wrong" not in str(raised.value)
        assert receiver.handler.encrypted == [True]

    def test_tls_from_the_start(
        self,
        new_mailer: NewMailer,
        certificate: tuple[ssl.SSLContext, Path],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        context, trusted = certificate
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with Receiver(tls=context) as receiver:
            new_mailer(f"smtps://127.0.0.1:{receiver.port}").send_trial("ada@example.org")
        assert [mail["Subject"] for mail in receiver.received] == ["Mail works"]

    def test_a_certificate_that_nobody_trusts_is_refused(
        self, new_mailer: NewMailer, certificate: tuple[ssl.SSLContext, Path]
    ) -> None:
        context, _ = certificate
        with (
            Receiver(starttls=context) as receiver,
            pytest.raises(MailServerUnavailable, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            new_mailer(f"smtp://127.0.0.1:{receiver.port}").send_trial("ada@example.org")

    def test_a_server_without_starttls_gets_no_mail(self, new_mailer: NewMailer, receiver: Receiver) -> None:
        with pytest.raises(MailServerUnavailable, match="STARTTLS"):
            new_mailer(f"smtp://127.0.0.1:{receiver.port}").send_trial("ada@example.org")

"""`Mailer`: the queue of mail and the thread that sends it."""

from __future__ import annotations

import json
import logging
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from runvitals.model.account_names import address_key, domain_key
from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.mail.message import (
    MAX_DIGEST_MAILS,
    MUTE_BY_MAIL_PROGRAM,
    SWITCHES,
    Message,
    digest,
    one_line,
)
from runvitals.server.mail.messages import trial
from runvitals.server.mail.settings import MailSettings, mail_settings
from runvitals.server.mail.smtp import MailRefused, MailServerUnavailable, SmtpConnection
from runvitals.server.mail.storage.outgoing_mail import HELD_BACK, NewMail, WaitingMail
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.supervised_thread import SupervisedThread

MAX_AN_HOUR: Final = 20
"""Alerts to one address, and as many other mails; what is beyond waits, and then comes in one. Mails about
security neither count nor wait."""
KEPT_MS: Final = 30 * DAY_MS
"""How long the queue remembers that a mail was sent, without its text."""
_RETRIES_MS: Final = (MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 6 * HOUR_MS)
_POLL_S: Final = 5.0
_MAX_PAUSE_S: Final = 300.0

log = logging.getLogger("runvitals.mail")


class Mailer:
    """Sends messages. All methods are thread-safe.

    Servers that share a metadata store share the queue. A message is sent at least once: again if a server
    dies while the mail server accepts it, with the same `Message-ID`.

    Args:
        box: encrypts what waits, because links hold secrets.
        clock: the time now, ms UTC.
        environment: where `RUNVITALS_SMTP_URL` and others are; they take precedence over the settings.

    Attributes:
        thread: sends what is due; start and close it. It reports that the mail server cannot be used.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        box: SecretBox,
        clock: Callable[[], int],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._queue = metadata_store.accounts.outgoing_mail
        self._stored = metadata_store.accounts.settings
        self._box = box
        self._clock = clock
        self._environment = environment
        self._new = threading.Event()
        self.thread = SupervisedThread("mail", self._turn, wake=self._new.set, longest_pause_s=_MAX_PAUSE_S)

    @property
    def configured(self) -> bool:
        """Whether there is a mail server, and the sender and the URL of this server are known."""
        try:
            return self.settings() is not None
        except (ValueError, SecretUnreadable):
            return False

    def settings(self) -> MailSettings | None:
        """Return how mail is sent; None if there is no mail server.

        Raises:
            ValueError: a setting is invalid or missing; the text says which.
            SecretUnreadable: the key file is another one.
        """
        return mail_settings(self._stored.all(), self._environment, self._box)

    def send(
        self,
        message: Message,
        address: str,
        now_ms: int,
        *,
        discarded: bool = False,
        once_key: str | None = None,
        time_zone: str | None = None,
    ) -> bool:
        """Put a message into the queue; returns whether mail is configured. If not, nothing is written.

        Args:
            discarded: only take as long as if it were sent, where the answer must not show whether an account
                exists.
            once_key: what the message is about. It is not sent again with the same key within a month,
                whichever server tries to.
            time_zone: of times in the text; None: as the organisation set it.

        Raises:
            ValueError: not an e-mail address.
        """
        mail = self.prepare(
            message, address, now_ms, discarded=discarded, once_key=once_key, time_zone=time_zone
        )
        if mail is None:
            return False
        if self._queue.add(mail):
            self._new.set()
        return True

    def prepare(
        self,
        message: Message,
        address: str,
        now_ms: int,
        *,
        discarded: bool = False,
        once_key: str | None = None,
        time_zone: str | None = None,
    ) -> NewMail | None:
        """Return a mail for `outgoing_mail.add_mail`, in the transaction of what it reports.

        None if mail is not configured. Raises as `send`.
        """
        key = address_key(address)
        settings = self.settings() if self.configured else None
        if settings is None:
            return None
        texts = _texts_of(message, settings, time_zone)
        message_id = f"<{secrets.token_hex(16)}@{domain_key(settings.sender.rpartition('@')[2])}>"
        return NewMail(
            message_id,
            message.kind,
            address.strip(),
            key,
            message.security,
            self._box.seal(json.dumps(texts).encode(), _purpose(message_id)),
            now_ms,
            now_ms + message.life_ms,
            discarded,
            once_key,
        )

    def send_trial(self, address: str) -> None:
        """Send a message now, without the queue, to see whether mail arrives.

        Raises:
            ValueError: not an address, or mail is not configured; the text says what is missing.
            SecretUnreadable: the key file is another one.
            MailServerUnavailable: the mail server cannot be used.
            MailRefused: it refused the message.
        """
        settings = self.settings()
        mail = self.prepare(trial(), address, self._clock())
        if settings is None or mail is None:
            raise ValueError("there is no mail server: the setting smtp_url is missing")
        waiting = WaitingMail(
            0,
            mail.message_id,
            mail.kind,
            mail.address,
            mail.address_key,
            mail.security,
            mail.sealed,
            mail.created_ms,
            0,
        )
        with SmtpConnection(settings.server) as connection:
            self._deliver(connection, settings, waiting, _texts_of(trial(), settings, None))

    def send_due(self) -> int:
        """Send what is due; returns how many were sent.

        Raises:
            MailServerUnavailable: the mail server cannot be used; the mails wait.
            ValueError, SecretUnreadable: a setting is invalid; the mails wait.
        """
        now_ms = self._clock()
        given_up = self._queue.give_up(now_ms)
        if given_up:
            log.warning("gave up mails that could not be sent in time", extra={"fields": {"mails": given_up}})
        settings = self.settings()
        if settings is None:
            return 0
        due = [mail for mail in self._queue.due(now_ms) if not self._over_limit(mail, now_ms)]
        if not due:
            return 0
        sent = 0
        with SmtpConnection(settings.server) as connection:
            for mail in due:
                if self.thread.closing.is_set():
                    break
                if mail.held_back:
                    sent += self._attempt_digest(connection, settings, mail)
                else:
                    sent += self._attempt(connection, settings, mail)
        return sent

    def _turn(self) -> bool:
        self._new.wait(_POLL_S)
        self._new.clear()
        if self.thread.closing.is_set():
            return False
        self.send_due()
        return True

    def _over_limit(self, mail: WaitingMail, now_ms: int) -> bool:
        """Hold back a mail to someone who got many within the hour."""
        if mail.security:
            return False
        times_ms = self._queue.sent_since(mail, now_ms - HOUR_MS)
        if len(times_ms) < MAX_AN_HOUR:
            return False
        until_ms = times_ms[-MAX_AN_HOUR] + HOUR_MS
        until = datetime.fromtimestamp(-(-until_ms // MINUTE_MS) * MINUTE_MS / 1000, timezone.utc)
        reason = (
            f"{HELD_BACK}this address got {MAX_AN_HOUR} mails within an hour; what waits comes in one mail "
            f"at {until:%H:%M} UTC"
        )
        self._queue.postpone(mail, until_ms, error=reason, tries=mail.tries)
        return True

    def _attempt(self, connection: SmtpConnection, settings: MailSettings, mail: WaitingMail) -> bool:
        now_ms = self._clock()
        # Checked again for each mail: those sent before it in this turn count.
        if self._over_limit(mail, now_ms) or not self._queue.claim(mail, now_ms):
            return False
        return self._send(connection, settings, [mail], now_ms)

    def _attempt_digest(self, connection: SmtpConnection, settings: MailSettings, first: WaitingMail) -> bool:
        """Send the mails in one that were held back together; False if another server sends them."""
        now_ms = self._clock()
        if self._over_limit(first, now_ms):
            return False
        waiting = self._queue.held_back(first, now_ms, MAX_DIGEST_MAILS)
        mails = [mail for mail in waiting if self._queue.claim(mail, now_ms)]
        return bool(mails) and self._send(connection, settings, mails, now_ms)

    def _send(
        self, connection: SmtpConnection, settings: MailSettings, claimed: list[WaitingMail], now_ms: int
    ) -> bool:
        """Send mails to one address, in one; returns whether the mail server took it."""
        texts = {mail: text for mail in claimed if (text := self._open(mail, now_ms)) is not None}
        if not texts:
            return False
        first = next(iter(texts))
        about = {"fields": {"mail": first.id, "kind": first.kind, "mails": len(texts)}}
        try:
            self._deliver(connection, settings, first, _in_one(list(texts.values()), settings))
        except MailServerUnavailable as error:
            for mail in texts:
                self._queue.postpone(mail, now_ms, error=str(error), tries=mail.tries)
            raise
        except MailRefused as error:
            if error.permanent:
                log.warning("the mail server refused a mail: %s", error, extra=about)
            for mail in texts:
                self._note_refusal(mail, error, now_ms)
            return False
        for mail in texts:
            self._queue.mark_sent(mail, now_ms, message_id=first.message_id)
        return True

    def _open(self, mail: WaitingMail, now_ms: int) -> dict[str, str] | None:
        """Return the texts of a mail; None if they cannot be decrypted, and it ends."""
        try:
            texts: dict[str, str] = json.loads(self._box.open(mail.sealed, _purpose(mail.message_id)))
        except SecretUnreadable as error:
            self._queue.mark_failed(mail, str(error), now_ms, bad_address=False)
            about = {"fields": {"mail": mail.id, "kind": mail.kind}}
            log.error("a mail cannot be decrypted: %s", error, extra=about)
            return None
        return texts

    def _note_refusal(self, mail: WaitingMail, error: MailRefused, now_ms: int) -> None:
        if error.permanent:
            self._queue.mark_failed(mail, str(error), now_ms, bad_address=error.bad_address)
        else:
            wait_ms = _RETRIES_MS[min(mail.tries, len(_RETRIES_MS) - 1)]
            self._queue.postpone(mail, now_ms + wait_ms, error=str(error), tries=mail.tries + 1)

    def _deliver(
        self,
        connection: SmtpConnection,
        settings: MailSettings,
        mail: WaitingMail,
        texts: Mapping[str, str],
    ) -> None:
        connection.send(_email(mail, texts, settings), settings.sender, _route(mail.address))


def _in_one(texts: Sequence[Mapping[str, str]], settings: MailSettings) -> Mapping[str, str]:
    """Return the texts of a mail, or of the digest of several."""
    return texts[0] if len(texts) == 1 else _texts_of(digest(texts), settings, None)


def _texts_of(message: Message, settings: MailSettings, time_zone: str | None) -> dict[str, str]:
    zone = time_zone or settings.time_zone
    return {
        "subject": message.subject,
        "text": message.text(settings.url, settings.organisation, zone),
        "html": message.html(settings.url, settings.organisation, zone),
        **({"unsubscribe": settings.url + SWITCHES} if message.topic else {}),
        **({"mute": settings.url + MUTE_BY_MAIL_PROGRAM + message.mute} if message.mute else {}),
    }


def _email(mail: WaitingMail, texts: Mapping[str, str], settings: MailSettings) -> EmailMessage:
    built = EmailMessage(policy=SMTP)  # rejects line breaks in headers
    local, _, domain = settings.sender.rpartition("@")
    to_local, _, to_domain = _route(mail.address).rpartition("@")
    built["From"] = Address(one_line(settings.organisation), local, domain)
    built["To"] = Address("", to_local, to_domain)
    built["Subject"] = texts["subject"]
    built["Date"] = format_datetime(datetime.fromtimestamp(mail.created_ms / 1000, timezone.utc))
    built["Message-ID"] = mail.message_id
    built["Auto-Submitted"] = "auto-generated"
    if "unsubscribe" in texts:
        built["List-Unsubscribe"] = f"<{texts['unsubscribe']}>"
    if "mute" in texts:
        built["List-Unsubscribe"] = f"<{texts['mute']}>"
        built["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    built.set_content(texts["text"])
    built.add_alternative(texts["html"], subtype="html")
    return built


def _route(address: str) -> str:
    """Return the address for the mail server: the domain in ASCII."""
    local, _, domain = address.rpartition("@")
    return f"{local}@{domain_key(domain)}"


def _purpose(message_id: str) -> str:
    return f"mail:{message_id}"

"""A connection to the mail server.

It uses `smtplib` in the mailer's own thread: mails are few and are sent one after the other, so an
asynchronous client would add a dependency and gain nothing.
"""

from __future__ import annotations

import smtplib
import ssl
from email.message import EmailMessage
from typing import Final

from runvitals.server.mail.settings import SmtpServer

TIMEOUT_S: Final = 15.0
"""How long the mail server may take for each answer."""
_PERMANENT: Final = 500


class MailServerUnavailable(OSError):
    """The mail server cannot be reached, or takes no mail from us at all. Nothing is wrong with the mail."""


class MailRefused(Exception):
    """The mail server refused one mail; the text is its reply.

    Attributes:
        permanent: trying again is pointless.
        bad_address: it refused the recipient.
    """

    def __init__(self, reply: str, *, permanent: bool, bad_address: bool) -> None:
        super().__init__(reply)
        self.permanent = permanent
        self.bad_address = bad_address


class SmtpConnection:
    """A connection to a mail server; use it with `with`. The server's certificate is checked.

    Raises:
        MailServerUnavailable: from `with`: no connection, no encryption or wrong password.
    """

    def __init__(self, server: SmtpServer) -> None:
        self._server = server
        self._smtp: smtplib.SMTP | None = None
        self._step = "the connection"

    def __enter__(self) -> SmtpConnection:
        try:
            self._smtp = self._connect()
        except (OSError, smtplib.SMTPException) as error:
            address = f"{self._server.host}:{self._server.port}"
            raise MailServerUnavailable(
                f"the mail server {address} cannot be used: {self._step} failed: {_reply(error)}"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        if self._smtp is None:
            return
        try:
            self._smtp.quit()
        except (OSError, smtplib.SMTPException):
            self._smtp.close()  # what was accepted stays accepted

    def send(self, message: EmailMessage, sender: str, recipient: str) -> None:
        """Send one message to one recipient.

        Raises:
            MailRefused: the server refused this message or this recipient.
            MailServerUnavailable: the connection was lost, or the server refused the sender.
        """
        assert self._smtp is not None, "used outside of `with`"
        try:
            self._smtp.send_message(message, from_addr=sender, to_addrs=[recipient])
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(*error.recipients[recipient], bad_address=True) from None
        except smtplib.SMTPDataError as error:
            raise _refusal(error.smtp_code, error.smtp_error, bad_address=False) from None
        except smtplib.SMTPNotSupportedError as error:
            raise MailRefused(str(error), permanent=True, bad_address=True) from None
        except (OSError, smtplib.SMTPException) as error:
            raise MailServerUnavailable(f"the mail server failed: {_reply(error)}") from error

    def _connect(self) -> smtplib.SMTP:
        server = self._server
        if server.encryption == "tls":
            context = ssl.create_default_context()
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                server.host, server.port, timeout=TIMEOUT_S, context=context
            )
        else:
            smtp = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)
        try:
            if server.encryption == "starttls":
                self._step = "STARTTLS"
                smtp.starttls(context=ssl.create_default_context())
            if server.user is not None and server.password is not None:
                self._step = f"the sign-in as {server.user}"
                smtp.login(server.user, server.password)
        except BaseException:
            smtp.close()
            raise
        return smtp


def _refusal(code: int, reply: bytes | str, *, bad_address: bool) -> MailRefused:
    return MailRefused(_text(code, reply), permanent=code >= _PERMANENT, bad_address=bad_address)


def _reply(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        return _text(error.smtp_code, error.smtp_error)
    return str(error) or repr(error)


def _text(code: int, reply: bytes | str) -> str:
    words = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    return f"{code} {' '.join(words.split())}"

"""`/organisation/mail`: the mail server and the sender, and whether mail arrives."""

from __future__ import annotations

import os
from typing import Any, Literal

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.account_services import AccountServices
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields, checking
from runvitals.server.http.router import Router
from runvitals.server.mail.settings import (
    SMTP_URL_ENVIRONMENT,
    SmtpServer,
    opened_smtp_url,
    sealed_smtp_url,
    server_url,
    smtp_server,
    smtp_url_of,
)
from runvitals.server.mail.smtp import MailRefused, MailServerUnavailable
from runvitals.server.organisation.routes.changed_settings import (
    ENVIRONMENT,
    SMTP_URL,
    enforced_by,
    put_settings,
)
from runvitals.server.organisation.settings import checked_settings
from runvitals.server.service_parameters import TheAccess, TheNotices, TheRequester, TheServices

router = Router()


class MailServer(RequestBody):
    """The mail server and the sender."""

    host: str = Field(min_length=1, max_length=253, pattern=r"^[^\s/@?#\[\]]+$")
    port: int = Field(ge=1, le=65_535)
    encryption: Literal["starttls", "tls", "none"]
    user: str = Field("", max_length=254)
    password: str | None = Field(
        None, max_length=500, description="Left out: the present one stays, for the same server and user."
    )
    mail_from: str = Field(max_length=254, description="The address that mails come from.")
    url: str | None = Field(None, max_length=300, description="The address of this server, for links.")


class MailTest(RequestBody):
    """Where a mail is sent, to try the mail server."""

    address: str = Field(max_length=254)


class MailServerState(ResponseBody):
    """How mail is sent, without the password."""

    configured: bool
    host: str
    port: int | None
    encryption: Literal["starttls", "tls", "none"]
    user: str
    has_password: bool
    mail_from: str
    url: str
    editable: bool
    enforced_by: str | None
    mail_from_enforced_by: str | None
    problem: str | None = Field(description="Why mail cannot be sent at the moment.")


class MailSent(ResponseBody):
    """The mail server took the mail."""

    done: Literal["sent"]


@router.get("/organisation/mail", needs("org:settings"))
def mail_server(access: TheAccess, services: TheServices) -> MailServerState:
    """How mail is sent, without the password."""
    return _state(access, services)


@router.put("/organisation/mail", needs("org:settings"))
def put_mail_server(
    body: MailServer,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
    services: TheServices,
) -> MailServerState:
    """Set the mail server and the sender."""
    for name in ("host", "user", "password"):
        if not (getattr(body, name) or "").isprintable():
            raise InvalidFields({name: "it has a character that cannot be printed"})
    server = SmtpServer(body.host, body.port, body.encryption, body.user.strip() or None)
    changes: dict[str, Any] = {SMTP_URL: _seal(server, body.password, access, services.box)}
    with checking("mail_from"):
        changes |= checked_settings({"mail_from": body.mail_from})
    if body.url is not None:
        with checking("url"):
            changes |= checked_settings({"url": server_url(body.url)})
    # A form shows what the environment or a file sets, and sends it back as it is.
    table = access.accounts.settings
    changes = {
        name: value for name, value in changes.items() if name == SMTP_URL or enforced_by(name, table) is None
    }
    put_settings(access, requester, notices, changes)
    return _state(access, services)


@router.delete("/organisation/mail", needs("org:settings"), status_code=204)
def remove_mail_server(access: TheAccess, requester: TheRequester, notices: TheNotices) -> None:
    """Forget the mail server and its password: no mail is sent any more."""
    put_settings(access, requester, notices, {SMTP_URL: None})


@router.post("/organisation/mail/test", needs("org:settings"))
def test_mail(body: MailTest, services: TheServices) -> MailSent:
    """Send a mail now. An error is what the mail server said, so that a wrong setting is found."""
    try:
        services.mailer.send_trial(body.address)
    except (MailServerUnavailable, MailRefused, SecretUnreadable) as error:
        raise HTTPException(502, str(error)) from None
    except ValueError as error:
        raise InvalidFields({"address": str(error)}) from None
    return MailSent(done="sent")


def _seal(server: SmtpServer, password: str | None, access: AccessControl, box: SecretBox) -> str:
    """Return the mail server as it is stored."""
    if server.user is not None and password is None:
        password = _present_password(server, access, box)
    elif server.user is None and password:
        raise InvalidFields({"user": "a password needs a user"})
    complete = SmtpServer(server.host, server.port, server.encryption, server.user, password or None)
    if server.user is not None and not password:
        raise InvalidFields({"password": "the password of the user is missing"})
    with checking("host"):
        return sealed_smtp_url(smtp_url_of(complete), box)


def _present_password(server: SmtpServer, access: AccessControl, box: SecretBox) -> str | None:
    """Return the stored password, which is sent to no other server, and for no other user."""
    present = _read_server(access, box)
    if present is None or present.password is None:
        return None
    if (present.host, present.port, present.user) != (server.host, server.port, server.user):
        raise InvalidFields({"password": "enter the password again: the server or the user is another one"})
    return present.password


def _read_server(access: AccessControl, box: SecretBox) -> SmtpServer | None:
    sealed = access.accounts.settings.all().get(SMTP_URL)
    if not isinstance(sealed, str):
        return None
    try:
        return smtp_server(opened_smtp_url(sealed, box))
    except (SecretUnreadable, ValueError):
        return None  # as if there were none: it must be entered again


def _state(access: AccessControl, services: AccountServices) -> MailServerState:
    settings = access.accounts.settings
    of_environment = os.environ.get(SMTP_URL_ENVIRONMENT)
    server, problem = None, services.mailer.thread.problem
    try:
        server = smtp_server(of_environment) if of_environment else _read_server(access, services.box)
    except ValueError as error:
        problem = str(error)
    by = enforced_by(SMTP_URL, settings)
    stored = settings.all()
    return MailServerState(
        configured=services.mailer.configured,
        host="" if server is None else server.host,
        port=None if server is None else server.port,
        encryption="starttls" if server is None else server.encryption,
        user="" if server is None else server.user or "",
        has_password=server is not None and server.password is not None,
        mail_from=os.environ.get(ENVIRONMENT["mail_from"]) or stored.get("mail_from", ""),
        url=os.environ.get(ENVIRONMENT["url"]) or stored.get("url", ""),
        editable=by is None,
        enforced_by=by,
        mail_from_enforced_by=enforced_by("mail_from", settings),
        problem=problem,
    )

"""Settings of mail: the mail server, the sender and the address of this server for links."""

from __future__ import annotations

import base64
import ipaddress
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runvitals.model.account_names import address_key
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable

Encryption = Literal["starttls", "tls", "none"]
SMTP_URL_ENVIRONMENT: Final = "RUNVITALS_SMTP_URL"
MAIL_FROM_ENVIRONMENT: Final = "RUNVITALS_MAIL_FROM"
URL_ENVIRONMENT: Final = "RUNVITALS_URL"
_PURPOSE: Final = "setting:smtp_url"
_DEFAULT_ORGANISATION: Final = "runvitals"
_PORTS: Final[dict[Encryption, int]] = {"starttls": 587, "tls": 465, "none": 25}
_EXPECTED: Final = (
    "expected smtp://user:password@host:587 (STARTTLS), smtps://user:password@host:465, "
    "or smtp://host:25?tls=none; special characters of user and password as %40 for @"
)


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A mail server that takes our messages. The password is in no `repr`."""

    host: str
    port: int
    encryption: Encryption
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class MailSettings:
    """The settings of mail; `None` instead means that none is sent.

    Attributes:
        sender: the address that messages come from.
        url: the address of this server as users know it, with which links begin.
        organisation: the name of the organisation.
        time_zone: of times in messages to users who chose none.
    """

    server: SmtpServer
    sender: str
    url: str
    organisation: str = _DEFAULT_ORGANISATION
    time_zone: str = "UTC"


def smtp_server(url: str) -> SmtpServer:
    """Return the mail server of an `smtp_url`.

    Raises:
        ValueError: invalid URL, or a password that would be sent unencrypted. The text has no password.

    Example:
        >>> smtp_server("smtps://mail.example.org")
        SmtpServer(host='mail.example.org', port=465, encryption='tls', user=None)
    """
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
        options = dict(urllib.parse.parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
    except ValueError:
        raise ValueError(f"invalid smtp_url; {_EXPECTED}") from None
    encryption = _encryption(parts.scheme, options)
    if encryption is None or not host or parts.path not in ("", "/") or parts.fragment:
        raise ValueError(f"invalid smtp_url; {_EXPECTED}")
    user = urllib.parse.unquote(parts.username) if parts.username else None
    password = urllib.parse.unquote(parts.password) if parts.password else None
    if (user is None) != (password is None):
        raise ValueError("invalid smtp_url; expected both a user and a password, or neither")
    if encryption == "none" and password is not None and not _is_loopback(host):
        raise ValueError("invalid smtp_url; a password is not sent without encryption")
    return SmtpServer(host, port or _PORTS[encryption], encryption, user, password)


def smtp_url_of(server: SmtpServer) -> str:
    """Return the `smtp_url` of a mail server, with its password.

    Example:
        >>> smtp_url_of(SmtpServer("mail.example.org", 587, "starttls", "rita", "a/b"))
        'smtp://rita:a%2Fb@mail.example.org:587'
    """
    host = f"[{server.host}]" if ":" in server.host else server.host
    user = ""
    if server.user is not None:
        quoted = (urllib.parse.quote(text or "", safe="") for text in (server.user, server.password))
        user = ":".join(quoted) + "@"
    scheme = "smtps" if server.encryption == "tls" else "smtp"
    options = "?tls=none" if server.encryption == "none" else ""
    return f"{scheme}://{user}{host}:{server.port}{options}"


def masked_smtp_url(url: str) -> str:
    """Return an `smtp_url` to show, without its password."""
    parts = urllib.parse.urlsplit(url)
    if parts.password is None:
        return url
    before, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{before.partition(':')[0]}:…@{host}").geturl()


def sealed_smtp_url(url: str, box: SecretBox) -> str:
    """Return the setting `smtp_url` encrypted, for its password; raise ValueError for an invalid URL."""
    smtp_server(url)
    return base64.b64encode(box.seal(url.encode(), _PURPOSE)).decode("ascii")


def opened_smtp_url(stored: str, box: SecretBox) -> str:
    """Return the `smtp_url` of a stored setting.

    Raises:
        SecretUnreadable: the key file is another one.
    """
    try:
        sealed = base64.b64decode(stored, validate=True)
    except ValueError:
        raise SecretUnreadable("the setting smtp_url is damaged") from None
    return box.open(sealed, _PURPOSE).decode()


def mail_settings(
    stored: Mapping[str, Any], environment: Mapping[str, str], box: SecretBox
) -> MailSettings | None:
    """Return how mail is sent, by the environment or else the settings; None: no mail is.

    Args:
        stored: the settings of the organisation, of which `smtp_url` is encrypted.
        environment: such as `os.environ`.

    Raises:
        ValueError: a setting is invalid, or the sender or this server's URL is missing.
        SecretUnreadable: the key file is another one.
    """
    smtp_url = environment.get(SMTP_URL_ENVIRONMENT)
    if not smtp_url and stored.get("smtp_url"):
        smtp_url = opened_smtp_url(stored["smtp_url"], box)
    if not smtp_url:
        return None
    sender = environment.get(MAIL_FROM_ENVIRONMENT) or stored.get("mail_from")
    url = environment.get(URL_ENVIRONMENT) or stored.get("url")
    if not sender or not url:
        missing = "url" if sender else "mail_from"
        raise ValueError(f"the setting {missing} is missing, without which no mail is sent")
    address_key(sender)
    organisation = stored.get("name") or _DEFAULT_ORGANISATION
    zone = stored.get("time_zone") or "UTC"
    return MailSettings(smtp_server(smtp_url), sender, server_url(url), organisation, zone)


def missing_for_mail(stored: Mapping[str, Any], environment: Mapping[str, str]) -> list[str]:
    """Which settings are missing, without which no mail is sent although there is a mail server."""
    if not (environment.get(SMTP_URL_ENVIRONMENT) or stored.get("smtp_url")):
        return []
    variables = {"mail_from": MAIL_FROM_ENVIRONMENT, "url": URL_ENVIRONMENT}
    return [
        name for name, variable in variables.items() if not (environment.get(variable) or stored.get(name))
    ]


def server_url(url: str) -> str:
    """Return the setting `url`: the address of this server as users know it, without a slash at its end.

    Raises:
        ValueError: not an http or https URL, or one with more than a host and a path.

    Example:
        >>> server_url("https://runs.example.org/")
        'https://runs.example.org'
    """
    try:
        parts = urllib.parse.urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment or "@" in parts.netloc or not url.isprintable():
        raise ValueError(f"invalid url {url[:100]!r}; expected https://host")
    return url.rstrip("/")


def _encryption(scheme: str, options: Mapping[str, str]) -> Encryption | None:
    if scheme == "smtps" and not options:
        return "tls"
    if scheme == "smtp" and options in ({}, {"tls": "starttls"}):
        return "starttls"
    return "none" if scheme == "smtp" and options == {"tls": "none"} else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""Names of users and teams, and e-mail addresses: which are valid, and how they are compared."""

from __future__ import annotations

import re
import unicodedata

from runvitals.model.hidden_characters import has_hidden_characters

MAX_ENTITY_NAME = 64
MAX_ADDRESS = 254
MAX_DISPLAY_NAME = 64
_ENTITY_NAME = re.compile(r"[a-z0-9](?:[a-z0-9]|[-_](?=[a-z0-9])){0,63}")
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]*[a-z][a-z0-9-]*")

ORGANISATION = "organisation"
"""The name by which addresses name the organisation as the owner of registries."""
_RESERVED = (
    "about account accounts admin admins all anonymous api app artifacts assets auth billing blog compare "
    "default deleted docs everyone explore favicon files ghost graphql guest health healthz help home hosts "
    "invitation invitations invite latest local login logout me metrics mlflow new none null oauth oidc org "
    "organisation organization postmaster profile project projects public readyz registry report reports "
    "reset robots root run runs runvitals scim search security self server service settings setup signin "
    "signup sitemap sso static storage support sweep sweeps system team teams token tokens true false "
    "undefined usage user users verify wandb webhook webhooks well-known "
    "ajax-api artifactsv2 get-artifact model-versions otlp prometheus v1 v1development version "
)
RESERVED_NAMES = frozenset(_RESERVED.split())
"""Names that addresses of the server use or may come to use."""


def entity_name(text: str) -> str:
    """Return the name of a user or a team; both share one set of names.

    Raises:
        ValueError: an invalid or reserved name.

    Example:
        >>> entity_name("Vision-Lab")
        'vision-lab'
    """
    name = text.lower()
    if not text.isascii() or not _ENTITY_NAME.fullmatch(name):
        raise ValueError(
            f"invalid name {text[:60]!r}; expected 1 to {MAX_ENTITY_NAME} characters: letters a to z, digits "
            "and single - or _ between them"
        )
    if name in RESERVED_NAMES:
        raise ValueError(f"the name {name!r} is reserved")
    return name


def suggested_name(text: str) -> str:
    """Return a name for a user, made of what others call them, such as an e-mail address.

    Example:
        >>> suggested_name("Ada.Lovelace@example.org"), suggested_name("admin@example.org")
        ('ada-lovelace', 'admin-user')
    """
    local = text.partition("@")[0].lower()
    name = re.sub(r"[^a-z0-9]+", "-", local)[:MAX_ENTITY_NAME].strip("-") or "user"
    return f"{name}-user" if name in RESERVED_NAMES else name


def display_name(text: str) -> str:
    """Return a name to show: any letters, without characters that are invisible or reverse text.

    Raises:
        ValueError: it is empty, too long or contains such characters.
    """
    name = unicodedata.normalize("NFC", text).strip()
    if not 1 <= len(name) <= MAX_DISPLAY_NAME:
        raise ValueError(f"invalid display name; expected 1 to {MAX_DISPLAY_NAME} characters")
    if has_hidden_characters(name):
        raise ValueError("invalid display name; it contains a control or invisible character")
    return name


def address_key(address: str) -> str:
    """Return the form in which e-mail addresses are compared: lower case, the domain in ASCII.

    Dots and `+tags` are kept: what they mean is the receiving server's decision.

    Raises:
        ValueError: not an e-mail address.

    Example:
        >>> address_key("Ada@Bücher.example")
        'ada@xn--bcher-kva.example'
    """
    text = unicodedata.normalize("NFC", address.strip())
    local, at, domain = text.rpartition("@")
    if not (at and local and "." in domain and len(text) <= MAX_ADDRESS and len(local) <= 64):
        raise ValueError(f"invalid e-mail address {address[:60]!r}")
    if any(letter.isspace() or not letter.isprintable() or letter in '@<>,;:"()[]\\' for letter in local):
        raise ValueError(f"invalid e-mail address {address[:60]!r}")
    return f"{local.lower()}@{domain_key(domain)}"


def domain_key(domain: str) -> str:
    """Return the form in which domains of e-mail addresses are compared: lower case, in ASCII.

    Raises:
        ValueError: not a domain.
    """
    try:
        ascii_domain = domain.strip().encode("idna").decode("ascii").lower()
    except UnicodeError:
        ascii_domain = ""
    if not _DOMAIN.fullmatch(ascii_domain):
        raise ValueError(f"invalid domain {domain[:60]!r} of an e-mail address")
    return ascii_domain

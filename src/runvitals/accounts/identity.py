"""Whom a credential of a request stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from runvitals.accounts.principals import Principal

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.sessions import SessionRow

CredentialKind = Literal["key", "session", "link"]


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request proves its identity with: the secret of an API key, of a session or of a guest link."""

    kind: CredentialKind
    secret: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The owner of a valid credential.

    Attributes:
        name: the user name, or the name of the service account.
        key_public_id: the shown part of the key, if it was one.
        session: the session, if it was one.
    """

    principal: Principal
    name: str = ""
    key_public_id: str | None = None
    session: SessionRow | None = None

"""Credentials, and the identities that they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from runvitals.server.access.principals import Anonymous, GuestLink, Operator, Principal, ServiceAccount, User

if TYPE_CHECKING:
    from runvitals.server.accounts.storage.sessions import SessionRow

CredentialKind = Literal["key", "session", "link"]


@dataclass(frozen=True, slots=True)
class Credential:
    """The secret of an API key, of a session or of a guest link."""

    kind: CredentialKind
    secret: str


@dataclass(frozen=True, slots=True)
class Identity:
    """The owner of a valid credential.

    Attributes:
        name: the user name, or the name of the service account.
        key_public_id: the shown part of the key, if it was one.
        session: the session, if it was one.
        expires_ms: when the key ends, ms UTC; None: it does not, or there is none.
    """

    principal: Principal
    name: str = ""
    key_public_id: str | None = None
    session: SessionRow | None = None
    expires_ms: int | None = None


OwnerKind = Literal["user", "service account", "project link", "run link", "visitor", "operator"]


class CredentialOwner(NamedTuple):
    """The owner of something that outlives the request in which it was made.

    Attributes:
        id: of the user, service account, or of what a guest link leads to; 0 for the others.
        key_id: of the key that the request came with; None if there was none.
    """

    kind: OwnerKind
    id: int = 0
    key_id: int | None = None

    @classmethod
    def of(cls, principal: Principal) -> CredentialOwner:
        """Return the owner of what this principal makes."""
        if isinstance(principal, (User, ServiceAccount)):
            kind: OwnerKind = "user" if isinstance(principal, User) else "service account"
            return cls(kind, principal.id, None if principal.key is None else principal.key.id)
        if isinstance(principal, GuestLink):
            return cls("run link" if principal.kind == "run" else "project link", principal.id)
        return cls("operator" if isinstance(principal, Operator) else "visitor")

    @property
    def without_account(self) -> Principal | None:
        """The principal, if it is neither a user nor a service account."""
        if self.kind == "run link":
            return GuestLink("run", self.id)
        if self.kind == "project link":
            return GuestLink("project", self.id)
        if self.kind == "visitor":
            return Anonymous()
        return Operator() if self.kind == "operator" else None

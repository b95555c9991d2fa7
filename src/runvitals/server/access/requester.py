"""The requester, as the routes see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from starlette.requests import Request

from runvitals.server.access.principals import (
    CommandLine,
    GuestLink,
    Operator,
    Principal,
    ServiceAccount,
    User,
)
from runvitals.server.accounts.storage.sessions import SessionRow
from runvitals.server.audit.storage.audit import CLI, OPERATOR_NAME, Actor
from runvitals.server.http.immediate import immediate

SCOPE_KEY: Final = "runvitals.requester"
"""Where the ASGI scope has the requester."""

Via = Literal["session", "key", "link", "cli", ""]


@dataclass(frozen=True, slots=True)
class Requester:
    """The author of a request, and where it comes from.

    Attributes:
        name: the user name, or the name of the service account, for the audit log.
        via: how the request was authenticated; empty for visitors and on a server without accounts.
        session: the browser session; None for keys and visitors.
        key_public_id: the shown part of the key.
        ip, agent: the client's address, behind trusted proxies too, and its `User-Agent`.
        request_id: `X-Request-Id` of the response.
    """

    principal: Principal
    name: str = ""
    via: Via = ""
    session: SessionRow | None = None
    key_public_id: str | None = None
    ip: str = ""
    agent: str = ""
    request_id: str | None = None

    @property
    def user_id(self) -> int | None:
        """The id of the user; None for service accounts, links and visitors."""
        return self.principal.id if isinstance(self.principal, User) else None

    @property
    def client(self) -> tuple[str, int] | str:
        """The account or guest link whose requests a limit counts together; the address for visitors."""
        principal = self.principal
        if isinstance(principal, (User, ServiceAccount, GuestLink)):
            return type(principal).__name__, principal.id
        return self.ip

    @property
    def mail_name(self) -> str:
        """This requester, as mail about a change calls who made it."""
        return OPERATOR_NAME if isinstance(self.principal, CommandLine) else self.name

    @property
    def actor(self) -> Actor:
        """This requester for the audit log."""
        principal = self.principal
        if isinstance(principal, CommandLine):
            return CLI
        kind: Literal["user", "service_account", "system", "anonymous"] = "anonymous"
        if isinstance(principal, User):
            kind = "user"
        elif isinstance(principal, ServiceAccount):
            kind = "service_account"
        elif isinstance(principal, Operator):
            kind = "system"
        number = principal.id if isinstance(principal, (User, ServiceAccount)) else None
        return Actor(
            kind,
            self.name or kind,
            number,
            self.via,
            self.key_public_id,
            self.ip,
            self.agent,
            self.request_id,
        )

    def as_user(self, user_id: int, name: str, via: str) -> Actor:
        """Return the user whom a link or password of this request belongs to, for the audit log."""
        return Actor("user", name, user_id, via, None, self.ip, self.agent, self.request_id)


@immediate
def requester_of(request: Request) -> Requester:
    """Return the requester of a request; the middleware of `server.access` has put it there."""
    requester: Requester = request.scope[SCOPE_KEY]
    return requester

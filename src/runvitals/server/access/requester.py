"""Who makes a request, as the routes see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from fastapi import Depends, Request

from runvitals.accounts.principals import Operator, Principal, ServiceAccount, User
from runvitals.store.metadata.accounts.audit import Actor
from runvitals.store.metadata.accounts.sessions import SessionRow

SCOPE_KEY: Final = "runvitals.requester"
"""Where the ASGI scope has the requester."""

Via = Literal["session", "key", "link", ""]


@dataclass(frozen=True, slots=True)
class Requester:
    """Who makes a request, and from where.

    Attributes:
        name: the user name, or the name of the service account, for the audit log.
        via: how the request was authenticated; empty for visitors and on a server without accounts.
        session: the browser session; None for keys and visitors.
        key_public_id: the shown part of the key.
        ip, agent: the client's address, behind trusted proxies too, and its `User-Agent`.
    """

    principal: Principal
    name: str = ""
    via: Via = ""
    session: SessionRow | None = None
    key_public_id: str | None = None
    ip: str = ""
    agent: str = ""

    @property
    def user_id(self) -> int | None:
        """The id of the user; None for service accounts, links and visitors."""
        return self.principal.id if isinstance(self.principal, User) else None

    @property
    def actor(self) -> Actor:
        """This requester for the audit log."""
        principal = self.principal
        if isinstance(principal, User):
            return Actor("user", self.name, principal.id, self.via, self.key_public_id, self.ip, self.agent)
        if isinstance(principal, ServiceAccount):
            return Actor(
                "service_account", self.name, principal.id, self.via, self.key_public_id, self.ip, self.agent
            )
        kind: Literal["system", "anonymous"] = "system" if isinstance(principal, Operator) else "anonymous"
        return Actor(kind, self.name or kind, via=self.via, ip=self.ip, agent=self.agent)


def requester_of(request: Request) -> Requester:
    """The requester of a request; the middleware of `server.access` has put it there."""
    requester: Requester = request.scope[SCOPE_KEY]
    return requester


TheRequester = Annotated[Requester, Depends(requester_of)]

"""The user whose own account a request is about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException

from runvitals.server.access.control import unauthenticated
from runvitals.server.access.requester import Requester
from runvitals.server.accounts.storage.sessions import SessionRow
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.http.immediate import immediate
from runvitals.server.service_parameters import TheRequester


@dataclass(frozen=True, slots=True)
class Owner:
    """A user who does something with their own account. What they may do, the route has declared."""

    id: int
    name: str
    requester: Requester

    @property
    def actor(self) -> Actor:
        """The user, for the audit log."""
        return self.requester.actor

    @property
    def session(self) -> SessionRow:
        """The browser session of the request; raises 403 for a request by key."""
        if self.requester.session is None:
            raise HTTPException(403, "this needs a user who is signed in; a key is not enough")
        return self.requester.session


@immediate
def owner_of(requester: TheRequester) -> Owner:
    """The user who makes the request, by session or by key."""
    if requester.user_id is None:
        raise unauthenticated()
    return Owner(requester.user_id, requester.name, requester)


@immediate
def signed_in_owner(requester: TheRequester) -> Owner:
    """The user who makes the request, by session."""
    owner = owner_of(requester)
    _ = owner.session
    return owner


TheOwner = Annotated[Owner, Depends(owner_of)]
SignedInOwner = Annotated[Owner, Depends(signed_in_owner)]

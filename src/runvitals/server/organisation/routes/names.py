"""`/organisation/names`: names of deleted users and teams, which stay taken until they are released."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path

from runvitals.server.access.permission import needs
from runvitals.server.access.requester import TheRequester
from runvitals.server.http.router import Router
from runvitals.server.service_parameters import TheAccess

router = Router()


@router.post("/organisation/names/{name}/release", dependencies=[needs("name:release")])
def release_name(
    name: Annotated[str, Path(max_length=64)], access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Let the name of a user or team that was deleted for good be given again.

    Someone else may then get what is sent to the old name: the audit log says who released it.
    """
    access.accounts.release_name(name, requester.actor, access.clock())
    access.rights_changed()
    return {"name": name.lower(), "released": True}

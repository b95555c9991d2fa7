"""`/entities/{entity}/defaults`: what clients do in a team or space unless they are asked otherwise."""

from __future__ import annotations

from typing import Any

from runvitals.server.access.control import TheAccess
from runvitals.server.access.directory import entity_defaults
from runvitals.server.access.permission import needs
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.project_parameters import EntityName
from runvitals.store.errors import NotFound

router = Router()


@router.get("/entities/{entity}/defaults", dependencies=[needs("team:read")])
def defaults(entity: EntityName, access: TheAccess) -> dict[str, Any]:
    """Whether code is saved, and who sees new projects."""
    number = access.accounts.entity_id(entity)
    facts = None if number is None else access.accounts.entity(number)
    if facts is None:
        raise NotFound(f"there is no team or user {entity!r}")
    found = entity_defaults(access.accounts, facts)
    return {"code_saving": found.code_saving, "visibility": found.visibility}

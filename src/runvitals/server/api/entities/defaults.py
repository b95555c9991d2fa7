"""`/entities/{entity}/defaults`: what clients do in a team or space unless they are asked otherwise."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from runvitals.accounts.organisation_settings import enforced_switches, with_defaults
from runvitals.server.access.control import TheAccess
from runvitals.server.access.permission import needs
from runvitals.server.api.entities.parameters import EntityName
from runvitals.store.errors import UnknownAccount

router = APIRouter()


@router.get("/entities/{entity}/defaults", dependencies=[needs("team:read")])
def entity_defaults(entity: EntityName, access: TheAccess) -> dict[str, Any]:
    """Whether code is saved, and who sees new projects."""
    stored = access.accounts.settings.all()
    settings = with_defaults(stored)
    try:
        team = access.accounts.teams.by_name(entity)
    except UnknownAccount:  # a user's own space
        return {
            "code_saving": settings["code_saving_default"],
            "visibility": settings["personal_visibility"],
        }
    code_saving = enforced_switches(stored).get("code_saving", team.code_saving)
    return {"code_saving": code_saving, "visibility": team.default_visibility}

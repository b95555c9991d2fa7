"""Defaults of teams and of users' own spaces, for new projects and saved code."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.server.access.storage.grants import EntityFacts
from runvitals.server.account_store import AccountStore
from runvitals.server.organisation.settings import enforced_switches, with_defaults


@dataclass(frozen=True, slots=True)
class EntityDefaults:
    """Whether code is saved, and the visibility of new projects."""

    code_saving: bool
    visibility: str


def entity_defaults(accounts: AccountStore, entity: EntityFacts) -> EntityDefaults:
    """The defaults of a team; or of a user's own space: what the user or else the organisation chose."""
    stored = accounts.settings.all()
    if entity.owner_id is None:
        team = accounts.teams.by_name(entity.name)
        code_saving = enforced_switches(stored).get("code_saving", team.code_saving)
        return EntityDefaults(code_saving, entity.default_visibility)
    settings, chosen = with_defaults(stored), accounts.profiles.get(entity.owner_id).fields
    return EntityDefaults(
        chosen.get("code_saving", settings["code_saving_default"]),
        chosen.get("default_visibility") or settings["personal_visibility"],
    )

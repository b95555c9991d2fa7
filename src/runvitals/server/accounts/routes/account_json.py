"""Who is signed in, as JSON."""

from __future__ import annotations

from typing import Any

from runvitals.server.access.control import AccessControl
from runvitals.server.access.matrix import ORGANISATION_MATRIX
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation
from runvitals.server.organisation.settings import with_defaults

_ORGANISATION_ACTIONS = frozenset(ORGANISATION_MATRIX)


def account_json(access: AccessControl, user_id: int) -> dict[str, Any]:
    """A user's account as its owner sees it."""
    accounts, now_ms = access.accounts, access.clock()
    row, profile = accounts.users.get(user_id), accounts.profiles.get(user_id)
    principal = access.directory.user(user_id) or User(user_id, state="deleted")
    password, factor = accounts.credentials.password(user_id), accounts.credentials.second_factor(user_id)
    asked = accounts.passkeys.asked_after_password(user_id)
    primary = accounts.emails.primary(user_id)
    teams = [
        {"name": team.name, "display_name": team.display_name, "role": role, "custom_role": custom}
        for team, role, custom in accounts.teams.of_user(user_id, now_ms)
    ]
    settings = with_defaults(accounts.settings.all())
    return {
        "kind": "user",
        "name": row.name,
        "display_name": row.display_name,
        "picture": accounts.pictures.digests([row.entity_id]).get(row.entity_id),
        "state": row.state,
        "email": None if primary is None else primary.address,
        "org_role": row.org_role,
        "access": row.access,
        "billing_role": row.billing_role,
        "teams": teams,
        "default_entity": default_entity(access, principal),
        "time_zone": profile.fields.get("time_zone", ""),
        "locale": profile.fields.get("locale", ""),
        "theme": profile.fields.get("theme", ""),
        "landing_page": profile.fields.get("landing_page", ""),
        "second_factor": asked or (factor is not None and factor.confirmed_ms is not None),
        "password": password is not None,
        "must_change_password": password is not None and password.must_change,
        "delete_after_ms": row.delete_after_ms,
        "may": access.may_list(Requester(principal, row.name), Organisation(), _ORGANISATION_ACTIONS),
        "api_key_creation": settings["api_key_creation"],
        "personal_entities": settings["personal_entities"],
    }


def default_entity(access: AccessControl, user: User) -> str:
    """Where runs go that name no entity: the team that the user chose, or else the user's own space."""
    entity = None if user.home is None else access.accounts.entity(user.home)
    return "" if entity is None else entity.name

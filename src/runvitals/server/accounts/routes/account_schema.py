"""A user's account in responses, as its owner sees it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.matrix import ORGANISATION_MATRIX
from runvitals.server.access.principals import User
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Organisation
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.organisation.settings import with_defaults

_ORGANISATION_ACTIONS = frozenset(ORGANISATION_MATRIX)

OrganisationRole = Literal["member", "admin"]
AccessLevel = Literal["full", "viewer", "none"]
BillingRole = Literal["none", "viewer", "admin"]


class OwnTeam(ResponseBody):
    """A team that a user is in."""

    name: str
    display_name: str
    role: str
    custom_role: str | None


class AccountSchema(ResponseBody):
    """A user's account."""

    kind: Literal["user"]
    name: str
    display_name: str
    picture: str | None = Field(description="The digest of the picture.")
    state: Literal["active", "unverified", "suspended", "deleted"]
    email: str | None = Field(description="The primary address.")
    org_role: OrganisationRole
    access: AccessLevel
    billing_role: BillingRole
    teams: list[OwnTeam]
    default_entity: str = Field(description="Where runs go that name no entity; empty: nowhere.")
    time_zone: str
    locale: str
    theme: Literal["", "system", "light", "dark"]
    landing_page: str = Field(description="The path that the user sees first.")
    second_factor: bool
    password: bool = Field(description="Whether there is one.")
    must_change_password: bool = Field(
        description="An administrator has set the password: nothing else may be done before it is changed."
    )
    delete_after_ms: int | None = Field(description="When it will be deleted, if that was requested.")
    may: list[str] = Field(description="Actions in the organisation, such as `team:create`.")
    api_key_creation: Literal["members", "admins"]
    personal_entities: bool = Field(description="Whether users have projects in a space of their own.")


class SignedInSchema(ResponseBody):
    """The account after a sign-in, and in `next` the path of the page that follows."""

    account: AccountSchema
    next: str


def account_of(access: AccessControl, user_id: int) -> AccountSchema:
    """Return a user's account as its owner sees it."""
    accounts, now_ms = access.accounts, access.clock()
    row, profile = accounts.users.get(user_id), accounts.profiles.get(user_id)
    principal = access.directory.user(user_id) or User(user_id, state="deleted")
    password, factor = accounts.credentials.password(user_id), accounts.credentials.second_factor(user_id)
    needs_passkey = accounts.passkeys.asked_after_password(user_id)
    primary = accounts.emails.primary(user_id)
    settings = with_defaults(accounts.settings.all())
    return AccountSchema.model_validate(
        {
            "kind": "user",
            "name": row.name,
            "display_name": row.display_name,
            "picture": accounts.pictures.digests([row.entity_id]).get(row.entity_id),
            "state": row.state,
            "email": None if primary is None else primary.address,
            "org_role": row.org_role,
            "access": row.access,
            "billing_role": row.billing_role,
            "teams": [
                {"name": team.name, "display_name": team.display_name, "role": role, "custom_role": custom}
                for team, role, custom in accounts.teams.of_user(user_id, now_ms)
            ],
            "default_entity": default_entity(access, principal),
            "time_zone": profile.fields.get("time_zone", ""),
            "locale": profile.fields.get("locale", ""),
            "theme": profile.fields.get("theme", ""),
            "landing_page": profile.fields.get("landing_page", ""),
            "second_factor": needs_passkey or (factor is not None and factor.confirmed_ms is not None),
            "password": password is not None,
            "must_change_password": password is not None and password.must_change,
            "delete_after_ms": row.delete_after_ms,
            "may": access.may_list(Requester(principal, row.name), Organisation(), _ORGANISATION_ACTIONS),
            "api_key_creation": settings["api_key_creation"],
            "personal_entities": settings["personal_entities"],
        }
    )


def default_entity(access: AccessControl, user: User) -> str:
    """Return where runs go that name no entity: the team that the user chose, or else their own space."""
    entity = None if user.home is None else access.accounts.entity(user.home)
    return "" if entity is None else entity.name

"""`/account/profile`: what users say about themselves, and what they prefer."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field

from runvitals.model.account_names import display_name
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.identification.login_page import redirect_target
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import User
from runvitals.server.accounts.routes.account_schema import default_entity
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.accounts.storage.profiles import ProfileRow
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.mail.notices import CHOSEN_ADDRESS, SWITCHED_OFF
from runvitals.server.organisation.settings import time_zone, with_defaults
from runvitals.server.reports.routes.pins import PinnedReports, set_pinned_reports
from runvitals.server.service_parameters import TheAccess

DEFAULTS: Final[dict[str, Any]] = {
    "institution": "",
    "bio": "",
    "location": "",
    "links": [],
    "intro": "",
    "hide_teams": False,
    "default_visibility": "",
    "code_saving": False,
    "time_zone": "",
    "locale": "",
    "theme": "",
    "landing_page": "",
    SWITCHED_OFF: [],
    CHOSEN_ADDRESS: "",
}
_LINE_FIELDS: Final = ("institution", "location", "bio")
_MAX_LABEL: Final = 40
_MAX_URL: Final = 500

router = Router()


class ProfileLink(RequestBody):
    """A link on the page of a user."""

    label: str = Field("", max_length=_MAX_LABEL)
    url: str = Field(max_length=_MAX_URL)


class ProfileChanges(RequestBody):
    """Fields that are left out do not change."""

    display_name: str | None = Field(None, max_length=64)
    institution: str | None = Field(None, max_length=128)
    bio: str | None = Field(None, max_length=500)
    location: str | None = Field(None, max_length=64)
    links: list[ProfileLink] | None = Field(None, max_length=5)
    intro: str | None = Field(None, max_length=20_000)
    pinned_reports: PinnedReports = None
    hide_teams: bool | None = None
    default_entity: Annotated[str, Field(max_length=64)] | None = None
    default_visibility: Literal["", "team", "organisation", "public", "open"] | None = None
    code_saving: bool | None = None
    time_zone: str | None = Field(None, max_length=64)
    locale: str | None = Field(None, max_length=35, pattern=r"^([A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*)?$")
    theme: Literal["", "system", "light", "dark"] | None = None
    landing_page: str | None = Field(None, max_length=300)
    mail_switched_off: list[Literal["reminders", "teams"]] | None = Field(
        None, max_length=2, description="Mail that is not sent: before something ends, and about teams."
    )
    mail_address: str | None = Field(
        None, max_length=254, description="Where such mail goes: a verified address; empty: the primary one."
    )


class ShownLink(ResponseBody):
    """A link on the page of a user or team."""

    label: str
    url: str


class ProfileSchema(ResponseBody):
    """A profile with all its fields, as its owner sees it."""

    display_name: str
    institution: str
    bio: str
    location: str
    links: list[ShownLink]
    intro: str = Field(description="Markdown.")
    hide_teams: bool
    default_visibility: str
    code_saving: bool
    time_zone: str
    locale: str
    theme: Literal["", "system", "light", "dark"]
    landing_page: str
    mail_switched_off: list[Literal["reminders", "teams"]]
    mail_address: str
    default_entity: str


@router.get("/account/profile", needs("account:read"))
def own_profile(access: TheAccess, owner: TheOwner) -> ProfileSchema:
    """The profile as its owner edits it."""
    return profile_schema(access, access.accounts.profiles.get(owner.id))


@router.patch("/account/profile", needs("account:update"))
def change_profile(body: ProfileChanges, access: TheAccess, owner: TheOwner) -> ProfileSchema:
    """Change fields of the profile. The user name never changes."""
    requested = body.model_dump(exclude_unset=True, exclude_none=True, exclude={"pinned_reports"})
    problems: dict[str, str] = {}
    changes = _checked_texts(requested, problems)
    if requested.get(CHOSEN_ADDRESS):
        changes[CHOSEN_ADDRESS] = _address(access, owner.id, requested[CHOSEN_ADDRESS], problems)
    if "default_entity" in requested:
        del changes["default_entity"]
        changes["default_entity_id"] = _entity_id(access, owner.id, requested["default_entity"], problems)
    if problems:
        raise InvalidFields(problems)
    profiles = access.accounts.profiles
    if body.pinned_reports is not None:
        own_space = profiles.get(owner.id).entity_id
        set_pinned_reports(access, owner.requester, own_space, body.pinned_reports, is_team=False)
    if not changes:
        return profile_schema(access, profiles.get(owner.id))
    changed = profiles.put(owner.id, changes, owner.actor, access.clock())
    access.rights_changed()
    return profile_schema(access, changed)


def shown_fields(profile: ProfileRow) -> dict[str, Any]:
    """Return what others see of a profile."""
    names = ("institution", "bio", "location", "links", "intro")
    return {"display_name": profile.display_name} | {
        name: profile.fields.get(name, DEFAULTS[name]) for name in names
    }


def profile_schema(access: AccessControl, profile: ProfileRow) -> ProfileSchema:
    """Return a profile with all its fields, as its owner sees it."""
    of_organisation = with_defaults(access.accounts.settings.all())["code_saving_default"]
    defaults = {**DEFAULTS, "code_saving": of_organisation}
    fields = {name: profile.fields.get(name, default) for name, default in defaults.items()}
    user = access.directory.user(profile.user_id) or User(profile.user_id, state="deleted")
    return ProfileSchema(
        display_name=profile.display_name, **fields, default_entity=default_entity(access, user)
    )


def _checked_texts(requested: dict[str, Any], problems: dict[str, str]) -> dict[str, Any]:
    changes = dict(requested)
    if "display_name" in requested:
        try:
            changes["display_name"] = display_name(requested["display_name"])
        except ValueError as error:
            problems["display_name"] = str(error)
    for name in _LINE_FIELDS:
        if name in requested:
            changes[name] = " ".join(_visible(requested[name]).split())
    if "intro" in requested:
        changes["intro"] = "\n".join(_visible(line) for line in requested["intro"].splitlines())
    for number, link in enumerate(requested.get("links", ())):
        if not _is_web_address(link["url"]):
            problems[f"links[{number}].url"] = "expected an address that begins with https:// or http://"
        link["label"] = " ".join(_visible(link.get("label", "")).split())
    landing_page = requested.get("landing_page")
    if landing_page and redirect_target(landing_page) != landing_page:
        problems["landing_page"] = "expected a path of this server, such as /vision/digits"
    if requested.get("time_zone"):
        try:
            time_zone(requested["time_zone"])
        except ValueError as error:
            problems["time_zone"] = str(error)
    return changes


def _address(access: AccessControl, user_id: int, text: str, problems: dict[str, str]) -> str:
    """One of the user's own verified addresses, as it was added."""
    address = text.strip().casefold()
    for row in access.accounts.emails.of_user(user_id):
        if row.verified_ms is not None and row.address.casefold() == address:
            return row.address
    problems[CHOSEN_ADDRESS] = "expected one of your verified addresses"
    return ""


def _visible(text: str) -> str:
    """Return a text without control characters and characters that reverse the direction of others."""
    forbidden = ("Cc", "Cs", "Zl", "Zp")
    bidirectional = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return "".join(
        letter if letter == "\t" or unicodedata.category(letter) not in forbidden else " "
        for letter in text
        if letter not in bidirectional
    )


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        return False
    return valid and url.isprintable() and not any(letter.isspace() for letter in url)


def _entity_id(access: AccessControl, user_id: int, name: str, problems: dict[str, str]) -> int | None:
    """Return the id of a team in which the user may log; None for the user's own space."""
    row, user = access.accounts.users.get(user_id), access.directory.user(user_id)
    if name.lower() in ("", row.name):
        if name and not access.directory.policies().personal_entities:
            problems["default_entity"] = "users have no projects of their own on this server: expected a team"
        return None
    for team, _, _ in access.accounts.teams.of_user(user_id, access.clock()):
        membership = user.teams.get(team.id) if user is not None else None
        if team.name == name.lower() and membership is not None and membership.role is not Role.VIEWER:
            return team.id
    problems["default_entity"] = f"expected your own name, or a team in which you may log, not {name[:64]!r}"
    return None

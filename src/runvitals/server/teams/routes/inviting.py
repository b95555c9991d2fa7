"""Inviting people to a team or to the organisation: limits, links, mail, and the bodies of responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, cast

from fastapi import HTTPException
from pydantic import ConfigDict, Field

from runvitals.model.account_names import address_key
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.principals import CommandLine
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import Entity, Member
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.http.errors import InvalidFields, checking, too_many
from runvitals.server.mail import messages
from runvitals.server.mail.notices import Notices
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.teams.storage.invitations import AlreadyInvited, InvitationRow, check_days
from runvitals.server.teams.storage.teams import TeamRow
from runvitals.store.errors import NotFound, SentTooOften

MAX_PEOPLE: Final = 50
PATH: Final = "/-/invitation"
_LINK: Final = "anyone with the link"
NOT_ADMITTED: Final = (
    "administrators of the organisation may join a team here only if one of its own members admits them"
)


class People(RequestBody):
    """Who is invited: addresses and user names, or anyone who gets the link."""

    people: list[Annotated[str, Field(min_length=1, max_length=254)]] = Field([], max_length=MAX_PEOPLE)
    link: bool = Field(False, description="Make a link that the first user who opens it can accept.")
    expires_days: int | None = Field(None, description="1 to 30; by default as the organisation has set.")
    message: str = Field("", max_length=500, description="Part of the mail.")


@dataclass(frozen=True, slots=True)
class Place:
    """The target of an invitation: a team with a role, or the organisation (`team` None)."""

    team: TeamRow | None
    entity: Entity | None
    role: str
    org_role: str = "member"


class Inviter:
    """Invites people on behalf of a requester."""

    def __init__(self, access: AccessControl, requester: Requester, notices: Notices) -> None:
        self._access = access
        self._requester = requester
        self._notices = notices
        self._settings = with_defaults(access.accounts.settings.all())

    def days(self, days: int | None) -> int:
        """For how long invitations are valid."""
        if days is None:
            return int(self._settings["invitation_days"])
        with checking("expires_days"):
            check_days(days)
        return days

    def check_limits(self, team: TeamRow | None, count: int) -> None:
        """Check that so many more invitations may be sent.

        Raises:
            HTTPException: 429 if the requester, or the team, has sent too many invitations within a day.
        """
        try:
            self._access.accounts.invitations.check_day(
                self._requester.user_id, None if team is None else team.id, count, self._access.clock()
            )
        except SentTooOften as error:
            raise too_many(str(error), 3600) from None

    def invite(self, people: People, target: Place) -> list[dict[str, Any]]:
        """Invite everyone; returns what became of each."""
        invitees: list[str | None] = [*dict.fromkeys(people.people), *([None] if people.link else [])]
        if not invitees:
            raise InvalidFields({"people": "expected addresses or user names, or link: true"})
        days = self.days(people.expires_days)
        self.check_limits(target.team, len(invitees))
        return [self._invite(invitee, target, days, people.message) for invitee in invitees]

    def resend(self, row: InvitationRow) -> dict[str, Any]:
        """Send an invitation again, with a new link."""
        self.check_limits(None, 1)
        now_ms = self._access.clock()
        try:
            secret = self._access.accounts.invitations.resend(
                row.id, self._requester.actor, now_ms, self.days(None)
            )
        except SentTooOften as error:
            raise too_many(str(error), error.wait_s) from None
        return self._result(row.user or row.address or _LINK, row, secret, "")

    def _invite(self, invitee: str | None, target: Place, days: int, message: str) -> dict[str, Any]:
        address, user, refused = self._resolve(invitee, target)
        invitee_text = invitee or _LINK
        if refused is not None:
            return refused
        try:
            secret, row = self._access.accounts.invitations.create(
                None if target.team is None else target.team.name,
                address,
                target.role,
                self._requester.actor,
                self._access.clock(),
                user_id=None if user is None else user.id,
                days=days,
                org_role=target.org_role,
            )
        except AlreadyInvited:
            return {"who": invitee_text, "state": "already_invited"}
        except ValueError as error:
            return {"who": invitee_text, "state": "refused", "reason": str(error)}
        return self._result(invitee_text, row, secret, message)

    def _resolve(
        self, invitee: str | None, target: Place
    ) -> tuple[str | None, UserRow | None, dict[str, Any] | None]:
        """Return the address, or the user, or why this person is not invited."""
        if invitee is None:
            return None, None, None
        if "@" in invitee:
            try:
                address_key(invitee)
            except ValueError as error:
                return None, None, {"who": invitee, "state": "refused", "reason": str(error)}
            member = target.team is not None and self._is_known_member(invitee, target)
            return invitee, None, {"who": invitee, "state": "already_member"} if member else None
        try:
            user = self._access.accounts.users.by_name(invitee)
        except NotFound as error:
            return None, None, {"who": invitee, "state": "refused", "reason": str(error)}
        if target.team is None or user.id in self._member_ids(target.team):
            return None, None, {"who": invitee, "state": "already_member"}
        if not may_admit(self._access, target.team.id, user, self._requester.user_id):
            return None, None, {"who": invitee, "state": "refused", "reason": NOT_ADMITTED}
        return None, user, None

    def _is_known_member(self, address: str, target: Place) -> bool:
        """Return whether an address is a member's, as far as the requester may see members' addresses.

        The response must not show others who has an account.
        """
        if target.entity is None or target.team is None:
            return False
        if not self._access.may(self._requester, Action.MEMBER_READ_EMAIL, target.entity):
            return False
        owner = self._access.accounts.users.by_address(address_key(address))
        return owner is not None and owner.id in self._member_ids(target.team)

    def _member_ids(self, team: TeamRow) -> set[int]:
        return {row.user_id for row in self._access.accounts.members.of_team(team.name)}

    def _result(self, who: str, row: InvitationRow, secret: str, message: str) -> dict[str, Any]:
        result: dict[str, Any] = {"who": who, "state": "invited", "id": row.id, "expires_ms": row.expires_ms}
        # A link that came by mail proves who has the address: it is shown only where no mail is sent.
        if self._send(row, secret, message):
            return result
        return {**result, "url": f"{PATH}#{secret}"}

    def _send(self, row: InvitationRow, secret: str, text: str) -> bool:
        if isinstance(self._requester.principal, CommandLine):  # it prints the link
            return False
        name = row.team_display_name or str(self._settings.get("name") or "the organisation")
        role = row.custom_role or (row.role if row.team else row.org_role)
        if row.address is not None:
            message = messages.invitation(name, self._requester.name, role, secret, text)
            return self._notices.to_address(row.address, message)
        if row.user_id is not None:
            message = messages.invitation_of_user(name, self._requester.name, role, text)
            return self._notices.to_user(row.user_id, message)
        return False


def may_admit(access: AccessControl, team_id: int, user: UserRow, by_user_id: int | None) -> bool:
    """Return whether a user may admit another one to a team.

    Where administrators of the organisation may not join teams by themselves, they may not admit each other
    either: only the team's own members may.
    """
    if user.org_role != "admin" or access.directory.policies().admins_join_teams:
        return True
    members = access.accounts.members.of_teams([team_id]).get(team_id, ())
    return by_user_id in {member.user_id for member in members}


def check_admission(access: AccessControl, team_id: int, user_id: int, by_user_id: int | None) -> None:
    """Raise 403 unless a user may be admitted to a team: see `may_admit`."""
    if not may_admit(access, team_id, access.accounts.users.get(user_id), by_user_id):
        raise HTTPException(403, NOT_ADMITTED)


def check_role(access: AccessControl, requester: Requester, team: TeamRow, role: str) -> None:
    """Raise 403 if the role is beyond the requester's own, or InvalidFields if there is none like it."""
    built_in = next((candidate for candidate in Role if candidate.value == role), None)
    if built_in is None and role not in {row.name for row in access.accounts.roles.all()}:
        raise InvalidFields(
            {"custom_role": f"there is no role {role!r}; expected viewer, member, admin or a custom role"}
        )
    invited = Member(access.directory.entity(team.id), built_in or Role.VIEWER, built_in is None)
    access.require(requester, Action.MEMBER_INVITE, invited, f"the role {role!r}")


InvitationState = Literal["pending", "accepted", "declined", "revoked", "expired"]


class Invitation(ResponseBody):
    """An invitation to a team or to the organisation."""

    id: int
    team: str | None = Field(description="None: to the organisation only.")
    team_display_name: str | None
    address: str | None = Field(description="Where it was sent. None also if the requester may not see it.")
    user: str | None = Field(description="Who was invited by name.")
    role: str = Field(description="The built-in role, or the base of the custom one.")
    custom_role: str | None
    org_role: str
    invited_by: str | None
    state: InvitationState
    created_ms: int
    sent_ms: int
    expires_ms: int
    ended_ms: int | None


InvitationsPage = page_body("InvitationsPage", "A page of invitations.", invitations=list[Invitation])


class InvitationResult(ResponseBody):
    """The result of an invitation."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    who: str
    state: Literal["invited", "already_member", "already_invited", "refused"]
    id: int | None = None
    expires_ms: int | None = None
    reason: str | None = None
    url: str | None = Field(None, description="Where the server sends no mail: the link to pass on.")


class InvitationResults(ResponseBody):
    """The result of each invitation."""

    results: list[InvitationResult]


def invitation_of(row: InvitationRow, address: bool = True) -> Invitation:
    """Return an invitation in a response. `address`: whether its address is shown."""
    return Invitation(
        id=row.id,
        team=row.team,
        team_display_name=row.team_display_name,
        address=row.address if address else None,
        user=row.user,
        role=row.role,
        custom_role=row.custom_role,
        org_role=row.org_role,
        invited_by=row.inviter_name or row.inviter,
        state=cast(InvitationState, row.state),
        created_ms=row.created_ms,
        sent_ms=row.sent_ms,
        expires_ms=row.expires_ms,
        ended_ms=row.ended_ms,
    )

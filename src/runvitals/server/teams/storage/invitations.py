"""Invitations to a team or to the organisation, by e-mail or by a link that anyone can use."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, or_, select, update

from runvitals.model.account_names import address_key
from runvitals.model.durations import DAY_MS
from runvitals.server.accounts.storage.entities import lock_user
from runvitals.server.accounts.storage.random_secrets import digest_of, new_secret
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import (
    custom_role,
    email,
    entity,
    invitation,
    membership,
    team,
    user_account,
)
from runvitals.server.teams.storage.members import ROLES, add_member, resolve_role
from runvitals.server.teams.storage.teams import living_team
from runvitals.store.errors import NoLongerValid, NotAllowed, NotFound, SentTooOften

DEFAULT_DAYS = 7
MAX_DAYS = 30
MAX_SENDS = 5
AGAIN_MS = 10_000
"""For how long the link of an invitation that was sent again is not replaced."""
A_DAY_BY_USER = 50
A_DAY_TO_TEAM = 500
_ENDED = "this invitation was used, has expired or was revoked"


class AlreadyInvited(ValueError):
    """Somebody has a pending invitation to the same team with the same role."""


@dataclass(frozen=True, slots=True)
class InvitationRow:
    """An invitation without its secret.

    Attributes:
        team_id, team, team_display_name: None: to the organisation only.
        address: where it was sent. Without an address and a user it is a link that anyone can use.
        user_id, user: who was invited by name.
        role: the built-in role, or the base of `custom_role`.
        inviter, inviter_name: the user who invited, and their display name.
    """

    id: int
    team_id: int | None
    team: str | None
    team_display_name: str | None
    address: str | None
    user_id: int | None
    user: str | None
    role: str
    custom_role_id: int | None
    custom_role: str | None
    org_role: str
    invited_by: int | None
    inviter: str | None
    inviter_name: str | None
    created_ms: int
    sent_ms: int
    sends: int
    expires_ms: int
    state: str
    ended_ms: int | None


_user, _user_name = user_account.alias(), entity.alias()
_inviter, _inviter_name = user_account.alias(), entity.alias()
_NAMES = {
    "team": entity.c.name,
    "team_display_name": team.c.display_name,
    "user": _user_name.c.name,
    "custom_role": custom_role.c.name,
    "inviter": _inviter_name.c.name,
    "inviter_name": _inviter.c.display_name,
}
_INVITATIONS = (
    select(
        *[
            _NAMES[name].label(name) if name in _NAMES else invitation.c[name]
            for name in InvitationRow.__dataclass_fields__
        ]
    )
    .select_from(invitation)
    .outerjoin(entity, entity.c.id == invitation.c.team_id)
    .outerjoin(team, team.c.entity_id == invitation.c.team_id)
    .outerjoin(custom_role, custom_role.c.id == invitation.c.custom_role_id)
    .outerjoin(_user, _user.c.id == invitation.c.user_id)
    .outerjoin(_user_name, _user_name.c.id == _user.c.entity_id)
    .outerjoin(_inviter, _inviter.c.id == invitation.c.invited_by)
    .outerjoin(_inviter_name, _inviter_name.c.id == _inviter.c.entity_id)
)


class InvitationTable(StoredTable):
    """The table of invitations."""

    def create(
        self,
        team_name: str | None,
        address: str | None,
        role: str,
        by: Actor,
        now_ms: int,
        *,
        user_id: int | None = None,
        days: int = DEFAULT_DAYS,
        org_role: str = "member",
    ) -> tuple[str, InvitationRow]:
        """Invite an address or a user, or make a link; returns the link's secret and the invitation.

        Whoever has a pending invitation to the same team with another role gets that role and a new link; the
        old link stops working.

        Args:
            address: an e-mail address. None, and no `user_id`: a link that anyone can use.
            user_id: a user who is invited by name.

        Raises:
            ValueError: an invalid address or number of days.
            AlreadyInvited: there is such an invitation with the same role. Of two who invite somebody at
                once, one gets this, so that only a link that works is sent.
            SentTooOften: it was sent too often within a day, or the user, or all to the team, sent too many.
            NotFound: there is no such team or role.
        """
        check_days(days)
        if address is None and user_id is None and org_role == "admin":
            raise ValueError("an administrator needs an invitation by e-mail: anyone can open a link")
        key = None if address is None else address_key(address)
        secret, digest = new_secret()

        def work(connection: Connection) -> InvitationRow:
            team_id = None if team_name is None else living_team(connection, team_name).id
            base, role_id = resolve_role(connection, role)
            values: dict[str, object] = {
                "team_id": team_id,
                "address": address,
                "address_key": key,
                "user_id": user_id,
                "role": base,
                "custom_role_id": role_id,
                "org_role": org_role,
                "invited_by": by.user_id,
                "digest": digest,
                "sent_ms": now_ms,
                "expires_ms": now_ms + days * DAY_MS,
                "state": "pending",
            }
            pending = _pending(connection, team_id, key, user_id)
            if pending is not None and _offers(pending, base, role_id, org_role, now_ms):
                raise AlreadyInvited(f"{address or 'this user'} is already invited")
            _check_day(connection, by.user_id, team_id, now_ms)
            _send(connection, pending, now_ms, values)
            row = _by_digest(connection, digest)
            _record_creation(connection, row, role, by, now_ms)
            return row

        return secret, self._database.write(work)

    def get(self, invitation_id: int) -> InvitationRow:
        """Return an invitation by its id.

        Raises:
            NotFound: there is no such invitation.
        """
        with self._database.read() as connection:
            row = connection.execute(_INVITATIONS.where(invitation.c.id == invitation_id)).first()
        if row is None:
            raise NotFound(f"there is no invitation with id {invitation_id}")
        return InvitationRow(**row._asdict())

    def check_day(self, user_id: int | None, team_id: int | None, count: int, now_ms: int) -> None:
        """Raise SentTooOften unless a user may send, and a team may get, so many more invitations today."""
        with self._database.read() as connection:
            _check_day(connection, user_id, team_id, now_ms, count)

    def resend(self, invitation_id: int, by: Actor, now_ms: int, days: int = DEFAULT_DAYS) -> str:
        """Return the secret of a new link for a pending invitation; the old link stops working.

        Raises:
            NoLongerValid: it is not pending.
            SentTooOften: it was sent too often within a day, or again a moment ago: of two who send it again
                at once, one gets this, so that the other's link works.
        """
        check_days(days)
        secret, digest = new_secret()

        def work(connection: Connection) -> None:
            row = _lock(connection, invitation_id)
            if row.sent_ms > row.created_ms and now_ms - row.sent_ms < AGAIN_MS:
                raise SentTooOften(
                    "this invitation was sent again a moment ago; that link works", AGAIN_MS // 1000
                )
            values = {"digest": digest, "sent_ms": now_ms, "expires_ms": now_ms + days * DAY_MS}
            _resend(connection, row, now_ms, values)
            record(connection, now_ms, by, "team.invitation_resend", entity=_owner(row), target=_whom(row))

        self._database.write(work)
        return secret

    def revoke(self, invitation_id: int, by: Actor, now_ms: int) -> None:
        """Revoke a pending invitation, or raise NoLongerValid."""
        self._end(invitation_id, "revoked", by, now_ms)

    def decline(self, offered: InvitationRow, by: Actor, now_ms: int) -> None:
        """Decline an invitation; raise NoLongerValid if it was used, has expired or was revoked."""
        self._end(offered.id, "declined", by, now_ms)

    def by_secret(self, secret: str, now_ms: int) -> InvitationRow:
        """Return the pending invitation of a link.

        Raises:
            NoLongerValid: it was used, has expired, was revoked or never existed.
        """
        with self._database.read() as connection:
            statement = _INVITATIONS.where(invitation.c.digest == digest_of(secret))
            row = connection.execute(statement).first()
        if row is None or row.state != "pending" or row.expires_ms <= now_ms:
            raise NoLongerValid(_ENDED)
        return InvitationRow(**row._asdict())

    def of_user(self, user_id: int, now_ms: int) -> list[InvitationRow]:
        """Return the pending invitations of a user: by name, and to addresses that the user has verified."""
        verified = select(email.c.address_key).where(
            email.c.user_id == user_id, email.c.verified_ms.is_not(None)
        )
        mine = or_(invitation.c.user_id == user_id, invitation.c.address_key.in_(verified))
        living = (invitation.c.state == "pending", invitation.c.expires_ms > now_ms)
        with self._database.read() as connection:
            rows = connection.execute(_INVITATIONS.where(mine, *living).order_by(invitation.c.id))
            return [InvitationRow(**row._asdict()) for row in rows]

    @in_transaction
    def accept(
        self, connection: Connection, offered: InvitationRow, user_id: int, by: Actor, now_ms: int
    ) -> InvitationRow:
        """Accept an invitation: the user becomes a member of the team. The higher role stays.

        A link came by mail to its address, so that address is added to the user as verified, unless another
        user has it.

        Args:
            offered: the invitation of a link (`by_secret`), or one of the user's own (`of_user`).

        Raises:
            NoLongerValid: it was used, has expired or was revoked.
            NotAllowed: the user is not active.
        """
        row = _lock(connection, offered.id)
        if row.expires_ms <= now_ms or row.user_id not in (None, user_id):
            raise NoLongerValid(_ENDED)
        user = connection.execute(
            select(user_account.c.state, user_account.c.access, entity.c.name)
            .join(entity, entity.c.id == user_account.c.entity_id)
            .where(user_account.c.id == user_id)
        ).first()
        if user is None or user.state not in ("active", "unverified") or user.access == "none":
            raise NotAllowed("this account cannot accept invitations; ask an administrator")
        if row.address is not None:
            _verify_address(connection, user_id, row.address, now_ms)
        if row.team_id is not None:
            _join(connection, row, user_id, now_ms)
        if row.org_role == "admin":
            admin = update(user_account).where(user_account.c.id == user_id)
            connection.execute(admin.values(org_role="admin"))
        _finish(connection, row.id, "accepted", now_ms)
        about = {"role": row.custom_role or row.role}
        action = "team.invitation_accept"
        record(connection, now_ms, by, action, entity=_owner(row), target=user.name, after=about)
        rights_changed(connection)
        return row

    def all(
        self,
        team_name: str | None = None,
        *,
        pending: bool = True,
        since_ms: int = 0,
        organisation: bool = False,
    ) -> list[InvitationRow]:
        """Invitations of a team, or all.

        Args:
            pending: without those that ended.
            since_ms: without those that ended before this time.
            organisation: only those to the organisation.
        """
        statement = _INVITATIONS.where(invitation.c.state == "pending") if pending else _INVITATIONS
        if team_name is not None:
            statement = statement.where(entity.c.name == team_name.lower())
        if organisation:
            statement = statement.where(invitation.c.team_id.is_(None))
        recent = or_(invitation.c.ended_ms.is_(None), invitation.c.ended_ms >= since_ms)
        with self._database.read() as connection:
            rows = connection.execute(statement.where(recent).order_by(invitation.c.id))
            return [InvitationRow(**row._asdict()) for row in rows]

    def expire(self, now_ms: int) -> int:
        """Mark invitations whose time is over; returns how many."""
        over = update(invitation).where(invitation.c.state == "pending", invitation.c.expires_ms <= now_ms)
        ended = over.values(state="expired", ended_ms=now_ms)
        return self._database.write(lambda connection: connection.execute(ended).rowcount)

    def purge(self, before_ms: int) -> int:
        """Remove invitations that ended before this time; returns how many."""
        old = delete(invitation).where(invitation.c.state != "pending", invitation.c.ended_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)

    @in_transaction
    def _end(self, connection: Connection, invitation_id: int, state: str, by: Actor, now_ms: int) -> None:
        row = _lock(connection, invitation_id)
        _finish(connection, row.id, state, now_ms)
        action = "team.invitation_revoke" if state == "revoked" else "team.invitation_decline"
        record(connection, now_ms, by, action, entity=_owner(row), target=_whom(row))


def check_days(days: int) -> None:
    """Raise ValueError if an invitation cannot be valid for so many days."""
    if not 1 <= days <= MAX_DAYS:
        raise ValueError(f"invalid number of days {days}; expected 1 to {MAX_DAYS}")


def _owner(row: InvitationRow) -> tuple[int, str] | None:
    return None if row.team_id is None or row.team is None else (row.team_id, row.team)


def _whom(row: InvitationRow) -> str | None:
    """Return the address or user, for the audit log; None for a link."""
    return row.user or row.address


def _record_creation(connection: Connection, row: InvitationRow, role: str, by: Actor, now_ms: int) -> None:
    to_team = row.team_id is not None
    action = "team.invite" if to_team else "org.invite"
    after = {"role": role} if to_team else {"org_role": row.org_role}
    record(connection, now_ms, by, action, entity=_owner(row), target=_whom(row), after=after)


def _check_day(
    connection: Connection, user_id: int | None, team_id: int | None, now_ms: int, count: int = 1
) -> None:
    if user_id is not None:
        lock_user(connection, user_id)
    for column, number, most, text in (
        (
            invitation.c.invited_by,
            user_id,
            A_DAY_BY_USER,
            "you may send {} invitations a day; try again tomorrow",
        ),
        (
            invitation.c.team_id,
            team_id,
            A_DAY_TO_TEAM,
            "{} invitations a day may be sent to a team; try tomorrow",
        ),
    ):
        sent = select(func.count()).where(column == number, invitation.c.sent_ms > now_ms - DAY_MS)
        if number is not None and connection.execute(sent).scalar_one() + count > most:
            raise SentTooOften(text.format(most))


def _pending(
    connection: Connection, team_id: int | None, key: str | None, user_id: int | None
) -> InvitationRow | None:
    if key is None and user_id is None:
        return None
    same_team = invitation.c.team_id.is_(None) if team_id is None else invitation.c.team_id == team_id
    whom = invitation.c.user_id == user_id if key is None else invitation.c.address_key == key
    row = connection.execute(_INVITATIONS.where(same_team, whom, invitation.c.state == "pending")).first()
    return None if row is None else InvitationRow(**row._asdict())


def _offers(row: InvitationRow, base: str, role_id: int | None, org_role: str, now_ms: int) -> bool:
    offered = (row.role, row.custom_role_id, row.org_role)
    return offered == (base, role_id, org_role) and now_ms < row.expires_ms


def _by_digest(connection: Connection, digest: bytes) -> InvitationRow:
    row = connection.execute(_INVITATIONS.where(invitation.c.digest == digest)).one()
    return InvitationRow(**row._asdict())


def _lock(connection: Connection, invitation_id: int) -> InvitationRow:
    """Return a pending invitation, locked so that two requests do not both end it."""
    mine = invitation.c.id == invitation_id
    connection.execute(select(invitation.c.id).where(mine).with_for_update())
    row = connection.execute(_INVITATIONS.where(mine)).first()
    if row is None or row.state != "pending":
        raise NoLongerValid(_ENDED)
    return InvitationRow(**row._asdict())


def _send(
    connection: Connection, pending: InvitationRow | None, now_ms: int, values: dict[str, object]
) -> None:
    if pending is None:
        connection.execute(insert(invitation).values(**values, created_ms=now_ms, sends=1))
    else:
        _resend(connection, pending, now_ms, values)


def _resend(connection: Connection, row: InvitationRow, now_ms: int, values: dict[str, object]) -> None:
    sends = 1 if now_ms - row.sent_ms >= DAY_MS else row.sends + 1
    if sends > MAX_SENDS:
        raise SentTooOften(f"this invitation was sent {MAX_SENDS} times within a day; wait a day")
    connection.execute(update(invitation).where(invitation.c.id == row.id).values(**values, sends=sends))


def _finish(connection: Connection, invitation_id: int, state: str, now_ms: int) -> None:
    mine = update(invitation).where(invitation.c.id == invitation_id)
    connection.execute(mine.values(state=state, ended_ms=now_ms))


def _verify_address(connection: Connection, user_id: int, address: str, now_ms: int) -> None:
    key = address_key(address)
    owner = connection.execute(
        select(email.c.user_id).where(email.c.address_key == key, email.c.verified_ms.is_not(None))
    ).scalar()
    if owner is not None:
        return
    mine = (email.c.user_id == user_id, email.c.address_key == key)
    if not connection.execute(update(email).where(*mine).values(verified_ms=now_ms)).rowcount:
        first = connection.execute(select(email.c.id).where(email.c.user_id == user_id)).first() is None
        values = {
            "user_id": user_id,
            "address": address,
            "address_key": key,
            "verified_ms": now_ms,
            "is_primary": first,
            "created_ms": now_ms,
        }
        connection.execute(insert(email).values(values))
    unverified = (email.c.user_id == user_id, email.c.is_primary, email.c.verified_ms.is_(None))
    if connection.execute(update(email).where(*unverified).values(is_primary=False)).rowcount:
        connection.execute(update(email).where(*mine).values(is_primary=True))
    waiting = (user_account.c.id == user_id, user_account.c.state == "unverified")
    connection.execute(update(user_account).where(*waiting).values(state="active"))


def _join(connection: Connection, row: InvitationRow, user_id: int, now_ms: int) -> None:
    mine = (membership.c.team_id == row.team_id, membership.c.user_id == user_id)
    present = connection.execute(select(membership.c.role).where(*mine)).scalar()
    if present is None:
        assert row.team_id is not None
        add_member(connection, row.team_id, user_id, row.role, row.custom_role_id, row.invited_by, now_ms)
    elif ROLES.index(present) < ROLES.index(row.role):
        values = {"role": row.role, "custom_role_id": row.custom_role_id}
        connection.execute(update(membership).where(*mine).values(values))

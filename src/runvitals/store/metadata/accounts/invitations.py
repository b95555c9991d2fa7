"""Invitations to a team or to the organisation, by e-mail or by a link that anyone can use."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from runvitals.model.account_names import address_key
from runvitals.store.errors import NoLongerValid, UnknownAccount
from runvitals.store.metadata.accounts.audit import Actor, record
from runvitals.store.metadata.accounts.generation import rights_changed
from runvitals.store.metadata.accounts.members import ROLES, add_member, resolve_role
from runvitals.store.metadata.accounts.random_secrets import digest_of, new_secret
from runvitals.store.metadata.accounts.tables import email, entity, invitation, membership, user_account
from runvitals.store.metadata.accounts.teams import living_team
from runvitals.store.metadata.database import Database

DEFAULT_DAYS = 7
MAX_DAYS = 30
MAX_SENDS = 5
_DAY_MS = 86_400_000
_ENDED = "this invitation was used, has expired or was revoked"


@dataclass(frozen=True, slots=True)
class InvitationRow:
    """An invitation without its secret. `address` null: a link that anyone can use. `team_id` null: to the
    organisation only."""

    id: int
    team_id: int | None
    team: str | None
    address: str | None
    role: str
    custom_role_id: int | None
    org_role: str
    invited_by: int | None
    created_ms: int
    sends: int
    expires_ms: int
    state: str


_INVITATIONS = select(
    *[
        entity.c.name.label("team") if name == "team" else invitation.c[name]
        for name in InvitationRow.__dataclass_fields__
    ]
).outerjoin(entity, entity.c.id == invitation.c.team_id)


class InvitationTable:
    """The table of invitations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        team_name: str | None,
        address: str | None,
        role: str,
        by: Actor,
        now_ms: int,
        *,
        days: int = DEFAULT_DAYS,
        org_role: str = "member",
    ) -> tuple[str, InvitationRow]:
        """Invite an address, or make a link (`address` None); returns the link's secret and the invitation.

        An address that has a pending invitation to the same team gets the new role and a new link; the old
        link stops working.

        Raises:
            ValueError: an invalid address or number of days, or it was sent too often.
            UnknownAccount: there is no such team or role.
        """
        if not 1 <= days <= MAX_DAYS:
            raise ValueError(f"invalid number of days {days}; expected 1 to {MAX_DAYS}")
        if address is None and org_role == "admin":
            raise ValueError("an administrator needs an invitation by e-mail: anyone can open a link")
        key = None if address is None else address_key(address)
        secret, digest = new_secret()

        def work(connection: Connection) -> InvitationRow:
            found = None if team_name is None else living_team(connection, team_name)
            base, role_id = resolve_role(connection, role)
            team_id = None if found is None else found.id
            values: dict[str, object] = {
                "team_id": team_id,
                "address": address,
                "address_key": key,
                "role": base,
                "custom_role_id": role_id,
                "org_role": org_role,
                "invited_by": by.user_id,
                "digest": digest,
                "sent_ms": now_ms,
                "expires_ms": now_ms + days * _DAY_MS,
                "state": "pending",
            }
            pending = _pending(connection, team_id, key)
            if pending is None:
                connection.execute(insert(invitation).values(**values, created_ms=now_ms, sends=1))
            else:
                _resend(connection, pending, now_ms, values)
            owner = None if found is None else (found.id, found.name)
            record(connection, now_ms, by, "team.invite", entity=owner, target=key, after={"role": role})
            return _by_digest(connection, digest)

        return secret, self._database.write(work)

    def resend(self, invitation_id: int, by: Actor, now_ms: int, days: int = DEFAULT_DAYS) -> str:
        """The secret of a new link for a pending invitation; the old link stops working.

        Raises:
            NoLongerValid: it is not pending.
            ValueError: it was sent too often within a day.
        """
        secret, digest = new_secret()

        def work(connection: Connection) -> None:
            row = _locked(connection, invitation_id)
            values = {"digest": digest, "sent_ms": now_ms, "expires_ms": now_ms + days * _DAY_MS}
            _resend(connection, row, now_ms, values)
            record(connection, now_ms, by, "team.invitation_resend", target=row.address)

        self._database.write(work)
        return secret

    def revoke(self, invitation_id: int, by: Actor, now_ms: int) -> None:
        """
        Raises:
            NoLongerValid: it is not pending.
        """
        self._end(invitation_id, "revoked", by, now_ms)

    def decline(self, secret: str, by: Actor, now_ms: int) -> None:
        """
        Raises:
            NoLongerValid: it was used, has expired or was revoked.
        """
        self._end(self.by_secret(secret, now_ms).id, "declined", by, now_ms)

    def by_secret(self, secret: str, now_ms: int) -> InvitationRow:
        """The pending invitation of a link.

        Raises:
            NoLongerValid: it was used, has expired, was revoked or never existed.
        """
        with self._database.read() as connection:
            statement = _INVITATIONS.where(invitation.c.digest == digest_of(secret))
            row = connection.execute(statement).first()
        if row is None or row.state != "pending" or row.expires_ms <= now_ms:
            raise NoLongerValid(_ENDED)
        return InvitationRow(**row._asdict())

    def accept(self, secret: str, user_id: int, by: Actor, now_ms: int) -> InvitationRow:
        """Accept an invitation: the user becomes a member of the team. The higher role stays.

        The link came by mail to its address, so that address is added to the user as verified, unless another
        user has it.

        Raises:
            NoLongerValid: it was used, has expired or was revoked.
            UnknownAccount: there is no such active user.
        """
        offered = self.by_secret(secret, now_ms)

        def work(connection: Connection) -> InvitationRow:
            row = _locked(connection, offered.id)
            user = connection.execute(
                select(user_account.c.state, user_account.c.access).where(user_account.c.id == user_id)
            ).first()
            if user is None or user.state not in ("active", "unverified") or user.access == "none":
                raise UnknownAccount("this account cannot accept invitations; ask an administrator")
            if row.address is not None:
                _verify_address(connection, user_id, row.address, now_ms)
            if row.team_id is not None:
                _join(connection, row, user_id, by, now_ms)
            if row.org_role == "admin":
                admin = update(user_account).where(user_account.c.id == user_id)
                connection.execute(admin.values(org_role="admin"))
            _finish(connection, row.id, "accepted", now_ms)
            owner = (row.team_id, row.team) if row.team_id is not None and row.team is not None else None
            record(connection, now_ms, by, "team.invitation_accept", entity=owner, target=str(user_id))
            rights_changed(connection)
            return row

        return self._database.write(work)

    def all(self, team_name: str | None = None, *, pending: bool = True) -> list[InvitationRow]:
        """Invitations of a team, or all; those that ended too where wanted."""
        statement = _INVITATIONS.where(invitation.c.state == "pending") if pending else _INVITATIONS
        if team_name is not None:
            statement = statement.where(entity.c.name == team_name.lower())
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(invitation.c.id))
            return [InvitationRow(**row._asdict()) for row in rows]

    def expire(self, now_ms: int) -> int:
        """Mark invitations whose time is over; returns how many."""
        over = update(invitation).where(invitation.c.state == "pending", invitation.c.expires_ms <= now_ms)
        ended = over.values(state="expired", ended_ms=now_ms)
        return self._database.write(lambda connection: connection.execute(ended).rowcount)

    def _end(self, invitation_id: int, state: str, by: Actor, now_ms: int) -> None:
        def work(connection: Connection) -> None:
            row = _locked(connection, invitation_id)
            _finish(connection, row.id, state, now_ms)
            action = "team.invitation_revoke" if state == "revoked" else "team.invitation_decline"
            record(connection, now_ms, by, action, target=row.address)

        self._database.write(work)


def _pending(connection: Connection, team_id: int | None, key: str | None) -> InvitationRow | None:
    if key is None:
        return None
    team = invitation.c.team_id.is_(None) if team_id is None else invitation.c.team_id == team_id
    mine = _INVITATIONS.where(team, invitation.c.address_key == key, invitation.c.state == "pending")
    row = connection.execute(mine).first()
    return None if row is None else InvitationRow(**row._asdict())


def _by_digest(connection: Connection, digest: bytes) -> InvitationRow:
    row = connection.execute(_INVITATIONS.where(invitation.c.digest == digest)).one()
    return InvitationRow(**row._asdict())


def _locked(connection: Connection, invitation_id: int) -> InvitationRow:
    """A pending invitation, locked so that two requests do not both end it."""
    mine = invitation.c.id == invitation_id
    connection.execute(select(invitation.c.id).where(mine).with_for_update())
    row = connection.execute(_INVITATIONS.where(mine)).first()
    if row is None or row.state != "pending":
        raise NoLongerValid(_ENDED)
    return InvitationRow(**row._asdict())


def _resend(connection: Connection, row: InvitationRow, now_ms: int, values: dict[str, object]) -> None:
    last_ms = connection.execute(select(invitation.c.sent_ms).where(invitation.c.id == row.id)).scalar_one()
    sends = 1 if now_ms - last_ms >= _DAY_MS else row.sends + 1
    if sends > MAX_SENDS:
        raise ValueError(f"this invitation was sent {MAX_SENDS} times within a day; wait a day")
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


def _join(connection: Connection, row: InvitationRow, user_id: int, by: Actor, now_ms: int) -> None:
    mine = (membership.c.team_id == row.team_id, membership.c.user_id == user_id)
    present = connection.execute(select(membership.c.role).where(*mine)).scalar()
    if present is None:
        assert row.team_id is not None
        add_member(connection, row.team_id, user_id, row.role, row.custom_role_id, by, now_ms)
    elif ROLES.index(present) < ROLES.index(row.role):
        values = {"role": row.role, "custom_role_id": row.custom_role_id}
        connection.execute(update(membership).where(*mine).values(values))

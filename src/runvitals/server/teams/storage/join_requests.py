"""Users who want to join a team: the teams of their mail domains, and requests that administrators answer."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from runvitals.model.durations import DAY_MS
from runvitals.model.names import plain_text
from runvitals.server.accounts.storage.users import user_by_name
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.accounts import (
    email,
    entity,
    membership,
    team,
    team_join_request,
    user_account,
)
from runvitals.server.teams.storage.members import add_member, resolve_role
from runvitals.server.teams.storage.teams import TEAMS, TeamRow, living_team, team_row
from runvitals.store.errors import NameTaken, NoLongerValid, NotAllowed, NotFound

MAX_MESSAGE = 500
A_DAY = 10
"""How many requests a user may make within a day."""


@dataclass(frozen=True, slots=True)
class JoinRequestRow:
    """A request to join a team. `message`: what the user wrote. `ended_by`: a user name."""

    id: int
    team_id: int
    team: str
    team_display_name: str
    user_id: int
    user: str
    user_display_name: str
    message: str
    created_ms: int
    state: str
    ended_ms: int | None
    ended_by: str | None


_user_name, _ender, _ender_name = entity.alias(), user_account.alias(), entity.alias()
_NAMES = {
    "team": entity.c.name,
    "team_display_name": team.c.display_name,
    "user": _user_name.c.name,
    "user_display_name": user_account.c.display_name,
    "ended_by": _ender_name.c.name,
}
_REQUESTS = (
    select(
        *[
            _NAMES[name].label(name) if name in _NAMES else team_join_request.c[name]
            for name in JoinRequestRow.__dataclass_fields__
        ]
    )
    .select_from(team_join_request)
    .join(team, team.c.entity_id == team_join_request.c.team_id)
    .join(entity, entity.c.id == team.c.entity_id)
    .join(user_account, user_account.c.id == team_join_request.c.user_id)
    .join(_user_name, _user_name.c.id == user_account.c.entity_id)
    .outerjoin(_ender, _ender.c.id == team_join_request.c.ended_by)
    .outerjoin(_ender_name, _ender_name.c.id == _ender.c.entity_id)
    .where(entity.c.deleted_ms.is_(None))
)


class JoinRequestTable(StoredTable):
    """The table of requests to join teams."""

    def recommended(self, user_id: int) -> list[TeamRow]:
        """Return the teams, by name, that are recommended to people with a mail domain of the user.

        Not those that the user is in. Hidden ones too: the caller leaves out what is hidden.
        """
        mine = select(membership.c.team_id).where(membership.c.user_id == user_id)
        statement = TEAMS.where(
            team.c.recommend_by_domain, entity.c.deleted_ms.is_(None), entity.c.id.not_in(mine)
        )
        with self._database.read() as connection:
            domains = _domains(connection, user_id)
            rows = map(team_row, connection.execute(statement.order_by(entity.c.name)))
            return [row for row in rows if domains & set(row.join_domains)]

    def joins_at_once(self, user_id: int, team: TeamRow) -> bool:
        """Return whether a user may join a team without asking: `join_by_domain` does it."""
        with self._database.read() as connection:
            return _joins_at_once(connection, user_id, team)

    @in_transaction
    def join_by_domain(self, connection: Connection, team_name: str, by: Actor, now_ms: int) -> None:
        """Join a team as a member, where people with a verified address of its mail domains may.

        Raises:
            NotFound: there is no such team.
            NotAllowed: it must be asked.
            NameTaken: the user is in the team already.
            LimitReached: the user is in too many teams.
        """
        team = living_team(connection, team_name)
        user = user_by_name(connection, by.name)
        if not _joins_at_once(connection, user.id, team):
            raise NotAllowed(f"the administrators of {team_name} must be asked")
        add_member(connection, team.id, user.id, "member", None, user.id, now_ms)
        owner, about = (team.id, team.name), {"role": "member", "by": "mail domain"}
        record(connection, now_ms, by, "team.member_add", entity=owner, target=user.name, after=about)

    @in_transaction
    def create(
        self, connection: Connection, team_name: str, user_id: int, message: str, by: Actor, now_ms: int
    ) -> JoinRequestRow:
        """Ask the administrators of a team to join.

        Raises:
            ValueError: the message is too long.
            NameTaken: the user is in the team, or has asked already.
            LimitReached: the user has asked too many teams within a day.
            NotFound: there is no such team.
        """
        text = plain_text(message).strip()
        if len(text) > MAX_MESSAGE:
            raise ValueError(f"the message is too long; expected at most {MAX_MESSAGE} characters")
        team = living_team(connection, team_name)
        member = (membership.c.team_id == team.id, membership.c.user_id == user_id)
        if connection.execute(select(membership.c.id).where(*member)).first() is not None:
            raise NameTaken(f"you are already a member of {team.name}")
        pending = _pending(team.id, user_id)
        if connection.execute(select(team_join_request.c.id).where(*pending)).first() is not None:
            raise NameTaken(f"you have already asked to join {team.name}")
        theirs = (team_join_request.c.user_id == user_id, team_join_request.c.created_ms > now_ms - DAY_MS)
        refusal = f"you may ask {A_DAY} teams a day; try again tomorrow"
        check_room(connection, team_join_request, A_DAY, refusal, *theirs, owner_id=user_id)
        values = {"team_id": team.id, "user_id": user_id, "message": text, "created_ms": now_ms}
        connection.execute(insert(team_join_request).values(**values, state="pending"))
        owner = (team.id, team.name)
        record(connection, now_ms, by, "team.join_request", entity=owner, target=by.name)
        return JoinRequestRow(**connection.execute(_REQUESTS.where(*pending)).one()._asdict())

    def of_team(self, team_id: int) -> list[JoinRequestRow]:
        """Return the pending requests to join a team, in the order of ids."""
        return self._list(team_join_request.c.team_id == team_id)

    def of_user(self, user_id: int) -> list[JoinRequestRow]:
        """Return the pending requests of a user, in the order of ids."""
        return self._list(team_join_request.c.user_id == user_id)

    def get(self, request_id: int) -> JoinRequestRow:
        """Return a request by its id.

        Raises:
            NotFound: there is no such request.
        """
        with self._database.read() as connection:
            row = connection.execute(_REQUESTS.where(team_join_request.c.id == request_id)).first()
        if row is None:
            raise NotFound(f"there is no request with id {request_id}")
        return JoinRequestRow(**row._asdict())

    @in_transaction
    def approve(self, connection: Connection, request_id: int, role: str, by: Actor, now_ms: int) -> None:
        """Make the user of a request a member of the team.

        Raises:
            NoLongerValid: the request was answered or withdrawn.
            NotAllowed: the account may not join teams.
            NotFound: there is no such role.
            NameTaken: the user is in the team already.
            LimitReached: the user is in too many teams.
        """
        row = _lock(connection, request_id)
        account = select(user_account.c.state, user_account.c.access)
        user = connection.execute(account.where(user_account.c.id == row.user_id)).one()
        if user.state != "active" or user.access == "none":
            raise NotAllowed(f"the account {row.user} may not join teams")
        base, role_id = resolve_role(connection, role)
        add_member(connection, row.team_id, row.user_id, base, role_id, by.user_id, now_ms)
        _end(connection, row, "approved", by, now_ms, {"role": role})

    def reject(self, request_id: int, by: Actor, now_ms: int) -> None:
        """Reject a pending request; raise NoLongerValid if it was answered or withdrawn."""
        self._database.write(
            lambda connection: _end(connection, _lock(connection, request_id), "rejected", by, now_ms)
        )

    def withdraw(self, request_id: int, by: Actor, now_ms: int) -> None:
        """Withdraw a pending request; raise NoLongerValid if it was answered or withdrawn."""
        self._database.write(
            lambda connection: _end(connection, _lock(connection, request_id), "withdrawn", by, now_ms)
        )

    def purge(self, before_ms: int) -> int:
        """Remove requests that ended before this time; returns how many."""
        old = (team_join_request.c.state != "pending", team_join_request.c.ended_ms < before_ms)
        return self._database.write(
            lambda connection: connection.execute(delete(team_join_request).where(*old)).rowcount
        )

    def _list(self, of: ColumnElement[bool]) -> list[JoinRequestRow]:
        pending = _REQUESTS.where(of, team_join_request.c.state == "pending")
        with self._database.read() as connection:
            rows = connection.execute(pending.order_by(team_join_request.c.id))
            return [JoinRequestRow(**row._asdict()) for row in rows]


def _domains(connection: Connection, user_id: int) -> set[str]:
    """Return the domains of a user's verified addresses."""
    mine = select(email.c.address_key).where(email.c.user_id == user_id, email.c.verified_ms.is_not(None))
    return {key.rpartition("@")[2] for key in connection.execute(mine).scalars()}


def _joins_at_once(connection: Connection, user_id: int, team: TeamRow) -> bool:
    if not team.recommend_by_domain or team.join_by_domain != "auto":
        return False
    return bool(_domains(connection, user_id) & set(team.join_domains))


def _pending(team_id: int, user_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        team_join_request.c.team_id == team_id,
        team_join_request.c.user_id == user_id,
        team_join_request.c.state == "pending",
    )


def _lock(connection: Connection, request_id: int) -> JoinRequestRow:
    """Return a pending request, locked so that two administrators do not both answer it."""
    mine = team_join_request.c.id == request_id
    connection.execute(select(team_join_request.c.id).where(mine).with_for_update())
    row = connection.execute(_REQUESTS.where(mine)).first()
    if row is None or row.state != "pending":
        raise NoLongerValid("this request was answered or withdrawn")
    return JoinRequestRow(**row._asdict())


def _end(
    connection: Connection,
    row: JoinRequestRow,
    state: str,
    by: Actor,
    now_ms: int,
    about: dict[str, str] | None = None,
) -> None:
    mine = update(team_join_request).where(team_join_request.c.id == row.id)
    connection.execute(mine.values(state=state, ended_ms=now_ms, ended_by=by.user_id))
    owner = (row.team_id, row.team)
    record(connection, now_ms, by, f"team.join_{state}", entity=owner, target=row.user, after=about)

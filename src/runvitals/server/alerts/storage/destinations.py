"""Where messages about runs go: webhooks, channels of Slack and services of Apprise of teams, and the channel
of Slack of a user.

A destination has a kind, a name, and settings. Who has the URL of a channel of Slack or of Apprise can post
there, so it is kept encrypted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Column, Connection, Row, Select, Table, delete, insert, select, update

from runvitals.server.alerts.storage.integrations import check_count, check_free, locked_team
from runvitals.server.audit.storage.audit import SYSTEM, Actor, host_of, record
from runvitals.server.database.database import Database, put_rows
from runvitals.server.database.tables.alerts import apprise_destination, user_slack
from runvitals.server.database.tables.integrations import slack_destination, team_secret, team_webhook
from runvitals.server.database.text import checked_name
from runvitals.server.events.outbox import Notification, add
from runvitals.store.errors import NotFound

Kind = Literal["webhook", "slack", "apprise"]
KINDS: Final[tuple[Kind, ...]] = ("slack", "webhook", "apprise")
"""Of the destinations of teams, as targets of notifications name them."""
_SECRETS: Final = ("access_secret", "signing_secret")


class UnknownSecret(ValueError):
    """A webhook names a secret that the team does not have; the name may be a secret pasted by mistake.

    Attributes:
        field: which field names it.
    """

    def __init__(self, field: str) -> None:
        super().__init__("the team has no secret of this name")
        self.field = field


class SealedUrl(NamedTuple):
    """A URL, encrypted. `shown`: what of it may be read."""

    sealed: bytes
    shown: str


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination.

    Attributes:
        id: among those of its kind.
        settings: of a webhook its `url`, `payload`, whether it is `enabled`, and the names of the secrets of
            its team that it uses; `shown` of the others: what of the URL may be read.
        sealed: the URL, encrypted; empty for a webhook, whose administrators see it.
        disabled_ms: since when Slack does not accept it; None: it does.
    """

    kind: Kind | Literal["user-slack"]
    id: int
    name: str
    settings: Mapping[str, Any]
    created_ms: int
    sealed: bytes = field(default=b"", repr=False)
    disabled_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _DestinationKind:
    """How a kind is stored.

    Args:
        called: the column of the name.
        noun: what one is called in messages; `name_of` is what its name is.
    """

    table: Table
    called: str
    noun: str
    name_of: str
    max_count: int
    max_name: int

    @property
    def name(self) -> Column[str]:
        return self.table.c[self.called]


_KINDS: Final[dict[Kind, _DestinationKind]] = {
    "webhook": _DestinationKind(team_webhook, "name", "webhook", "name of a webhook", 50, 64),
    "slack": _DestinationKind(slack_destination, "channel", "Slack destination", "channel", 20, 80),
    "apprise": _DestinationKind(apprise_destination, "name", "Apprise destination", "name", 20, 80),
}
MAX_NAME: Final = {kind: stored.max_name for kind, stored in _KINDS.items()}
_access, _signing = team_secret.alias("access_secret"), team_secret.alias("signing_secret")


class DestinationTable:
    """The destinations of teams and users."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_team(self, kind: Kind, team_id: int) -> list[Destination]:
        """All destinations of a kind of a team, in the order in which they were created."""
        columns = _KINDS[kind].table.c
        mine = _destinations(kind).where(columns.team_id == team_id).order_by(columns.id)
        with self._database.read() as connection:
            return [_destination(kind, row) for row in connection.execute(mine)]

    def get(self, kind: Kind, team_id: int, destination_id: int) -> Destination:
        """A destination of a team.

        Raises:
            NotFound: the team has no such destination.
        """
        with self._database.read() as connection:
            return _read(connection, kind, team_id, destination_id)

    def create(
        self, kind: Kind, team_id: int, name: str, values: Mapping[str, Any], by: Actor, now_ms: int
    ) -> Destination:
        """Add a destination.

        Args:
            values: the fields of a webhook, or of a `SealedUrl`. The caller has checked them.

        Raises:
            ValueError: an invalid name.
            NameTaken: the team has a destination of this kind and name.
            LimitReached: the team has too many.
            UnknownSecret: the team has no such secret.
        """
        stored = _KINDS[kind]
        name = checked_name(stored.name_of, name.strip(), stored.max_name)

        def work(connection: Connection) -> Destination:
            team = locked_team(connection, team_id)
            check_free(connection, stored.name, team_id, name, stored.noun)
            check_count(connection, stored.table, team_id, stored.max_count, f"{stored.noun}s")
            row = _columns(connection, team_id, {**values, stored.called: name})
            row |= {"team_id": team_id, "created_by": by.user_id, "created_ms": now_ms}
            added = insert(stored.table).values(row).returning(stored.table.c.id)
            created = _read(connection, kind, team_id, connection.execute(added).scalar_one())
            after = _audited(created) if kind == "webhook" else None
            record(connection, now_ms, by, f"{kind}.create", entity=team, target=name, after=after)
            return created

        return self._database.write(work)

    def update(
        self,
        kind: Kind,
        team_id: int,
        destination_id: int,
        changes: Mapping[str, Any],
        by: Actor,
        now_ms: int,
        *,
        name: str | None = None,
    ) -> Destination:
        """Change what is given; returns the destination as it is now. A URL that is replaced is in use again.
        Raises as `create`, or if there is no such destination."""
        stored = _KINDS[kind]
        values = dict(changes)
        if name is not None:
            values[stored.called] = checked_name(stored.name_of, name.strip(), stored.max_name)
        if "sealed" in changes:
            values["disabled_ms"] = None

        def work(connection: Connection) -> Destination:
            team = locked_team(connection, team_id)
            before = _read(connection, kind, team_id, destination_id)
            called = values.get(stored.called, before.name)
            if called != before.name:
                check_free(connection, stored.name, team_id, called, stored.noun)
            row = _columns(connection, team_id, values)
            if row:
                connection.execute(
                    update(stored.table).where(stored.table.c.id == destination_id).values(row)
                )
            after = _read(connection, kind, team_id, destination_id)
            if after != before:
                action, (old, new) = f"{kind}.update", _audited_change(before, after)
                record(connection, now_ms, by, action, entity=team, target=called, before=old, after=new)
            return after

        return self._database.write(work)

    def delete(self, kind: Kind, team_id: int, destination_id: int, by: Actor, now_ms: int) -> None:
        """Delete a destination.

        Raises:
            NotFound: the team has no such destination.
        """
        table = _KINDS[kind].table

        def work(connection: Connection) -> None:
            team = locked_team(connection, team_id)
            name = _read(connection, kind, team_id, destination_id).name
            connection.execute(delete(table).where(table.c.id == destination_id))
            record(connection, now_ms, by, f"{kind}.delete", entity=team, target=name)

        self._database.write(work)

    def disable_slack(self, team_id: int, destination: Destination, now_ms: int) -> None:
        """Stop using a channel of a team that Slack does not accept, and tell whoever added it.

        Args:
            destination: what was tried: if its URL was replaced meanwhile, nothing changes.
        """
        columns = slack_destination.c
        same = (columns.id == destination.id, columns.sealed == destination.sealed)
        change = update(slack_destination).where(*same, columns.disabled_ms.is_(None))

        def work(connection: Connection) -> None:
            if not connection.execute(change.values(disabled_ms=now_ms)).rowcount:
                return
            team = locked_team(connection, team_id)
            row = connection.execute(select(columns.created_by, columns.channel).where(*same)).one()
            record(connection, now_ms, SYSTEM, "slack.disable", entity=team, target=row.channel)
            if row.created_by is not None:
                add(connection, _disabled(row.created_by, row.channel, team[1], destination.id, now_ms))

        self._database.write(work)

    def of_user(self, user_id: int) -> Destination | None:
        """The channel of Slack of a user; None if there is none."""
        with self._database.read() as connection:
            row = connection.execute(select(user_slack).where(user_slack.c.user_id == user_id)).first()
        if row is None:
            return None
        settings = {"shown": row.shown}
        return Destination("user-slack", user_id, "", settings, row.created_ms, row.sealed, row.disabled_ms)

    def put_of_user(self, user_id: int, url: SealedUrl, now_ms: int) -> Destination:
        """Set the channel of Slack of a user, in place of the one before."""
        row = {"user_id": user_id, **url._asdict(), "created_ms": now_ms, "disabled_ms": None}
        self._database.write(lambda connection: put_rows(connection, user_slack, [row]))
        return Destination("user-slack", user_id, "", {"shown": url.shown}, now_ms, url.sealed)

    def delete_of_user(self, user_id: int) -> None:
        """Forget the channel of a user."""
        mine = delete(user_slack).where(user_slack.c.user_id == user_id)
        self._database.write(lambda connection: connection.execute(mine))

    def disable_of_user(self, destination: Destination, now_ms: int) -> None:
        """Stop using a channel of a user that Slack does not accept, and tell the user by mail.

        Args:
            destination: what was tried: if its URL was replaced meanwhile, nothing changes.
        """
        columns = user_slack.c
        same = (columns.user_id == destination.id, columns.sealed == destination.sealed)
        change = update(user_slack).where(*same, columns.disabled_ms.is_(None)).values(disabled_ms=now_ms)

        def work(connection: Connection) -> None:
            if connection.execute(change).rowcount:
                add(connection, _disabled_of_user(destination.id, now_ms))

        self._database.write(work)


def _destinations(kind: Kind) -> Select[Any]:
    """The rows of a kind; the secrets of webhooks by their names."""
    if kind != "webhook":
        return select(_KINDS[kind].table)
    return (
        select(
            team_webhook,
            _access.c.name.label("access_secret"),
            _signing.c.name.label("signing_secret"),
        )
        .outerjoin(_access, _access.c.id == team_webhook.c.access_secret_id)
        .outerjoin(_signing, _signing.c.id == team_webhook.c.signing_secret_id)
    )


def _destination(kind: Kind, row: Row[Any]) -> Destination:
    if kind == "webhook":
        settings = {name: getattr(row, name) for name in ("url", *_SECRETS, "payload", "enabled")}
        return Destination(kind, row.id, row.name, settings, row.created_ms)
    name = getattr(row, _KINDS[kind].called)
    disabled_ms = row.disabled_ms if kind == "slack" else None
    return Destination(kind, row.id, name, {"shown": row.shown}, row.created_ms, row.sealed, disabled_ms)


def _read(connection: Connection, kind: Kind, team_id: int, destination_id: int) -> Destination:
    columns = _KINDS[kind].table.c
    mine = _destinations(kind).where(columns.id == destination_id, columns.team_id == team_id)
    row = connection.execute(mine).first()
    if row is None:
        raise NotFound(f"the team has no such {_KINDS[kind].noun}")
    return _destination(kind, row)


def _columns(connection: Connection, team_id: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of some fields: secrets by their ids."""
    row = {}
    for name, value in values.items():
        if name not in _SECRETS:
            row[name] = value
            continue
        secret_id = None
        if value is not None:
            mine = (team_secret.c.team_id == team_id, team_secret.c.name == value)
            secret_id = connection.execute(select(team_secret.c.id).where(*mine)).scalar()
            if secret_id is None:
                raise UnknownSecret(name)
        row[f"{name}_id"] = secret_id
    return row


def _audited(webhook: Destination) -> dict[str, Any]:
    """A webhook in the audit log: of the URL only the host, of the payload only whether there is one, since
    users write tokens into both."""
    settings = webhook.settings
    shown = {"url": host_of(settings["url"]), "payload": settings["payload"] is not None}
    return {"name": webhook.name, **settings, **shown}


def _audited_change(before: Destination, after: Destination) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the audit log says of a change: how it was and how it is."""
    if before.kind != "webhook":
        called = "channel" if before.kind == "slack" else "name"
        is_replaced = before.sealed != after.sealed
        return {called: before.name}, {called: after.name, "url_replaced": is_replaced}
    old, new = _audited(before), _audited(after)
    was, now = {"name": before.name, **before.settings}, {"name": after.name, **after.settings}
    changed = [name for name in was if was[name] != now[name]]
    return {name: old[name] for name in changed}, {name: new[name] for name in changed}


def _disabled(user_id: int, channel: str, team: str, destination_id: int, now_ms: int) -> Notification:
    text = (
        f"Slack no longer accepts messages of team {team} to {channel}\n"
        "The webhook was removed, or its channel is archived. The destination was disabled. To use it again, "
        "replace its URL in the settings of the team."
    )
    path = {"path": f"/{team}/-/settings/integrations", "link": "Open the integrations of the team"}
    key = f"slack.disabled:{destination_id}:{now_ms}"
    target = f"user:{user_id}"
    return Notification(key, "slack.disabled", target, f"slack:{destination_id}", text, path, now_ms)


def _disabled_of_user(user_id: int, now_ms: int) -> Notification:
    text = (
        "Slack no longer accepts your messages\n"
        "The webhook of your channel was removed, or the channel is archived. Slack tells you nothing more. "
        "Connect a channel again in your settings."
    )
    key, target = f"slack.disabled:user:{user_id}:{now_ms}", f"user:{user_id}"
    return Notification(key, "slack.disabled", target, f"user-slack:{user_id}", text, {}, now_ms)

"""Where messages about runs go: webhooks, channels of Slack and services of Apprise, of teams and users.

A destination has a kind, a name, and settings. Who has the URL of a channel of Slack or of Apprise can post
there, so it is kept encrypted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, delete, insert, select, update

from runvitals.server.alerts.storage.checks import check_count, check_free, locked_team
from runvitals.server.audit.storage.audit import SYSTEM, Actor, host_of, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import user_account
from runvitals.server.database.tables.destinations import destination, team_secret
from runvitals.server.database.text import checked_new_name
from runvitals.server.events.outbox import Notification, add
from runvitals.store.errors import NotFound

Kind = Literal["webhook", "slack", "apprise"]
KINDS: Final[tuple[Kind, ...]] = ("slack", "webhook", "apprise")
"""The kinds of destinations of teams, as targets of notifications name them."""
USER_SLACK: Final = "user-slack"
_SECRETS: Final = ("access_secret", "signing_secret")
_SETTINGS: Final = ("url", "payload", "shown")
"""Settings that are stored as JSON."""


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
class StoredDestination:
    """A destination.

    Attributes:
        id: among those of its kind.
        settings: of a webhook its `url`, `payload`, whether it is `enabled`, and the names of the secrets of
            its team that it uses; of the others `shown`.
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

    @property
    def shown(self) -> str:
        """The part of the URL that may be read; empty for a webhook."""
        shown: str = self.settings.get("shown", "")
        return shown


class _Limits(NamedTuple):
    """Limits of a kind of destination. `noun` and `name_of` are its words in messages."""

    noun: str
    name_of: str
    max_count: int
    max_name: int


_LIMITS: Final[dict[Kind, _Limits]] = {
    "webhook": _Limits("webhook", "name of a webhook", 50, 64),
    "slack": _Limits("Slack destination", "channel", 20, 80),
    "apprise": _Limits("Apprise destination", "name", 20, 80),
}
MAX_NAME: Final = {kind: limits.max_name for kind, limits in _LIMITS.items()}
_access, _signing = team_secret.alias("access_secret"), team_secret.alias("signing_secret")
_DESTINATIONS = (
    select(destination, _access.c.name.label("access_secret"), _signing.c.name.label("signing_secret"))
    .outerjoin(_access, _access.c.id == destination.c.access_secret_id)
    .outerjoin(_signing, _signing.c.id == destination.c.signing_secret_id)
)


class DestinationTable(StoredTable):
    """The destinations of teams and users."""

    def of_team(self, kind: Kind, team_id: int) -> list[StoredDestination]:
        """Return all destinations of a kind of a team, in the order in which they were created."""
        columns = destination.c
        mine = _DESTINATIONS.where(columns.team_id == team_id, columns.kind == kind).order_by(columns.number)
        with self._database.read() as connection:
            return [_destination(row) for row in connection.execute(mine)]

    def get(self, kind: Kind, team_id: int, destination_id: int) -> StoredDestination:
        """Return a destination of a team, or raise NotFound."""
        with self._database.read() as connection:
            return _read(connection, kind, team_id, destination_id)

    @in_transaction
    def create(
        self,
        connection: Connection,
        kind: Kind,
        team_id: int,
        name: str,
        values: Mapping[str, Any],
        by: Actor,
        now_ms: int,
    ) -> StoredDestination:
        """Add a destination.

        Args:
            values: settings of a webhook, or the fields of a `SealedUrl`. The caller has checked them.

        Raises:
            ValueError: an invalid name.
            NameTaken: the team has a destination of this kind and name.
            LimitReached: the team has too many.
            UnknownSecret: the team has no such secret.
        """
        limits, of_kind = _LIMITS[kind], destination.c.kind == kind
        name = checked_new_name(limits.name_of, name.strip(), limits.max_name)
        team = locked_team(connection, team_id)
        check_free(connection, destination.c.name, team_id, name, limits.noun, of_kind)
        check_count(connection, destination, team_id, limits.max_count, f"{limits.noun}s", of_kind)
        row = _columns(connection, team_id, {}, values)
        row |= {"kind": kind, "team_id": team_id, "name": name}
        number = _insert(connection, {**row, "created_by": by.user_id, "created_ms": now_ms})
        created = _read(connection, kind, team_id, number)
        after = _audit_values(created) if kind == "webhook" else None
        record(connection, now_ms, by, f"{kind}.create", entity=team, target=name, after=after)
        return created

    @in_transaction
    def update(
        self,
        connection: Connection,
        kind: Kind,
        team_id: int,
        destination_id: int,
        changes: Mapping[str, Any],
        by: Actor,
        now_ms: int,
        *,
        name: str | None = None,
    ) -> StoredDestination:
        """Change what is given, and return the destination as it is now.

        A URL that is replaced is in use again. Raises as `create`, or if there is no such destination.
        """
        limits, of_kind = _LIMITS[kind], destination.c.kind == kind
        if name is not None:
            name = checked_new_name(limits.name_of, name.strip(), limits.max_name)
        team = locked_team(connection, team_id)
        before = _read(connection, kind, team_id, destination_id)
        called = before.name if name is None else name
        if called != before.name:
            check_free(connection, destination.c.name, team_id, called, limits.noun, of_kind)
        row = {"name": called, **_columns(connection, team_id, before.settings, changes)}
        if "sealed" in row:
            row["disabled_ms"] = None
        connection.execute(update(destination).where(*_same(kind, destination_id)).values(row))
        after = _read(connection, kind, team_id, destination_id)
        if after != before:
            action, (old, new) = f"{kind}.update", _audit_change(before, after)
            record(connection, now_ms, by, action, entity=team, target=called, before=old, after=new)
        return after

    @in_transaction
    def delete(
        self, connection: Connection, kind: Kind, team_id: int, destination_id: int, by: Actor, now_ms: int
    ) -> None:
        """Delete a destination.

        Raises:
            NotFound: the team has no such destination.
        """
        team = locked_team(connection, team_id)
        name = _read(connection, kind, team_id, destination_id).name
        connection.execute(delete(destination).where(*_same(kind, destination_id)))
        record(connection, now_ms, by, f"{kind}.delete", entity=team, target=name)

    @in_transaction
    def disable(self, connection: Connection, tried: StoredDestination, now_ms: int) -> None:
        """Stop using a channel that Slack does not accept, and mail whoever added it.

        Args:
            tried: if its URL was replaced meanwhile, nothing changes.
        """
        columns = destination.c
        same = (*_same(tried.kind, tried.id), columns.sealed == tried.sealed)
        change = update(destination).where(*same, columns.disabled_ms.is_(None))
        if not connection.execute(change.values(disabled_ms=now_ms)).rowcount:
            return
        row = connection.execute(select(destination).where(*same)).one()
        if row.user_id is not None:
            add(connection, _user_notice(row.user_id, now_ms))
            return
        team = locked_team(connection, row.team_id)
        record(connection, now_ms, SYSTEM, "slack.disable", entity=team, target=row.name)
        if row.created_by is not None:
            add(connection, _team_notice(row.created_by, row.name, team[1], tried.id, now_ms))

    def of_user(self, user_id: int) -> StoredDestination | None:
        """Return the channel of Slack of a user; None if there is none."""
        with self._database.read() as connection:
            row = connection.execute(_DESTINATIONS.where(destination.c.user_id == user_id)).first()
        return None if row is None else _destination(row)

    @in_transaction
    def put_of_user(
        self, connection: Connection, user_id: int, url: SealedUrl, now_ms: int
    ) -> StoredDestination:
        """Set the channel of Slack of a user, in place of the one before."""
        mine = destination.c.user_id == user_id
        user = select(user_account.c.id).where(user_account.c.id == user_id)
        connection.execute(user.with_for_update())  # requests take turns
        connection.execute(delete(destination).where(mine))
        row = {"kind": USER_SLACK, "user_id": user_id, "name": "", "created_ms": now_ms}
        _insert(connection, {**row, **_columns(connection, 0, {}, url._asdict())})
        return _destination(connection.execute(_DESTINATIONS.where(mine)).one())

    def delete_of_user(self, user_id: int) -> None:
        """Forget the channel of a user."""
        mine = delete(destination).where(destination.c.user_id == user_id)
        self._database.write(lambda connection: connection.execute(mine))


def _same(kind: str, destination_id: int) -> tuple[ColumnElement[bool], ...]:
    return destination.c.kind == kind, destination.c.number == destination_id


def _insert(connection: Connection, row: Mapping[str, Any]) -> int:
    """Add a row; returns its number."""
    added = insert(destination).values({"enabled": True, **row}).returning(destination.c.id)
    number: int = connection.execute(added).scalar_one()
    connection.execute(update(destination).where(destination.c.id == number).values(number=number))
    return number


def _destination(row: Row[Any]) -> StoredDestination:
    fields = stored_object(row.settings, f"the destination {row.id}")
    settings: dict[str, Any] = {"shown": fields.get("shown", "")}
    if row.kind == "webhook":
        settings = {
            "url": fields.get("url", ""),
            "access_secret": row.access_secret,
            "signing_secret": row.signing_secret,
            "payload": fields.get("payload"),
            "enabled": row.enabled,
        }
    return StoredDestination(
        row.kind, row.number, row.name, settings, row.created_ms, row.sealed or b"", row.disabled_ms
    )


def _read(connection: Connection, kind: Kind, team_id: int, destination_id: int) -> StoredDestination:
    mine = (*_same(kind, destination_id), destination.c.team_id == team_id)
    row = connection.execute(_DESTINATIONS.where(*mine)).first()
    if row is None:
        raise NotFound(f"the team has no such {_LIMITS[kind].noun}")
    return _destination(row)


def _columns(
    connection: Connection, team_id: int, before: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the columns of some values: secrets by their ids.

    Args:
        before: the settings, which stay where `values` has none.
    """
    row = {name: values[name] for name in ("sealed", "enabled") if name in values}
    for name in _SECRETS:
        if name not in values:
            continue
        secret_id, value = None, values[name]
        if value is not None:
            mine = (team_secret.c.team_id == team_id, team_secret.c.name == value)
            secret_id = connection.execute(select(team_secret.c.id).where(*mine)).scalar()
            if secret_id is None:
                raise UnknownSecret(name)
        row[f"{name}_id"] = secret_id
    settings = {name: value for name, value in {**before, **values}.items() if name in _SETTINGS}
    return {**row, "settings": json.dumps(settings)}


def _audit_values(webhook: StoredDestination) -> dict[str, Any]:
    """Return a webhook as the audit log shows it.

    Users write tokens into URLs and payloads: only the host is shown, and whether there is a payload.
    """
    settings = webhook.settings
    shown_settings = {"url": host_of(settings["url"]), "payload": settings["payload"] is not None}
    return {"name": webhook.name, **settings, **shown_settings}


def _audit_change(
    before: StoredDestination, after: StoredDestination
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the audit log says of a change: how it was and how it is."""
    if before.kind != "webhook":
        called = "channel" if before.kind == "slack" else "name"
        is_replaced = before.sealed != after.sealed
        return {called: before.name}, {called: after.name, "url_replaced": is_replaced}
    old, new = _audit_values(before), _audit_values(after)
    was, now = {"name": before.name, **before.settings}, {"name": after.name, **after.settings}
    changed = [name for name in was if was[name] != now[name]]
    return {name: old[name] for name in changed}, {name: new[name] for name in changed}


def _team_notice(user_id: int, channel: str, team: str, destination_id: int, now_ms: int) -> Notification:
    text = (
        f"Slack no longer accepts messages of team {team} to {channel}\n"
        "The webhook was removed, or its channel is archived. The destination was disabled. To use it again, "
        "replace its URL in the settings of the team."
    )
    path = {"path": f"/{team}/-/settings/integrations", "link": "Open the integrations of the team"}
    key = f"slack.disabled:{destination_id}:{now_ms}"
    target = f"user:{user_id}"
    return Notification(key, "slack.disabled", target, f"slack:{destination_id}", text, path, now_ms)


def _user_notice(user_id: int, now_ms: int) -> Notification:
    text = (
        "Slack no longer accepts your messages\n"
        "The webhook of your channel was removed, or the channel is archived. Slack tells you nothing more. "
        "Connect a channel again in your settings."
    )
    key, target = f"slack.disabled:user:{user_id}:{now_ms}", f"user:{user_id}"
    return Notification(key, "slack.disabled", target, f"user-slack:{user_id}", text, {}, now_ms)

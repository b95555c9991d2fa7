"""Slack destinations of teams: incoming webhooks of channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.alerts.storage.integrations import check_count, check_free, locked_team
from runvitals.server.audit.storage.audit import SYSTEM, Actor, record
from runvitals.server.database.database import Database
from runvitals.server.database.tables.integrations import slack_destination
from runvitals.server.database.text import checked_name
from runvitals.server.events.outbox import Notification, add
from runvitals.store.errors import NotFound

MAX_DESTINATIONS: Final = 20
MAX_CHANNEL: Final = 80


@dataclass(frozen=True, slots=True)
class SealedUrl:
    """The URL of an incoming webhook. `shown`: what of it may be read."""

    sealed: bytes
    shown: str


@dataclass(frozen=True, slots=True)
class SlackDestinationRow:
    """A destination, without its URL.

    Attributes:
        channel: what the team calls it.
        disabled_ms: since when Slack does not accept it; None: it does.
    """

    id: int
    channel: str
    shown: str
    created_ms: int
    disabled_ms: int | None


_DESTINATIONS = select(*[slack_destination.c[name] for name in SlackDestinationRow.__dataclass_fields__])


class SlackDestinationTable:
    """The table of Slack destinations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_team(self, team_id: int) -> list[SlackDestinationRow]:
        """All destinations of a team, in the order in which they were created."""
        mine = _DESTINATIONS.where(slack_destination.c.team_id == team_id).order_by(slack_destination.c.id)
        with self._database.read() as connection:
            return [SlackDestinationRow(**row._asdict()) for row in connection.execute(mine)]

    def sealed(self, team_id: int, destination_id: int) -> bytes:
        """The encrypted URL, also of a destination that is disabled.

        Raises:
            NotFound: the team has no such destination.
        """
        return self._stored(team_id, destination_id)[0]

    def in_use(self, team_id: int, destination_id: int) -> bytes | None:
        """The encrypted URL; None if the destination is disabled. Raises as `sealed`."""
        found, disabled_ms = self._stored(team_id, destination_id)
        return found if disabled_ms is None else None

    def _stored(self, team_id: int, destination_id: int) -> tuple[bytes, int | None]:
        mine = (slack_destination.c.id == destination_id, slack_destination.c.team_id == team_id)
        columns = select(slack_destination.c.sealed, slack_destination.c.disabled_ms)
        with self._database.read() as connection:
            found = connection.execute(columns.where(*mine)).first()
        if found is None:
            raise NotFound("the team has no such Slack destination")
        return found.sealed, found.disabled_ms

    def disable(self, team_id: int, destination_id: int, sealed: bytes, now_ms: int) -> None:
        """Stop using a destination that Slack does not accept, and tell whoever added it.

        Args:
            sealed: the URL that was tried: if it was replaced meanwhile, nothing changes.
        """
        same = (slack_destination.c.id == destination_id, slack_destination.c.sealed == sealed)
        change = update(slack_destination).where(*same, slack_destination.c.disabled_ms.is_(None))

        def work(connection: Connection) -> None:
            if not connection.execute(change.values(disabled_ms=now_ms)).rowcount:
                return
            team = locked_team(connection, team_id)
            author = select(slack_destination.c.created_by, slack_destination.c.channel).where(*same)
            row = connection.execute(author).one()
            record(connection, now_ms, SYSTEM, "slack.disable", entity=team, target=row.channel)
            if row.created_by is not None:
                add(connection, _disabled(row.created_by, row.channel, team[1], destination_id, now_ms))

        self._database.write(work)

    def create(
        self, team_id: int, channel: str, url: SealedUrl, by: Actor, now_ms: int
    ) -> SlackDestinationRow:
        """
        Raises:
            ValueError: an invalid channel.
            NameTaken: the team has a destination of this name.
            LimitReached: the team has too many.
        """
        channel = _checked_channel(channel)
        values = {
            "team_id": team_id,
            "channel": channel,
            "sealed": url.sealed,
            "shown": url.shown,
            "created_by": by.user_id,
            "created_ms": now_ms,
        }

        def work(connection: Connection) -> SlackDestinationRow:
            team = locked_team(connection, team_id)
            check_free(connection, slack_destination.c.channel, team_id, channel, "Slack destination")
            check_count(connection, slack_destination, team_id, MAX_DESTINATIONS, "Slack destinations")
            connection.execute(insert(slack_destination).values(values))
            record(connection, now_ms, by, "slack.create", entity=team, target=channel)
            mine = (slack_destination.c.team_id == team_id, slack_destination.c.channel == channel)
            return SlackDestinationRow(**connection.execute(_DESTINATIONS.where(*mine)).one()._asdict())

        return self._database.write(work)

    def update(
        self,
        team_id: int,
        destination_id: int,
        by: Actor,
        now_ms: int,
        *,
        channel: str | None = None,
        url: SealedUrl | None = None,
    ) -> SlackDestinationRow:
        """Change what is given. Raises as `create`, or if there is no such destination."""
        values: dict[str, Any] = (
            {} if url is None else {"sealed": url.sealed, "shown": url.shown, "disabled_ms": None}
        )
        if channel is not None:
            values["channel"] = _checked_channel(channel)

        def work(connection: Connection) -> SlackDestinationRow:
            team = locked_team(connection, team_id)
            before = _destination(connection, team_id, destination_id)
            name = values.get("channel", before.channel)
            if name != before.channel:
                check_free(connection, slack_destination.c.channel, team_id, name, "Slack destination")
            elif url is None:
                return before
            mine = slack_destination.c.id == destination_id
            connection.execute(update(slack_destination).where(mine).values(values))
            old, new = {"channel": before.channel}, {"channel": name, "url_replaced": url is not None}
            record(connection, now_ms, by, "slack.update", entity=team, target=name, before=old, after=new)
            return _destination(connection, team_id, destination_id)

        return self._database.write(work)

    def delete(self, team_id: int, destination_id: int, by: Actor, now_ms: int) -> None:
        """
        Raises:
            NotFound: the team has no such destination.
        """

        def work(connection: Connection) -> None:
            team = locked_team(connection, team_id)
            row = _destination(connection, team_id, destination_id)
            connection.execute(delete(slack_destination).where(slack_destination.c.id == destination_id))
            record(connection, now_ms, by, "slack.delete", entity=team, target=row.channel)

        self._database.write(work)


def _checked_channel(channel: str) -> str:
    return checked_name("channel", channel.strip(), MAX_CHANNEL)


def _destination(connection: Connection, team_id: int, destination_id: int) -> SlackDestinationRow:
    mine = (slack_destination.c.id == destination_id, slack_destination.c.team_id == team_id)
    row = connection.execute(_DESTINATIONS.where(*mine)).first()
    if row is None:
        raise NotFound("the team has no such Slack destination")
    return SlackDestinationRow(**row._asdict())


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
